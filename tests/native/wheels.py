"""The script that makes wheels, as a module, and programs that run prebuilt operators on any processor."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from kokoro_lab.native.operators import SOURCES

SCRIPTS = Path(__file__).parents[2] / "scripts" / "wheels"
LACKS = 4
"""What a `program` ends with on a processor that lacks its instruction set."""


def script() -> ModuleType:
    """`scripts/wheels/build.py`."""
    spec = importlib.util.spec_from_file_location("wheels_build", SCRIPTS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wheels_build"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def zig_is_here() -> bool:
    return bool(importlib.util.find_spec("ziglang") or shutil.which("zig"))


def stand_in(folder: Path, compiler: str = "g++") -> Path:
    """A library of all instruction sets of x86-64 that has no operator in any, compiled into `folder`."""
    sets = ("avx2", "avx2_vnni", "avx512", "avx512_vnni", "neon", "dotprod", "i8mm")
    source = folder / "none.cpp"
    source.write_text(
        "".join(
            f'extern "C" void *RegisterCustomOps_{name}() {{ return 0; }}\n'
            f'extern "C" void kokoro_brake_{name}(const int *) {{}}\n'
            for name in sets
        )
    )
    made = folder / "operators.so"
    command = [
        compiler,
        "-std=c++17",
        "-shared",
        "-fPIC",
        f"-I{SOURCES}",
        str(source),
        str(SCRIPTS / "choose.cpp"),
    ]
    subprocess.run([*command, "-o", str(made)], check=True)
    return made


def program(
    folder: Path, library: Path, instruction_set: str, compiler: str, emulator: Sequence[str]
) -> Path:
    """A program for `driver.Driver` that runs a library's operators, perhaps on another processor."""
    built = folder / f"driver-{instruction_set}"
    sources = [str(Path(__file__).with_name("driver.cpp")), str(library)]
    command = [compiler, "-std=c++17", "-O1", f"-I{SOURCES}", "-pthread", *sources]
    subprocess.run([*command, f"-Wl,-rpath,{library.parent}", "-o", str(built)], check=True)
    started = folder / f"run-{instruction_set}"
    started.write_text(f"#!/bin/sh\nexec {' '.join([*emulator, str(built), instruction_set])}\n")
    started.chmod(0o755)
    return started
