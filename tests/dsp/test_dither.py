"""Dither: the error is triangular noise of half a step rms, and the same seed gives the same PCM."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp import Dither
from tests.dsp.signals import noise, speech_like, tone


@pytest.mark.parametrize("samples", [noise(0.1, 2.0), speech_like(2.0), np.zeros(48_000, np.float32)])
def test_the_error_is_half_a_step_whatever_the_signal(samples: np.ndarray) -> None:
    error = Dither(1).run(samples) - samples.astype(np.float64) * 32767
    assert np.sqrt(np.mean(error**2)) == pytest.approx(0.5, abs=0.005)
    assert np.mean(error) == pytest.approx(0.0, abs=0.01)
    assert np.abs(error).max() < 1.5


def test_a_tone_below_half_a_step_is_still_there() -> None:
    quiet = tone(1000, 0.4 / 32767, 2.0)
    assert not np.rint(quiet * 32767).any()  # what rounding alone leaves of it
    heard = np.dot(Dither(1).run(quiet).astype(np.float64), quiet) / np.dot(quiet, quiet)
    assert heard / 32767 == pytest.approx(1.0, abs=0.05)


def test_the_error_is_noise_and_not_distortion() -> None:
    loud = tone(1000, 20 / 32767, 4.0)
    error = Dither(1).run(loud) - loud.astype(np.float64) * 32767
    spectrum = np.abs(np.fft.rfft(error)) ** 2
    harmonics = spectrum[4000 * np.arange(1, 12)]
    assert harmonics.max() < 12 * spectrum.mean()  # rounding alone has lines at over 1000 times


def test_the_same_seed_gives_the_same_pcm_and_another_another() -> None:
    samples = speech_like(0.5)
    assert np.array_equal(Dither(5).run(samples), Dither(5).run(samples))
    assert not np.array_equal(Dither(5).run(samples), Dither(6).run(samples))


def test_what_is_too_loud_saturates_and_is_counted() -> None:
    dither = Dither()
    pcm = np.concatenate([dither.push(np.array([0.5, 1.1, -1.1, 40.0], np.float32)), dither.flush()])
    assert pcm.dtype == np.int16
    assert pcm[1:].tolist() == [32767, -32768, 32767]
    assert dither.clipped_samples == 3
    dither = Dither()
    dither.run(speech_like(1.0))
    assert dither.clipped_samples == 0
