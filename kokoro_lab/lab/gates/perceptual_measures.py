"""What the perceptual gate measures of a pair: each measure as two figures, of which the higher is better.

Where nothing can be better than the reference itself, as by PESQ, the first figure is the measure's ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from kokoro_lab.lab.gates.speaking import ProsodyReading, SpokenPair
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.noninferiority import MARGIN
from kokoro_lab.metrics.perceptual import (
    LSD_FLOOR_DB,
    PESQ_CEILING,
    log_spectral_distance_db,
    pesq_wb,
    stoi,
)
from kokoro_lab.metrics.prosody import CENTS_AN_OCTAVE, ReadingDifference, prosody_drift
from kokoro_lab.metrics.speaker import Embedder, speaker_similarity

SPEAKER_MARGIN = 0.05
"""A cosine of 0.95. Another text by the same voice is at about 0.87, so this is far closer than a voice."""


class PerceptualPair(NamedTuple):
    """A text by a voice, spoken by both: with the prosody of the reference, and with the candidate's own."""

    forced: SpokenPair
    own: SpokenPair
    reference_reading: ProsodyReading
    candidate_reading: ProsodyReading

    @property
    def drift(self) -> ReadingDifference:
        """How far the candidate's own durations and F0 are from the reference's."""
        return prosody_drift(*self.reference_reading, *self.candidate_reading)


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a pair: what the reference has, or could have at best, and what the candidate has.

    Parameters
    ----------
    name : str
    how : str
        "forced", or "own" for the candidate as it speaks by itself.
    of : callable
        Given what was compared and the voice encoder, both figures; higher is better.
    margin : float
        Share of the reference's figure that the candidate may lose.
    """

    name: str
    how: str
    of: Callable[[PerceptualPair, Embedder], tuple[float, float]]
    margin: float = MARGIN

    @property
    def check(self) -> str:
        """Name of the check that limits it."""
        return f"{self.name}_change_lower_95_percent"


def _aligned(measure: Callable[..., float], compared: PerceptualPair) -> float:
    """A measure of two signals sample by sample; NaN where they are not as long as each other."""
    pair = compared.forced.pair
    if len(pair.reference) != len(pair.candidate):
        return float("nan")
    return measure(pair.reference, pair.candidate, pair.sample_rate_hz)


def _dnsmos(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    pair = compared.own.pair
    return dnsmos(pair.reference, pair.sample_rate_hz), dnsmos(pair.candidate, pair.sample_rate_hz)


def _speaker(compared: PerceptualPair, encoder: Embedder) -> tuple[float, float]:
    pair = compared.own.pair
    return 1.0, speaker_similarity(pair.reference, pair.candidate, pair.sample_rate_hz, encoder)


def _duration(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    """Longer is as bad as shorter."""
    reference, candidate = len(compared.own.pair.reference), len(compared.own.pair.candidate)
    return 1.0, 1.0 - abs(candidate - reference) / reference


def _f0(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    """Higher is as bad as lower; 51 cents are 3 %."""
    return 1.0, float(2.0 - 2.0 ** (compared.drift.f0_change_cents / CENTS_AN_OCTAVE))


PESQ = Measure("pesq", "forced", lambda c, _: (PESQ_CEILING, _aligned(pesq_wb, c)))
STOI = Measure("stoi", "forced", lambda c, _: (1.0, _aligned(stoi, c)))
LSD = Measure(
    "lsd", "forced", lambda c, _: (-LSD_FLOOR_DB, -LSD_FLOOR_DB - _aligned(log_spectral_distance_db, c))
)
"""Log-spectral distance, as a share of the 80 dB that count: 3 % of them are 2.4 dB."""
DNSMOS = Measure("dnsmos", "own", _dnsmos)
SPEAKER = Measure("speaker", "own", _speaker, SPEAKER_MARGIN)
DURATION = Measure("duration", "own", _duration)
F0 = Measure("f0", "own", _f0)
MEASURES = (PESQ, STOI, LSD, DNSMOS, SPEAKER, DURATION, F0)
