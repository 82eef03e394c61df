"""Operators beside their peers: what is compared is the same work, and the limit is of what takes longest."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from onnx import helper, numpy_helper

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.research import kernels, operator_cases
from kokoro_lab.lab.research.kernels import ORT
from kokoro_lab.lab.research.operator_cases import Case
from kokoro_lab.lab.research.roofline import Limits

CONFIG = EngineConfig()
CHANNELS, TAPS, LENGTH = 8, 3, 40
BEST = "best-set"


def graph() -> onnx.ModelProto:
    """Twice a convolution, and a sine: x → once → twice → sine."""
    weights = np.random.default_rng(0).normal(size=(CHANNELS, CHANNELS, TAPS)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "weights"], ["once"], pads=[1, 1]),
        helper.make_node("Conv", ["once", "weights"], ["twice"], pads=[1, 1]),
        helper.make_node("Sin", ["twice"], ["sine"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, CHANNELS, None])
        for name in ("x", "sine")
    ]
    made = helper.make_graph(nodes, "two", ends[:1], ends[1:], [numpy_helper.from_array(weights, "weights")])
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def tensor(seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=(1, CHANNELS, LENGTH)).astype(np.float32)


def case(
    operations: float = 1e6, traffic_bytes: float = 1e6, kind: str = "FastConv", stage: str = "vocoder"
) -> Case:
    part, feed = operator_cases.between(graph(), {"once": tensor()}, ["sine"], {})
    return Case(kind, stage, part, part, feed, feed, operations, traffic_bytes)


def test_a_part_is_what_lies_between_two_tensors() -> None:
    part, fed = operator_cases.between(graph(), {"once": tensor(), "sine": tensor(2)}, ["sine"], {})
    assert [node.op_type for node in part.graph.node] == ["Conv", "Sin"]
    assert list(fed) == ["once"]
    assert [each.name for each in part.graph.initializer] == ["weights"]
    whole, fed = operator_cases.between(graph(), {}, ["sine"], {"x": tensor()})
    assert len(whole.graph.node) == 3
    assert list(fed) == ["x"]


def test_operations_are_those_of_the_definition() -> None:
    a_convolution = 2 * CHANNELS * CHANNELS * TAPS * LENGTH
    part, fed = operator_cases.between(graph(), {"once": tensor()}, ["sine"], {})
    assert operator_cases.operations_of(part, fed, CONFIG) == a_convolution
    assert operator_cases.operations_of(graph(), {"x": tensor()}, CONFIG) == 2 * a_convolution


def test_the_limit_is_of_what_takes_longest() -> None:
    limits = Limits(100.0, 400.0, {64: 50.0, 4096: 50.0})
    assert limits.seconds(case(operations=1e9, traffic_bytes=1e6)) == pytest.approx(0.01)
    assert limits.seconds(case(operations=1e9, traffic_bytes=1e6, kind="QuantConv")) == pytest.approx(0.0025)
    assert limits.seconds(case(operations=0, traffic_bytes=1e6)) == pytest.approx(2e-5)


def raced(cases: list[Case], ours_s: float, rounds: int = 6) -> pd.DataFrame:
    noise = np.random.default_rng(3)
    seconds = {ORT: 0.004, BEST: ours_s, "slowed": 1.5 * ours_s, "same": ours_s}
    rows = [
        {"system": name, "text_number": number, "round": turn, "repetition": 0}
        | dict.fromkeys(("wall_s", "compute_s"), each * noise.uniform(0.99, 1.01))
        | {"kind": one.kind, "stage": one.stage}
        for number, one in enumerate(cases)
        for turn in range(rounds)
        for name, each in seconds.items()
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("ours_s", "passes"), [(0.002, True), (0.006, False)])
def test_ours_may_take_no_longer_over_all_of_them(ours_s: float, passes: bool) -> None:
    cases = [case(), case(stage="trunk"), case(kind="QuantConv")]
    trials = raced(cases, ours_s)
    table = kernels.table_of(cases, trials, {BEST: Limits(10.0, 40.0, {64: 50.0, 4096: 50.0})})
    checks = {check.name: check for check in kernels.checks_of(trials, table, [80.0, np.inf, 60.0])}
    assert checks["mean_ratio"].passed is passes
    assert checks["mean_ratio"].value == pytest.approx(ours_s / 0.004, rel=0.02)
    assert checks["least_snr_db"].value == 60
    assert checks["beside_itself_ratio"].passed
    assert all(control.caught for control in kernels.controls(trials, BEST))
    assert table.limit_share[0] == pytest.approx(1e-4 / ours_s, rel=0.02)
    assert list(kernels.against_ort(table).index) == [
        "vocoder, FastConv",
        "trunk, FastConv",
        "vocoder, QuantConv",
    ]
    assert ("none" in kernels.verdict(table)) is passes
    paper = kernels.on_paper(1e10, 1e8, 100, table)
    assert (paper.gpu_ms > paper.gpu_limit_ms).all()
    assert paper.gpu_limit_ms[0] == pytest.approx(1e10 / 2.6e12 * 1e3)
    bytes_are_heaviest = table.assign(mega_operations=[1.0, 1.0, 9.0])
    share = table.limit_share[0] / table.limit_share[2]
    on_bytes = kernels.on_paper(1e10, 1e8, 100, bytes_are_heaviest)
    assert on_bytes.cpu_ms[0] == pytest.approx(paper.cpu_ms[0] * share / kernels.BYTES_OVER_FLOATS)
    assert "m1_gpu_on_paper_ms" in kernels.figures_of(table, paper)


def test_a_kernel_that_is_no_slower_is_not_called_slow() -> None:
    trials = raced([case()] * 3, 0.002)
    as_fast = trials.loc[trials.system == BEST, "compute_s"].to_numpy()
    trials.loc[trials.system == "slowed", "compute_s"] = as_fast
    assert not kernels.controls(trials, BEST)[0].caught
