"""The verdict of the soak benchmark: no stream ended early, no sample is missing, no figure drifts."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from kokoro_lab.lab.bench.compared import spread
from kokoro_lab.lab.bench.drift import FigureDrift, adjusted, drift
from kokoro_lab.lab.bench.memory import SETTLE_S, Growth, growth_of
from kokoro_lab.lab.bench.soak import Soak
from kokoro_lab.lab.results import Check, Finished, NegativeControl, Run

DRIFT_PERCENT = 5.0
RSS_GROWTH_MB = 30.0
HELD_MORE = 8
"""How many more descriptors, or threads, may be held at the end than after the first minutes, since a pool
may still grow by a few. A leak of one in twenty streams stays below this in 20 minutes, and is caught in an
hour."""
GROWTH_FROM_MINUTES = 2.0
"""The shortest run in which growth of memory is judged. In a shorter run memory is still settling."""
TIMES_FROM_MINUTES = 10.0
"""The shortest run in which times are judged. In a shorter run, a line through its time windows shows only
noise."""


def judge(soak: Soak) -> list[Check]:
    """The checks of a soak: streams always, resources if it took 2 minutes or more, times if it took 10
    minutes or more with one stream at a time.

    The drift of a median fails if its estimate is over the limit. That of a 95th percentile (with few
    streams, nearly the longest one) fails only if its whole 95 % interval is over the limit.
    """
    checks = judge_streams(soak)
    if soak.minutes >= GROWTH_FROM_MINUTES:
        checks += judge_growth(growth_of(soak.holdings))
    if soak.minutes >= TIMES_FROM_MINUTES and soak.nominal:
        checks += judge_times(soak)
    return checks


def judge_streams(soak: Soak) -> list[Check]:
    """The checks of the streams: each one ended properly with every sample, and none goes on after its
    listener left."""
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
    """The checks that the server holds no more at the end than after the first minutes."""
    return [
        Check("rss_growth_mb", growth.rss_mb, high=RSS_GROWTH_MB),
        Check("descriptors_growth_count", growth.descriptors, high=HELD_MORE),
        Check("threads_growth_count", growth.threads, high=HELD_MORE),
    ]


def judge_times(soak: Soak) -> list[Check]:
    """The checks of the times: no listener had to wait, and the last streams were as fast as the first."""
    found = [Check("underruns_count", soak.heard.underruns.sum(), high=0)]
    for name, (middle, tail) in drifts(soak).items():
        found.append(Check(f"{name}_drift_percent", middle.percent, high=DRIFT_PERCENT))
        found.append(Check(f"{name}_p95_drift_at_least_percent", tail.low, high=DRIFT_PERCENT))
    return found


def drifts(soak: Soak) -> dict[str, tuple[FigureDrift, FigureDrift]]:
    """For TTFA and RTF: the drift of the windows' medians, and of their 95th percentiles.

    A *reading* is one text by one voice, spoken again and again; each stream is compared only with others of
    its reading.
    """
    heard = soak.heard
    found = {}
    for name, values in (("ttfa", heard.ttfa_s), ("rtf", heard.rtf)):
        middle, tail = (drift(heard.at_s, values, heard.reading, soak.run_s, percent) for percent in (50, 95))
        found[name] = middle, tail
    return found


def figures(soak: Soak) -> dict[str, float]:
    """Figures without a limit. Times are among them only if the run is long enough."""
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


def remarks(soak: Soak) -> list[str]:
    """Remarks on what was not judged: because the run was too short, or because of other clients."""
    short = {"growth": soak.minutes < GROWTH_FROM_MINUTES, "times": soak.minutes < TIMES_FROM_MINUTES}
    unjudged = " and ".join(name for name, is_short in short.items() if is_short)
    crowded = "no time decides: several listeners, or clients that misbehave, were there"
    return [
        *[f"too short to judge {unjudged}"] * bool(unjudged),
        *[crowded] * (not short["times"] and not soak.nominal),
    ]


def conclude(run: Run, soak: Soak, controls: list[NegativeControl]) -> Finished:
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
        remarks=remarks(soak),
    )


def by_reading(soak: Soak) -> pd.DataFrame:
    """A row for each reading: streams, faults, and the medians of what was heard."""
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
    """A row for each figure: how much it rises over the second half of the run, the interval of this rise,
    and the number of time windows from which the rise was computed."""
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
    """For TTFA and RTF: minutes, and each stream's value ÷ the median of its reading."""
    heard = soak.heard
    minutes = list(heard.at_s / 60)
    columns = {"TTFA": heard.ttfa_s, "RTF": heard.rtf}
    return {name: (minutes, list(adjusted(values, heard.reading))) for name, values in columns.items()}


def window_points(soak: Soak) -> dict[str, tuple[list[float], list[float]]]:
    """For TTFA and RTF: minutes, and the median of each window in which drift is looked for."""
    return {
        name.upper(): ([at_s / 60 for at_s in middle.at_s], list(middle.levels))
        for name, (middle, _) in drifts(soak).items()
    }


def held(soak: Soak) -> pd.DataFrame:
    """The server's resources by minute: memory MB, descriptors, threads."""
    table = soak.holdings.assign(minutes=soak.holdings.at_s / 60)
    named = {"rss_mb": "resident memory, MB", "descriptors": "descriptors", "threads": "threads"}
    return table.set_index("minutes").rename(columns=named)[list(named.values())]


def settled_minutes(soak: Soak) -> float:
    """The minute from which memory is judged: before it, caches fill and pools grow."""
    return min(SETTLE_S, soak.run_s / 4) / 60


def printed(soak: Soak, *, tables: bool = True) -> Iterator[str]:
    """The lines to print; with `tables`, the tables are among them."""
    yield (
        f"{len(soak.streams)} streams of {len(soak.wholes)} readings in {soak.minutes:.1f} minutes, "
        f"{soak.concurrency} at a time; {len(soak.streams) - len(soak.heard)} ended unexpectedly"
    )
    if soak.misbehaved is not None:
        yield "meanwhile " + ", ".join(f"{count} {kind}" for kind, count in sorted(soak.misbehaved.items()))
    for one in soak.streams[soak.streams.fault != ""].itertuples():
        yield f"  stream {one.number} over {one.way}, after {one.at_s:.0f} s: {one.fault}"
    if tables and len(soak.heard):
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
