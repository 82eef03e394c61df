"""Measured costs of a segment on each provider of this machine, kept in `<home>/provider_costs.json`.

    {"format": 1,
     "entries": [{"conditions": {...}, "measured_at_s": ..., "costs": {"cpu": [[20, 0.09], ...]}}, ...]}

An entry is used for a limited time, and only under the conditions in which it was measured: the same weights,
ONNX Runtime, system, processor and options.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, FiniteFloat, PositiveFloat, PositiveInt

from kokoro_lab.containers.plain_json import FileModel, write_json
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.provenance import machine, versions
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.weights.store import weights_home

FILE = "provider_costs.json"
MOST_ENTRIES = 16
"""The most entries of the file. The oldest are removed: they are of weights, versions and options that are no
longer used."""
NOT_CONDITIONS = ("provider", "provider_choice", "cost_ttl_s", "first_audio_ttl_s", "next_threads")
"""Options that do not change the cost of a provider, or that choose one."""


class CostCacheError(KokoroLabError):
    """The file of measured costs cannot be read, or holds something else."""

    code = "cost_cache"


@dataclass(frozen=True, slots=True)
class SegmentCost:
    """Seconds to decode a segment, by its length.

    Parameters
    ----------
    points : tuple of (int, float)
        Token ids and seconds, as measured, the shortest first; one at least.
    """

    points: tuple[tuple[int, float], ...]

    def seconds(self, token_count: int) -> float:
        """Seconds for a segment, interpolated between the two nearest measured lengths; beyond the longest,
        in proportion to its length."""
        lengths, seconds = zip(*self.points, strict=True)
        beyond = max(1.0, token_count / float(lengths[-1]))
        return float(np.interp(token_count, lengths, seconds)) * beyond


Points = tuple[tuple[PositiveInt, PositiveFloat], ...]
"""Token ids of a segment, and seconds."""
Conditions = Mapping[str, Any]
"""The conditions of a measured cost; if any of them differs, the cost is not used."""


def conditions_here(config: EngineConfig, model_sha256: str) -> Conditions:
    """The conditions of an engine with this configuration on this machine."""
    found = machine()
    options = {k: v for k, v in recorded_options(config).items() if k not in NOT_CONDITIONS}
    return {
        "model_sha256": model_sha256,
        "onnxruntime": versions()["onnxruntime"],
        "system": str(found["system"]),
        "cpu": f"{found['cpu']}, {found['cores']} cores",
        "options": json.loads(json.dumps(options, default=str)),  # as it is read from the file
    }


@dataclass(frozen=True, slots=True)
class BelievedCosts:
    """The costs that are still valid, by provider; or none, and the reason why they must be measured."""

    costs: Mapping[str, SegmentCost]
    reason: str


def _rising(points: Points) -> Points:
    lengths = [count for count, _ in points]
    if lengths != sorted(set(lengths)):
        raise ValueError("lengths do not rise")
    return points


class CostEntry(FileModel):
    """Costs that were measured under the same conditions, and the time of the measurement in seconds since
    1970."""

    conditions: dict[str, Any]
    measured_at_s: FiniteFloat
    costs: dict[str, Annotated[Points, Field(min_length=1), AfterValidator(_rising)]]


class CostFile(FileModel):
    """The content of the file of measured costs."""

    format: Literal[1] = 1
    entries: list[CostEntry]


class CostCache:
    """The file of costs in a home folder.

    Parameters
    ----------
    home : Path, optional
        `Settings.home` unless given.
    ttl_s : float
        For how many seconds an entry is used; with 0, none is.
    """

    def __init__(self, home: Path | None, ttl_s: float) -> None:
        self.path = weights_home(home) / FILE
        self._ttl_s = ttl_s

    def find(self, conditions: Conditions, now_s: float | None = None) -> BelievedCosts:
        """The costs measured under `conditions`.

        Raises
        ------
        CostCacheError
            The file is damaged. The next `keep` replaces it.
        """
        now_s = time.time() if now_s is None else now_s
        entries = self._read()
        if not entries:
            return BelievedCosts({}, "nothing was measured before")
        for entry in entries:
            if entry.conditions == conditions:
                age_s = now_s - entry.measured_at_s
                if not 0 <= age_s < self._ttl_s:
                    return BelievedCosts({}, f"measured {age_s:.0f} s ago, believed for {self._ttl_s:.0f} s")
                costs = {name: SegmentCost(points) for name, points in entry.costs.items()}
                return BelievedCosts(costs, f"measured {age_s:.0f} s ago")
        latest = max(entries, key=lambda entry: entry.measured_at_s).conditions
        changed = [name for name in conditions if latest.get(name) != conditions[name]]
        return BelievedCosts({}, f"measured with another {' and another '.join(changed)}")

    def keep(
        self, conditions: Conditions, costs: Mapping[str, SegmentCost], now_s: float | None = None
    ) -> None:
        """Write `costs` to the file; they replace earlier costs under the same conditions.

        Raises
        ------
        OSError
            The folder cannot be written.
        """
        try:
            entries = self._read()
        except CostCacheError:
            entries = []
        entry = CostEntry(
            conditions=dict(conditions),
            measured_at_s=time.time() if now_s is None else now_s,
            costs={name: cost.points for name, cost in costs.items()},
        )
        kept = [entry, *(other for other in entries if other.conditions != conditions)][:MOST_ENTRIES]
        # If two processes start at once, the second one's file replaces the first one's: both are right
        write_json(self.path, CostFile(entries=kept).model_dump())

    def _read(self) -> list[CostEntry]:
        if not self.path.exists():
            return []
        mend = "It is measured anew and written over; nothing else is lost."
        return CostFile.read(self.path, CostCacheError, field="provider_costs", mend=mend).entries
