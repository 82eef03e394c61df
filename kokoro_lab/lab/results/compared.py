"""Compares two runs of one notebook: figures that got worse first, then other differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import Any

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results.kept import KeptRun
from kokoro_lab.lab.results.records import Check, room
from kokoro_lab.lab.results.units import number, unit_of, unit_of_difference, with_unit

FAILS_NOW, WORSE, GONE = "fails now", "worse", "not measured now"
UNCLEAR, CHANGED, NEW, BETTER, SAME = "within the intervals", "changed", "new", "better", "same"
ORDER = (FAILS_NOW, WORSE, GONE, UNCLEAR, CHANGED, NEW, BETTER, SAME)
"""The kinds of change of a figure, the worst first."""

CAUGHT = "caught: "
"""The prefix of a control's name among figures; its value is 1 if the fault was caught."""

_TIMES = {"rtf", "ttfa", "ttfb", "latency", "late", "gap", "jitter", "underruns", "wall", "cpu"}
_LESS = _TIMES | {"rss", "memory", "lsd"}
_MORE = {"pesq", "stoi", "dnsmos", "mos", "snr", "similarity"}
"""Words in the names of figures without a limit, for which more (or less) is better. For other figures the
direction is not known."""
_ABSOLUTE = {"dB", "LU", "cents", "%", "points"}
"""Units whose differences are not shown in percent."""
_ENDS = (("low", "high"), ("lower", "upper"))
_FACTS = (
    *("variant", "model_sha256", "requested_provider", "active_provider", "threads", "concurrency"),
    *("versions", "toolchain", "git", "machine"),
)
_TOLERANCE = 1e-9
"""Relative difference up to which two figures count as equal: sums may differ in their last bits."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class FigureChange:
    """One figure of two runs, A and B.

    Parameters
    ----------
    name : str
        Name of the figure, which ends in its unit.
    before, after : float or None
        The figure in A and in B; None if it was not measured, NaN if it is not finite.
    change : str
        One of `ORDER`.
    limits : str
        Limits in words, from B or else from A; empty if there are none.
    before_interval, after_interval : tuple of float, optional
        Ends of the interval of each run, if its record has both.
    severity : float
        How much the figure got worse: the room that it lost or, without a limit, the change divided by A's
        value. Figures with the same `change` are ordered by it.
    """

    name: str
    before: float | None
    after: float | None
    change: str
    limits: str = ""
    before_interval: Interval | None = None
    after_interval: Interval | None = None
    severity: float = 0.0

    @property
    def difference(self) -> str:
        """The difference in the figure's unit, and in percent of A unless the figure is a logarithm or a
        percentage."""
        if self.before is None or self.after is None or self.name.startswith(CAUGHT):
            return ""
        by, unit = self.after - self.before, unit_of_difference(self._name)
        if not math.isfinite(by):
            return ""
        percent = f" ({100 * by / abs(self.before):+.1f} %)" if self.before and unit not in _ABSOLUTE else ""
        return f"{by:+.4g} {unit}".strip().replace("-", "−") + percent.replace("-", "−")

    @property
    def tone(self) -> str:
        """The tone of the figure's row on a page: bad, good, or neither."""
        return "bad" if self.change in (FAILS_NOW, WORSE, GONE) else "good" if self.change == BETTER else ""

    @property
    def _name(self) -> str:
        """The figure's name with words joined by `_`, as in names that end in a unit."""
        return self.name.replace(" > ", "_")

    def said(self, *, after: bool) -> str:
        """The figure of run A or, with `after`, of run B, with its unit and interval."""
        value, interval = (self.after, self.after_interval) if after else (self.before, self.before_interval)
        if value is None:
            return "–"
        if self.name.startswith(CAUGHT):
            return "caught" if value else "missed"
        ends = f" [{number(interval[0])}, {number(interval[1])}]" if interval else ""
        return with_unit(value, unit_of(self._name)) + ends


