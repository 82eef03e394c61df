"""A fit finds laws that are straight and laws that bend, and keeps them when it is written down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kokoro_lab.lab.tuning.predictor_fit import fit
from kokoro_lab.model.predictor import StatisticsPredictor

Values = npt.NDArray[np.float32]
TARGETS = 90


def rows(count: int, law: Values, bent: float, seed: int = 3) -> tuple[Values, Values, Values]:
    """Features, targets of very different sizes that follow `law` of them, and the sizes."""
    rng = np.random.default_rng(seed)
    sizes = 10 ** np.random.default_rng(5).uniform(-3, 3, TARGETS)
    inputs = rng.normal(size=(count, len(law)))
    made = inputs @ law
    made = made + bent * made[:, ::-1] ** 2 + rng.normal(size=made.shape) * 0.01
    spread = np.random.default_rng(6).uniform(0.1, 10, len(law))
    return (
        (inputs * spread + 5).astype(np.float32),
        (made * sizes).astype(np.float32),
        sizes.astype(np.float32),
    )


@pytest.fixture
def law() -> Values:
    rng = np.random.default_rng(4)
    found: Values = (rng.normal(size=(12, 3)) @ rng.normal(size=(3, TARGETS)) / 12).astype(np.float32)
    return found


def error(predictor: StatisticsPredictor, inputs: Values, targets: Values) -> Values:
    """Of every target, also of the smallest, as a part of how much it varies."""
    found: Values = np.abs(predictor.targets(inputs) - targets).mean(0) / targets.std(0)
    return found


def test_a_law_of_low_rank_is_found_whatever_the_sizes_of_the_targets(tmp_path: Path, law: Values) -> None:
    inputs, targets, unit = rows(300, law, 0)
    predictor = fit(inputs[:250], targets[:250], ["a", "b"], rank=3, ridge=(0.01, 0.01), unit=unit)
    predictor.save(tmp_path / "p.npz")
    loaded = StatisticsPredictor.load(tmp_path / "p.npz")
    assert loaded.voices == {"a", "b"}
    assert loaded.bend is None
    for found in (predictor, loaded):
        relative = error(found, inputs[250:], targets[250:])
        assert np.median(relative) < 0.02
        assert relative.max() < 0.2


def test_what_bends_needs_a_bend_and_keeps_it(tmp_path: Path, law: Values) -> None:
    inputs, targets, unit = rows(900, law, 0.3)
    common = {"rank": 12, "ridge": (0.01, 0.01), "unit": unit}
    straight, bent = (
        fit(inputs[:800], targets[:800], ["a"], **common, bend=bend) for bend in (None, (1.0, 0.001))
    )
    bent.save(tmp_path / "p.npz")
    loaded = StatisticsPredictor.load(tmp_path / "p.npz")
    unseen = inputs[800:], targets[800:]
    assert np.median(error(bent, *unseen)) < 0.3 * np.median(error(straight, *unseen))
    assert np.median(error(loaded, *unseen)) < 1.05 * np.median(error(bent, *unseen))
    # One by one it says what it says of all
    np.testing.assert_allclose(
        loaded.targets(unseen[0][0]) / unit, loaded.targets(unseen[0])[0] / unit, atol=1e-3
    )


def test_far_from_all_that_is_known_it_is_the_regression(law: Values) -> None:
    inputs, targets, unit = rows(400, law, 0.3)
    predictor = fit(inputs, targets, ["a"], rank=12, ridge=(0.01, 0.01), unit=unit, bend=(1.0, 0.001))
    assert predictor.bend is not None
    far = np.full(12, 1e3, np.float32)
    assert not predictor.bend.at(far).any()
    assert predictor.bend.at(np.zeros(12, np.float32)).any()


def test_a_part_of_the_rows_tells_nearly_as_much_as_all(law: Values) -> None:
    inputs, targets, unit = rows(900, law, 0.3)
    common = {"rank": 12, "ridge": (0.01, 0.01), "unit": unit, "bend": (1.0, 0.001)}
    some, everyone = (fit(inputs[:800], targets[:800], ["a"], **common, known=count) for count in (200, 800))
    assert some.bend is not None
    assert len(some.bend.points) == 200
    unseen = inputs[800:], targets[800:]
    assert np.median(error(some, *unseen)) < 1.5 * np.median(error(everyone, *unseen))


def test_what_was_learnt_before_is_not_lost(law: Values) -> None:
    """Of rows that say little, a fit that goes on from another one says more than one that begins anew."""
    inputs, targets, unit = rows(300, law, 0)
    before = fit(inputs, targets, ["a"], rank=3, ridge=(0.01, 0.01), unit=unit)
    few = rows(8, law, 0, seed=9)
    unseen = rows(100, law, 0, seed=10)[:2]
    anew, on = (
        fit(few[0], few[1], ["a"], rank=3, ridge=(1.0, 1.0), unit=unit, towards=towards)
        for towards in (None, before)
    )
    assert np.median(error(on, *unseen)) < 0.5 * np.median(error(anew, *unseen))
