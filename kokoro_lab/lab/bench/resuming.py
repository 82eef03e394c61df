"""Streams that break and are gone on with: whether anything is lost, and how soon the next frame is there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from kokoro_lab.audio import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.bench.frames import Body, Busy, ReceivedChunk, ReceivedStream, Transport, frames
from kokoro_lab.lab.bench.over_http import OverHttp
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.results import Check, NegativeControl, Run

LATENCY_S = 1.0
"""S11: playback goes on within a second."""
BATCH = 20
"""Streams between two crashes of the server: loading takes longer than speaking."""
AGAIN_S = 0.02
SLOT_S = 30.0
"""A server that still has no slot so long after a stream was left has failed."""
TRANSPORTS: tuple[Transport, ...] = ("sse", "websocket")


@dataclass(frozen=True, slots=True)
class ResumedStream:
    """One stream that was cut and gone on with.

    Parameters
    ----------
    number : int
        Which text.
    transport : {"sse", "websocket"}
    restarted : bool
        Whether the server was killed and started again in between.
    characters : int
    audio_s : float
        Length of the whole.
    cut_s : float
        Where it was cut.
    latency_s : float
        From the attempt to connect to the first new frame.
    refusals : int
        Answers of 429 meanwhile, while the server had not yet noticed that its listener had left.
    differing_samples : int
        Of the parts joined, against the uncut stream, as far as both reach.
    missing_samples : int
        How much shorter the joined parts are; negative where they are longer.
    """

    number: int
    transport: Transport
    restarted: bool
    characters: int
    audio_s: float
    cut_s: float
    latency_s: float
    refusals: int
    differing_samples: int
    missing_samples: int

    @property
    def exact(self) -> bool:
        """Whether the joined parts are the uncut stream, sample for sample."""
        return not self.differing_samples and not self.missing_samples


class Cut(NamedTuple):
    """A stream that was left, and how it would have gone on."""

    number: int
    text: str
    transport: Transport
    body: Body
    uncut: ReceivedStream
    heard: ReceivedStream
    restarted: bool


@dataclass(frozen=True, slots=True)
class Resumes:
    """What `measure_resumes` found. `ready_s` is how long each restart took until the server was warm."""

    streams: list[ResumedStream]
    ready_s: list[float]
    ran: dict[str, Any]
    controls: list[NegativeControl]


class ServerUnderTest:
    """The server that is tested. It can be killed, and another one started in its place.

    Parameters
    ----------
    start : callable
        Gives a server that is warm; see `own_server`.
    """

    def __init__(self, start: Callable[[], AbstractContextManager[OwnServer]]) -> None:
        self._start = start
        self._stack = ExitStack()
        self.server = self._stack.enter_context(start())

    def restart(self) -> float:
        """Kill it, as a crash would, with whatever it was sending; seconds until the next one is ready."""
        for process in [*self.server.process.children(recursive=True), self.server.process]:
            process.kill()
        self.close()
        started_s = time.perf_counter()
        self.server = self._stack.enter_context(self._start())
        return time.perf_counter() - started_s

    def close(self) -> None:
        """End it."""
        self._stack.close()


def measure_resumes(
    start: Callable[[], AbstractContextManager[OwnServer]],
    texts: Sequence[str],
    voice: str,
    *,
    seed: int = 0,
    progress: bool = True,
) -> Resumes:
    """Speak each text whole; speak it again, leave it somewhere, and go on with it.

    Transports take turns. Of every four streams, two are gone on with on a server that was started after the
    one which they began on had been killed: once for each `BATCH` streams, the last of which is being sent
    at that moment. Before each stream that is cut the server's caches are emptied, so that what helps the
    rest is only what the cut part has left there.

    Raises
    ------
    SynthesisError
        A stream failed; none is skipped.
    """
    draw = random.Random(seed)
    found: list[ResumedStream] = []
    ready_s: list[float] = []
    controls: list[NegativeControl] = []
    numbered = iter(enumerate(texts))
    with closing(ServerUnderTest(start)) as subject, tqdm(total=len(texts), disable=not progress) as bar:
        ran = _client(subject.server, voice).facts()
        while batch := list(islice(numbered, BATCH)):
            waiting: list[Cut] = []
            with ExitStack() as open_streams:
                for number, text in batch:
                    cut, stream = _cut(subject.server, number, text, voice, draw)
                    controls = controls or _controls(cut)
                    if not cut.restarted:
                        stream.close()
                        found.append(_gone_on(subject.server, cut))
                        bar.update()
                        continue
                    waiting.append(cut)
                    if cut.number == _last_restarted(batch):
                        open_streams.callback(stream.close)
                    else:
                        stream.close()
                if waiting:
                    ready_s.append(subject.restart())
            for cut in waiting:
                found.append(_gone_on(subject.server, cut))
                bar.update()
    return Resumes(sorted(found, key=lambda one: one.number), ready_s, ran, controls)


def conclude(run: Run, resumes: Resumes, asked: int) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A sample differed, a stream was not tested, or the latency is over `LATENCY_S`.
    """
    streams = resumes.streams
    latencies = [one.latency_s for one in streams]
    restarted = sum(map(_restarted, range(asked)))
    inexact = [one for one in streams if not one.exact]
    figures: dict[str, float] = {
        "cut_deepest_s": max(one.cut_s for one in streams),
        "refusals_count": sum(one.refusals for one in streams),
        **_spread("ready_after_restart", resumes.ready_s),
        **_spread("latency", latencies),
    }
    for name, wanted in (("same_server", False), ("restarted_server", True)):
        figures |= _spread(f"latency_{name}", [o.latency_s for o in streams if o.restarted is wanted])
    for transport in TRANSPORTS:
        figures |= _spread(f"latency_{transport}", [o.latency_s for o in streams if o.transport == transport])
    return run.finish(
        resumes.ran,
        checks=[
            Check("streams_count", len(streams), low=asked, high=asked),
            Check(
                "restarted_streams_count", sum(o.restarted for o in streams), low=restarted, high=restarted
            ),
            Check("streams_that_differ_count", len(inexact), high=0),
            Check("latency_p95_s", percentile(latencies, 95), high=LATENCY_S),
        ],
        controls=resumes.controls,
        figures=figures,
        details={"streams": [asdict(one) for one in streams]},
    )


