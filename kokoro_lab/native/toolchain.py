"""Identifies the build on which samples depend: libraries, processor, compiler, and how graphs were made.

The build matters most for an 8-bit variant. If another build rounds one value to the next integer, this
changes later integers, too. So the samples of two builds of an 8-bit variant differ from each other as much
as those of either build differ from samples that are computed in floats. With commit, versions and the
weights' SHA-256, the build tells all that is needed to make the same samples again.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.native import prebuilt
from kokoro_lab.native.operators import FLAGS, found_compilers, hashed_sources, processor_flags
from kokoro_lab.provenance import machine, versions
from kokoro_lab.weights.joining import sha256_of

LOOSE_MATH = frozenset(
    {"-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math"}
)
"""Compiler flags with which sums may be reordered and quotients rounded twice."""
STOCK = "stock"
"""ONNX Runtime's own operators."""
_VECTORS = re.compile(r"^(sse|ssse|avx|fma|f16c|amx|asimd|sve|sme|i8mm|bf16)")
"""Processor flags by which libraries choose their loops. Other flags change with the operating system's
kernel, and do not affect sums."""


@dataclass(frozen=True, slots=True)
class Build:
    """Equal builds give equal samples.

    Parameters
    ----------
    onnxruntime, numpy : str
        Versions.
    processor : str
        Architecture, name, and a digest of its vector instructions: every library chooses its loops by them.
    operators : str
        `stock`, or the compiler and flags of our operators; for prebuilt ones also their instruction set.
    optimisation : str
        ONNX Runtime's level, which fuses sums in other orders.
    """

    onnxruntime: str
    numpy: str
    processor: str
    operators: str
    optimisation: str

    def differences(self, other: Build) -> list[str]:
        """The fields in which `other` is another build; none if it is the same."""
        mine, theirs = asdict(self), asdict(other)
        return [name for name in mine if mine[name] != theirs[name]]


def math_mode(details: Mapping[str, str]) -> str:
    """The arithmetic of an engine, `strict` or `loose`, and whether its operators are ours or ONNX Runtime's.
    `details` are those of its decoder.

    `strict`: each operation is rounded as IEEE 754 says, and sums are taken in the order that is written.
    """
    if not _ours(details):
        return "strict, ONNX Runtime's operators"
    loose = sorted(LOOSE_MATH.intersection(FLAGS))
    return f"loose ({' '.join(loose)}), our operators" if loose else "strict, our operators"


def _ours(details: Mapping[str, str]) -> bool:
    return not details.get("native_operators", "none").startswith("none")


def build_of(config: EngineConfig, details: Mapping[str, str]) -> Build:
    """The build that an engine of this configuration runs on; `details` are its decoder's."""
    found = versions()
    return Build(
        onnxruntime=found["onnxruntime"],
        numpy=found["numpy"],
        processor=_processor(),
        operators=_made_by(details) if _ours(details) else STOCK,
        optimisation=config.optimisation,
    )


def _made_by(details: Mapping[str, str]) -> str:
    build = details.get("native_build", "")
    return build if build.startswith("prebuilt") else compiler_version()


@cache
def _processor() -> str:
    told = processor_flags().partition(":")[2].split()
    vectors = sorted(flag for flag in told if _VECTORS.match(flag))
    digest = sha256(" ".join(vectors).encode()).hexdigest()[:8]
    return f"{platform.machine()}, {machine()['cpu']}, vectors {digest}"


@cache
def compiler_version() -> str:
    """The first line of the C++ compiler's version text; `unknown` without a compiler."""
    compilers = found_compilers()
    if not compilers:  # the library is there, and who made it is gone
        return "unknown"
    done = subprocess.run(
        [*compilers[0], "--version"], capture_output=True, text=True, timeout=20, check=False
    )
    return (done.stdout.splitlines() or ["unknown"])[0].strip()


_PACKAGE = Path(__file__).parents[1]
_FOLDERS = ("graphs", "model", "text", "weights")
_BESIDE_CODE = [path for folder in _FOLDERS for path in (_PACKAGE / folder).iterdir()]
SHIPPED = {
    path.name: path
    for path in sorted(_BESIDE_CODE, key=lambda path: path.name)
    if path.suffix in (".json", ".npz")
}
"""Files of the package that were measured or fitted, and that samples depend on."""
LIBRARIES = ("numpy", "onnx", "onnxruntime")
"""Packages that carry out the recipes of graphs: another version may make other graphs."""
_OF_GRAPH = ("nodes", "bytes", "sha256")
"""The facts of a graph that go into a result; the manifest also has operators and shapes."""


@cache
def toolchain() -> Mapping[str, Any]:
    """Compilers and their flags, our operators' sources, ONNX and its runtime, and the fitted files of the
    package.

    It is the same for every run of an installation. It is read once; do not write to it.
    """
    import onnxruntime  # not before the server has forked

    return {
        "compiler": compiler_version(),
        "compiler_flags": list(FLAGS),
        "prebuilt": _prebuilt(),
        "native_sources_sha256": hashed_sources().hexdigest(),
        "onnx": version("onnx"),
        "onnxruntime": onnxruntime.__version__,
        "onnxruntime_build": onnxruntime.get_build_info(),
        "shipped_sha256": {name: sha256_of(path) for name, path in SHIPPED.items()},
    }


def _prebuilt() -> Mapping[str, Any] | None:
    """The compiler and flags of the wheel's operators; None without such operators, or if the record cannot
    be read."""
    try:
        return prebuilt.record()
    except prebuilt.UnusableLibrary:
        return None


def conversion_of(folder: Path) -> Mapping[str, Any]:
    """How the graphs in `folder` were made, from the manifest beside them.

    Returns
    -------
    mapping
        source_sha256, variant, recipe (its digest), numpy, onnx and onnxruntime (versions that made them),
        damage (the fault of earlier graphs that these replaced), passes by graph, and graphs: nodes, bytes
        and sha256 of each; export, if they were exported.
    """
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    kept: dict[str, Any] = {
        name: manifest[name]
        for name in ("source_sha256", "variant", "recipe", *LIBRARIES, "damage", "passes", "export")
        if name in manifest
    }
    graphs = {
        name: {what: graph[what] for what in _OF_GRAPH if what in graph}
        for name, graph in manifest["graphs"].items()
    }
    return {**kept, "graphs": graphs}
