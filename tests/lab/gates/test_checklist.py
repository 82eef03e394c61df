"""The checklist: its lines are whole, a line is as bad as its worst evidence, and nobody can tick it."""

from __future__ import annotations

import ast
import json
from datetime import date
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import checklist
from kokoro_lab.lab.gates.checklist import PARTS, Evidence, Line, judge, measure, missing, read_lines
from kokoro_lab.lab.gates.evidence import CAUGHT, NOT_MEASURED, STALE, VERDICTS, Now, Records
from kokoro_lab.lab.gates.suite import measurements
from kokoro_lab.lab.results import FAILED, PASSED

REQUIREMENTS = {"M": 10, "P": 8, "S": 12, "D": 3, "Q": 4, "T": 9, "A": 8, "O": 6, "R": 9}
LATER = {"S17"}
"""Requirements beyond those numbers that have lines."""
LINES_WITHOUT_A_MUTATION = 0
HERE = Now("abc" * 13, "int8", {"int8": "5a" * 32})


def test_every_requirement_and_every_part_has_a_line() -> None:
    lines = read_lines()
    ids = {f"{letter}{number}" for letter, last in REQUIREMENTS.items() for number in range(1, last + 1)}
    assert {line.requirement for line in lines} == ids | LATER
    assert tuple(dict.fromkeys(line.part for line in lines)) == PARTS


def test_no_line_is_there_twice() -> None:
    lines = [line.line for line in read_lines()]
    assert len(lines) == len(set(lines))


@cache
def functions(file: Path) -> set[str]:
    return {one.name for one in ast.parse(file.read_text()).body if isinstance(one, ast.FunctionDef)}


def test_evidence_names_what_there_is(repository: Path) -> None:
    known = {one.name for one in measurements()}
    for each in (one for line in read_lines() for one in line.evidence):
        assert not each.measured or each.measured in known
        for node in each.tests:
            file, _, function = node.partition("::")
            assert (repository / file).is_file(), node
            assert not function or function in functions(repository / file), node


def test_a_mutation_that_a_line_names_exists_and_fails_one_of_its_tests(mutations: ModuleType) -> None:
    known = {mutation.name: mutation for mutation in mutations.MUTATIONS}
    for line in read_lines():
        shown = [node for each in line.evidence for node in each.tests]
        for name in line.mutation:
            assert name in known, f"{line.requirement}: there is no mutation {name!r}"
            assert any(
                test.partition("[")[0] in shown or test.partition("::")[0] in shown
                for test in known[name].tests
            ), f"{line.requirement}: no test of {name!r} is evidence of {line.line!r}"


def test_a_control_that_a_line_names_is_tried_by_its_measurement(repository: Path) -> None:
    """Whether it was caught is looked at where there is a result: see `Records.without_control`."""
    sources = "\n".join(path.read_text("utf-8") for path in (repository / "kokoro_lab").rglob("*.py"))
    for line in read_lines():
        for part in line.control.partition(" > ")[2].split(": "):  # such as `en: a word too many`
            assert part in sources, line.control


def test_most_lines_name_what_makes_them_fail() -> None:
    """How many do not is counted in the notebook, and may only become fewer."""
    unproven = [line.line for line in read_lines() if line.evidence and not line.fails_with]
    assert len(unproven) <= LINES_WITHOUT_A_MUTATION, unproven


def test_each_part_has_an_owner_and_a_day_of_its_last_review() -> None:
    for line in read_lines():
        assert line.owner
        assert date.fromisoformat(line.reviewed)


def test_every_gate_is_evidence() -> None:
    used = {one.measured for line in read_lines() for one in line.evidence}
    assert {one.name for one in measurements("gates")} <= used


def test_the_gates_controls_are_in_a_line() -> None:
    controlled = {one.measured for line in read_lines() for one in line.evidence if one.figure == CAUGHT}
    assert {one.name for one in measurements("gates")} <= controlled


def record(**figures: float) -> dict[str, Any]:
    return {
        "verdict": "passed",
        "checks": [],
        "figures": figures,
        "parameters": {"voices": "all", "texts": 0},
        "variant": "int8",
        "model_sha256": "5a" * 32,
        "git": {"commit": HERE.commit, "dirty": False},
    }


