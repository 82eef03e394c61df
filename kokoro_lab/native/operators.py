"""Finds our C++ operators: the wheel's, or else those built once on this machine, if it has a compiler.

The sources are in `kokoro_lab/native/`. Without a library, the same graph runs on ONNX Runtime's operators:
slower, and equal up to rounding.

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
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.native import prebuilt
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
COMPILERS = ("c++", "g++", "clang++", "zig c++")
Command = tuple[str, ...]
"""A program and its fixed arguments."""
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
INSTEAD: dict[str, tuple[Command, ...]] = {
    "-march=native": (("-mcpu=native",),),
    # Clang knows nothing of it, but does not fuse across statements as GCC does
    "--param=avoid-fma-max-bits=0": (
        ("-ffp-contract=fast-honor-pragmas",),
        ("-Xclang", "-ffp-contract=fast-honor-pragmas"),
    ),
    "-mprefer-vector-width=512": (),
}
"""Flag that not every compiler accepts → replacements to try; the flag is left out if none is accepted."""
COMPILE_TIMEOUT_S = 300


class Native(NamedTuple):
    """The library of our operators, or why there is none.

    Parameters
    ----------
    library : Path or None
    reason : str
        Why there is no library.
    build : str
        How the library was made, and why not in the way that was tried first.
    """

    library: Path | None
    reason: str = ""
    build: str = ""

    def __str__(self) -> str:
        return ", ".join(OPERATORS) if self.library else f"none: {self.reason}"


def native_operators(config: EngineConfig, say: Callable[[str], None] | None = None) -> Native:
    """The library for this machine: the wheel's, or one that is built now if it was not before (2 s, once).

    If there is neither, it does not raise, and the result says why.

    Raises
    ------
    SettingsError
        `config.instruction_set` is not available.
    """
    if config.native == "off":
        prebuilt.refuse_unless_auto(config.instruction_set, "KOKORO_NATIVE=off")
        return Native(None, "KOKORO_NATIVE=off")
    otherwise = ""
    if config.native != "build":
        try:
            found = prebuilt.library_for(config.instruction_set)
        except prebuilt.UnusableLibrary as error:
            otherwise = f"prebuilt operators are not used: {error}"
            _warn(otherwise)
        else:
            if found:
                return Native(found[0], build=found[1])
    if config.native == "prebuilt":
        otherwise = otherwise or "this installation has no prebuilt operators"
    none_because = "KOKORO_NATIVE=build" if config.native == "build" else "there are none"
    prebuilt.refuse_unless_auto(config.instruction_set, otherwise or none_because)
    if config.native == "prebuilt":
        return Native(None, otherwise)
    built = _built_here(config, say)
    if not otherwise:
        return built
    if built.library is None:
        return Native(None, f"{otherwise}; {built.reason}")
    return built._replace(build=f"{built.build}; {otherwise}")


@cache
def _warn(message: str) -> None:
    """Log a warning; the same message only once for each process."""
    log.warning("%s", message)


def _built_here(config: EngineConfig, say: Callable[[str], None] | None) -> Native:
    compilers = found_compilers()
    if not compilers:
        return Native(None, f"no C++ compiler was found ({', '.join(COMPILERS)})")
    root = weights_home(config.home)
    library = root / "derived" / f"native-{_identity(compilers[0])}.so"
    made = Native(library, build="built on this machine")
    if damage_to(library) is None:
        return made
    with told_apart(root, []):
        library.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(library.parent / ".native.lock"):
            damage = damage_to(library)
            if damage is not None:
                if damage:
                    log.warning("%s: %s. It is built anew.", library, damage)
                if say:
                    say("Building our native operators (once, about 2 s).")
                reasons = []
                for compiler in compilers:
                    reason = _build(compiler, library)
                    if not reason:
                        break
                    reasons.append(reason)
                else:
                    return Native(None, "; ".join(reasons))
    return made


def damage_to(library: Path, *, again: bool = False) -> str | None:
    """What is wrong with a library of ours: None if it is whole, an empty text if there is no record of it
    (it was never built, or an older version built it).

    Damaged code ends the process as soon as it is loaded. `again` hashes the library even if the record has
    it.
    """
    try:
        about = json.loads(library.with_suffix(".json").read_text("utf-8"))
        promised = (int(about["bytes"]), str(about["sha256"]))
        return damage_of({library.name: promised}, library.parent, library.parent, again=again) or None
    except FileNotFoundError:
        return ""  # there is none, or nobody knows how it should be
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"what is known of it cannot be read ({type(error).__name__}: {error})"


def found_compilers() -> list[Command]:
    """The C++ compilers that our operators can be built with, in the order in which they are tried."""
    found: list[Command] = []
    for name in COMPILERS:
        program, *words = name.split()
        if path := shutil.which(program):
            found.append((path, *words))
        elif program == "zig" and find_spec("ziglang"):
            found.append((sys.executable, "-m", "ziglang", *words))
    return found


def flags_for(compiler: Command) -> list[str]:
    """The `FLAGS` that this compiler accepts, with replacements for the others."""
    taken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder, "empty.cpp")
        empty.touch()

        def takes(flags: Command) -> bool:
            # Some compilers only warn of what they leave unused
            command = [*compiler, *flags, "-Werror", "-c", str(empty), "-o", str(empty.with_suffix(".o"))]
            return _run(command).returncode == 0

        for flag in FLAGS:
            if flag in INSTEAD:
                taken += next((tried for tried in ((flag,), *INSTEAD[flag]) if takes(tried)), ())
            else:
                taken.append(flag)
    return taken


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)


def _build(compiler: Command, library: Path) -> str:
    """Compile to `library`; empty, or why it failed."""
    name = Path(compiler[0]).name
    sources = [str(path) for path in sorted(SOURCES.glob("*.cpp"))]
    with tempfile.TemporaryDirectory(prefix=".building-", dir=library.parent) as folder:
        made = Path(folder) / library.name
        try:
            done = _run([*compiler, *flags_for(compiler), *sources, "-o", str(made)])
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{name} could not be run: {error}"
        if done.returncode:
            first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason given")
            return f"{name} failed: {first}"
        about = made.with_suffix(".json")
        about.write_text(json.dumps({"bytes": made.stat().st_size, "sha256": sha256_of(made)}) + "\n")
        os.replace(made, library)
        os.replace(about, library.with_suffix(".json"))
    return ""


def sources() -> list[Path]:
    """The operators' files in C++, sorted by their names."""
    return sorted(path for path in SOURCES.iterdir() if path.suffix in (".cpp", ".h"))


def hashed_sources() -> hashlib._Hash:
    """SHA-256 of all `sources` together, to which more can be added."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources()))


def _identity(compiler: Command) -> str:
    """A digest of the sources, the compiler and the processor. A library that was built for one processor may
    crash on another."""
    digest = hashed_sources()
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
