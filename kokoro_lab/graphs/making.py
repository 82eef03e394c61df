"""Makes graphs from the fp32 weights: reads, cuts into stages, rewrites, and writes them with a manifest."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import passes, rewriting
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.cutting import cut
from kokoro_lab.graphs.derived import MANIFEST
from kokoro_lab.graphs.recipes import Passes, Recipes, name_of
from kokoro_lab.native.toolchain import LIBRARIES
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.progress import Step, untold
from kokoro_lab.weights.store import model_path, model_sha256

READING, CUTTING, HASHING = "reading the weights", "cutting them into stages", "checking what was made"


def steps_of(recipes: Recipes) -> list[str]:
    """What `make_stages` does, step by step, in words."""
    made = [
        f"{name}: {step}" for name, (_, recipe) in recipes.items() for step in (*names(recipe), "writing")
    ]
    return [READING, CUTTING, *made, HASHING]


def published_stages(config: EngineConfig, begins: Step = untold) -> Mapping[str, rewriting.Model]:
    """Read the fp32 model (325 MB) and cut it into stages, in about 1 s. Returns stage → its model. `begins`
    is called with the name of each step."""
    begins(READING)
    model = onnx.load(model_path("fp32", config.home))
    begins(CUTTING)
    return cut(model)


def make_stages(
    folder: Path,
    config: EngineConfig,
    recipes: Recipes,
    stages: Mapping[str, rewriting.Model] | None = None,
    begins: Step = untold,
    *,
    recipe: str = "",
    damage: str = "",
) -> None:
    """Make graphs by `recipes` in a new `folder`. The folder gets its name only when all of its files are
    written.

    Parameters
    ----------
    stages : mapping of str to Model, optional
        The result of `published_stages`, to share it when several variants are made.
    begins : callable
        Called with each step of `steps_of` when it begins.
    recipe : str
        The digest by `recipe_digest`, for the manifest.
    damage : str
        The damage of the folder that this one replaces; the manifest keeps it.
    """
    started = time.perf_counter()
    with TemporaryDirectory(prefix=".making-", dir=folder.parent, ignore_cleanup_errors=True) as temporary:
        making = Path(temporary)
        stages = stages or published_stages(config, begins)
        layers = AdainLayers.of(passes.fold_constants(stages["vocoder"]))
        layers.save(making / "layers.npz", compact=config.variant != "fp32")
        described = {
            name: _made(making / f"{name}.onnx", stages[stage], rewrites, begins)
            for name, (stage, rewrites) in recipes.items()
        }
        begins(HASHING)
        for name, about in described.items():
            about["sha256"] = sha256_of(making / f"{name}.onnx")
        layers_file = making / "layers.npz"
        files = {layers_file.name: {"bytes": layers_file.stat().st_size, "sha256": sha256_of(layers_file)}}
        manifest: dict[str, Any] = {
            "source_sha256": model_sha256("fp32"),
            "variant": config.variant,
            "recipe": recipe,
            **{name: version(name) for name in LIBRARIES},
            "damage": damage,
            "made_s": round(time.perf_counter() - started, 2),
            "passes": {name: [name_of(p) for p in rewrites] for name, (_, rewrites) in recipes.items()},
            "graphs": described,
            "files": files,
        }
        (making / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)  # it is not whole
        os.replace(making, folder)


def _made(path: Path, graph: rewriting.Model, recipe: Passes, begins: Step) -> dict[str, Any]:
    """Rewrite a stage by the passes of `recipe`, and write it to `path`. Returns what the manifest says about
    it."""
    for rewrite, step in zip(recipe, names(recipe), strict=True):
        begins(f"{path.stem}: {step}")
        graph = rewrite(graph)
    begins(f"{path.stem}: writing")
    onnx.save(graph, path)
    return {
        "nodes": len(graph.graph.node),
        "operators": rewriting.operators(graph),
        "inputs": rewriting.shapes(graph.graph.input),
        "outputs": rewriting.shapes(graph.graph.output),
        "bytes": path.stat().st_size,
    }


def names(recipe: Passes) -> Iterator[str]:
    """The names of a recipe's passes, with spaces between their words."""
    return (name_of(rewrite).replace("_", " ") for rewrite in recipe)
