"""An audio fingerprint: tells whether two recordings have the same sounds at the same times.

A fingerprint has one bit for each band and moment, and fits into a text file. With it, two clips can be
compared without their samples. Dither, coding and rounding change a few bits in a thousand, noise and cuts a
few in ten, and another text half of them. A fingerprint does not show gain, which changes no bit, nor changes
as short as a click: `loudness` and a comparison of samples find those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.mel import frame_power, mel_filters
from kokoro_lab.metrics.recordings import require_recording
from kokoro_lab.typed import require_range

Samples = npt.NDArray[np.float32]
Bits = npt.NDArray[np.bool_]

MEL_BANDS = 33
"""One more than there are bits in a step: each bit compares a band with its neighbour."""
TIME_STEPS = 64
WINDOW_S, HOP_S = 0.032, 0.008
FLOOR_DB = -60.0
"""Cells so far below the loudest one are set to this level, or noise in pauses would make random bits."""
SHORTEST_S = 0.7
LOWEST_RATE_HZ = 8_000
HEX_DIGITS = TIME_STEPS * (MEL_BANDS - 1) // 4


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """The result of `mel_fingerprint`.

    Parameters
    ----------
    bits : numpy.ndarray
        bool, shape (64, 32): moments of equal length, neighbouring mel bands from low to high.
    """

    bits: Bits

    @property
    def hex(self) -> str:
        """512 hexadecimal digits, for a file."""
        return np.packbits(self.bits).tobytes().hex()

    @classmethod
    def from_hex(cls, digits: str) -> Fingerprint:
        """The fingerprint that `hex` wrote.

        Raises
        ------
        ParameterError
            Not 512 hexadecimal digits.
        """
        try:
            packed = bytes.fromhex(digits)
        except ValueError:
            packed = b""
        if len(packed) * 2 != HEX_DIGITS or len(digits) != HEX_DIGITS:
            raise ParameterError(
                "This text is no fingerprint.",
                field="fingerprint",
                value=f"{len(digits)} characters",
                allowed=f"{HEX_DIGITS} hexadecimal digits",
                mend="Write it anew with `make golden CASE=...`.",
            )
        bits = np.unpackbits(np.frombuffer(packed, np.uint8)).astype(np.bool_)
        return cls(bits.reshape(TIME_STEPS, MEL_BANDS - 1))


def mel_fingerprint(
    samples: Samples, sample_rate_hz: int, edges_s: Sequence[float] | npt.NDArray[np.float64] | None = None
) -> Fingerprint:
    """The fingerprint of a recording: each bit says whether a band gains on the next one from one moment to
    the next.

    Parameters
    ----------
    samples : numpy.ndarray
        float32 mono, shape (n,), 0.7 s or longer, not silent.
    sample_rate_hz : int
        8000 or more. Recordings are compared at one rate: bands reach up to half of it.
    edges_s : sequence of float, optional
        66 times in rising order: where each of 65 moments begins, and where the last one ends. None divides
        the recording evenly. With edges at the same words as in another recording, differences in timing do
        not count. Moments beyond the recording's end are silent.

    Returns
    -------
    Fingerprint
        2048 bits, however long the recording: 64 moments, each compared with the one before. If both
        recordings are divided evenly, a reading that is evenly faster has the same fingerprint, so lengths
        must be compared, too.

    Raises
    ------
    ParameterError
        The recording has more than one channel, is too short or silent, has too low a rate, or has samples
        that are not finite; or `edges_s` are not 66 rising times.

    Notes
    -----
    Haitsma & Kalker, "A highly robust audio fingerprinting system", ISMIR 2002, equation 1:
    F(n, m) = 1 where E(n, m) - E(n, m+1) - (E(n-1, m) - E(n-1, m+1)) > 0. Here E is the log power in
    mel bands (after Slaney 1998) and not the energy between 300 and 2000 Hz, and a
    step is a share of the clip and not 11.6 ms.
    """
    power = _mel_power(_checked(samples, sample_rate_hz), sample_rate_hz)
    even = even_edges_s(len(samples) / sample_rate_hz)
    steps = _means(power, (even if edges_s is None else _checked_edges(edges_s)) / HOP_S)
    decibels = 10 * np.log10(np.maximum(steps, steps.max() * 10 ** (FLOOR_DB / 10)))
    over_bands = decibels[:, :-1] - decibels[:, 1:]
    return Fingerprint(np.diff(over_bands, axis=0) > 0)


def bit_error_rate(reference: Fingerprint, candidate: Fingerprint) -> float:
    """The share of bits that differ: 0 for the same recording, near 0.5 for two that share nothing.

    Source: Haitsma & Kalker 2002, section 3.1.
    """
    return float((reference.bits != candidate.bits).mean())


def even_edges_s(duration_s: float) -> npt.NDArray[np.float64]:
    """The 66 edges of 65 moments of equal length."""
    return np.linspace(0, duration_s, TIME_STEPS + 2)


def _means(power: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mean of the frames between two edges, where a frame that an edge divides counts in part; an empty step
    is silent."""
    total = np.vstack([np.zeros(power.shape[1]), np.cumsum(power, axis=0)])
    edges = np.clip(edges, 0, len(power))
    whole = np.minimum(edges.astype(int), len(power) - 1)
    until = total[whole] + (edges - whole)[:, None] * power[whole]
    means: npt.NDArray[np.float64] = np.diff(until, axis=0) / np.maximum(np.diff(edges), 1e-9)[:, None]
    return means


def _checked_edges(edges_s: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    edges = np.asarray(edges_s, np.float64)
    if edges.shape != (TIME_STEPS + 2,) or not (np.diff(edges) >= 0).all():
        raise ParameterError(
            "The edges are not 66 rising times.",
            field="edges_s",
            value=f"shape {edges.shape}",
            allowed=f"{TIME_STEPS + 2} rising times",
        )
    return edges


def _mel_power(samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.float64]:
    size, hop = round(WINDOW_S * sample_rate_hz), round(HOP_S * sample_rate_hz)
    power = frame_power(np.pad(samples, size // 2), np.hanning(size), hop)
    mel: npt.NDArray[np.float64] = power @ mel_filters(sample_rate_hz, size, MEL_BANDS)
    return mel


def _checked(samples: Samples, sample_rate_hz: int) -> Samples:
    message = "Such a rate holds too little of speech."
    require_range("sample_rate", sample_rate_hz, LOWEST_RATE_HZ, message=message)
    require_recording(samples, sample_rate_hz, SHORTEST_S)
    if not samples.any():
        raise ParameterError(
            "Silence has no fingerprint.", field="samples", allowed="a recording with sound in it"
        )
    return samples
