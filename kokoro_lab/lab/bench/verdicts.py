"""The server benchmarks with a verdict: `resume`, `load`, `lifecycle` and `soak`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from kokoro_lab.config import settings
from kokoro_lab.errors import GateFailed, ParameterError
from kokoro_lab.lab.bench import lifecycle, load_verdict, loading, resuming, soak_controls, soak_verdict
from kokoro_lab.lab.bench.own_server import StartServer, own_server
from kokoro_lab.lab.bench.plan import BenchPlan
from kokoro_lab.lab.bench.soak import SoakReading, foreign_sentences, measure_soak, readings_of
from kokoro_lab.lab.bench.texts import PRESETS, texts_of
from kokoro_lab.lab.results import Run, new_run_folder, open_run

LONG_TEXTS = 3
"""Number of texts of 1,000 characters, whose median RTF gives the machine's capacity."""
Measured = tuple[Iterator[str], Callable[[Run], object]]
"""The lines to print, and a function that takes a run, writes the verdict into it, and raises `GateFailed` if
a check failed."""


@dataclass(frozen=True, slots=True)
class BenchVerdict:
    """Whether a benchmark passed, where its result is, and the lines to print."""

    passed: bool
    path: Path
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerPlan(BenchPlan, ABC):
    """A benchmark of a server that ends in a verdict. Its results are in the folder `bench-<kind>`."""

    kind: ClassVar[str]

    @property
    def begins(self) -> str:
        """The line to print before the benchmark begins."""
        return "Starting the server."

    @abstractmethod
    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        """Start the server, and measure."""

    def texts(self, sentences: Sequence[str]) -> list[str]:
        """`trials` texts made of `sentences`; two texts may begin with the same sentence."""
        characters = PRESETS[self.preset]
        return list(texts_of(sentences, characters, self.trials, self.seed, own_beginnings=False))


class ResumePlan(ServerPlan):
    """Streams that are cut and resumed, half of them on a newly started server."""

    kind = "resume"

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        start = start or partial(own_server, self.server_settings)
        texts = self.texts(sentences)
        found = resuming.measure_resumes(start, texts, self.voice, seed=self.seed)
        return resuming.printed(found), lambda run: resuming.conclude(run, found, self.trials)


@dataclass(frozen=True, slots=True)
class LoadPlan(ServerPlan):
    """More and more listeners, each of whom hears one text after the other.

    Parameters
    ----------
    listeners : str
        Numbers of listeners, separated by commas; if it is empty, numbers around the machine's capacity are
        taken.
    seconds : float
        For how long each crowd listens.
    arrivals : str
        Shares of the machine's computing time, separated by commas, for crowds that come at random.
    """

    kind = "load"
    listeners: str = ""
    seconds: float = 60.0
    arrivals: str = ""

    def __post_init__(self) -> None:
        _ = self.crowds, self.shares  # refuses what is no number before a server is started

    @property
    def crowds(self) -> list[int]:
        return [int(count) for count in _numbers("--listeners", self.listeners, 1, loading.MOST_AT_ONCE)]

    @property
    def shares(self) -> list[float]:
        return _numbers("--arrivals", self.arrivals, 0.01, 2)

    @property
    def begins(self) -> str:
        crowds = len({1, *self.crowds}) if self.crowds else 7
        minutes = ((crowds + len(self.shares)) * (self.seconds + 8) + 60) / 60
        return f"Starting the server. It takes about {minutes:.0f} minutes."

    def load(self, sentences: Sequence[str], start: StartServer | None = None) -> loading.Load:
        # Admission is a part of the measurement
        own = {**self.server_settings, "capacity": settings().capacity}
        start = start or (lambda changed: own_server({**own, **changed}))
        texts, long_texts = self.texts(sentences), texts_of(sentences, PRESETS["long"], LONG_TEXTS, self.seed)
        readings, long_readings = (
            [SoakReading(f"{kind} {number}", text, self.voice) for number, text in enumerate(of)]
            for kind, of in ((self.preset, texts), ("long", long_texts))
        )
        return loading.measure_load(
            start, readings, long_readings, self.crowds, self.seconds, self.shares, self.seed
        )

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        found = self.load(sentences, start)
        return load_verdict.printed(found), lambda run: load_verdict.conclude(run, found)


