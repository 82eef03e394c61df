"""Evidence: a verdict comes from figure and limits, and what is missing, old or false never passes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.lab.bench.plan import SpeechPlan
from kokoro_lab.lab.gates.evidence import NOT_MEASURED, STALE, TESTS, EvidenceFinding, Now, Records, now
from kokoro_lab.lab.gates.suite import Measurement
from kokoro_lab.lab.results import FAILED, PASSED
from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY

HERE = Now("abc" * 13, "int8", {"int8": "5a" * 32, "fp32": "5a" * 32})
GATE = Measurement("30_loudness_gate", "", {"voices": "bf_emma"}, {"voices": "all"}, 1, 1, kind="gates")
BENCH = Measurement("soon", "", {}, {"trials": 3}, 1, 1, kind="benchmarks")
GIT = {"commit": HERE.commit, "dirty": False}


def result(**changes: Any) -> dict[str, Any]:
    good = {
        "verdict": "passed",
        "failures": [],
        "checks": [
            {"name": "peak_dbtp", "value": -1.2, "low": None, "high": -1.0, "passed": True},
            {"name": "level_lufs", "value": -16.0, "low": -17.0, "high": -15.0, "passed": True},
        ],
        "controls": [{"name": "a click", "caught": True}],
        "figures": {"clips_count": 9},
        "parameters": {"voices": "all", "texts": 0},
        "variant": "int8",
        "model_sha256": "5a" * 32,
        "git": GIT,
    }
    return good | changes


def check(**changes: Any) -> dict[str, Any]:
    return {"name": "peak_dbtp", "value": -1.2, "low": None, "high": -1.0, "passed": True} | changes


def keep(
    folder: Path, record: dict[str, Any], run: str = "20260101T000000Z-aaaa", of: str = GATE.name
) -> None:
    write_json(folder / of / run / "result.json", record)


def peak(folder: Path, *, fast: bool = False) -> EvidenceFinding:
    return Records(folder, HERE, fast).figure(GATE, "peak_dbtp", high=-1)


def test_a_good_result_passes_and_is_named(tmp_path: Path) -> None:
    keep(tmp_path, result())
    found = peak(tmp_path)
    assert (found.verdict, found.figure, found.threshold) == (PASSED, "peak_dbtp = -1.2", "at most -1")
    assert found.file == tmp_path / GATE.name / "20260101T000000Z-aaaa/result.json"
    assert (found.note, found.dirty) == ("", False)


def test_without_a_result_it_is_not_measured(tmp_path: Path) -> None:
    assert peak(tmp_path / "nowhere").verdict == NOT_MEASURED
    (tmp_path / GATE.name / "20260101T000000Z-aaaa").mkdir(parents=True)  # a run that was killed
    assert peak(tmp_path).verdict == NOT_MEASURED


def test_a_run_that_was_interrupted_says_nothing(tmp_path: Path) -> None:
    keep(tmp_path, result())
    parameters = {"voices": "all", "texts": 0}
    note = {"verdict": "interrupted", "message": "Interrupted after 2 s.", "parameters": parameters}
    write_json(tmp_path / GATE.name / "20260102T000000Z-bbbb/crash.json", note)
    assert peak(tmp_path).verdict == PASSED


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": [check(value=-0.5)]}, "beyond its limit"),
        ({"checks": [check(value=-0.5, high=0.0)]}, "beyond its limit"),
        ({"checks": [check(value=-0.5, passed=True)]}, "figure says not"),
        ({"checks": [check(value=None)]}, "not finite"),
        ({"checks": [check(high=-1.5, passed=False)], "verdict": "failed"}, "failed in its own run"),
        ({"controls": [{"name": "a click", "caught": False}]}, "misses a click"),
        ({"verdict": "failed", "failures": ["nothing was measured"]}, "nothing was measured"),
        ({"verdict": "splendid"}, "splendid"),
    ],
)
def test_what_says_passed_and_is_not_fails(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    keep(tmp_path, result(**changes))
    found = peak(tmp_path)
    assert found.verdict == FAILED
    assert said in found.note


def test_another_check_that_failed_is_for_another_line(tmp_path: Path) -> None:
    level = {"name": "level_lufs", "value": -12.0, "low": -17.0, "high": -15.0, "passed": False}
    keep(tmp_path, result(verdict="failed", checks=[check(), level]))
    assert peak(tmp_path).verdict == PASSED
    assert Records(tmp_path, HERE).figure(GATE, "level_lufs", -17, -15).verdict == FAILED


def test_a_figure_without_a_check_has_the_limits_of_the_line(tmp_path: Path) -> None:
    keep(tmp_path, result())
    records = Records(tmp_path, HERE)
    assert records.figure(GATE, "clips_count", 9).verdict == PASSED
    assert records.figure(GATE, "clips_count", 10).verdict == FAILED
    assert records.figure(GATE, "controls_caught_count", 1).verdict == PASSED
    assert records.figure(GATE, "controls_caught_count", 2).verdict == FAILED
    assert records.figure(GATE, "loops_count", 1).verdict == NOT_MEASURED


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"git": {"commit": "def" * 13, "dirty": False}}, "of commit defdefde"),
        ({"git": {"commit": None, "dirty": None}}, "unknown commit"),
        ({"model_sha256": "00" * 32}, "other weights, 00000000"),
        ({"variant": "fp32"}, "of fp32, not int8"),
    ],
)
def test_what_was_made_from_something_else_is_stale(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    keep(tmp_path, result(**changes))
    found = peak(tmp_path)
    assert found.verdict == STALE
    assert said in found.note


def test_a_stale_failure_says_that_it_was_one(tmp_path: Path) -> None:
    keep(
        tmp_path, result(git={"commit": "def" * 13, "dirty": False}, checks=[check(value=0.0, passed=False)])
    )
    found = peak(tmp_path)
    assert found.verdict == STALE
    assert "beyond its limit" in found.note


def test_a_measurement_may_be_of_a_variant_of_its_own(tmp_path: Path) -> None:
    keep(tmp_path, result(variant="fp32"))
    own = Measurement(GATE.name, "", {}, {"voices": "all"}, 1, 1, variant="fp32", kind="gates")
    assert Records(tmp_path, HERE).figure(own, "peak_dbtp", high=-1).verdict == PASSED


def test_uncommitted_changes_are_told(tmp_path: Path) -> None:
    keep(tmp_path, result(git=GIT | {"dirty": True}))
    found = peak(tmp_path)
    assert (found.verdict, found.dirty) == (PASSED, True)
    assert "not committed" in found.note


def test_the_newest_run_that_was_made_as_asked_counts(tmp_path: Path) -> None:
    keep(tmp_path, result(checks=[check(value=0.0)]), "20260101T000000Z-ffff")
    keep(tmp_path, result(), "20260102T000000Z-aaaa")
    keep(
        tmp_path, result(checks=[check(value=0.0)], parameters={"voices": "am_adam"}), "20260103T000000Z-aaaa"
    )
    assert peak(tmp_path).verdict == PASSED
    keep(tmp_path, result(checks=[check(value=0.0)]), "20260104T000000Z-aaaa")
    assert peak(tmp_path).verdict == FAILED


def test_a_fast_run_counts_only_where_it_is_said_to(tmp_path: Path) -> None:
    keep(tmp_path, result(parameters={"voices": "bf_emma", "texts": 0}))
    assert peak(tmp_path).verdict == NOT_MEASURED
    assert peak(tmp_path, fast=True).verdict == PASSED


def test_a_crash_is_no_result_and_no_older_one_speaks_for_it(tmp_path: Path) -> None:
    keep(tmp_path, result())
    crash = {"message": "MemoryError", "parameters": {"voices": "all"}}
    write_json(tmp_path / GATE.name / "20260102T000000Z-aaaa" / "crash.json", crash)
    found = peak(tmp_path)
    assert found.verdict == NOT_MEASURED
    assert "MemoryError" in found.note


@pytest.mark.parametrize("text", ["{", "[]", "null", "\udcff"])
@pytest.mark.parametrize("name", ["result.json", "crash.json"])
def test_what_cannot_be_read_is_not_measured(tmp_path: Path, name: str, text: str) -> None:
    keep(tmp_path, result())
    later = tmp_path / GATE.name / "20260102T000000Z-aaaa"
    later.mkdir()
    (later / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    found = peak(tmp_path)
    assert (found.verdict, found.note) == (NOT_MEASURED, "it cannot be read")


def test_a_benchmark_has_no_verdict_and_is_judged_by_its_figures(tmp_path: Path) -> None:
    ours = {"variant": "int8", "model_sha256": "5a" * 32}
    record = {
        "asked": asdict(SpeechPlan(trials=3)),
        "systems": {"kokoro-lab": ours, "kokoro-onnx fp32": {"variant": "fp32"}},
        "summary": {"kokoro-lab": {"ttfa_s": {"p95": 0.3}}},
        "git": GIT,
    }
    keep(tmp_path, record, of="bench")
    records = Records(tmp_path, HERE)
    path = "summary > kokoro-lab > ttfa_s > p95"
    assert records.figure(BENCH, path, high=0.5).verdict == PASSED
    assert records.figure(BENCH, path, high=0.2).verdict == FAILED
    assert records.figure(BENCH, "summary > kokoro-lab > rtf > p95", high=1).verdict == NOT_MEASURED


REPORT = """<testsuites><testsuite><properties><property name="{commit}" value="{hash}"/>
<property name="{dirty}" value="False"/></properties>{cases}</testsuite></testsuites>"""
CASES = """<testcase classname="tests.dsp.test_trim" name="test_a[1]"/>
<testcase classname="tests.dsp.test_trim" name="test_a[2]"/>
<testcase classname="tests.dsp.test_trim" name="test_ab"><failure message="no"/></testcase>
<testcase classname="tests.dsp.test_trim2" name="test_c"><error message="no"/></testcase>
<testcase classname="tests.dsp.test_dither" name="test_d"><skipped message="no"/></testcase>"""


@pytest.fixture
def tested(tmp_path: Path) -> Callable[..., EvidenceFinding]:
    def ask(*nodes: str, commit: str | None = HERE.commit) -> EvidenceFinding:
        path = tmp_path / TESTS
        path.parent.mkdir(exist_ok=True)
        path.write_text(REPORT.format(commit=TESTED_COMMIT, dirty=TESTED_DIRTY, hash=commit, cases=CASES))
        return Records(tmp_path, HERE).tests(nodes)

    return ask


@pytest.mark.parametrize(
    ("nodes", "verdict", "figure"),
    [
        (["tests/dsp/test_trim.py::test_a"], PASSED, "2 of 2 tests pass"),
        (["tests/dsp/test_trim.py"], FAILED, "2 of 3 tests pass"),
        (["tests/dsp/test_trim.py::test_a", "tests/dsp/test_trim2.py"], FAILED, "2 of 3 tests pass"),
        (["tests/dsp/test_dither.py"], NOT_MEASURED, "0 of 1 tests pass"),
        (["tests/dsp/test_trim.py::test_a", "tests/dsp/test_gone.py"], NOT_MEASURED, ""),
    ],
)
def test_all_tests_that_are_named_must_have_passed(
    tested: Callable[..., EvidenceFinding], nodes: list[str], verdict: str, figure: str
) -> None:
    found = tested(*nodes)
    assert (found.verdict, found.figure) == (verdict, figure)


def test_tests_of_another_commit_are_stale(tested: Callable[..., EvidenceFinding]) -> None:
    assert tested("tests/dsp/test_trim.py::test_a", commit="def" * 13).verdict == STALE
    assert tested("tests/dsp/test_trim.py::test_a", commit="None").verdict == STALE


def test_without_a_report_tests_are_not_measured(tmp_path: Path) -> None:
    assert Records(tmp_path, HERE).tests(["tests/dsp/test_trim.py"]).verdict == NOT_MEASURED
    (tmp_path / TESTS).parent.mkdir()
    (tmp_path / TESTS).write_text("<testsuites>")
    assert Records(tmp_path, HERE).tests(["tests/dsp/test_trim.py"]).verdict == NOT_MEASURED


def test_the_tiers_of_the_tests_are_read_together(tmp_path: Path) -> None:
    def keep_report(file: Path, commit: str | None, case: str) -> None:
        file.parent.mkdir(exist_ok=True)
        cases = f'<testcase classname="tests.test_a" name="{case}"/>'
        file.write_text(REPORT.format(commit=TESTED_COMMIT, dirty=TESTED_DIRTY, hash=commit, cases=cases))

    def verdict() -> str:
        return (
            Records(tmp_path, HERE)
            .tests(["tests/test_a.py::test_fast", "tests/test_a.py::test_slow"])
            .verdict
        )

    keep_report(tmp_path / TESTS, HERE.commit, "test_fast")
    assert verdict() == NOT_MEASURED  # what only `make test-all` runs
    slow = tmp_path / TESTS.with_name("test-all.xml")
    keep_report(slow, HERE.commit, "test_slow")
    assert verdict() == PASSED
    keep_report(slow, "def" * 13, "test_slow")
    assert verdict() == STALE


def test_pytest_writes_what_is_read(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "test_toy.py").write_text("def test_it(): pass")
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "tests.tested_commit"]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    done = subprocess.run(
        [*command, "-p", "no:schemathesis", "test_toy.py", f"--junitxml={TESTS}"],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    found = Records(tmp_path, now()).tests(["test_toy.py::test_it"])
    assert (found.verdict, found.figure) == (PASSED, "1 of 1 tests pass")
