"""Speakers with injected faults: an engine in this process, and our server in another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.own_server import OwnServer, own_server
from kokoro_lab.lab.bench.persistent import PATIENCE_S, OfEngine, SpeechSource, listen
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.faults.engine import FaultyEngine
from kokoro_lab.lab.faults.injector import Injector, WholeStream
from kokoro_lab.lab.faults.proxy import FaultProxy, fault_proxy
from kokoro_lab.lab.faults.scenario import (
    READY,
    ChunksLost,
    ChunksReordered,
    Losses,
    Scenario,
    Shuffles,
    Transport,
)
from kokoro_lab.speech.engine import Engine

ON_THE_WIRE = {"http": 1.0, "sse": 1.4, "websocket": 1.0}
"""Bytes that go over the line for each byte of audio: events are in base64."""


@dataclass(frozen=True, slots=True)
class FaultySpeaker:
    """Speaks one text over one transport, with injected faults.

    Parameters
    ----------
    transport : {"library", "http", "sse", "websocket"}
    url : str or None
        The server's address; None without a server.
    arm : callable
        Injects a scenario's faults, and begins to count windows, sentences and chunks; called with None, it
        removes the faults.
    journal : callable
        Returns the faults that struck since `arm`, and the finished streams: see `Injector.journal`.
    forget : callable
        Empties the speaker's caches, so that all speech is computed again.
    facts : callable
        Returns the speaker's facts.
    source : callable
        Takes an address that leads to the server, such as that of a proxy, or None for the speaker's own;
        returns the function from which a listener gets the chunks.
    """

    transport: Transport
    url: str | None
    arm: Callable[[Scenario | None], object]
    journal: Callable[[], dict[str, Any]]
    forget: Callable[[], object]
    facts: Callable[[], dict[str, Any]]
    source: Callable[[str | None], SpeechSource]


def faulty_library(engine: Engine, text: str, voice: str) -> FaultySpeaker:
    """A speaker whose engine is in this process."""
    faulty = FaultyEngine(engine, Injector())
    faulty.warm(voice, text="Ready.")
    return FaultySpeaker(
        transport="library",
        url=None,
        arm=faulty.injector.arm,
        journal=faulty.injector.journal,
        forget=faulty.clear_caches,
        facts=InProcess(faulty, voice).facts,
        source=lambda _: OfEngine(faulty, text, voice),
    )


def faulty_server(server: OwnServer, transport: client.Transport, text: str, voice: str) -> FaultySpeaker:
    """Our server, asked over one transport. It must have been started with `KOKORO_FAULTS=ready`."""

    def arm(scenario: Scenario | None) -> None:
        said = None if scenario is None else scenario.model_dump(mode="json")
        client.ask(server.url, "POST", "/debug/faults", {"scenario": said})

    return FaultySpeaker(
        transport=transport,
        url=server.url,
        arm=arm,
        journal=partial(client.ask, server.url, "GET", "/debug/faults"),
        forget=server.forget,
        facts=server.facts,
        source=lambda url: partial(
            client.receive, transport, url or server.url, client.speech_request(text, voice)
        ),
    )


@contextmanager
def subjects(
    load: Callable[[], Engine],
    text: str,
    voice: str,
    transports: Sequence[Transport],
    start: Callable[..., Any] = own_server,
) -> Iterator[dict[Transport, FaultySpeaker]]:
    """A context that gives a speaker of `text` for each of `transports`. A server is started if one of the
    transports needs a server.

    Parameters
    ----------
    load : callable
        Returns the engine for the transport `library`; not called without it.
    start : callable
        Takes settings; returns a context that gives the server.
    """
    found: dict[Transport, FaultySpeaker] = {}
    settings = {"faults": READY, "degrade": "off", "concurrency": 2, "queue": 4}
    with ExitStack() as stack:
        server: OwnServer | None = None
        for transport in transports:
            if transport == "library":
                found[transport] = faulty_library(load(), text, voice)
            else:
                server = server or stack.enter_context(start(settings))
                found[transport] = faulty_server(server, transport, text, voice)
        yield found


@dataclass(frozen=True, slots=True)
class DisturbedStream:
    """One stream with faults: what was heard, how often a fault struck, and which streams the engine
    finished."""

    heard: ReceivedStream
    struck: int
    spoken: tuple[WholeStream, ...]


def disturbed(
    subject: FaultySpeaker,
    scenario: Scenario | None,
    whole: ReceivedStream | None = None,
    **listener: bool,
) -> DisturbedStream:
    """Listen to `subject` once, with the faults of `scenario`; if it is None, without faults.

    Parameters
    ----------
    whole : ReceivedStream, optional
        The undisturbed stream. From its length follows the byte at which a fault strikes that is placed at a
        share of the stream. Its longest silence says how long a listener must wait on this machine before a
        silence means a fault.
    **listener
        How careless the listener is: `goes_on`, `asks_again` and `reorders` of `listen`.
    """
    subject.forget()
    subject.arm(scenario)
    patience_s = client.ANSWER_S
    if whole is not None:
        patience_s = max(PATIENCE_S, 2 * float(np.diff(whole.arrivals_s, prepend=0.0).max()))
    drawn: list[Losses | Shuffles] = []
    proxied: AbstractContextManager[FaultProxy | None] = nullcontext()
    if scenario is not None:
        of_line = scenario.of_seam("transport")
        drawn = [
            Losses(fault, scenario.seed) if isinstance(fault, ChunksLost) else Shuffles(fault, scenario.seed)
            for fault in of_line
            if isinstance(fault, ChunksLost | ChunksReordered)
        ]
        if subject.url is not None and whole is not None and len(drawn) < len(of_line):
            wire_bytes = round(ON_THE_WIRE[subject.transport] * len(whole.pcm))
            proxied = fault_proxy(subject.url, scenario, wire_bytes)
    try:
        with proxied as proxy:
            source = subject.source(None if proxy is None else proxy.url)
            heard = listen(source, None, line=partial(_over, drawn), patience_s=patience_s, **listener)
            struck = sum(one.struck for one in drawn) + (0 if proxy is None else len(proxy.struck))
        journal = subject.journal()
    finally:
        subject.arm(None)
    spoken = (WholeStream(tuple(map(tuple, one["words"])), one["samples"]) for one in journal["spoken"])
    return DisturbedStream(heard, struck + int(journal["struck"]), tuple(spoken))


def _over(drawn: Sequence[Losses | Shuffles], chunks: Iterator[ReceivedChunk]) -> Iterator[ReceivedChunk]:
    for one in drawn:
        chunks = one.over(chunks)
    return chunks
