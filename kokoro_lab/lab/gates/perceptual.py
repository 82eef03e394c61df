"""Does a candidate sound as good as the baseline? All measures that apply are judged together.

*Forced*, the candidate takes the reference's durations, F0 and energy, so that samples can be compared. *By
itself*, it speaks with its own prosody: quality without a reference, similarity of the voice, duration and
pitch are judged. Intelligibility is another gate's task (`gates.intelligibility`). Clips are not brought to
one loudness first; loudness has a gate of its own. DistillMOS, which would notice cuts without a reference,
is not among the measures, because it needs PyTorch.

PESQ and STOI compare a clip with a reference (4.64 and 1 for equal clips); DNSMOS rates a clip by itself,
from 1 to 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import quiet, tqdm
from kokoro_lab.lab.clips import JudgedClip, Limits
from kokoro_lab.lab.fixtures import FixtureText, read_by, read_in
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.abx import SHARED, engine_of
from kokoro_lab.lab.gates.speaking import ProsodyReading, SpokenPair, begun, pair_up, read, shortest, speak
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.noninferiority import MARGIN, holm, paired_change
from kokoro_lab.metrics.perceptual import LSD_FLOOR_DB, PESQ_CEILING, log_spectral_distance_db, pesq_wb, stoi
from kokoro_lab.metrics.prosody import CENTS_AN_OCTAVE, ReadingDifference, prosody_drift
from kokoro_lab.metrics.speaker import Embedder, VoiceEncoder, speaker_similarity
from kokoro_lab.speech.engine import Engine
from kokoro_lab.text.han import CHINESE
from kokoro_lab.weights.fetching import fetch
from kokoro_lab.weights.store import missing, voice_encoder_path

ALPHA = 0.05
CONTROL_TEXTS, CONTROL_S = 3, 3.01
"""How many pairs, each of a different text, controls are made from, and how many seconds of each. DNSMOS
repeats a short clip until it has 9.01 s, and three times 3.01 s are just enough."""
WRONG_VOICES = {
    **{"af": "am_michael", "am": "af_heart", "bf": "bm_george", "bm": "bf_emma"},
    **{"zf": "zm_yunjian", "zm": "zf_xiaoxiao"},
}
"""For each kind of voice, a wrong voice for controls. It speaks the same language and the same kind of
English, so that the phonemes are the same."""

LENGTH_CHECK = "forced_length_difference_most_s"
HOLM_CHECK = "noninferiority_p_by_holm_most"
SPEAKER_MARGIN = 0.05
"""The cosine between the voice embeddings of reference and candidate, which is 1 for equal clips, may fall by
this, to 0.95. Two texts by one voice have about 0.87, so the limit is far stricter than "the same voice"."""


class PerceptualPair(NamedTuple):
    """One text by one voice: spoken once by the reference, and twice by the candidate, with the reference's
    prosody (forced) and with its own."""

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
        """Name of the check that limits this measure."""
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


def _speaker(compared: PerceptualPair, encoder: Embedder) -> tuple[float, float]:
    pair = compared.own.pair
    return 1.0, speaker_similarity(pair.reference, pair.candidate, pair.sample_rate_hz, encoder)


def _duration(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    """The figure of two clips of one length, which is 1, and that of this pair: 1 minus the relative
    difference in length. A longer clip is as bad as a shorter one."""
    reference, candidate = len(compared.own.pair.reference), len(compared.own.pair.candidate)
    return 1.0, 1.0 - abs(candidate - reference) / reference


def _f0(compared: PerceptualPair, _: Embedder) -> tuple[float, float]:
    """The figure of two clips of one pitch, which is 1, and that of this pair: 1 minus the relative
    difference in pitch. A higher pitch is as bad as a lower one, and 51 cents are 3 %."""
    return 1.0, float(2.0 - 2.0 ** (compared.drift.f0_change_cents / CENTS_AN_OCTAVE))


PESQ = Measure("pesq", "forced", lambda c, _: (PESQ_CEILING, _aligned(pesq_wb, c)))
STOI = Measure("stoi", "forced", lambda c, _: (1.0, _aligned(stoi, c)))
LSD = Measure(
    "lsd", "forced", lambda c, _: (-LSD_FLOOR_DB, -LSD_FLOOR_DB - _aligned(log_spectral_distance_db, c))
)
"""Log-spectral distance, as a share of 80 dB, the range of power that counts. A loss of 3 % is 2.4 dB."""
DNSMOS = Measure("dnsmos", "own", _dnsmos)
SPEAKER = Measure("speaker", "own", _speaker, SPEAKER_MARGIN)
DURATION = Measure("duration", "own", _duration)
F0 = Measure("f0", "own", _f0)
LOST = "margin_used_ratio"
CLIP_GUIDES: Limits = {LOST: (None, 1.0)}
"""Lines in plots. A single pair beyond one of them is worth listening to. The margins that decide are on
means."""
MEASURES = (PESQ, STOI, LSD, DNSMOS, SPEAKER, DURATION, F0)


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


def compare(
    reference: Engine,
    candidate: Engine,
    texts: Sequence[FixtureText],
    voices: Sequence[str],
    *,
    streamed: bool = False,
) -> list[PerceptualPair]:
    """Have both speak every text with every voice, the candidate twice: forced, and by itself.

    Parameters
    ----------
    candidate : Engine
        Speaks with its own prosody. The forced candidate is made from its variant.
    streamed : bool
        Whether the candidate is decoded in windows with predicted statistics; the reference is always decoded
        whole.

    Raises
    ------
    ParameterError
        A variant runs as one graph, the candidate cannot be streamed, or a voice is of another language.
    """
    for voice in voices:
        chinese = bool(texts) and all(read_in(each.text, voice) == CHINESE for each in texts)
        if voice[0] not in "ab" and not chinese:
            raise ParameterError(
                f"{voice} is no English voice, and the texts are English.",
                field="voices",
                value=voice,
                allowed="voices whose names begin with a or b",
            )
    readings = [
        [read(engine, text, voice) for text, voice in read_by(texts, voices)]
        for engine in (reference, candidate)
    ]
    first = speak(reference, texts, voices)
    told = speak(engine_of(candidate.config.variant, SHARED), texts, voices, streamed=streamed)
    alone = speak(candidate, texts, voices, streamed=streamed)
    columns = (pair_up(first, told), pair_up(first, alone), *readings)
    return [PerceptualPair(*each) for each in zip(*columns, strict=True)]


def measure(
    compared: Sequence[PerceptualPair], encoder: Embedder, measures: Sequence[Measure] = MEASURES
) -> pd.DataFrame:
    """Every measure of each pair.

    Returns
    -------
    pandas.DataFrame
        One row for each pair, indexed by its name: text, voice, audio_s, forced_length_difference_s;
        `<name>_reference` and `<name>_candidate` for each measure, where higher is better; and how the
        candidate's own prosody differs, as fields of `metrics.prosody.ReadingDifference`. Forced figures are
        NaN where the length differs.
    """
    rows = []
    for each in tqdm(compared, desc="measured"):
        figures: dict[str, float] = {}
        for one in measures:
            figures[f"{one.name}_reference"], figures[f"{one.name}_candidate"] = one.of(each, encoder)
        pair, drift = each.forced.pair, each.drift
        rows.append(
            {
                "pair": pair.name,
                "text": each.forced.text,
                "voice": each.forced.voice,
                "audio_s": len(pair.reference) / pair.sample_rate_hz,
                "forced_length_difference_s": pair.duration_difference_s,
            }
            | figures
            | {name: getattr(drift, name) for name in ReadingDifference.__dataclass_fields__}
        )
    return pd.DataFrame(rows).set_index("pair")


def changes(table: pd.DataFrame, measures: Sequence[Measure] = MEASURES) -> pd.DataFrame:
    """How much the candidate loses in each measure, with one-sided 95 % limits over texts, and p corrected by
    Holm for the number of measures.

    Returns
    -------
    pandas.DataFrame
        One row for each measure: how, mean_percent, lower_percent (the true change is above it with 95 %
        confidence), margin_percent, p and holm_p. A measure that is missing for any pair has NaN, and a p of
        1.
    """
    rows = []
    for one in measures:
        before, after = table[f"{one.name}_reference"], table[f"{one.name}_candidate"]
        found = (np.nan, np.nan, 1.0)
        if np.isfinite(after).all():
            change = paired_change(before, after, list(table.text), margin=one.margin)
            found = (100 * change.value, 100 * change.low, change.p)
        rows.append((one.name, one.how, *found, -100 * one.margin))
    columns = ["measure", "how", "mean_percent", "lower_percent", "p", "margin_percent"]
    family = pd.DataFrame(rows, columns=columns).set_index("measure")
    return family.assign(holm_p=pd.Series(holm(family.p.to_dict())))


def judge(table: pd.DataFrame, measures: Sequence[Measure] = MEASURES) -> list[Check]:
    """The checks: no measure loses more than its margin, with 95 % confidence for each, and for all together
    by Holm's correction; the forced candidate is not a sample longer or shorter."""
    checks = [Check(LENGTH_CHECK, table.forced_length_difference_s.abs().max(), high=0.0)]
    if measures:
        family = changes(table, measures)
        checks += [
            Check(one.check, family.lower_percent[one.name], low=-100 * one.margin) for one in measures
        ]
        checks.append(Check(HOLM_CHECK, family.holm_p.max(), high=ALPHA))
    return checks


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Figures without a limit. Means are over pairs."""
    return {
        "pairs_count": len(table),
        "texts_count": table.text.nunique(),
        "pesq_mean": table.pesq_candidate.mean(),
        "pesq_lowest": table.pesq_candidate.min(),
        "stoi_mean": table.stoi_candidate.mean(),
        "lsd_mean_db": (table.lsd_reference - table.lsd_candidate).mean(),
        "dnsmos_reference_mean": table.dnsmos_reference.mean(),
        "dnsmos_candidate_mean": table.dnsmos_candidate.mean(),
        "speaker_similarity_mean": table.speaker_candidate.mean(),
        "speaker_similarity_lowest": table.speaker_candidate.min(),
        "changed_durations_percent": 100 * table.changed_durations_count.sum() / table.durations_count.sum(),
        "phoneme_change_mean_ms": table.phoneme_change_ms.mean(),
        "f0_change_median_cents": table.f0_change_cents.median(),
    }


def judged_clips(compared: Sequence[PerceptualPair], table: pd.DataFrame) -> list[JudgedClip]:
    """Every pair twice, forced and by itself. The worst loses the largest part of a measure's margin."""
    found = []
    for each, (_, row) in zip(compared, table.iterrows(), strict=True):
        for how, pair in (("forced", each.forced), ("own", each.own)):
            of_it = [one for one in MEASURES if one.how == how]
            lost = max(_lost(row, one) for one in of_it)
            measured = {LOST: lost} | {one.name: row[f"{one.name}_candidate"] for one in of_it}
            found.append(pair.judged(f"{pair.pair.name}, {how}", measured, lost))
    return found


