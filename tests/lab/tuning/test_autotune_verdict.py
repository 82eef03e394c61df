"""A run of the tuner leaves its verdict, and defaults that are not themselves fail it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.results import open_run
from kokoro_lab.lab.tuning.autotune import TunePlan
from kokoro_lab.lab.tuning.autotune_verdict import conclude
from tests.lab.tuning.test_autotune import decided


def test_a_run_leaves_its_verdict_gain_and_trials(tmp_path: Path) -> None:
    run = open_run("tune", tmp_path / "run")
    conclude(run, decided(tmp_path), TunePlan(trials=2))
    found = json.loads((tmp_path / "run/result.json").read_text())
    assert found["verdict"] == "passed"
    assert found["figures"]["ttfa_gain_percent"] == pytest.approx(10)
    assert found["ratios"]["ttfa"] == {"ratio": 0.9, "low": 0.85, "high": 0.95, "units": 12}
    assert [row["threads"] for row in found["trials"]] == [2, 1]
    assert all(control["caught"] for control in found["controls"])
    assert "Pareto" in found["rules"]["chosen"]
    assert found["remarks"] == []


def test_defaults_that_do_not_sound_like_themselves_fail_the_run(tmp_path: Path) -> None:
    tuning = decided(tmp_path)
    tuning.table.loc[0, "snr_db"] = 30.0
    with pytest.raises(GateFailed, match="defaults_to_themselves_snr_db"):
        conclude(open_run("tune", tmp_path / "run"), tuning, TunePlan(trials=2))
