"""The silence between two segments, and before the first and behind the last."""

from __future__ import annotations

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
