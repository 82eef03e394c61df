"""Benchmarks of the server that pass or fail: resumed streams, many at once, a server that ends, a soak."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from kokoro_lab.errors import GateFailed, ParameterError
from kokoro_lab.lab.bench import lifecycle, loading, resuming, soak_controls, soak_verdict
from kokoro_lab.lab.bench.own_server import StartServer, own_server
from kokoro_lab.lab.bench.plan import BenchPlan
from kokoro_lab.lab.bench.soak import foreign_sentences, measure_soak, readings_of
from kokoro_lab.lab.bench.texts import PRESETS, texts_of
from kokoro_lab.lab.results import Run, new_run_folder, open_run

Measured = tuple[Iterator[str], Callable[[Run], object]]
"""What to show to a person, and what writes the verdict, or raises `GateFailed` behind it."""


@dataclass(frozen=True, slots=True)
class BenchVerdict:
    """Whether it passed, where it is kept, and what to show to a person."""

    passed: bool
    path: Path
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ServerPlan(BenchPlan, ABC):
    """A benchmark that ends in a verdict, and whose results are in a folder of its kind."""

    kind: ClassVar[str]
    begins: ClassVar[str] = "Starting the server."

    @abstractmethod
    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        """Start the server, and measure."""

    def texts(self, sentences: Sequence[str]) -> list[str]:
        """`trials` of them; their beginnings may recur."""
        characters = PRESETS[self.preset]
        return list(texts_of(sentences, characters, self.trials, self.seed, own_beginnings=False))


class ResumePlan(ServerPlan):
    """Streams that are cut and resumed, half of them on a server that was started in between."""

    kind = "resume"

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        start = start or partial(own_server, self.server_settings)
        texts = self.texts(sentences)
        found = resuming.measure_resumes(start, texts, self.voice, seed=self.seed)
        return resuming.printed(found), lambda run: resuming.conclude(run, found, self.trials)


@dataclass(frozen=True, slots=True)
class LoadPlan(ServerPlan):
    """`concurrency` streams at once, and what becomes meanwhile of those who come too."""

    kind = "load"

    def __post_init__(self) -> None:
        if self.trials % self.concurrency:
            raise ParameterError(
                f"--trials is a multiple of --concurrency: {self.trials} texts make no whole rounds of "
                f"{self.concurrency}.",
                field="--trials",
            )

    def measured(self, sentences: Sequence[str], start: StartServer | None) -> Measured:
        places = {"concurrency": self.concurrency, "queue": 0}
        with (start or partial(own_server, {**self.server_settings, **places}))() as server:
            texts = self.texts(sentences)
            found = loading.measure_load(server, texts, self.voice, self.concurrency)
        return loading.printed(found), lambda run: loading.conclude(run, found, self.trials, self.concurrency)


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
    """`concurrency` listeners who ask for one text after the other, of all lengths.

    Parameters
    ----------
    minutes : float
        For how long.
    pace : float
        Share of a stream's length that they take to hear it.
    misbehave : bool
        Whether others come who leave in mid-stream or stop reading.
    """

    kind = "soak"
    begins = "Letting a server leak that must be caught, then starting the server."
    minutes: float = 20.0
    pace: float = 1.0
    misbehave: bool = False

    @property
    def listeners(self) -> int:
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
"""By their kinds, the names of the subcommands of `bench`."""


def judge(
    plan: ServerPlan,
    sentences: Sequence[str],
    start: StartServer | None = None,
    *,
    say: Callable[[str], None],
) -> BenchVerdict:
    """Measure, and keep the verdict under `results/bench-<kind>/<run>/`.

    Parameters
    ----------
    plan : ServerPlan
    sentences : sequence of str
        What the texts are made of.
    start : callable, optional
        Gives the server; our own on the real weights unless given. For `lifecycle` it takes settings.
    say : callable
        Told in a line each what takes its time.
    """
    say(plan.begins)
    return concluded(plan.kind, asdict(plan), lambda: plan.measured(sentences, start))


def concluded(kind: str, asked: Mapping[str, object], measure: Callable[[], Measured]) -> BenchVerdict:
    """Measure, and keep the verdict, with what was `asked` for, under `results/bench-<kind>/<run>/`."""
    name = f"bench-{kind}"
    run = open_run(name, new_run_folder(name), asked)
    lines, conclude = measure()
    passed, verdict = True, "passed"
    try:
        conclude(run)
    except GateFailed as failed:
        passed, verdict = False, f"FAILED: {failed}"
    return BenchVerdict(passed, run.folder / "result.json", (*lines, verdict, f"kept in {run.folder}"))
