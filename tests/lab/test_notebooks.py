"""Notebooks as they stand: they are found, and their parameters are read and checked."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import papermill
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.notebooks import (
    INDEX,
    declared_parameters,
    defaults,
    find_notebook,
    notebook_names,
    parse_parameters,
    question,
)
from kokoro_lab.lab.runs import run_notebook
from tests.toy_notebooks import PARAMETERS, make_repository, write

NOT_JUDGED = {"run_dir", "folder", "checkpoints", "listener"}
"""Parameters that say where something lies, or who listens."""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two notebooks that are not run."""
    make_repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("01_toy", "02_crash"):
        write(tmp_path / f"notebooks/{name}.ipynb", PARAMETERS)
    return tmp_path


def test_a_notebook_asks_what_its_title_says(lab: Path) -> None:
    assert question(find_notebook("01_toy")) == "Toy"


def test_parameters_are_read_with_their_help(lab: Path) -> None:
    declared = declared_parameters(find_notebook("01_toy"))
    assert declared["limit_db"] == {"type": "float", "default": "1.5", "help": "how loud"}


@pytest.mark.parametrize("name", notebook_names())
def test_parameters_are_those_that_papermill_finds(name: str) -> None:
    notebook = find_notebook(name)
    found, declared = papermill.inspect_notebook(str(notebook)), declared_parameters(notebook)
    assert {name: ast.literal_eval(one["default"]) for name, one in found.items()} == defaults(notebook)
    for name, one in found.items():
        assert declared[name]["type"] == one["inferred_type_name"]
        assert (
            declared[name]["help"] == one["help"] or not one["help"]
        )  # of a value in brackets it finds none


@pytest.mark.parametrize("name", notebook_names())
def test_a_run_records_every_parameter_that_changes_what_is_judged(name: str) -> None:
    """The checklist takes a run for evidence if it recorded what was asked: what it did not record could be
    anything."""
    notebook = find_notebook(name)
    code = "".join(cell.source for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "code")
    declared = defaults(notebook).keys() - NOT_JUDGED
    assert [parameter for parameter in declared if f'"{parameter}":' not in code] == []


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"count": "7"}, 7),
        ({"count": 7}, 7),
        ({"limit_db": "2"}, 2.0),
        ({"deep": "true"}, True),
        ({"voices": "af_heart"}, "af_heart"),
        ({"voices": "3"}, "3"),
    ],
)
def test_values_become_what_the_notebook_declares(lab: Path, given: dict[str, object], value: object) -> None:
    assert list(parse_parameters(find_notebook("01_toy"), given).values()) == [value]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cuont": "7"}, "Did you mean 'count'"),
        ({"count": "many"}, "takes an int"),
        ({"count": "1.5"}, "takes an int"),
        ({"deep": "maybe"}, "takes a bool"),
        ({"run_dir": "/elsewhere"}, "no parameter 'run_dir'"),
    ],
)
def test_wrong_parameters_are_refused(lab: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        run_notebook("01_toy", given)
    assert not (lab / "results").exists()


def test_an_unknown_notebook_is_refused(lab: Path) -> None:
    with pytest.raises(ParameterError, match=r"Did you mean '01_toy'\? `kokoro-lab run --list`"):
        find_notebook("01_tyo")
    with pytest.raises(ParameterError, match="Did you mean '02_crash'"):
        find_notebook("crush")
    with pytest.raises(ParameterError, match=r"More than one notebook is '0'\. Allowed: 01_toy, 02_crash\."):
        find_notebook("0")


def test_a_notebook_is_found_by_its_number_or_without_it(lab: Path) -> None:
    assert {find_notebook(name).stem for name in ("01_toy", "01", "toy", "notebooks/01_toy.ipynb")} == {
        "01_toy"
    }


def test_the_index_asks_nothing_and_is_not_run(lab: Path) -> None:
    write(lab / f"notebooks/{INDEX}.ipynb", PARAMETERS)
    assert notebook_names() == ["01_toy", "02_crash"]
