"""Runs benchmarks of the engine that is being served, on request or at intervals, while it is idle."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from kokoro_lab.errors import KokoroLabError
from kokoro_lab.server.health import background
from kokoro_lab.server.openapi.request_schema import describe_voice
from kokoro_lab.server.openapi.schemas import Whole
from kokoro_lab.server.requests.slots import Slots

if TYPE_CHECKING:
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)


class BenchmarkRequest(BaseModel):
    """A benchmark on the engine that is being served, spoken while nobody else is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=describe_voice)

    preset: Literal["short", "medium", "long", "article"] = "medium"
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
    scheduled: bool = Field(False, description="Whether it was begun by the server itself")
    reason: str | None = None


class BenchmarkSchedule(BaseModel):
    """Benchmarks that the server begins by itself."""

    interval_s: float
    next_in_s: float
    begun: int
    skipped: int = Field(description="Benchmarks not begun, to disturb no request")
    last_skip: str | None = Field(description="Why the last one was not begun")


class Benchmarks:
    """Runs at most one benchmark at a time in the background, and speaks only while no request is served.

    Parameters
    ----------
    engine : Engine
    slots : Slots
        Show whether requests are being served.

    Attributes
    ----------
    schedule : Schedule or None
        Begins benchmarks at intervals; None without an interval.
    current : BenchmarkState or None
        The benchmark under way, or the last one of this server.
    """

    def __init__(self, engine: Engine, slots: Slots) -> None:
        self.schedule: Schedule | None = None
        self._engine = engine
        self.slots = slots
        self._lock = threading.Lock()
        self.current: BenchmarkState | None = None

    def begin(self, asked: BenchmarkRequest, voice: str, *, scheduled: bool = False) -> BenchmarkState | None:
        """Begin a benchmark; returns None if one is under way already."""
        with self._lock:
            if self.current is not None and self.current.state in ("waiting", "running"):
                return None
            from kokoro_lab.lab.results import new_run_folder  # loads ONNX Runtime: not before the fork

            folder = new_run_folder("bench")
            self.current = state = BenchmarkState(
                run_id=folder.name,
                state="waiting",
                preset=asked.preset,
                trials=asked.trials,
                finished_trials=0,
                disturbed=0,
                scheduled=scheduled,
            )
        arguments = (folder, state, voice)
        threading.Thread(target=self._run, args=arguments, name="benchmark", daemon=True).start()
        return state

    def _run(self, folder: Path, state: BenchmarkState, voice: str) -> None:
        try:
            self._measure(folder, state, voice)
        except Exception as error:
            known = isinstance(error, KokoroLabError)
            state.reason = str(error) if known else f"{type(error).__name__}; the log says more."
            state.state = "failed"
            log.error("The benchmark %s failed: %s", state.run_id, state.reason, exc_info=not known)
        else:
            state.state = "finished"

    def _measure(self, folder: Path, state: BenchmarkState, voice: str) -> None:
        # Here, and not above: these load pandas and the engine, which no request needs
        from kokoro_lab.lab.bench import report
        from kokoro_lab.lab.bench.texts import PRESETS, fixture_sentences, texts_of
        from kokoro_lab.lab.bench.timing import InProcess, measure_considerately

        def wait() -> None:
            state.state = "waiting"
            background.wait_until_idle(self.slots)
            state.state = "running"

        def done(count: int) -> None:
            state.finished_trials = count

        texts = list(texts_of(fixture_sentences(), PRESETS[state.preset], state.trials))
        speaker = InProcess(self._engine, voice, cached=False)
        trials, state.disturbed = measure_considerately(
            speaker, texts, wait=wait, wanted=lambda: not self.slots.idle(), done=done
        )
        report.keep(
            folder,
            trials,
            asked={
                "preset": state.preset,
                "trials": state.trials,
                "voice": voice,
                "streamed": True,
                "scheduled": state.scheduled,
            },
            conditions="warm, uncached, one at a time, in the server's process while nobody was served; "
            f"{state.disturbed} trials were given up for live requests and begun again",
            systems={speaker.name: speaker.facts()},
        )


ASKED = BenchmarkRequest(preset="medium", trials=5)
"""The options of every scheduled benchmark, always the same, so that results can be compared."""
WARMING, LIVE, ANOTHER = (
    "the server was warming up",
    "somebody was being served",
    "another benchmark was under way",
)


class Schedule:
    """Begins one benchmark in each interval, unless that would disturb a request; a skipped one is not made
    up for.

    Parameters
    ----------
    benchmarks : Benchmarks
        Runs the benchmarks. If a request comes, the trial is given up and repeated later.
    voice : str
        The voice that speaks.
    interval_s : float
        Seconds from one attempt to the next, above 0.
    ready : callable
        Returns whether the server's warm-up is over.
    """

    def __init__(
        self,
        benchmarks: Benchmarks,
        voice: str,
        interval_s: float,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._benchmarks = benchmarks
        self._voice = voice
        self._ready = ready
        self._state = BenchmarkSchedule(
            interval_s=interval_s, next_in_s=interval_s, begun=0, skipped=0, last_skip=None
        )
        self._next_s = time.monotonic() + interval_s
        self._over = threading.Event()

    @property
    def state(self) -> BenchmarkSchedule:
        """How many benchmarks were begun and skipped so far, and when the next one is due."""
        self._state.next_in_s = round(max(self._next_s - time.monotonic(), 0.0), 1)
        return self._state

    def start(self) -> threading.Thread:
        """Begin benchmarks from a thread of its own, the first one after an interval."""
        thread = threading.Thread(target=self._run, name="benchmark-schedule", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Begin no further benchmark. One under way continues."""
        self._over.set()

    def take_turn(self) -> bool:
        """Begin a benchmark now, unless that would disturb a request; returns whether it began."""
        reason = self._obstacle()
        if reason is None:
            self._state.begun += 1
            return True
        self._state.skipped += 1
        self._state.last_skip = reason
        log.info("A scheduled benchmark was skipped: %s", reason)
        return False

    def _run(self) -> None:
        while not self._over.wait(self._state.interval_s):
            self._next_s = time.monotonic() + self._state.interval_s
            self.take_turn()

    def _obstacle(self) -> str | None:
        """The reason why no benchmark can begin; None if it has begun."""
        if not self._ready():
            return WARMING
        if not self._benchmarks.slots.idle(background.QUIET_S):
            return LIVE
        try:
            state = self._benchmarks.begin(ASKED, self._voice, scheduled=True)
        except (KokoroLabError, OSError) as error:  # there is no folder for results, or it cannot be written
            return str(error)
        return ANOTHER if state is None else None
