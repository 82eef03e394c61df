"""`run`: a notebook, or a sweep of it, and its verdict."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click

from kokoro_lab.commands.console import BROKE, DONE, FAILED
from kokoro_lab.commands.options import json_option
from kokoro_lab.errors import ParameterError


@click.command()
@click.argument("notebook", required=False)
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--sweep", "sweeps", multiple=True, metavar="NAME=A,B", help="Run for every value; combines.")
@click.option(
    "--jobs", default=1, show_default=True, type=click.IntRange(1), help="Runs at a time in a sweep."
)
@json_option
def run(
    notebook: str | None, parameters: tuple[str, ...], sweeps: tuple[str, ...], jobs: int, as_json: bool
) -> None:
    """Execute NOTEBOOK (a name or its number) and keep its results; without it, list what there is."""
    from kokoro_lab import runs

    if notebook is None:
        for name in runs.notebook_names():
            click.echo(name)
            for key, declared in runs.declared_parameters(runs.find_notebook(name)).items():
                if key not in runs.OWN_PARAMETERS:
                    click.echo(f"    -p {key}={declared['default']}  {declared['help']}")
        return
    given = dict(_pair(p, "-p") for p in parameters)
    if sweeps:
        swept = dict(_pair(s, "--sweep") for s in sweeps)
        outcomes = list(runs.run_sweep(notebook, swept, given, jobs=jobs))
    else:
        outcomes = [runs.run_notebook(notebook, given, progress=not as_json)]
    for outcome in outcomes:
        _show_outcome(outcome, as_json)
    if any(o.verdict == "crashed" for o in outcomes):
        sys.exit(BROKE)
    sys.exit(DONE if all(o.passed for o in outcomes) else FAILED)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(f"{option} {text!r} is not NAME=VALUE.", field=option, value=text)
    return name, value


def _show_outcome(outcome: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({**asdict(outcome), "result": outcome.result()}, default=str))
        return
    result = outcome.result()
    click.echo(f"{outcome.notebook}: {outcome.verdict} in {outcome.run_s:.1f} s {outcome.parameters or ''}")
    for check in result.get("checks", []):
        limits = ", ".join(
            f"{word} {check[key]:g}"
            for word, key in (("at least", "low"), ("at most", "high"))
            if check[key] is not None
        )
        value = "not finite" if check["value"] is None else f"{check['value']:.4g}"
        click.echo(f"  {'pass' if check['passed'] else 'FAIL'}  {check['name']} = {value} ({limits})")
    for control in result.get("controls", []):
        click.echo(f"  {'caught' if control['caught'] else 'MISSED'}  {control['name']}")
    if outcome.verdict == "crashed":
        click.echo(f"  {outcome.message}", err=True)
    click.echo(f"  look at   {outcome.run_dir / 'report.html'}")
    click.echo(f"  listen to {outcome.run_dir / 'audio'}")