def _numbers(field: str, given: str, low: float, high: float) -> list[float]:
    """The numbers in `given`, which are separated by commas; each must be from `low` to `high`."""
    with suppress(ValueError):
        found = [float(number) for number in given.split(",") if number.strip()]
        if all(low <= number <= high for number in found):
            return found
    allowed = f"numbers of {low:g} to {high:g}, with commas"
    raise ParameterError(f"{field} cannot be {given!r}.", field=field, value=given, allowed=allowed)


class LifecyclePlan(ServerPlan):
    """`trials` streams at once while the server is stopped, or crashes."""

    kind = "lifecycle"

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        # No degrade mode: with half of the slots, half of the listeners would wait for the others to end
        own = {**self.server_settings, "concurrency": self.trials, "capacity": self.trials, "degrade": "off"}
        start = start or (lambda settings: own_server({**own, **settings}))
        texts = self.texts(sentences)
        found = lifecycle.measure_lifecycle(start, texts, self.voice, seed=self.seed)
        return lifecycle.printed(found), lambda run: lifecycle.conclude(run, found, self.trials)


@dataclass(frozen=True, slots=True)
class SoakPlan(ServerPlan):
    """`concurrency` listeners at once; each asks for one text after the other, short and long ones.

    Parameters
    ----------
    minutes : float
        Length of the run in minutes.
    concurrency : int
        The number of listeners.
    pace : float
        Time in which a listener hears a stream, divided by the length of the stream.
    misbehave : bool
        Whether further clients come, which leave in mid-stream or stop reading.
    """

    kind = "soak"
    minutes: float = 20.0
    concurrency: int = 1
    pace: float = 1.0
    misbehave: bool = False

    @property
    def begins(self) -> str:
        return "Letting a server leak that must be caught, then starting the server."

    @property
    def at_once(self) -> int:
        return self.concurrency + self.misbehave

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        readings = readings_of(sentences, foreign_sentences(), self.voice, self.trials, self.seed)
        controls = soak_controls.controls()
        with (start or partial(own_server, self.server_settings))() as server:
            found = measure_soak(
                server,
                readings,
                self.minutes,
                concurrency=self.concurrency,
                pace=self.pace,
                misbehave=self.misbehave,
                seed=self.seed,
            )
        return soak_verdict.printed(found), lambda run: soak_verdict.conclude(run, found, controls)


SERVER_PLANS: Mapping[str, type[ServerPlan]] = {
    plan.kind: plan for plan in (ResumePlan, LoadPlan, LifecyclePlan, SoakPlan)
}
"""The plans by their kinds, which are the names of subcommands of `bench`."""


def judge(
    plan: ServerPlan,
    sentences: Sequence[str],
    start: StartServer | None = None,
    *,
    say: Callable[[str], None],
) -> BenchVerdict:
    """Carry out `plan`, and keep the verdict under `results/bench-<kind>/<run>/`.

    Parameters
    ----------
    plan : ServerPlan
    sentences : sequence of str
        The sentences of which the texts are made.
    start : callable, optional
        Gives the server; by default our own, with the real weights. For `load` and `lifecycle`, the function
        takes settings.
    say : callable
        Called with a line about each long step.
    """
    say(plan.begins)
    return concluded(plan.kind, asdict(plan), lambda: plan.measured(sentences, start))


def concluded(kind: str, asked: Mapping[str, object], measure: Callable[[], Measured]) -> BenchVerdict:
    """Call `measure`, and keep the verdict, with what was `asked` for, under
    `results/bench-<kind>/<run>/`."""
    name = f"bench-{kind}"
    run = open_run(name, new_run_folder(name), asked)
    lines, conclude = measure()
    passed, verdict = True, "passed"
    try:
        conclude(run)
    except GateFailed as failed:
        passed, verdict = False, f"FAILED: {failed}"
    return BenchVerdict(passed, run.folder / "result.json", (*lines, verdict, f"kept in {run.folder}"))
