"""What listeners hear when the server under them is stopped or crashes, and whether a sample is lost.

Several streams are begun at once; when each of them sounds, something happens to the server. A client that is
told of the end, or cut off, comes back with what it has (see `server.resume`) until it has all of its speech.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

from tqdm import tqdm

from kokoro_lab.audio import BYTES_A_SAMPLE
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.frames import Body, Busy, ReceivedStream, ServerReportedError, Transport, frames
from kokoro_lab.lab.bench.over_http import OverHttp
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.resuming import TRANSPORTS, differences, percentile
from kokoro_lab.lab.results import Check, NegativeControl, Run

EARLY, LATE = 0.15, 0.35
"""Share of its speech that a client has when it happens: enough to sound, with enough still to come."""
AGAIN_S = 0.05
BACK_S = 60.0
"""A client that has not been served again after so long has lost its speech."""
STOPPING = "server_stopping"
HEARD_S = 300.0

Ending = Literal["whole", "told", "broken off"]
ENDINGS: tuple[Ending, ...] = get_args(Ending)
Happens = Callable[[OwnServer], None]
StartServer = Callable[[Mapping[str, Any]], AbstractContextManager[OwnServer]]


@dataclass(frozen=True, slots=True)
class LifecycleEvent:
    """Something that happens to a server.

    Parameters
    ----------
    name : str
    happens : callable
        Does it.
    settings : mapping
        With which that server is started; the same as of the one before, if that left its server running.
    ends : bool
        Whether it ends the server: then clients come back to another one.
    expected : tuple of str
        How streams may end by it. One that was nearly at its end may be whole in any case; so at least
        one must end as the first of these.
    """

    name: str
    happens: Happens
    settings: Mapping[str, Any]
    ends: bool
    expected: tuple[Ending, ...]


def kill_worker(server: OwnServer) -> None:
    """As the system does when memory is short, or a bug: SIGKILL."""
    for worker in server.process.children():
        os.kill(worker.pid, signal.SIGKILL)


def kill_master(server: OwnServer) -> None:
    """SIGKILL to the process that was started; its worker notices that it is alone."""
    os.kill(server.process.pid, signal.SIGKILL)


def stop(server: OwnServer) -> None:
    """SIGTERM, as whoever restarts a service does."""
    os.kill(server.process.pid, signal.SIGTERM)


SCENARIOS = (
    LifecycleEvent(
        "kill -9 of the worker",
        kill_worker,
        {"shutdown_s": 300},
        ends=False,
        expected=("broken off", "whole"),
    ),
    LifecycleEvent("SIGTERM, time enough", stop, {"shutdown_s": 300}, ends=True, expected=("whole",)),
    LifecycleEvent("SIGTERM, 2 s", stop, {"shutdown_s": 2}, ends=True, expected=("told", "whole")),
    LifecycleEvent("kill -9 of the master", kill_master, {"shutdown_s": 300}, ends=True, expected=("whole",)),
)


@dataclass(frozen=True, slots=True)
class LifecycleStream:
    """One stream, from its beginning to its last sample.

    Parameters
    ----------
    scenario : str
    transport : {"sse", "websocket"}
    audio_s : float
        Length of the whole.
    heard_s : float
        What the client had when it happened.
    ending : {"whole", "told", "broken off"}
        How the connection ended that it happened to.
    back_s : float
        From that end to the next frame, on a new connection; not a number if it was whole.
    differing_samples, missing_samples : int
        Of all that was heard, against the same speech undisturbed.
    """

    scenario: str
    transport: Transport
    audio_s: float
    heard_s: float
    ending: Ending
    back_s: float
    differing_samples: int
    missing_samples: int

    @property
    def exact(self) -> bool:
        """Whether no sample was lost, repeated or changed."""
        return not self.differing_samples and not self.missing_samples


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What `measure_lifecycle` found."""

    streams: list[LifecycleStream]
    ran: dict[str, Any]
    controls: list[NegativeControl]


