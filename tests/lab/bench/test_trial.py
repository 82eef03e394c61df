"""A listener notes the first sample of speech, whatever came before it."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.speech.chunker import PRIMER_S

FRAME_SAMPLES = SAMPLE_RATE_HZ // 20


class Clock:
    """Stands still between two readings, unless it is set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def silence(duration_s: float) -> Samples:
    return np.zeros(round(duration_s * SAMPLE_RATE_HZ), np.float32)


def tone(duration_s: float) -> Samples:
    return np.full(round(duration_s * SAMPLE_RATE_HZ), 0.1, np.float32)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_first_audio_is_speech_not_silence_and_not_bytes(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    clock.now_s += 0.01
    listener.gets_bytes()
    listener.hears(silence(PRIMER_S))
    clock.now_s += 0.20
    listener.gets_bytes()
    listener.hears(tone(0.05))
    clock.now_s += 0.04
    listener.hears(tone(0.05))
    trial = listener.trial("us", 0, 10, streamed=True)
    assert trial.ttfb_s == pytest.approx(0.01)
    assert trial.ttfa_s == pytest.approx(0.21)
    assert trial.wall_s == pytest.approx(0.25)
    assert trial.audio_s == pytest.approx(0.10)  # without the primer
    assert trial.rtf == pytest.approx(2.5)
    assert trial.underruns == 0


def test_silence_and_speech_in_one_block_are_told_apart(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    listener.hears(np.concatenate([silence(0.2), tone(0.3), silence(0.1)]))
    assert listener.trial("us", 0, 10, streamed=True).audio_s == pytest.approx(0.4)


def test_dither_is_not_speech(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    listener.hears(np.full(FRAME_SAMPLES, 2 / 32_768, np.float32))
    clock.now_s += 1
    listener.hears(tone(0.05))
    assert listener.trial("us", 0, 10, streamed=True).ttfa_s == pytest.approx(1)


def test_a_system_that_says_nothing_is_not_a_fast_one(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    listener.hears(silence(1))
    with pytest.raises(SynthesisError, match="kokoro-onnx int8 was silent for text 7"):
        listener.trial("kokoro-onnx int8", 7, 10, streamed=True)


def test_what_was_not_measured_is_not_a_number(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    listener.hears(tone(0.05))
    trial = listener.trial("us", 0, 10, streamed=False)
    assert isnan(trial.ttfb_s)
    assert isnan(trial.rss_peak_mb)


def test_all_that_was_heard_is_kept_if_it_is_to_be(clock: Clock) -> None:
    listener = Listener(keep=True, clock=clock)
    listener.asks()
    for block in (silence(0.05), tone(0.05)):
        listener.hears(block)
    assert len(listener.samples) == 2 * FRAME_SAMPLES


def test_a_player_has_in_hand_what_it_has_not_played(clock: Clock) -> None:
    listener = Listener(clock=clock)
    listener.asks()
    assert listener.in_hand_s == 0
    clock.now_s += 5.0
    listener.hears(np.full(2 * SAMPLE_RATE_HZ, 0.5, np.float32))
    clock.now_s += 0.1  # held back at first
    assert listener.in_hand_s == pytest.approx(2)
    clock.now_s += 0.5
    assert listener.in_hand_s == pytest.approx(1.5)
