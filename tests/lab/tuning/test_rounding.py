"""Better integers for a layer: what each method promises, on inputs that lean on each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kokoro_lab.graphs.quantise import WEIGHT_LEVELS, QuantisedLayer, Range
from kokoro_lab.lab.tuning import rounding
from kokoro_lab.lab.tuning.block import (
    WIDTHS,
    Layer,
    attempts,
    by_method,
    checks_of,
    controls,
    with_best_ranges,
)
from kokoro_lab.lab.tuning.rounding import METHODS, Moments, MomentSum, refitted
from tests.graphs.test_fast_fir import whole

OUT, CHANNELS, TAPS, DILATION = 16, 12, 3, 2


def spoken(seed: int, length: int = 1400) -> np.ndarray:
    """Channels that follow a few sources and their own past, as those of speech do, some much louder."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(99).normal(size=(CHANNELS, 4))
    sources = np.apply_along_axis(np.convolve, 1, rng.normal(size=(4, length)), np.ones(6) / 2, "same")
    loudness = np.geomspace(0.2, 5, CHANNELS)[:, None]
    found: np.ndarray = loudness * (mixing @ sources + 0.1 * rng.normal(size=(CHANNELS, length)) + 0.5)
    return found.astype(np.float32)


def layer(seed: int = 1) -> Layer:
    weight = np.random.default_rng(seed).normal(size=(OUT, CHANNELS, TAPS)).astype(np.float32)
    seen = spoken(0)
    # Narrow enough to clip now and then
    ranges = Range(np.quantile(seen, 0.005, axis=1), np.quantile(seen, 0.995, axis=1))
    return Layer("conv", weight, DILATION, QuantisedLayer.of(weight, ranges))


def moments(of: Layer, *seeds: int) -> Moments:
    total = MomentSum(of.quantised, of.dilation)
    for seed in seeds:
        total.add(spoken(seed))
    return total.moments()


@pytest.fixture(scope="module")
def study() -> tuple[Layer, Moments, Moments]:
    subject = layer()
    return subject, moments(subject, 1, 2, 3, 4), moments(subject, 5, 6)


@pytest.mark.parametrize("method", METHODS)
def test_the_error_by_moments_is_the_error_of_the_layer(method: str) -> None:
    subject = layer()
    seen = moments(subject, 7)
    found = METHODS[method](subject.target, seen)
    integers = subject.on(found)
    x = spoken(7)
    exact = whole(x, subject.weight, DILATION)
    levels = whole(integers.rounded(x), integers.weights.astype(np.float64), DILATION)
    error = levels * integers.scale[:, None] + integers.shift[:, None] - exact  # type: ignore[index]
    expected = 10 * np.log10(exact.var(axis=1).sum() / (error**2).mean(axis=1).sum())
    assert seen.ratio_db(subject.target, found.weights, found.shift) == pytest.approx(expected, abs=0.01)


def test_on_new_inputs_each_method_does_better_than_the_one_before(
    study: tuple[Layer, Moments, Moments],
) -> None:
    subject, fitted, unseen = study
    ratios = []
    for method in ("nearest", "gain_and_bias", "refit", "feedback"):
        found = METHODS[method](subject.target, fitted)
        ratios.append(unseen.ratio_db(subject.target, found.weights, found.shift))
    assert all(after > before for before, after in pairwise(ratios)), ratios


@pytest.mark.parametrize("method", METHODS)
def test_nothing_beats_the_best_float_weights(method: str, study: tuple[Layer, Moments, Moments]) -> None:
    subject, fitted, _ = study
    best = refitted(subject.target, fitted)
    found = METHODS[method](subject.target, fitted).centred(subject.target, fitted)
    limit = fitted.error(
        subject.target, best, subject.target @ fitted.exact_mean - best @ fitted.rounded_mean
    )
    assert fitted.error(subject.target, found.weights, found.shift) >= limit * 0.999


