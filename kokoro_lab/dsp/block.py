"""The base class of every streaming processor: blocks in, blocks out, and a flush.

The joined output depends on the samples alone, and never on how they were cut into blocks, to the last bit.
So a stream and a file of the same request are equal. The cuts do not matter because every processor works
sample by sample from a bounded history, and because sums are taken of numbers on a grid, so coarse that no
sum is ever rounded: then their order, which libraries change with the size and the place of a block, cannot
matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.typed import require_range

Samples = npt.NDArray[np.float32]
Values = npt.NDArray[np.float64]
Out = TypeVar("Out", np.float32, np.int16)

SILENT = np.zeros(0, dtype=np.float32)
"""No samples at all; shared, so never written to."""


CHECK_FILES = "`kokoro-lab doctor --deep` checks every file that it speaks with."


def require_finite(samples: npt.NDArray[np.floating], what: str, mend: str = CHECK_FILES) -> None:
    """Refuse samples that must not be played, measured or sent.

    Parameters
    ----------
    samples : numpy.ndarray
        Floating point, any shape; the first axis is time.
    what : str
        Whose samples these are, for the message: "segment 3", "the golden clip".
    mend : str
        What to do then, as the error's message says it.

    Raises
    ------
    SynthesisError
        A sample is NaN or infinite. The error says how many are, and where the first one is.
    """
    finite = np.isfinite(samples)
    if finite.all():
        return
    bad_frames = np.flatnonzero(~finite.reshape(len(samples), -1).all(axis=1))
    raise SynthesisError(
        f"{what}: {bad_frames.size} of {len(samples)} samples are not finite, the first at {bad_frames[0]}.",
        field="samples",
        value=int(bad_frames[0]),
        mend=mend,
    )


def require_rate(sample_rate_hz: int) -> None:
    """Refuse a sample rate at which no speech can be.

    Raises
    ------
    ParameterError
        Unless `sample_rate_hz` is within 8000 to 192000.
    """
    message = f"{sample_rate_hz} Hz is no sample rate for speech."
    require_range("sample_rate", sample_rate_hz, 8_000, 192_000, message)


_RUN_SAMPLES = 1 << 16


def in_runs(blocks: Iterable[Samples]) -> Iterator[Samples]:
    """The samples of `blocks`, in blocks that are no longer than a processor should take at once."""
    for block in blocks:
        for start in range(0, len(block), _RUN_SAMPLES):
            yield block[start : start + _RUN_SAMPLES]


class Processor(ABC, Generic[Out]):
    """Samples in, samples out, in blocks of any size.

    Subclasses write `_push`, and `_flush` if they hold anything back; this class keeps the promises that all
    of them share.
    """

    _spent = False

    def push(self, block: Samples) -> npt.NDArray[Out]:
        """Take the next samples and give back those that are ready, perhaps none.

        Parameters
        ----------
        block : numpy.ndarray
            float32, shape (n,), n may be 0. Not kept and not written to.

        Returns
        -------
        numpy.ndarray
            Shape (m,); m need not be n.

        Raises
        ------
        ParameterError
            If the block is not float32 or not one-dimensional.
        SynthesisError
            If a sample is not finite: one NaN would stay in a processor's history for good.
        RuntimeError
            After `flush`.
        """
        if self._spent:
            raise RuntimeError(f"{type(self).__name__} was flushed; make a new one for the next stream")
        if block.dtype != np.float32 or block.ndim != 1:
            raise ParameterError(
                f"A block of {block.dtype} with {block.ndim} dimensions cannot be processed.",
                field="samples",
                value=f"{block.dtype}, {block.ndim}-D",
                allowed="float32, 1-D (mono)",
            )
        require_finite(block, type(self).__name__)
        return self._push(block)

    def flush(self) -> npt.NDArray[Out]:
        """End the stream: give back all that was held. The processor is spent.

        Raises
        ------
        RuntimeError
            If flushed before.
        """
        if self._spent:
            raise RuntimeError(f"{type(self).__name__} was flushed already")
        self._spent = True
        return self._flush()

    def run(self, samples: Samples) -> npt.NDArray[Out]:
        """Push all samples and flush: what a stream of them would give, joined."""
        # in blocks, so that what a processor needs beside the samples themselves stays small
        ready: list[npt.NDArray[Out]] = [self.push(run) for run in in_runs([samples])]
        return np.concatenate([*ready, self.flush()])

    @abstractmethod
    def _push(self, block: Samples) -> npt.NDArray[Out]: ...

    def _flush(self) -> npt.NDArray[Out]:
        return self._push(SILENT)


class History:
    """The last `size` values of a stream, zeros at first, so that a windowed step can work in blocks."""

    def __init__(self, size: int) -> None:
        self._kept = np.zeros(size)

    def extend(self, block: Samples | Values) -> Values:
        """The kept values followed by `block`: a window of `size + 1` values has `len(block)` places in
        them."""
        joined = np.concatenate([self._kept, block])
        # a copy, since a view would keep the whole joined array alive
        self._kept = joined[len(block) :].copy()
        return joined


EXACT_BITS = 53
"""Bits of an integer that float64 holds without rounding."""


def on_grid(values: Values, bits: int) -> Values:
    """The nearest multiples of `2**-bits`.

    Sums of products of two such numbers are multiples of `2**-(2 * bits)` and hence exact, in any order,
    as long as they stay below `2**(EXACT_BITS - 2 * bits)`.
    """
    gridded: Values = np.rint(values * 2.0**bits) * 2.0**-bits
    return gridded


def correlate(signal: Values, taps: Values) -> Values:
    """Correlate `signal` with `taps`. If both are on the grid, sums are exact, and so the same in any block.

    Parameters
    ----------
    signal : numpy.ndarray
        float64 on the grid, shape (n + k - 1,), n at least 1.
    taps : numpy.ndarray
        float64 on the grid, shape (k,).

    Returns
    -------
    numpy.ndarray
        float64, shape (n,): `out[i] = sum(taps[j] * signal[i + j])`.
    """
    return np.correlate(signal, taps, mode="valid")
