"""Fit the statistics predictor on the model's own decodes, and judge it on texts it has not seen."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from tqdm import tqdm

from kokoro_lab.config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.metrics.perceptual import log_spectral_distance_db, pesq_wb, stoi
from kokoro_lab.model.artefacts import stages_folder
from kokoro_lab.model.decoder import Staged
from kokoro_lab.model.reporter import StatisticsReporter
from kokoro_lab.model.statistics import StatisticsPredictor, features
from kokoro_lab.model.voices import Voice, load_voice
from kokoro_lab.results import Check

Values = npt.NDArray[np.float32]

SHORT_WORDS, CLAUSE_WORDS = (1, 4), (4, 10)
SHORT_SHARE, CLAUSE_SHARE = 0.25, 0.60
"""How much of the training set is a few words, how much a clause; the rest are whole sentences."""
BLEND_SHARE = 0.20
ENGLISH_SHARE = 0.70
"""Voices of other languages read the same English lines: that is how far they go here."""
PLAIN_SPEED_SHARE = 0.5
SPEEDS = (0.5, 2.0)
"""The others are drawn between these, evenly in the logarithm."""
SAVE_EVERY = 50
SMALLEST_VARIANCE = 1e-8

SHORT_S = 2.5
PESQ_MEAN_LOW, PESQ_P5_LOW, STOI_MEAN_LOW, PESQ_SHORT_MEAN_LOW = 4.45, 4.30, 0.994, 4.40
"""Below these something broke. The predictor that ships measured 4.53, 4.45, 0.996 and 4.58 on 44
utterances by 4 voices; the aim is 4.55, 4.35, 0.997 and 4.45. PESQ's ceiling is 4.64."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """Rows of features and of true statistics (means, then log variances), and whose voice they are."""

    inputs: Values
    targets: Values
    voices: tuple[str, ...]

    def save(self, path: Path) -> None:
        np.savez(path, inputs=self.inputs, targets=self.targets, voices=np.array(self.voices))

    @classmethod
    def load(cls, path: Path) -> TrainingSet:
        with np.load(path) as stored:
            return cls(stored["inputs"], stored["targets"], tuple(str(v) for v in stored["voices"]))


def make_training_set(
    lines: Sequence[str],
    voices: Sequence[str],
    path: Path,
    *,
    minutes: float,
    seed: int,
    config: EngineConfig | None = None,
    progress: bool = True,
) -> TrainingSet:
    """Let the model speak pieces of `lines` with voices, blends and speeds drawn at random.

    Stops after `minutes` of wall time, whatever it has; writes `path` as it goes, so that an
    interrupted run is not lost.
    """
    report = StatisticsReporter(config or EngineConfig())
    draw = random.Random(seed)
    front_end = FrontEnd()
    loaded: dict[str, Voice] = {}
    inputs: list[Values] = []
    targets: list[Values] = []
    names: list[str] = []
    end = time.monotonic() + 60 * minutes
    bar = tqdm(desc="utterances", disable=not progress)

    def so_far() -> TrainingSet:
        return TrainingSet(np.stack(inputs), np.stack(targets), tuple(names))

    while time.monotonic() < end:
        name = draw_voice(draw, voices)
        voice = loaded.setdefault(name, load_voice(name))
        speed = 1.0 if draw.random() < PLAIN_SPEED_SHARE else float(np.exp(draw.uniform(*np.log(SPEEDS))))
        language = "en-gb" if name.startswith("b") else "en-us"
        for segment in front_end.segments(draw_text(draw, lines), language, lambda _: None):
            style = voice.style(len(segment.token_ids))
            prosody, mean, variance = report(segment.token_ids, style, speed)
            inputs.append(features(prosody))
            targets.append(np.concatenate([mean, np.log(variance + SMALLEST_VARIANCE)]))
            names.append(name)
            bar.update()
        if len(names) % SAVE_EVERY == 0:
            so_far().save(path)
    so_far().save(path)
    return so_far()


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
    """A line or a piece of one: streams speak short segments as well as sentences."""
    words = draw.choice(lines).split()
    kind = draw.random()
    if kind < SHORT_SHARE + CLAUSE_SHARE:
        count = draw.randint(*(SHORT_WORDS if kind < SHORT_SHARE else CLAUSE_WORDS))
        start = draw.randint(0, max(0, len(words) - count))
        words = words[start : start + count]
    return " ".join(words).rstrip(",;:-") + draw.choice("..,?.!;.")


