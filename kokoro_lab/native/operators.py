"""Operators of our own in C++: built once on this machine if it has a compiler, easy to leave out.

The sources are in `kokoro_lab/native/`. Where they cannot be built, the same
graph runs on ONNX Runtime's operators: slower, and equal up to rounding.

<home>/derived/native-<identity>.so      the library; `_identity` says what it was built for
<home>/derived/native-<identity>.json    its size and SHA-256
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.provenance import machine
from kokoro_lab.weights.disk import told_apart
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.store import weights_home
from kokoro_lab.weights.verified import damage_of

log = logging.getLogger(__name__)

SOURCES = Path(__file__).parent
OPERATORS = (
    *("FastConv", "SnakeConv", "NormConv", "QuantConv", "QuantSnakeConv"),
    *("Product", "QuantProduct", "Phases", "BiLstm", "ExactStft"),
    *("Norm", "Statistics", "Arctangent", "LayerNorm", "Softmax", "Gelu"),
    *("Scores", "Mixture"),
)
COMPILERS = ("c++", "g++", "clang++")
FLAGS = (
    *("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"),
    # Else one build that a process loads would use variables of another one
    "-fvisibility=hidden",
    # A status of ONNX Runtime's that nobody looks at is a null pointer later on
    "-Werror=unused-result",
    # Roundings may be vectorised: nothing here looks at errno or at floating-point exceptions
    *("-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd"),
    # For processors of AMD, GCC rounds a product before it is added, in vectors that are not the widest: sums
    # would have other last bits there than anywhere else
    "--param=avoid-fma-max-bits=0",
    # Left alone, compilers take vectors of half the width, for processors that ran slower with wide ones; but
    # the products are written in wide ones
    *(["-mprefer-vector-width=512"] if platform.machine().lower() in ("x86_64", "amd64") else []),
)
COMPILE_TIMEOUT_S = 120


class Native(NamedTuple):
    """The library of our operators, or why there is none."""

    library: Path | None
    reason: str = ""

    def __str__(self) -> str:
        return ", ".join(OPERATORS) if self.library else f"none: {self.reason}"


def native_operators(config: EngineConfig, say: Callable[[str], None] | None = None) -> Native:
    """The library for this machine, built now if it was not built before (about 2 s, once).

    Never raises for want of a compiler: then it says why.
    """
    if config.native == "off":
        return Native(None, "KOKORO_NATIVE=off")
    compiler = found_compiler()
    if compiler is None:
        return Native(None, f"no C++ compiler was found ({', '.join(COMPILERS)})")
    root = weights_home(config.home)
    library = root / "derived" / f"native-{_identity(compiler)}.so"
    if damage_to(library) is None:
        return Native(library)
    with told_apart(root, []):
        library.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(library.parent / ".native.lock"):
            damage = damage_to(library)
            if damage is not None:
                if damage:
                    log.warning("%s: %s. It is built anew.", library, damage)
                if say:
                    say("Building our native operators (once, about 2 s).")
                reason = _build(compiler, library)
                if reason:
                    return Native(None, reason)
    return Native(library)


def damage_to(library: Path, *, again: bool = False) -> str | None:
    """What is wrong with a library of ours: None if it is whole, empty if there is none.

    Code that is damaged ends the process as soon as it is loaded. `again` hashes it, whatever is on record.
    """
    try:
        about = json.loads(library.with_suffix(".json").read_text("utf-8"))
        promised = (int(about["bytes"]), str(about["sha256"]))
        return damage_of({library.name: promised}, library.parent, library.parent, again=again) or None
    except FileNotFoundError:
        return ""  # there is none, or nobody knows how it should be
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"what is known of it cannot be read ({type(error).__name__}: {error})"


def found_compiler() -> str | None:
    """The C++ compiler that our operators are built with; None where there is none."""
    return next((found for name in COMPILERS if (found := shutil.which(name))), None)


def _build(compiler: str, library: Path) -> str:
    """Compile to `library`; empty, or why it failed."""
    sources = [str(path) for path in sorted(SOURCES.glob("*.cpp"))]
    with tempfile.TemporaryDirectory(prefix=".building-", dir=library.parent) as folder:
        made = Path(folder) / library.name
        try:
            done = subprocess.run(
                [compiler, *FLAGS, *sources, "-o", str(made)],
                capture_output=True,
                text=True,
                timeout=COMPILE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{Path(compiler).name} could not be run: {error}"
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
            return f"{Path(compiler).name} failed: {first}"
        about = made.with_suffix(".json")
        about.write_text(json.dumps({"bytes": made.stat().st_size, "sha256": sha256_of(made)}) + "\n")
        os.replace(made, library)
        os.replace(about, library.with_suffix(".json"))
    return ""


def sources() -> list[Path]:
    """The operators' files in C++, sorted by their names."""
    return sorted(path for path in SOURCES.iterdir() if path.suffix in (".cpp", ".h"))


def _identity(compiler: str) -> str:
    """Changes with the sources, the compiler and the processor: built for one, it may crash on another."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(path.read_bytes())
    processor = f"{platform.system()} {platform.machine()} {processor_flags() or machine()['cpu']}"
    digest.update(repr((FLAGS, compiler, processor)).encode())
    return digest.hexdigest()[:12]


@cache
def processor_flags() -> str:
    """The line in which Linux lists what the processor can do; empty elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
