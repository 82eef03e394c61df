"""Would the checklist notice? Results made by hand, each wrong in one way, which must not pass.

Only the verdict that belongs to the fault counts as noticed: a stale result that is called failed would hide
what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kokoro_lab.lab.gates.evidence import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    STALE,
    TESTS,
    EvidenceFinding,
    Now,
    Records,
)
from kokoro_lab.lab.gates.suite import Measurement, defaults, measurements
from kokoro_lab.lab.results import Check, NegativeControl, write_json
from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY

NOW = Now("c0ffee" * 6, "made up", {"made up": "5a" * 32})
CHECK, LOW, HIGH = "made_up_db", -1.0, 1.0
TEST = "tests/test_made_up.py::test_it"

Edit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A way in which a result is wrong, and the verdict that it must get."""

    name: str
    verdict: str
    edit: Edit


def _check(**values: Any) -> Edit:
    return lambda record: record["checks"][0].update(values)


def _record(**values: Any) -> Edit:
    return lambda record: record.update(values)


def _within(key: str, **values: Any) -> Edit:
    return lambda record: record[key].update(values)


FAULTS = (
    Fault("a result without a fault passes", PASSED, lambda record: None),
    Fault("a figure beyond its limit that says passed", FAILED, _check(value=HIGH + 0.1)),
    Fault("a figure beyond limits that were widened", FAILED, _check(value=HIGH + 0.1, high=9.0)),
    Fault("a figure that is not finite", FAILED, _check(value=None)),
    Fault("a figure of another name", NOT_MEASURED, _check(name="another_db")),
    Fault("a fault that the gate misses", FAILED, _record(controls=[{"name": "a click", "caught": False}])),
    Fault("a run that failed with nothing amiss", FAILED, _record(verdict="failed", failures=["it burnt"])),
    Fault("a result of another commit", STALE, _within("git", commit="bad" * 12)),
    Fault("a result of no commit", STALE, _within("git", commit=None)),
    Fault("a result of other weights", STALE, _record(model_sha256="0" * 64)),
    Fault("a result of another variant", STALE, _record(variant="another")),
    Fault("a run with other parameters", NOT_MEASURED, _record(parameters={})),
)


def controls() -> list[NegativeControl]:
    """What comes first of each kind is no fault; it must pass. All is written to a temporary folder."""
    measured = replace(measurements()[0], full={"made_up": 1}, variant="")
    with TemporaryDirectory() as folder:
        root = Path(folder)
        found = [NegativeControl("no result", _figure(root, measured).verdict == NOT_MEASURED)]
        for fault in FAULTS:
            record = _good(measured)
            fault.edit(record)
            write_json(root / measured.folder / "20000101T000000Z-0000" / "result.json", record)
            found.append(NegativeControl(fault.name, _figure(root, measured).verdict == fault.verdict))
        found += _of_tests(root)
    return found


def _figure(root: Path, measured: Measurement) -> EvidenceFinding:
    return Records(root, NOW).figure(measured, CHECK, LOW, HIGH)


def _good(measured: Measurement) -> dict[str, Any]:
    check = Check(CHECK, 0.5, LOW, HIGH)
    return {
        "verdict": PASSED,
        "failures": [],
        "checks": [{"name": CHECK, "value": 0.5, "low": LOW, "high": HIGH, "passed": check.passed}],
        "controls": [{"name": "a click", "caught": True}],
        "parameters": defaults(measured.name) | dict(measured.full),
        "variant": NOW.variant,
        "model_sha256": NOW.weights[NOW.variant],
        "git": {"commit": NOW.commit, "dirty": False},
    }


def _of_tests(root: Path) -> list[NegativeControl]:
    """Reports of tests, in the same way."""
    good = {"commit": str(NOW.commit), "name": "test_it[a]", "inside": ""}
    cases: dict[str, tuple[dict[str, str], str]] = {
        "a test that passed passes": ({}, PASSED),
        "a test that failed": ({"inside": '<failure message="no"/>'}, FAILED),
        "a test that was skipped": ({"inside": '<skipped message="no"/>'}, NOT_MEASURED),
        "a test that did not run": ({"name": "test_it_not"}, NOT_MEASURED),
        "tests of another commit": ({"commit": "bad" * 12}, STALE),
    }
    found = [NegativeControl("no report of tests", Records(root, NOW).tests([TEST]).verdict == NOT_MEASURED)]
    (root / TESTS).parent.mkdir(parents=True)
    for name, (edit, verdict) in cases.items():
        (root / TESTS).write_text(_report(**good | edit), "utf-8")
        found.append(NegativeControl(name, Records(root, NOW).tests([TEST]).verdict == verdict))
    return found


def _report(commit: str, name: str, inside: str) -> str:
    return (
        f'<testsuites><testsuite><properties><property name="{TESTED_COMMIT}" value="{commit}"/>'
        f'<property name="{TESTED_DIRTY}" value="False"/></properties>'
        f'<testcase classname="tests.test_made_up" name="{name}">{inside}</testcase></testsuite></testsuites>'
    )
