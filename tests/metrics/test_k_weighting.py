"""K-weighting by products of matrices is the filter that goes from sample to sample."""

from __future__ import annotations

import numpy as np
import pyloudnorm
import pytest

from kokoro_lab.metrics.k_weighting import STRETCH_SAMPLES, KWeighting


@pytest.mark.parametrize("rate", [8_000, 24_000, 48_000, 192_000])
@pytest.mark.parametrize("block", [1, 97, STRETCH_SAMPLES, 5_000])
def test_it_is_pyloudnorms_filter_in_blocks_of_any_size(rate: int, block: int) -> None:
    samples = np.random.default_rng(0).standard_normal(4_321)
    expected = samples
    for section in pyloudnorm.Meter(rate, filter_class="DeMan")._filters.values():
        expected = section.apply_filter(expected)
    weighting = KWeighting(rate)
    blocks = [weighting.push(samples[start : start + block]) for start in range(0, len(samples), block)]
    np.testing.assert_allclose(np.concatenate(blocks), expected, atol=1e-11)


def test_nothing_comes_of_nothing() -> None:
    assert len(KWeighting(24_000).push(np.zeros(0))) == 0
