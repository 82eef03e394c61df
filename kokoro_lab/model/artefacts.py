"""Graphs made from the fp32 weights: cut and rewritten once, kept in the cache with a manifest.

<home>/derived/<first 12 of the source's SHA-256>-<variant>[-native]-v<RECIPE>/
    prosody.onnx trunk.onnx excitation.onnx
    vocoder.onnx          takes scale and shift; decodes in windows, or a whole with its own statistics
    vocoder_exact.onnx    fp32 without our operators: the published model's samples to the last bit
    layers.npz            what turns statistics and style into scale and shift
    manifest.json

With `-native`, they use our own operators (see `native`).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import onnx
from filelock import FileLock

from kokoro_lab.config import EngineConfig
from kokoro_lab.model import native_passes, passes, rewriting
from kokoro_lab.model.compact import byte_recurrences, half_weights
from kokoro_lab.model.disk import told_apart
from kokoro_lab.model.graphs import cut
from kokoro_lab.model.native import Native
from kokoro_lab.model.quant_passes import quantise_layers
from kokoro_lab.model.quantise import Calibration
from kokoro_lab.model.statistics import AdainLayers
from kokoro_lab.model.weights import model_path, model_sha256, weights_home

RECIPE = 16
"""Counts up with every change of what is made here, so that stale graphs are never used."""

EXACT: tuple[rewriting.Pass, ...] = (passes.fold_constants, passes.squares_as_products)
"""To the last bit the published model's samples."""
GIVEN: tuple[rewriting.Pass, ...] = (
    passes.fold_constants,
    passes.modulate,
    passes.snake_in_the_modulation,
    passes.squares_as_products,
    passes.plain_overlap_add,
    passes.crop_before_the_second_half,
    passes.own_statistics_unless_known,
)
Passes = tuple[rewriting.Pass, ...]
Recipes = Mapping[str, tuple[str, Passes]]
"""Graph → the stage that it is made of, and how."""


@cache
def exclusions() -> Mapping[str, Sequence[str]]:
    """Variant → patterns of the layers that stay in float: integers there cost more than they save."""
    found: dict[str, list[str]] = json.loads(Path(__file__).with_name("exclusions.json").read_text("utf-8"))
    return found


def recipes(
    variant: str, native: bool, keep: Iterable[str] | None = None, ranges: Calibration | None = None
) -> Recipes:
    """How the graphs of a variant are made; `keep` and `ranges` take the place of what the package ships."""
    if variant == "fp32" and not native:
        return {
            "prosody": ("prosody", (passes.speed_by_token,)),
            "trunk": ("trunk", ()),
            "excitation": ("excitation", ()),
            "vocoder": ("vocoder", GIVEN),
            "vocoder_exact": ("vocoder", EXACT),
        }
    wide: Passes = (native_passes.fast_convolutions,) if native else ()
    snakes: Passes = (native_passes.snake_convolutions, native_passes.exact_stft) if native else ()
    integers: Passes = ()
    lighter: Passes = ()
    if variant != "fp32":
        kept = exclusions()[variant] if keep is None else tuple(keep)
        known = Calibration.load() if ranges is None else ranges
        integers = (partial(quantise_layers, ranges=known, native=native, keep=kept),)
        lighter = (half_weights,)
    # In float not with operators of ours: where F0 is rounded otherwise, the phase of the voice drifts from
    # the published model's
    prosody: Passes = (passes.speed_by_token,)
    if variant != "fp32":
        bytes_too: Passes = (byte_recurrences,) if variant == "int8" else ()
        prosody = (passes.speed_by_token, passes.fold_constants, *integers, *bytes_too, *lighter)
    return {
        "prosody": ("prosody", prosody),
        "trunk": ("trunk", (passes.fold_constants, *integers, *wide, *lighter)),
        "excitation": ("excitation", ()),
        "vocoder": ("vocoder", (*GIVEN, *integers, *snakes, *lighter)),
    }


def stages_folder(config: EngineConfig, native: Native, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the graphs of a configuration; made if it is not there (about 10 s, once).

    Parameters
    ----------
    config : EngineConfig
        Its variant is one of `STAGED`.
    native : Native
        Whether there are operators of our own.
    say : callable, optional
        Told in a line what is being made.

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written.
    """
    root = weights_home(config.home)
    kind = f"{model_sha256('fp32')[:12]}-{config.variant}{'-native' if native.library else ''}"
    folder = root / "derived" / f"{kind}-v{RECIPE}"
    if (folder / "manifest.json").exists():
        return folder
    model_path("fp32", config.home)  # says so if the weights are missing
    with told_apart(root, []):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.parent / ".lock"):
            if not (folder / "manifest.json").exists():
                if say:
                    say(f"Making the {config.variant} graphs from the weights (once, about 10 s).")
                make_stages(folder, config, recipes(config.variant, native.library is not None))
                for stale in folder.parent.glob(f"{kind}-v*"):
                    if stale != folder:
                        shutil.rmtree(stale)  # hundreds of megabytes that nobody reads any more
    return folder


def published_stages(config: EngineConfig) -> Mapping[str, rewriting.Model]:
    """The stages of the fp32 model as cut (325 MB, about 4 s)."""
    return cut(onnx.load(model_path("fp32", config.home)))


def make_stages(
    folder: Path,
    config: EngineConfig,
    recipes: Recipes,
    stages: Mapping[str, rewriting.Model] | None = None,
) -> None:
    """Make graphs by `recipes` in a new `folder`, which is there as a whole or not at all."""
    started = time.perf_counter()
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        stages = stages or published_stages(config)
        layers = AdainLayers.of(passes.fold_constants(stages["vocoder"]))
        graphs = {name: rewriting.apply(stages[stage], recipe) for name, (stage, recipe) in recipes.items()}
        for name, graph in graphs.items():
            onnx.save(graph, making / f"{name}.onnx")
        layers.save(making / "layers.npz", compact=config.variant != "fp32")
        manifest: dict[str, Any] = {
            "source_sha256": model_sha256("fp32"),
            "recipe": RECIPE,
            "onnx": onnx.__version__,
            "made_s": round(time.perf_counter() - started, 2),
            "passes": {name: [_name(p) for p in recipe] for name, (_, recipe) in recipes.items()},
            "graphs": {
                name: {
                    "nodes": len(graph.graph.node),
                    "operators": rewriting.operators(graph),
                    "bytes": (making / f"{name}.onnx").stat().st_size,
                }
                for name, graph in graphs.items()
            },
        }
        (making / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)  # a folder without a manifest was not finished
        os.replace(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _name(rewrite: rewriting.Pass) -> str:
    return str(getattr(rewrite, "func", rewrite).__name__)
