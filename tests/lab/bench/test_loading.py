"""Several streams at once: each is whole, and those who come too are told at once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.bench.loading import Load, conclude, measure_load, printed
from kokoro_lab.lab.bench.own_server import own_server
from kokoro_lab.lab.bench.received import ReceivedStream
from kokoro_lab.lab.bench.trial import gaps_beyond_chunks_s
from kokoro_lab.lab.results import open_run
from tests.server import scripted

TEXTS = [f"{number} boats came back. " + "It was slow going for all of them. " * 8 for number in range(3, 7)]
ROUND, REFUSALS = 2, 4


@pytest.mark.test_all
def test_streams_at_once_are_whole_and_others_are_refused(tmp_path: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "tests.server.tiny_server", str(tmp_path / "hum.onnx")]
    settings = {"voice": "hum", "capacity": 1e6, "concurrency": ROUND, "queue": 0}
    with own_server(settings, command, repository) as server:
        load = measure_load(server, TEXTS, "hum", ROUND, refusals=REFUSALS)
    assert list(load.table.number) == [0, 1, 2, 3]
    assert load.exact.all()
    assert load.table.share_at_first_end.between(0, 1).all()
    assert (load.table.audio_s > scripted.SLOW_S).all()
    assert len(load.fairness) == len(TEXTS) // ROUND
    assert load.other_answers == 0
    assert 0 < len(load.refused_s) <= REFUSALS * len(TEXTS) // ROUND
    assert load.health_s
    assert all(control.caught for control in load.controls)
    assert load.ran["model_sha256"] == "hum"
    assert sum("exact" in line for line in printed(load)) == len(TEXTS)


def shared(**changed: Any) -> dict[str, Any]:
    return {
        "number": 0,
        "characters": 40,
        "audio_s": 3.0,
        "ttfa_s": 0.4,
        "ttfa_alone_s": 0.1,
        "rtf": 0.4,
        "rtf_alone": 0.1,
        "share_at_first_end": 0.9,
        "differing_samples": 0,
        "missing_samples": 0,
        **changed,
    }


def load(**changed: Any) -> Load:
    fields: dict[str, Any] = {
        "table": pd.DataFrame([shared(), shared()]),
        "fairness": [1.1],
        "refused_s": [0.01] * 4,
        "other_answers": 0,
        "health_s": [0.01] * 9,
        "gaps_s": [-0.04] * 9,
        "alone_rtf": 0.1,
        "ran": {"variant": "hum"},
        "controls": [],
    }
    return Load(**{**fields, **changed})


def test_a_load_that_is_borne_passes(tmp_path: Path) -> None:
    assert conclude(open_run("bench-load", tmp_path), load(), 2, 2, 4)["verdict"] == "passed"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": pd.DataFrame([shared()])}, "streams_count"),
        ({"table": pd.DataFrame([shared(), shared(differing_samples=1)])}, "streams_that_differ_count"),
        ({"table": pd.DataFrame([shared(), shared(missing_samples=3)])}, "streams_that_differ_count"),
        ({"refused_s": [0.01] * 3}, "refusals_count"),
        ({"refused_s": []}, "refused_p95_s"),
        ({"refused_s": [0.01, 0.2, 0.2, 0.2]}, "refused_p95_s"),
        ({"other_answers": 1}, "other_answers_count"),
        ({"health_s": [0.1] * 9}, "health_p95_s"),
        ({"gaps_s": [0.1] * 9}, "gap_beyond_chunk_p95_s"),
    ],
)
def test_whatever_is_amiss_fails_the_run(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(GateFailed, match=said):
        conclude(open_run("bench-load", tmp_path), load(**changed), 2, 2, 4)
    assert json.loads((tmp_path / "result.json").read_text())["verdict"] == "failed"


def test_where_computing_does_not_keep_up_the_cadence_is_told_and_not_judged(tmp_path: Path) -> None:
    late = load(gaps_s=[0.1] * 9, alone_rtf=1.2)
    result = conclude(open_run("bench-load", tmp_path), late, 2, 2, 4)
    assert result["figures"]["gap_beyond_chunk_alone_p95_s"] == pytest.approx(0.1)


def test_gaps_are_counted_beyond_the_length_of_a_frame() -> None:
    one = ReceivedStream(arrivals_s=[1.0, 1.05, 1.2], lengths_s=[0.05, 0.05, 0.025])
    assert gaps_beyond_chunks_s(one.arrivals_s, one.lengths_s) == pytest.approx([0.0, 0.1])
    assert one.rtf == pytest.approx(1.2 / 0.125)