def compare_figures(a: KeptRun, b: KeptRun) -> list[FigureChange]:
    """Every check, control and figure of two runs; those that got worse come first.

    A control counts as a figure: 1 if the fault was caught. A figure with a limit is worse if its margin is
    smaller; without a limit, its name tells the direction. A figure whose intervals in both runs overlap is
    neither worse nor better, unless it fails now.

    Raises
    ------
    ParameterError
        The runs are of different notebooks.
    """
    if a.notebook != b.notebook:
        raise ParameterError(
            f"{a.notebook} and {b.notebook} measure different things.",
            field="run",
            value=b.run_id,
            allowed=f"two runs of one notebook, such as {a.notebook} and {a.notebook}~1",
        )
    checks = {one.name: one for run in (a, b) for one in run.result.checks}
    checks |= {f"{CAUGHT}{one.name}": Check("", 0, low=1) for run in (a, b) for one in run.result.controls}
    before, after = figures_of(a), figures_of(b)
    ends = {end for figures in (before, after) for name in figures for end in _ends_of(name, figures)}
    names = [name for name in dict.fromkeys([*checks, *after, *before]) if name not in ends or name in checks]
    changes = [_change(name, before, after, checks.get(name)) for name in names]
    return sorted(changes, key=lambda one: (ORDER.index(one.change), -one.severity, not one.limits))


def figures_of(run: KeptRun) -> dict[str, float]:
    """All numbers of a run by their names. For a benchmark they are those of its summary, such as `kokoro-lab
    > rtf > p50`."""
    controls = {f"{CAUGHT}{one.name}": float(one.caught) for one in run.result.controls}
    named = run.result.figures or dict(leaves(run.mapping("summary"))) | dict(leaves(run.mapping("ratios")))
    found = {
        name: math.nan if value is None else float(value)
        for name, value in named.items()
        if value is None or isinstance(value, (int, float))
    }
    return found | controls


def leaves(tree: Mapping[str, Any], path: str = "", joint: str = " > ") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, by their paths of names."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{name}{joint}", joint)
        else:
            yield f"{path}{name}", value


def _change(
    name: str, before: Mapping[str, float], after: Mapping[str, float], check: Check | None
) -> FigureChange:
    a, b = before.get(name), after.get(name)
    limits = "" if check is None else " and ".join(check.limits) if check.name else "must be caught"
    if a is None or b is None:
        beyond = b is not None and check is not None and not _at(check, b).passed
        return FigureChange(name, a, b, FAILS_NOW if beyond else GONE if b is None else NEW, limits)
    intervals = _interval(name, before), _interval(name, after)
    change, severity = _judged(name, a, b, check)
    if change in (WORSE, BETTER, CHANGED) and _overlap(*intervals):
        change = UNCLEAR
    return FigureChange(name, a, b, change, limits, *intervals, severity)


def _judged(name: str, a: float, b: float, check: Check | None) -> tuple[str, float]:
    if math.isclose(a, b, rel_tol=_TOLERANCE) or (math.isnan(a) and math.isnan(b)):
        return SAME, 0.0
    if math.isnan(b):
        return (FAILS_NOW if check is not None and _at(check, a).passed else GONE), math.inf
    if math.isnan(a):
        return NEW, 0.0
    by = (b - a) / (abs(a) or 1.0)
    if check is not None:
        was, now = _at(check, a), _at(check, b)
        lost = room(was) - room(now) if math.isfinite(by) else math.inf
        lost = was.margin - now.margin if math.isnan(lost) else lost  # a count of which none is allowed
        if was.passed and not now.passed:
            return FAILS_NOW, lost
        return (WORSE if lost > 0 else BETTER), lost
    words = set(name.replace(" > ", "_").replace(" ", "_").lower().split("_"))
    if math.isfinite(by) and bool(words & _LESS) != bool(words & _MORE):
        worse = by > 0 if words & _LESS else by < 0
        return (WORSE if worse else BETTER), abs(by)
    return CHANGED, abs(by)


