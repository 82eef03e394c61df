"""Listeners who are not served in time fail the run, and several machines are counted on paper."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.bench.load_verdict import conclude, controls, curve, judge, knee, machines, remarks
from kokoro_lab.lab.bench.loading import REFUSALS, Crowd, Load
from kokoro_lab.lab.results import failed, open_run


def crowd(listeners: int, **changed: Any) -> Crowd:
    streams = pd.DataFrame(
        [
            {
                **{"number": n, "listener": n, "reading": "0", "fault": "", "retry_after_s": math.nan},
                **{"sha256": "a", "ttfa_s": 0.1, "audio_s": 10.0, "underruns": 0, "refused": 0},
            }
            for n in range(listeners)
        ]
    ).assign(**changed)
    name = f"{listeners} listener{'s'[: listeners > 1]}"
    return Crowd(name, listeners, streams, run_s=10, cpu_s=4, own_cpu_s=1, health_s=[0.01])


def load(*crowds: Crowd, **changed: Any) -> Load:
    fields: dict[str, Any] = {
        "rtf": 0.1,
        "wholes": pd.DataFrame({"sha256": ["a"]}, index=["0"]),
        "crowds": crowds or (crowd(1), crowd(4), crowd(8)),
        "stalled": crowd(4, ttfa_s=1.0),
        "refused_s": [0.01] * REFUSALS,
        "other_answers": 0,
        "cores": 2,
        "ran": {"variant": "hum"},
    }
    return Load(**{**fields, **changed})


def half_gave_up() -> Crowd:
    """Eight listeners: the first four are heard at once, the others give up."""
    return crowd(8, fault=[""] * 4 + ["busy"] * 4, retry_after_s=[math.nan] * 4 + [60.0] * 4)


def test_a_load_that_is_borne_passes(tmp_path: Path) -> None:
    found = load()
    result = conclude(open_run("bench-load", tmp_path), found)
    assert result["verdict"] == "passed"
    assert result["remarks"] == []
    assert (found.capacity, knee(found)) == (8, 8)
    assert all(control.caught for control in controls(found))
    row = curve(found).loc["4 listeners"]
    assert row[["utilisation_percent", "own_cpu_percent", "fairness_ratio"]].tolist() == [20, 5, 1]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (load(crowd(1), crowd(8, fault="broken")), "broken_streams_count"),
        (load(crowd(1), crowd(8, sha256="b")), "streams_that_differ_count"),
        (load(refused_s=[0.01] * 3), "refusals_count"),
        (load(refused_s=[0.2] * REFUSALS), "refused_p95_s"),
        (load(other_answers=1), "other_answers_count"),
        (load(crowd(1), replace(crowd(8), health_s=[math.inf])), "health_p95_s"),
        (load(crowd(1), crowd(4), crowd(8, underruns=1)), " underruns_in_10_minutes_count"),
        (load(crowd(1), crowd(4), crowd(8, ttfa_s=0.41)), " ttfa_p95_to_alone_ratio"),
        (load(crowd(1), crowd(4, ttfa_s=0.21), crowd(8)), "half_ttfa_p95_to_alone_ratio"),
        (load(crowd(1), crowd(4), crowd(8, refused=[0] * 7 + [1])), " refused_count"),
        (load(crowd(1), crowd(4, refused=1), crowd(8)), "half_refused_count"),
        (load(crowd(1), crowd(4), half_gave_up()), " gave_up_count"),
        (load(stalled=crowd(4)), "MISSED  4 listeners"),
    ],
)
def test_whatever_is_amiss_fails_the_run(tmp_path: Path, found: Load, said: str) -> None:
    with pytest.raises(GateFailed, match=said):
        conclude(open_run("bench-load", tmp_path), found)
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "failed"


def test_who_is_told_to_come_back_later_is_not_broken_off() -> None:
    patient = crowd(8, fault="busy", retry_after_s=60.0)
    row = curve(load(crowd(1), patient)).loc["8 listeners"]
    assert (row.gave_up, row.broken, row.streams) == (8, 0, 8)
    assert not failed(judge(load(crowd(1), patient), decides=False))


def test_who_is_turned_away_is_not_served_in_time() -> None:
    assert knee(load(crowd(1), crowd(4), half_gave_up())) == 4
    assert knee(load(crowd(1), crowd(4, refused=5), crowd(8))) == 1
    caught = {control.name for control in controls(load()) if control.caught}
    assert {"streams that are refused once", "every second listener gives up"} <= caught


def test_more_than_should_be_borne_decides_nothing() -> None:
    crowded = replace(crowd(12, ttfa_s=9.0, underruns=3), health_s=[math.inf])
    beyond = load(crowd(1), crowd(8), crowded)
    assert not failed(judge(beyond))
    assert knee(beyond) == 8


def test_no_time_decides_where_it_must_not() -> None:
    assert not failed(judge(load(crowd(1), crowd(8, ttfa_s=9.0)), decides=False))


def test_fewer_listeners_than_should_be_borne_are_told() -> None:
    (said,) = remarks(load(crowd(1), crowd(4)))
    assert said == "4 listeners were there at the most, where 8 should be borne"


def test_a_listener_alone_does_not_stand_for_half_the_capacity() -> None:
    late_once = pd.concat([crowd(1).streams] * 9 + [crowd(1, ttfa_s=9.0).streams])
    uneven = load(replace(crowd(1), streams=late_once), crowd(8))
    assert not failed(judge(uneven))
    (said,) = remarks(uneven)
    assert said == "no crowd was judged as half the capacity: name 2 to 4 in --listeners, too"
    small = replace(uneven, rtf=0.4)  # 2 listeners should be borne, and one is half of them
    assert any("half_ttfa_p95_to_alone_ratio" in said for said in failed(judge(small)))


def test_a_listener_who_is_served_last_makes_it_unfair() -> None:
    unfair = crowd(4, ttfa_s=[0.1, 0.1, 0.1, 0.9])
    assert curve(load(crowd(1), unfair)).fairness_ratio["4 listeners"] == pytest.approx(1.44 / 4 / 0.84)


def test_machines_on_paper_are_erlangs() -> None:
    found = machines(10).set_index("machines")
    assert found.loc[4, ["at once", "with one stopped"]].tolist() == [40, 30]
    assert found["by chance, on average"][1] == pytest.approx(4.461, abs=0.01)  # of Erlang's tables, B = 1 %
    assert machines(0).empty
