"""Fast convolution: the algebra by which a long filter costs fewer multiplications.

A filter of r taps gives m outputs in a row with m + r - 1 multiplications instead of m · r. Toom and Cook
multiply polynomials of m and r coefficients in this way: both are evaluated at m + r - 1 points, the values
are multiplied, and the product is interpolated. Winograd's F(m, r) is their method for a filter: sums of
samples are multiplied by sums of taps, one product for each point. A longer filter is cut into blocks of r
taps. With r = m, all blocks read the same sums of samples, each m samples later, and their products are added
up before the interpolation. So eleven taps take 5 multiplications for each output (three blocks of F(4, 4)),
and three taps take 2 (F(2, 3)). With a dilation of d, which must be odd, the same holds for samples at a
distance of d. Nothing is approximated: only the order of sums changes. Rounding errors grow a little with
each point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kokoro_lab.text.tables import rows

Taps = dict[int, npt.NDArray[Any]]
"""A filter: offset → (channels out, channels in). `y[n] = Σ taps[o] x[n + o]`."""
Whole = Sequence[Sequence[int]]
Fractions = Sequence[Sequence[float]]


class Term(NamedTuple):
    """`factor · x_phase[n + advance]`, where `x_phase[n] = x[phases · n + phase]`."""

    phase: int
    advance: int
    factor: int


@dataclass(frozen=True, slots=True)
class Product:
    """A short filter, and the terms whose sum it is applied to."""

    terms: tuple[Term, ...]
    taps: Taps


@dataclass(frozen=True, slots=True)
class Output:
    """One phase of the output: `y_phase[n] = Σ factor · product[n + shift]`, where `products` has the index
    and the factor of each product in the sum."""

    shift: int
    products: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FastFir:
    """A convolution as products of short filters.

    Parameters
    ----------
    phases : int
        How many outputs are computed at a time: 1, 2 or 4. Samples are split into as many phases: phase 1 of
        4 has samples 1, 5, 9 and so on.
    dilation : int
        Distance between two taps, the same in the filter and in each product.
    """

    phases: int
    dilation: int
    products: tuple[Product, ...]
    outputs: tuple[Output, ...]

    @classmethod
    def of(cls, weight: npt.NDArray[np.float32], dilation: int, phases: int) -> FastFir:
        """Write a convolution as products of short filters. It must pad with zeros, so that its output is as
        long as its input.

        Parameters
        ----------
        weight : numpy.ndarray
            float32 (channels out, channels in, taps), an odd number of taps.
        dilation : int
            Distance between two taps, an odd number.
        phases : int
            Outputs that are computed at a time. With 1, the convolution stays as it is. With 2, a block of
            two taps needs three products, and a block of three taps needs four. With 4, a block of four taps
            needs seven products, and a block of three taps needs six.
        """
        count = weight.shape[2]
        if not count % 2 or not dilation % 2 or phases not in (1, 2, 4):
            raise ValueError(
                f"{count} taps, dilation {dilation}, {phases} phases: must be odd, odd, 1 2 or 4"
            )
        samples, filters, sums = _winograd(phases, 3 if count == 3 and phases > 1 else phases)
        size, first = len(filters[0]), -(count // 2)
        # An advance is never negative: it is counted from the first sample that is read, this far before the
        # output
        back = -(first * dilation // phases)
        products = []
        for row, factors in zip(samples, filters, strict=True):
            places = (divmod((first + j) * dilation + back * phases, phases) for j in range(len(row)))
            terms = (
                Term(phase, advance, factor) for (advance, phase), factor in zip(places, row, strict=True)
            )
            taps = {}
            for block in range(0, count, size):
                # In double precision: each product's taps are rounded once
                part = weight[:, :, block : block + size].astype(np.float64)
                tap = part @ np.array(factors[: part.shape[2]])
                if any(factors[: part.shape[2]]):
                    taps[block // size * dilation - back] = tap.astype(np.float32)
            products.append(Product(tuple(term for term in terms if term.factor), taps))
        outputs = [Output(0, ())] * phases
        for j, row in enumerate(sums):
            advance, phase = divmod(j * dilation, phases)
            outputs[phase] = Output(-advance, tuple((k, factor) for k, factor in enumerate(row) if factor))
        return cls(phases, dilation, tuple(products), tuple(outputs))


@cache
def _winograd(outputs: int, taps: int) -> tuple[Whole, Fractions, Whole]:
    """The three matrices of Winograd's F(`outputs`, `taps`): for the samples, for the taps, and for the
    products.

    Lavin & Gray (2016), section 4, call them Bᵀ, G and Aᵀ. They are read from `winograd.tsv`. The points are
    0, 1 and ∞ for F(2, 2); 0, ±1 and ∞ for F(2, 3); 0, ±1, ±2 and ∞ for F(4, 3); and for F(4, 4) also 1/2,
    which rounds least among simple numbers.
    """
    found: dict[str, list[list[Fraction]]] = {"samples": [], "filters": [], "sums": []}
    for row in rows(__package__, "winograd.tsv"):
        if (int(row["outputs"]), int(row["taps"])) == (outputs, taps):
            found[row["matrix"]].append([Fraction(value) for value in row["row"].split()])
    samples, sums = ([[int(value) for value in row] for row in found[name]] for name in ("samples", "sums"))
    return samples, [[float(value) for value in row] for row in found["filters"]], sums


TILE = 8
"""Output channels that the native operator works on at once."""


def packed(fir: FastFir) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """The plan and the weights of a fast convolution, in the order in which `native/fast_conv.cpp` reads
    them. That operator refuses a plan for which it has no code. `Term`, `Product`, `Output` and `FastFir`
    explain the words below.

    Returns
    -------
    tuple of numpy.ndarray
        The plan, int64 (n,): phases, dilation, channels out, channels in, number of products. Then, for each
        product: its first offset, number of taps and number of terms, and each term's phase, advance and
        factor. Then, for each phase: its shift and number of products, and each product's index and factor.
        The weights, float32 (m,): for each product, (channels out / 8, channels in, taps, 8).

    Raises
    ------
    ValueError
        The number of output channels is no multiple of `TILE`.
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
