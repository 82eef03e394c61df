"""Markdown is spoken: as a stream and as a file, from any place, with emphasis that is heard."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import Clip, Fallback
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.speech.engine import Engine

ANSWER = """
# Kettles

A kettle **boils** water. It is *not* a pot, and nobody calls it one, however long the sentence grows.

1. Fill it.
2. Wait for `3` minutes.

| Kind | Price |
|---|---|
| small | $5 |

```python
boil(kettle)
```

> Mind the steam! 🎉
"""


def speak(engine: Engine, text: str, **options: object) -> Clip:
    return engine.synthesize(text, voice="hum", input_format="markdown", **{"loudness": "none"} | options)


def left_out(clip: Clip) -> list[Fallback]:
    return [each for each in clip.report.fallbacks if each.stage == "text"]


def words(clip: Clip) -> list[str]:
    return [each.text.lower() for each in clip.timings]


def test_a_stream_and_a_file_hold_the_same_samples_and_words(hum: Engine) -> None:
    options = {"voice": "hum", "input_format": "markdown", "loudness": "voice", "statistics": "exact"}
    stream = hum.stream(ANSWER, **options)
    samples = np.concatenate([chunk.samples for chunk in stream])
    file = hum.synthesize(ANSWER, **options)
    np.testing.assert_array_equal(samples, file.samples)
    assert stream.timings == list(file.timings)
    assert all(0 <= each.start < each.end <= len(ANSWER) for each in file.timings)
    assert {"kettles", "boils", "one", "kind", "small", "dollars", "steam", "party"} <= set(words(file))
    assert not {"boil", "python", "number", "asterisk", "hash"} & set(words(file))


def test_a_stream_goes_on_from_any_segment(hum: Engine) -> None:
    options = {"voice": "hum", "input_format": "markdown", "speed": 4.0}
    stream = hum.stream(ANSWER, **options)
    chunks = {chunk.chunk_id: chunk.samples for chunk in stream}
    assert len(stream.places) > 5
    for place in stream.places.values():
        later = hum.stream(ANSWER, place=place, **options)
        for chunk in later:
            if chunk.start_s * 24_000 >= place.start_samples:
                np.testing.assert_array_equal(chunk.samples, chunks[chunk.chunk_id])
        assert later.timings == [each for each in stream.timings if each.segment_id >= place.segment_id]


def test_emphasis_is_spoken_as_that_of_ssml(front_end: FrontEnd) -> None:
    styles = []
    for text, kind in (
        ("It is **not** a *pot*.", "markdown"),
        ("<speak>It is <emphasis level='strong'>not</emphasis> a <emphasis>pot</emphasis>.</speak>", "ssml"),
    ):
        document = front_end.read(text, kind, "en-us")
        (segment,) = front_end.segments_of(document, "en-us", lambda _: None)
        styles.append(segment.styles)
    assert styles[0] == styles[1] != ()


def test_code_and_emoji_are_said_if_they_are_asked_for(hum: Engine) -> None:
    skipped = speak(hum, ANSWER, emoji="skip")
    assert not {"party", "popper"} & set(words(skipped))
    (code,) = left_out(skipped)
    assert ANSWER[code.start : code.end].endswith("boil(kettle)\n```")
    assert {"code", "in", "python"} <= set(words(speak(hum, ANSWER, code="name")))
    read = speak(hum, ANSWER, code="read")
    assert any("kettle" in word and "boil" in word for word in words(read))
    assert not left_out(read)


@pytest.mark.parametrize(
    "text", ["---", "```\ncode\n```", "<!-- unseen -->", "![](x.png)", "[a]: http://b.c"]
)
def test_markdown_in_which_nothing_is_said_is_a_little_silence(hum: Engine, text: str) -> None:
    clip = speak(hum, text)
    assert not clip.samples.any()
    assert "no word is in this text" in clip.report.fallbacks[-1].reason


def test_emoji_can_be_left_out_of_any_text(hum: Engine) -> None:
    for text, kind in (("Zoo 🎉 ah", "text"), ("<speak>Zoo 🎉 ah</speak>", "ssml")):
        options = {"voice": "hum", "input_format": kind}
        assert len(hum.synthesize(text, **options).timings) == 4
        assert len(hum.synthesize(text, emoji="skip", **options).timings) == 2
