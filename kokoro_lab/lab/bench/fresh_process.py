"""Times a new process from its start to its first sound, and reads its memory.

    python -m kokoro_lab.lab.bench.fresh_process engine int8
    python -m kokoro_lab.lab.bench.fresh_process reference

A process that has worked before has modules, disk pages and memory that a new process lacks. So each trial
starts a new process, which is timed from outside; engine and reference are interleaved.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Literal, cast

import psutil

from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.memory import resident_mb

What = Literal["engine", "reference"]
FIRST_TEXT = "The kettle is on, and the window is open."
TEXT = (
    "The river leaves the hills without hurry, turns twice around the mill, and rests behind the weir. "
    "Nobody has seen it in flood for thirty years."
)
DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class FreshStart:
    """The times and memory of one process.

    Parameters
    ----------
    start_s : float
        Seconds from the start of the process to its first sound: interpreter, imports, loading and computing.
    rss_mb : float
        Resident memory after a second text; for the reference, after a second inference.
    """

    start_s: float
    rss_mb: float


def started(what: What, variant: str) -> FreshStart:
    """Start a process and wait until it has spoken.

    Raises
    ------
    SynthesisError
        The process failed; the error has the end of its output.
    """
    command = [sys.executable, "-m", "kokoro_lab.lab.bench.fresh_process", what, variant]
    began_s = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    start_s = time.perf_counter() - began_s
    try:
        rest, said = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        rest, said = process.communicate()
    if process.returncode or not first:
        raise SynthesisError(
            f"A process with the {what} ended with exit code {process.returncode}. It said: {said[-400:]}",
            mend="`kokoro-lab doctor` checks what it needs.",
        )
    return FreshStart(start_s, float(json.loads(rest)["rss_mb"]))


def speak(what: What, variant: str) -> None:
    """The process's main function: prints a line at the first sound, and a line of JSON at the end."""
    if what == "engine":
        from kokoro_lab.speech.engine import load_engine

        engine = load_engine(variant)
        stream = engine.stream(FIRST_TEXT)
        next(iter(stream))
        _say("first sound")
        for _ in stream:
            pass
        for _ in engine.stream(TEXT):
            pass
    else:
        from kokoro_lab.engine_config import EngineConfig
        from kokoro_lab.lab.bench.reference import Reference

        reference = Reference(EngineConfig.from_settings())
        reference.infer()
        _say("first sound")
        reference.infer()
    _say(json.dumps({"rss_mb": resident_mb(psutil.Process())}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    what, variant = sys.argv[1:3]
    speak(cast(What, what), variant)
