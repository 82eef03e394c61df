"""What a benchmark leaves behind, and what it prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.lab.bench.ratios import ratios
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.lab.results import made_by, write_json

NOT_FIGURES = ["system", "text_number", "streamed"]
ENOUGH_FOR_P95 = 20


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
    """The figures as a person reads them: a table a system, then memory, then ratios."""
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


def _by_system(trials: Sequence[Trial]) -> list[tuple[str, pd.DataFrame]]:
    """The trials of each system, a row each, in the order in which the systems first spoke."""
    table = pd.DataFrame([asdict(trial) for trial in trials])
    return [(str(name), found) for name, found in table.groupby("system", sort=False)]


def _summary(found: pd.DataFrame) -> pd.DataFrame:
    """Median, 95th percentile, least and most of each figure that was measured.

    Of fewer than 20 trials, p95 is nearly the most.
    """
    table = found.drop(columns=NOT_FIGURES).dropna(axis="columns", how="all")
    return pd.DataFrame(
        {"p50": table.median(), "p95": table.quantile(0.95), "min": table.min(), "max": table.max()}
    )
