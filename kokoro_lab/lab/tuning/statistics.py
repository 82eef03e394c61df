"""Fit the statistics predictor on the model's own decodes, and judge it on texts it has not seen.

Each segment of the training set gives a row of features (of its prosody, trunk and style vector) and a row of
the exact statistics, which the model computes from the whole segment. `predictor_fit.fit` makes the predictor
from these rows.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.tuning.comparison import distances, heard_part, mean_interval, one_voice_each, segments_of
from kokoro_lab.lab.tuning.predictor_fit import fit
from kokoro_lab.lab.tuning.reporter import OwnStatistics, TrunkStatistics
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.seams import seam_rank
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder
from kokoro_lab.model.predictor import PREDICTOR_FILE, StatisticsPredictor, Values, features
from kokoro_lab.model.windowed_speech import EARLY_PREDICTOR_FILE, contour_features
from kokoro_lab.weights.voices import load_voice

SHORT_WORDS, CLAUSE_WORDS = (1, 4), (4, 10)
SHORT_SHARE, CLAUSE_SHARE = 0.25, 0.60
"""Shares of the training set that are a few words (`SHORT_WORDS`) or a clause (`CLAUSE_WORDS`). The rest are
whole lines."""
BLEND_SHARE = 0.20
ENGLISH_SHARE = 0.70
"""Share of English voices in the training set. Voices of other languages read the same English lines."""
PLAIN_SPEED_SHARE = 0.5
SPEEDS = (0.5, 2.0)
"""Speeds other than 1 are drawn between these, evenly in the logarithm."""
SAVE_EVERY = 50
SEED = 1
SMALLEST_VARIANCE = 1e-8

SHORT_S = 2.5
PESQ_LOW, PESQ_SHORT_LOW, STOI_MEAN_LOW = (4.55, 4.35), (4.45, 4.25), 0.997
"""Limits for "no difference to the model itself": PESQ (mean and 5th percentile, for segments of 2.5 s or
more and for shorter ones) and mean STOI. The highest PESQ is 4.64. A mean fails only if its whole 95 %
interval lies below the limit, because a few segments prove little."""
SEAM_RANK_CHANGE_HIGH = 0.05
"""How much higher, on average, seams may rank among all places of the speech than the same places of a
segment that was decoded whole. The change is 0 if seams cannot be told apart, about 0.5 if every seam
clicks."""
DNSMOS_CHANGE_LOW = -0.01
WRONG_BY_UNITS = 0.2
"""How far the statistics of a negative control are off, in the predictor's units: a fifth of a channel's
deviation for its mean, and 0.4 for a log variance. With 0.1, three sentences show no loss of DNSMOS."""
CONTROL_TEXTS = 3


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Rows of features and of exact statistics (means, then log variances), and the voice of each row.

    Parameters
    ----------
    inputs, targets : numpy.ndarray
        float32 (N, F) and (N, 2·8448): features after the trunk, and the vocoder's statistics.
    voices : tuple of str
    contours, trunk : numpy.ndarray
        float32 (N, 2722) and (N, 2·8704): features before the trunk, and the trunk's statistics.
    """

    inputs: Values
    targets: Values
    voices: tuple[str, ...]
    contours: Values
    trunk: Values

    def save(self, path: Path) -> None:
        np.savez(path, **{f.name: np.asarray(getattr(self, f.name)) for f in fields(self)})  # type: ignore[arg-type]  # NumPy types the keyword for pickling alone

    @property
    def beginnings(self) -> Values:
        """The targets of the early predictor: the trunk's statistics, followed by the vocoder's."""
        (mean, variance), (later_mean, later_variance) = (
            np.split(part, 2, axis=1) for part in (self.trunk, self.targets)
        )
        return np.concatenate([mean, later_mean, variance, later_variance], axis=1)

    @classmethod
    def load(cls, path: Path) -> TrainingSet:
        with np.load(path) as stored:
            voices = tuple(str(v) for v in stored["voices"])
            return cls(stored["inputs"], stored["targets"], voices, stored["contours"], stored["trunk"])


