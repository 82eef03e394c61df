"""A plot is a value: a notebook shows it once, where it stands last in a cell."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

from kokoro_lab.lab.plots.layout import panels

PLOTS = sorted(Path(__file__).parents[2].glob("kokoro_lab/lab/plots/*.py"))
DRAWN = [
    (path.stem, function)
    for path in PLOTS
    for function in ast.parse(path.read_text("utf-8")).body
    if isinstance(function, ast.FunctionDef) and ast.unparse(function.returns or ast.Constant(0)) == "Figure"
]


def test_a_figure_is_closed_from_its_beginning() -> None:
    """An open figure is shown a second time at the end of its cell, by matplotlib itself."""
    figure, (left, right) = panels(1, 2, size=(4, 2), sharey=True)
    assert plt.get_fignums() == []
    assert figure.axes == [left, right]
    assert tuple(figure.get_size_inches()) == (4, 2)


@pytest.mark.parametrize(("module", "function"), DRAWN, ids=[f"{m}.{f.name}" for m, f in DRAWN])
def test_a_figure_that_is_returned_is_closed(module: str, function: ast.FunctionDef) -> None:
    *_, close, answer = map(ast.unparse, function.body)
    assert answer == "return figure", module
    assert "= panels(" in ast.unparse(function) or close == "plt.close(figure)"


def test_there_are_plots() -> None:
    assert len(DRAWN) > 20
