"""The feature checklist: every line of ten parts, with figure, threshold, verdict, command and evidence file.

The lines stand in `checklist.json`. No person ticks them: each line names its evidence, which are figures and
tests, and `evidence` looks up their present state. A line has the worst verdict of its evidence; a line
without evidence is *not measured*. A line also names what makes its evidence fail: a mutation of
`tests/mutations`, or a negative control of a measurement. Each part has an owner, and the day of its last
review.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import plots, tables
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.gates.evidence import NOT_MEASURED, STALE, TESTS, VERDICTS, Evidence, Now, Records
from kokoro_lab.lab.gates.suite import Measurement, measurements
from kokoro_lab.lab.notebooks import defaults, find_notebook
from kokoro_lab.lab.results import FAILED, PASSED, RESULT, Check, NegativeControl
from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY
from kokoro_lab.typed import require_choice

NAME = "90_verification_checklist"
LINES = Path(__file__).with_name("checklist.json")
PARTS = tuple(json.loads(LINES.read_text("utf-8"))["parts"])
COLOURS = {PASSED: plots.GREEN, STALE: plots.YELLOW, NOT_MEASURED: plots.MUTED, FAILED: plots.ORANGE}
COLUMNS = (
    *("part", "requirement", "line", "figure", "threshold", "verdict", "command", "evidence", "fails with"),
    *("note", "owner", "reviewed"),
)
NEEDS = ("mac", "listeners", "notebooks")
"""Things that some lines need and that may be missing: an Apple-silicon Mac, people who listen, notebooks yet
to be written."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the checklist: a requirement in a sentence, its part and id, and its evidence.

    Parameters
    ----------
    needs : str
        One of `NEEDS`, if the line cannot be measured completely without it. Such a line counts as not
        measured.
    mutation : sequence of str
        Names of mutations of `tests/mutations` that make the line's tests fail.
    control : str
        `measurement > name` of a negative control that makes the line's figure fail.
    owner, reviewed : str
        The owner of the line's part, and the day on which somebody last reviewed the line with its evidence.
    """

    part: str
    requirement: str
    line: str
    evidence: tuple[Evidence, ...]
    needs: str = ""
    mutation: Sequence[str] = ()
    control: str = ""
    owner: str = ""
    reviewed: str = ""

    def __post_init__(self) -> None:
        if self.needs:
            require_choice("needs", self.needs, NEEDS, f"{self.line!r} needs {self.needs!r}.")
        require_known("part", self.part, PARTS, "parts")
        if not self.evidence and not self.needs:
            raise ParameterError(
                f"Nothing shows {self.line!r}.",
                field="evidence",
                value=self.line,
                mend="Name evidence, or what it needs.",
            )
        if self.control and self.control.partition(" > ")[0] not in {one.measured for one in self.evidence}:
            raise ParameterError(
                f"A control shows nothing of {self.line!r}.",
                field="control",
                value=self.control,
                allowed="measurement > name, of a measurement that is its evidence",
            )

    @property
    def fails_with(self) -> str:
        """Names of what makes the evidence fail, separated by line breaks; empty if nothing is known."""
        return "\n".join(filter(None, (*self.mutation, self.control)))


def read_lines(path: Path = LINES, parts: str = "") -> list[Line]:
    """The lines of the checklist in the order of `PARTS`: those of `parts` (names separated by commas), or
    all.

    Raises
    ------
    ParameterError
        A part in `parts` does not exist, or a line is wrong.
    """
    chosen = [part.strip() for part in parts.split(",")] if parts else list(PARTS)
    for part in chosen:
        require_known("part", part, PARTS, "parts", value=parts)
    written = json.loads(path.read_text("utf-8"))
    lines = [
        Line(
            **written["parts"][row["part"]]
            | row
            | {"evidence": tuple(Evidence(**e) for e in row["evidence"])}
        )
        for row in written["lines"]
    ]
    return [line for part in PARTS if part in chosen for line in lines if line.part == part]


def measure(lines: Sequence[Line], records: Records) -> pd.DataFrame:
    """Look up the verdict of every line in the results.

    Returns
    -------
    pandas.DataFrame
        One row for each line: `COLUMNS`, as text, `needs`, and `dirty`: whether any of its evidence was made
        from changes that are not committed. Several findings stand in one cell, separated by line breaks.

    Raises
    ------
    ParameterError
        A line names a measurement that the suite does not have.
    """
    return pd.DataFrame([_row(line, records) for line in lines], columns=[*COLUMNS, "needs", "dirty"])


def judge(table: pd.DataFrame, *, complete: bool = False, signed_off_by: str = "") -> list[Check]:
    """The checks: no line has failed, and at least one has a result.

    With `complete`, as for a release, all lines must pass with evidence from committed files, and somebody
    must have signed.
    """
    counts = {verdict: int((table.verdict == verdict).sum()) for verdict in VERDICTS}
    checks = [
        Check("lines_count", len(table), low=1),
        Check("lines_with_a_result_count", len(table) - counts[NOT_MEASURED], low=1),
        Check("failed_lines_count", counts[FAILED], high=0),
    ]
    if complete:
        checks += [
            Check("not_measured_lines_count", counts[NOT_MEASURED], high=0),
            Check("stale_lines_count", counts[STALE], high=0),
            Check("uncommitted_lines_count", int(table.dirty.sum()), high=0),
            Check("sign_offs_count", int(bool(signed_off_by.strip())), low=1),
        ]
    return checks


def figures(table: pd.DataFrame) -> dict[str, float]:
    """How many lines have each verdict, in all and in each part."""
    found: dict[str, float] = {
        f"{verdict.replace(' ', '_')}_count": int((table.verdict == verdict).sum()) for verdict in VERDICTS
    }
    found["uncommitted_count"] = int(table.dirty.sum())
    found["lines_without_a_mutation_count"] = len(_unproven(table))
    found |= {f"needs_{need}_count": int((table.needs == need).sum()) for need in NEEDS}
    for (part, verdict), rows in table.groupby(["part", "verdict"], sort=False):
        found[f"{part}_{verdict.replace(' ', '_')}_count"] = len(rows)
    return found


def _unproven(table: pd.DataFrame) -> pd.DataFrame:
    """The lines whose evidence has never been shown to fail when it should."""
    return table[(table["fails with"] == "") & (table.command != "")]


def details(table: pd.DataFrame, signed_off_by: str = "") -> dict[str, Any]:
    """All lines, the names of those that did not pass, the names of those for which no mutation or control is
    known, and the person who has signed."""
    unpassed = {
        f"{verdict} lines": _named(rows)
        for verdict, rows in table.groupby("verdict")
        if verdict != VERDICTS[-1]
    }
    return {
        **unpassed,
        "lines without a mutation": _named(_unproven(table)),
        "signed off by": signed_off_by,
        "lines": table.to_dict("records"),
    }


def _named(rows: pd.DataFrame) -> list[str]:
    return [f"{row.requirement}: {row.line}" for row in rows.itertuples()]


def counts(table: pd.DataFrame) -> pd.DataFrame:
    """How many lines of each part (rows) have each verdict (columns), and how many in all."""
    found = pd.crosstab(table.part, table.verdict)
    ordered = found.reindex(
        index=[part for part in PARTS if part in found.index], columns=list(VERDICTS)[::-1], fill_value=0
    )
    return pd.concat([ordered, ordered.sum().to_frame("all").T]).fillna(0).astype(int)


def summary(table: pd.DataFrame, signed_off_by: str = "") -> str:
    """The sentences before the table: how many lines have each verdict, how many have no mutation or control,
    and who has signed."""
    verdicts = ", ".join(f"{(table.verdict == verdict).sum()} {verdict}" for verdict in VERDICTS[::-1])
    needs = ", ".join(f"{need}: {(table.needs == need).sum()}" for need in NEEDS)
    return (
        f"{len(table)} lines: {verdicts}. Of those not measured, some need what is not here: {needs}. "
        f"Lines without a mutation: {len(_unproven(table))}. "
        + (f"Signed off by {signed_off_by}." if signed_off_by else "Nobody has signed it off.")
    )


def remarks(table: pd.DataFrame) -> list[str]:
    """The remarks on a verdict: how many lines were not measured."""
    counts = {verdict: int((table.verdict == verdict).sum()) for verdict in (NOT_MEASURED, STALE)}
    return [f"{count} of {len(table)} lines {verdict}" for verdict, count in counts.items() if count]


def export(table: pd.DataFrame, folder: Path, signed_off_by: str = "") -> None:
    """Write `checklist.md` and `checklist.html` into the folder of the run."""
    said = summary(table, signed_off_by)
    tables.write(folder, "checklist", "Feature verification checklist", said, table[list(COLUMNS)])


def missing(lines: Iterable[Line], records: Records) -> list[Measurement]:
    """The measurements to run so that every line has its evidence, in the suite's order. Tests are not among
    them."""
    wanted = {
        each.measured
        for line in lines
        for each in line.evidence
        if each.measured
        and not (records.fast and each.timed)  # a fast run is no evidence for it
        and records.find(each).verdict in (NOT_MEASURED, STALE)
    }
    return [one for one in measurements() if one.name in wanted]


def _row(line: Line, records: Records) -> dict[str, Any]:
    found = [records.find(each) for each in line.evidence]
    unnoticed = _without_control(line, records)
    verdicts = [
        *(one.verdict for one in found),
        *([NOT_MEASURED] if line.needs else []),
        *([FAILED] if unnoticed else []),
    ]
    commands = dict.fromkeys(_command(each, records) for each in line.evidence)
    notes = [*(one.note for one in found), unnoticed, f"needs {line.needs}" if line.needs else ""]
    files = dict.fromkeys(_shown(one.file, records.folder) for one in found if one.file)
    about = ("part", "requirement", "line", "owner", "reviewed", "needs")
    return {name: getattr(line, name) for name in about} | {
        "figure": "\n".join(one.figure or "–" for one in found),
        "threshold": "\n".join(one.threshold for one in found),
        "verdict": min(verdicts, key=VERDICTS.index),
        "command": "\n".join(commands),
        "evidence": "\n".join(files),
        "fails with": line.fails_with,
        "note": "\n".join(dict.fromkeys(filter(None, notes))),
        "dirty": any(one.dirty for one in found),
    }


def _without_control(line: Line, records: Records) -> str:
    """Why an existing result does not show that the line's control was caught; empty if it does."""
    if not line.control:
        return ""
    name, _, control = line.control.partition(" > ")
    each = next(one for one in line.evidence if one.measured == name)
    return records.counted(each).without_control(each.measurement, control)


