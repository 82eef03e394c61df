"""Reads notebooks without executing them: their names, the question of each, and its parameters."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kokoro_lab.errors import ParameterError
from kokoro_lab.provenance import repository_root

INDEX = "00_index"
"""The notebook that lists the others. It asks no question, and is not run."""

OWN_PARAMETERS = ("run_dir",)
"""Parameters that the runner sets; a user may not."""


def notebook_names() -> list[str]:
    """Names of the notebooks in the repository that ask a question, without folder and ending."""
    return sorted(p.stem for p in (repository_root() / "notebooks").glob("*.ipynb") if p.stem != INDEX)


def find_notebook(name: str) -> Path:
    """The notebook that `name` means: its full name, the beginning of it (such as its number), or its name
    without the number.

    Raises
    ------
    ParameterError
        No notebook, or more than one, has this name.
    """
    names = notebook_names()
    stem = name.removesuffix(".ipynb").rpartition("/")[2]
    subjects = {n: n.partition("_")[2] for n in names}
    found = [n for n in names if n == stem] or [n for n in names if n.startswith(stem) or stem == subjects[n]]
    if len(found) > 1:
        raise ParameterError(
            f"More than one notebook is {name!r}.", field="notebook", value=name, allowed=", ".join(found)
        )
    if not found:
        alike = get_close_matches(stem, [*names, *subjects.values()], n=1, cutoff=0.5)
        near = [n for n in names if alike and alike[0] in (n, subjects[n])]
        meant = f"Did you mean {near[0]!r}? " if near else ""
        raise ParameterError(
            f"There is no notebook {name!r}.",
            field="notebook",
            value=name,
            mend=f"{meant}`kokoro-lab run --list` lists all.",
        )
    return repository_root() / "notebooks" / f"{found[0]}.ipynb"


def question(notebook: Path) -> str:
    """The question that a notebook asks: its title."""
    title = "".join(json.loads(notebook.read_text("utf-8"))["cells"][0]["source"]).partition("\n")[0]
    return title.lstrip("# ")


def declared_parameters(notebook: Path) -> dict[str, dict[str, str]]:
    """Parameters of the cell tagged `parameters`: name → type, default and help, each as text from the
    source."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    (source,) = ("".join(c["source"]) for c in cells if "parameters" in c["metadata"].get("tags", []))
    lines = source.splitlines()
    return {
        line.target.id: {
            "type": ast.unparse(line.annotation),
            "default": str(ast.get_source_segment(source, line.value)),
            "help": "\n".join(lines[line.lineno - 1 : line.end_lineno])
            .partition("  # ")[2]
            .partition("\n")[0],
        }
        for line in ast.parse(source).body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value
    }


def defaults(notebook: Path) -> dict[str, Any]:
    """The defaults of a notebook's parameters."""
    return {name: ast.literal_eval(one["default"]) for name, one in declared_parameters(notebook).items()}


def parse_parameters(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` (strings from a command line, or values) as values of the types that the notebook declares.

    Raises
    ------
    ParameterError
        The notebook has no parameter of this name, or a value is not of the parameter's type.
    """
    declared = declared_parameters(notebook)
    allowed = [n for n in declared if n not in OWN_PARAMETERS]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in allowed:
            near = get_close_matches(name, allowed, n=1)
            raise ParameterError(
                f"{notebook.stem} has no parameter {name!r}.",
                field=name,
                value=value,
                allowed=", ".join(allowed) or "none",
                mend=f"Did you mean {near[0]!r}?" if near else None,
            )
        values[name] = _typed(name, value, declared[name])
    return values


_TYPES: dict[str, type] = {"int": int, "float": float, "bool": bool, "str": str, "list": list, "dict": dict}


def _typed(name: str, value: Any, declared: Mapping[str, str]) -> Any:
    wanted = _TYPES.get(declared["type"].partition("[")[0])
    if wanted is None:
        wanted = type(ast.literal_eval(declared["default"]))
    if isinstance(value, str) and wanted is not str:
        with suppress(ValueError, SyntaxError):  # a value that is no literal fails the type check below
            value = ast.literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        kind = f"{'an' if wanted is int else 'a'} {wanted.__name__}"
        raise ParameterError(
            f"The parameter {name!r} takes {kind}.",
            field=name,
            value=value,
            allowed=f"{kind} such as {declared['default']}",
        )
    return value
