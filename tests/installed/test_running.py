"""`kokoro-lab run`: what it says beforehand, how it is interrupted, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests import toy_notebooks
from tests.installed.command import Installed, Running

WAITS = """\
import os, sys, time
from pathlib import Path
Path(run_dir, "waits").write_text(str(os.getpid()))
print("before")
while True:
    time.sleep(0.1)"""
NOISE = ("Traceback", "zmq", "ipykernel", "Aborted", "terminate called")


@pytest.fixture
def toys(tmp_path: Path) -> Installed:
    """A repository with a gate that passes, and one that waits for ever."""
    toy_notebooks.make_repository(tmp_path)
    toy_notebooks.write_gate(tmp_path, "01_toy")
    toy_notebooks.write(tmp_path / "notebooks/02_waits.ipynb", toy_notebooks.PARAMETERS, WAITS)
    rows = [
        {"name": name, "guards": name, "fast": {"count": 2}, "fast_s": 4, "full": {}, "full_s": 600}
        for name in ("02_waits", "01_toy")
    ]
    (tmp_path / "notebooks/suite.json").write_text(json.dumps({"gates": rows}))
    kernels = {name: os.environ[name] for name in ("JUPYTER_PATH",) if name in os.environ}
    return Installed(tmp_path, kernels)


def written(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def awaited(folder: Path, pattern: str, count: int = 1) -> list[Path]:
    deadline = time.monotonic() + 90
    while len(found := sorted(folder.glob(pattern))) < count or not all(p.read_text() for p in found):
        assert time.monotonic() < deadline, f"no {pattern}"
        time.sleep(0.1)
    return found


def interrupted(running: Running) -> str:
    """Press Ctrl-C; what the command has written, once it has ended as an interrupted one does."""
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(timeout=60) == 130, running.written()
    output = running.written()
    assert not any(noise in output for noise in NOISE), output
    return output


def is_gone(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(100):
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not state.stdout.strip() or state.stdout.startswith("Z"):
            return True
        time.sleep(0.1)
    return False


def test_the_list_has_questions_gates_and_times(toys: Installed) -> None:
    lines = toys.run("run", "--list").stdout.splitlines()
    assert lines == toys.run("run").stdout.splitlines()
    assert lines[0].split() == ["notebook", "gate", "fast", "full", "question"]
    assert lines[1].split() == ["01_toy", "gate", "4", "s", "10", "min", "Toy"]
    about = toys.run("run", "--list", "waits").stdout
    assert "02_waits: Toy\nTakes about 4 s with --fast, 10 min in full" in about
    assert "-p count=3  how many" in about
    (toy, _) = json.loads(toys.run("run", "--list", "--json").stdout)
    assert toy == {"notebook": "01_toy", "question": "Toy", "gate": True, "fast_s": 4, "full_s": 600}


@pytest.mark.notebook
def test_a_fast_run_has_its_parameters_and_p_overrides_them(toys: Installed) -> None:
    done = toys.run("run", "toy", "--fast")
    assert done.returncode == 0, done.stderr
    assert "01_toy takes about 4 s, on two cores." in done.stderr
    assert "{'count': 2}" in done.stdout
    assert "listen to" not in done.stdout  # nothing was spoken
    done = toys.run("run", "toy", "--fast", "-p", "count=6")
    assert done.returncode == 1
    assert "{'count': 6}" in done.stdout
    again = toys.run("run", "toy", "--fast")
    assert ", as last time." in again.stderr


@pytest.mark.notebook
def test_ctrl_c_ends_the_notebook_and_marks_its_run(toys: Installed) -> None:
    with toys.started("run", "02") as running:
        (waits,) = awaited(toys.folder, "results/02_waits/*/waits")
        run = waits.parent
        begun = written(run / "begun.json")
        assert begun["pid"] == running.process.pid
        assert begun["notebook"] == "02_waits"
        output = interrupted(running)
    assert str(run) in output
    crash = written(run / "crash.json")
    assert crash["verdict"] == "interrupted"
    assert crash["message"].startswith("Interrupted after ")
    assert is_gone(int(waits.read_text()))
    assert not (run / "begun.json").exists()
    assert "before" in (run / "executed.ipynb").read_text()
    assert not (run / "result.json").exists()


@pytest.mark.notebook
def test_ctrl_c_while_a_notebook_starts_is_as_quiet(toys: Installed) -> None:
    with toys.started("run", "02") as running:
        (begun,) = awaited(toys.folder, "results/02_waits/*/begun.json")
        interrupted(running)
    assert written(begun.parent / "crash.json")["verdict"] == "interrupted"


@pytest.mark.notebook
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_sweep_with_a_row_for_every_run(toys: Installed, jobs: int) -> None:
    with toys.started("run", "02", "--sweep", "count=1,2,3", "--jobs", str(jobs)) as running:
        kernels = awaited(toys.folder, "results/02_waits/*/waits", jobs)
        output = interrupted(running)
    assert "interrupted" in output
    (sweep,) = toys.folder.glob("results/02_waits/sweep-*/sweep.json")
    runs = written(sweep)["runs"]
    assert [one["verdict"] for one in runs] == ["interrupted"] * 3
    assert sum(one["message"] == "Interrupted before it began." for one in runs) == 3 - jobs
    assert all(is_gone(int(kernel.read_text())) for kernel in kernels)


@pytest.mark.notebook
def test_ctrl_c_ends_the_gates_and_those_that_wait_do_not_begin(toys: Installed) -> None:
    with toys.started("run", "gates", "--jobs", "1") as running:
        awaited(toys.folder, "results/02_waits/*/waits")
        interrupted(running)
    (summary,) = toys.folder.glob("results/gates/*/summary.json")
    found = written(summary)
    assert found["verdict"] == "interrupted"
    assert [one["verdict"] for one in found["gates"]] == ["interrupted"] * 2
    assert not (toys.folder / "results/01_toy").exists()


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("words", "at_work"),
    [
        (("bench", "--preset", "long"), "trials:"),
        (("speak", "Yes, it is so. " * 200), "Tuned:"),  # behind it the graphs are loaded, and speak
    ],
)
def test_ctrl_c_ends_what_computes_without_a_word_too_many(
    installed: Installed, words: tuple[str, ...], at_work: str
) -> None:
    with installed.started(*words, KOKORO_VERBOSE_LOGS="true") as running:
        running.awaited(at_work)
        time.sleep(2)
        assert "Interrupted." in interrupted(running)
