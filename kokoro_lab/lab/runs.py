"""Executes notebooks, shows the time left, and keeps their results."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.containers.plain_json import read_object, write_json
from kokoro_lab.errors import ResultError
from kokoro_lab.lab import results
from kokoro_lab.lab.estimates import Countdown, estimate, shown
from kokoro_lab.lab.interrupts import Interrupts
from kokoro_lab.lab.notebooks import find_notebook, parse_parameters
from kokoro_lab.scheduling.processes import apart

if TYPE_CHECKING:
    from traitlets.config import Config

log = logging.getLogger(__name__)

BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def run_notebook(
    name: str, parameters: Mapping[str, Any] | None = None, place: int = 0, *, progress: bool = True
) -> results.Result:
    """Execute a notebook in a process of its own, and show the remaining time `place` lines below the cursor.

    The folder `results/<notebook>/<run_id>/` gets `executed.ipynb` (also if the run fails) and `report.html`.
    The notebook itself writes `result.json` and `audio/` there. `begun.json` is there while the run is under
    way, and `crash.json` if it crashed or was interrupted. Ctrl-C ends the notebook. If the notebook has not
    written its result by then, the verdict of the run is `interrupted`.

    Raises
    ------
    ParameterError
        There is no such notebook or parameter, or a value has the wrong type. A failed gate, a crash or an
        interrupt raises nothing: the verdict of the result says what happened.
    """
    notebook = find_notebook(name)
    values = parse_parameters(notebook, parameters or {})
    countdown = Countdown(estimate(notebook.stem, values))
    run_dir = results.new_run_folder(notebook.stem)
    run_dir.mkdir(parents=True)
    results.note_beginning(run_dir, notebook.stem, values)
    started = time.perf_counter()
    kernel = _Kernel()
    with Interrupts(kernel.stop) as interrupts:
        with shown(notebook.stem, countdown, place) if progress else nullcontext():
            message, crashed = _execute(notebook, values, run_dir, kernel, countdown, interrupts)
        written: dict[str, Any] = {}
        there = (run_dir / results.RESULT).exists()
        if not crashed:
            try:
                written = read_object(run_dir / results.RESULT)
            except ResultError as error:
                message = str(error) if there else "The notebook ended without writing result.json."
        verdict = str(written.get("verdict", results.CRASHED))
        run_s = round(time.perf_counter() - started, 3)
        if interrupts.asked and not there:
            verdict, message = results.INTERRUPTED, f"Interrupted after {run_s:.0f} s."
        if verdict in (results.CRASHED, results.INTERRUPTED):
            crash = {"verdict": verdict, "message": message, "parameters": values, "run_s": run_s}
            write_json(run_dir / results.CRASH, crash)
        _write_report(run_dir / "executed.ipynb", run_dir / "report.html")
        (run_dir / results.BEGUN).unlink()
    run_s = round(time.perf_counter() - started, 3)
    try:
        results.write_index(run_dir.parent.parent)
    except Exception:  # an earlier run's damaged files must not stop this one
        log.warning("The index of results could not be written", exc_info=True)
    return results.Result(notebook.stem, values, run_dir, verdict, message, run_s, written)


def not_begun(name: str, parameters: Mapping[str, Any]) -> results.Result:
    """The result of a run that was not begun because an earlier one was interrupted."""
    return results.Result(name, dict(parameters), None, results.INTERRUPTED, "Interrupted before it began.")


class _Kernel:
    """The process of a notebook, so that it can be stopped."""

    def __init__(self) -> None:
        self.pid: int | None = None
        self.ready = False

    def stop(self, by_force: bool) -> None:
        """Interrupt the running cell, if there is one; with `by_force`, end the process with its children."""
        if self.pid is None:
            return
        with suppress(ProcessLookupError):  # it has ended meanwhile
            if by_force:
                os.killpg(self.pid, signal.SIGKILL)
            elif self.ready:
                os.kill(self.pid, signal.SIGINT)


class _Stopped(Exception):
    """Raised if Ctrl-C comes between two cells."""


def _execute(
    notebook: Path,
    values: Mapping[str, Any],
    run_dir: Path,
    kernel: _Kernel,
    countdown: Countdown,
    interrupts: Interrupts,
) -> tuple[str, bool]:
    """Execute a notebook, and keep it with its outputs in `executed.ipynb`; returns the message of its error,
    if there was one, and whether it crashed."""
    import papermill
    from jupyter_client.manager import AsyncKernelManager
    from nbclient.exceptions import DeadKernelError

    class Manager(AsyncKernelManager):
        # Jupyter wraps the method in a decorator that its types do not follow
        async def start_kernel(self, **options: Any) -> None:  # type: ignore[override]
            await super().start_kernel(**options)
            kernel.pid = getattr(self.provisioner, "pid", None)

    def cell_begins(cell: Any, cell_index: int) -> None:
        countdown.cell_begins(cell_index)
        kernel.ready = True
        if interrupts.asked:
            raise _Stopped

    with warnings.catch_warnings(), _numpy_on_one_thread(), _sockets_of_its_own() as sockets:
        warnings.simplefilter("ignore")
        try:
            papermill.execute_notebook(
                str(notebook),
                str(run_dir / "executed.ipynb"),
                parameters={**values, "run_dir": str(run_dir)},
                kernel_name="python3",
                cwd=str(notebook.parent),
                progress_bar=False,
                log_output=False,
                extra_arguments=["--log-level=ERROR"],  # the kernel warns of its sockets at each start
                config=sockets,
                kernel_manager_class=Manager,
                on_cell_start=cell_begins,
            )
        except papermill.PapermillExecutionError as error:
            return f"{error.ename}: {error.evalue}".strip(), error.ename != "GateFailed"
        except DeadKernelError:  # its process was killed, for instance by a lack of memory
            return "The process of the notebook died.", True
        except Exception:
            if interrupts.asked:  # between two cells, or while it was starting
                return "", True
            raise
    return "", False


def run_apart(
    asked: Sequence[tuple[str, Mapping[str, Any]]],
    jobs: int,
    *,
    progress: bool = False,
    begins: Callable[[int], None] = lambda number: None,
) -> Iterator[tuple[int, results.Result]]:
    """Execute notebooks with their parameters, `jobs` at a time, each in a process of its own.

    Yields the number and result of each notebook, in the order in which they end. `begins` is called with a
    notebook's number before it is run. A notebook that cannot begin, or whose process dies, counts as
    crashed. After Ctrl-C, running notebooks are interrupted and no other begins.
    """
    calls = [partial(run_notebook, name, parameters, progress=progress) for name, parameters in asked]
    with Interrupts(_interrupt_workers) as interrupts:

        def begin(number: int) -> None:
            if interrupts.asked:
                raise _Stopped
            begins(number)

        for number, done in apart(calls, jobs, begin):
            try:
                yield number, done.result()
            except _Stopped:
                yield number, not_begun(*asked[number])
            except Exception as error:
                yield number, results.crashed(*asked[number], error)


def _interrupt_workers(by_force: bool) -> None:
    """Interrupt the worker processes, which stop their notebooks themselves."""
    for worker in multiprocessing.active_children():
        with suppress(ProcessLookupError):
            os.kill(worker.pid or 0, signal.SIGINT)


@contextmanager
def _numpy_on_one_thread() -> Iterator[None]:
    """A context in which new kernels run OpenBLAS on one thread, unless the user sets it otherwise.

    OpenBLAS's threads spin for 20 ms after every product. On two cores this took 13 % of a perceptual gate's
    time, and a larger share of the time of a gate that ran beside it.
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
    """A context in which kernels are connected by files and not by ports. Jupyter picks free ports before the
    kernel binds them, so another kernel that is starting could take one."""
    from traitlets.config import Config

    with tempfile.TemporaryDirectory(prefix="kokoro-kernel-") as folder:
        yield Config({"KernelManager": {"transport": "ipc", "ip": str(Path(folder) / "socket")}})


def _write_report(executed: Path, report: Path) -> None:
    """Write the page of a run for readers; `result.json` or `crash.json` must be there."""
    from kokoro_lab.lab.report.page import write_report

    write_report(executed, report)
