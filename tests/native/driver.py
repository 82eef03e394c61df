"""Our operators under sanitizers: built with a stand-in for ONNX Runtime, run in a process of their own.

The stand-in (driver.cpp) gives each tensor a block of memory of its own. In ONNX Runtime's arena, a read
behind the end of one tensor finds the next one, and no sanitizer sees it.
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from kokoro_lab.native.operators import FLAGS, SOURCES, found_compilers

Values = npt.NDArray[Any]

SANITIZERS = (
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"),
    *("-g1", "-O1"),
)
PROCESSORS = {
    "native": (),
    "avx512": ("-march=x86-64-v4",),
    "avx2": ("-march=x86-64-v3",),
    "plain": ("-march=x86-64",),
}
"""What else is passed to the compiler: each processor takes another path through the same sources."""

_TYPES = {"float32": 1, "int8": 3, "int32": 6, "int64": 7, "bool": 9}


@dataclass(frozen=True)
class Case:
    """One run of an operator: its inputs, None where one is left out."""

    operator: str
    inputs: tuple[Values | None, ...]


@dataclass(frozen=True)
class Outcome:
    """What came of a case: the status (0 is none), the calls of the interface, the allocations."""

    code: int
    message: str
    calls: int
    allocations: int
    outputs: tuple[Values, ...] = field(default=(), repr=False)
    unwritten: int = 0


class Crashed(AssertionError):
    """The operator brought the process down; the message is what the sanitizer said."""


def build(folder: Path, processor: str = "native", sanitizers: Sequence[str] = SANITIZERS) -> Path:
    """The program, compiled into `folder`."""
    compiler = found_compilers()[0]
    program = folder / f"operators-{processor}"
    flags = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC", "-O3")]
    sources = [*sorted(SOURCES.glob("*.cpp")), Path(__file__).with_name("driver.cpp")]
    command = [*compiler, *flags, *PROCESSORS[processor], *sanitizers, f"-I{SOURCES}", "-pthread"]
    subprocess.run([*command, *map(str, sources), "-o", str(program)], check=True)
    return program


class Driver:
    """The program, running. A context manager."""

    def __init__(self, program: Path) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: BinaryIO = self._process.stdin  # type: ignore[assignment]
        self._out: BinaryIO = self._process.stdout  # type: ignore[assignment]

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """End it: what it has lost of its memory is told when it exits."""
        with suppress(BrokenPipeError):
            self._in.close()
        self._process.wait(60)
        self._out.close()
        said = self._said()
        self._log.close()
        if kind is None and self._process.returncode:
            raise Crashed(said)

    def run(self, case: Case, *, failing_call: int = -1, failing_allocation: int = -1) -> Outcome:
        """What comes of `case`; the call or allocation with this number fails.

        Raises
        ------
        Crashed
            The process has ended.
        """
        name = case.operator.encode()
        parts = [struct.pack("<q", len(name)), name]
        parts.append(struct.pack("<qqq", failing_call, failing_allocation, len(case.inputs)))
        for value in case.inputs:
            if value is None:
                parts.append(struct.pack("<q", 0))
                continue
            kept = np.array(value, order="C")  # of no dimension, too
            parts.append(struct.pack("<qq", _TYPES[kept.dtype.name], kept.ndim))
            parts += [struct.pack("<q", size) for size in kept.shape]
            parts.append(kept.tobytes())
        try:
            self._in.write(b"".join(parts))
            self._in.flush()
            return self._outcome()
        except (BrokenPipeError, EOFError):
            self._process.wait(60)
            raise Crashed(f"{case.operator}, {_shapes(case)}:\n{self._said()}") from None

    def _outcome(self) -> Outcome:
        code, length = self._numbers(2)
        message = self._read(length).decode()
        calls, allocations, count = self._numbers(3)
        outputs, unwritten = [], 0
        for _ in range(count):
            left, rank = self._numbers(2)
            unwritten += left
            shape = self._numbers(rank)
            size = int(np.prod(shape, dtype=np.int64))
            outputs.append(np.frombuffer(self._read(4 * size), np.float32).reshape(shape))
        return Outcome(code, message, calls, allocations, tuple(outputs), unwritten)

    def _numbers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", self._read(8 * count))

    def _read(self, size: int) -> bytes:
        found = self._out.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[:6000]


def _shapes(case: Case) -> str:
    return ", ".join("none" if v is None else f"{v.dtype}{list(v.shape)}" for v in case.inputs)