def _lost(row: pd.Series, one: Measure) -> float:
    """The loss of a pair in a measure, divided by the loss that is allowed; infinite if it was not
    measured."""
    reference, candidate = row[f"{one.name}_reference"], row[f"{one.name}_candidate"]
    lost = float((reference - candidate) / abs(reference) / one.margin)
    return lost if np.isfinite(lost) else float("inf")


CAUGHT_BY: dict[str, tuple[damages.Damage, str, tuple[Measure, ...]]] = {
    "a click of 0.3 costs PESQ": (damages.click, PESQ.check, (PESQ,)),
    "100 ms of silence cost PESQ": (damages.gap, PESQ.check, (PESQ,)),
    "100 ms cut out are not as long": (damages.cut, LENGTH_CHECK, ()),
    "noise at 20 dB SNR costs DNSMOS": (damages.noisy, DNSMOS.check, (DNSMOS,)),
    "noise at 20 dB SNR is far away": (damages.noisy, LSD.check, (LSD,)),
    "10 % faster is not the same duration": (damages.faster, DURATION.check, (DURATION,)),
    "10 % faster is not as long": (damages.faster, LENGTH_CHECK, ()),
    "clipped peaks cost PESQ": (damages.clipped, PESQ.check, (PESQ,)),
}
"""Fault → the function that makes it, the check that must fail, and the measures that have to be taken for
this check."""