def printed(resumes: Resumes) -> Iterator[str]:
    """The figures as a person reads them."""
    for name, wanted in (
        ("the same server", (False,)),
        ("a restarted one", (True,)),
        ("both", (False, True)),
    ):
        some = [one for one in resumes.streams if one.restarted in wanted]
        if some:
            latencies, cuts = [one.latency_s for one in some], [one.cut_s for one in some]
            yield (
                f"{len(some)} streams went on with {name}: {sum(one.exact for one in some)} exact; latency "
                f"p50 {percentile(latencies, 50):.3f}, p95 {percentile(latencies, 95):.3f}, most "
                f"{max(latencies):.3f} s; cut {min(cuts):.1f} to {max(cuts):.1f} s into the speech"
            )
    for one in resumes.streams:
        if not one.exact:
            yield (
                f"text {one.number} over {one.transport}, cut at {one.cut_s:.2f} s: "
                f"{one.differing_samples} samples differ, {one.missing_samples} are missing"
            )
    if resumes.ready_s:
        yield f"{len(resumes.ready_s)} restarts, ready after {max(resumes.ready_s):.1f} s at most"


def differences(joined: bytes | bytearray, uncut: bytes | bytearray) -> tuple[int, int]:
    """Samples that differ as far as both reach, and how many `joined` lacks."""
    ours, theirs = (np.frombuffer(bytes(pcm), "<i2") for pcm in (joined, uncut))
    reach = min(len(ours), len(theirs))
    return int(np.count_nonzero(ours[:reach] != theirs[:reach])), len(theirs) - len(ours)


def _cut(
    server: OwnServer, number: int, text: str, voice: str, draw: random.Random
) -> tuple[Cut, Generator[ReceivedChunk]]:
    body = {"input": text, "voice": voice, "response_format": "pcm", "sample_rate": SAMPLE_RATE_HZ}
    transport = TRANSPORTS[number % 2]
    uncut, heard = ReceivedStream(), ReceivedStream()
    for frame in frames(transport, server.url, body):
        uncut.take(frame)
    _client(server, voice).forget()
    stream = frames(transport, server.url, body)
    for frame in islice(stream, draw.randrange(1, uncut.count)):
        heard.take(frame)
    return Cut(number, text, transport, body, uncut, heard, _restarted(number)), stream


def _gone_on(server: OwnServer, cut: Cut) -> ResumedStream:
    rest, latency_s, refusals = ReceivedStream(), float("nan"), 0
    started_s = time.perf_counter()
    while True:
        try:
            for frame in frames(cut.transport, server.url, {**cut.body, **cut.heard.back}):
                if not rest.count:
                    latency_s = time.perf_counter() - started_s
                rest.take(frame)
            break
        except Busy:
            refusals += 1
            if time.perf_counter() - started_s > SLOT_S:
                raise
            time.sleep(AGAIN_S)
    differing, missing = differences(cut.heard.audio + rest.audio, cut.uncut.audio)
    second = BYTES_A_SAMPLE * SAMPLE_RATE_HZ
    return ResumedStream(
        number=cut.number,
        transport=cut.transport,
        restarted=cut.restarted,
        characters=len(cut.text),
        audio_s=len(cut.uncut.audio) / second,
        cut_s=len(cut.heard.audio) / second,
        latency_s=latency_s,
        refusals=refusals,
        differing_samples=differing,
        missing_samples=missing,
    )


def _controls(cut: Cut) -> list[NegativeControl]:
    """Faults at the join that the comparison must see: it is only as good as what it would catch."""
    whole, at = bytes(cut.uncut.audio), len(cut.heard.audio)
    frame = at // cut.heard.count
    other = bytes([whole[at] ^ 1])
    faults = {
        "a frame lost at the join": whole[:at] + whole[at + frame :],
        "a frame played twice": whole[:at] + whole[at - frame :],
        "a sample off by one bit": whole[:at] + other + whole[at + 1 :],
    }
    return [NegativeControl(name, differences(joined, whole) != (0, 0)) for name, joined in faults.items()]


def _client(server: OwnServer, voice: str) -> OverHttp:
    return OverHttp(server.url, voice, server.process)


def _restarted(number: int) -> bool:
    """Two and two, so that both transports meet both cases."""
    return number % 4 >= 2


def _last_restarted(batch: Sequence[tuple[int, str]]) -> int:
    return max(number for number, _ in batch if _restarted(number))


def percentile(values: Sequence[float], percent: float) -> float:
    """Of `values`; not a number if there are none."""
    return float(np.percentile(values, percent)) if values else float("nan")


def _spread(name: str, seconds: Sequence[float]) -> dict[str, float]:
    return {
        f"{name}_p50_s": percentile(seconds, 50),
        f"{name}_p95_s": percentile(seconds, 95),
        f"{name}_max_s": max(seconds, default=float("nan")),
    }
