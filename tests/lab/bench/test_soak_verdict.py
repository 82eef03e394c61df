"""A run is judged by what it is long enough for, and a stream that ends early fails it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.bench import soak_verdict
from kokoro_lab.lab.bench.memory import growth_of
from kokoro_lab.lab.bench.soak import HEARD, Soak
from kokoro_lab.lab.bench.soak_controls import made_up
from kokoro_lab.lab.results import open_run
from tests.lab.bench.test_memory import held

ONE = {
    **{"number": 0, "reading": "0", "way": "sse", "at_s": 1.0, "fault": ""},
    **{"samples_count": 9, "sha256": "a", **HEARD, "ttfa_s": 9.0, "rtf": 3.0, "underruns": 5},
}


def short(**changed: object) -> Soak:
    """One of 18 s, with a stream."""
    fields = {
        "run_s": 18.0,
        "concurrency": 1,
        "wholes": pd.DataFrame({"samples_count": [9], "sha256": "a"}, index=["0"]),
        "streams": pd.DataFrame([ONE]),
        "holdings": held(np.arange(18), rss_mb=600 + 50 * np.arange(18)),
        "left_behind": 0,
    }
    return Soak(**{**fields, **changed})  # type: ignore[arg-type]


def test_in_a_short_run_neither_times_nor_memory_decide(tmp_path: Path) -> None:
    result = soak_verdict.conclude(open_run("41_soak", tmp_path), short(), [])
    assert result["verdict"] == "passed"
    assert result["remarks"] == ["too short to judge growth and times"]
    told = {one["name"] for one in result["checks"]} | set(result["figures"])
    assert not {name for name in told if "drift" in name or "growth" in name or "underrun" in name}
    assert result["streams"][0]["underruns"] == 5


def test_memory_decides_from_two_minutes_on_and_times_from_ten() -> None:
    growing = held(np.arange(130), rss_mb=600 + np.arange(130))
    names = {c.name: c.passed for c in soak_verdict.judge(short(run_s=130.0, holdings=growing))}
    assert names["rss_growth_mb"] is False
    assert "ttfa_drift_percent" not in names
    good = made_up()
    assert "ttfa_drift_percent" in {c.name for c in soak_verdict.judge(good)}
    for crowd in (replace(good, concurrency=4), replace(good, misbehaved={"left": 3})):
        assert "underruns_count" not in {c.name for c in soak_verdict.judge(crowd)}
        (said,) = soak_verdict.remarks(crowd)
        assert said == "no time decides: several listeners, or clients that misbehave, were there"
    assert soak_verdict.remarks(good) == []


def test_a_stream_that_ends_early_fails_the_run_and_is_told(tmp_path: Path) -> None:
    broken = short(
        streams=pd.DataFrame([ONE, {**ONE, "number": 1, "way": "http", "fault": "The server broke off."}])
    )
    with pytest.raises(GateFailed, match="unexpected_ends_count"):
        soak_verdict.conclude(open_run("41_soak", tmp_path), broken, [])
    kept = json.loads((tmp_path / "result.json").read_text())
    assert kept["streams"][1]["fault"] == "The server broke off."
    assert any("stream 1 over http" in line for line in soak_verdict.printed(broken))


def test_too_few_readings_are_no_proof_of_no_growth() -> None:
    assert not any(check.passed for check in soak_verdict.judge_growth(growth_of(pd.DataFrame())))
