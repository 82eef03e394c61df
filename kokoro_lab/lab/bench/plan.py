"""One benchmark from its options to its figures: what goes together, who speaks, under which conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from kokoro_lab.config import settings
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench import report
from kokoro_lab.lab.bench.memory import INTERVAL_S
from kokoro_lab.lab.bench.own_server import OverHttp, own_server
from kokoro_lab.lab.bench.peers import VARIANTS, load_kokoro_onnx
from kokoro_lab.lab.bench.texts import PRESETS, texts_of
from kokoro_lab.lab.bench.timing import InProcess, Speaker, measure
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.lab.results import new_run_folder
from kokoro_lab.speech.engine import Engine

JUDGED = {"resume": "resume", "load": "load", "lifecycle": "lifecycle", "soak_minutes": "soak"}
"""Kinds of benchmarks that end in a verdict, each with results in a folder of its own."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to measure, and how.

    Parameters
    ----------
    preset : str
        Length of the texts, one of `PRESETS`.
    trials : int
        How many texts.
    streamed : bool
        As streams, or as whole files.
    voice : str
        A name, or a blend.
    variant : str, optional
        Precision of the weights; None takes what the environment says.
    concurrency : int
        Texts spoken at a time.
    chunk_ms : int, optional
        Length of a chunk, 30 to 120 ms; None takes the engine's own.
    memory : bool
        Whether to sample resident memory.
    profile_interval_s : float, optional
        How often; None takes `memory.INTERVAL_S`.
    listen_s : float, optional
        Seconds of speech after which the listener hangs up; None hears every text to its end.
    save_audio : bool
        Whether to keep each trial as a WAV file.
    http : bool
        Through our server and the loopback, instead of as a library.
    peers : bool
        Whether kokoro-onnx speaks the same texts in turn.
    seed : int
        Of the choice of texts, and of where streams are cut.
    resume : bool
        Instead of all this: streams over HTTP that are cut and gone on with, half of them on a server that
        was started in between.
    load : bool
        Instead: `concurrency` streams at once over HTTP, and what becomes meanwhile of those who come too.
    lifecycle : bool
        Instead: `trials` streams at once while the server is stopped, or crashes.
    soak_minutes : float, optional
        Instead: `concurrency` listeners for so many minutes, by a mix of `trials` texts.
    pace : float
        Share of a stream's length that a listener of a soak takes to hear it.
    misbehave : bool
        Whether others come to a soak who leave in mid-stream or stop reading.

    Raises
    ------
    ParameterError
        Two options that spoil each other's figures, or one that would have no effect.
    """

    preset: str = "medium"
    trials: int = 10
    streamed: bool = True
    voice: str = "af_heart"
    variant: str | None = None
    concurrency: int = 1
    chunk_ms: int | None = None
    memory: bool = False
    profile_interval_s: float | None = None
    listen_s: float | None = None
    save_audio: bool = False
    http: bool = False
    peers: bool = False
    seed: int = 0
    resume: bool = False
    load: bool = False
    lifecycle: bool = False
    soak_minutes: float | None = None
    pace: float = 1.0
    misbehave: bool = False

    def __post_init__(self) -> None:
        conflicts = (
            (
                self.profile_interval_s is not None and not self.memory,
                "--profile-interval says how often memory is read, which needs --memory.",
            ),
            (
                self.chunk_ms is not None and (self.http or not self.streamed),
                "--chunk-ms needs the library's stream: a file has no chunks, and the server sets its own.",
            ),
            (
                self.listen_s is not None and not self.streamed,
                "--listen needs a stream: a file is there at once or not at all.",
            ),
            (
                self.peers and not self.streamed,
                "--peers compares streams; leave --file out.",
            ),
            (
                self.peers and self.concurrency > 1,
                "--peers compares one text at a time; leave --concurrency out.",
            ),
            (
                self.peers and self.memory and not self.http,
                "--peers runs in the process whose memory --memory reads; add --http, or leave one out.",
            ),
            (
                self.save_audio and self.concurrency > 1,
                "--save-audio would write one text's file while others are timed; leave one out.",
            ),
            (
                self.save_audio and self.memory and not self.http,
                "--save-audio keeps sound in the memory that --memory reads; add --http, or leave one out.",
            ),
            (
                self.resume and (self.load or self.concurrency > 1),
                "--resume cuts one stream at a time; leave --load and --concurrency out.",
            ),
            (
                self.soak_minutes is not None and (self.resume or self.load or self.lifecycle),
                "--soak-minutes is a benchmark of its own; leave --resume, --load and --lifecycle out.",
            ),
            (
                self.soak_minutes is not None and self.preset != "medium",
                "--soak-minutes mixes lengths; leave --preset out.",
            ),
            (
                self.soak_minutes is None and (self.pace != 1.0 or self.misbehave),
                "--pace and --misbehave are for listeners of a soak; add --soak-minutes.",
            ),
            (
                self.load and self.trials % self.concurrency != 0,
                f"--trials is a multiple of --concurrency with --load: {self.trials} texts make no whole "
                f"rounds of {self.concurrency}.",
            ),
            (
                self.lifecycle and (self.resume or self.load or self.concurrency > 1),
                "--lifecycle speaks all its --trials at once; leave --resume, --load and --concurrency out.",
            ),
            (
                self.judged is not None and self._measures_otherwise,
                f"A {self.judged} benchmark hears streams of our server to their ends, no more; leave "
                "--file, --chunk-ms, --memory, --listen, --save-audio and --peers out.",
            ),
        )
        for spoilt, message in conflicts:
            if spoilt:
                raise ParameterError(message, field=message.split()[0])

    @property
    def judged(self) -> str | None:
        """The kind of benchmark that ends in a verdict, if it is one."""
        return next((kind for field, kind in JUDGED.items() if getattr(self, field)), None)

    @property
    def _measures_otherwise(self) -> bool:
        said = (self.chunk_ms, self.listen_s)
        asked = (not self.streamed, self.memory, self.save_audio, self.peers)
        return any(asked) or any(one is not None for one in said)

    @property
    def server_settings(self) -> dict[str, object]:
        """How our server is started for it."""
        return {
            "variant": self.variant or settings().variant,
            "voice": self.voice,
            "concurrency": max(self.concurrency + self.misbehave, settings().concurrency),
            # A repeated beginning is computed again, so that all figures are uncached
            "first_audio_ttl_s": 0,
        }

    @property
    def conditions(self) -> str:
        """What a reader must know to believe the figures."""
        return ", ".join(
            (
                "warm",
                "uncached",
                "distinct texts, each with a beginning of its own",
                "one at a time" if self.concurrency == 1 else f"up to {self.concurrency} at a time",
                *([] if self.listen_s is None else [f"hung up on after {self.listen_s:g} s of speech"]),
                *(["over HTTP on the loopback"] if self.http else []),
                *(["systems in turn, text by text, on the same number of threads"] if self.peers else []),
                *(["memory sampled meanwhile"] if self.memory else []),
            )
        )

    @property
    def heading(self) -> str:
        """One line above the figures."""
        how = "streamed" if self.streamed else "whole"
        return f"{self.trials} texts of {self.preset} length, {how}, {self.voice}; {self.conditions}"


@dataclass(frozen=True, slots=True)
class BenchOutcome:
    """The trials, and the file in which they are kept. `lines` is what to show to a person."""

    trials: list[Trial]
    path: Path
    lines: tuple[str, ...]


def carry_out(
    plan: BenchPlan,
    sentences: Sequence[str],
    load_engine: Callable[[], Engine],
    *,
    progress: bool = True,
    say: Callable[[str], None],
) -> BenchOutcome:
    """Measure, and keep everything under `results/bench/<run>/`.

    Parameters
    ----------
    plan : BenchPlan
    sentences : sequence of str
        What the texts are made of.
    load_engine : callable
        Called only if the plan needs an engine in this process.
    progress : bool
        Whether to show a bar.
    say : callable
        Told in a line each what takes its time.
    """
    texts = list(texts_of(sentences, PRESETS[plan.preset], plan.trials, plan.seed))
    folder = new_run_folder("bench")
    interval_s = (plan.profile_interval_s or INTERVAL_S) if plan.memory else None
    with _speakers(plan, load_engine, say) as speakers:
        trials = measure(
            speakers,
            texts,
            concurrency=plan.concurrency,
            memory_interval_s=interval_s,
            listen_s=math.inf if plan.listen_s is None else plan.listen_s,
            audio_folder=folder / "audio" if plan.save_audio else None,
            progress=progress,
        )
        systems = {speaker.name: speaker.facts() for speaker in speakers}
    path = report.keep(folder, trials, asked=asdict(plan), conditions=plan.conditions, systems=systems)
    lines = report.printed(trials, heading=plan.heading, ours=next(iter(systems)))
    return BenchOutcome(trials, path, tuple(lines))


@contextmanager
def _speakers(
    plan: BenchPlan, load_engine: Callable[[], Engine], say: Callable[[str], None]
) -> Iterator[list[Speaker]]:
    """Ours first, then the peers with as many threads as ours has."""
    if not plan.http:
        chunk_s = None if plan.chunk_ms is None else plan.chunk_ms / 1000
        ours = InProcess(load_engine(), plan.voice, streamed=plan.streamed, chunk_s=chunk_s)
        yield [ours, *_peers(plan, ours, say)]
        return
    say("Starting the server.")
    with own_server(plan.server_settings) as server:
        client = OverHttp(server, plan.voice, streamed=plan.streamed)
        yield [client, *_peers(plan, client, say)]


def _peers(plan: BenchPlan, ours: Speaker, say: Callable[[str], None]) -> list[Speaker]:
    if not plan.peers:
        return []
    threads = ours.facts()["threads"]
    return [load_kokoro_onnx(variant, plan.voice, threads, say=say) for variant in VARIANTS]
