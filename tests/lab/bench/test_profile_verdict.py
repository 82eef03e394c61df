"""A profile that does not account for all of the time fails, and its tables follow the pipeline."""

from __future__ import annotations

import pandas as pd
import pytest

from kokoro_lab.lab.bench.profile import COLD, END, FIRST_AUDIO, STAGES, WARM
from kokoro_lab.lab.bench.profile_verdict import (
    controls,
    judge,
    medians_s,
    operator_table,
    profile_report,
    stage_table,
    vocoder_shares,
)
from kokoro_lab.speech.engine import Engine
from tests.lab.bench.test_profile import RECURRENCES


def stages(prosody_s: float = 0.01, lost_s: float = 0.0) -> pd.DataFrame:
    """Two utterances: 10 ms a stage, but for prosody and the windows; `lost_s` is in no stage."""
    stage_s = dict.fromkeys(STAGES, 0.01) | {"prosody": prosody_s, "other windows": 0.4}
    wall_s = sum(stage_s.values()) + lost_s
    return pd.DataFrame(
        {
            "state": state,
            "trial": trial,
            "until": until,
            "stage": stage,
            "stage_s": seconds,
            "wall_s": wall_s,
            "audio_s": 2.0,
        }
        for trial, state in enumerate((COLD, WARM))
        for until in (FIRST_AUDIO, END)
        for stage, seconds in stage_s.items()
    )


def operators(conv: float = 0.9) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "graph": ["prosody", "vocoder", "vocoder"],
            "operator": ["LSTM", "Conv", "Add"],
            "calls": [6, 52, 20],
            "operator_s": [0.02, conv, 0.05],
            "graph_s": [0.03, 1.0, 1.0],
            "share": [0.66, conv, 0.05],
        }
    )


def failed(stages: pd.DataFrame, operators: pd.DataFrame) -> list[str]:
    return [check.name for check in judge(stages, operators) if not check.passed]


def test_a_whole_profile_passes_and_every_fault_is_caught() -> None:
    assert failed(stages(), operators()) == []
    assert [control for control in controls(stages(), operators()) if not control.caught] == []


def test_time_that_no_stage_accounts_for_fails() -> None:
    assert failed(stages(lost_s=0.1), operators()) == []
    assert failed(stages(lost_s=0.2), operators()) == ["stages_to_wall_clock_least_ratio"]


def test_a_vocoder_that_is_not_the_largest_part_fails() -> None:
    assert failed(stages(prosody_s=0.5), operators()) == ["vocoder_to_next_largest_stage_ratio"]


def test_operators_that_leave_too_much_unexplained_fail() -> None:
    assert failed(stages(), operators(conv=0.7)) == ["operators_share_of_vocoder_ratio"]


def test_tables_are_in_the_order_of_the_pipeline() -> None:
    table = stage_table(stages())
    assert list(table.index) == [*STAGES, "wall clock"]
    assert list(table.columns) == [f"{s}, {u}, ms" for s in (COLD, WARM) for u in (FIRST_AUDIO, END)]
    assert table.loc["prosody", "warm, end, ms"] == pytest.approx(10)
    assert list(medians_s(stages())) == list(STAGES)
    assert "trunk" not in medians_s(stages().replace({"stage_s": {0.01: 0.0}}))
    assert vocoder_shares(operators()) == {"Conv": 0.9, "Add": 0.05}
    assert operator_table(operators()).loc[("vocoder", "Conv"), "ms"] == pytest.approx(900)


@pytest.mark.test_all
@pytest.mark.model
def test_the_report_is_for_a_terminal(engine: Engine) -> None:
    report = profile_report(engine.config, "Rain.", "af_heart", trials=1, loads=1)
    for word in (*STAGES, "Conv", "G2P", "5 characters, af_heart"):
        assert word in report
    assert any(name in report for name in RECURRENCES)
    assert max(map(len, report.splitlines())) <= 110