def make_training_set(
    lines: Sequence[str], voices: Sequence[str], path: Path, *, minutes: float
) -> TrainingSet:
    """Have the model speak `lines` and parts of them with voices, blends and speeds drawn at random.

    Stops after `minutes` of wall time, however many rows it has by then. It writes `path` as it goes, so that
    an interrupted run is not lost.
    """
    config = EngineConfig(variant="fp32")
    stages, own, own_of_trunk = StagedDecoder(config), OwnStatistics(config), TrunkStatistics(config)
    draw = random.Random(SEED)
    front_end = FrontEnd()
    rows: list[tuple[Values, ...]] = []
    names: list[str] = []
    end = time.monotonic() + 60 * minutes
    bar = tqdm(desc="utterances")

    def so_far() -> TrainingSet:
        inputs, targets, contours, trunk = (np.stack(column) for column in zip(*rows, strict=True))
        return TrainingSet(inputs, targets, tuple(names), contours, trunk)

    while time.monotonic() < end:
        name = draw_voice(draw, voices)
        speed = 1.0 if draw.random() < PLAIN_SPEED_SHARE else float(np.exp(draw.uniform(*np.log(SPEEDS))))
        for token_ids, style in segments_of(front_end, draw_text(draw, lines), name):
            contours = stages.prosody.contours(token_ids, style, speed)
            prosody = stages.prosody.behind(contours, style)
            target, trunk = _target(*own(prosody)), _target(*own_of_trunk(contours, style))
            if not np.isfinite(target).all():
                # The statistics of a channel that the style multiplies by 0 cannot be found
                bar.write(f"{name} at speed {speed:.2f}: an utterance without all statistics is left out")
                continue
            rows.append((features(prosody), target, contour_features(contours, style), trunk))
            names.append(name)
            bar.update()
        if len(names) % SAVE_EVERY == 0:
            so_far().save(path)
    so_far().save(path)
    return so_far()


def _target(mean: Values, variance: Values) -> Values:
    return np.concatenate([mean, np.log(variance.clip(0) + SMALLEST_VARIANCE)])


def shift_of(variant: str, lines: Sequence[str], voices: Sequence[str]) -> npt.NDArray[np.float16]:
    """The mean difference between the statistics that a variant's vocoder computes and those that fp32's
    computes.

    Every line is spoken by the next of `voices` in turn. Both vocoders get the prosody that the variant
    computed.

    Returns
    -------
    numpy.ndarray
        float16 (2·8448,): of means and log variances, in the units of `StatisticsPredictor`.
    """
    config = replace(EngineConfig.from_settings(), variant=variant)
    stages = StagedDecoder(config)
    reference, own = OwnStatistics(replace(config, variant="fp32")), OwnStatistics(config)
    unit = StatisticsPredictor.load().unit
    total, count = np.zeros(len(unit)), 0
    for token_ids, style in one_voice_each(lines, voices, what=f"{variant}: statistics"):
        prosody = stages.prosody.predict(token_ids, style, 1.0)
        (mean, variance), (mean_there, variance_there) = reference(prosody), own(prosody)
        change = np.log((variance_there + SMALLEST_VARIANCE) / (variance + SMALLEST_VARIANCE))
        total += np.concatenate([mean_there - mean, change]) / unit
        count += 1
    return (total / count).astype(np.float16)


def draw_voice(draw: random.Random, voices: Sequence[str]) -> str:
    """A voice, or now and then a blend of two."""
    english = [v for v in voices if v[0] in "ab"]
    others = [v for v in voices if v[0] not in "ab"]

    def one() -> str:
        return draw.choice(english if english and (draw.random() < ENGLISH_SHARE or not others) else others)

    if draw.random() >= BLEND_SHARE:
        return one()
    return f"{one()}({draw.choice((1, 1, 2, 3))})+{one()}(1)"