def keep(folder: Path, name: str, parameters: dict[str, Any], **figures: float) -> None:
    kept = record(**figures) | {"parameters": parameters}
    write_json(folder / name / "20260101T000000Z-aaaa/result.json", kept)


LOUD = Evidence("30_loudness_gate", "level_lufs", -17, -15)
SAID = Evidence("13_pronunciation", "lost_count", high=0)
TEST = Evidence(tests=("tests/test_audio.py::test_what_we_write_we_read",))


def filled(folder: Path, *evidence: Evidence, needs: str = "") -> pd.Series:
    lines = [Line("audio", "D1", "It is as loud as it should be.", evidence, needs)]
    table = measure(lines, Records(folder, HERE))
    assert list(table.columns) == [*checklist.COLUMNS, "needs", "dirty"]
    return table.iloc[0]


def test_a_line_has_all_that_a_reader_asks_for(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    keep(folder, "30_loudness_gate", {"voices": "all", "texts": 0}, level_lufs=-16.0)
    row = filled(folder, LOUD)
    assert (row.verdict, row.figure, row.threshold) == (
        PASSED,
        "level_lufs = -16",
        "at least -17 and at most -15",
    )
    assert row.command == "kokoro-lab run 30_loudness_gate -p voices=all"
    assert row.evidence == "results/30_loudness_gate/20260101T000000Z-aaaa/result.json"


def test_a_line_is_as_bad_as_its_worst_evidence(tmp_path: Path) -> None:
    keep(tmp_path, "30_loudness_gate", {"voices": "all", "texts": 0}, level_lufs=-16.0)
    assert filled(tmp_path, LOUD, SAID).verdict == NOT_MEASURED
    keep(tmp_path, "13_pronunciation", {}, lost_count=0)
    assert filled(tmp_path, LOUD, SAID).verdict == PASSED
    keep(tmp_path, "13_pronunciation", {}, lost_count=2)
    row = filled(tmp_path, LOUD, SAID, TEST)  # failed is worse than the test that did not run
    assert row.verdict == FAILED
    assert row.figure.splitlines() == ["level_lufs = -16", "lost_count = 2", "–"]


def test_a_line_that_needs_more_is_not_measured_whatever_it_has(tmp_path: Path) -> None:
    keep(tmp_path, "30_loudness_gate", {"voices": "all", "texts": 0}, level_lufs=-16.0)
    row = filled(tmp_path, LOUD, needs="mac")
    assert (row.verdict, row.note) == (NOT_MEASURED, "needs mac")
    assert filled(tmp_path, needs="mac").verdict == NOT_MEASURED
    with pytest.raises(ParameterError, match="needs 'luck'"):
        filled(tmp_path, LOUD, needs="luck")


def test_a_line_fails_if_its_control_was_not_caught(tmp_path: Path) -> None:
    line = Line("audio", "D1", "It is loud.", (LOUD,), control="30_loudness_gate > 3 dB louder")

    def found(*controls: dict[str, Any]) -> pd.Series:
        parameters = {"voices": "all", "texts": 0}
        kept = record(level_lufs=-16.0) | {"parameters": parameters, "controls": list(controls)}
        write_json(tmp_path / "30_loudness_gate/20260101T000000Z-aaaa/result.json", kept)
        return measure([line], Records(tmp_path, HERE)).iloc[0]

    assert measure([line], Records(tmp_path, HERE)).verdict[0] == NOT_MEASURED
    assert found({"name": "3 dB louder", "caught": True}).verdict == PASSED
    for controls in ([], [{"name": "3 dB louder", "caught": False}], [{"name": "a click", "caught": True}]):
        row = found(*controls)
        assert row.verdict == FAILED
        assert "its control was not tried, or not caught: 3 dB louder" in row.note
    with pytest.raises(ParameterError, match="A control shows nothing"):
        Line("audio", "D1", "It is loud.", (TEST,), control="30_loudness_gate > 3 dB louder")


def test_what_times_decide_is_shown_by_a_full_run_alone(tmp_path: Path) -> None:
    timed = Evidence("13_pronunciation", "ratio", low=0.95, timed=True)
    line = Line("functional", "P6", "It gains nothing.", (timed,))
    (measured,) = (one for one in measurements() if one.name == "13_pronunciation")

    def verdict(*, fast: bool) -> str:
        return str(measure([line], Records(tmp_path, HERE, fast)).verdict[0])

    keep(tmp_path, "13_pronunciation", dict(measured.parameters(fast=True)), ratio=0.8)
    assert verdict(fast=True) == NOT_MEASURED
    assert missing([line], Records(tmp_path, HERE, fast=True)) == []
    keep(tmp_path, "13_pronunciation", dict(measured.parameters(fast=False)), ratio=0.8)
    assert verdict(fast=True) == verdict(fast=False) == FAILED


def test_times_decide_whether_a_second_session_helps() -> None:
    (figure,) = (
        one for line in read_lines() if line.requirement == "P6" for one in line.evidence if one.figure
    )
    assert figure.timed


def test_nothing_measured_passes_nothing(tmp_path: Path) -> None:
    table = measure(read_lines(), Records(tmp_path / "none", HERE))
    assert set(table.verdict) == {NOT_MEASURED}


def table_of(*verdicts: str, dirty: bool = False) -> pd.DataFrame:
    row = dict.fromkeys(checklist.COLUMNS, "x") | {"part": "audio", "needs": "", "dirty": dirty}
    return pd.DataFrame([row | {"verdict": verdict} for verdict in verdicts])


@pytest.mark.parametrize(
    ("table", "passes", "complete"),
    [
        (table_of(PASSED, PASSED), True, True),
        (table_of(PASSED, FAILED), False, False),
        (table_of(PASSED, NOT_MEASURED), True, False),
        (table_of(PASSED, STALE), True, False),
        (table_of(PASSED, dirty=True), True, False),
        (table_of(NOT_MEASURED, NOT_MEASURED), False, False),
        (table_of().reindex(columns=[*checklist.COLUMNS, "needs", "dirty"]), False, False),
    ],
    ids=["passed", "failed", "not measured", "stale", "uncommitted", "nothing measured", "empty"],
)
def test_what_fails_and_what_fails_a_release(table: pd.DataFrame, passes: bool, complete: bool) -> None:
    assert all(check.passed for check in judge(table)) is passes
    assert all(check.passed for check in judge(table, complete=True, signed_off_by="A. Reader")) is complete
    unsigned = {check.name: check.passed for check in judge(table, complete=True)}
    assert not unsigned["sign_offs_count"]


def test_what_is_not_measured_is_counted_and_named() -> None:
    table = table_of(PASSED, NOT_MEASURED, NOT_MEASURED)
    assert checklist.figures(table)["not_measured_count"] == 2
    assert checklist.figures(table)["audio_not_measured_count"] == 2
    assert checklist.details(table)["not measured lines"] == ["x: x", "x: x"]
    assert checklist.remarks(table) == ["2 of 3 lines not measured"], "the verdict rests on the third alone"
    assert checklist.remarks(table_of(PASSED)) == []
    counts = checklist.counts(table)
    assert tuple(counts.columns) == VERDICTS[::-1]
    assert counts.loc["all"].to_dict() == {PASSED: 1, STALE: 0, NOT_MEASURED: 2, FAILED: 0}


def test_lines_that_need_what_is_not_here_or_that_nothing_makes_fail_are_counted_apart() -> None:
    lines = [
        Line("audio", "D1", "a", (LOUD,), control="30_loudness_gate > 3 dB louder"),
        Line("audio", "D1", "b", (LOUD,)),
        Line("audio", "Q2", "c", (), needs="listeners"),
        Line("text", "P5", "d", (TEST,), needs="mac"),
    ]
    table = measure(lines, Records(Path("none"), HERE))
    found = checklist.figures(table)
    assert found["lines_without_a_mutation_count"] == 2, "without evidence there is nothing to make fail"
    assert (found["needs_mac_count"], found["needs_listeners_count"]) == (1, 1)
    assert checklist.details(table, "A. Reader")["signed off by"] == "A. Reader"
    said = checklist.summary(table, "A. Reader")
    assert "mac: 1, listeners: 1" in said
    assert "Lines without a mutation: 2. Signed off by A. Reader." in said
    assert "Nobody has signed it off." in checklist.summary(table)


def test_what_is_missing_or_stale_is_to_be_run_and_what_failed_is_not(tmp_path: Path) -> None:
    lines = [Line("audio", "D1", "a", (LOUD, TEST)), Line("text", "T2", "b", (SAID,))]

    def names() -> list[str]:
        return [one.name for one in missing(lines, Records(tmp_path, HERE))]

    assert names() == ["13_pronunciation", "30_loudness_gate"]
    keep(tmp_path, "30_loudness_gate", {"voices": "all", "texts": 0}, level_lufs=-3.0)
    assert names() == ["13_pronunciation"]
    keep(tmp_path, "13_pronunciation", {}, lost_count=0)
    assert names() == []
    later = Records(tmp_path, Now("def" * 13, "int8", HERE.weights))
    assert len(missing(lines, later)) == 2


class Cells(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1] += data


def test_it_is_written_for_people(tmp_path: Path) -> None:
    table = measure(read_lines(), Records(tmp_path / "none", HERE))
    checklist.export(table, tmp_path)
    written = (tmp_path / "checklist.md").read_text("utf-8").splitlines()
    assert written[1].startswith(
        f"{len(table)} lines: 0 passed, 0 stale, {len(table)} not measured, 0 failed."
    )
    rows = [line for line in written if line.startswith("| ")]
    assert len(rows) == len(table) + 2
    assert {row.replace("\\|", "").count("|") for row in rows} == {len(checklist.COLUMNS) + 1}
    page = Cells()
    page.feed((tmp_path / "checklist.html").read_text("utf-8"))
    assert len(page.cells) == len(table) * len(checklist.COLUMNS)
    assert "/status" in " ".join(page.cells)


def test_all_faults_put_in_on_purpose_are_noticed() -> None:
    found = checklist.controls()
    assert len(found) > 15
    assert [control.name for control in found if not control.caught] == []


@pytest.mark.parametrize(
    ("broken", "unnoticed"),
    [
        ("_aged", {"a result of another commit", "a result of no commit", "tests of another commit"}),
        ("_other_weights", {"a result of other weights", "a result of another variant"}),
    ],
)
def test_a_checklist_that_does_not_look_is_found_out(
    monkeypatch: pytest.MonkeyPatch, broken: str, unnoticed: set[str]
) -> None:
    monkeypatch.setattr(Records, broken, lambda *_: "")
    found = checklist.controls()
    assert {control.name for control in found if not control.caught} == unnoticed


def test_a_checklist_that_believes_what_it_reads_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.lab.gates.evidence._faults", lambda *_: ())
    missed = {control.name for control in checklist.controls() if not control.caught}
    assert missed == {"a fault that the gate misses", "a run that failed with nothing amiss"}


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"measured": "30_loudness_gate"},
        {"measured": "30_loudness_gate", "figure": "level_lufs"},
        {"figure": "level_lufs", "low": 1.0},
        {"measured": "30_loudness_gate", "figure": "x", "low": 1.0, "tests": ["tests/a.py"]},
    ],
)
def test_evidence_is_a_figure_with_a_limit_or_tests(evidence: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Evidence(**evidence)


def test_lines_that_show_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="Nothing shows"):
        Line("audio", "D1", "It is loud.", ())
    with pytest.raises(ParameterError, match="no part 'sound'"):
        Line("sound", "D1", "It is loud.", (LOUD,))
    with pytest.raises(ParameterError, match="no part 'sound'"):
        read_lines(parts="audio,sound")
    line = {
        "part": "audio",
        "requirement": "D1",
        "line": "a",
        "evidence": [{"measured": "99_x", "figure": "y", "low": 1}],
    }
    written = {"parts": {"audio": {"owner": "sound", "reviewed": "2026-01-01"}}, "lines": [line]}
    (tmp_path / "lines.json").write_text(json.dumps(written))
    with pytest.raises(ParameterError, match="no measurement '99_x'"):
        measure(read_lines(tmp_path / "lines.json"), Records(tmp_path, HERE))


def test_some_parts_can_be_chosen() -> None:
    assert {line.part for line in read_lines(parts="audio, text")} == {"audio", "text"}