def _at(check: Check, value: float) -> Check:
    return Check(check.name, value, check.low, check.high)


def _ends_of(name: str, figures: Mapping[str, float]) -> tuple[str, ...]:
    """The names of both ends of a figure's interval; empty if the record does not have both.

    Examples of lower ends: `pesq_mean_low` for `pesq_mean`, `within_band_low_95_percent` for
    `within_band_percent`, `rtf low` for `rtf ratio`.
    """
    stem, _, unit = name.rpartition("_")
    spaced, space, _ = name.rpartition(" ")
    forms = [(f"{name}_", ""), (f"{name}_interval_", ""), (f"{stem}_", f"_95_{unit}")]
    for low, high in _ENDS:
        for before, behind in [*forms, (f"{spaced} ", "")] if space else forms:
            ends = f"{before}{low}{behind}", f"{before}{high}{behind}"
            if all(end in figures for end in ends):
                return ends
    return ()


def _interval(name: str, figures: Mapping[str, float]) -> Interval | None:
    ends = [figures[end] for end in _ends_of(name, figures)]
    return (ends[0], ends[1]) if ends and name not in _ends_of(name, figures) else None


def _overlap(a: Interval | None, b: Interval | None) -> bool:
    return a is not None and b is not None and a[0] <= b[1] and b[0] <= a[1]


def differences(a: KeptRun, b: KeptRun) -> list[tuple[str, str, str]]:
    """The differences in two runs' parameters and environment: name, value of A, value of B. Parameters come
    first."""
    of_a, of_b = _facts(a), _facts(b)
    # A run that ended early recorded only its parameters, not its environment
    whole = a.result.record and b.result.record
    names = [name for name in of_a | of_b if whole or (name in of_a and name in of_b)]
    found = [(name, str(of_a.get(name, "–")), str(of_b.get(name, "–"))) for name in names]
    return [each for each in found if each[1] != each[2]]


def _facts(run: KeptRun) -> dict[str, Any]:
    given = {f"parameter {name}": value for name, value in run.result.parameters.items()}
    made = {name: run.result.record[name] for name in _FACTS if name in run.result.record}
    return {**given, "verdict": run.result.verdict, **dict(leaves(made, joint=" "))}


def sentence(changes: list[FigureChange], a: KeptRun, b: KeptRun) -> str:
    """The comparison in words, and how reliable it is."""
    counts = {change: sum(one.change == change for one in changes) for change in ORDER}
    said = ", ".join(f"{count} {change}" for change, count in counts.items() if count) or "nothing to compare"
    doubts = []
    if any(one.change == WORSE and one.after_interval is None for one in changes):
        doubts.append("A figure without an interval is of one run: a small change may be chance.")
    doubts += [
        f"{letter} left no figure: {(run.main_point or run.result.verdict).rstrip('.')}."
        for letter, run in (("A", a), ("B", b))
        if not figures_of(run)
    ]
    if a.mapping("machine") and b.mapping("machine") and a.mapping("machine") != b.mapping("machine"):
        doubts.append("The machines differ: times say nothing of the versions.")
    return " ".join([f"{said}.", *doubts])


def pairs_of_sounds(a: KeptRun, b: KeptRun) -> list[tuple[str, str, str, bool]]:
    """The sounds that both runs have: name, the files of A and B, and whether these are identical.

    Clips that both runs judged come first, B's worst at the top; then other files of the same name.
    """
    judged_a, judged_b = ({one.get("name"): one.get("candidate") for one in run.rows("clips")} for run in (a, b))
    found = [(str(name), judged_a[name], file) for name, file in judged_b.items() if name in judged_a]
    taken = {file for _, _, file in found}
    found += [(Path(file).name, file, file) for file in b.sounds if file not in taken]
    return [
        (name, of_a, of_b, cmp(a.folder / of_a, b.folder / of_b, shallow=False))
        for name, of_a, of_b in found
        if of_a in a.sounds and of_b in b.sounds
    ]
