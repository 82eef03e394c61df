"""What turned sources into what ran: compiler and runtime, and how the graphs were made from the weights.

With commit, versions and the weights' SHA-256, that is all it takes to make the same again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kokoro_lab.native.build import compiler_version
from kokoro_lab.native.operators import FLAGS, sources
from kokoro_lab.weights.joining import sha256_of

_PACKAGE = Path(__file__).parents[1]
_SHIPPED_IN = {
    "model": (
        "beginnings_predictor.npz",
        *(f"beginnings_predictor_{number}.npz" for number in range(1, 5)),
        "statistics_predictor.npz",
        *(f"statistics_predictor_{number}.npz" for number in range(1, 3)),
        "statistics_shifts.npz",
    ),
    "graphs": ("exclusions.json", "ranges.npz"),
    "weights": ("voice_levels.json", "weights.json"),
}
SHIPPED = {
    name: _PACKAGE / room / name
    for name, room in sorted((name, room) for room, names in _SHIPPED_IN.items() for name in names)
}
"""Files of the package that were measured or fitted, and that samples depend on."""
LIBRARIES = ("numpy", "onnx", "onnxruntime")
"""Packages that carry out the recipes of graphs: another version may make other graphs."""
_OF_GRAPH = ("nodes", "bytes", "sha256")
"""What of a graph goes into a result; operators and shapes are in the manifest beside it."""


@cache
def _toolchain() -> str:
    import onnxruntime  # not before the server has forked

    hashed = hashlib.sha256()
    for path in sources():
        hashed.update(path.read_bytes())
    return json.dumps(
        {
            "compiler": compiler_version(),
            "compiler_flags": list(FLAGS),
            "native_sources_sha256": hashed.hexdigest(),
            "onnx": version("onnx"),
            "onnxruntime": onnxruntime.__version__,
            "onnxruntime_build": onnxruntime.get_build_info(),
            "shipped_sha256": {name: sha256_of(path) for name, path in SHIPPED.items()},
        }
    )


def toolchain() -> dict[str, Any]:
    """Compiler and its flags, our operators' sources, ONNX and its runtime, and what ships fitted.

    The same for every run of an installation; read once.
    """
    found: dict[str, Any] = json.loads(_toolchain())
    return found


def conversion_of(folder: Path) -> Mapping[str, Any]:
    """How the graphs in `folder` were made, from the manifest beside them.

    Returns
    -------
    mapping
        source_sha256, variant, recipe (its digest), numpy, onnx and onnxruntime (versions that made them),
        damage (what was wrong with those in whose place they came), passes by graph, and graphs: nodes, bytes
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
