"""The header of a report: the verdict, how near each figure is to its limit, and what was run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.results.records import CRASH, CRASHED, FAILED, PASSED, RESULT, Check, Result, ranked, room
from kokoro_lab.lab.results.units import number, unit_of, words_of

MARK = '<section class="run-header'
"""The beginning of a header, by which a report recognises (and leaves out) one that a notebook has shown."""
NEAR = 0.1
"""If a margin is below this share of its limit, the header draws the figure as near its limit."""


def header_html(result: Result, base: str = "", came_to: str = "") -> Markup:
    """The header of a run, as HTML, to be put into a page that has the style sheets `style` and `header`.

    Parameters
    ----------
    result : Result
        The result: how the run ended, and its folder.
    base : str
        Path from the page to the folder of the run, such as `../results/30_loudness_gate/20261126T…/`.
    came_to : str
        For a run that did not finish, a sentence on how far it came.
    """
    record, checks = result.record, ranked(result.checks)
    controls = sorted(result.controls, key=lambda control: control.caught)
    remarks = list(record.get("remarks", []))
    folder = result.run_dir or Path()
    return filled(
        "report/templates/header",
        tone="qualified" if result.verdict == PASSED and remarks else result.verdict,
        headline="; ".join([result.verdict.capitalize(), *remarks]),
        summary=_summary(result, came_to),
        checks=[_row(check) for check in checks],
        controls=controls,
        missed_count=sum(not control.caught for control in controls),
        parameters=result.parameters,
        defaults=_defaults(result.notebook),
        facts=_facts(result),
        tables=record.get("tables", []),
        files=[name for name in (RESULT, CRASH, "executed.ipynb") if (folder / name).exists()],
        sounds=sorted(path.name for path in folder.glob("audio/*") if path.is_file()),
        url=lambda path: quote(base + path),
    )


def title_of(result: Result) -> str:
    """Notebook, verdict and date, as the title of a page."""
    remarks = "; ".join(["", *result.record.get("remarks", [])])
    return f"{result.notebook}: {result.verdict}{remarks}, {_date(result)[:10]}".removesuffix(", ")


def _row(check: Check) -> dict[str, Any]:
    share, margin = room(check), check.margin
    # A count of which none is allowed has no distance to its limit
    measured = math.isfinite(margin) and (math.isfinite(share) or margin != 0)
    return {
        "name": check.name,
        "words": _words(check),
        "figure": number(check.value),
        "unit": unit_of(check.name) if math.isfinite(check.value) else "",
        "limit": _limit(check),
        "margin": number(margin) if measured else "–",
        "percent": round(100 * min(max(share, 0.0), 1.0)) if math.isfinite(share) else None,
        "state": "bad" if not check.passed else "near" if share < NEAR else "good",
        "passed": check.passed,
    }


def _words(check: Check) -> str:
    return words_of(check.name) or check.name


def _limit(check: Check) -> str:
    if check.low is not None and check.high is not None:
        low, high = number(check.low), number(check.high)
        return f"= {low}" if low == high else f"{low} to {high}"
    if check.low is not None:
        return f"≥ {number(check.low)}"
    return "none" if check.high is None else f"≤ {number(check.high)}"


def _summary(result: Result, came_to: str) -> str:
    if result.verdict not in (PASSED, FAILED):
        why = result.message or "It left neither a result nor a reason"
        why += "" if why.endswith((".", "!", "?")) else "."
        nothing = "This says nothing of what it was to measure." if result.verdict == CRASHED else ""
        return " ".join(filter(None, (why, came_to, nothing)))
    checks, controls = result.checks, result.controls
    beyond = [_words(check) for check in checks if not check.passed]
    missed = [control.name for control in controls if not control.caught]
    said = [f"{len(checks) - len(beyond)} of {len(checks)} figures are within their limits"]
    said[0] += f"; not within: {', '.join(beyond)}" if beyond else ""
    if controls:
        said.append(f"{len(controls) - len(missed)} of {len(controls)} faults put in on purpose were caught")
        said[1] += f"; missed: {', '.join(missed)}" if missed else ""
    return ". ".join(said) + "." if checks else "Nothing was measured."


def _defaults(notebook: str) -> Mapping[str, Any]:
    """The defaults of a notebook's parameters; empty if the notebook is not found."""
    from kokoro_lab.lab import notebooks

    with suppress(ParameterError, ValueError):  # not of this repository, or without parameters
        return notebooks.defaults(notebooks.find_notebook(notebook))
    return {}


def _facts(result: Result) -> dict[str, str]:
    """The known facts of a run: what was run, on which machine and weights, and when."""
    record, given = result.record, result.parameters
    git, machine = record.get("git") or {}, record.get("machine") or {}
    active, requested = record.get("active_provider") or "", record.get("requested_provider") or ""
    if requested not in ("", "auto", active):
        active += f" ({requested} was asked for)"
    commit = (git.get("commit") or "")[:12]
    if commit and git.get("dirty"):
        commit += ", with changes that are not committed"
    cores = f"{machine['cores']} cores" if machine.get("cores") else ""
    facts = {
        "voice": str(given.get("voice") or given.get("voices") or ""),
        "variant": str(record.get("variant") or ""),
        "provider": active,
        "commit": commit,
        "machine": ", ".join(filter(None, (machine.get("cpu"), cores, machine.get("system")))),
        "versions": ", ".join(f"{name} {of}" for name, of in (record.get("versions") or {}).items()),
        "begun": _date(result),
        "took": _span(result.run_s),
        "run": result.run_dir.name if result.run_dir else "",
    }
    return {name: fact for name, fact in facts.items() if fact}


def _date(result: Result) -> str:
    """When the run began, in UTC, from its record or from its name; empty if neither says."""
    with suppress(ValueError):
        if started := result.record.get("started_at"):
            return f"{datetime.fromisoformat(started).astimezone(UTC):%Y-%m-%d %H:%M UTC}"
        stamp = result.run_dir.name.partition("-")[0] if result.run_dir else ""
        return f"{datetime.strptime(stamp, '%Y%m%dT%H%M%SZ'):%Y-%m-%d %H:%M UTC}"
    return ""


def _span(seconds: float) -> str:
    if not seconds:
        return ""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes > 1 else f"{number(round(seconds, 1))} s"
