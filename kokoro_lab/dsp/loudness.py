"""Gain to the target loudness: by the voice's average loudness for a stream, measured for a whole clip."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from kokoro_lab.dsp.block import Processor, Samples, in_runs, require_finite
from kokoro_lab.dsp.limiter import Limiter
from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.metrics.loudness import MOMENTARY_S, SHORT_TERM_S, IntegratedLoudness

TARGET_LUFS = -16.0
LOUDNESS_TOLERANCE_LU = 0.05
LEAST_SLOPE = 0.15
"""The least rise of loudness in dB for a dB of gain. If the rise is smaller, more gain only makes the limiter
work harder."""


def voice_gain_db(voice_lufs: float, target_lufs: float = TARGET_LUFS) -> float:
    """The gain in dB that brings a voice's average loudness to the target.

    Raises
    ------
    ParameterError
        `voice_lufs` or `target_lufs` is not finite.
    """
    for field, lufs in (("voice_lufs", voice_lufs), ("target_lufs", target_lufs)):
        if not math.isfinite(lufs):
            raise ParameterError(f"{field} must be a number.", field=field, value=lufs, allowed="finite LUFS")
    return target_lufs - voice_lufs


class Gain(Processor[np.float32]):
    """Multiply by a fixed gain.

    Parameters
    ----------
    gain_db : float
        Finite; 0 changes nothing, to the last bit.
    """

    def __init__(self, gain_db: float) -> None:
        if not math.isfinite(gain_db):
            raise ParameterError(
                "A gain must be finite.", field="gain_db", value=gain_db, allowed="finite dB"
            )
        self._factor = np.float32(10.0 ** (gain_db / 20))

    def _push(self, block: Samples) -> Samples:
        return block * self._factor


def normalising_gain_db(
    blocks: Sequence[Samples], sample_rate_hz: int, target_lufs: float = TARGET_LUFS, iterations: int = 3
) -> tuple[float, float]:
    """The gain that brings a clip to the target loudness after the limiter.

    Needs little memory besides the clip. The limiter takes loudness away, so gain and limiter are repeated
    with the missing loudness added, by the secant method. If the target cannot be met (a few clicks in
    silence), the nearest gain is returned.

    Parameters
    ----------
    blocks : sequence of numpy.ndarray
        The clip, cut anywhere: float32, shape (n,), mono, silence trimmed: padding makes clips under 3 s
        read too low.
    sample_rate_hz : int
        8000 to 192000.
    target_lufs : float
        Integrated loudness, counted as one channel (ITU-R BS.1770-5).
    iterations : int
        Most times that the gain is corrected, 0 or more; fewer when the target is met to 0.05 LU.

    Returns
    -------
    gain_db : float
        Gain before the limiter.
    limited_db : float
        Deepest reduction by the limiter, 0 or more.

    Raises
    ------
    SynthesisError
        The clip is silent (everything below -70 LUFS), empty or not finite.

    Notes
    -----
    A clip shorter than one block of 0.4 s is repeated to 3 s for measuring, which has no bias; the
    standard itself does not define its loudness. Single seconds of one sentence scatter by 0.7 LU, so
    callers may prefer the voice's gain below 3 s.
    """
    for block in blocks:
        require_finite(block, "The clip to be normalised")
    gain_db = target_lufs - _lufs(blocks, sample_rate_hz)
    if math.isinf(gain_db):
        raise SynthesisError(
            "The clip to be normalised is silent: no part of it is above -70 LUFS.",
            field="samples",
            value=f"{sum(map(len, blocks))} samples",
            allowed="at least one block of speech",
        )
    best_missing_db = math.inf
    slope = 1.0  # how much louder the result gets for a dB of gain; the limiter makes it less
    earlier: tuple[float, float] | None = None
    for _ in range(iterations + 1):
        limiter = Limiter(sample_rate_hz)
        missing_db = target_lufs - _lufs(_limited(blocks, Gain(gain_db), limiter), sample_rate_hz)
        if abs(missing_db) < abs(best_missing_db):
            best_missing_db = missing_db
            best = gain_db, limiter.max_reduction_db
        if earlier:
            slope = (earlier[1] - missing_db) / (gain_db - earlier[0])
        if abs(missing_db) <= LOUDNESS_TOLERANCE_LU or slope < LEAST_SLOPE:
            break
        earlier = gain_db, missing_db
        gain_db += missing_db / min(slope, 1.0)
    return best


def _limited(blocks: Iterable[Samples], gain: Gain, limiter: Limiter) -> Iterator[Samples]:
    for block in in_runs(blocks):
        yield limiter.push(gain.push(block))
    yield limiter.flush()


def _lufs(blocks: Iterable[Samples], sample_rate_hz: int) -> float:
    meter = IntegratedLoudness(sample_rate_hz)
    short: list[Samples] | None = []
    count, least = 0, MOMENTARY_S * sample_rate_hz
    for block in in_runs(blocks):
        meter.push(block)
        count += len(block)
        if short is not None:
            short = [*short, block] if count < least else None
    if not count:
        return -math.inf
    if short is not None:
        meter = IntegratedLoudness(sample_rate_hz)
        meter.push(np.tile(np.concatenate(short), math.ceil(SHORT_TERM_S * sample_rate_hz / count)))
    return meter.lufs()
