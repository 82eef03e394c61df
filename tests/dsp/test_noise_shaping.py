"""Shaped noise: less of it where the ear hears, more in all, and never more clipping."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp import Dither, ShapedDither, ditherer
from kokoro_lab.dsp.dither import audibility, feedback_taps, threshold_in_quiet_db
from kokoro_lab.errors import ParameterError
from tests.dsp.signals import noise, speech_like, tone

RATES = {22_050: 2.3, 24_000: 3.1, 44_100: 11.7, 48_000: 12.5}
"""By how many dB less noise is heard, at each rate that is offered."""


def levels_db(dither: Dither, rate_hz: int) -> tuple[float, float]:
    """Power of the error of 8 s of quiet noise, in steps², as it is heard and in all."""
    samples = noise(0.01, 8 * rate_hz / 24_000)
    error = dither.run(samples) - samples.astype(np.float64) * 32767
    frequency_hz, weight = audibility(rate_hz)
    spectrum = np.abs(np.fft.rfft(error)) ** 2
    bins_hz = np.fft.rfftfreq(len(error), 1 / rate_hz)
    weights = np.interp(bins_hz, frequency_hz, weight) / weight.mean()
    return 10 * np.log10(np.mean(weights * spectrum)), 10 * np.log10(np.mean(spectrum))


def fall_and_rise_db(rate_hz: int) -> tuple[float, float]:
    white, shaped = levels_db(Dither(1), rate_hz), levels_db(ShapedDither(1, rate_hz), rate_hz)
    return white[0] - shaped[0], shaped[1] - white[1]


@pytest.mark.parametrize(("rate_hz", "fall_db"), RATES.items())
def test_less_noise_is_heard_and_there_is_more_in_all_as_theory_says(rate_hz: int, fall_db: float) -> None:
    heard_db, in_all_db = fall_and_rise_db(rate_hz)
    assert heard_db == pytest.approx(fall_db, abs=0.15)
    # the power of 1 - C, by Parseval, since the error that is fed back is white
    assert in_all_db == pytest.approx(10 * np.log10(1 + np.sum(np.square(feedback_taps(rate_hz)))), abs=0.1)


def test_no_filter_gains_anything_for_an_ear_that_hears_all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: judged by white weights, shaped noise is worse, so the judge can say no."""
    heard_db, in_all_db = fall_and_rise_db(24_000)
    monkeypatch.setattr(
        "tests.dsp.test_noise_shaping.audibility", lambda rate_hz: (np.arange(2.0), np.ones(2))
    )
    white_db, _ = fall_and_rise_db(24_000)
    assert white_db == pytest.approx(-in_all_db)
    assert white_db < 0 < heard_db


@pytest.mark.parametrize("rate_hz", RATES)
def test_the_mean_of_the_shape_is_0_db(rate_hz: int) -> None:
    """Gerzon and Craven: of a filter whose inverse is stable, exactly that, so that none of it is wasted."""
    taps = feedback_taps(rate_hz)
    shape = np.abs(np.fft.fft([1.0, *(-tap for tap in taps)], 1 << 14))
    assert np.mean(20 * np.log10(shape)) == pytest.approx(0, abs=0.01)
    assert np.abs(np.roots([1.0, *(-tap for tap in taps)])).max() < 1


def test_the_threshold_is_lowest_where_the_ear_canal_resonates() -> None:
    frequency_hz = np.arange(100.0, 12_000.0, 10.0)
    threshold_db = threshold_in_quiet_db(frequency_hz)
    assert frequency_hz[np.argmin(threshold_db)] == pytest.approx(3300, abs=100)
    assert threshold_in_quiet_db(np.array([1000.0])) == pytest.approx(3.4, abs=0.1)


@pytest.mark.parametrize("samples", [noise(0.1, 1.0), speech_like(1.0), np.zeros(24_000, np.float32)])
def test_how_it_is_cut_changes_nothing_and_neither_does_the_time(samples: np.ndarray) -> None:
    whole = ShapedDither(5, 24_000).run(samples)
    shaped = ShapedDither(5, 24_000)
    blocks = [shaped.push(samples[at : at + 731]) for at in range(0, len(samples), 731)]
    assert np.array_equal(np.concatenate([*blocks, shaped.flush()]), whole)
    assert not np.array_equal(ShapedDither(6, 24_000).run(samples), whole)


def test_a_tone_below_half_a_step_is_still_there() -> None:
    quiet = tone(1000, 0.4 / 32767, 2.0)
    heard = np.dot(ShapedDither(1, 24_000).run(quiet).astype(np.float64), quiet) / np.dot(quiet, quiet)
    assert heard / 32767 == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("rate_hz", RATES)
def test_speech_below_the_peak_limit_is_never_clipped(rate_hz: int) -> None:
    loud = tone(997, 10 ** (-1 / 20), 2.0)
    shaped = ShapedDither(1, rate_hz)
    error = shaped.run(loud) - loud.astype(np.float64) * 32767
    assert shaped.clipped_samples == 0
    assert np.abs(error).max() < 1.5 * (1 + np.abs(feedback_taps(rate_hz)).sum())


def test_what_is_too_loud_saturates_is_counted_and_does_not_ring() -> None:
    shaped = ShapedDither(1, 48_000)
    shaped.push(np.full(1000, 40.0, np.float32))
    assert shaped.clipped_samples == 1000
    after = shaped.push(np.zeros(1000, np.float32))
    assert np.abs(after).max() < 30


def test_white_noise_is_what_it_was_to_the_last_bit() -> None:
    samples = speech_like(0.5)
    draws = np.random.Generator(np.random.PCG64(3)).random((len(samples), 2))
    expected = np.rint(samples.astype(np.float64) * 32767 + draws[:, 0] - draws[:, 1]).astype(np.int16)
    assert np.array_equal(ditherer("tpdf", 24_000, 3).run(samples), expected)
    with pytest.raises(ValueError, match="depends on all samples before"):
        ditherer("shaped", 24_000, 3, skipped_samples=1)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    with pytest.raises(ParameterError, match="seed"):
        Dither(seed)  # type: ignore[arg-type]