@pytest.mark.parametrize("method", METHODS)
def test_levels_fit_into_a_byte(method: str, study: tuple[Layer, Moments, Moments]) -> None:
    subject, fitted, _ = study
    found = METHODS[method](subject.target, fitted)
    assert found.levels.dtype == np.int8
    assert np.abs(found.levels.astype(int)).max() <= WEIGHT_LEVELS
    assert np.isfinite(found.scale).all()
    assert (found.scale > 0).all()


def test_what_ships_is_what_the_package_makes() -> None:
    subject = layer()
    made = subject.on(rounding.nearest(subject.target))
    np.testing.assert_array_equal(made.weights, subject.quantised.weights)
    np.testing.assert_allclose(made.scale, subject.quantised.scale, rtol=1e-6)


def test_inputs_that_tell_nothing_of_each_other_leave_feedback_nothing_to_do() -> None:
    subject = layer()
    inputs = CHANNELS * TAPS
    found = rounding.fed_back(subject.target, np.eye(inputs))
    np.testing.assert_array_equal(found.levels, rounding.nearest(subject.target).levels)


def test_a_channel_that_was_never_there_takes_no_weight_that_it_likes() -> None:
    subject = layer()
    silent = spoken(1)
    silent[3] = 0
    total = MomentSum(subject.quantised, DILATION)
    total.add(silent)
    found = refitted(subject.target, total.moments())
    own = slice(3 * TAPS, 4 * TAPS)
    np.testing.assert_allclose(found[:, own], subject.target[:, own], rtol=1e-6)


def test_moments_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="no position"):
        MomentSum(layer().quantised, DILATION).moments()


def test_a_fit_on_other_channels_does_not_pass(study: tuple[Layer, Moments, Moments]) -> None:
    subject, fitted, unseen = study
    layers, seen, held = {"conv": subject}, {"conv": fitted}, {"conv": unseen}
    table, made = attempts(layers, seen, held)
    assert all(check.passed for check in checks_of(table)), by_method(table)
    assert all(control.caught for control in controls(layers, seen, held))
    assert set(made) == set(METHODS)


def test_a_range_is_chosen_for_each_channel_by_what_enters_it() -> None:
    """The least and the largest values of a channel lie in its range, unless clipping a few is better."""
    subject, seen = layer(), [spoken(1), spoken(2)]
    joined = np.concatenate(seen, axis=1)
    known = Range(joined.min(1), joined.max(1))
    wide = Range(known.low * 2, known.high * 2)
    wide.low[0], wide.high[0] = known.low[0], known.high[0]
    found = with_best_ranges(subject, wide, seen).quantised
    before = QuantisedLayer.of(subject.weight, wide)
    ratio = found.step / before.step
    np.testing.assert_allclose(ratio[1:], WIDTHS[0], rtol=1e-5)
    assert ratio[0] > WIDTHS[0]
    for new, old in zip(*(_squares(each, joined) for each in (found, before)), strict=True):
        assert new <= old


def _squares(of: QuantisedLayer, values: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.square(of.rounded(values) * of.step[:, None] - values).sum(1)
    return found


def test_what_would_be_shipped_is_counted(study: tuple[Layer, Moments, Moments]) -> None:
    subject, fitted, unseen = study
    table, _ = attempts({"conv": subject}, {"conv": fitted}, {"conv": unseen})
    shipped = by_method(table).shipped_bytes
    assert shipped["nearest"] == 0
    assert shipped["gain_and_bias"] == 8 * OUT
    assert 8 * OUT < shipped["feedback"] < 8 * OUT + OUT * CHANNELS * TAPS


def test_a_shift_reaches_the_graph() -> None:
    subject = layer()
    shifted = replace(subject.quantised, shift=np.arange(OUT, dtype=np.float32))
    from kokoro_lab.graphs.quant_passes import quantise_layers
    from tests.graphs.test_quantise import a_range, conv, run

    x = spoken(8, 50)[None]
    model = conv(subject.weight, np.zeros(OUT, np.float32), DILATION)
    plain, moved = (
        run(quantise_layers(model, {"conv": a_range(CHANNELS)}, native=False, adjusted={"conv": q}), x)
        for q in (subject.quantised, shifted)
    )
    np.testing.assert_allclose(moved - plain, np.tile(np.arange(OUT), (50, 1)).T[None], atol=1e-4)
