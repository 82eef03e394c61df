"""A plot is a value: a notebook shows it once, where it stands last in a cell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PLOTS = sorted(Path(__file__).parents[2].glob("kokoro_lab/lab/plots/*.py"))
DRAWN = [
    (path.stem, function)
    for path in PLOTS
    for function in ast.parse(path.read_text("utf-8")).body
    if isinstance(function, ast.FunctionDef) and "plt.subplots(" in ast.unparse(function)
]


@pytest.mark.parametrize(("module", "function"), DRAWN, ids=[f"{m}.{f.name}" for m, f in DRAWN])
def test_a_figure_that_is_returned_is_closed(module: str, function: ast.FunctionDef) -> None:
    """An open figure is shown a second time at the end of its cell, by matplotlib itself."""
    *_, close, answer = map(ast.unparse, function.body)
    assert (close, answer) == ("plt.close(figure)", "return figure"), module


def test_there_are_plots() -> None:
    assert len(DRAWN) > 20
