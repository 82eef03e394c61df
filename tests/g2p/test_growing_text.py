"""Segments of a text that is still being written, by a writer who writes only when somebody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress

import pytest

from kokoro_lab.datatypes import Fallback, Segment
from kokoro_lab.errors import Interrupted, TextError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text.growing import GrowingText
from tests.speech.test_live import LATIN, cut_at_random, made_up


class Awaited(GrowingText):
    """Gets its next string at the moment when nothing can be decided without it."""

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__()
        self._pieces: Iterator[str] = iter(pieces)

    def _wait(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self.end()
        else:
            self.append(piece)


def segments(front_end: FrontEnd, text: str, language: str) -> list[Segment]:
    return list(front_end.segments(text, language, lambda _: None))


@pytest.mark.parametrize("seed", range(100))
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


@pytest.mark.parametrize("seed", range(0, 100, 4))
def test_a_segment_is_known_soon_after_its_last_word(front_end: FrontEnd, seed: int) -> None:
    language, text = made_up(seed)
    writing = Awaited(list(text))
    for segment in front_end.segments_of(writing, language, lambda _: None):
        assert writing.length - segment.end <= LONGEST_LOOK_CHARS


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
    with pytest.raises(TextError, match="5000 characters"):
        writing.append("a " * 3000, wait=False)
    writing.append("a " * 2000, wait=False)
