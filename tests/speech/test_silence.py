"""The silence between two segments, and before the first and behind the last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.speech.engine import Engine
from tests import tiny_voice


def test_pauses_follow_the_punctuation(hum: Engine) -> None:
    clip = hum.synthesize("The first sentence is here. The second sentence is there.", voice="hum")
    first, _ = clip.segments
    last, following = (t for t in clip.timings if t.text in ("here", "The") and t.start)
    stop_s = tiny_voice.TOKEN_FRAMES * 0.025  # this voice hums even a full stop
    gap_s = following.start_s - last.end_s - stop_s
    assert first.pause_after_s == pytest.approx(0.15)
    assert gap_s == pytest.approx(0.05 + 0.15 + 0.03, abs=0.012)  # trimmed tail, pause, trimmed lead


def test_leading_and_trailing_silence_is_trimmed(hum: Engine) -> None:
    samples = hum.synthesize("Ah.", voice="hum").samples
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    assert loud[0] / SAMPLE_RATE_HZ < 0.1
    assert (len(samples) - 1 - loud[-1]) / SAMPLE_RATE_HZ < 0.1


def test_a_row_of_marks_is_a_pause_not_a_sound(hum: Engine) -> None:
    clip = hum.synthesize(
        "The kettle is on the stove now.\n\n…\n\nNobody is in the kitchen now.", voice="hum"
    )
    assert len(clip.segments) == 2


def test_a_pause_between_segments_is_as_long_as_its_mark_says_where_pauses_are_ruled(hum: Engine) -> None:
    text = "The first sentence is here. The second sentence is there."

    def gap_s(pauses: str) -> float:
        config = replace(hum.config, pauses=pauses)
        timings = Engine(replace(hum.parts, config=config)).synthesize(text, voice="hum").timings
        last, following = (t for t in timings if t.text in ("here", "The") and t.start)
        return following.start_s - last.end_s - tiny_voice.TOKEN_FRAMES * 0.025

    assert gap_s("model") == gap_s("lengthened") == pytest.approx(0.23, abs=0.012)
    assert gap_s("ruled") == pytest.approx(0.15, abs=0.012)


def test_a_silence_that_is_asked_for_is_as_long_however_pauses_are_ruled(hum: Engine) -> None:
    document = '<speak>The first is here.<break time="700ms"/> The second is there.</speak>'
    ruled = Engine(replace(hum.parts, config=replace(hum.config, pauses="ruled")))
    found = [
        len(engine.synthesize(document, voice="hum", input_format="ssml").samples) for engine in (hum, ruled)
    ]
    assert found[0] == found[1]