def judge(
    predictor: StatisticsPredictor,
    lines: Sequence[str],
    voices: Sequence[str],
    *,
    speeds: Sequence[float] = (1.0,),
    config: EngineConfig | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Decode in windows with predicted statistics, and whole with true ones; one row an utterance.

    Every line is spoken by every voice, at the speeds in turn.

    Returns
    -------
    pandas.DataFrame
        voice, speed, audio_s, pesq, stoi, lsd_db.
    """
    config = config or EngineConfig()
    decoder = Staged(stages_folder(config.home), config, predictor)
    front_end = FrontEnd()
    jobs = [(line, voice, speeds[i % len(speeds)]) for i, line in enumerate(lines) for voice in voices]
    rows = []
    for line, name, speed in tqdm(jobs, desc="judged", disable=not progress):
        voice = load_voice(name)
        language = "en-gb" if name.startswith("b") else "en-us"
        for segment in front_end.segments(line, language, lambda _: None):
            style = voice.style(len(segment.token_ids))
            exact, predicted = (
                np.concatenate(list(decoder.decode(segment.token_ids, style, speed, predicted=p).blocks))
                for p in (False, True)
            )
            rows.append(
                {"voice": name, "speed": speed, "audio_s": len(exact) / 24_000} | _scores(exact, predicted)
            )
    return pd.DataFrame(rows)


def _scores(reference: Values, candidate: Values) -> dict[str, float]:
    return {
        "pesq": pesq_wb(reference, candidate, 24_000),
        "stoi": stoi(reference, candidate, 24_000),
        "lsd_db": log_spectral_distance_db(reference, candidate, 24_000),
    }


def read_corpus(path: Path) -> Iterator[str]:
    """The lines of a text file that are not empty."""
    for line in path.read_text("utf-8").splitlines():
        if line.strip():
            yield line.strip()


def predictor_for(
    lines: Sequence[str],
    voices: Sequence[str],
    folder: Path,
    *,
    training: str = "",
    minutes: float = 0.0,
    seed: int = 1,
    rank: int = 64,
    ridge: float = 100.0,
) -> StatisticsPredictor:
    """The predictor to judge: a fit on the training set that is named or made, else the one that ships."""
    if not training and not minutes:
        return StatisticsPredictor.load()
    if training:
        rows = TrainingSet.load(Path(training))
    else:
        rows = make_training_set(lines, voices, folder / "training.npz", minutes=minutes, seed=seed)
    plain = {
        part.name for name in set(rows.voices) for part in (load_voice(p) for p in load_voice(name).parts)
    }
    return StatisticsPredictor.fit(rows.inputs, rows.targets, plain, rank=rank, ridge=ridge)


def checks_of(table: pd.DataFrame) -> list[Check]:
    """Limits on a judgement: whole sentences, and apart from them utterances under 2.5 s."""
    short = table[table.audio_s < SHORT_S]
    checks = [
        Check("pesq_mean", table.pesq.mean(), low=PESQ_MEAN_LOW),
        Check("pesq_p5", table.pesq.quantile(0.05), low=PESQ_P5_LOW),
        Check("stoi_mean", table.stoi.mean(), low=STOI_MEAN_LOW),
    ]
    if len(short):
        checks.append(Check("pesq_mean_under_2500_ms", short.pesq.mean(), low=PESQ_SHORT_MEAN_LOW))
    return checks
