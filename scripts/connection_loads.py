"""Measure how much silent, half-open and slow connections delay other clients of `kokoro-lab serve`.

For each load, and for all at once, the server is asked without and with the load, interleaved: the time of
`/health`, and of the first audio of a short text that no cache holds. Printed are medians, their ratio and,
where the server states it, how many connections hold a thread of its pool.

    python scripts/connection_loads.py --trials 15
    python scripts/connection_loads.py --silent 24,100,300    # `/health` beside connections without a byte
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL

HEAD = (
    "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: 1000\r\n"
)
OPENINGS = {"idle": b"", "half_head": HEAD.encode(), "slow_body": f'{HEAD}\r\n{{"input": "'.encode()}
"""Kind of connection → what it sends at first. Nothing follows but, of a slow body, a byte a second."""
LOADS = {"idle": 1000, "half_head": 1000, "slow_body": 200}
SETTLE_S = 0.5
"""From the last connection of a load to the first question; as long without a load."""
DRIPS = 10
"""Each slow body gets a byte in every tenth turn of 0.1 s."""
HEALTHS = 5
"""Questions of `/health` a trial."""
NOUNS = ("kettle", "window", "garden", "letter", "engine", "river", "candle", "basket", "mirror", "ladder")
VERBS = ("sings", "waits", "turns", "burns", "rests", "falls", "moves", "shines", "rings", "stands")
FULL_SCALE = 32_768


@contextmanager
def load(address: tuple[str, int], counts: dict[str, int]) -> Iterator[None]:
    """A context with `counts` open connections of each kind. A connection that the server closes is opened
    again.

    A process of its own holds them, because a thread would slow the measurement and not the server.
    """
    context = multiprocessing.get_context("fork")
    ready, over = context.Event(), context.Event()
    process = context.Process(target=hold, args=(address, counts, ready, over), daemon=True)
    process.start()
    try:
        ready.wait()
        time.sleep(SETTLE_S)
        awaited_s = time.monotonic() + 5
        while counts and time.monotonic() < awaited_s:  # beside busy neighbours the server may still accept
            state = connections_of(address, 5)
            if state is None or state["open"] > sum(counts.values()):
                break
        yield
    finally:
        over.set()
        process.join()


def hold(address: tuple[str, int], counts: dict[str, int], ready: Event, over: Event) -> None:
    """Open connections and keep them open until it is `over`."""
    poller = selectors.DefaultSelector()

    def add(kind: str) -> None:
        with suppress(OSError):  # refused: the load is as large as the server lets it be
            connection = socket.create_connection(address, timeout=5)
            connection.sendall(OPENINGS[kind])
            connection.setblocking(False)
            poller.register(connection, selectors.EVENT_READ, kind)

    for kind, count in counts.items():
        for _ in range(count):
            add(kind)
    ready.set()
    turn = 0
    while not over.is_set():
        for key, _ in poller.select(0.1):
            with suppress(OSError):
                if key.fileobj.recv(65_536):  # type: ignore[union-attr]
                    continue
            poller.unregister(key.fileobj)
            key.fileobj.close()  # type: ignore[union-attr]
            add(key.data)
        turn += 1
        for number, key in enumerate(poller.get_map().values()):
            if key.data == "slow_body" and number % DRIPS == turn % DRIPS:  # they do not know of each other
                with suppress(OSError):
                    key.fileobj.send(b" ")  # type: ignore[union-attr]


def health_s(address: tuple[str, int], timeout_s: float) -> float:
    """Seconds until `/health` is answered; infinite if it is not in time."""
    started_s = time.perf_counter()
    with suppress(OSError), closing(HTTPConnection(*address, timeout=timeout_s)) as connection:
        connection.request("GET", "/health")
        if connection.getresponse().read():
            return time.perf_counter() - started_s
    return math.inf


def ttfa_s(address: tuple[str, int], text: str, timeout_s: float) -> float:
    """Seconds until the first sample of speech of `text`; infinite if it does not come in time."""
    body = {"input": text, "voice": "af_heart", "response_format": "pcm", "stream": True}
    started_s = time.perf_counter()
    with suppress(OSError), closing(HTTPConnection(*address, timeout=timeout_s)) as connection:
        connection.request(
            "POST", "/v1/audio/speech", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        data = b""
        while fragment := answer.read1(65_536):
            data += fragment
            samples = np.frombuffer(data[: len(data) - len(data) % BYTES_A_SAMPLE], "<i2")
            if np.any(np.abs(samples.astype(np.int32)) >= SPEECH_LEVEL * FULL_SCALE):
                heard_s = time.perf_counter() - started_s
                while answer.read1(65_536):  # to the end: the next question finds the server idle
                    pass
                return heard_s
    return math.inf


def connections_of(address: tuple[str, int], timeout_s: float) -> dict[str, Any] | None:
    """What `/status` says of connections; None if it does not."""
    with suppress(OSError), closing(HTTPConnection(*address, timeout=timeout_s)) as connection:
        connection.request("GET", "/status")
        found: dict[str, Any] | None = json.loads(connection.getresponse().read()).get("connections")
        return found
    return None


def compared(
    address: tuple[str, int], counts: dict[str, int], texts: Iterator[str], trials: int, timeout_s: float
) -> dict[str, Any]:
    """Measure without and with the load, interleaved: medians in seconds, their ratio, and the figures of
    `/status`."""
    times: dict[str, list[float]] = {name: [] for name in ("health_alone", "health", "ttfa_alone", "ttfa")}
    states = []
    for _ in range(trials):
        for under, held in (("_alone", {}), ("", counts)):
            health_s(address, 60)  # a server that the last load had held up has its time to come back
            with load(address, held):
                times[f"health{under}"] += [health_s(address, timeout_s) for _ in range(HEALTHS)]
                times[f"ttfa{under}"].append(ttfa_s(address, next(texts), timeout_s))
                if held:
                    states.append(connections_of(address, timeout_s))
    found: dict[str, Any] = {f"{name}_s": round(statistics.median(of), 4) for name, of in times.items()}
    for name in ("health", "ttfa"):
        found[f"{name}_ratio"] = round(found[f"{name}_s"] / found[f"{name}_alone_s"], 2)
    known = [state for state in states if state is not None]
    if known:
        found["most_threads_held"] = max(state["served"] for state in known) - 1  # `/status` itself has one
        found["fewest_open"] = min(state["open"] for state in known)
    return found


def texts() -> Iterator[str]:
    """Texts of about one length, no two the same."""
    for first in NOUNS:
        for verb in VERBS:
            for second in NOUNS:
                yield f"{first.capitalize()} {verb} beside the {second}."


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument(
        "--timeout-s", type=float, default=10.0, help="when a question counts as not answered"
    )
    parser.add_argument("--silent", default="", help="numbers of silent connections, with commas")
    parser.add_argument("--loads", default="idle,half_head,slow_body,all", help="which, with commas")
    chosen = parser.parse_args(arguments)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    say = partial(print, file=sys.stdout, flush=True)
    with own_server({}) as server:
        parts = urlsplit(server.url)
        address = (str(parts.hostname), int(parts.port or 0))
        if chosen.silent:
            for count in map(int, chosen.silent.split(",")):
                with load(address, {"idle": count}):
                    say(
                        json.dumps(
                            {"silent": count, "health_s": round(health_s(address, chosen.timeout_s), 4)}
                        )
                    )
                health_s(address, 60)
            return
        spoken = texts()
        for name in chosen.loads.split(","):
            counts = LOADS if name == "all" else {name: LOADS[name]}
            found = compared(address, counts, spoken, chosen.trials, chosen.timeout_s)
            say(json.dumps({"load": counts, "trials": chosen.trials, **found}))


if __name__ == "__main__":
    main()
