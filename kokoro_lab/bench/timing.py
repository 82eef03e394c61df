"""Time to first audio and real-time factor, over distinct texts of one length."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import pandas as pd
import psutil
from tqdm import tqdm

from kokoro_lab.bench.playout import play
from kokoro_lab.engine import Engine

PRESETS = {"short": 40, "medium": 140, "long": 1_000, "article": 10_000}
"""Characters a text, about."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One uncached synthesis of a text that the engine had not seen before."""

    characters: int
    streamed: bool
    ttfa_s: float
    rtf: float
    audio_s: float
    wall_s: float
    underruns: int
    late_s: float
    longest_gap_s: float
    rss_mb: float
    rss_growth_mb: float


def texts_of(sentences: Sequence[str], characters: int, count: int, seed: int = 0) -> Iterator[str]:
    """`count` distinct texts of about `characters`, drawn from `sentences`; short ones end at a word."""
    draw = random.Random(seed)
    for _ in range(count):
        text = ""
        while len(text) < characters:
            text += (" " if text else "") + draw.choice(sentences)
        if len(text) > 1.2 * characters:
            text = text[: characters + 1].rpartition(" ")[0].rstrip(",;:—- ") + "."
        yield text


def measure(
    engine: Engine, texts: Sequence[str], voice: str, *, streamed: bool = True, progress: bool = True
) -> list[Trial]:
    """Speak each text once, one after the other, on a warm engine.

    TTFA runs from the call to the first chunk of speech; of a file, to the whole clip.
    """
    engine.warm(voice)
    process = psutil.Process()
    trials = []
    for text in tqdm(texts, desc="trials", disable=not progress):
        before = process.memory_info().rss
        peak = before
        started = time.perf_counter()
        arrivals: list[float] = []
        lengths: list[float] = []
        if streamed:
            stream = engine.stream(text, voice=voice)
            for chunk in stream:
                arrivals.append(time.perf_counter() - started)
                lengths.append(chunk.duration_s)
                peak = max(peak, process.memory_info().rss)
            report = stream.report
        else:
            report = engine.synthesize(text, voice=voice).report
            peak = process.memory_info().rss
        playout = play(arrivals, lengths)
        trials.append(
            Trial(
                characters=len(text),
                streamed=streamed,
                ttfa_s=report.ttfa_s,
                rtf=report.rtf,
                audio_s=report.audio_s,
                wall_s=time.perf_counter() - started,
                underruns=playout.underruns,
                late_s=playout.late_s,
                longest_gap_s=playout.longest_gap_s,
                rss_mb=peak / 2**20,
                rss_growth_mb=(peak - before) / 2**20,
            )
        )
    return trials


def summary(trials: Sequence[Trial]) -> pd.DataFrame:
    """Median, 95th percentile, least and most of each figure. Under 20 trials p95 is nearly the most."""
    table = pd.DataFrame([asdict(t) for t in trials]).drop(columns=["streamed"])
    return pd.DataFrame(
        {
            "p50": table.median(),
            "p95": table.quantile(0.95),
            "min": table.min(),
            "max": table.max(),
        }
    )
