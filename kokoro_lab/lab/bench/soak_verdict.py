"""What a soak shows: nothing ended early, nothing is missing, nothing creeps, nothing is kept."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import linregress
from scipy.stats import t as student

from kokoro_lab.lab.bench.client import TRANSPORTS
from kokoro_lab.lab.bench.compared import spread
from kokoro_lab.lab.bench.memory import SETTLE_S, Growth, growth_of, held_by
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.soak import Soak, SoakReading, listened
from kokoro_lab.lab.results import Check, NegativeControl, Run, failed

DRIFT_PERCENT = 5.0
RSS_GROWTH_MB = 30.0
HELD_MORE = 8
"""Descriptors or threads that may be held beyond those after the first minutes: a pool that still grows by a
few. A leak of one in twenty streams stays below this in 20 minutes, and is caught in an hour."""
GROWTH_FROM_MINUTES = 2.0
"""In a shorter run memory still settles: what is held is told, and not judged."""
TIMES_FROM_MINUTES = 10.0
"""In a shorter run a line through the windows shows their noise: times are told, and not judged."""
WINDOWS = 10
"""Of the second half of a run, in which drift is looked for."""
FEWEST_VALUES, FEWEST_WINDOWS = 3, 4
"""A window of fewer values is left out; a line through fewer windows says nothing."""

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
"""What a server keeps of every stream, on purpose."""
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
"""It speaks as much of our API as a listener needs, and hums. It loads the standard library alone, so what it
holds is what it keeps."""


@dataclass(frozen=True, slots=True)
class FigureDrift:
    """How much a figure rose over the second half of a run.

    Parameters
    ----------
    percent : float
        Rise over that half ÷ its level there; below 0 where it fell. Not a number of too few values.
    low, high : float
        95 % interval, from how the windows scatter about the line.
    at_s, levels : tuple of float
        Middle of each window, and the figure there, 1 being the usual one of the same group.
    """

    percent: float
    low: float
    high: float
    at_s: tuple[float, ...] = ()
    levels: tuple[float, ...] = ()


def adjusted(values: pd.Series, groups: pd.Series) -> pd.Series:
    """Each value ÷ the median of its group over the whole run.

    A long text takes longer than a short one: what a window happens to hold must not look like drift. A level
    that rises from one half to the other raises every group alike, and stays to be seen.
    """
    return values / values.groupby(groups).transform("median")


def drift(
    at_s: pd.Series, values: pd.Series, groups: pd.Series, run_s: float, percentile: float = 50
) -> FigureDrift:
    """A line through the windows of the second half, by least squares.

    Parameters
    ----------
    at_s : pandas.Series
        When each value was taken, in seconds from the start of the run.
    values : pandas.Series
        Above 0.
    groups : pandas.Series
        What each value is of; values of different groups are never compared.
    run_s : float
        Length of the run.
    percentile : float
        What a window is summed up by. The 95th of fewer than 20 values is nearly the largest.

    Notes
    -----
    The interval is Student's of a slope, with two degrees of freedom fewer than there are windows. It is
    taken over windows and not over values, since what disturbs a machine lasts longer than one stream.
    """
    half_s = run_s / 2
    levels = adjusted(values, groups)
    middles, found = [], []
    for start_s, end_s in pairwise(np.linspace(half_s, run_s, WINDOWS + 1)):
        inside = levels[(at_s >= start_s) & (at_s < end_s)]
        if len(inside) >= FEWEST_VALUES:
            middles.append(float(start_s + end_s) / 2)
            found.append(float(np.percentile(inside, percentile)))
    if len(found) < FEWEST_WINDOWS:
        return FigureDrift(math.nan, math.nan, math.nan)
    line = linregress(middles, found)
    percent = 100 * half_s / float(np.mean(found))
    beyond = float(student.ppf(0.975, len(found) - 2)) * line.stderr
    low, high = (float(percent * (line.slope + side * beyond)) for side in (-1, 1))
    return FigureDrift(float(percent * line.slope), low, high, tuple(middles), tuple(found))


def judge(soak: Soak) -> list[Check]:
    """Streams always; what is held from 2 minutes on; times from 10 on, one stream at a time.

    Drift is judged by its estimate. That of the 95th percentile, which of a window's few streams is nearly
    the longest one, fails only where all of its interval is over the limit.
    """
    checks = judge_streams(soak)
    if soak.minutes >= GROWTH_FROM_MINUTES:
        checks += judge_growth(growth_of(soak.holdings))
    if soak.minutes >= TIMES_FROM_MINUTES and soak.nominal:
        checks += judge_times(soak)
    return checks


def judge_streams(soak: Soak) -> list[Check]:
    """Every stream came to its proper end with every sample, and none goes on for nobody."""
    heard, wholes = soak.heard, soak.wholes
    incomplete = heard.samples_count != heard.reading.map(wholes.samples_count)
    differing = heard.sha256 != heard.reading.map(wholes.sha256)
    return [
        Check("streams_count", len(soak.streams), low=soak.concurrency),
        Check("unexpected_ends_count", len(soak.streams) - len(heard), high=0),
        Check("streams_incomplete_count", incomplete.sum(), high=0),
        Check("streams_that_differ_count", differing.sum(), high=0),
        Check("left_behind_count", soak.left_behind, low=0, high=0),
    ]


def judge_growth(growth: Growth) -> list[Check]:
    """What is held at the end is what was held after the first minutes."""
    return [
        Check("rss_growth_mb", growth.rss_mb, high=RSS_GROWTH_MB),
        Check("descriptors_growth_count", growth.descriptors, high=HELD_MORE),
        Check("threads_growth_count", growth.threads, high=HELD_MORE),
    ]


def judge_times(soak: Soak) -> list[Check]:
    """No listener waited, and the last stream was as soon and as fast as those before."""
    found = [Check("underruns_count", soak.heard.underruns.sum(), high=0)]
    for name, (middle, tail) in drifts(soak).items():
        found.append(Check(f"{name}_drift_percent", middle.percent, high=DRIFT_PERCENT))
        found.append(Check(f"{name}_p95_drift_at_least_percent", tail.low, high=DRIFT_PERCENT))
    return found


def drifts(soak: Soak) -> dict[str, tuple[FigureDrift, FigureDrift]]:
    """Of TTFA and RTF: the drift of the windows' medians, and of their 95th percentiles.

    A stream is compared with others of the same reading alone.
    """
    heard = soak.heard
    found = {}
    for name, values in (("ttfa", heard.ttfa_s), ("rtf", heard.rtf)):
        middle, tail = (drift(heard.at_s, values, heard.reading, soak.run_s, percent) for percent in (50, 95))
        found[name] = middle, tail
    return found


def figures(soak: Soak) -> dict[str, float]:
    """What has no limit. Of times, only where the run is long enough for them."""
    heard = soak.heard
    found: dict[str, float] = {
        "run_minutes": soak.minutes,
        "readings_count": len(soak.wholes),
        "audio_minutes": heard.audio_s.sum() / 60,
    }
    if soak.misbehaved is not None:
        found |= {f"misbehaving_{kind}_count": count for kind, count in soak.misbehaved.items()}
    if soak.minutes >= GROWTH_FROM_MINUTES:
        growth = growth_of(soak.holdings)
        found["rss_mb_an_hour"] = growth.rss_mb_an_hour
        found["rss_peak_mb"] = soak.holdings.rss_mb.max()
    if soak.minutes >= TIMES_FROM_MINUTES:
        found |= {
            **spread("ttfa", heard.ttfa_s, "p50", "p95"),
            "rtf_p50": heard.rtf.median(),
            "rtf_p95": heard.rtf.quantile(0.95),
            "underruns_in_all_count": heard.underruns.sum(),
            "longest_gap_s": heard.longest_gap_s.max(),
        }
        for name, pair in drifts(soak).items():
            for kind, of in zip(("median", "p95"), pair, strict=True):
                found |= {
                    f"{name}_{kind}_drift_percent": of.percent,
                    f"{name}_{kind}_drift_low_95_percent": of.low,
                    f"{name}_{kind}_drift_high_95_percent": of.high,
                }
    return found


def conclude(run: Run, soak: Soak, controls: list[NegativeControl]) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A figure is beyond its limit, or a fault that was put in on purpose was missed.
    """
    return run.finish(
        soak.ran,
        checks=judge(soak),
        controls=controls,
        figures=figures(soak),
        details={
            "streams": soak.streams.to_dict("records"),
            "holdings": soak.holdings.to_dict("records"),
        },
    )