def draw_text(draw: random.Random, lines: Sequence[str]) -> str:
    """A line or a part of one: streams speak short segments as well as sentences."""
    words = draw.choice(lines).split()
    kind = draw.random()
    if kind < SHORT_SHARE + CLAUSE_SHARE:
        count = draw.randint(*(SHORT_WORDS if kind < SHORT_SHARE else CLAUSE_WORDS))
        start = draw.randint(0, max(0, len(words) - count))
        words = words[start : start + count]
    return " ".join(words).rstrip(",;:-") + draw.choice("..,?.!;.")


def judge(
    predictors: Predictors,
    lines: Sequence[str],
    voices: Sequence[str],
    *,
    speeds: Sequence[float] = (1.0,),
    config: EngineConfig | None = None,
) -> pd.DataFrame:
    """Decode every segment in windows with predicted statistics, and whole with exact ones; one row for each.

    Every voice speaks every line. Each line has the next of `speeds` in turn.

    Returns
    -------
    pandas.DataFrame
        text (its number), voice, speed, audio_s; pesq, stoi, lsd_db of the windows against the whole;
        dnsmos_whole, dnsmos_windows; seam_rank_change, how much higher the seams between windows rank
        among other places than the same places of the whole do (NaN if there is no seam).
    """
    config = config or EngineConfig(variant="fp32")
    decoder = StagedDecoder(config, *predictors)
    front_end = FrontEnd()
    jobs = [(number, voice, speeds[number % len(speeds)]) for number in range(len(lines)) for voice in voices]
    rows = []
    for number, name, speed in tqdm(jobs, desc="judged"):
        for token_ids, style in segments_of(front_end, lines[number], name):
            asked = SegmentRequest(token_ids, style, speed)
            (whole,) = decoder.decode(asked).blocks
            windows = list(decoder.decode(replace(asked, predicted=True)).blocks)
            rows.append(
                {"text": number, "voice": name, "speed": speed, "audio_s": len(whole) / SAMPLE_RATE_HZ}
                | _scores(whole, windows)
            )
    return pd.DataFrame(rows)


def _scores(whole: Values, windows: Sequence[Values]) -> dict[str, float]:
    joined = np.concatenate(windows)
    heard = heard_part(whole)
    borders = np.cumsum([len(window) for window in windows])[:-1]
    # The first and the last window meet silence that was not decoded: that place is no seam in speech
    seams = [
        int(at) - heard.start
        for at in borders
        if heard.start < at < heard.stop and joined[at - 1] != 0 and joined[at] != 0
    ]
    whole, joined = whole[heard], joined[heard]
    return {
        **distances(whole, joined),
        "dnsmos_whole": dnsmos(whole, SAMPLE_RATE_HZ),
        "dnsmos_windows": dnsmos(joined, SAMPLE_RATE_HZ),
        "seam_rank_change": _mean_rank(joined, seams) - _mean_rank(whole, seams),
    }


def _mean_rank(samples: Values, seams: Sequence[int]) -> float:
    return float(seam_rank(samples, SAMPLE_RATE_HZ, seams).mean()) if seams else float("nan")


class Predictors(NamedTuple):
    """The predictors of a stream: `whole` works after the trunk, `beginning` before it."""

    whole: StatisticsPredictor
    beginning: StatisticsPredictor

    @classmethod
    def load(cls) -> Predictors:
        """The predictors that the package ships."""
        return cls(StatisticsPredictor.load(), StatisticsPredictor.load(EARLY_PREDICTOR_FILE))

    def wrong_by(self, units: float) -> Predictors:
        """Predictors whose every mean and log variance is off by `units` of its unit, up or down at
        random."""
        draw = np.random.default_rng(SEED)

        def off(one: StatisticsPredictor) -> StatisticsPredictor:
            signs = draw.choice(np.array([-1, 1], np.float32), len(one.unit))
            return replace(one, target_mean=one.target_mean + np.float32(units) * signs * one.unit)

        return Predictors(off(self.whole), off(self.beginning))

    def save(self) -> None:
        """Write the predictors into the package."""
        self.whole.save(PREDICTOR_FILE)
        self.beginning.save(EARLY_PREDICTOR_FILE)


