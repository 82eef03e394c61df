"""Is anything slower, or larger, than it was? Against golden bands, as ratios to a reference inference.

A time says what a machine was doing. Ours ÷ that of a reference inference, timed right beside it, stays when
the machine is busy or another one of its kind; see `bench.reference` for why it is the published graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from scipy.stats import binom
from tqdm import tqdm

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.fresh_process import FIRST_TEXT, TEXT, What, started
from kokoro_lab.lab.bench.reference import Inference, Reference
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.bench.trial import Listener, Trial
from kokoro_lab.lab.gates.performance_bands import (
    FIGURES,
    Band,
    Kind,
    band_for,
    read_bands,
    require_trials,
    required,
)
from kokoro_lab.lab.results import Check
from kokoro_lab.speech.engine import Engine

OVER_BAND = 1.10
"""Slower or larger than the band by more than a tenth is a failure."""
SURE = 0.85
"""The low end of an interval must be at least this much of its median: over what is noisier, nearly anything
passes. In quiet it is 0.91 to 0.99 of 20 trials; a new process's start had 0.73 to 0.96 in 7 or 12."""
MOST = "over_band_most_ratio"
TEXTS = {"short": FIRST_TEXT, "medium": TEXT}


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some ratios, and the interval that holds the true one 95 times of 100."""

    ratio: float
    low: float
    high: float
    trials: int


def measure(
    engine: Engine, reference: Reference, voice: str, trials: int, starts: int, *, progress: bool = True
) -> pd.DataFrame:
    """Everything: `measure_speech`, then `measure_starts`."""
    speech = measure_speech(engine, reference, voice, trials, progress=progress)
    return pd.concat([speech, measure_starts(engine.config.variant, starts, progress=progress)])


def measure_speech(
    engine: Engine,
    reference: Reference,
    voice: str,
    trials: int,
    *,
    warm: bool = True,
    progress: bool = True,
) -> pd.DataFrame:
    """Time to first audio of two texts, and the real-time factor of one, each beside a reference inference.

    Uncached. Ours and the reference take turns, and who comes first changes from trial to trial. With `warm`
    all of it is run once before.

    Returns
    -------
    pandas.DataFrame
        A row a figure and trial: figure, trial, ours, reference (s, or real-time factors), ratio.

    Raises
    ------
    ParameterError
        Fewer than one trial.
    """
    _require_some("trials", trials)
    speaker = InProcess(engine, voice, cached=False)
    if warm:
        reference.infer()
        for text in TEXTS.values():
            speaker.speak(text, Listener())
    rows = []
    for trial in tqdm(range(trials), desc="trials", disable=not progress):
        for length, text in TEXTS.items():
            ours, beside = _beside(speaker, text, reference, ours_first=trial % 2 == 0)
            rows.append(_row(f"ttfa_{length}", trial, ours.ttfa_s, beside.seconds))
            if length == "medium":
                rows.append(_row("rtf_medium", trial, ours.rtf, beside.rtf))
    return pd.DataFrame(rows)


def measure_starts(variant: str, starts: int, *, progress: bool = True) -> pd.DataFrame:
    """Seconds to the first sound of a new process, and its memory, ours and the reference by turns.

    Returns
    -------
    pandas.DataFrame
        As `measure_speech`: figures start_up (s) and memory (MB).
    """
    _require_some("starts", starts)
    rows = []
    for trial in tqdm(range(starts), desc="starts", disable=not progress):
        order: tuple[What, What] = ("engine", "reference") if trial % 2 == 0 else ("reference", "engine")
        found = {what: started(what, variant) for what in order}
        ours, beside = found["engine"], found["reference"]
        rows.append(_row("start_up", trial, ours.start_s, beside.start_s))
        rows.append(_row("memory", trial, ours.rss_mb, beside.rss_mb))
    return pd.DataFrame(rows)


def spread_of(ratios: Sequence[float]) -> Spread:
    """Median with its interval, from the ranks: no shape of the noise is taken for granted.

    Notes
    -----
    David and Nagaraja, Order Statistics (2003), 7.1: between the j-th smallest and the j-th largest of n
    values lies the true median unless fewer than j of n fair coins fall on one side. Of fewer than six values
    it is the smallest to the largest, which is less than 95 %.
    """
    ordered = sorted(ratios)
    beyond = max(int(binom.ppf(0.025, len(ordered), 0.5)) - 1, 0)
    return Spread(float(pd.Series(ordered).median()), ordered[beyond], ordered[-1 - beyond], len(ordered))


def spreads(table: pd.DataFrame) -> dict[str, Spread]:
    """Of each figure."""
    return {str(name): spread_of(list(rows.ratio)) for name, rows in table.groupby("figure", sort=False)}


def against(found: Mapping[str, Spread], band: Band) -> pd.DataFrame:
    """By figure: golden, ratio, low and high (95 %), trials, and how far over the band each is, at least.

    `over_at_least` is the low end ÷ golden: only what noise cannot explain.
    """
    rows = [
        {
            "figure": name,
            "golden": band.ratios[name],
            "ratio": of.ratio,
            "low": of.low,
            "high": of.high,
            "trials": of.trials,
            "over": of.ratio / band.ratios[name],
            "over_at_least": of.low / band.ratios[name],
        }
        for name, of in found.items()
    ]
    return pd.DataFrame(rows).set_index("figure")


def judge(found: Mapping[str, Spread], band: Band) -> list[Check]:
    """Each figure may be a tenth over its band; its interval must say so for it to fail, and be narrow enough
    to say anything: else repeat it in quiet, or with more trials."""
    checks = [Check("figures_count", len(set(FIGURES) & set(found)), low=len(FIGURES))]
    for name, row in against(found, band).iterrows():
        checks.append(Check(f"{name}_over_band_at_least_ratio", row.over_at_least, high=OVER_BAND))
        checks.append(Check(f"{name}_low_end_to_median_ratio", row.low / row.ratio, low=SURE))
    return checks


def band_before(kind: Kind, *, decides: bool, write: bool, trials: int, starts: int) -> Band | None:
    """What times are held against, before anything is timed: the band of this machine, or None where none
    decides. Where one is to be written it is what was there, or None.

    Raises
    ------
    ParameterError
        It decides, and there is none; or one is to be written of too few trials or starts.
    """
    if write:
        require_trials(trials, starts)
        return band_for(kind, read_bands())
    return required(kind, read_bands()) if decides else None


def judge_run(found: Mapping[str, Spread], band: Band | None, *, decides: bool) -> list[Check]:
    """`judge` where times decide, else `judge_structure`."""
    return judge(found, band) if decides and band is not None else judge_structure(found, read_bands())


def judge_structure(found: Mapping[str, Spread], bands: Sequence[Band]) -> list[Check]:
    """What must hold where times decide nothing: every figure was measured, and the bands can be read."""
    measured = [name for name in FIGURES if name in found and found[name].ratio > 0]
    return [
        Check("figures_count", len(measured), low=len(FIGURES)),
        Check("bands_count", len(bands), low=1),
    ]


def figures(table: pd.DataFrame, band: Band | None) -> dict[str, float]:
    """Ratios and what they are of; `over_band_most_ratio` only where there is a band."""
    found = spreads(table)
    over = {} if band is None else {MOST: float(against(found, band).over_at_least.max())}
    ratios = {f"{name}_to_reference_ratio": of.ratio for name, of in found.items()}
    medians = table.groupby("figure", sort=False).ours.median()
    units = {"ttfa_short": "s", "ttfa_medium": "s", "rtf_medium": "ratio", "start_up": "s", "memory": "mb"}
    return {
        **over,
        **ratios,
        **{f"{name}_median_{units[str(name)]}": float(value) for name, value in medians.items()},
    }


def changes(found: Mapping[str, Spread], before: Band | None) -> pd.DataFrame:
    """By figure: what the band was, what it would become, and by how many percent it moves."""
    rows = []
    for name, of in found.items():
        old = float("nan") if before is None else before.ratios[name]
        rows.append(
            {"figure": name, "before": old, "after": of.ratio, "change_percent": 100 * (of.ratio / old - 1)}
        )
    return pd.DataFrame(rows).set_index("figure")


def _beside(
    speaker: InProcess, text: str, reference: Reference, *, ours_first: bool
) -> tuple[Trial, Inference]:
    beside = None if ours_first else reference.infer()
    listener = Listener()
    listener.asks()
    speaker.speak(text, listener)
    ours = listener.trial(speaker.name, 0, len(text), streamed=True)
    return ours, beside or reference.infer()


def _row(figure: str, trial: int, ours: float, reference: float) -> dict[str, Any]:
    return {
        "figure": figure,
        "trial": trial,
        "ours": ours,
        "reference": reference,
        "ratio": ours / reference,
    }


def _require_some(name: str, value: int) -> None:
    if value < 1:
        raise ParameterError("Nothing would be measured.", field=name, value=value, allowed="1 or more")
