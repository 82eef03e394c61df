"""A convolution taken apart is the same convolution, with fewer multiplications."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.graphs.fast_fir import FastFir, packed


def whole(x: np.ndarray, weight: np.ndarray, dilation: int) -> np.ndarray:
    """The convolution by its definition, zero padded to keep the length."""
    taps = weight.shape[2]
    reach = taps // 2 * dilation
    padded = np.pad(x, ((0, 0), (reach, reach)))
    shifted = [padded[:, k * dilation : k * dilation + x.shape[1]] for k in range(taps)]
    found: np.ndarray = np.einsum("oik,kin->on", weight, np.stack(shifted))
    return found


def by_products(x: np.ndarray, fir: FastFir) -> np.ndarray:
    """What the products add up to."""
    length, far = x.shape[1], 100
    n = np.arange(-far, length + far)

    def sample(index: np.ndarray) -> np.ndarray:
        inside = (index >= 0) & (index < length)
        return np.where(inside, x[:, np.clip(index, 0, length - 1)], 0)

    made = []
    for product in fir.products:
        signal = sum(t.factor * sample(fir.phases * (n + t.advance) + t.phase) for t in product.terms)
        rows = next(iter(fir.products[0].taps.values())).shape[0]
        made.append(
            sum((w @ np.roll(signal, -o, 1) for o, w in product.taps.items()), np.zeros((rows, len(n))))
        )
    y = np.zeros((made[0].shape[0], length))
    for phase, output in enumerate(fir.outputs):
        at = np.arange(phase, length, fir.phases)
        y[:, at] = sum(
            factor * made[k][:, at // fir.phases + output.shift + far] for k, factor in output.products
        )
    return y


@given(
    length=st.integers(1, 70),
    taps=st.sampled_from([1, 3, 5, 7, 11]),
    dilation=st.sampled_from([1, 3, 5]),
    phases=st.sampled_from([1, 2, 4]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None, max_examples=80)
def test_the_products_add_up_to_the_convolution(
    length: int, taps: int, dilation: int, phases: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, length))
    weight = rng.normal(size=(8, 2, taps)).astype(np.float32)
    fir = FastFir.of(weight, dilation, phases)
    np.testing.assert_allclose(by_products(x, fir), whole(x, weight, dilation), atol=1e-4)


def test_a_product_that_is_left_out_is_noticed() -> None:
    rng = np.random.default_rng(1)
    x, weight = rng.normal(size=(2, 40)), rng.normal(size=(8, 2, 7)).astype(np.float32)
    fir = FastFir.of(weight, 1, 2)
    fir.products[2].taps.clear()
    assert not np.allclose(by_products(x, fir), whole(x, weight, 1), atol=0.1)


def multiplied(fir: FastFir) -> float:
    """Taps that are multiplied for each output sample."""
    return sum(len(product.taps) for product in fir.products) / fir.phases


@pytest.mark.parametrize(("phases", "share"), [(1, 1.0), (2, 17 / 22), (4, 20 / 44)])
def test_more_phases_multiply_less(phases: int, share: float) -> None:
    fir = FastFir.of(np.ones((8, 1, 11), np.float32), 3, phases)
    assert multiplied(fir) == pytest.approx(11 * share)


@pytest.mark.parametrize(("phases", "multiplications"), [(2, 4 / 2), (4, 6 / 4)])
def test_three_taps_multiply_once_for_each_sample_and_tap_that_they_see(
    phases: int, multiplications: float
) -> None:
    fir = FastFir.of(np.ones((8, 1, 3), np.float32), 1, phases)
    assert multiplied(fir) == multiplications


@pytest.mark.parametrize(("taps", "dilation", "phases"), [(4, 1, 2), (3, 2, 2), (3, 1, 3)])
def test_what_cannot_be_taken_apart_is_refused(taps: int, dilation: int, phases: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        FastFir.of(np.ones((8, 1, taps), np.float32), dilation, phases)


def test_channels_that_do_not_fill_a_tile_are_refused() -> None:
    with pytest.raises(ValueError, match="multiple of 8"):
        packed(FastFir.of(np.ones((12, 1, 3), np.float32), 1, 2))