def by_reading(soak: Soak) -> pd.DataFrame:
    """A row a reading: streams, faults, and the medians of what was heard."""
    groups = soak.streams.groupby("reading", sort=False)
    return pd.DataFrame(
        {
            "streams": groups.size(),
            "faults": groups.fault.agg(lambda faults: int((faults != "").sum())),
            "ways": groups.way.nunique(),
            "audio_s": groups.audio_s.median(),
            "ttfa_s": groups.ttfa_s.median(),
            "ttfa_most_s": groups.ttfa_s.max(),
            "rtf": groups.rtf.median(),
            "underruns": groups.underruns.sum(),
            "longest_gap_s": groups.longest_gap_s.max(),
        }
    )


def drift_table(soak: Soak) -> pd.DataFrame:
    """Rise over the second half with its interval, and how many windows it stands on."""
    rows = [
        {
            "figure": f"{name.upper()}, {kind} of a window",
            "drift_percent": of.percent,
            "low_95": of.low,
            "high_95": of.high,
            "windows": len(of.levels),
        }
        for name, pair in drifts(soak).items()
        for kind, of in zip(("median", "95th percentile"), pair, strict=True)
    ]
    return pd.DataFrame(rows).set_index("figure")


def points(soak: Soak) -> dict[str, tuple[list[float], list[float]]]:
    """Of TTFA and RTF: minutes, and each stream's value ÷ the median of its reading."""
    heard = soak.heard
    minutes = list(heard.at_s / 60)
    columns = {"TTFA": heard.ttfa_s, "RTF": heard.rtf}
    return {name: (minutes, list(adjusted(values, heard.reading))) for name, values in columns.items()}


