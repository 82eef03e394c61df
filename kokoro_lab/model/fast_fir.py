"""Fast convolution: the algebra by which a long filter costs fewer multiplications.

A signal split into its even and odd samples is convolved with three filters of half the length
instead of four (the two-parallel fast FIR algorithm, Mou & Duhamel 1991; in its transposed form,
Winograd's F(2, 2)). With e and o the even and odd samples, H0 and H1 the even and odd taps, and z an
advance by one sample:

    y_e  = H0 (e - o) + (H0 + H1) o
    y_o  = (H0 + H1) o + H1 (z e - o)

Twice over, nine filters of a quarter of the length take the place of sixteen. A filter of three taps
is better served by Winograd's F(2, 3) and F(4, 3), which take four multiplications for two outputs and
six for four, instead of six and twelve. With a dilation of d, which must be odd, samples pair up at a
distance of d, and the same holds. Nothing is approximated: sums are only taken in another order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Taps = dict[int, npt.NDArray[Any]]
"""A filter: offset → (channels out, channels in). `y[n] = Σ taps[o] x[n + o]`."""
Whole = tuple[tuple[int, ...], ...]
Fractions = tuple[tuple[float, ...], ...]


class Term(NamedTuple):
    """`factor · x_phase[n + advance]`, where `x_phase[n] = x[phases · n + phase]`."""

    phase: int
    advance: int
    factor: int


@dataclass(frozen=True, slots=True)
class Product:
    """One short filter, and the sum of phases that it is applied to."""

    terms: tuple[Term, ...]
    taps: Taps


@dataclass(frozen=True, slots=True)
class Output:
    """`y_phase[n] = Σ factor · product[n + shift]` over `products`, each an index and a factor."""

    shift: int
    products: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FastFir:
    """A convolution as products of short filters.

    Parameters
    ----------
    phases : int
        1, 2 or 4.
    dilation : int
        Distance between two taps, of the filter as of each product.
    """

    phases: int
    dilation: int
    products: tuple[Product, ...]
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, weight: npt.NDArray[np.float32], dilation: int, phases: int) -> FastFir:
        """Take apart a convolution with zero padding that keeps the length.

        Parameters
        ----------
        weight : numpy.ndarray
            float32 (channels out, channels in, taps), an odd number of taps.
        dilation : int
            Odd.
        phases : int
            1 leaves the convolution as it is, 2 takes three products (four for three taps), 4 takes nine
            (six for three taps).
        """
        count = weight.shape[2]
        if not count % 2 or not dilation % 2 or phases not in (1, 2, 4):
            raise ValueError(
                f"{count} taps, dilation {dilation}, {phases} phases: must be odd, odd, 1 2 or 4"
            )
        taps = {(k - count // 2) * dilation: weight[:, :, k] for k in range(count)}
        products: list[Product] = []
        inputs: list[tuple[Term, ...]] = [(Term(p, 0, 1),) for p in range(phases)]
        if phases > 1 and count == 3:
            outputs = _winograd(taps, dilation, phases, products)
        else:
            outputs = _split(inputs, taps, dilation, products)
        return cls(phases, dilation, tuple(products), tuple(outputs))

    @property
    def multiplications(self) -> float:
        """Taps that are multiplied for each output sample."""
        return sum(len(p.taps) for p in self.products) / self.phases


def _split(
    signals: list[tuple[Term, ...]], taps: Taps, dilation: int, products: list[Product]
) -> list[Output]:
    """Append the products of a filter on polyphase `signals`, and say how its outputs are their sums."""
    if len(signals) == 1:
        products.append(Product(signals[0], taps))
        return [Output(0, ((len(products) - 1, 1),))]
    half = len(signals) // 2
    reach = (dilation - 1) // 2
    even, odd = signals[0::2], signals[1::2]
    near = [_advance(odd, p + reach, half) for p in range(half)]
    next_even = [_advance(even, p + dilation, half) for p in range(half)]
    h0 = {o // 2: w for o, w in taps.items() if o % 2 == 0}
    h1 = {(o - dilation) // 2: w for o, w in taps.items() if o % 2}
    both = h0 | h1 | {o: h0[o] + h1[o] for o in h0.keys() & h1.keys()}
    first = _split([_minus(a, b) for a, b in zip(even, near, strict=True)], h0, dilation, products)
    shared = _split(near, both, dilation, products)
    last = _split([_minus(a, b) for a, b in zip(next_even, near, strict=True)], h1, dilation, products)
    outputs = [Output(0, ())] * len(signals)
    for p in range(half):
        outputs[2 * p] = _plus(first[p], shared[p])
        late = _plus(shared[p], last[p])
        at = p + reach
        outputs[2 * (at % half) + 1] = Output(late.shift - at // half, late.products)
    return outputs


_WINOGRAD: dict[int, tuple[Whole, Fractions, Whole]] = {
    2: (
        ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1)),
        ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
        ((1, 1, 1, 0), (0, 1, -1, 1)),
    ),
    4: (
        (
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        (
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
    ),
}
"""Outputs at a time → what samples, taps and products are multiplied with: Bᵀ, G and Aᵀ of Lavin & Gray
(2016), section 4."""


def _winograd(taps: Taps, dilation: int, phases: int, products: list[Product]) -> list[Output]:
    """Three taps on two or four phases, by F(2, 3) or F(4, 3)."""
    samples, filters, sums = _WINOGRAD[phases]
    g = [taps[offset] for offset in (-dilation, 0, dilation)]
    # Terms look ahead alone: they are counted from so far behind the first sample that is read
    back = -(-dilation // phases)
    for row, factors in zip(samples, filters, strict=True):
        places = (divmod((j - 1) * dilation + back * phases, phases) for j in range(len(row)))
        terms = (Term(phase, advance, factor) for (advance, phase), factor in zip(places, row, strict=True))
        # In double precision: each product's taps are rounded once
        tap = np.tensordot(np.array(factors), np.stack(g).astype(np.float64), 1).astype(np.float32)
        products.append(Product(tuple(term for term in terms if term.factor), {-back: tap}))
    outputs = [Output(0, ())] * phases
    for j, row in enumerate(sums):
        advance, phase = divmod(j * dilation, phases)
        outputs[phase] = Output(-advance, tuple((k, factor) for k, factor in enumerate(row) if factor))
    return outputs


def _advance(signals: list[tuple[Term, ...]], by: int, phases: int) -> tuple[Term, ...]:
    """Phase `by` of a polyphase signal, counted on beyond its last phase."""
    return tuple(t._replace(advance=t.advance + by // phases) for t in signals[by % phases])


def _minus(a: tuple[Term, ...], b: tuple[Term, ...]) -> tuple[Term, ...]:
    return a + tuple(t._replace(factor=-t.factor) for t in b)


def _plus(a: Output, b: Output) -> Output:
    assert a.shift == b.shift, "both halves are split alike"
    return Output(a.shift, a.products + b.products)


TILE = 8
"""Output channels that the native operator works on at once."""


def packed(fir: FastFir) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Plan and weights as `native/fast_conv.cpp` reads them.

    Returns
    -------
    tuple of numpy.ndarray
        The plan, int64 (n,): phases, dilation, channels out, channels in, number of products; of each
        product its first offset, number of taps and number of terms, then phase, advance and factor of
        each term; of each phase its shift and number of products, then index and factor of each. The
        weights, float32 (m,): of each product (channels out / 8, channels in, taps, 8).
    """
    channels_out, channels_in = next(iter(fir.products[0].taps.values())).shape
    if channels_out % TILE:
        raise ValueError(f"{channels_out} output channels: must be a multiple of {TILE}")
    plan = [fir.phases, fir.dilation, channels_out, channels_in, len(fir.products)]
    weights = []
    for product in fir.products:
        first, last = (min(product.taps), max(product.taps)) if product.taps else (0, -fir.dilation)
        count = (last - first) // fir.dilation + 1
        plan += [first, count, len(product.terms), *(n for term in product.terms for n in term)]
        weight = np.zeros((channels_out, channels_in, count), np.float32)
        for offset, values in product.taps.items():
            weight[:, :, (offset - first) // fir.dilation] = values
        tiles = weight.reshape(channels_out // TILE, TILE, channels_in, count).transpose(0, 2, 3, 1)
        weights.append(tiles.ravel())
    for output in fir.outputs:
        plan += [output.shift, len(output.products), *(n for product in output.products for n in product)]
    return np.array(plan, np.int64), np.concatenate(weights)
