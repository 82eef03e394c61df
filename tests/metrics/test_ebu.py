"""The standard's signals: our meter reads them right, and a broken meter is found out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pyloudnorm
import pytest

from kokoro_lab.metrics import loudness
from kokoro_lab.metrics.ebu import CheckResult, Meter, ebu_self_check

RATE_HZ = 24_000
SOUND = Meter()
BLIND = Meter(
    integrated_lufs=lambda x, rate: float("nan"),
    momentary_lufs=lambda x, rate, hop_s: np.zeros(0),
    short_term_lufs=lambda x, rate, hop_s: np.zeros(0),
    loudness_range_lu=lambda x, rate: float("nan"),
    true_peak_dbtp=lambda x, rate: float("nan"),
)
CASES = {str(i) for i in range(1, 24)} - {"7", "8"} | {f"3342-{i}" for i in range(1, 5)}


@cache
def sound_results(rate: int) -> list[CheckResult]:
    return list(ebu_self_check(rate))


def failed(meter: Meter) -> set[str]:
    return {result.case for result in ebu_self_check(RATE_HZ, meter) if not result.passed}


def found_out(measure: str, by: Callable) -> set[str]:
    """The cases that fail when one measure is broken; the others are not made, since they take seconds."""
    broken = replace(BLIND, **{measure: by})
    results = ebu_self_check(RATE_HZ, broken)
    concerned = [result for result in results if result.quantity.endswith(measure)]
    return {result.case for result in concerned if not result.passed}


@pytest.mark.parametrize("rate", [RATE_HZ, 48_000])
def test_our_meter_passes_every_case(rate: int) -> None:
    results = sound_results(rate)
    assert {result.case for result in results} == CASES
    assert [result for result in results if not result.passed] == []


def test_tolerances_are_the_standards() -> None:
    for result in sound_results(RATE_HZ):
        tolerance = {"true_peak_dbtp": (0.4, 0.2), "loudness_range_lu": (1.0, 1.0)}
        assert (result.below, result.above) == tolerance.get(result.quantity, (0.1, 0.1))


def test_a_meter_that_reads_nothing_fails_every_case() -> None:
    assert failed(BLIND) == CASES


@pytest.mark.parametrize(
    ("measure", "error", "cases"),
    [
        ("integrated_lufs", 0.2, {"1", "2", "3", "4", "5", "6"}),
        ("momentary_lufs", -0.2, {"1", "2", "12", "13", "14"}),
        ("short_term_lufs", 0.2, {"1", "2", "9", "10", "11"}),
        ("loudness_range_lu", -1.2, {"3342-1", "3342-2", "3342-3", "3342-4"}),
        ("true_peak_dbtp", 0.3, {str(i) for i in range(15, 24)}),
        ("true_peak_dbtp", -0.5, {str(i) for i in range(15, 24)}),
    ],
)
def test_a_meter_that_is_a_little_off_fails(measure: str, error: float, cases: set[str]) -> None:
    sound = getattr(SOUND, measure)
    assert found_out(measure, lambda *arguments: sound(*arguments) + error) == cases


def test_sample_peak_for_true_peak_fails() -> None:
    missed = found_out("true_peak_dbtp", loudness.sample_peak_dbfs)
    assert {"16", "18", "19"} <= missed < {str(i) for i in range(15, 24)}


def test_one_failure_is_found_without_the_cases_behind_it() -> None:
    def never(*arguments: object) -> float:
        raise AssertionError("nobody asked for this case")

    meter = Meter(never, never, never, never, true_peak_dbtp=loudness.sample_peak_dbfs)
    assert any(not result.passed for result in ebu_self_check(RATE_HZ, meter))


def test_pyloudnorms_default_filters_read_low() -> None:
    """Not low enough to fail, but it uses up most of the tolerance: hence the other set."""

    def default(x: np.ndarray, rate: int) -> float:
        return pyloudnorm.Meter(rate).integrated_loudness(x)

    low = {r.case: r.measured for r in ebu_self_check(RATE_HZ, replace(BLIND, integrated_lufs=default))}
    sound = {r.case: r.measured for r in sound_results(RATE_HZ)}
    assert all(low[case] < sound[case] - 0.03 for case in ("3", "4", "5"))


def test_a_meter_without_gating_fails() -> None:
    def ungated(x: np.ndarray, rate: int) -> float:
        momentary = loudness.momentary_lufs(x, rate)
        return float(10 * np.log10(np.mean(10 ** (momentary / 10))))

    assert {"3", "4"} <= found_out("integrated_lufs", lambda x, rate: ungated(x[:, :2], rate))


def test_a_meter_that_forgets_the_surround_weights_fails() -> None:
    def plain_sum(x: np.ndarray, rate: int) -> float:
        channels = [loudness.integrated_lufs(x[:, i], rate) for i in range(x.shape[1])]
        return float(10 * np.log10(np.sum(10 ** (np.array(channels) / 10))))

    assert found_out("integrated_lufs", plain_sum) == {"6"}


def test_momentary_for_short_term_loudness_fails() -> None:
    assert "9" in found_out("short_term_lufs", loudness.momentary_lufs)


def test_a_momentary_window_of_half_the_length_fails() -> None:
    def short(x: np.ndarray, rate: int, hop_s: float) -> np.ndarray:
        meter = pyloudnorm.Meter(rate, "DeMan", block_size=0.2, overlap=1 - hop_s / 0.2)
        with np.errstate(divide="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            meter.integrated_loudness(x)
        return np.array(meter.blockwise_loudness)

    assert "12" in found_out("momentary_lufs", short)


def test_loudness_range_by_extremes_instead_of_percentiles_fails() -> None:
    def extremes(x: np.ndarray, rate: int) -> float:
        return float(np.ptp(np.sort(loudness.short_term_lufs(x, rate))))

    assert "3342-4" not in found_out("loudness_range_lu", loudness.loudness_range_lu)
    assert "3342-4" in found_out("loudness_range_lu", extremes)
