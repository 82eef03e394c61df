"""`run`: executes a notebook, a sweep of it, all gates, or the checklist, and shows the verdict."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import click

from kokoro_lab.commands import completion
from kokoro_lab.commands.console import BROKE, DONE, FAILED, INTERRUPTED, say, show
from kokoro_lab.commands.options import json_option
from kokoro_lab.config import settings
from kokoro_lab.errors import ParameterError

GATES, CHECKLIST = "gates", "checklist"
GATES_AT_A_TIME = 2
"""Much of a gate keeps one core busy: two at a time take 0.7 of the time, on two cores."""


@click.command()
@click.argument("notebook", required=False, shell_complete=completion.offering(completion.notebooks))
@click.option(
    "-p",
    "--parameter",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter.",
    shell_complete=completion.parameters,
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="NAME=A,B",
    help="Run once for every value; with several sweeps, for every combination.",
    shell_complete=completion.parameters,
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Runs at a time. Default: 1 in a sweep, 2 with gates, where a gate that measures time runs alone.",
)
@click.option(
    "--cluster", metavar="ADDRESS", help="Run a sweep on this Dask cluster, such as tcp://127.0.0.1:8786."
)
@click.option(
    "--fast", is_flag=True, help="Run with few texts and few trials (fast mode); -p overrides a parameter."
)
@click.option(
    "--list", "listing", is_flag=True, help="List notebooks, or the parameters of NOTEBOOK, and stop."
)
@json_option
def run(
    notebook: str | None,
    parameters: tuple[str, ...],
    sweeps: tuple[str, ...],
    jobs: int | None,
    cluster: str | None,
    fast: bool,
    listing: bool,
    as_json: bool,
) -> None:
    """Execute NOTEBOOK (a name or its number) and keep its results; without NOTEBOOK, list all notebooks.

    `gates` runs every gate; `checklist` runs what the checklist lacks, and fills it. Ctrl-C ends a run; what
    it left is kept.
    """
    if listing or notebook is None:
        _refuse(parameters or sweeps or jobs or cluster or fast, "Other options", "with a list")
        if notebook is None or notebook in (GATES, CHECKLIST):
            _list_notebooks(notebook == GATES, as_json)
        else:
            _list_parameters(notebook, as_json)
        return
    from kokoro_lab.lab import estimates, notebooks, runs
    from kokoro_lab.scheduling.priority import give_way

    give_way(settings().nice)
    if notebook in (GATES, CHECKLIST):
        _refuse(parameters or sweeps or cluster, "-p, --sweep and --cluster", f"with {notebook}")
    if notebook == GATES:
        _run_gates(fast, jobs or GATES_AT_A_TIME, as_json)
    if notebook == CHECKLIST:
        _refuse(jobs, "--jobs", f"with {notebook}")
        _run_checklist(fast, as_json)
    given: dict[str, Any] = _pairs(parameters, "-p", "VALUE")
    found = notebooks.find_notebook(notebook)
    if fast:
        given = _fast_parameters(found.stem) | given
    if sweeps:
        _refuse(cluster and jobs, "--jobs", "with --cluster: its workers say how many run at a time")
        _run_sweep(notebook, _pairs(sweeps, "--sweep", "A,B"), given, jobs or 1, cluster, as_json)
    _refuse(jobs or cluster, "--jobs and --cluster", "without --sweep")
    say(estimates.sentence(found.stem, notebooks.parse_parameters(found, given)))
    outcome = runs.run_notebook(found.stem, given, progress=not as_json)
    _show_outcome(outcome, as_json)
    _leave({outcome.verdict})


def _list_notebooks(gates_alone: bool, as_json: bool) -> None:
    from kokoro_lab.lab import notebooks
    from kokoro_lab.lab.estimates import listed, span

    rows: list[dict[str, Any]] = []
    for name in notebooks.notebook_names():
        suite = listed(name)
        gate = suite is not None and suite.kind == GATES
        if gate or not gates_alone:
            times = {"fast_s": suite.fast_s, "full_s": suite.full_s} if suite else {}
            question = notebooks.question(notebooks.find_notebook(name))
            rows.append({"notebook": name, "question": question, "gate": gate, **times})
    name_width = max((len(row["notebook"]) for row in rows), default=0)
    row_form = f"{{:{name_width}}}  {{:4}}  {{:>6}}  {{:>6}}  ".format
    indent = row_form("", "", "", "")
    lines = [row_form("notebook", "gate", "fast", "full") + "question"]
    room = max(shutil.get_terminal_size((110, 24)).columns - len(indent), 40)
    for row in rows:
        fast, full = (span(row[mode]) if mode in row else "" for mode in ("fast_s", "full_s"))
        head = row_form(row["notebook"], "gate" if row["gate"] else "", fast, full)
        lines.append(head + f"\n{indent}".join(textwrap.wrap(row["question"], room)))
    lines.append(
        "\n`kokoro-lab run NAME --fast` runs one, small; `kokoro-lab run NAME --list` has its parameters."
    )
    show(lines, rows, as_json)


def _list_parameters(name: str, as_json: bool) -> None:
    from kokoro_lab.lab import notebooks
    from kokoro_lab.lab.estimates import listed, span

    notebook = notebooks.find_notebook(name)
    suite = listed(notebook.stem)
    declared = {
        key: about
        for key, about in notebooks.declared_parameters(notebook).items()
        if key not in notebooks.OWN_PARAMETERS
    }
    question = notebooks.question(notebook)
    record = {"notebook": notebook.stem, "question": question, "parameters": declared}
    lines = [f"{notebook.stem}: {question}"]
    if suite:
        lines.append(
            f"Takes about {span(suite.fast_s)} with --fast, {span(suite.full_s)} in full, on two cores."
        )
    lines += (f"    -p {key}={about['default']}  {about['help']}" for key, about in declared.items())
    for mode, given in (("--fast", suite.fast), ("in full", suite.full)) if suite else ():
        if given:
            lines.append(f"{mode}: " + " ".join(f"-p {key}={value}" for key, value in given.items()))
    show(lines, record, as_json)


def _fast_parameters(name: str) -> dict[str, Any]:
    from kokoro_lab.lab.estimates import listed

    if (row := listed(name)) is None:
        raise ParameterError(
            f"notebooks/suite.json has no fast parameters for {name}.",
            field="--fast",
            mend="Give them by -p.",
        )
    return dict(row.fast)


def _run_sweep(
    notebook: str,
    swept: dict[str, str],
    given: dict[str, str],
    jobs: int,
    cluster: str | None,
    as_json: bool,
) -> NoReturn:
    from kokoro_lab.lab import sweeps
    from kokoro_lab.lab.results import Result
    from kokoro_lab.lab.tables import markdown

    total = len(sweeps.grid(notebook, swept))
    ended: list[str] = []

    def done(one: Result) -> None:
        ended.append(one.verdict)
        varied = ", ".join(f"{name}={one.parameters[name]}" for name in swept)
        message = f": {one.message}" if one.message else ""
        say(f"{len(ended)} of {total}: {one.verdict} in {one.run_s:.1f} s, {varied}{message}")

    say(f"{total} runs{f' on {cluster}' if cluster else ''}.")
    sweep = sweeps.run_sweep(notebook, swept, given, jobs=jobs, cluster=cluster, done=done)
    lines = (markdown(sweeps.table(sweep, brief=True)), f"kept in {sweep.folder}")
    show(lines, sweep.folder / "sweep.json", as_json)
    _leave(sweep.verdicts)


def _run_gates(fast: bool, jobs: int, as_json: bool) -> NoReturn:
    from kokoro_lab.lab import suite_runs
    from kokoro_lab.lab.gates.suite import measurements

    ended, folder = suite_runs.run_gates(
        measurements(GATES), fast=fast, jobs=jobs, progress=not as_json, say=say
    )
    verdict = suite_runs.verdict(ended)
    lines = (
        suite_runs.table(ended).to_string(index=False),
        *(f"{one.notebook}: {one.message}" for one in ended if one.message),
        f"{verdict}; kept in {folder}",
    )
    show(lines, folder / "summary.json", as_json)
    _leave({verdict})


def _run_checklist(fast: bool, as_json: bool) -> NoReturn:
    from kokoro_lab.lab import runs, suite_runs
    from kokoro_lab.lab.gates import checklist

    suite_runs.run_missing(fast, progress=not as_json, say=say)
    outcome = runs.run_notebook(checklist.NAME, {"fast": fast}, progress=not as_json)
    _show_outcome(outcome, as_json)
    if not as_json:
        for verdict in ("failed", "stale", "not measured"):
            for line in outcome.record.get(f"{verdict} lines", []):
                click.echo(f"  {verdict}: {line}")
        click.echo(f"  read      {outcome.run_dir}/checklist.html")
    _leave({outcome.verdict})


def _leave(verdicts: set[str]) -> NoReturn:
    """Exit with the code of the worst outcome. Interrupted or broken runs, which have no verdict, are worse
    than failed ones."""
    if "interrupted" in verdicts:
        sys.exit(INTERRUPTED)
    if "crashed" in verdicts:
        sys.exit(BROKE)
    sys.exit(DONE if verdicts == {"passed"} else FAILED)


def _refuse(given: object, options: str, where: str) -> None:
    if given:
        raise ParameterError(f"{options} cannot be given {where}.", field=options)


def _pairs(texts: Iterable[str], option: str, values: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in (_pair(text, option, values) for text in texts):
        if name in found:
            raise ParameterError(f"{option} is given twice for {name}.", field=option, value=name)
        found[name] = value
    return found


def _pair(text: str, option: str, values: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        mend = f"Write {option} {name or 'NAME'}={values}; `kokoro-lab run NOTEBOOK --list` has the names."
        raise ParameterError(f"{option} {text!r} is not NAME={values}.", field=option, value=text, mend=mend)
    return name, value


def _show_outcome(outcome: Any, as_json: bool) -> None:
    shown = ("notebook", "parameters", "run_dir", "verdict", "message", "run_s")
    record = {name: getattr(outcome, name) for name in shown}
    if outcome.verdict == "crashed" and not as_json:
        say(f"  {outcome.message}")
    show(_outcome_lines(outcome), {**record, "result": outcome.record}, as_json)


def _outcome_lines(outcome: Any) -> Iterator[str]:
    when = "after" if outcome.verdict == "interrupted" else "in"
    yield f"{outcome.notebook}: {outcome.verdict} {when} {outcome.run_s:.1f} s {outcome.parameters or ''}"
    for check in outcome.checks:
        value = f"{check.value:.4g}" if math.isfinite(check.value) else "not finite"
        yield f"  {'pass' if check.passed else 'FAIL'}  {check.name} = {value} ({', '.join(check.limits)})"
    yield from (f"  {control}" for control in outcome.controls)
    if outcome.verdict == "interrupted":
        yield f"  it left   {outcome.run_dir}"
    if (outcome.run_dir / "report.html").exists():
        yield f"  look at   {outcome.run_dir / 'report.html'}"
    if any((outcome.run_dir / "audio").glob("*")):
        yield f"  listen to {outcome.run_dir / 'audio'}"
