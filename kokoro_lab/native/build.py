"""Which build computes: what the last bits of a sample depend on, besides code, weights and request.

Integers make this matter: one rounding that falls to the other side becomes another byte, and that byte
others further on, so that two builds of the 8-bit variants agree as little as either agrees with floats.
"""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.native.operators import FLAGS, found_compiler
from kokoro_lab.provenance import machine, versions

LOOSE_MATH = frozenset(
    {"-Ofast", "-ffast-math", "-funsafe-math-optimizations", "-fassociative-math", "-freciprocal-math"}
)
"""Compiler flags with which sums may be reordered and quotients rounded twice."""
STOCK = "stock"
"""ONNX Runtime's own operators."""
_VECTORS = re.compile(r"^(sse|ssse|avx|fma|f16c|amx|asimd|sve|sme|i8mm|bf16)")
"""Processor flags that choose between loops. Others change with the kernel, and change no sum."""


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
        `stock`, or the compiler that made ours.
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
    """How an engine computes, `strict` or `loose`, and by whose operators; `details` are its decoder's.

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
        operators=compiler_version() if _ours(details) else STOCK,
        optimisation=config.optimisation,
    )


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    told = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    vectors = sorted(flag for flag in told.partition(":")[2].split() if _VECTORS.match(flag))
    digest = sha256(" ".join(vectors).encode()).hexdigest()[:8]
    return f"{platform.machine()}, {machine()['cpu']}, vectors {digest}"


@cache
def compiler_version() -> str:
    """The first line that the C++ compiler says of itself; `unknown` where there is none."""
    program = found_compiler()
    if program is None:  # the library is there, and who made it is gone
        return "unknown"
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return (done.stdout.splitlines() or ["unknown"])[0].strip()
