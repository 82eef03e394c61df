"""What is asked of `/benchmarks`, and what it answers, as models: see `schemas`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kokoro_lab.server.openapi.request_schema import describe_voice
from kokoro_lab.server.openapi.schemas import Answer, Whole

RUN_ID = r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$"

Preset = Literal["short", "medium", "long", "article"]


class BenchmarkRequest(BaseModel):
    """A benchmark on the engine that is being served, spoken while nobody else is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_voice)

    preset: Preset = "medium"
    trials: Annotated[int, Whole] = Field(5, ge=1, le=30, strict=True)
    voice: str | None = None


class BenchmarkState(BaseModel):
    """A benchmark under way, or the last one."""

    run_id: str
    state: Literal["waiting", "running", "finished", "failed"]
    preset: str
    trials: int
    finished_trials: int
    disturbed: int = Field(description="Trials that were given up for a live request, and begun again")
    scheduled: bool = Field(False, description="Whether the server began it by itself")
    reason: str | None = None


class BenchmarkSchedule(BaseModel):
    """Benchmarks that the server begins by itself."""

    interval_s: float
    next_in_s: float
    begun: int
    skipped: int = Field(description="Turns that would have disturbed somebody")
    last_skip: str | None = Field(description="Why the last one was skipped")


class BenchmarkRun(BaseModel):
    """A benchmark on disk."""

    run_id: str
    conditions: str
    asked: dict[str, Any]
    summary: dict[str, Any]


class SkippedRun(BaseModel):
    """A benchmark on disk that cannot be read, and why."""

    run_id: str
    reason: str


class BenchmarkRuns(BaseModel):
    """Benchmarks on disk, the latest first, and the one that this server began last."""

    runs: list[BenchmarkRun]
    skipped: list[SkippedRun] = Field(description="Those that cannot be read")
    current: BenchmarkState | None
    schedule: BenchmarkSchedule | None = Field(description="Null where none is begun at intervals")


class BenchmarkResult(Answer):
    """`result.json` of a benchmark."""

    run_id: str
    conditions: str
    asked: dict[str, Any]
    systems: dict[str, Any]
    summary: dict[str, Any]
    trials: list[dict[str, Any]]
    skipped: list[SkippedRun] = Field([], description="Of the latest: newer ones that cannot be read")
