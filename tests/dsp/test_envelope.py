"""Each span of a signal at its own level, with no click between them, however it is cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.dsp import Envelope
from kokoro_lab.errors import ParameterError

RATE_HZ = 24_000
ONES = np.ones(3_000, np.float32)


def test_each_span_has_its_gain() -> None:
    out = Envelope([0.0, 6.0, -20.0], [1_000, 1_000, 1_000], RATE_HZ).run(ONES)
    assert out[[0, 700, 1_500, 2_700]] == pytest.approx([1.0, 1.0, 10 ** (6 / 20), 0.1])


def test_levels_pass_into_one_another_over_the_border() -> None:
    out = Envelope([0.0, 6.0], [1_000, 2_000], RATE_HZ).run(ONES)
    assert out[1_000] == pytest.approx((1 + 10 ** (6 / 20)) / 2, abs=1e-3)
    assert np.abs(np.diff(out)).max() < 0.003
    assert (np.diff(out) >= 0).all()


def test_one_level_is_a_gain() -> None:
    np.testing.assert_array_equal(Envelope([0.0, 0.0], [10, 10], RATE_HZ).run(ONES), ONES)
    assert Envelope([-20.0], [10], RATE_HZ).run(ONES) == pytest.approx(0.1)


def test_blocks_of_any_size_give_the_same_samples() -> None:
    whole = Envelope([0.0, 4.0, -4.0], [700, 800, 900], RATE_HZ).run(ONES)
    envelope = Envelope([0.0, 4.0, -4.0], [700, 800, 900], RATE_HZ)
    blocks = [envelope.push(ONES[i : i + 7]) for i in range(0, len(ONES), 7)]
    np.testing.assert_array_equal(np.concatenate([*blocks, envelope.flush()]), whole)


def test_a_gain_must_be_finite() -> None:
    with pytest.raises(ParameterError, match="finite"):
        Envelope([0.0, float("nan")], [10, 10], RATE_HZ)
