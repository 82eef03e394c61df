"""Makes wheels: `pure`, or with our operators compiled for a platform, whatever this one is.

    python scripts/wheels/build.py [--output dist] pure linux-x86_64 linux-aarch64 macos-arm64

A library has all instruction sets of its platform: each source is compiled once a set, and choose.cpp once,
for the plainest processor. Sets must share nothing: of an inline function that two of them have, a linker
keeps one, and a processor without AVX-512 would meet it. A namespace would not be enough, as the standard
library has inline functions, too. So sources are compiled to assembly, and there names become a set's own.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence, Set
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kokoro_lab.native.operators import FLAGS, SOURCES
from kokoro_lab.native.prebuilt import LIBRARY_NAME, RECORD_NAME
from kokoro_lab.weights.joining import sha256_of

ROOT = Path(__file__).parents[2]
CHOOSE = Path(__file__).with_name("choose.cpp")
PURE = "pure"
SETS = {
    "x86_64": {
        "avx512-vnni": "x86_64_v4+avx512vnni",
        "avx512": "x86_64_v4",
        "avx2-vnni": "x86_64_v3+avxvnni",
        "avx2": "x86_64_v3",
    },
    "aarch64": {"i8mm": "generic+dotprod+i8mm", "dotprod": "generic+dotprod", "neon": "generic"},
}
"""Architecture → instruction set, the best one first → the processor, as Zig calls it."""
PLAINEST = {"x86_64": "x86_64", "aarch64": "generic"}
NOT_FOR_ZIG = ("-march", "-mprefer", "--param", "-shared")
"""How flags begin that are for GCC, or for the processor of the machine that builds."""
_GLOBAL = re.compile(
    rb"^\s*\.(?:weak|globl|weak_definition|weak_def_can_be_hidden)\s+([\w.$]+)", re.MULTILINE
)
_DEFINED = re.compile(rb"^([\w.$]+):", re.MULTILINE)
_WORD = re.compile(rb"[\w.$]+")


@dataclass(frozen=True)
class Platform:
    """What a wheel with operators is for.

    Parameters
    ----------
    target : str
        Zig's name of it, with the oldest system that it runs on.
    tag : str
        The wheel's.
    linking : tuple of str
        Flags of the linker. `{symbols}` stands for a file that says what others may see.
    """

    target: str
    tag: str
    linking: tuple[str, ...]

    @property
    def architecture(self) -> str:
        return self.target.partition("-")[0]


_ELF = ("-Wl,--version-script={symbols}", "-Wl,-s", "-Wl,-z,now", "-Wl,-z,defs")
PLATFORMS = {
    "linux-x86_64": Platform("x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64", _ELF),
    "linux-aarch64": Platform("aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64", _ELF),
    "macos-arm64": Platform(
        "aarch64-macos.11.0", "macosx_11_0_arm64", ("-Wl,-s", "-Wl,-install_name,@rpath/operators.so")
    ),
}
SYMBOLS = "{ global: RegisterCustomOps; kokoro_brake; kokoro_choose; kokoro_instruction_sets; local: *; };\n"


def zig() -> list[str]:
    """Zig's command.

    Raises
    ------
    RuntimeError
        It is not installed.
    """
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang"]
    if found := shutil.which("zig"):
        return [found]
    raise RuntimeError("Zig is missing: run `make wheels`, which installs it.")


def compile_operators(platform: Platform, folder: Path) -> Path:
    """The library with all instruction sets of `platform`, in `folder`, with its record beside it.

    Raises
    ------
    RuntimeError
        Zig is missing, or refused something.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sets = SETS[platform.architecture]
    compiler = [*zig(), "c++", "-target", platform.target]
    flags = [flag for flag in FLAGS if not flag.startswith(NOT_FOR_ZIG)]
    # What is multiplied and then added is fused, as GCC does, unless a source says otherwise
    flags.append("-ffp-contract=fast-honor-pragmas")
    if platform.architecture == "x86_64":
        flags.append("-mprefer-vector-width=512")
    with tempfile.TemporaryDirectory() as parts, ThreadPoolExecutor(os.cpu_count()) as pool:
        objects: list[str] = []
        for name, processor in sets.items():
            objects += compile_set(name, [*compiler, f"-mcpu={processor}"], flags, Path(parts), pool)
        symbols = Path(parts, "symbols")
        symbols.write_text(SYMBOLS)
        library = folder / LIBRARY_NAME
        plainest = [*compiler, f"-mcpu={PLAINEST[platform.architecture]}", *flags, "-shared", f"-I{SOURCES}"]
        linking = [flag.format(symbols=symbols) for flag in platform.linking]
        _run([*plainest, str(CHOOSE), *objects, *linking, "-o", str(library)])
    record = {
        "bytes": library.stat().st_size,
        "sha256": sha256_of(library),
        "compiler": f"zig {_run([*zig(), 'version']).strip()}",
        "flags": flags,
        "target": platform.target,
        "instruction_sets": list(sets),
    }
    (folder / RECORD_NAME).write_text(json.dumps(record, indent=1) + "\n")
    return library


