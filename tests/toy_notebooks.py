"""A repository of toy notebooks, for those who run notebooks: on the tiny voice, or on nothing at all."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from kokoro_lab.lab.results import Result

PARAMETERS = """\
count: int = 3  # how many
limit_db: float = 1.5  # how loud
voices: str = "a,b"  # which
deep: bool = False  # whether
run_dir: str = ""  # where"""

BODY = """\
from kokoro_lab.lab import results
run = results.open_run("{name}", run_dir, {{"count": count}})
checks = [results.Check("count", count, high=5)]
controls = [results.NegativeControl("a click", caught=count != 4)]
run.finish({{"variant": "int8"}}, checks=checks, controls=controls)"""
"""Fails from 6 on, and misses what it must catch at 4."""


def make_repository(root: Path) -> None:
    """What makes a folder a repository to `fixtures.repository_root`."""
    for folder in ("notebooks", "fixtures"):
        (root / folder).mkdir()


def write(path: Path, parameters: str, *code: str) -> None:
    """A notebook with these cells."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell("# Toy"), v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    notebook = v4.new_notebook(metadata=kernel, cells=[*cells, *(v4.new_code_cell(c) for c in code)])
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def write_gate(root: Path, name: str) -> None:
    """A gate with `PARAMETERS` that speaks nothing."""
    write(root / f"notebooks/{name}.ipynb", PARAMETERS, BODY.format(name=name))


def dies_at_3(name: str, parameters: Mapping[str, Any], place: int, *, progress: bool) -> Result:
    """In the place of `runs.run_notebook`: its process is killed from outside at a count of 3."""
    if parameters["count"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return Result(name, parameters, Path.cwd(), "passed")