class ReturningListener:
    """One listener in a thread of its own, who comes back until all is heard.

    Parameters
    ----------
    transport : {"sse", "websocket"}
    body : dict
        Of the request.
    url : callable
        The server's now; it may be another one when the client comes back.
    """

    def __init__(self, transport: Transport, body: Body, url: Callable[[], str]) -> None:
        self.transport = transport
        self.heard = ReceivedStream()
        self.ending: Ending = "whole"
        self.back_s = float("nan")
        self.error: Exception | None = None
        self._body = body
        self._url = url
        self._left_s: float | None = None
        self._thread = threading.Thread(target=self._listen, name="client", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def join(self) -> None:
        """Wait until all is heard.

        Raises
        ------
        SynthesisError
            It never will be.
        """
        self._thread.join(HEARD_S)
        if self.error is not None:
            raise self.error
        if self._thread.is_alive():
            raise SynthesisError(f"A stream has not come to its end after {HEARD_S:.0f} s.")

    def _listen(self) -> None:
        try:
            while not self._heard_to_the_end():
                time.sleep(AGAIN_S)
        except Exception as error:  # the thread that waits for this one raises it
            self.error = error

    def _heard_to_the_end(self) -> bool:
        try:
            for frame in frames(self.transport, self._url(), {**self._body, **self.heard.back}):
                if self._left_s is not None and self.back_s != self.back_s:
                    self.back_s = time.perf_counter() - self._left_s
                self.heard.take(frame)
            return True
        except Busy:
            if self.heard.count:  # else it waits for its first turn, and nothing has broken off
                self._left("broken off")
        except ServerReportedError as told:
            if told.said != STOPPING:
                raise
            self._left("told")
        except SynthesisError:
            self._left("broken off")
        return False

    def _left(self, how: Ending) -> None:
        now_s = time.perf_counter()
        if self._left_s is None:
            self._left_s, self.ending = now_s, how
        elif now_s - self._left_s > BACK_S:
            raise SynthesisError(f"A client was not served again within {BACK_S:.0f} s.")


def measure_lifecycle(
    start: StartServer,
    texts: Sequence[str],
    voice: str,
    scenarios: Sequence[LifecycleEvent] = SCENARIOS,
    *,
    seed: int = 0,
    progress: bool = True,
) -> Lifecycle:
    """Let each scenario happen under as many streams as there are texts, over both transports.

    Parameters
    ----------
    start : callable
        Given settings, a server that is warm and speaks that many at a time.
    texts : sequence of str
        One for each stream; the same in each scenario.
    voice : str
    scenarios : sequence of LifecycleEvent
    seed : int
        Of the moments at which it happens.
    progress : bool
        Whether to show a bar.

    Raises
    ------
    SynthesisError
        A stream never came to its end.
    """
    draw = random.Random(seed)
    bodies: list[Body] = [
        {"input": text, "voice": voice, "response_format": "pcm", "sample_rate": SAMPLE_RATE_HZ}
        for text in texts
    ]
    streams: list[LifecycleStream] = []
    with ExitStack() as stack:
        server = stack.enter_context(start(scenarios[0].settings))
        ran = OverHttp(server.url, voice, server.process).facts()
        undisturbed = [_whole(server.url, body) for body in bodies]
        for scenario, following in pairwise(tqdm([*scenarios, None], disable=not progress)):
            assert scenario is not None
            listeners = _Listeners(server.url, bodies, undisturbed)
            listeners.begin(draw)
            scenario.happens(server)
            if scenario.ends:
                # Whom they come back to is the server of the next scenario, too: loading takes its time
                server = stack.enter_context(
                    start(scenario.settings if following is None else following.settings)
                )
                listeners.url = server.url
            streams += listeners.served(scenario.name)
    return Lifecycle(streams, ran, _controls(undisturbed[0]))


class _Listeners:
    """Clients that hear the same texts at the same time, and what each would have heard undisturbed."""

    def __init__(self, url: str, bodies: Sequence[Body], undisturbed: Sequence[ReceivedStream]) -> None:
        self.url = url
        self._undisturbed = undisturbed
        self._bytes_heard: list[int] = []
        self._clients = [
            ReturningListener(TRANSPORTS[number % 2], body, lambda: self.url)
            for number, body in enumerate(bodies)
        ]

    def begin(self, draw: random.Random) -> None:
        """Have all of them listen, until each has a share of its speech."""
        for client in self._clients:
            client.start()
        for client, whole in zip(self._clients, self._undisturbed, strict=True):
            _wait_for(client, max(1, round(whole.count * draw.uniform(EARLY, LATE))))
        self._bytes_heard = [len(client.heard.audio) for client in self._clients]

    def served(self, scenario: str) -> Iterator[LifecycleStream]:
        """What each has, once it has all."""
        second = BYTES_A_SAMPLE * SAMPLE_RATE_HZ
        for client, heard, whole in zip(self._clients, self._bytes_heard, self._undisturbed, strict=True):
            client.join()
            differing, missing = differences(client.heard.audio, whole.audio)
            yield LifecycleStream(
                scenario=scenario,
                transport=client.transport,
                audio_s=len(whole.audio) / second,
                heard_s=heard / second,
                ending=client.ending,
                back_s=client.back_s,
                differing_samples=differing,
                missing_samples=missing,
            )


def conclude(run: Run, found: Lifecycle, asked: int) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A sample was lost or repeated, or a stream ended as it should not.
    """
    checks = [
        Check("streams_count", len(found.streams), low=asked * len(SCENARIOS), high=asked * len(SCENARIOS)),
        Check("streams_that_differ_count", sum(not one.exact for one in found.streams), high=0),
    ]
    figures: dict[str, float] = {}
    for scenario in SCENARIOS:
        some = [one for one in found.streams if one.scenario == scenario.name]
        name = _figure_name(scenario.name)
        unexpected = sum(one.ending not in scenario.expected for one in some)
        as_meant = sum(one.ending == scenario.expected[0] for one in some)
        checks.append(Check(f"{name}_unexpected_ends_count", unexpected, high=0))
        checks.append(Check(f"{name}_{scenario.expected[0].replace(' ', '_')}_count", as_meant, low=1))
        back = [one.back_s for one in some if one.ending != "whole"]
        if back:
            figures |= {f"{name}_back_p50_s": percentile(back, 50), f"{name}_back_max_s": max(back)}
    return run.finish(
        found.ran,
        checks=checks,
        controls=found.controls,
        figures=figures,
        details={"streams": [asdict(one) for one in found.streams]},
    )


def printed(found: Lifecycle) -> Iterator[str]:
    """What the clients saw, as a table."""
    heads = ("streams", "whole", "told", "broken", "exact")
    yield f"{'what happened':24} {' '.join(f'{head:>7}' for head in heads)}  back after"
    for name in dict.fromkeys(one.scenario for one in found.streams):
        some = [one for one in found.streams if one.scenario == name]
        ends = [one.ending for one in some]
        back = [one.back_s for one in some if one.ending != "whole"]
        after = f"p50 {percentile(back, 50):.2f}, most {max(back):.2f} s" if back else "-"
        counts = (len(some), *map(ends.count, ENDINGS), sum(one.exact for one in some))
        yield f"{name:24} {' '.join(f'{count:7d}' for count in counts)}  {after}"
    for one in found.streams:
        if not one.exact:
            yield (
                f"{one.scenario}, {one.transport}, at {one.heard_s:.2f} s: {one.differing_samples} samples "
                f"differ, {one.missing_samples} are missing"
            )


def _whole(url: str, body: Body) -> ReceivedStream:
    heard = ReceivedStream()
    for frame in frames("sse", url, body):
        heard.take(frame)
    return heard


def _wait_for(client: ReturningListener, count: int) -> None:
    until_s = time.monotonic() + HEARD_S
    while client.heard.count < count:
        if client.error is not None:
            raise client.error
        if time.monotonic() > until_s:
            raise SynthesisError(f"A stream has not sounded after {HEARD_S:.0f} s.")
        time.sleep(0.005)


def _controls(whole: ReceivedStream) -> list[NegativeControl]:
    """Faults that the comparison must see: it is only as good as what it would catch."""
    audio = bytes(whole.audio)
    frame = len(audio) // whole.count // BYTES_A_SAMPLE * BYTES_A_SAMPLE
    middle = len(audio) // 2 // BYTES_A_SAMPLE * BYTES_A_SAMPLE
    faults = {
        "a frame lost": audio[:middle] + audio[middle + frame :],
        "a frame played twice": audio[:middle] + audio[middle - frame :],
        "the end missing": audio[:-frame],
    }
    return [NegativeControl(name, differences(joined, audio) != (0, 0)) for name, joined in faults.items()]


def _figure_name(scenario: str) -> str:
    return scenario.lower().replace(" -9", "").replace(",", "").replace(" ", "_")
