"""The verdict of the load benchmark: how many listeners a machine serves in time, and several machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd
from scipy.optimize import brentq
from scipy.stats import poisson

from kokoro_lab.lab.bench.loading import REFUSALS, Crowd, Load
from kokoro_lab.lab.results import Check, Finished, NegativeControl, Run, failed

UNDERRUNS, STRETCH_S = 1.0, 600.0
"""How many underruns are allowed in how many seconds of speech."""
LATER, HALF_LATER = 4.0, 2.0
"""The largest allowed ratio of a crowd's p95 TTFA to the median TTFA of one listener alone: for a crowd of
the machine's capacity, and for one of half that size."""
ANSWER_S = 0.050
"""The largest allowed p95, in seconds, of the time to an answer 429, and to an answer of `/health`."""
REFUSED_SHARE = 0.01
"""The share of randomly arriving listeners whom several machines may refuse."""
MACHINES = (1, 2, 4, 8)


def curve(load: Load) -> pd.DataFrame:
    """A table with a row for each crowd, indexed by the crowd's name.

    `ttfa_to_alone_ratio` is the crowd's p95 TTFA divided by the median TTFA of one listener alone.
    `fairness_ratio` is Jain's index of the listeners' mean TTFA: 1 if all wait equally long.
    `utilisation_percent` is the server's CPU time as a share of what all cores offer in that time;
    `own_cpu_percent` is that of the listeners.
    """
    table = pd.DataFrame({one.name: _row(load, one) for one in load.crowds}).T
    return table.astype(dict.fromkeys(("streams", "refused", "gave_up", "broken", "underruns"), int))


def _row(load: Load, crowd: Crowd) -> dict[str, float]:
    heard, streams = crowd.heard, crowd.streams
    gave_up, of_listeners_s = streams.retry_after_s.notna().sum(), heard.groupby("listener").ttfa_s.mean()
    machine_s = crowd.run_s * load.cores
    return {
        "listeners": crowd.listeners,
        "streams": len(streams),
        "refused": streams.refused.sum(),
        "gave_up": gave_up,
        "broken": len(streams) - len(heard) - gave_up,
        "speech_minutes": heard.audio_s.sum() / 60,
        **{f"ttfa_p{percent}_s": heard.ttfa_s.quantile(percent / 100) for percent in (50, 95, 99)},
        "ttfa_to_alone_ratio": heard.ttfa_s.quantile(0.95) / load.crowds[0].heard.ttfa_s.median(),
        "underruns": heard.underruns.sum(),
        "underruns_in_10_minutes_count": heard.underruns.sum() / max(heard.audio_s.sum() / STRETCH_S, 1e-9),
        "fairness_ratio": of_listeners_s.mean() ** 2 / (of_listeners_s**2).mean(),
        "utilisation_percent": 100 * crowd.cpu_s / machine_s,
        "own_cpu_percent": 100 * crowd.own_cpu_s / machine_s,
    }


def knee(load: Load) -> int:
    """The largest crowd that was served in time, together with all smaller ones."""
    found = 0
    for crowd in load.crowds:
        if crowd.by_chance or failed(_in_time(load, crowd, LATER)):
            break
        found = int(crowd.listeners)
    return found


def machines(listeners: int) -> pd.DataFrame:
    """An estimate of how many listeners several machines serve behind a balancer, if each machine serves
    `listeners` at once.

    For listeners who come at random, the estimate is the average number of listeners at which one in a
    hundred is refused (Erlang's B formula), assuming that every other listener finds a machine with a free
    place.
    """

    def refused(mean: float, places: int) -> float:
        return float(poisson.pmf(places, mean) / poisson.cdf(places, mean) - REFUSED_SHARE)

    rows = [
        {
            "machines": count,
            "at once": count * listeners,
            "with one stopped": (count - 1) * listeners,
            "by chance, on average": brentq(refused, 1e-9, 2 * count * listeners, (count * listeners,)),
        }
        for count in MACHINES
        if listeners
    ]
    return pd.DataFrame(rows).convert_dtypes()


# ----------------------------------------------------------------------------------------- judge


