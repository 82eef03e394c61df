"""Writes the result file of a benchmark, and formats its figures for printing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.lab.results import made_by

NOT_FIGURES = ["system", "text_number", "streamed"]
ENOUGH_FOR_P95 = 20

FIRST_AUDIO = "TTFA, peer / ours"
"""How many times sooner we are heard: higher is better for us."""
REAL_TIME = "RTF, ours / peer"
"""Lower is better for us. A peer that cuts silence away has less audio to divide by, and looks slower."""
COMPUTING = "computing, ours / peer"
"""Ratio of the seconds that a whole text takes; lower is better for us. Unlike RTF, it does not change if a
peer cuts silence away."""


def keep(
    folder: Path,
    trials: Sequence[Trial],
    *,
    asked: Mapping[str, Any],
    conditions: str,
    systems: Mapping[str, Mapping[str, Any]],
) -> Path:
    """Write `<folder>/result.json`: every trial, their summary, and what they were measured with.

    Parameters
    ----------
    folder : Path
        The folder of this run; made if it is not there.
    trials : sequence of Trial
        The trials of the run, one or more.
    asked : mapping
        The options of the benchmark: preset, voice and others.
    conditions : str
        The conditions of the measurement, in a sentence for readers.
    systems : mapping
        Name of a system that spoke → what it states about itself, such as model and number of threads. The
        first system is ours, with which the others are compared.
    """
    ours, *peers = systems
    compared = ratios(trials, ours).astype(float) if peers else None
    record = {
        "conditions": conditions,
        "asked": dict(asked),
        "systems": {name: dict(facts) for name, facts in systems.items()},
        "summary": {name: _summary(found).to_dict("index") for name, found in _by_system(trials)},
        "ratios": {} if compared is None else {peer: compared.loc[peer].to_dict("index") for peer in peers},
        "trials": [asdict(t) for t in trials],
        **made_by(),
    }
    path = folder / "result.json"
    write_json(path, record)
    return path


def printed(trials: Sequence[Trial], *, heading: str, ours: str) -> Iterator[str]:
    """The lines to print: for each system its figures and, if sampled, its memory; then the ratios."""
    yield heading
    systems = _by_system(trials)
    for name, found in systems:
        table = _summary(found)
        memory = table.index.str.startswith("rss_")
        yield f"\n{name}, {len(found)} trials"
        yield table[~memory].round(3).to_string()
        if memory.any():
            yield f"\n{name}, resident memory of its process in each trial"
            yield table[memory].round(1).to_string()
            grown_mb = found.rss_end_mb.iloc[-1] - found.rss_start_mb.iloc[0]
            yield f"from the start of the first trial to the end of the last: {grown_mb:+.1f} MB"
    if len(systems) > 1:
        yield "\nratios, text by text"
        yield ratios(trials, ours).round(3).to_string()
    if min(len(found) for _, found in systems) < ENOUGH_FOR_P95:
        yield f"\np95 of fewer than {ENOUGH_FOR_P95} trials is nearly the maximum; --trials takes more."


def ratios(trials: Sequence[Trial], ours: str) -> pd.DataFrame:
    """Ratios of every other system to `ours`, text by text: the median and the spread.

    A time depends on the machine and its other work. The ratio of two measurements of one text, taken one
    right after the other, depends only on the two systems.

    Parameters
    ----------
    trials : sequence of Trial
        The trials of one run; every system must have spoken every text once.
    ours : str
        Name of the system that the others are compared with.

    Returns
    -------
    pandas.DataFrame
        A row for each peer and each of the three ratios; columns p5, p50, p95, min, max and texts.

    Raises
    ------
    ParameterError
        A text was not spoken by every system, so the ratio would compare different texts.
    """
    spoken = {name: found.set_index("text_number") for name, found in _by_system(trials)}
    texts = {trial.text_number for trial in trials}
    mine = spoken.pop(ours)
    rows = {}
    for peer, theirs in spoken.items():
        if alone := sorted(texts - set(mine.index.intersection(theirs.index))):
            raise ParameterError(f"Texts {alone} were not spoken by both {ours} and {peer}.", field="trials")
        rows[peer, FIRST_AUDIO] = spread(theirs.ttfa_s / mine.ttfa_s)
        rows[peer, REAL_TIME] = spread(mine.rtf / theirs.rtf)
        rows[peer, COMPUTING] = spread(mine.wall_s / theirs.wall_s)
    return pd.DataFrame(rows).T.astype({"texts": int})


def spread(of: pd.Series) -> dict[str, float]:
    """Median, least, most, and the 5th and 95th percentile. With fewer than 20 values, these percentiles are
    nearly the least and the most."""
    return {
        "p5": of.quantile(0.05),
        "p50": of.median(),
        "p95": of.quantile(0.95),
        "min": of.min(),
        "max": of.max(),
        "texts": len(of),
    }


def _by_system(trials: Sequence[Trial]) -> list[tuple[str, pd.DataFrame]]:
    """The trials of each system, a row each, in the order in which the systems first spoke."""
    table = pd.DataFrame([asdict(trial) for trial in trials])
    return [(str(name), found) for name, found in table.groupby("system", sort=False)]


def _summary(found: pd.DataFrame) -> pd.DataFrame:
    """Median, 95th percentile, least and most of each figure that was measured.

    With fewer than 20 trials, p95 is nearly the most.
    """
    table = found.drop(columns=NOT_FIGURES).dropna(axis="columns", how="all")
    return pd.DataFrame(
        {"p50": table.median(), "p95": table.quantile(0.95), "min": table.min(), "max": table.max()}
    )
