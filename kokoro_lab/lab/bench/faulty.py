"""What speaks with faults in it: our server, in a process of its own, and an engine in this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from kokoro_lab.lab.bench.client import ReceivedChunk, ReceivedStream, ask, receive, speech_request
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.persistent import OfEngine, SpeechSource, listen
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.faults.draws import Losses, Shuffles
from kokoro_lab.lab.faults.engine import FaultyEngine
from kokoro_lab.lab.faults.injector import Injector, StreamWords
from kokoro_lab.lab.faults.proxy import FaultProxy, fault_proxy
from kokoro_lab.lab.faults.scenario import (
    OF_CHUNKS,
    READY,
    ChunksLost,
    ChunksReordered,
    Scenario,
    Transport,
)
from kokoro_lab.speech.engine import Engine

ON_THE_WIRE = {"http": 1.0, "sse": 1.4, "websocket": 1.0}
"""Bytes that go over the line for each byte of audio: events are in base64."""


class FaultySpeaker(Protocol):
    """What speaks one text, by one transport, with faults in it."""

    transport: Transport

    def arm(self, scenario: Scenario | None) -> None:
        """Put in the scenario's faults, and begin to count; None takes them out."""

    def forget(self) -> object:
        """Empty its caches: what was spoken before must be spoken again."""

    def source(self, url: str | None = None) -> SpeechSource:
        """Where to listen; at another address, which leads to it, if one is given."""

    def facts(self) -> dict[str, Any]:
        """What runs, as it states it."""

    def journal(self) -> tuple[int, tuple[StreamWords, ...]]:
        """How often a fault has struck since it was armed, and what was spoken to its end."""

    @property
    def url(self) -> str | None:
        """Of the server; None where there is no line."""


class FaultyLibrary:
    """An engine of this process."""

    transport: Transport = "library"
    url = None

    def __init__(self, engine: Engine, text: str, voice: str) -> None:
        self._engine = FaultyEngine(engine, Injector())
        self._text, self._voice = text, voice
        self._engine.warm(voice, text="Ready.")
        self.arm = self._engine.injector.arm
        self.forget = self._engine.clear_caches
        self.facts = InProcess(self._engine, voice).facts

    def source(self, url: str | None = None) -> SpeechSource:
        return OfEngine(self._engine, self._text, self._voice)

    def journal(self) -> tuple[int, tuple[StreamWords, ...]]:
        injector = self._engine.injector
        return len(injector.struck), tuple(injector.spoken)


class FaultyServer:
    """Our server, asked by one transport. It must have been started with `KOKORO_FAULTS=ready`."""

    def __init__(self, server: OwnServer, transport: Transport, text: str, voice: str) -> None:
        self.transport = transport
        self.url = server.url
        self.forget = server.forget
        self.facts = server.facts
        self._body = speech_request(text, voice)

    def arm(self, scenario: Scenario | None) -> None:
        said = None if scenario is None else scenario.model_dump(mode="json")
        ask(self.url, "POST", "/debug/faults", {"scenario": said})

    def source(self, url: str | None = None) -> SpeechSource:
        assert self.transport != "library"
        return partial(receive, self.transport, url or self.url, self._body)

    def journal(self) -> tuple[int, tuple[StreamWords, ...]]:
        found = ask(self.url, "GET", "/debug/faults")
        spoken = (
            StreamWords(tuple((start, end) for start, end in one["words"]), one["samples"])
            for one in found["spoken"]
        )
        return int(found["struck"]), tuple(spoken)


@contextmanager
def subjects(
    load: Callable[[], Engine],
    text: str,
    voice: str,
    transports: Sequence[Transport],
    start: Callable[..., Any] = own_server,
) -> Iterator[dict[Transport, FaultySpeaker]]:
    """What speaks `text` by each of `transports`; a server is started if one of them needs it.

    Parameters
    ----------
    load : callable
        Gives the engine for `library`; not called without.
    start : callable
        Given settings, a context that gives the server.
    """
    found: dict[Transport, FaultySpeaker] = {}
    of_server = [transport for transport in transports if transport != "library"]
    settings = {"faults": READY, "degrade": "off", "concurrency": 2, "queue": 4}
    with start(settings) if of_server else nullcontext() as server:
        for transport in transports:
            if transport == "library":
                found[transport] = FaultyLibrary(load(), text, voice)
            else:
                assert server is not None
                found[transport] = FaultyServer(server, transport, text, voice)
        yield found


@dataclass(frozen=True, slots=True)
class DisturbedStream:
    """One stream with faults in it: what was heard, how often they struck, and what was spoken to its end."""

    heard: ReceivedStream
    struck: int
    spoken: tuple[StreamWords, ...]


def disturbed(
    subject: FaultySpeaker,
    scenario: Scenario | None,
    whole: ReceivedStream | None = None,
    **listener: bool,
) -> DisturbedStream:
    """Listen to `subject` once, with the faults of `scenario`, or with none.

    Parameters
    ----------
    whole : ReceivedStream, optional
        The undisturbed stream, by whose length it is known where the middle of one is.
    **listener
        How careless the listener is: `goes_on`, `asks_again` and `reorders` of `listen`.
    """
    subject.forget()
    subject.arm(scenario)
    try:
        chunks = _Line(scenario)
        line: AbstractContextManager[FaultProxy | None] = nullcontext(None)
        if scenario is not None and subject.url is not None and whole is not None and _line(scenario):
            wire_bytes = round(ON_THE_WIRE[subject.transport] * len(whole.pcm))
            line = fault_proxy(subject.url, scenario, wire_bytes)
        with line as proxy:
            url = None if proxy is None else proxy.url
            heard = listen(subject.source(url), None, line=chunks.over, **listener)
            struck = chunks.struck + (0 if proxy is None else len(proxy.struck))
        inside, spoken = subject.journal()
        return DisturbedStream(heard, struck + inside, spoken)
    finally:
        subject.arm(None)


def _line(scenario: Scenario) -> bool:
    """Whether it has faults that only a proxy can put in."""
    return any(fault.kind not in OF_CHUNKS for fault in scenario.of_seam("transport"))


class _Line:
    """What a scenario does to chunks on the line, counted."""

    def __init__(self, scenario: Scenario | None) -> None:
        lost = () if scenario is None else scenario.of_seam("transport")
        seed = 0 if scenario is None else scenario.seed
        self._losses = [Losses(fault, seed) for fault in lost if isinstance(fault, ChunksLost)]
        self._shuffles = [Shuffles(fault, seed) for fault in lost if isinstance(fault, ChunksReordered)]
        self._lost = 0

    @property
    def struck(self) -> int:
        return self._lost + sum(shuffles.struck for shuffles in self._shuffles)

    def over(self, frames: Iterator[ReceivedChunk]) -> Iterator[ReceivedChunk]:
        for shuffles in self._shuffles:
            frames = shuffles.over(frames)
        for frame in frames:
            lost = [losses.next() for losses in self._losses]  # each counts every chunk
            self._lost += any(lost)
            if not any(lost):
                yield frame
