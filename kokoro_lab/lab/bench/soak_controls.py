"""Controls of the soak benchmark: made-up soaks with one fault each, and a server that leaks memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from kokoro_lab.lab.bench.client import TRANSPORTS
from kokoro_lab.lab.bench.memory import SETTLE_S, growth_of, held_by
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.soak import Soak, SoakReading, listened
from kokoro_lab.lab.bench.soak_verdict import judge, judge_growth
from kokoro_lab.lab.results import NegativeControl, failed

RUN_S, EVERY_S, READ_EVERY_S = 1_200.0, 10.0, 5.0
NOISE = 0.02
LEAKY_STREAMS = 40
Fault = Callable[[Soak], Soak]
NOTHING, MEMORY, DESCRIPTORS, THREADS = "nothing", "memory", "a descriptor", "a thread"
LEAKS = {
    NOTHING: "None",
    MEMORY: "bytearray(b'x' * 2**21)",
    DESCRIPTORS: "os.open(sys.executable, os.O_RDONLY)",
    THREADS: "threading.Thread(target=threading.Event().wait, daemon=True).start()",
}
"""What a leaking server keeps of every stream → the Python expression for it."""
LEAKY_SERVER = """
import array, math, os, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

hum = array.array("h", (round(8_000 * math.sin(math.tau * 200 * n / 24_000)) for n in range(2_400))).tobytes()
kept = []

