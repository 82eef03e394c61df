"""Benchmarks of the server that pass or fail: resumed streams, many at once, a soak, a server that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.bench import lifecycle, loading, resuming, soak_verdict
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.plan import BenchPlan
from kokoro_lab.lab.bench.soak import foreign_sentences, measure_soak, readings_of
from kokoro_lab.lab.bench.texts import PRESETS, texts_of
from kokoro_lab.lab.results import Run, new_run_folder, open_run

StartServer = Callable[..., AbstractContextManager[OwnServer]]


@dataclass(frozen=True, slots=True)
class BenchVerdict:
    """Whether it passed, where it is kept, and what to show to a person."""

    passed: bool
    path: Path
    lines: tuple[str, ...]


def judge(
    plan: BenchPlan,
    sentences: Sequence[str],
    start: StartServer | None = None,
    *,
    progress: bool = True,
    say: Callable[[str], None],
) -> BenchVerdict:
    """Measure, and keep the verdict under `results/bench-<kind>/<run>/`, with the kind in `plan.judged`.

    Parameters
    ----------
    plan : BenchPlan
        With one of `JUDGED`.
    sentences : sequence of str
        What the texts are made of.
    start : callable, optional
        Gives the server; our own on the real weights unless given. For `lifecycle` it takes settings.
    progress : bool
        Whether to show a bar.
    say : callable
        Told in a line each what takes its time.
    """
    name = f"bench-{plan.judged}"
    run = open_run(name, new_run_folder(name), asdict(plan))
    lines: Iterator[str]
    conclude: Callable[[], object]
    if plan.soak_minutes is not None:
        readings = readings_of(sentences, foreign_sentences(), plan.voice, plan.trials, plan.seed)
        say("Letting a server leak that must be caught.")
        controls = soak_verdict.controls()
        say("Starting the server.")
        with (start or partial(own_server, plan.server_settings))() as server:
            soak = measure_soak(
                server,
                readings,
                plan.soak_minutes,
                concurrency=plan.concurrency,
                pace=plan.pace,
                misbehave=plan.misbehave,
                seed=plan.seed,
                progress=progress,
            )
        lines = soak_verdict.printed(soak)
        conclude = partial(soak_verdict.conclude, run, soak, controls)
        return _judged(run, lines, conclude)
    texts = list(texts_of(sentences, PRESETS[plan.preset], plan.trials, plan.seed, own_beginnings=False))
    say("Starting the server.")
    if plan.resume:
        start = start or partial(own_server, plan.server_settings)
        resumes = resuming.measure_resumes(start, texts, plan.voice, seed=plan.seed, progress=progress)
        lines = resuming.printed(resumes)
        conclude = partial(resuming.conclude, run, resumes, plan.trials)
    elif plan.lifecycle:
        # No degrade mode: with half of the slots, half of the listeners would wait for the others to end
        own = {**plan.server_settings, "concurrency": plan.trials, "degrade": "off"}
        start = start or (lambda settings: own_server({**own, **settings}))
        found = lifecycle.measure_lifecycle(start, texts, plan.voice, seed=plan.seed, progress=progress)
        lines = lifecycle.printed(found)
        conclude = partial(lifecycle.conclude, run, found, plan.trials)
    else:
        start = start or partial(own_server, {**plan.server_settings, "queue": 0})
        with start() as server:
            load = loading.measure_load(server, texts, plan.voice, plan.concurrency, progress=progress)
        lines = loading.printed(load)
        conclude = partial(loading.conclude, run, load, plan.trials, plan.concurrency)
    return _judged(run, lines, conclude)


def _judged(run: Run, lines: Iterator[str], conclude: Callable[[], object]) -> BenchVerdict:
    passed, verdict = True, "passed"
    try:
        conclude()
    except GateFailed as failed:
        passed, verdict = False, f"FAILED: {failed}"
    kept = run.folder / "result.json"
    return BenchVerdict(passed, kept, (*lines, verdict, f"kept in {run.folder}"))
