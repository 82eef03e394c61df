"""What a benchmark leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kokoro_lab.bench.timing import Trial, summary
from kokoro_lab.engine import Engine
from kokoro_lab.provenance import git_state, machine, versions
from kokoro_lab.results import new_run_folder, write_json

CONDITIONS = "warm engine, uncached, distinct texts, one at a time"


def keep(
    engine: Engine, trials: Sequence[Trial], *, preset: str, voice: str, streamed: bool
) -> tuple[Path, dict[str, Any]]:
    """Write `results/bench/<time>.json`: every trial, their summary, and the conditions.

    Returns
    -------
    tuple
        The path, and what was written.
    """
    record = {
        "preset": preset,
        "streamed": streamed,
        "voice": voice,
        "conditions": CONDITIONS,
        "variant": engine.config.variant,
        "model_sha256": engine.model_sha256,
        "requested_provider": engine.config.provider,
        "active_provider": engine.active_provider,
        "threads": engine.config.thread_count,
        "summary": {str(name): dict(row) for name, row in summary(trials).iterrows()},
        "trials": [asdict(t) for t in trials],
        "versions": versions(),
        "git": git_state(),
        "machine": machine(),
    }
    path = new_run_folder("bench").with_suffix(".json")
    write_json(path, record)
    return path, record
