"""Looks up the evidence of one measurement or test in `results/`, and whether it is still valid.

Four verdicts, the worst first: *failed*; *not measured*, if no result was made in the right mode; *stale*, if
the result was made from another commit or other weights, and shows nothing about the present ones; *passed*.
The verdict is computed again from figure and limits. The verdict that a file states can only make it worse.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kokoro_lab.config import VARIANTS, settings, weights_of
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab import results
from kokoro_lab.lab.gates.suite import Measurement, measurements
from kokoro_lab.provenance import TESTED_COMMIT, TESTED_DIRTY, git_state
from kokoro_lab.typed import require_choice
from kokoro_lab.weights.store import model_sha256

NOT_MEASURED, STALE = "not measured", "stale"
VERDICTS = (results.FAILED, NOT_MEASURED, STALE, results.PASSED)
"""The verdicts, the worst first."""
CAUGHT = "controls_caught_count"
"""The name of a figure that is computed here for every result with controls: how many of them were caught."""
TESTS = Path("tests") / "junit.xml"
"""What `make test` writes into `results/`; `make test-all` and `make test-long` write files beside it."""


@dataclass(frozen=True, slots=True)
class Now:
    """The present state: the checked-out commit, the variant of the settings, and the SHA-256 of each
    variant's weights."""

    commit: str | None
    variant: str
    weights: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Either a figure of a measurement with its limits, or tests.

    Parameters
    ----------
    measured : str
        Name of a measurement of the suite; empty if `tests` are the evidence.
    figure : str
        A check or a figure of the measurement's result, or a path of names such as `summary > kokoro-lab >
        rtf > p95`.
    low, high : float, optional
        Limits of the figure; at least one of them.
    tests : sequence of str
        Tests as pytest names them, without parameters.
    timed : bool
        Whether times decide the figure. Then a run in fast mode is no evidence, since it has few texts and
        other work runs beside it.
    """

    measured: str = ""
    figure: str = ""
    low: float | None = None
    high: float | None = None
    tests: Sequence[str] = ()
    timed: bool = False

    def __post_init__(self) -> None:
        limits = self.low is not None or self.high is not None
        if bool(self.tests) == bool(self.measured) or bool(self.measured) != bool(self.figure and limits):
            raise ParameterError(
                "Evidence is a figure of a measurement with a limit, or tests.",
                field="evidence",
                value=self.measured or list(self.tests),
                allowed="measured, figure and low or high; or tests",
            )

    @property
    def measurement(self) -> Measurement:
        """The measurement of the suite that `measured` names.

        Raises
        ------
        ParameterError
            The suite has no measurement of this name.
        """
        known = {one.name: one for one in measurements()}
        message = f"The suite has no measurement {self.measured!r}."
        require_choice("measured", self.measured, known, message)
        return known[self.measured]


@dataclass(frozen=True, slots=True)
class EvidenceFinding:
    """The state of one `Evidence`.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    figure, threshold : str
        Texts for people; empty if there is no figure.
    file : Path, optional
        The file that holds the evidence.
    note : str
        Why the evidence did not pass, or another remark.
    dirty : bool
        Whether the evidence was made from files that were not committed.
    """

    verdict: str
    figure: str = ""
    threshold: str = ""
    file: Path | None = None
    note: str = ""
    dirty: bool = False


def now() -> Now:
    """The state of this checkout."""
    weights = {variant: model_sha256(weights_of(variant)) for variant in VARIANTS}
    return Now(git_state()["commit"], settings().variant, weights)


@dataclass(frozen=True)
class Records:
    """The results in a folder, as evidence.

    Parameters
    ----------
    folder : Path
        A folder such as `results/`, which may be empty or not exist.
    now : Now
    fast : bool
        Whether runs of the fast mode count, too.
    """

    folder: Path
    now: Now
    fast: bool = False

    def find(self, evidence: Evidence) -> EvidenceFinding:
        """The state of `evidence`.

        Raises
        ------
        ParameterError
            The suite has no measurement `evidence.measured`.
        """
        if evidence.tests:
            return self.tests(evidence.tests)
        measured = evidence.measurement
        return self.counted(evidence).figure(measured, evidence.figure, evidence.low, evidence.high)

    def counted(self, evidence: Evidence) -> Records:
        """The results that count for `evidence`. If times decide its figure, runs in fast mode do not
        count."""
        return replace(self, fast=self.fast and not evidence.timed)

    def figure(
        self, measured: Measurement, name: str, low: float | None = None, high: float | None = None
    ) -> EvidenceFinding:
        """The figure `name` of the newest run of `measured`, against its limits."""
        wanted = results.Check(name, math.nan, low, high)
        threshold = " and ".join(wanted.limits)
        path, found, problem = self._newest(measured)
        if found is None:
            return EvidenceFinding(NOT_MEASURED, "", threshold, path, problem)
        value = _figure(found, name)
        if value is None:
            return EvidenceFinding(NOT_MEASURED, "", threshold, path, f"it has no figure {name}")
        faults = list(_faults(found, name))
        if not replace(wanted, value=value).passed:
            faults.insert(0, "the figure is beyond its limit" if math.isfinite(value) else "it is not finite")
        git = found.record.get("git", {})
        aged = self._aged(git.get("commit")) or self._other_weights(found.record, measured)
        dirty = git.get("dirty") is not False
        return _finding(f"{name} = {value:.4g}", threshold, path, aged=aged, faults=faults, dirty=dirty)

    def without_control(self, measured: Measurement, control: str) -> str:
        """Why the newest run of `measured` does not show that `control` was caught; empty if it does.

        Also empty if there is no run: the figure then reports it.
        """
        _, found, _ = self._newest(measured)
        if found is None or results.NegativeControl(control, caught=True) in found.controls:
            return ""
        return f"its control was not tried, or not caught: {control}"

    def tests(self, nodes: Sequence[str]) -> EvidenceFinding:
        """The outcome of the tests `nodes`, named as in pytest. A file stands for all of its tests, a
        function for its cases with all parameters."""
        if not self._cases:
            return EvidenceFinding(NOT_MEASURED, "", "all pass", None, "no report of the tests can be read")
        ran = [[case for case in self._cases if _is_of(case.name, node)] for node in nodes]
        path = self._cases[0].file
        if unknown := [node for node, found in zip(nodes, ran, strict=True) if not found]:
            note = f"did not run: {', '.join(unknown)}"
            return EvidenceFinding(NOT_MEASURED, "", "all pass", path, note)
        found = [case for one in ran for case in one]
        outcomes = [case.outcome for case in found]
        passed, broken = outcomes.count(results.PASSED), outcomes.count(results.FAILED)
        figure = f"{passed} of {len(found)} tests pass"
        if not broken and passed < len(found):
            note = f"{len(found) - passed} were skipped"
            return EvidenceFinding(NOT_MEASURED, figure, "all pass", path, note)
        faults = [f"{broken} of its tests failed"] if broken else []
        abouts = {case.file: case.about for case in found}
        aged = next(filter(None, (self._aged(about.get(TESTED_COMMIT)) for about in abouts.values())), "")
        dirty = any(about.get(TESTED_DIRTY) != "False" for about in abouts.values())
        return _finding(figure, "all pass", next(iter(abouts)), aged=aged, faults=faults, dirty=dirty)

    def shown_by(self) -> set[Path]:
        """For each measurement, the folder of its newest run in a mode that counts."""
        found = (self._newest(measured)[0] for measured in measurements())
        return {path.parent for path in found if path is not None}

    def _newest(self, measured: Measurement) -> tuple[Path | None, results.Result | None, str]:
        """A measurement's newest run in a mode that counts: its file, its result, and, if there is no result,
        the reason."""
        modes = (False, True) if self.fast else (False,)
        for run in sorted((self.folder / measured.folder).glob("*/"), reverse=True):
            try:
                found = results.read_result(run)
            except ResultError as error:
                return run / str(error.field), None, "it cannot be read"
            if found is None or found.verdict in (results.RUNNING, results.INTERRUPTED):
                continue  # still running, or ended before it could say anything
            if found.verdict == results.CRASHED:
                if any(found.parameters == measured.parameters(mode) for mode in modes):
                    return run / results.CRASH, None, f"it crashed: {found.message}"
            elif any(measured.was_asked(found.parameters, mode) for mode in modes):
                return run / results.RESULT, found, ""
        return None, None, "there is no result"

    def _aged(self, commit: str | None) -> str:
        if commit is None or self.now.commit is None:
            return "of an unknown commit"
        return "" if commit == self.now.commit else f"of commit {commit[:8]}"

    def _other_weights(self, record: Mapping[str, Any], measured: Measurement) -> str:
        ran = next(iter(record.get("systems", {}).values()), record)  # a benchmark lists ours first
        variant, wanted = ran.get("variant"), measured.variant or self.now.variant
        if variant != wanted:
            return f"of {variant}, not {wanted}"
        sha256 = ran.get("model_sha256")
        return "" if sha256 == self.now.weights.get(wanted) else f"of other weights, {str(sha256)[:8]}"

    @cached_property
    def _cases(self) -> list[_Case]:
        """The tests in all reports that can be read."""
        return [case for file in sorted((self.folder / TESTS).parent.glob("*.xml")) for case in _cases(file)]


@dataclass(frozen=True, slots=True)
class _Case:
    """One test as a report of tests shows it: name, outcome, and the report's file and properties."""

    name: str
    outcome: str
    file: Path
    about: Mapping[str, str]


def _cases(file: Path) -> Iterator[_Case]:
    try:
        tree = ET.parse(file)
    except (OSError, ET.ParseError):
        return
    about = {one.get("name", ""): one.get("value", "") for one in tree.iter("property")}
    for case in tree.iter("testcase"):
        yield _Case(f"{case.get('classname')}::{case.get('name')}", _outcome(case), file, about)


def _finding(
    figure: str, threshold: str, path: Path | None, *, aged: str, faults: Sequence[str], dirty: bool
) -> EvidenceFinding:
    """The finding on a figure: old evidence is stale whatever it says; other evidence fails if it has any
    fault."""
    verdict = STALE if aged else results.FAILED if faults else results.PASSED
    notes = [aged, *faults, "made with changes that are not committed" if dirty else ""]
    return EvidenceFinding(verdict, figure, threshold, path, "; ".join(filter(None, notes)), dirty)


def _figure(found: results.Result, name: str) -> float | None:
    """The value of a check, of a figure, or at a path of names such as `a > b`; NaN if it is null."""
    if name == CAUGHT:
        return float(sum(control.caught for control in found.controls))
    at: Any = found.figures if name in found.figures else found.record
    for step in (name,) if name in found.figures else name.split(" > "):
        if not isinstance(at, Mapping) or step not in at:
            return None
        at = at[step]
    return math.nan if at is None else float(at)


def _faults(found: results.Result, name: str) -> Iterator[str]:
    """Why a result cannot prove its figure `name`, whatever its value.

    A gate that missed an injected fault proves nothing. A gate in which another figure failed still proves
    this one: the line of the other figure reports the failure.
    """
    broken = results.failed(found.checks)
    missed = [control.name for control in found.controls if not control.caught]
    if name in broken:
        yield "it failed in its own run"
    if missed:
        yield f"the gate misses {', '.join(missed)}"
    told = {one["name"] for one in found.record.get("checks", []) if one["passed"]}
    if lies := [name for name in broken if name in told]:
        yield f"its result says that {', '.join(lies)} passed, and the figure says not"
    if found.verdict == results.PASSED and (broken or missed):
        yield "its result says passed, and what is in it says not"
    if found.verdict != results.PASSED and not (broken or missed):
        yield f"its run failed: {found.message or found.verdict}"


def _is_of(case: str, node: str) -> bool:
    """Whether a report's case, such as `tests.test_a::test_b[c]`, belongs to the test
    `tests/test_a.py::test_b`."""
    file, _, function = node.partition("::")
    wanted = f"{file.removesuffix('.py').replace('/', '.')}::{function}"
    return case.partition("[")[0] == wanted if function else case.startswith(wanted)


def _outcome(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return results.FAILED
    return NOT_MEASURED if case.find("skipped") is not None else results.PASSED
