"""The limit of this processor for an operator, from the highest rates of one core with an instruction set.

The limit is the roofline (Williams, Waterman, Patterson, CACM 52(4), 2009): the time that the products of an
operator's definition take at the highest rate of a core, or the time that reading and writing its tensors
once takes, whichever is longer.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.research.operator_cases import Case
from kokoro_lab.native.operators import SOURCES, Command, flags_for, found_compilers, processor_flags
from kokoro_lab.text.tables import rows

NATIVE = "native"
"""Name of the instruction set if the processor has none of `instruction_sets.tsv`: the one that the compiler
finds."""
BYTE_OPERATORS = ("QuantConv", "QuantSnakeConv", "QuantProduct")
FOOTPRINTS_KIB = (64, 256, 1024, 4096, 16384, 131072)
LEAST_S = 0.004
"""The least length of each measurement in seconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The highest rates of one core with an instruction set: billions of operations a second on floats and on
    bytes, and GB read a second for each size of buffer in KiB."""

    float_gops: float
    byte_gops: float
    read_gb_per_s: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, case: Case) -> float:
        """The least time in seconds that the operator of a case could take."""
        peak = self.byte_gops if case.kind in BYTE_OPERATORS else self.float_gops
        sizes = np.log([*self.read_gb_per_s])
        read = np.interp(np.log(case.traffic_bytes / 1024), sizes, [*self.read_gb_per_s.values()])
        return float(max(case.operations / peak if peak else 0.0, case.traffic_bytes / read) / 1e9)


def sets_here() -> dict[str, tuple[str, ...]]:
    """The instruction sets that this processor has, each with its compiler flags; the best one last."""
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    has = set(processor_flags().split())
    found = {
        row["set"]: tuple(row["flags"].split())
        for row in rows(__package__, "instruction_sets.tsv")
        if row["architecture"] == machine and has.issuperset(row["needs"].split())
    }
    return found or {NATIVE: ("-march=native",)}


def chosen_sets(written: str) -> list[str]:
    """The instruction sets that `written` names: names separated by commas, or `best`. If it is empty, all
    that this processor has.

    Raises
    ------
    ParameterError
        This processor lacks one of these instruction sets.
    """
    here = sets_here()
    if written == "best":
        return [*here][-1:]
    for name in filter(None, written.split(",")):
        require_known("instruction set here", name, here, "sets")
    return written.split(",") if written else list(here)


def compiled(sources: Sequence[Path], flags: Sequence[str], library: Path) -> Path:
    """Compile C++ sources with `flags` into a shared library.

    Raises
    ------
    ParameterError
        There is no compiler, or it fails.
    """
    compilers = found_compilers()
    if not compilers:
        raise ParameterError("No C++ compiler was found.", field="sets", mend="Install g++ or clang++.")
    compiler: Command = compilers[0]
    usual = [flag for flag in flags_for(compiler) if not flag.startswith(("-march", "-mcpu"))]
    command = [*compiler, *usual, *flags, *map(str, sources), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{compiler[0]} failed: {done.stderr[:300]}"
        raise ParameterError(said, field="sets", value=library.stem, mend="Name other sets.")
    return library


def operators_for(name: str, folder: Path) -> Path:
    """Our operators, compiled for an instruction set."""
    return compiled(sorted(SOURCES.glob("*.cpp")), sets_here()[name], folder / f"operators-{name}.so")


def limits(name: str, folder: Path) -> Limits:
    """Measure the highest rates of a core with an instruction set. Each rate is the best of at most 40
    loops."""
    source = Path(__file__).parent / "peak.cpp"
    library = ctypes.CDLL(str(compiled([source], sets_here()[name], folder / f"peak-{name}.so")))
    data = np.zeros(FOOTPRINTS_KIB[-1] * 256, np.float32)
    pointer = data.ctypes.data_as(ctypes.c_void_p)
    functions = [getattr(library, each) for each in ("float_products", "byte_products", "bytes_read")]
    for each in functions:
        each.restype = ctypes.c_double

    def best(function: Callable[..., float], *sizes: int) -> float:
        rounds, found = 1, 0.0
        for _ in range(40):
            began = time.perf_counter()
            done = function(ctypes.c_int64(rounds), pointer, *map(ctypes.c_int64, sizes))
            took = time.perf_counter() - began
            if took > LEAST_S:
                found = max(found, done / took / 1e9)
            else:
                rounds *= 4
        return found

    reads = {kib: best(functions[2], kib * 256) for kib in FOOTPRINTS_KIB}
    return Limits(best(functions[0]), best(functions[1]), reads)


def limits_table(limited: Mapping[str, Limits]) -> pd.DataFrame:
    """The highest rates of a core; a row for each instruction set."""
    rows = {
        name: {"float_gops": each.float_gops, "byte_gops": each.byte_gops}
        | {f"read_gb_per_s_{kib}_kib": speed for kib, speed in each.read_gb_per_s.items()}
        for name, each in limited.items()
    }
    return pd.DataFrame(rows).T
