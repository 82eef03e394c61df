"""Runs a sweep on a Dask cluster.

Workers execute any code that they are sent, so use only your own cluster.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kokoro_lab._version import __version__
from kokoro_lab.errors import ParameterError
from kokoro_lab.extras import imported
from kokoro_lab.lab import notebooks, runs
from kokoro_lab.lab.results import Result, crashed

CONNECT_S = 10
"""Seconds within which a cluster must answer and have a worker."""


def on_cluster(
    address: str, notebook: Path, rows: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, Result]]:
    """Run every row as a task of its own; yields the number and the result of each run, in the order in which
    runs end.

    Raises
    ------
    ParameterError
        The cluster cannot be reached, or a worker lacks the notebook or has another version.
    """
    dask = imported("distributed", extra="cluster")
    with _connected(dask, address) as client:
        _require_same(client, notebook)
        run = partial(runs.run_notebook, progress=False)
        # Not pure, so that equal parameters are run twice
        started = {
            client.submit(run, notebook.stem, row, pure=False, retries=0): number
            for number, row in enumerate(rows)
        }
        try:
            for future in dask.as_completed(started, loop=client.loop):
                number = started[future]
                try:
                    result = future.result()
                except Exception as error:  # the worker died, or could not run it
                    yield number, crashed(notebook.stem, rows[number], error)
                else:
                    workers = client.who_has([future]).get(future.key, ())
                    yield number, replace(result, where=next(iter(workers), ""))
        finally:
            client.cancel(list(started))


@contextmanager
def _connected(dask: Any, address: str) -> Iterator[Any]:
    """A client of the cluster, as soon as the cluster has a worker.

    Raises
    ------
    ParameterError
        No scheduler answers at `address`, or it has no worker.
    """
    client = None
    with suppress(OSError, ValueError, TypeError):
        client = dask.Client(address, timeout=CONNECT_S, set_as_default=False)
    if client is None:
        # A client that failed is closed by the garbage collector. If that happened while the next client
        # starts, both would wait for the same lock for ever
        gc.collect()
        raise _no_cluster(address, f"no Dask scheduler answers at {address!r}")
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_S)
        except TimeoutError as error:
            raise _no_cluster(address, f"the scheduler at {address} has no worker") from error
        yield client


def _no_cluster(address: str, why: str) -> ParameterError:
    return ParameterError(
        f"The sweep cannot run on a cluster: {why}.",
        field="--cluster",
        value=address,
        allowed="the address of a Dask scheduler, such as tcp://127.0.0.1:8786",
        mend="Start one (`dask scheduler`, then `dask worker ADDRESS`), or leave --cluster out.",
    )


def fingerprint(name: str) -> str:
    """The facts in which a worker must agree with this machine: the version, and the content of the
    notebook's cells."""
    cells = json.loads(notebooks.find_notebook(name).read_text("utf-8"))["cells"]
    written = json.dumps([(cell["cell_type"], cell["source"]) for cell in cells])
    return f"kokoro-lab {__version__}, notebook {hashlib.sha256(written.encode()).hexdigest()[:12]}"


def _require_same(client: Any, notebook: Path) -> None:
    """Refuse workers with another notebook or version, whose results would not fit into one table.

    Raises
    ------
    ParameterError
        A worker lacks the notebook, or its notebook or its kokoro-lab differs.
    """
    ours = fingerprint(notebook.stem)
    theirs = client.run(fingerprint, notebook.stem, on_error="return")
    others = {worker: found for worker, found in theirs.items() if found != ours}
    if others:
        worker, found = next(iter(others.items()))
        raise ParameterError(
            f"The worker {worker} cannot run {notebook.stem} as it is here: it has {found}, here is {ours}.",
            field="--cluster",
            value=worker,
            mend="Bring each worker to the same commit, and start it in its checkout.",
        )