class Leaky(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(b'{{"status": "ok"}}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        kept.append({keeps})
        self.answer(hum)

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args): ...

server = ThreadingHTTPServer(("127.0.0.1", 0), Leaky)
print(f"Listening at: http://127.0.0.1:{{server.server_port}}", flush=True)
server.serve_forever()
"""
"""A program that serves as much of our API as a listener needs, with a hum as speech. It loads only the
standard library, so its memory grows by what it leaks."""


def controls() -> list[NegativeControl]:
    """All negative controls: made-up soaks first, then the leaking servers."""
    return [*made_up_controls(), *leaking_controls()]


def made_up_controls() -> list[NegativeControl]:
    """Made-up soaks of 20 minutes with one fault each, which must fail, and others that must pass."""
    good = made_up()
    found = [
        NegativeControl(f"passes: {name}", not failed(judge(fault(good)))) for name, fault in HARMLESS.items()
    ]
    return found + [NegativeControl(name, bool(failed(judge(fault(good))))) for name, fault in FAULTS.items()]


def leaking_controls(streams: int = LEAKY_STREAMS) -> list[NegativeControl]:
    """Negative controls of memory growth, each a real server in a process of its own: some keep something of
    each stream and must fail; one keeps nothing and must pass."""
    found = []
    for kind in LEAKS:
        passes = not failed(judge_growth(growth_of(leaking(kind, streams))))
        if kind == NOTHING:
            found.append(NegativeControl("passes: a real server that keeps nothing", passes))
        else:
            found.append(NegativeControl(f"a real server that keeps {kind} of every stream", not passes))
    return found


def leaking(kind: str, streams: int = LEAKY_STREAMS) -> pd.DataFrame:
    """The resources of a leaking server after each of `streams` streams."""
    reading = SoakReading("0", "A.", "any")
    command = [sys.executable, "-c", LEAKY_SERVER.format(keeps=LEAKS[kind])]
    with own_server({}, command) as server:
        found = []
        for number in range(streams):
            if fault := listened(server, reading, "http", number, number)["fault"]:
                raise AssertionError(f"the server of the control failed: {fault}")
            found.append(held_by(server.process, number))
    return pd.DataFrame(found)


def made_up(seed: int = 0) -> Soak:
    """20 minutes without a fault: ten readings in turn, times with a little noise, memory that settles."""
    draw = np.random.default_rng(seed)
    names = [f"{number}" for number in range(10)]
    lengths = [48_000 * (1 + number) for number in range(10)]
    wholes = pd.DataFrame({"samples_count": lengths, "sha256": names}, index=names)
    streams = pd.DataFrame({"at_s": np.arange(0, RUN_S, EVERY_S)})
    number = streams.index % 10
    streams = streams.assign(
        number=streams.index,
        reading=number.astype(str),
        way=[TRANSPORTS[n % len(TRANSPORTS)] for n in streams.index],
        fault="",
        samples_count=wholes.samples_count.to_numpy()[number],
        sha256=wholes.sha256.to_numpy()[number],
        ttfa_s=(0.1 + 0.01 * number) * draw.lognormal(0, NOISE, len(streams)),
        rtf=0.3 * draw.lognormal(0, NOISE, len(streams)),
        audio_s=2 * (1 + number),
        underruns=0,
        late_s=0.0,
        longest_gap_s=0.0,
    )
    at_s = np.arange(0, RUN_S, READ_EVERY_S)
    holdings = pd.DataFrame(
        {
            "at_s": at_s,
            "rss_mb": 600 + 40 * (1 - np.exp(-at_s / 60)) + draw.normal(0, 1, len(at_s)),
            "descriptors": 30 + draw.integers(0, 4, len(at_s)),
            "threads": 24,
        }
    )
    return Soak(RUN_S, 1, wholes, streams, holdings, left_behind=0)


def _streams(**changed: Callable[[pd.DataFrame], pd.Series]) -> Fault:
    return lambda soak: replace(soak, streams=soak.streams.assign(**changed))


def _held(**changed: Callable[[pd.DataFrame], pd.Series]) -> Fault:
    return lambda soak: replace(soak, holdings=soak.holdings.assign(**changed))


def _one(name: str, value: object) -> Fault:
    """A fault in one stream in the middle of the run: its column `name` has this value."""
    return _streams(**{name: lambda streams: streams[name].where(streams.index != len(streams) // 2, value)})


def _rises(at_s: pd.Series, percent: float) -> pd.Series:
    """A factor: 1 in the first half of a run, rising by `percent` in the second half."""
    return 1 + percent / 100 * (at_s / (RUN_S / 2) - 1).clip(lower=0)


def _longer_texts(soak: Soak) -> Soak:
    """The soak with only the readings of early first audio in its first half, and only the others in its
    second half."""
    late, slow = soak.streams.at_s >= RUN_S / 2, soak.streams.reading.astype(int) >= 5
    return replace(soak, streams=soak.streams[late == slow])


HARMLESS: dict[str, Fault] = {
    "20 minutes without a fault": lambda soak: soak,
    "longer texts in the second half": _longer_texts,
    "memory that grows in the first minutes": _held(
        rss_mb=lambda held: held.rss_mb + 100 * (held.at_s / (SETTLE_S - 60)).clip(upper=1)
    ),
}
FAULTS: dict[str, Fault] = {
    "3 MB more every minute": _held(rss_mb=lambda held: held.rss_mb + 3 * held.at_s / 60),
    "a descriptor more with every stream": _held(
        descriptors=lambda held: held.descriptors + held.at_s // EVERY_S
    ),
    "a thread more with every stream": _held(threads=lambda held: held.threads + held.at_s // EVERY_S),
    "first audio 8 % later at the end": _streams(ttfa_s=lambda heard: heard.ttfa_s * _rises(heard.at_s, 8)),
    "computing 8 % slower at the end": _streams(rtf=lambda heard: heard.rtf * _rises(heard.at_s, 8)),
    "one stream in five ever later": _streams(
        ttfa_s=lambda heard: heard.ttfa_s.where(heard.number % 5 > 0, heard.ttfa_s * _rises(heard.at_s, 60))
    ),
    "one underrun": _one("underruns", 1),
    "one stream that broke off": _one("fault", "The server broke off."),
    "one stream a sample short": _one("samples_count", 1),
    "one stream with another sample": _one("sha256", "another"),
    "a synthesis that goes on for nobody": lambda soak: replace(soak, left_behind=1),
    "nobody listened": lambda soak: replace(soak, streams=soak.streams[:0]),
}
