"""A text that is spoken while it is written is spoken as the whole text is."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kokoro_lab.errors import Interrupted, ParameterError, TextError
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.live import LiveSpeech
from kokoro_lab.speech.stream import SpeechStream
from kokoro_lab.speech.utterance import checked_utterance
from kokoro_lab.text.growing import GrowingText

LATIN = [
    "Sure! Here is what you asked for. First, put the kettle on.\n\n- Milk\n- Two eggs\n\nThen wait.",
    "Dr. Smith paid $3.50 at 5 p.m. on St. James Street, e.g. for tea. He left",
    '"I came. I saw the whole wide world, and everybody in it. I conquered it all," he said... and he slept.',
    "word " * 60 + "and then, after all of that, it ended. Yes. No. Why?",
    "The senior manufacturing engineers carefully inspected twenty enormous hydraulic turbines before anybody"
    " started the first of the machines in the basement, which had been standing there for eleven years; and"
    " nobody knew why, and nobody asked. They read it on 5 May 2024.\r\n\r\nThe end",
]


def spoken(live: LiveSpeech) -> tuple[np.ndarray, list[object]]:
    samples = np.concatenate([chunk.samples for chunk in live])
    return samples, list(live.timings)


def written(engine: Engine, pieces: Sequence[str], **options: object) -> tuple[np.ndarray, list[object]]:
    live = engine.session(voice="hum", **options)
    live.write_from(pieces)
    return spoken(live)


def cut_at_random(text: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    cuts = sorted({0, len(text), *(chance.randrange(len(text) + 1) for _ in range(1 + len(text) // 9))})
    return [text[start:end] for start, end in pairwise(cuts)]


@cache
def sentences_of(language: str) -> list[str]:
    """What people write in a language: sentences, numbers, words of other languages."""
    found = [row["text"] for row in load_rows("intelligibility") if row["language"][:2] == language]
    switching = [row for row in load_rows("code_switching") if row["language"][:2] == language]
    found += ["".join(text for _, text in row["runs"]) for row in switching]
    found += [row["text"] for row in load_rows("live") if row["language"] == language]
    if language in ("en", "es", "ja", "zh"):
        found += [row["written"] for row in load_rows(f"normalisation_{language}")]
    return found


def made_up(seed: int) -> tuple[str, str]:
    """A language, and a text of up to nine sentences, lines and paragraphs in it."""
    chance = random.Random(seed)
    language = ("en", "en-gb", "en", "es", "fr", "it", "pt", "ja", "hi", "zh")[seed % 10]
    text = "".join(
        chance.choice(sentences_of(language[:2]))
        + chance.choice((" ", " ", " ", "\n", "\n\n", "  ", "... ", "! "))
        for _ in range(chance.randint(1, 9))
    )
    return {"en": "en-us", "pt": "pt-br"}.get(language, language), text


TEXTS = [("en-us", text) for text in LATIN] + [made_up(seed) for seed in range(5, 200)]
AT_ONCE = 45


@pytest.mark.parametrize(("language", "text"), TEXTS[:AT_ONCE])
def test_how_it_was_cut_and_when_it_came_changes_nothing(hum: Engine, language: str, text: str) -> None:
    is_spoken_alike(hum, language, text)


@pytest.mark.test_long
@pytest.mark.parametrize(("language", "text"), TEXTS[AT_ONCE:])
def test_the_same_of_all_texts(hum: Engine, language: str, text: str) -> None:
    is_spoken_alike(hum, language, text)


def is_spoken_alike(hum: Engine, language: str, text: str) -> None:
    whole = hum.stream(text, voice="hum", language=language, cached=False)
    samples = np.concatenate([chunk.samples for chunk in whole])
    for pieces in (list(text), cut_at_random(text, 1)):
        heard, timings = written(hum, pieces, language=language)
        assert timings == whole.timings
        np.testing.assert_array_equal(heard, samples)


@pytest.mark.parametrize("known", load_rows("markdown")[::7], ids=lambda known: known["id"])
def test_how_markdown_was_cut_changes_no_sample(hum: Engine, known: dict[str, Any]) -> None:
    text, options = (
        known["written"],
        {name: known[name] for name in ("language", "code", "emoji") if name in known},
    )
    whole = hum.stream(text, voice="hum", input_format="markdown", cached=False, **options)
    samples = np.concatenate([chunk.samples for chunk in whole])
    for pieces in (list(text), cut_at_random(text, 1)):
        heard, timings = written(hum, pieces, input_format="markdown", **options)
        assert timings == whole.timings
        np.testing.assert_array_equal(heard, samples)


def test_a_block_of_markdown_is_heard_before_the_next_is_written(hum: Engine) -> None:
    live = hum.session(voice="hum", input_format="markdown")
    live.append("# Kettles\n\nA kettle *boils*\nwater.\n\n")
    while next(live).segment_id == 0:
        pass  # the heading; what comes now is of the paragraph
    live.append("The end.")
    live.end()
    _, timings = spoken(live)
    assert [timing.text for timing in timings[:5]] == ["Kettles", "A", "kettle", "boils", "water"]


def test_a_long_block_of_markdown_makes_no_writer_wait_for_ever(hum: Engine) -> None:
    text = "```\n" + "let x = 1\n" * 600 + "```\n\nThe end."
    live = hum.session(voice="hum", input_format="markdown", most_ahead=4000)
    live.write_from(list(text))
    late = threading.Timer(30, live.cancel)
    late.start()
    _, timings = spoken(live)
    assert [timing.text for timing in timings] == ["The", "end"]
    late.cancel()


def test_who_writes_a_long_line_is_not_called_silent(hum: Engine) -> None:
    live = hum.session(voice="hum", input_format="markdown")
    listener = threading.Thread(target=lambda: list(live))
    listener.start()
    for _ in range(6):
        time.sleep(0.05)
        before_s = time.perf_counter()
        live.append("word ")
    assert 0 < live.starving_s < time.perf_counter() - before_s
    live.end()
    listener.join(60)


def test_what_came_late_is_booked_on_the_segment_that_waited_for_it(hum: Engine) -> None:
    text = GrowingText()
    asked = checked_utterance(hum.parts, "", {"voice": "hum"}, streamed=True)
    stream = SpeechStream(hum.parts, asked, chunk_s=0.05, growing=text)
    text.append("The kettle is on, and the window is open.\n\nThe door is shut.\n\n")
    text.end()
    next(stream)
    text.came_s = 5.0  # while this segment is spoken, the next one is prepared, and has to wait
    assert {next(stream).segment_id for _ in range(10)} == {0}
    assert stream.text_came_s is None
    list(stream)
    assert stream.text_came_s == 5.0


@pytest.mark.parametrize("text", ["", " \n\n"])
def test_nothing_in_markdown_is_nothing_and_what_is_unseen_is_a_little_silence(
    hum: Engine, text: str
) -> None:
    with pytest.raises(TextError):
        written(hum, [text], input_format="markdown")
    samples, _ = written(hum, [text, "<!-- unseen -->"], input_format="markdown")
    assert len(samples)
    assert not samples.any()


def test_emoji_are_left_out_as_they_are_of_a_whole_text(hum: Engine) -> None:
    text = "Sure! 😀 The kettle👍🏽is on 🎉🎉.\n\n🇫🇷 And 1️⃣ window is open 👨‍👩‍👧 now."
    whole = hum.stream(text, voice="hum", emoji="skip", cached=False)
    samples = np.concatenate([chunk.samples for chunk in whole])
    heard, timings = written(hum, list(text), emoji="skip")
    assert timings == whole.timings
    np.testing.assert_array_equal(heard, samples)


def test_a_flush_is_heard(hum: Engine) -> None:
    """The control: what is cut by `flush` is another text."""
    text = "The kettle is on, and the window is open. The door is shut."
    plain, _ = written(hum, [text])
    live = hum.session(voice="hum")
    live.append(text[:20])
    live.flush()
    live.append(text[20:])
    live.end()
    flushed, _ = spoken(live)
    assert len(flushed) != len(plain) or (flushed != plain).any()


def test_who_is_silent_is_waited_for(hum: Engine) -> None:
    live = hum.session(voice="hum")
    live.append("The kettle is on.\n\n")
    live.append("The ")
    first = next(live)
    assert first.chunk_id == 0
    threading.Timer(0.2, live.end).start()
    for _ in live:
        pass
    assert live.report.characters == len("The kettle is on.\n\nThe ")


def test_what_is_cancelled_is_silent(hum: Engine) -> None:
    live = hum.session(voice="hum")
    live.append("The kettle is on.\n\nThe window")
    next(live)
    threading.Timer(0.1, live.cancel).start()
    with pytest.raises(Interrupted):
        list(live)
    with pytest.raises(Interrupted):
        live.append("more")


def test_of_a_window_that_is_there_already_nothing_is_heard_behind_a_cancellation(hum: Engine) -> None:
    live = hum.session(voice="hum", cached=False)
    live.append("The kettle is on, and the window is open.")
    live.end()
    next(live)
    live.cancel()
    with pytest.raises(Interrupted):
        next(live)


def test_what_the_writer_raises_is_raised_to_the_listener(hum: Engine) -> None:
    def broken() -> Iterator[str]:
        yield "The kettle is on."
        raise ConnectionError("the model went away")

    live = hum.stream(broken(), voice="hum")
    with pytest.raises(ConnectionError, match="the model went away"):
        list(live)


def test_an_iterator_of_strings_is_a_text(hum: Engine) -> None:
    text = "The kettle is on. The window is open, and nobody is at home."
    live = hum.stream(iter(text.split(" ")), voice="hum")
    assert len(np.concatenate([chunk.samples for chunk in live]))
    whole = np.concatenate([chunk.samples for chunk in hum.stream(text, voice="hum", cached=False)])
    cut = hum.stream((text[k : k + 3] for k in range(0, len(text), 3)), voice="hum")
    np.testing.assert_array_equal(np.concatenate([chunk.samples for chunk in cut]), whole)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_nothing_is_nothing_to_speak(hum: Engine, text: str) -> None:
    with pytest.raises(TextError):
        written(hum, [text])


def test_what_is_no_plain_text_is_refused(hum: Engine) -> None:
    with pytest.raises(ParameterError, match="plain text"):
        hum.session(voice="hum", input_format="ssml")