def _command(evidence: Evidence, records: Records) -> str:
    if evidence.tests:
        return "make test"
    return evidence.measurement.command(records.counted(evidence).fast)


def _shown(path: Path, folder: Path) -> str:
    """A path, relative to the folder that holds the folder of results."""
    return str(Path(folder.name) / path.relative_to(folder))


def controls() -> list[NegativeControl]:
    """Tests of the checklist itself: the made-up results and reports of tests that `checklist.json` holds
    under `controls`, each wrong in one way, which must not pass.

    A fault counts as noticed only with the right verdict: a stale result must be called stale, not failed.
    One result and one report of tests without a fault are among them; these must pass. All files go to a
    temporary folder.
    """
    made_up = json.loads(LINES.read_text("utf-8"))["controls"]
    measured = replace(measurements()[0], full={"made_up": 1}, variant="")
    good = made_up["result"] | {"parameters": defaults(find_notebook(measured.name)) | dict(measured.full)}
    with TemporaryDirectory() as folder:
        records = Records(Path(folder), Now(**made_up["now"]))

        def verdict() -> str:
            return records.figure(measured, **made_up["figure"]).verdict

        found = [NegativeControl("no result", verdict() == NOT_MEASURED)]
        for one in made_up["results"]:
            path = records.folder / measured.folder / "20000101T000000Z-0000" / RESULT
            write_json(path, good | one["changes"])
            found.append(NegativeControl(one["name"], verdict() == one["verdict"]))
        return found + _of_tests(records, made_up)


def _of_tests(records: Records, made_up: Mapping[str, Any]) -> list[NegativeControl]:
    """Controls with made-up reports of tests, like those with made-up results."""

    def verdict() -> str:
        return replace(records).tests([made_up["test"]]).verdict  # a copy reads the reports again

    found = [NegativeControl("no report of tests", verdict() == NOT_MEASURED)]
    (records.folder / TESTS).parent.mkdir(parents=True)
    for one in made_up["reports"]:
        (records.folder / TESTS).write_text(_report(**made_up["report"] | one["changes"]), "utf-8")
        found.append(NegativeControl(one["name"], verdict() == one["verdict"]))
    return found


def _report(commit: str, name: str, inside: str) -> str:
    return (
        f'<testsuites><testsuite><properties><property name="{TESTED_COMMIT}" value="{commit}"/>'
        f'<property name="{TESTED_DIRTY}" value="False"/></properties>'
        f'<testcase classname="tests.test_made_up" name="{name}">{inside}</testcase></testsuite></testsuites>'
    )
