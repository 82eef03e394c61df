"""How long a run takes is said beforehand, and while it goes on: honestly, when it takes longer, too."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.lab import estimates
from kokoro_lab.lab.estimates import Countdown, Estimate, estimate, sentence, shown
from kokoro_lab.provenance import machine
from tests.toy_notebooks import PARAMETERS, make_repository, write

KNOWN = Estimate(100.0, (10.0, 60.0, 30.0))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A notebook that takes 5 minutes in full, as the suite has it."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "notebooks/01_toy.ipynb", PARAMETERS)
    row = {"name": "01_toy", "guards": "", "fast": {"count": 2}, "fast_s": 7, "full": {}, "full_s": 300}
    (tmp_path / "notebooks/suite.json").write_text(json.dumps({"notebooks": [row]}))
    return tmp_path


def ran(lab: Path, run_id: str, given: dict[str, Any], *cells_s: float, **about: Any) -> Path:
    """What a run that came to its end has left."""
    run = lab / "results/01_toy" / run_id
    write_json(run / "result.json", {"machine": {**machine(), **about}})
    cells = [{"cell_type": "code", "metadata": {"papermill": {"duration": s}}} for s in cells_s]
    told = {"cell_type": "markdown", "metadata": {"tags": ["papermill-error-cell-tag"]}}
    parameters = {**given, "run_dir": str(run)}
    about_all = {"papermill": {"parameters": parameters, "duration": sum(cells_s) + 1}}  # it starts in 1 s
    write_json(run / "executed.ipynb", {"metadata": about_all, "cells": [told, *cells]})
    return run


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "01_toy takes about 5 min, on two cores; --fast takes about 7 s."),
        ({"count": 3}, "01_toy takes about 5 min, on two cores; --fast takes about 7 s."),  # the default
        ({"count": 2}, "01_toy takes about 7 s, on two cores."),
        (
            {"count": 9},
            "01_toy: how long it takes with these parameters is not known; in full, it takes about 5 min",
        ),
    ],
)
def test_the_suite_says_how_long_it_takes(lab: Path, given: dict[str, Any], said: str) -> None:
    assert sentence("01_toy", given).startswith(said)


def test_the_last_run_with_the_same_parameters_knows_better(lab: Path) -> None:
    ran(lab, "20260101T000000Z-aaaa", {}, 1.0, 239.0)
    ran(lab, "20260102T000000Z-aaaa", {"count": 3}, 2.0, 178.0)
    ran(lab, "20260103T000000Z-aaaa", {"count": 9}, 1.0, 2.0)
    assert estimate("01_toy", {}) == Estimate(181.0, (3.0, 178.0))
    assert sentence("01_toy", {}) == "01_toy takes about 3 min, as last time; --fast takes about 7 s."


def test_a_run_of_another_machine_or_one_without_an_end_says_nothing(lab: Path) -> None:
    ran(lab, "20260101T000000Z-aaaa", {}, 2.0, cores=1024)
    (ran(lab, "20260102T000000Z-aaaa", {}, 3.0) / "result.json").unlink()
    (ran(lab, "20260103T000000Z-aaaa", {}, 4.0) / "executed.ipynb").write_text("{")
    assert estimate("01_toy", {}) == Estimate(300.0)


@pytest.mark.parametrize(
    ("elapsed_s", "cell", "in_cell_s", "left_s", "said"),
    [
        (0, 0, 0, 100, "about 100 s left"),
        (10, 1, 0, 90, "about 90 s left"),
        (40, 1, 30, 60, "about 60 s left"),
        (50, 1, 30, 30 * 2 + 60 * 2 - 30, "about 2 min left"),  # the first cell took twice as long
        (75, 1, 65, 30, "about 30 s left"),
        (90, 1, 80, 30, "longer than last time, at least 30 s left"),
    ],
)
def test_what_is_left_follows_the_cells_of_the_last_run(
    elapsed_s: float, cell: int, in_cell_s: float, left_s: float, said: str
) -> None:
    assert KNOWN.left(elapsed_s, cell, in_cell_s) == (left_s, said)


def test_an_estimate_that_is_over_says_so() -> None:
    assert Estimate(60.0).left(20) == (40, "about 40 s left")
    assert Estimate(60.0).left(61) == (0, "longer than the estimate of 60 s")
    assert Estimate().left(61) == (0, "")


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "LINE_S", 0.02)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with shown("01_toy", Countdown(KNOWN), 0):
        time.sleep(0.1)
    assert log.getvalue().splitlines()[0] == "01_toy: 0 s, about 100 s left"
    assert "\r" not in log.getvalue()


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(estimates, "TICK_S", 0.02)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with shown("01_toy", Countdown(KNOWN), 0):
        time.sleep(0.3)
    assert re.search(r"\r01_toy: +0%\|.*\| 00:00, about 100 s left", terminal.getvalue())