def window_points(soak: Soak) -> dict[str, tuple[list[float], list[float]]]:
    """Of TTFA and RTF: minutes, and the median of each window that drift is found in."""
    return {
        name.upper(): ([at_s / 60 for at_s in middle.at_s], list(middle.levels))
        for name, (middle, _) in drifts(soak).items()
    }


def held(soak: Soak) -> pd.DataFrame:
    """What the server held, by minute: columns memory MB, descriptors, threads."""
    table = soak.holdings.assign(minutes=soak.holdings.at_s / 60)
    named = {"rss_mb": "resident memory, MB", "descriptors": "descriptors", "threads": "threads"}
    return table.set_index("minutes").rename(columns=named)[list(named.values())]


def settled_minutes(soak: Soak) -> float:
    """Where the first minutes end."""
    return min(SETTLE_S, soak.run_s / 4) / 60


def printed(soak: Soak) -> Iterator[str]:
    """The figures as a person reads them."""
    yield (
        f"{len(soak.streams)} streams of {len(soak.wholes)} readings in {soak.minutes:.1f} minutes, "
        f"{soak.concurrency} at a time; {len(soak.streams) - len(soak.heard)} ended unexpectedly"
    )
    if soak.misbehaved is not None:
        yield "meanwhile " + ", ".join(f"{count} {kind}" for kind, count in sorted(soak.misbehaved.items()))
    for one in soak.streams[soak.streams.fault != ""].itertuples():
        yield f"  stream {one.number} over {one.way}, after {one.at_s:.0f} s: {one.fault}"
    if len(soak.heard):
        yield by_reading(soak).round(3).to_string()
        yield drift_table(soak).round(1).to_string()
    growth = growth_of(soak.holdings)
    yield (
        f"after the first minutes: memory {growth.rss_mb:+.1f} MB ({growth.rss_mb_an_hour:+.0f} MB an hour), "
        f"descriptors {growth.descriptors:+.0f}, threads {growth.threads:+.0f}"
    )
    if soak.minutes < GROWTH_FROM_MINUTES:
        yield f"what is held is judged from {GROWTH_FROM_MINUTES:g} minutes on"
    if soak.minutes < TIMES_FROM_MINUTES or not soak.nominal:
        yield f"times are judged from {TIMES_FROM_MINUTES:g} minutes on, one stream at a time"


def controls() -> list[NegativeControl]:
    """Everything: made-up soaks first, then the server that leaks."""
    return [*made_up_controls(), *leaking_controls()]


def made_up_controls() -> list[NegativeControl]:
    """20 minutes that are good but for one fault, each of which must fail, and two that must pass."""
    good = made_up()
    found = [
        NegativeControl(f"passes: {name}", not failed(judge(fault(good)))) for name, fault in HARMLESS.items()
    ]
    return found + [NegativeControl(name, bool(failed(judge(fault(good))))) for name, fault in FAULTS.items()]


def leaking_controls(streams: int = LEAKY_STREAMS) -> list[NegativeControl]:
    """A server in a process of its own that keeps something of each stream, and one that keeps nothing."""
    found = []
    for kind in LEAKS:
        passes = not failed(judge_growth(growth_of(leaking(kind, streams))))
        if kind == NOTHING:
            found.append(NegativeControl("passes: a real server that keeps nothing", passes))
        else:
            found.append(NegativeControl(f"a real server that keeps {kind} of every stream", not passes))
    return found


def leaking(kind: str, streams: int = LEAKY_STREAMS) -> pd.DataFrame:
    """What a server that leaks holds after each of `streams` streams."""
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
    """One stream of many, in the middle."""
    return _streams(**{name: lambda streams: streams[name].where(streams.index != len(streams) // 2, value)})


def _rises(at_s: pd.Series, percent: float) -> pd.Series:
    """1 in the first half; in the second it rises by so many percent."""
    return 1 + percent / 100 * (at_s / (RUN_S / 2) - 1).clip(lower=0)


def _longer_texts(soak: Soak) -> Soak:
    """The second half holds the readings whose first audio takes longest."""
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
