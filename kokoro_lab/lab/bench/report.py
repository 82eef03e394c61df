"""What a benchmark leaves behind, and what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.lab.bench.ratios import ratios
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.lab.results import write_json
from kokoro_lab.native.toolchain import toolchain
from kokoro_lab.provenance import git_state, machine, versions

NOT_FIGURES = ["system", "text_number", "streamed"]
ENOUGH_FOR_P95 = 20


def summary(trials: Sequence[Trial]) -> pd.DataFrame:
    """Median, 95th percentile, least and most of each figure that was measured.

    Of fewer than 20 trials, p95 is nearly the most.
    """
    table = (
        pd.DataFrame([asdict(t) for t in trials]).drop(columns=NOT_FIGURES).dropna(axis="columns", how="all")
    )
    return pd.DataFrame(
        {
            "p50": table.median(),
            "p95": table.quantile(0.95),
            "min": table.min(),
            "max": table.max(),
        }
    )


def by_system(trials: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The trials of each system, in the order in which the systems first spoke."""
    found: dict[str, list[Trial]] = {}
    for trial in trials:
        found.setdefault(trial.system, []).append(trial)
    return found


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
        Of this run; made if it is not there.
    trials : sequence of Trial
        At least one.
    asked : mapping
        What was asked for: preset, voice and the other options.
    conditions : str
        What a reader must know to believe the figures.
    systems : mapping
        Facts of every system by its name. The first one is ours; ratios are to it.
    """
    ours, *peers = systems
    compared = ratios(trials, ours) if peers else None
    record = {
        "conditions": conditions,
        "asked": dict(asked),
        "systems": {name: dict(facts) for name, facts in systems.items()},
        "summary": {name: _rows(summary(found)) for name, found in by_system(trials).items()},
        "ratios": {} if compared is None else {peer: _rows(compared.loc[peer]) for peer in peers},
        "trials": [asdict(t) for t in trials],
        "versions": versions(),
        "toolchain": toolchain(),
        "git": git_state(),
        "machine": machine(),
    }
    path = folder / "result.json"
    write_json(path, record)
    return path


def _rows(table: pd.DataFrame) -> dict[str, dict[str, float]]:
    return {str(name): {str(k): float(v) for k, v in row.items()} for name, row in table.iterrows()}


def printed(trials: Sequence[Trial], *, heading: str, ours: str) -> Iterator[str]:
    """The figures as a person reads them: a table a system, then memory, then ratios."""
    yield heading
    systems = by_system(trials)
    for name, found in systems.items():
        table = summary(found)
        memory = table.index.str.startswith("rss_")
        yield f"\n{name}, {len(found)} trials"
        yield table[~memory].round(3).to_string()
        if memory.any():
            yield f"\n{name}, resident memory of its process in each trial"
            yield table[memory].round(1).to_string()
            grown_mb = found[-1].rss_end_mb - found[0].rss_start_mb
            yield f"from the start of the first trial to the end of the last: {grown_mb:+.1f} MB"
    if len(systems) > 1:
        yield "\nratios, text by text"
        yield ratios(trials, ours).round(3).to_string()
    if min(len(found) for found in systems.values()) < ENOUGH_FOR_P95:
        yield f"\np95 of fewer than {ENOUGH_FOR_P95} trials is nearly the maximum; --trials takes more."
