"""Segments of a text that is still being written, by a writer who writes only when somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from kokoro_lab.datatypes import Fallback, Segment
from kokoro_lab.errors import Interrupted, TextError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.growing import GrowingLines, GrowingText
from kokoro_lab.text.markdown import blocks
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.segment import JOINED_COLUMNS
from kokoro_lab.text.sentences import LOOK_CHARS
from tests.speech.test_live import LATIN, cut_at_random, made_up, sentences_of


class Awaited(GrowingText):
    """Gets its next string at the moment when nothing can be decided without it."""

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__()
        self._pieces: Iterator[str] = iter(pieces)
        self.read_chars = 0

    def take(self, count: int) -> AlignedText:
        self.read_chars += count
        return super().take(count)

    def _wait(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self.end()
        else:
            self.append(piece)


class AwaitedLines(Awaited, GrowingLines):
    """The same of a text that is read in lines."""


TEXTS_COUNT = 200
"""In eight languages, the first of them written for this."""


def segments(front_end: FrontEnd, text: str, language: str) -> list[Segment]:
    return list(front_end.segments(text, language, lambda _: None))


@pytest.mark.parametrize("seed", range(TEXTS_COUNT))
def test_what_came_late_changes_no_segment(front_end: FrontEnd, seed: int) -> None:
    language, text = made_up(seed) if seed >= len(LATIN) else ("en-us", LATIN[seed])
    whole = segments(front_end, text, language)
    for pieces in (list(text), cut_at_random(text, seed)):
        assert list(front_end.segments_of(Awaited(pieces), language, lambda _: None)) == whole


MARKED = """# A *title*
Some **bold text. It goes on** here, and [a link](https://example.org/a_b?c=d) with $x^2$ in the middle of it.

> A quoted line that is long enough to be wrapped, which is more than fifty columns,
> goes on here.<br>Then &mdash; a break.

| A | B |
|---|---|
| 1 | two[^1] |

```python
x = 1
```
- [x] One thing that is done, in a line which is longer than fifty columns
- another <b>thing.</b>

<p>It was <s>9 €</s> 8 € then</p> <script>
if (a < b) { c(); }
</script>

[^1]: See [the documentation of everything that anybody ever wanted to know](https://example.org/all), and
go on, and on, and on, until the end of the line, and a bit behind it, so that this sentence becomes long.
"""


@pytest.mark.parametrize("language", ["en-us", "es", "hi"])
def test_marks_that_came_late_change_no_segment(front_end: FrontEnd, language: str) -> None:
    whole = segments(front_end, MARKED, language)
    for pieces in (list(MARKED), *(cut_at_random(MARKED, seed) for seed in range(10))):
        assert list(front_end.segments_of(Awaited(pieces), language, lambda _: None)) == whole


LONGEST_LOOK_CHARS = 150
"""`OPENING_COLUMNS` or `JOINED_COLUMNS`, the `LOOK_CHARS` behind these, and a word."""


@pytest.mark.parametrize("seed", range(0, TEXTS_COUNT, 4))
def test_a_segment_is_known_soon_after_its_last_word(front_end: FrontEnd, seed: int) -> None:
    language, text = made_up(seed)
    writing = Awaited(list(text))
    for segment in front_end.segments_of(writing, language, lambda _: None):
        assert writing.length - segment.end <= LONGEST_LOOK_CHARS


@pytest.mark.parametrize("language", ["en", "es", "fr", "pt", "hi"])
def test_of_a_long_sentence_no_more_is_looked_at_than_is_said(front_end: FrontEnd, language: str) -> None:
    """The sentences of a language as one of some 1500 characters."""
    parts = [text.strip(" .!?।") for text in sentences_of(language) if text.isascii() or language != "en"]
    text = ", ".join(parts * 3)[:1500]
    assert len(text) > 900
    tag = {"en": "en-us", "pt": "pt-br"}.get(language, language)
    writing = Awaited(list(f"{text}. The end."))
    looked = [writing.length - segment.end for segment in front_end.segments_of(writing, tag, lambda _: None)]
    assert len(looked) > 4
    assert max(looked[:-1]) <= (LONGEST_LOOK_CHARS if language == "en" else 300)


BEGINNINGS = {
    "en-us": ["Sure!", "Yes.", "No.", "Of course!", "Great question!"],
    "es": ["¡Claro!", "Sí.", "No.", "Por supuesto.", "¡Buena pregunta!"],
    "fr": ["Bien sûr !", "Oui.", "Non.", "D'accord.", "Bonne question !"],
    "it": ["Certo!", "Sì.", "No.", "Va bene.", "Ottima domanda!"],
}
GOES_ON = {
    "en-us": "Here is a list of all that you will need for it, and of where it can be had nearby, in order",
    "es": "Aquí tienes una lista de todo lo que vas a necesitar, y de los lugares donde comprarlo, en orden",
    "fr": "Voici une liste de tout ce dont vous aurez besoin, et des endroits où le trouver, par ordre",
    "it": "Ecco un elenco di tutto quello che ti servirà, e dei luoghi dove potrai trovarlo, in ordine",
}


@pytest.mark.parametrize(
    ("language", "beginning"), [(each, of) for each in BEGINNINGS for of in BEGINNINGS[each]]
)
def test_what_models_begin_with_waits_for_no_paragraph(
    front_end: FrontEnd, language: str, beginning: str
) -> None:
    """For the next line; or for as much of the next sentence as it could be joined to, and no more."""
    line = Awaited(list(f"{beginning}\n\n{GOES_ON[language]}"))
    first = next(front_end.segments_of(line, language, lambda _: None))
    assert (first.end, line.length) == (len(beginning), len(beginning) + 3)
    prose = Awaited(list(f"{beginning} {GOES_ON[language]} {GOES_ON[language]}. The end."))
    first = next(front_end.segments_of(prose, language, lambda _: None))
    assert first.end == len(beginning)
    assert prose.length - first.end <= JOINED_COLUMNS + LOOK_CHARS


def test_what_models_begin_with_is_known_at_once(front_end: FrontEnd) -> None:
    """`Sure!` waits for the end of its line, or for some words of a sentence that is not short."""
    line = Awaited(list("Sure!\n\nThe kettle is on."))
    first = next(front_end.segments_of(line, "en-us", lambda _: None))
    assert (first.phonemes, line.length) == ("ʃˈʊɹ!", len("Sure!\n\nT"))
    sentence = (
        "Here is a list of everything that you will need, and of where it is to be had, in order of time."
    )
    prose = Awaited(list(f"Sure! {sentence[:-1]} or of price. The kettle is on."))
    assert next(front_end.segments_of(prose, "en-us", lambda _: None)).phonemes == "ʃˈʊɹ!"
    assert prose.length < len("Sure! ") + len(sentence) + 30


MARKDOWN = load_rows("markdown")


def of_markdown(
    front_end: FrontEnd, known: dict[str, Any], pieces: list[str] | None = None
) -> tuple[list[Segment], set[Fallback]]:
    """A document's segments and what was noted, whole or of `pieces`."""
    language, noted = known["language"], set[Fallback]()
    options = {name: known[name] for name in ("code", "emoji") if name in known}
    if pieces is None:
        document = front_end.read(known["written"], "markdown", language, noted.add, **options)
    else:
        text = AwaitedLines(pieces)
        document = front_end.read_as_written(text, language, noted.add, **options)
    return list(front_end.segments_of(document, language, noted.add)), noted


@pytest.mark.parametrize("known", MARKDOWN, ids=lambda known: known["id"])
def test_however_markdown_is_cut_its_segments_are_those_of_the_whole(
    front_end: FrontEnd, known: dict[str, Any]
) -> None:
    if known["language"] == "ja":
        pytest.importorskip("fugashi")
    whole = of_markdown(front_end, known)
    for seed in range(2):
        assert of_markdown(front_end, known, cut_at_random(known["written"], seed)) == whole
    assert of_markdown(front_end, known, list(known["written"])) == whole


def test_a_block_of_markdown_that_is_cut_off_is_another_document(front_end: FrontEnd) -> None:
    """The control: were blocks read before they are certain, most documents would be read otherwise."""
    changed = 0
    for known in MARKDOWN:
        if known["language"] == "ja":
            continue
        half = len(known["written"]) // 2
        whole, _ = of_markdown(front_end, known)
        parts = [of_markdown(front_end, known | {"written": part}) for part in
                 (known["written"][:half], known["written"][half:])]  # fmt: skip
        changed += [s.phonemes for found, _ in parts for s in found] != [s.phonemes for s in whole]
    assert changed > 40


def test_a_block_of_markdown_is_spoken_before_the_last_has_come(front_end: FrontEnd) -> None:
    several = 0
    for known in MARKDOWN:
        source, language = known["written"], known["language"]
        said = [block for block in blocks(source, language) if block.passages]
        if language == "ja" or all(each.passages[-1].ends != "paragraph" for each in said[:-1]):
            continue
        text = AwaitedLines(list(source))
        document = front_end.read_as_written(text, language, lambda _: None)
        next(front_end.segments_of(document, language, lambda _: None))
        assert text.length < len(source)
        several += 1
    assert several > 20


def test_a_part_is_read_as_if_nothing_followed(front_end: FrontEnd) -> None:
    writing = GrowingText()
    writing.append("The kettle is on and")
    writing.flush()
    writing.append(" the window is open.")
    writing.end()
    found = list(front_end.segments_of(writing, "en-us", lambda _: None))
    assert [segment.phonemes for segment in found] == [
        *(segment.phonemes for segment in segments(front_end, "The kettle is on and", "en-us")),
        *(segment.phonemes for segment in segments(front_end, "the window is open.", "en-us")),
    ]
    assert (found[1].start, found[1].end) == (21, 40)


def test_who_writes_far_ahead_waits(front_end: FrontEnd) -> None:
    writing = GrowingText(most_ahead=4000)

    def write() -> None:
        with suppress(Interrupted):
            for _ in range(1000):
                writing.append("The kettle is on. ")

    writer = threading.Thread(target=write)
    writer.start()
    writer.join(0.2)
    assert writer.is_alive()
    assert writing.length < 4100
    found = front_end.segments_of(writing, "en-us", lambda _: None)
    for _ in range(4):
        next(found)
    writing.cancel()
    writer.join(10)
    assert not writer.is_alive()


def test_after_a_pause_of_the_writer_what_is_there_is_read_and_that_is_noted(front_end: FrontEnd) -> None:
    noted: list[Fallback] = []
    writing = GrowingText(noted.append, max_wait_s=0.01)
    writing.append("The kettle is on and")
    first = next(front_end.segments_of(writing, "en-us", noted.append))
    assert first.end == 20
    assert [fallback.reason for fallback in noted] == [
        "spoken as if it ended here: nothing more came within 10 ms"
    ]


def test_a_text_without_white_space_is_read_while_it_is_written(front_end: FrontEnd) -> None:
    text = "今日はとても良い天気です。明日は雨が降るでしょう。傘を忘れないでください。" * 30
    writing = Awaited(list(text))
    found = front_end.segments_of(writing, "ja", lambda _: None)
    first = next(found)
    assert writing.length - first.end < LONGEST_LOOK_CHARS
    assert [first, *found] == segments(front_end, text, "ja")


@pytest.mark.parametrize("word", ["P\u0430ris", "\u1d07x\u1d0f", "\ufb01nd", "가"])
def test_where_an_endless_word_is_cut_depends_on_it_alone(word: str) -> None:
    text = f"Well, {word * 700}\u0436 and {word * 300}. {word * 501} {word}"
    whole = sanitise(text)
    for pieces in (list(text), cut_at_random(text, 1), [text], [text[:4500], text[4500:]]):
        writing = GrowingText(most_ahead=10 * len(text))
        for each in pieces:
            writing.append(each)
        writing.end()
        assert writing.rest(1, 10 * len(text)) == whole.text


@pytest.mark.parametrize("letters", ["a" * 9000, "ກາ" * 3000, "가" * 5000])
def test_one_endless_word_makes_nobody_wait_for_ever(front_end: FrontEnd, letters: str) -> None:
    writing = GrowingText(most_ahead=1)
    writer = threading.Thread(target=lambda: [writing.append(letter) for letter in letters] and writing.end())
    writer.start()
    found = list(front_end.segments_of(writing, "es", lambda _: None))
    writer.join(10)
    assert found[-1].end == len(letters)


def test_nothing_is_written_behind_the_end() -> None:
    writing = GrowingText()
    writing.append("The end.")
    writing.end()
    for late in (lambda: writing.append(" More."), writing.flush):
        with pytest.raises(TextError, match="has ended"):
            late()
    with pytest.raises(TextError, match="text cannot be"):
        GrowingText().append(b"bytes")  # type: ignore[arg-type]


def test_more_than_there_is_room_for_is_refused_where_nobody_waits() -> None:
    writing = GrowingText(most_ahead=5000)
    with pytest.raises(TextError, match=r"6000 characters, and 0 that wait .* 5000 characters"):
        writing.append("a " * 3000, wait=False)
    writing.append("a " * 2500, wait=False)  # exactly as many as there may be
    with pytest.raises(TextError, match="and 5000 that wait"):
        writing.append("a", wait=False)


def test_a_block_that_is_longer_than_may_wait_is_refused_until_it_is_flushed() -> None:
    writing = GrowingLines(most_ahead=5000)
    reader = threading.Thread(target=lambda: writing.take(len(writing.rest(5001, 9000))))
    reader.start()
    for _ in range(5):
        writing.append("a line of code, " * 60 + "\n" + " " * 39, wait=False)
    with pytest.raises(TextError, match="flush a block that is longer"):
        writing.append("b", wait=False)
    writing.flush()
    reader.join(60)
    writing.append("b", wait=False)


def test_who_writes_far_ahead_copies_nothing_that_is_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    joined = AlignedText.joined.__func__  # type: ignore[attr-defined]

    def counted(cls: type[AlignedText], parts: Iterable[AlignedText]) -> AlignedText:
        found: AlignedText = joined(cls, parts)
        copied.append(len(found))
        return found

    monkeypatch.setattr(AlignedText, "joined", classmethod(counted))
    text = GrowingText()
    for k in range(1000):
        text.append(f"word{k} ")
    assert not copied
    assert len(text.rest(10, 10_000)) > 7000
    assert len(copied) == 1
