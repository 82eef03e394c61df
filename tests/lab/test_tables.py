"""A table in a notebook tells what it has, and every notebook keeps its tables with their units."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.lab.tables import shown

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9]*.ipynb"))
BY_OTHERS = "session|answers"
"""Of the listening test, which rounds by itself."""
WITHOUT_TABLES = {"00_index": "it measures nothing: it links to those that do"}


def cells(html: str, kind: str = "td") -> list[str]:
    return [re.sub("<.*?>", "", one) for one in re.findall(f"<{kind}[^>]*>(.*?)</{kind}>", html)]


def test_names_are_words_and_units_stand_beside_them() -> None:
    html = shown(pd.DataFrame({"true_peak_dbtp": [-1.5], "clips_count": [3]}))._repr_html_()
    assert cells(html, "th") == ["true peak, dBTP", "clips"]
    assert list(shown(pd.DataFrame({"lufs": [1], "percent": [2]})).frame.columns) == ["LUFS", "percent"]
    assert cells(html) == ["−1.500", "3"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.98333, 12.5], ["0.98", "12.50"]),
        ([0.0534321, 513.2], ["0.05343", "513.2"]),
        ([1234.5678, 2.0], ["1,235", "2"]),
        ([1e-6, 1.0], ["1e−06", "1"]),
        ([-1e-9, -0.0, 1.0], ["−1e−09", "0", "1"]),
        ([-0.0, 1.0], ["0.000", "1.000"]),
        ([0.0, 0.25], ["0.0000", "0.2500"]),
        ([0.0000012, 0.0012], ["1.2e−06", "0.0012"]),
        ([np.nan, -3.14159], ["–", "−3.142"]),
        ([np.inf, 1.0], ["∞", "1.000"]),
        ([12345, -2], ["12,345", "−2"]),
        ([True, False], ["yes", "no"]),
        (["", "a"], ["–", "a"]),
        ([("en", "ja"), ()], ["en, ja", "–"]),
        ([np.float32(0.5), "whole"], ["0.5", "whole"]),
    ],
)
def test_values_have_as_many_digits_as_tell_something(values: list[Any], texts: list[str]) -> None:
    assert cells(shown(pd.DataFrame({"one": pd.Series(values, dtype=object)}))._repr_html_()) == texts


def test_a_column_without_a_value_is_named_and_not_shown() -> None:
    table = shown(pd.DataFrame({"lsd_db": [np.nan, np.nan], "pesq": [4.5, 4.6]}))
    assert list(table.frame.columns) == ["PESQ"]
    assert "Without a value: lsd." in table._repr_html_()


def test_an_index_is_shown_if_it_says_something() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    assert list(shown(frame).frame.columns) == ["a"]
    assert list(shown(frame.sort_values("a", ascending=False)).frame.columns) == ["a"]
    assert list(shown(frame.rename_axis("trial")).frame.columns) == ["trial", "a"]
    assert list(shown(frame.set_index(pd.Index(["x", "y"], name="clip"))).frame.columns) == ["clip", "a"]
    grouped = pd.DataFrame({"voice": ["a", "a"], "lufs": [-16.0, -17.0]}).groupby("voice").agg(["min", "max"])
    assert list(shown(grouped).frame.columns) == ["voice", "lufs min", "lufs max"]


def test_two_columns_are_never_called_the_same() -> None:
    table = shown(pd.DataFrame({"late_s": [1.0], "late_ms": [1000.0]}))
    assert list(table.frame.columns) == ["late, s", "late, ms"]
    assert list(shown(pd.DataFrame({"late": [1], "late_count": [2]})).frame.columns) == ["late", "late_count"]


def test_what_is_left_out_is_said() -> None:
    table = shown(pd.DataFrame({"a": range(7)}), most=3)
    assert len(table.frame) == 3
    assert "The first 3 of 7 rows." in table._repr_html_()
    assert "No rows." in shown(pd.DataFrame())._repr_html_()
    assert "Nothing &lt; 1." in shown(pd.DataFrame(), none="Nothing < 1.")._repr_html_()


def test_faults_put_in_on_purpose_are_a_table_and_no_list() -> None:
    html = shown([NegativeControl("a click <of 0.3>", True), NegativeControl("a gap", False)])._repr_html_()
    assert cells(html) == ["a click &lt;of 0.3&gt;", "yes", "a gap", "no"]


def test_a_wide_table_moves_by_itself_and_by_the_keys() -> None:
    html = shown(pd.DataFrame({"a": [1]}))._repr_html_()
    assert '<div class="shown" tabindex="0">' in html
    assert re.search(r"\.shown \{[^}]*overflow: auto", html)


# ---------------------------------------------------------------------------------------------- the notebooks


def source(notebook: Path) -> str:
    return "\n".join(
        "".join(cell["source"])
        for cell in json.loads(notebook.read_text("utf-8"))["cells"]
        if cell["cell_type"] == "code"
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_keeps_its_tables_with_units(notebook: Path) -> None:
    called = [
        ast.unparse(node.func) for node in ast.walk(ast.parse(source(notebook))) if isinstance(node, ast.Call)
    ]
    assert ("run.keep_table" in called) is (notebook.stem not in WITHOUT_TABLES)
    assert not [name for name in called if name.endswith(("to_csv", "to_parquet"))], "where nobody finds it"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_shows_its_tables_in_one_look(notebook: Path) -> None:
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code" or not cell["source"]:
            continue
        last = ast.parse("".join(cell["source"])).body[-1]
        written = ast.unparse(last)
        assert not re.search(r"\.(round|describe)\(", written) or re.search(BY_OTHERS, written)
        assert written != "controls", "a list of Python"
        assert not written.startswith("run.keep_table"), "a path of this machine"
