"""From nodes to what a person reads: shares, what is refused, and a verdict that faults do not pass."""

from __future__ import annotations

import pandas as pd
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import plots
from kokoro_lab.lab.conversion import provider_partitions as analysis
from kokoro_lab.lab.conversion.provider_partitions import GRAPHS, INTENDED, STATIC
from kokoro_lab.speech.engine import Engine


def row(
    graph: str, operator: str, reason: str, nodes: int, time_s: float, partitions: int
) -> dict[str, object]:
    return {
        "graph": graph, "provider": INTENDED, "operator": operator, "reason": reason, "nodes": nodes,
        "time_s": time_s, "operations": 1e9 * time_s, "partitions": partitions,
    }  # fmt: skip


def rows(static_s: float = 9.0) -> pd.DataFrame:
    """Every graph is refused for the most part but the static one."""
    others = [g for g in GRAPHS if g != STATIC]
    made = [row(g, "LSTM", "operator not on the list", 3, 0.2, 4) for g in others]
    made += [row(g, "", "", 2, 0.05, 4) for g in others]
    return pd.DataFrame([*made, row(STATIC, "", "", 344, static_s, 1)])


WRITTEN = pd.DataFrame({"precision": ["float32", "float16"], "error": [1e-6, 0.01]})


def test_a_table_says_what_is_taken_of_nodes_time_and_arithmetic() -> None:
    table = analysis.table(rows())
    assert table.loc[("prosody", INTENDED)].to_dict() == {
        "nodes": 5, "partitions": 4, "nodes taken, %": 40, "time taken, %": 20, "operations taken, %": 20,
    }  # fmt: skip
    assert table.loc[(STATIC, INTENDED), "time taken, %"] == 100


def test_what_is_refused_is_listed_by_graph() -> None:
    refused = analysis.refused(rows())
    assert STATIC not in set(refused.graph)
    assert list(refused.graph) == [g for g in GRAPHS if g != STATIC]
    assert refused["time, %"].tolist() == [80.0] * len(refused)


def test_the_share_is_of_what_runs_with_fixed_windows() -> None:
    """Prosody, trunk, excitation and spectrum, a quarter of a second each, and nine of the windows."""
    assert analysis.shares(rows())["operations"] == pytest.approx(9 / 10)
    assert analysis.shares(rows())["time"] == pytest.approx(9 / 10)


def test_one_partition_with_nothing_refused_passes_and_faults_are_caught() -> None:
    assert all(check.passed for check in analysis.judge(rows(), 110.0, WRITTEN))
    assert all(control.caught for control in analysis.controls(rows(), 110.0, WRITTEN))


@pytest.mark.parametrize(
    ("static_s", "agreement_db", "error", "name"),
    [
        (3.0, 110.0, 1e-6, "static_share_of_operations_ratio"),
        (9.0, 99.0, 1e-6, "static_agreement_db"),
        (9.0, 110.0, 0.002, "program_float32_error_ratio"),
        (9.0, 110.0, float("nan"), "program_float32_error_ratio"),
    ],
)
def test_each_rule_can_fail(static_s: float, agreement_db: float, error: float, name: str) -> None:
    written = WRITTEN.assign(error=[error, 0.01])
    failed = [c.name for c in analysis.judge(rows(static_s), agreement_db, written) if not c.passed]
    assert failed == [name]


def test_only_fp32_is_analysed(hum: Engine) -> None:
    with pytest.raises(ParameterError, match="fp32"):
        analysis.speak(hum, "Hello.", "af_heart")


def test_the_figure_counts_partitions() -> None:
    figure = plots.taken_by(analysis.table(rows()), {INTENDED: "fixed"}).figure
    assert figure is not None
    said = [text.get_text() for text in figure.axes[0].texts]
    assert said[-1] == "100 % in 1 partition"
    assert said[0] == "20 % in 4 partitions"
