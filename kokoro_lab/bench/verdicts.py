"""Benchmarks of the server that pass or fail: resumed streams, many at once, and a server that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from kokoro_lab.bench import lifecycle, loading, resuming
from kokoro_lab.bench.own_server import OwnServer, own_server
from kokoro_lab.bench.plan import Plan
from kokoro_lab.bench.texts import PRESETS, texts_of
from kokoro_lab.errors import GateFailed
from kokoro_lab.results import new_run_folder, open_run

StartServer = Callable[..., AbstractContextManager[OwnServer]]


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether it passed, where it is kept, and what to show to a person."""

    passed: bool
    path: Path
    lines: tuple[str, ...]


def judge(
    plan: Plan,
    sentences: Sequence[str],
    start: StartServer | None = None,
    *,
    progress: bool = True,
    say: Callable[[str], None],
) -> Judged:
    """Measure, and keep the verdict under `results/bench-<kind>/<run>/`, with the kind in `plan.judged`.

    Parameters
    ----------
    plan : Plan
        With `resume`, `load` or `lifecycle`.
    sentences : sequence of str
        What the texts are made of.
    start : callable, optional
        Gives the server; our own on the real weights unless given. For `lifecycle` it takes settings.
    progress : bool
        Whether to show a bar.
    say : callable
        Told in a line each what takes its time.
    """
    texts = list(texts_of(sentences, PRESETS[plan.preset], plan.trials, plan.seed, own_beginnings=False))
    name = f"bench-{plan.judged}"
    run = open_run(name, new_run_folder(name), asdict(plan))
    say("Starting the server.")
    lines: Iterator[str]
    conclude: Callable[[], object]
    if plan.resume:
        start = start or partial(own_server, plan.server_settings)
        resumes = resuming.measure_resumes(start, texts, plan.voice, seed=plan.seed, progress=progress)
        lines = resuming.printed(resumes)
        conclude = partial(resuming.conclude, run, resumes, plan.trials)
    elif plan.lifecycle:
        own = {**plan.server_settings, "concurrency": plan.trials}
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
    passed, verdict = True, "passed"
    try:
        conclude()
    except GateFailed as failed:
        passed, verdict = False, f"FAILED: {failed}"
    kept = run.folder / "result.json"
    return Judged(passed, kept, (*lines, verdict, f"kept in {run.folder}"))
