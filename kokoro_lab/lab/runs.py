"""Notebooks as programs: find one, check its parameters, execute it, keep what it leaves behind."""

from __future__ import annotations

import ast
import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.containers.plain_json import read_object, write_json
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab import results
from kokoro_lab.lab.results import CRASH, CRASHED, RESULT, Result, new_run_folder
from kokoro_lab.provenance import repository_root
from kokoro_lab.scheduling.processes import apart

if TYPE_CHECKING:
    from traitlets.config import Config

log = logging.getLogger(__name__)

BLAS_THREADS = "OPENBLAS_NUM_THREADS"

OWN_PARAMETERS = ("run_dir",)
"""Parameters that the runner sets; a user may not."""


def notebook_names() -> list[str]:
    """Names of the notebooks in the repository, without folder and ending."""
    return sorted(p.stem for p in (repository_root() / "notebooks").glob("*.ipynb"))


def find_notebook(name: str) -> Path:
    """The notebook that `name` names: in full, or by its number.

    Raises
    ------
    ParameterError
        There is none, or more than one.
    """
    names = notebook_names()
    stem = name.removesuffix(".ipynb").rpartition("/")[2]
    found = [n for n in names if n == stem] or [n for n in names if n.startswith(stem)]
    if len(found) != 1:
        near = found or get_close_matches(stem, names, cutoff=0.3) or names
        raise ParameterError(
            f"{'More than one notebook is' if found else 'There is no notebook'} {name!r}.",
            field="notebook",
            value=name,
            allowed=", ".join(near),
        )
    return repository_root() / "notebooks" / f"{found[0]}.ipynb"


def declared_parameters(notebook: Path) -> dict[str, dict[str, str]]:
    """Parameters of the cell tagged `parameters`: name → type, default and help, as written."""
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
    """What a notebook's parameters are where nobody says otherwise."""
    return {name: ast.literal_eval(one["default"]) for name, one in declared_parameters(notebook).items()}


def parse_parameters(notebook: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """`given` (strings from a command line, or values) as the values that the notebook declares.

    Raises
    ------
    ParameterError
        A name that the notebook does not have, or a value that is not of its type.
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
        with suppress(ValueError, SyntaxError):  # what is no literal fails the type below
            value = ast.literal_eval({"true": "True", "false": "False"}.get(value.lower(), value))
    if wanted is float and type(value) is int:
        value = float(value)
    if type(value) is not wanted:
        raise ParameterError(
            f"The parameter {name!r} takes a {wanted.__name__}.",
            field=name,
            value=value,
            allowed=f"a {wanted.__name__} such as {declared['default']}",
        )
    return value


def run_notebook(
    name: str, parameters: Mapping[str, Any] | None = None, place: int = 0, *, progress: bool = True
) -> Result:
    """Execute a notebook in a process of its own, with a bar, `place` lines below where the cursor is.

    Writes `executed.ipynb` (also of a run that failed), `report.html` and, by the notebook's own hand,
    `result.json` and `audio/` to `results/<notebook>/<run_id>/`.

    Raises
    ------
    ParameterError
        No such notebook or parameter. A failed gate or a crash does not raise: see the result.
    """
    import papermill
    from nbclient.exceptions import DeadKernelError

    notebook = find_notebook(name)
    values = parse_parameters(notebook, parameters or {})
    run_dir = new_run_folder(notebook.stem)
    run_dir.mkdir(parents=True)
    executed = run_dir / "executed.ipynb"
    started = time.perf_counter()
    message = ""
    with warnings.catch_warnings(), _numpy_on_one_thread(), _sockets_of_its_own() as sockets:
        warnings.simplefilter("ignore")
        try:
            papermill.execute_notebook(
                str(notebook),
                str(executed),
                parameters={**values, "run_dir": str(run_dir)},
                kernel_name="python3",
                cwd=str(notebook.parent),
                progress_bar={"desc": notebook.stem, "position": place} if progress else False,
                log_output=False,
                extra_arguments=["--log-level=ERROR"],  # the kernel warns of its sockets at each start
                config=sockets,
            )
            crashed = False
        except papermill.PapermillExecutionError as error:
            message = f"{error.ename}: {error.evalue}".strip()
            crashed = error.ename != "GateFailed"
        except DeadKernelError:  # its process was ended, for one by a lack of memory
            message, crashed = "The process of the notebook died.", True
    written: dict[str, Any] = {}
    if not crashed:
        try:
            written = read_object(run_dir / RESULT)
        except ResultError as error:
            there = (run_dir / RESULT).exists()
            message = str(error) if there else "The notebook ended without writing result.json."
    verdict = str(written.get("verdict", CRASHED))
    if verdict == CRASHED:
        write_json(run_dir / CRASH, {"message": message, "parameters": values})
    _write_report(executed, run_dir / "report.html")
    run_s = round(time.perf_counter() - started, 3)
    results.write_index(run_dir.parent.parent)
    return Result(notebook.stem, values, run_dir, verdict, message, run_s, written)


def run_apart(
    asked: Sequence[tuple[str, Mapping[str, Any]]],
    jobs: int,
    *,
    progress: bool = False,
    begins: Callable[[int], None] = lambda number: None,
) -> Iterator[tuple[int, Result]]:
    """Execute notebooks with their parameters, `jobs` at a time, each in a process of its own.

    Yields the number of each and how it ended, in the order in which they end; `begins` is told the number of
    one before it is run. One that cannot begin, or whose process dies, has crashed.
    """
    calls = [partial(run_notebook, name, parameters, progress=progress) for name, parameters in asked]
    for number, done in apart(calls, jobs, begins):
        try:
            yield number, done.result()
        except Exception as error:
            yield number, results.crashed(*asked[number], error)


@contextmanager
def _numpy_on_one_thread() -> Iterator[None]:
    """The kernels that are begun meanwhile leave the cores to the engine, unless a user says otherwise.

    OpenBLAS's threads spin for 20 ms behind every product: of a perceptual gate that was 0.13 of the time, on
    two cores, and more of another one's that runs beside it.
    """
    if BLAS_THREADS in os.environ:
        yield
        return
    os.environ[BLAS_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[BLAS_THREADS]


@contextmanager
def _sockets_of_its_own() -> Iterator[Config]:
    """A kernel is spoken to through files, not through ports: of those, Jupyter takes some that are free by
    then, and a kernel that is begun beside it may have bound one before its own has."""
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="kokoro-kernel-") as folder:
        yield Config({"KernelManager": {"transport": "ipc", "ip": str(Path(folder) / "socket")}})


def _write_report(executed: Path, report: Path) -> None:
    """The page for readers; `result.json` or `crash.json` must be there."""
    from kokoro_lab.lab.report.page import write_report

    write_report(executed, report)
