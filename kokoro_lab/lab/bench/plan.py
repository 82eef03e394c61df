"""A benchmark of speech from its options to its figures: checks the options, makes the speakers, measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from kokoro_lab.config import settings
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench import report
from kokoro_lab.lab.bench.memory import INTERVAL_S
from kokoro_lab.lab.bench.own_server import OverHttp, own_server
from kokoro_lab.lab.bench.peers import VARIANTS, load_kokoro_onnx, started_piper
from kokoro_lab.lab.bench.texts import PRESETS, texts_of
from kokoro_lab.lab.bench.timing import InProcess, Speaker, measure
from kokoro_lab.lab.results import new_run_folder
from kokoro_lab.speech.engine import Engine

IN_ITS_MEMORY = "it would work in the memory that is read; add --http, or leave one out"
SPOILT = (
    ("--chunk-ms", "--file", "a file has no chunks"),
    ("--chunk-ms", "--http", "the server sets its own"),
    ("--listen", "--file", "a file is there at once or not at all"),
    ("--peers", "--file", "streams are compared"),
    ("--peers", "--memory", IN_ITS_MEMORY),
    ("--piper", "--file", "streams are compared"),
    ("--save-audio", "--memory", IN_ITS_MEMORY),
)
"""Pairs of options that exclude each other, and why."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """The options of every benchmark.

    Parameters
    ----------
    preset : str
        Length of the texts, one of `PRESETS`.
    trials : int
        Number of texts.
    voice : str
        A name, or a blend.
    variant : str, optional
        Precision of the weights; None takes the setting `variant`.
    seed : int
        Seed of the choice of texts, and of the places where streams are broken off.
    """

    preset: str = "medium"
    trials: int = 10
    voice: str = "af_heart"
    variant: str | None = None
    seed: int = 0

    @property
    def at_once(self) -> int:
        """How many streams the server has to serve at a time."""
        return 1

    @property
    def server_settings(self) -> dict[str, object]:
        """The settings with which our server is started for the benchmark."""
        return {
            "variant": self.variant or settings().variant,
            "voice": self.voice,
            "concurrency": max(self.at_once, settings().concurrency),
            "capacity": self.at_once,  # every request is admitted, and its figures are measured
            # Without the cache of first audio, so that all figures are uncached
            "first_audio_ttl_s": 0,
        }


@dataclass(frozen=True, slots=True)
class SpeechPlan(BenchPlan):
    """A benchmark of time to first audio and speed.

    Parameters
    ----------
    streamed : bool
        Whether texts are spoken as streams; otherwise as whole files.
    chunk_ms : int, optional
        Length of a chunk, 30 to 120 ms; None takes the engine's default.
    memory : bool
        Whether to sample resident memory.
    profile_interval_s : float, optional
        Seconds between two readings of memory; None takes `memory.INTERVAL_S`.
    listen_s : float, optional
        Seconds of speech after which the listener hangs up; None hears every text to its end.
    save_audio : bool
        Whether to keep each trial as a WAV file.
    http : bool
        Whether our server speaks, asked over the loopback interface; if not, the engine speaks in this
        process.
    peers : bool
        Whether kokoro-onnx speaks the same texts, interleaved.
    piper : str, optional
        The Python of an environment with Piper, if Piper is to speak, too.

    Raises
    ------
    ParameterError
        Two options exclude each other, or one would have no effect.
    """

    streamed: bool = True
    chunk_ms: int | None = None
    memory: bool = False
    profile_interval_s: float | None = None
    listen_s: float | None = None
    save_audio: bool = False
    http: bool = False
    peers: bool = False
    piper: str | None = None

    def __post_init__(self) -> None:
        if self.profile_interval_s is not None and not self.memory:
            raise ParameterError(
                "--profile-interval says how often memory is read, which needs --memory.",
                field="--profile-interval",
            )
        given = {
            "--file": not self.streamed,
            "--chunk-ms": self.chunk_ms is not None,
            "--memory": self.memory and not self.http,
            "--listen": self.listen_s is not None,
            "--save-audio": self.save_audio,
            "--http": self.http,
            "--peers": self.peers,
            "--piper": self.piper is not None,
        }
        for option, other, why in SPOILT:
            if given[option] and given[other]:
                raise ParameterError(f"{option} cannot be given with {other}: {why}.", field=option)

    @property
    def conditions(self) -> str:
        """The conditions of the figures, in a sentence."""
        return ", ".join(
            (
                "warm",
                "uncached",
                "distinct texts, each with a beginning of its own",
                "one at a time",
                *([] if self.listen_s is None else [f"hung up on after {self.listen_s:g} s of speech"]),
                *(["over HTTP on the loopback"] if self.http else []),
                *(["systems in turn, text by text, on the same number of threads"] if self.peers else []),
                *(["with Piper in turn, on every core"] if self.piper else []),
                *(["memory sampled meanwhile"] if self.memory else []),
            )
        )

    @property
    def heading(self) -> str:
        """The line that is printed above the figures."""
        how = "streamed" if self.streamed else "whole"
        return f"{self.trials} texts of {self.preset} length, {how}, {self.voice}; {self.conditions}"


def carry_out(
    plan: SpeechPlan,
    sentences: Sequence[str],
    load_engine: Callable[[], Engine],
    *,
    say: Callable[[str], None],
) -> tuple[Path, list[str]]:
    """Carry out `plan`, and keep the result under `results/bench/<run>/`; returns the file and the lines to
    print.

    Parameters
    ----------
    plan : SpeechPlan
    sentences : sequence of str
        Sentences from which texts are made.
    load_engine : callable
        Called only if the plan needs an engine in this process.
    say : callable
        Called with a line about each long step.
    """
    texts = list(texts_of(sentences, PRESETS[plan.preset], plan.trials, plan.seed))
    folder = new_run_folder("bench")
    interval_s = (plan.profile_interval_s or INTERVAL_S) if plan.memory else None
    with _speakers(plan, load_engine, say) as speakers:
        trials = measure(
            speakers,
            texts,
            memory_interval_s=interval_s,
            listen_s=math.inf if plan.listen_s is None else plan.listen_s,
            audio_folder=folder / "audio" if plan.save_audio else None,
        )
        systems = {speaker.name: speaker.facts() for speaker in speakers}
    path = report.keep(folder, trials, asked=asdict(plan), conditions=plan.conditions, systems=systems)
    lines = report.printed(trials, heading=plan.heading, ours=next(iter(systems)))
    return path, [*lines, f"kept in {folder}"]


@contextmanager
def _speakers(
    plan: SpeechPlan, load_engine: Callable[[], Engine], say: Callable[[str], None]
) -> Iterator[list[Speaker]]:
    """The speakers that a plan asks for: ours, then kokoro-onnx with the same number of threads, then
    Piper."""
    ours: Speaker
    with ExitStack() as stack:
        if plan.http:
            say("Starting the server.")
            server = stack.enter_context(own_server(plan.server_settings))
            ours = OverHttp(server, plan.voice, streamed=plan.streamed)
        else:
            chunk_s = None if plan.chunk_ms is None else plan.chunk_ms / 1000
            ours = InProcess(load_engine(), plan.voice, streamed=plan.streamed, chunk_s=chunk_s)
        peers = VARIANTS if plan.peers else ()
        threads = ours.facts()["threads"] if peers else 0
        others: list[Speaker] = [load_kokoro_onnx(peer, plan.voice, threads, say=say) for peer in peers]
        yield [ours, *others, *([stack.enter_context(started_piper(plan.piper))] if plan.piper else [])]