def compile_set(name: str, compiler: list[str], flags: list[str], folder: Path, pool: Executor) -> list[str]:
    """Our operators in one instruction set, as objects in `folder` that share no name with another's."""

    def assembly_of(source: Path) -> Path:
        made = folder / f"{source.stem}-{name}.s"
        _run([*compiler, *flags, "-DKOKORO_SET", "-S", str(source), "-o", str(made)])
        return made

    def assembled(part: Path) -> str:
        part.write_bytes(renamed(part.read_bytes(), mine, f"_{name.replace('-', '_')}"))
        _run([*compiler, "-c", str(part), "-o", str(part.with_suffix(".o"))])
        return str(part.with_suffix(".o"))

    parts = list(pool.map(assembly_of, sorted(SOURCES.glob("*.cpp"))))
    mine = {symbol for part in parts for symbol in seen_by_others(part.read_bytes())}
    return list(pool.map(assembled, parts))


def seen_by_others(assembly: bytes) -> set[bytes]:
    """What this assembly defines for other files."""
    return set(_GLOBAL.findall(assembly)) & set(_DEFINED.findall(assembly))


def renamed(assembly: bytes, symbols: Set[bytes], suffix: str) -> bytes:
    """The assembly, in which each of these symbols ends in `suffix`."""
    return _WORD.sub(lambda word: word[0] + suffix.encode() * (word[0] in symbols), assembly)


def wheel(name: str, output: Path) -> Path:
    """The wheel for a platform, or the pure one, in `output`."""
    variables = dict(os.environ)
    before = set(output.glob("*.whl"))
    with tempfile.TemporaryDirectory() as folder:
        if name != PURE:
            compile_operators(PLATFORMS[name], Path(folder))
            # hatch_build.py, beside this file, reads both
            variables |= {"KOKORO_WHEEL_OPERATORS": folder, "KOKORO_WHEEL_TAG": PLATFORMS[name].tag}
        _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(output)], variables)
    made = set(output.glob("*.whl")) - before
    return next(iter(made), next(output.glob(f"*{PLATFORMS[name].tag if name != PURE else 'any'}.whl")))


def _run(command: Sequence[str], variables: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="Make wheels.")
    parser.add_argument("wheels", nargs="+", choices=[PURE, *PLATFORMS])
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--operators", type=Path, help="write the library of one platform here, and no wheel")
    arguments = parser.parse_args()
    if arguments.operators:
        (name,) = arguments.wheels
        print(compile_operators(PLATFORMS[name], arguments.operators))  # noqa: T201
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name in arguments.wheels:
        print(wheel(name, arguments.output))  # noqa: T201


if __name__ == "__main__":
    main()
