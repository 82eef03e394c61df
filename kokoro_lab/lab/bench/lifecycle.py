"""Tests whether listeners lose a sample when their server is stopped or crashes.

Several streams are begun at once. When each of them has brought some speech, the server is stopped or killed.
A client that receives `server_stopping`, or whose connection breaks, resumes its stream on the next server
(see `server.requests.resume`) until its speech is complete.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, pairwise
from math import nan
from typing import Any, Literal, get_args

import pandas as pd

from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.client import Body
from kokoro_lab.lab.bench.compared import ComparedStreams, compared, exact, spread
from kokoro_lab.lab.bench.own_server import OwnServer, StartServer
from kokoro_lab.lab.bench.persistent import SpeechSource, listen
from kokoro_lab.lab.bench.received import ReceivedStream, comparison_controls, to_the_end
from kokoro_lab.lab.results import Check, Run

EARLY, LATE = 0.15, 0.35
"""Smallest and largest share of its speech that a client has when the server is stopped or killed, so that
the stream sounds and enough is still to come."""
BACK_S = 60.0
"""Seconds after which a client that has not been served again counts as having lost its speech."""
STOPPING = "server_stopping"
HEARD_S = 300.0

Ending = Literal["whole", "told", "broken off"]
ENDINGS: tuple[Ending, ...] = get_args(Ending)


@dataclass(frozen=True, slots=True)
class LifecycleEvent:
    """A signal that is sent to a server while it speaks, as at a restart or a crash.

    Parameters
    ----------
    name : str
    signal : signal.Signals
        SIGTERM, as at a restart of the service; or SIGKILL, which ends a process as the system does when
        memory is short, or as a crash by a bug does.
    shutdown_s : int
        Setting of the server: how many seconds streams under way may still take when it is stopped. If a
        server gets two signals, both have the same value.
    expected : tuple of str
        The ways in which a stream may end. A stream near its end may always be complete. So not every stream
        must end in the first of these ways, but at least one.
    to_workers : bool
        Whether the signal goes to the server's workers; otherwise it goes to the process that was started.
    """

    name: str
    signal: signal.Signals
    shutdown_s: int
    expected: tuple[Ending, ...]
    to_workers: bool = False

    @property
    def ends(self) -> bool:
        """Whether the signal ends the server; clients then come back to another server."""
        return not self.to_workers

    def happen(self, server: OwnServer) -> None:
        """Send the signal to `server` now."""
        for process in server.process.children() if self.to_workers else [server.process]:
            os.kill(process.pid, self.signal)


SCENARIOS = (
    LifecycleEvent("kill -9 of the worker", signal.SIGKILL, 300, ("broken off", "whole"), to_workers=True),
    LifecycleEvent("SIGTERM, time enough", signal.SIGTERM, 300, ("whole",)),
    LifecycleEvent("SIGTERM, 2 s", signal.SIGTERM, 2, ("told", "whole")),
    LifecycleEvent("kill -9 of the master", signal.SIGKILL, 300, ("whole",)),  # its worker speaks on
)


def ending_of(heard: ReceivedStream) -> Ending:
    """How the first connection of a stream ended.

    Raises
    ------
    KokoroLabError
        The stream is incomplete, or the server reported another error than its own end.
    """
    for broke in heard.breaks:
        if isinstance(broke, client.ServerReportedError) and broke.said != STOPPING:
            raise broke
    if not heard.complete:
        raise heard.breaks[-1]
    if not heard.breaks:
        return "whole"
    return "told" if isinstance(heard.breaks[0], client.ServerReportedError) else "broken off"


def measure_lifecycle(
    start: StartServer, texts: Sequence[str], voice: str, *, seed: int = 0
) -> ComparedStreams:
    """Run each of `SCENARIOS` while all texts are streamed at once, over server-sent events and over the
    WebSocket in turn.

    Parameters
    ----------
    start : callable
        Takes settings; returns a context with a warm server that can serve all of these streams at the same
        time.
    texts : sequence of str
        One text for each stream; the same texts are spoken in each scenario.
    voice : str
    seed : int
        Seed from which the moments are drawn at which the signals are sent.

    Returns
    -------
    ComparedStreams
        A row for each stream: scenario, transport, audio_s (of the whole speech), heard_s (the speech that
        the client had when the signal was sent), ending (how the first connection ended: complete, by a
        message of the server, or broken off), back_s (from that end to the next chunk, on a new connection;
        not a number if the first one brought all speech), and the columns of `compared`.

    Raises
    ------
    SynthesisError
        A stream never came to its end.
    """
    draw = random.Random(seed)
    bodies = [client.speech_request(text, voice) for text in texts]
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        server = stack.enter_context(start({"shutdown_s": SCENARIOS[0].shutdown_s}))
        ran = server.facts()
        undisturbed = [to_the_end(client.receive("sse", server.url, body)) for body in bodies]
        for scenario, following in pairwise(tqdm([*SCENARIOS, SCENARIOS[-1]])):
            with ThreadPoolExecutor(len(texts), thread_name_prefix="client") as pool:
                listeners = _Listeners(pool, server.url, bodies)
                heard_s = listeners.sounding(
                    [whole.audio_s * draw.uniform(EARLY, LATE) for whole in undisturbed]
                )
                scenario.happen(server)
                if scenario.ends:
                    # The server to which clients come back also serves the next scenario, since loading takes
                    # long
                    server = stack.enter_context(start({"shutdown_s": following.shutdown_s}))
                    listeners.url = server.url
                served = listeners.served()
            rows += [
                _compared(scenario.name, *one)
                for one in zip(cycle(client.RESUMABLE), served, undisturbed, heard_s)
            ]
    return ComparedStreams(pd.DataFrame(rows), ran, comparison_controls(undisturbed[0]))


class _Listeners:
    """Clients that hear one text each at the same time, over both transports in turn, and come back until
    they have heard all of it.

    `url` is the address of the present server, which may have changed when a client comes back.
    """

    def __init__(self, pool: ThreadPoolExecutor, url: str, bodies: Sequence[Body]) -> None:
        self.url = url
        self._heard = [ReceivedStream() for _ in bodies]
        self._ends: list[Future[ReceivedStream]] = [
            pool.submit(
                listen, self._source(transport, body), heard, patience_s=client.ANSWER_S, back_s=BACK_S
            )
            for transport, body, heard in zip(cycle(client.RESUMABLE), bodies, self._heard)
        ]

    def _source(self, transport: client.Transport, body: Body) -> SpeechSource:
        return lambda heard, patience: client.receive(transport, self.url, body, heard, patience)

    def sounding(self, shares_s: Sequence[float]) -> list[float]:
        """Wait until each client has received `shares_s` seconds of speech; returns how many seconds each
        has."""
        until_s = time.monotonic() + HEARD_S
        for heard, end, share_s in zip(self._heard, self._ends, shares_s, strict=True):
            while heard.audio_s < share_s and not end.done():
                if time.monotonic() > until_s:
                    raise SynthesisError(f"A stream has not sounded after {HEARD_S:.0f} s.")
                time.sleep(0.005)
        return [heard.audio_s for heard in self._heard]

    def served(self) -> list[ReceivedStream]:
        """Wait until every client has all of its speech; returns the streams."""
        try:
            return [end.result(HEARD_S) for end in self._ends]
        except TimeoutError:
            raise SynthesisError(f"A stream has not come to its end after {HEARD_S:.0f} s.") from None


def _compared(
    scenario: str, transport: client.Transport, heard: ReceivedStream, whole: ReceivedStream, heard_s: float
) -> dict[str, Any]:
    ending = ending_of(heard)
    return {
        "scenario": scenario,
        "transport": transport,
        "audio_s": whole.audio_s,
        "heard_s": heard_s,
        "ending": ending,
        "back_s": nan if ending == "whole" else heard.recovered_s[0],
        **compared(heard, whole),
    }


def conclude(run: Run, found: ComparedStreams, asked: int) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A sample was lost or repeated, or a stream ended in a way that is not `expected`.
    """
    table = found.table
    checks: list[Check] = []
    figures: dict[str, float] = {}
    for scenario in SCENARIOS:
        rows = table[table.scenario == scenario.name]
        name, meant = _figure_name(scenario.name), scenario.expected[0]
        unexpected = (~rows.ending.isin(scenario.expected)).sum()
        checks.append(Check(f"{name}_unexpected_ends_count", unexpected, high=0))
        checks.append(Check(f"{name}_{meant.replace(' ', '_')}_count", (rows.ending == meant).sum(), low=1))
        back_s = rows.back_s[rows.ending != "whole"]
        if len(back_s):
            figures |= spread(f"{name}_back", back_s, "p50", "max")
    return found.finish(run, asked * len(SCENARIOS), checks, figures)


def printed(found: ComparedStreams) -> Iterator[str]:
    """The lines of the table to print."""
    heads = ("streams", "whole", "told", "broken", "exact")
    yield f"{'what happened':24} {' '.join(f'{head:>7}' for head in heads)}  back after"
    for name, rows in found.table.groupby("scenario", sort=False):
        back_s = rows.back_s[rows.ending != "whole"]
        after = f"p50 {back_s.median():.2f}, most {back_s.max():.2f} s" if len(back_s) else "-"
        counts = (len(rows), *((rows.ending == end).sum() for end in ENDINGS), exact(rows).sum())
        yield f"{name:24} {' '.join(f'{count:7d}' for count in counts)}  {after}"
    for one in found.table[~found.exact].itertuples():
        yield (
            f"{one.scenario}, {one.transport}, at {one.heard_s:.2f} s: {one.differing_samples} samples "
            f"differ, {one.missing_samples} are missing"
        )


def _figure_name(scenario: str) -> str:
    return scenario.lower().replace(" -9", "").replace(",", "").replace(" ", "_")