def predictors_for(
    lines: Sequence[str],
    voices: Sequence[str],
    folder: Path,
    *,
    training: str = "",
    minutes: float = 0.0,
    rank: int = 192,
    ridge: tuple[float, float] = (100.0, 100.0),
    bend: tuple[float, float] = (1.0, 0.002),
) -> Predictors:
    """The predictors to judge: the shipped ones; or, with `training` (the file of a training set) or
    `minutes` (to make a new one), predictors that are fitted on that set and shrink towards the shipped
    ones."""
    shipped = Predictors.load()
    if not training and not minutes:
        return shipped
    if training:
        rows = TrainingSet.load(Path(training))
    else:
        rows = make_training_set(lines, voices, folder / "training.npz", minutes=minutes)
    plain = {
        part.name for name in set(rows.voices) for part in (load_voice(p) for p in load_voice(name).parts)
    }
    fitted = partial(fit, voices=plain | shipped.whole.voices, rank=rank, ridge=ridge, bend=bend)
    return Predictors(
        fitted(rows.inputs, rows.targets, towards=shipped.whole),
        fitted(rows.contours, rows.beginnings, towards=shipped.beginning),
    )


def _of_sentences(table: pd.DataFrame) -> pd.DataFrame:
    """STOI of each sentence as one voice read it at one speed, over all of its segments.

    STOI is a mean over frames (Taal et al. 2011, eq. 6), so the STOI of a sentence is the mean over its
    segments, weighted by their lengths.
    """
    weighed = table.assign(stoi=table.stoi * table.audio_s)
    sums = weighed.groupby(["text", "voice", "speed"])[["stoi", "audio_s"]].sum()
    return (sums.stoi / sums.audio_s).rename("stoi").reset_index()


def checks_of(table: pd.DataFrame) -> list[Check]:
    """The checks on a table of `judge`. Segments under 2.5 s have limits of their own for PESQ."""
    lengths = {
        "": (table[table.audio_s >= SHORT_S], PESQ_LOW),
        "_under_2500_ms": (table[table.audio_s < SHORT_S], PESQ_SHORT_LOW),
    }
    checks = []
    for suffix, (rows, (mean_low, p5_low)) in lengths.items():
        if len(rows):
            _, high = mean_interval(rows, "pesq")
            checks += [
                Check(f"pesq_mean_interval_high{suffix}", high, low=mean_low),
                Check(f"pesq_p5{suffix}", rows.pesq.quantile(0.05), low=p5_low),
            ]
    _, stoi_high = mean_interval(_of_sentences(table), "stoi")
    change = table.assign(change=table.dnsmos_windows - table.dnsmos_whole)
    _, dnsmos_high = mean_interval(change, "change")
    return [
        *checks,
        Check("stoi_mean_interval_high", stoi_high, low=STOI_MEAN_LOW),
        Check("dnsmos_change_interval_high", dnsmos_high, low=DNSMOS_CHANGE_LOW),
        Check("seam_rank_change_mean", table.seam_rank_change.mean(), high=SEAM_RANK_CHANGE_HIGH),
    ]


def controls(
    predictors: Predictors, lines: Sequence[str], voice: str, config: EngineConfig
) -> list[NegativeControl]:
    """Controls: statistics that are off by `WRONG_BY_UNITS` must cost PESQ, STOI and DNSMOS, each by more
    than its limit."""
    table = judge(predictors.wrong_by(WRONG_BY_UNITS), lines[:CONTROL_TEXTS], [voice], config=config)
    missed = failed(checks_of(table))
    return [
        NegativeControl(
            f"statistics that are off cost {figure}", any(name.startswith(start) for name in missed)
        )
        for figure, start in (("PESQ", "pesq_mean"), ("STOI", "stoi_mean"), ("DNSMOS", "dnsmos_change"))
    ]
