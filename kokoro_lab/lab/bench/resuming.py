"""Cuts streams and resumes them: tests whether a sample is lost, and how soon the next chunk comes."""

from __future__ import annotations

import random
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import pandas as pd
import psutil

from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.client import Body
from kokoro_lab.lab.bench.compared import ComparedStreams, compared, exact, spread
from kokoro_lab.lab.bench.own_server import OwnServer, StartServer
from kokoro_lab.lab.bench.persistent import listen
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream, comparison_controls, to_the_end
from kokoro_lab.lab.results import Check, NegativeControl, Run

LATENCY_S = 1.0
"""A resumed stream must continue within a second."""
BATCH = 20
"""Number of streams between two crashes of the server. Crashes are few, since loading takes longer than
speaking."""


class Cut(NamedTuple):
    """A stream that was cut off, and the complete speech of the same request."""

    number: int
    transport: client.Transport
    body: Body
    uncut: ReceivedStream
    heard: ReceivedStream
    stream: Generator[ReceivedChunk]


@dataclass(slots=True)
class Resumes(ComparedStreams):
    """What `measure_resumes` found.

    Parameters
    ----------
    table : pandas.DataFrame
        In the order of texts: number, transport, restarted (whether the server was killed and started again
        in between), characters, audio_s (of the whole), cut_s (where it was cut), latency_s (from the attempt
        to connect to the first new chunk), refusals (answers of 429 meanwhile, while the server had not yet
        noticed that its listener had left), and what `compared` finds.
    ready_s : list of float
        How long each restart took until the server was warm.
    """

    ready_s: list[float]


def measure_resumes(start: StartServer, texts: Sequence[str], voice: str, *, seed: int = 0) -> Resumes:
    """Speak each text completely; then speak it again, cut it at random, and resume it.

    Transports take turns. Two of every four streams are resumed on another server: the server is killed after
    each `BATCH` streams, while the last of these is being sent, and a new server is started. Before each
    stream that will be cut, the server's caches are emptied, so that the rest can use only what the part
    before the cut left in them.

    Raises
    ------
    SynthesisError
        A stream failed. The measurement then ends; no stream is left out.
    """
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    ready_s: list[float] = []
    controls: list[NegativeControl] = []
    with ExitStack() as stack, tqdm(total=len(texts)) as bar:
        server = stack.enter_context(start())
        ran = server.facts()

        def resumed(cut: Cut) -> None:
            rows.append(_resumed(server, cut))
            bar.update()

        for first in range(0, len(texts), BATCH):
            batch = range(first, min(first + BATCH, len(texts)))
            for number in (number for number in batch if not _restarted(number)):
                cut = _cut(server, number, texts[number], voice, draw)
                controls = controls or comparison_controls(cut.uncut)
                cut.stream.close()
                resumed(cut)
            waiting: list[Cut] = []
            for number in filter(_restarted, batch):
                if waiting:
                    waiting[-1].stream.close()
                waiting.append(_cut(server, number, texts[number], voice, draw))
            if waiting:
                for process in [*server.process.children(recursive=True), server.process]:
                    with suppress(psutil.NoSuchProcess):  # a child may end with its parent
                        process.kill()  # as a crash would, with the last stream under way
                waiting[-1].stream.close()
                stack.close()
                started_s = time.perf_counter()
                server = stack.enter_context(start())
                ready_s.append(time.perf_counter() - started_s)
            for cut in waiting:
                resumed(cut)
    return Resumes(pd.DataFrame(rows).sort_values("number"), ran, controls, ready_s)


def conclude(run: Run, resumes: Resumes, asked: int) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A sample differed, a stream was not tested, or the latency is over `LATENCY_S`.
    """
    table = resumes.table
    restarted = sum(map(_restarted, range(asked)))
    latencies = {
        "latency": table.latency_s,
        "latency_same_server": table.latency_s[~table.restarted],
        "latency_restarted_server": table.latency_s[table.restarted],
        **{f"latency_{way}": table.latency_s[table.transport == way] for way in client.RESUMABLE},
    }
    figures: dict[str, float] = {
        "cut_deepest_s": table.cut_s.max(),
        "refusals_count": table.refusals.sum(),
    }
    for name, seconds in {"ready_after_restart": resumes.ready_s, **latencies}.items():
        figures |= spread(name, seconds, "p50", "p95", "max")
    checks = [
        Check("restarted_streams_count", table.restarted.sum(), low=restarted, high=restarted),
        Check("latency_p95_s", table.latency_s.quantile(0.95), high=LATENCY_S),
    ]
    return resumes.finish(run, asked, checks, figures)


def printed(resumes: Resumes) -> Iterator[str]:
    """The lines to print."""
    table = resumes.table
    for name, rows in (
        ("the same server", table[~table.restarted]),
        ("a restarted one", table[table.restarted]),
        ("both", table),
    ):
        if len(rows):
            yield (
                f"{len(rows)} streams went on with {name}: {exact(rows).sum()} exact; latency "
                f"p50 {rows.latency_s.median():.3f}, p95 {rows.latency_s.quantile(0.95):.3f}, most "
                f"{rows.latency_s.max():.3f} s; cut {rows.cut_s.min():.1f} to {rows.cut_s.max():.1f} s "
                "into the speech"
            )
    for one in table[~resumes.exact].itertuples():
        yield (
            f"text {one.number} over {one.transport}, cut at {one.cut_s:.2f} s: "
            f"{one.differing_samples} samples differ, {one.missing_samples} are missing"
        )
    if resumes.ready_s:
        yield f"{len(resumes.ready_s)} restarts, ready after {max(resumes.ready_s):.1f} s at most"


def _cut(server: OwnServer, number: int, text: str, voice: str, draw: random.Random) -> Cut:
    body, transport = client.speech_request(text, voice), client.RESUMABLE[number % 2]
    uncut, heard = to_the_end(client.receive(transport, server.url, body)), ReceivedStream()
    server.forget()
    stream = client.receive(transport, server.url, body)
    for chunk in islice(stream, draw.randrange(1, len(uncut.arrivals_s))):
        heard.take(chunk)
    return Cut(number, transport, body, uncut, heard, stream)


def _resumed(server: OwnServer, cut: Cut) -> dict[str, Any]:
    heard, cut_s, chunks = cut.heard, cut.heard.audio_s, len(cut.heard.arrivals_s)
    started_s = time.perf_counter()
    source = partial(client.receive, cut.transport, server.url, cut.body)
    listen(source, heard, goes_on=False, patience_s=client.ANSWER_S)
    if not heard.complete:
        raise heard.breaks[-1]
    return {
        "number": cut.number,
        "transport": cut.transport,
        "restarted": _restarted(cut.number),
        "characters": len(cut.body["input"]),
        "audio_s": cut.uncut.audio_s,
        "cut_s": cut_s,
        "latency_s": heard.began_s + heard.arrivals_s[chunks] - started_s,
        "refusals": heard.refusals,
        **compared(heard, cut.uncut),
    }


def _restarted(number: int) -> bool:
    """Whether a stream is resumed on a restarted server: two of every four, so that both transports meet both
    cases."""
    return number % 4 >= 2
