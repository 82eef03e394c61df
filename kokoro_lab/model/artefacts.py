"""Graphs made from the weights: cut and rewritten once, kept in the cache with a manifest.

<home>/derived/<first 12 of the source's SHA-256>-v<RECIPE>/
    prosody.onnx trunk.onnx excitation.onnx      as cut
    vocoder_exact.onnx                           normalises with the utterance's own statistics
    vocoder_given.onnx                           takes scale and shift instead; decodes in windows
    trunk_native.onnx vocoder_given_native.onnx  the same with our own operators (see `native`)
    layers.npz                                   what turns statistics and style into scale and shift
    manifest.json
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
from filelock import FileLock

from kokoro_lab.model import native_passes, passes
from kokoro_lab.model.disk import told_apart
from kokoro_lab.model.graphs import cut
from kokoro_lab.model.statistics import AdainLayers
from kokoro_lab.model.weights import model_path, model_sha256, weights_home

RECIPE = 6
"""Counts up with every change of what is made here, so that stale graphs are never used."""

EXACT: tuple[passes.Pass, ...] = (passes.fold_constants, passes.squares_as_products)
"""To the last bit the published model's samples."""
GIVEN: tuple[passes.Pass, ...] = (
    passes.fold_constants,
    passes.modulate,
    passes.snake_in_the_modulation,
    passes.squares_as_products,
    passes.plain_overlap_add,
    passes.crop_before_the_second_half,
)
RECIPES: dict[str, tuple[str, tuple[passes.Pass, ...]]] = {
    "vocoder_exact": ("vocoder", EXACT),
    "vocoder_given": ("vocoder", GIVEN),
    "vocoder_given_native": ("vocoder", (*GIVEN, native_passes.snake_convolutions)),
    # Not prosody: where F0 is rounded otherwise, the phase of the voice drifts from the published model's
    "trunk_native": ("trunk", (passes.fold_constants, native_passes.fast_convolutions)),
}
"""Graph → the stage that it is made of, and how."""


def stages_folder(home: Path | None = None, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the stages of the fp32 model; made if it is not there (about 10 s, once).

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written.
    """
    root = weights_home(home)
    folder = root / "derived" / f"{model_sha256('fp32')[:12]}-v{RECIPE}"
    if (folder / "manifest.json").exists():
        return folder
    source = model_path("fp32", home)
    with told_apart(root, []):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / ".lock"):
            if not (folder / "manifest.json").exists():
                if say:
                    say("Cutting the model into its stages (once, about 10 s).")
                _make(source, folder)
    return folder


def _make(source: Path, folder: Path) -> None:
    started = time.perf_counter()
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        stages = cut(onnx.load(source))
        layers = AdainLayers.of(passes.fold_constants(stages["vocoder"]))
        graphs = {name: stage for name, stage in stages.items() if name != "vocoder"} | {
            name: passes.apply(stages[stage], recipe) for name, (stage, recipe) in RECIPES.items()
        }
        for name, graph in graphs.items():
            onnx.save(graph, making / f"{name}.onnx")
        layers.save(making / "layers.npz")
        manifest: dict[str, Any] = {
            "source_sha256": model_sha256("fp32"),
            "recipe": RECIPE,
            "onnx": onnx.__version__,
            "made_s": round(time.perf_counter() - started, 2),
            "passes": {name: [p.__name__ for p in recipe] for name, (_, recipe) in RECIPES.items()},
            "graphs": {
                name: {
                    "nodes": len(graph.graph.node),
                    "operators": passes.operators(graph),
                    "bytes": (making / f"{name}.onnx").stat().st_size,
                }
                for name, graph in graphs.items()
            },
        }
        (making / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        for stale in folder.parent.glob(f"{folder.name.partition('-')[0]}-v*"):
            shutil.rmtree(stale)  # 750 MB that nobody reads any more: of another recipe, or not finished
        os.replace(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)