def judge(load: Load, *, decides: bool = True) -> list[Check]:
    """The checks: every stream is complete and exact, and a full server answers 429. If `decides`, also: 429
    and `/health` come within `ANSWER_S`, and a crowd of the machine's capacity, and one of half that size,
    are served in time, with nobody refused."""
    crowds = load.crowds
    streams = pd.concat([one.streams for one in crowds])
    heard = streams[streams.fault == ""]
    differ = heard.sha256 != heard.reading.map(load.wholes.sha256)
    checks = [
        Check("streams_count", len(streams), low=len(crowds)),
        Check("broken_streams_count", sum(_row(load, one)["broken"] for one in crowds), high=0),
        Check("streams_that_differ_count", differ.sum(), high=0),
        Check("refusals_count", len(load.refused_s), low=REFUSALS),
        Check("other_answers_count", load.other_answers, high=0),
    ]
    if not decides:
        return checks
    for name, seconds in (("refused", load.refused_s), ("health", _health_s(load))):
        checks.append(Check(f"{name}_p95_s", _p95_s(seconds), high=ANSWER_S))
    checks += _in_time(load, _most(load, load.capacity), LATER)
    if not _no_half(load):
        half = _in_time(load, _most(load, load.capacity // 2), HALF_LATER)
        checks += [replace(check, name=f"half_{check.name}") for check in half]
    return checks


def _no_half(load: Load) -> bool:
    """Whether only a listener alone stands for half the capacity, although half is more: one listener's TTFA
    beside its own median says nothing about a crowd."""
    return _most(load, load.capacity // 2).listeners == 1 < load.capacity // 2


def _most(load: Load, listeners: int) -> Crowd:
    """The largest crowd of no more than `listeners`, or else one listener alone."""
    return [one for one in load.crowds if not one.by_chance and one.listeners <= max(1, listeners)][-1]


def _in_time(load: Load, crowd: Crowd, later: float) -> list[Check]:
    """The checks of one crowd: nobody was refused, not even for a while, and the others heard no gap and did
    not wait long."""
    row = _row(load, crowd)
    return [
        Check("refused_count", row["refused"], high=0),
        Check("gave_up_count", row["gave_up"], high=0),
        Check("underruns_in_10_minutes_count", row["underruns_in_10_minutes_count"], high=UNDERRUNS),
        Check("ttfa_p95_to_alone_ratio", row["ttfa_to_alone_ratio"], high=later),
    ]


def _p95_s(seconds: Sequence[float]) -> float:
    return float(pd.Series(seconds, dtype=float).quantile(0.95, interpolation="higher"))


def _health_s(load: Load) -> list[float]:
    """The answer times of `/health` while no more listeners were served than the machine's capacity."""
    borne = [one for one in load.crowds if one.listeners <= max(1, load.capacity)]
    return [seconds for one in borne for seconds in one.health_s]


def controls(load: Load) -> list[NegativeControl]:
    """Negative controls: a server that was really stopped for a second, and injected faults in the streams of
    one listener alone."""
    alone = load.crowds[0]

    def spoilt(**changed: object) -> Crowd:
        return replace(alone, streams=alone.streams.assign(**changed))

    unsound = {
        "a sample off by one bit": spoilt(sha256="another"),
        "a stream that broke off": spoilt(fault="The server broke off."),
    }
    gave_up = alone.streams.assign(fault="The server is busy.", retry_after_s=60.0)
    late = {
        "a silence in every stream": spoilt(underruns=1),
        "streams that are refused once": spoilt(refused=1),
        "every second listener gives up": replace(alone, streams=pd.concat([alone.streams, gave_up])),
        load.stalled.name: load.stalled,
    }
    judged = {name: judge(replace(load, crowds=[one]), decides=False) for name, one in unsound.items()}
    judged |= {name: _in_time(load, one, LATER) for name, one in late.items()}
    return [NegativeControl(name, bool(failed(checks))) for name, checks in judged.items()]


def figures(load: Load) -> dict[str, float]:
    """Figures without a limit, of the machine and of the crowd at its capacity."""
    most = _most(load, load.capacity)
    row = _row(load, most)
    kept = ("speech_minutes", "ttfa_p50_s", "ttfa_p95_s", "ttfa_p99_s", "fairness_ratio")
    return {
        "rtf_p50": load.rtf,
        "capacity_count": load.capacity,
        "knee_count": knee(load),
        "listeners_count": most.listeners,
        "half_listeners_count": _most(load, load.capacity // 2).listeners,
        **{name: row[name] for name in (*kept, "utilisation_percent", "own_cpu_percent")},
        "health_max_s": max(_health_s(load)),
    }


def remarks(load: Load, *, decides: bool = True) -> list[str]:
    """Remarks on what the verdict does not cover."""
    most = _most(load, load.capacity).listeners
    fewer = f"{most:.0f} listeners were there at the most, where {load.capacity} should be borne"
    no_half = f"no crowd was judged as half the capacity: name 2 to {load.capacity // 2} in --listeners, too"
    return [
        *[fewer] * (most < load.capacity),
        *[no_half] * (decides and _no_half(load)),
        *["no time decides"] * (not decides),
    ]


def conclude(run: Run, load: Load, *, decides: bool = True) -> Finished:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        A stream was incomplete, a listener waited too long, or an injected fault was missed.
    """
    return run.finish(
        load.ran,
        checks=judge(load, decides=decides),
        controls=controls(load),
        figures=figures(load),
        details={
            "crowds": curve(load).reset_index(names="crowd").to_dict("records"),
            "streams": pd.concat([one.streams.assign(crowd=one.name) for one in load.crowds]).to_dict(
                "records"
            ),
        },
        remarks=remarks(load, decides=decides),
    )


def printed(load: Load, *, table: bool = True) -> Iterator[str]:
    """The lines to print: the figures and, with `table`, the table of crowds."""
    yield (
        f"one stream of 1,000 characters: RTF {load.rtf:.3f}, so that {load.capacity} listeners should be "
        f"borne; all were served in time up to {knee(load)}"
    )
    if table:
        yield curve(load).round(3).T.to_string()
    for name, seconds in (("429", load.refused_s), ("/health", _health_s(load))):
        yield f"{name}, {len(seconds)} times: p95 {1000 * _p95_s(seconds):.1f} ms"