def controls(
    reference: Engine, compared: Sequence[PerceptualPair], texts: Sequence[FixtureText], encoder: Embedder
) -> list[NegativeControl]:
    """Candidates that are worse on purpose; for each fault, the check that limits it must fail.

    They are made of the shortest pairs, one for each text. The first control is no fault: the reference as
    its own candidate must pass.
    """
    readings = {(e.forced.text, e.forced.voice): e.reference_reading for e in compared}
    short = [begun(each, CONTROL_S) for each in shortest((e.forced for e in compared), CONTROL_TEXTS)]

    def damaged(damage: damages.Damage) -> list[PerceptualPair]:
        pairs = [(each.damaged(damage), readings[each.text, each.voice]) for each in short]
        return [PerceptualPair(each, each, reading, reading) for each, reading in pairs]

    @quiet()
    def refused(candidates: Sequence[PerceptualPair], measures: Sequence[Measure]) -> list[str]:
        return failed(judge(measure(candidates, encoder, measures), measures))

    found = [NegativeControl("the reference itself passes", caught=not refused(damaged(np.copy), MEASURES))]
    for name, (damage, check, measures) in tqdm(CAUGHT_BY.items(), desc="faults"):
        found.append(NegativeControl(name, caught=check in refused(damaged(damage), measures)))
    mistaken = refused(_by_another_voice(reference, short, texts, readings), (SPEAKER, F0))
    found.append(NegativeControl("a wrong voice is another speaker", caught=SPEAKER.check in mistaken))
    found.append(NegativeControl("a wrong voice is not as high", caught=F0.check in mistaken))
    return found


@quiet()
def _by_another_voice(
    reference: Engine,
    short: Sequence[SpokenPair],
    texts: Sequence[FixtureText],
    readings: dict[tuple[str, str], ProsodyReading],
) -> list[PerceptualPair]:
    by_name = {text.id: text for text in texts}
    found = []
    for each in short:
        voice = WRONG_VOICES[each.voice[:2]]
        text = replace(by_name[each.text], reader="")
        (other,) = speak(reference, [text], [voice])
        pair = each._replace(pair=replace(each.pair, candidate=other.samples))
        own, others = readings[each.text, each.voice], read(reference, text, voice)
        found.append(PerceptualPair(pair, pair, own, others))
    return found
