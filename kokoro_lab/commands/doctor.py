"""`doctor`: what is installed and what is missing."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from kokoro_lab.commands.console import DONE, FAILED
from kokoro_lab.commands.options import json_option

OPTIONAL = ("lab", "npm", "native operators", "provider ", "recogniser", "voice encoder", "weights ")
"""Beginnings of the names of optional things: if one is missing, it is no failure, but the mend is
printed."""


@click.command()
@click.option("--deep", is_flag=True, help="Check every file of the model by its hash again.")
@json_option
def doctor(deep: bool, as_json: bool) -> None:
    """Say what is installed, what is missing, and how to mend it."""
    from kokoro_lab.doctor import examine

    findings = []
    for finding in examine(deep=deep):
        findings.append(finding)
        if not as_json:
            click.echo(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.detail}")
            if finding.mend and (not finding.ok or finding.name.startswith(OPTIONAL)):
                click.echo(f"      {finding.mend}")
    if as_json:
        click.echo(json.dumps([asdict(f) for f in findings]))
    sys.exit(DONE if all(f.ok for f in findings) else FAILED)
