"""What the perceptual gate measures in a pair of clips or of readings, and by how much each may get worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.gates.speaking import SpokenPair
from kokoro_lab.metrics.distilled import DistillMos
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.noninferiority import MARGIN
from kokoro_lab.metrics.perceptual import LSD_FLOOR_DB, PESQ_CEILING, log_spectral_distance_db, pesq_wb, stoi
from kokoro_lab.metrics.prosody import (
    CENTS_AN_OCTAVE,
    Likeness,
    ProsodyReading,
    ReadingDifference,
    likeness,
    prosody_drift,
)
from kokoro_lab.metrics.speaker import Embedder, VoiceEncoder, speaker_similarity
from kokoro_lab.model.pauses import QUIET_ENERGY
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, rater_path, voice_encoder_path

SPEAKER_MARGIN = 0.05
"""The cosine between the voices of both clips may fall to 0.95. Two texts by one voice have about 0.87, so
the limit is far stricter than "the same voice"."""
PAUSES_MARGIN = 0.1
"""A tenth of the pauses' time may change."""


def load_voice_encoder(config: EngineConfig | None = None) -> VoiceEncoder:
    """The network that compares voices, fetched first if it is not in the cache.

    Raises
    ------
    WeightsError
        The network's weights are not available.
    """
    config = config or EngineConfig.from_settings()
    if missing((), config.home, voice_encoder=True):
        fetch((), voice_encoder=True, source=config.source, home=config.home)
    return VoiceEncoder(voice_encoder_path(config.home))


@cache
def rater() -> DistillMos:
    """The network that rates recordings, fetched first if it is not in the cache. Errors as
    `load_voice_encoder`."""
    config = EngineConfig.from_settings()
    if missing((), config.home, rater=True):
        fetch((), rater=True, source=config.source, home=config.home)
    return DistillMos(rater_path(config.home))


class PerceptualPair(NamedTuple):
    """One text by one voice, spoken by reference and candidate; the candidate speaks it twice, with the
    reference's prosody and with its own."""

    forced: SpokenPair
    own: SpokenPair
    reference_reading: ProsodyReading
    candidate_reading: ProsodyReading

    @property
    def drift(self) -> ReadingDifference:
        """How far the candidate's own durations and F0 are from the reference's."""
        return prosody_drift(*self.reference_reading[:2], *self.candidate_reading[:2])

    @property
    def likeness(self) -> Likeness:
        """How alike pitch, energy and pauses are shaped."""
        return likeness(self.reference_reading, self.candidate_reading, QUIET_ENERGY)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of a pair: the reference's figure (or its ceiling) and the candidate's.

    Higher is better. For a measure that compares with the reference, such as PESQ, the first figure is the
    highest possible value.

    Parameters
    ----------
    name : str
    how : str
        "forced", or "own" for the candidate as it speaks by itself.
    of : callable
        Takes the pair and the voice encoder; returns both figures, higher being better.
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
    """A measure of two signals sample by sample; NaN if their lengths differ."""
    pair = compared.forced.pair
    if len(pair.reference) != len(pair.candidate):
        return float("nan")
    return measure(pair.reference, pair.candidate, pair.sample_rate_hz)


def _dnsmos(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    pair = compared.own.pair
    return dnsmos(pair.reference, pair.sample_rate_hz), dnsmos(pair.candidate, pair.sample_rate_hz)


def _distill_mos(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    pair, opinion = compared.own.pair, rater().opinion
    return opinion(pair.reference, pair.sample_rate_hz), opinion(pair.candidate, pair.sample_rate_hz)


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
DISTILL_MOS = Measure("distill_mos", "own", _distill_mos)
SPEAKER = Measure("speaker", "own", _speaker, SPEAKER_MARGIN)
DURATION = Measure("duration", "own", _duration)
F0 = Measure("f0", "own", _f0)
F0_SHAPE = Measure("f0_shape", "own", lambda c, _: (1.0, c.likeness.f0_shape))
ENERGY_SHAPE = Measure("energy_shape", "own", lambda c, _: (1.0, c.likeness.energy_shape))
PAUSES = Measure("pauses", "own", lambda c, _: (1.0, c.likeness.pauses), PAUSES_MARGIN)
MEASURES = (PESQ, STOI, LSD, DNSMOS, DISTILL_MOS, SPEAKER, DURATION, F0, F0_SHAPE, ENERGY_SHAPE, PAUSES)
