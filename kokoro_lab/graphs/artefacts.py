"""Graphs made from the fp32 weights: cut and rewritten once, kept in the cache with a manifest.

<home>/derived/<first 12 of the source's SHA-256>-<variant>[-native]-<first 12 of the key>/
    prosody.onnx trunk.onnx excitation.onnx
    vocoder.onnx          takes scale and shift; decodes in windows, or a whole with its own statistics
    vocoder_exact.onnx    fp32 without our operators: the published model's samples to the last bit
    layers.npz            what turns statistics and style into scale and shift
    manifest.json

With `-native`, they use our own operators (see `native`). The key is in `recipe_digest`, what becomes of a
folder that is damaged in `derived`.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs import (
    alike_passes,
    attention_passes,
    context_passes,
    native_passes,
    passes,
    rewriting,
    tidy_passes,
    trunk_passes,
)
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.derived import MANIFEST, damage_in, derived_home, promised_by, whole_folder
from kokoro_lab.graphs.quant_passes import byte_recurrences, half_weights, quantise_layers
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer
from kokoro_lab.graphs.recipe_digest import Passes, Recipes, key_of, name_of, recipe_digest
from kokoro_lab.graphs.signatures import cut
from kokoro_lab.native.operators import Native
from kokoro_lab.native.toolchain import LIBRARIES
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.progress import Step, step_bar, untold
from kokoro_lab.weights.store import model_path, model_sha256, weights_home

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
EXPORT_AGAIN = "Write it again with `kokoro-lab export`, or unset KOKORO_STAGES."
READING, CUTTING, HASHING = "reading the weights", "cutting them into stages", "checking what was made"
TIDY: tuple[rewriting.Pass, ...] = (
    passes.fold_constants,
    tidy_passes.drop_no_ops,
    tidy_passes.canonical_shapes,
    tidy_passes.known_lengths,
    passes.fold_constants,
)
"""A fifth of prosody's nodes fewer, 1 to 2 % of its time; what ONNX Runtime then fuses rounds otherwise."""


@cache
def exclusions() -> Mapping[str, Sequence[str]]:
    """Variant → patterns of the layers that stay in float: integers there cost more than they save."""
    return {variant: [row["layers"] for row in rows] for variant, rows in exclusion_list().items()}


def exclusion_list() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Variant → the exclusions as they are written down: patterns, and what each was seen to buy and cost.

    The columns are those of `kokoro_lab.lab.tuning.precision.costs`, measured by `scripts/exclusions.py`.
    """
    listed: dict[str, list[dict[str, Any]]] = json.loads(
        Path(__file__).with_name("exclusions.json").read_text("utf-8")
    )
    return listed


def recipes(
    variant: str,
    native: bool,
    keep: Iterable[str] | None = None,
    ranges: Calibration | None = None,
    adjusted: Mapping[str, QuantisedLayer] | None = None,
) -> Recipes:
    """How the graphs of a variant are made; what is given stands in for what ships."""
    if variant == "fp32" and not native:
        return {
            "prosody": ("prosody", (passes.speed_by_token,)),
            "trunk": ("trunk", (passes.fold_constants, trunk_passes.told_statistics)),
            "excitation": ("excitation", ()),
            "vocoder": ("vocoder", GIVEN),
            "vocoder_exact": ("vocoder", EXACT),
        }

    def ours(*found: rewriting.Pass) -> Passes:
        return found if native else ()

    integers: Passes = ()
    if variant in exclusions():
        kept = tuple(exclusions()[variant] if keep is None else keep)
        integers = (partial(quantise_layers, ranges=ranges, native=native, keep=kept, adjusted=adjusted),)
    vocoder = (
        *ours(native_passes.statistics, native_passes.snake_convolutions, native_passes.exact_stft),
        *(ours(alike_passes.arctangents) if integers else ()),
        *ours(context_passes.only_what_is_looked_at, native_passes.sums_of_convolutions),
    )
    # Of int8's trunk one convolution of three taps is in float, and as a fast one it would weigh twice as
    # much: 3 MB for half a millisecond
    wide = ours(native_passes.fast_convolutions) if variant != "int8" else ()
    recurrences, attention = ours(native_passes.recurrences), ours(attention_passes.attention)
    lighter: Passes = () if variant == "fp32" else (half_weights,)
    prosody: Passes
    trunk: Passes
    if variant == "fp32":
        # With nothing that rounds otherwise: from another F0, the phase of the voice drifts away from the
        # published model's
        prosody = (*recurrences, native_passes.known_products, *attention)
        trunk = (
            trunk_passes.divided_beforehand,
            *wide,
            trunk_passes.norms_in_convolutions,
            alike_passes.norms,
        )
    else:
        bytes_too: Passes = (byte_recurrences,) if variant == "int8" else ()
        alike = ours(alike_passes.alike) if variant == "int8" else ()
        prosody = (*TIDY, *recurrences, *integers, *alike, *attention, *bytes_too, *lighter)
        trunk = (*integers, *alike, *wide, *lighter)
    told = (passes.fold_constants, trunk_passes.told_statistics, tidy_passes.repeated_afterwards)
    return {
        "prosody": ("prosody", (passes.speed_by_token, tidy_passes.repeated_afterwards, *prosody)),
        "trunk": ("trunk", (*told, *trunk)),
        "excitation": ("excitation", ours(native_passes.phases)),
        "vocoder": ("vocoder", (*GIVEN, *integers, *vocoder, *lighter)),
    }


def stages_folder(config: EngineConfig, native: Native, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the graphs of a configuration; made if it is not there (about 10 s, once).

    If `config.stages` names a folder that `export` wrote, it is that one.

    Parameters
    ----------
    config : EngineConfig
        Its variant is one of `STAGED`.
    native : Native
        Whether there are operators of our own.
    say : callable, optional
        Told in a line what is being made; on a terminal a bar follows.

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written; the exported graphs are
        not whole, not of this variant, or not for this machine.
    """
    if config.stages is not None:
        return _exported(config, config.stages, native)
    uses = native.library is not None
    kind = f"{config.variant}{'-native' if uses else ''}"
    made_by = recipes(config.variant, uses)
    return kept_graphs(config, kind, made_by, f"{config.variant} graphs", say, native_operators=uses)


def kept_graphs(
    config: EngineConfig,
    kind: str,
    made_by: Recipes,
    what: str,
    say: Callable[[str], None] | None,
    *,
    native_operators: bool,
) -> Path:
    """The folder in the cache with graphs of the fp32 weights, made if it is not there or not whole.

    Parameters
    ----------
    kind : str
        Whose recipes `made_by` are: a part of the folder's name.
    what : str
        What is made, in words.
    say : callable or None
        Told in a line that it is being made; on a terminal a bar follows.

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written.
    """
    root = weights_home(config.home)
    recipe = recipe_digest(made_by, native_operators=native_operators)

    def make(folder: Path, damage: str) -> None:
        model_path("fp32", config.home)  # says so if the weights are missing
        if say:
            say(f"Making the {what} from the weights (once, about 10 s).")
        with step_bar(what, len(steps_of(made_by)), say is not None) as begins:
            make_stages(
                folder, config, made_by, begins=begins, native_operators=native_operators, damage=damage
            )

    return whole_folder(root, f"{model_sha256('fp32')[:12]}-{kind}", key_of(recipe), make)


def _exported(config: EngineConfig, folder: Path, native: Native) -> Path:
    """`folder`, if the graphs in it are what its manifest promises and can run here."""

    def refused(why: str, mend: str) -> WeightsError:
        return WeightsError(
            f"The graphs in {folder} cannot be used: {why}.",
            field="KOKORO_STAGES",
            value=str(folder),
            mend=mend,
        )

    variant = config.variant
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text("utf-8"))
        made_for, recipe = manifest["export"], manifest["recipe"]
        made_variant, native_operators = manifest["variant"], bool(made_for["native"])
        form, machine = made_for["format"], made_for["machine"]
        promised_by({"files": {}, **manifest}, folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"it is no export that is whole ({type(error).__name__}: {error})"
        raise refused(why, EXPORT_AGAIN) from error
    if made_variant != variant:
        raise refused(f"they are {made_variant}, not {variant}", f"Ask for {made_variant!r}.")
    if native_operators and native.library is None:
        raise refused(f"they use operators of ours, and there are {native}", "Export with KOKORO_NATIVE=off.")
    if recipe != recipe_digest(recipes(variant, native_operators), native_operators=native_operators):
        # Graphs of another take other inputs, and an operator of ours takes weights for what they are not
        raise refused("another version of kokoro-lab made them, by other passes or operators", EXPORT_AGAIN)
    if form == "ort" and machine != platform.machine():
        raise refused(
            f"they were optimised for {machine}, this is {platform.machine()}",
            "Export as onnx, or on this machine.",
        )
    if damage := damage_in(folder, derived_home(weights_home(config.home))):
        raise refused(damage, EXPORT_AGAIN)
    return folder


def steps_of(recipes: Recipes) -> list[str]:
    """What `make_stages` does, step by step, in words."""
    made = [
        f"{name}: {step}" for name, (_, recipe) in recipes.items() for step in (*names(recipe), "writing")
    ]
    return [READING, CUTTING, *made, HASHING]


def published_stages(config: EngineConfig, begins: Step = untold) -> Mapping[str, rewriting.Model]:
    """The stages of the fp32 model as cut (325 MB, about 1 s)."""
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
    native_operators: bool = False,
    damage: str = "",
) -> None:
    """Make graphs by `recipes` in a new `folder`, which is there as a whole or not at all.

    Parameters
    ----------
    stages : mapping of str to Model, optional
        What `published_stages` gave, for whoever makes several variants.
    begins : callable
        Told each of `steps_of` as it begins.
    native_operators : bool
        Whether the graphs use operators of ours.
    damage : str
        What was wrong with the folder in whose place this one comes; the manifest keeps it.
    """
    started = time.perf_counter()
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        stages = stages or published_stages(config, begins)
        layers = AdainLayers.of(passes.fold_constants(stages["vocoder"]))
        layers.save(making / "layers.npz", compact=config.variant != "fp32")
        described = {
            name: _made(making / f"{name}.onnx", stages[stage], recipe, begins)
            for name, (stage, recipe) in recipes.items()
        }
        begins(HASHING)
        for name, about in described.items():
            about["sha256"] = sha256_of(making / f"{name}.onnx")
        layers_file = making / "layers.npz"
        files = {layers_file.name: {"bytes": layers_file.stat().st_size, "sha256": sha256_of(layers_file)}}
        manifest: dict[str, Any] = {
            "source_sha256": model_sha256("fp32"),
            "variant": config.variant,
            "recipe": recipe_digest(recipes, native_operators=native_operators),
            **{name: version(name) for name in LIBRARIES},
            "damage": damage,
            "made_s": round(time.perf_counter() - started, 2),
            "passes": {name: [name_of(p) for p in recipe] for name, (_, recipe) in recipes.items()},
            "graphs": described,
            "files": files,
        }
        (making / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
        if folder.exists():
            shutil.rmtree(folder)  # it is not whole
        os.replace(making, folder)
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _made(path: Path, graph: rewriting.Model, recipe: Passes, begins: Step) -> dict[str, Any]:
    """Rewrite a stage, write it to `path`, and say what it is."""
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
    """What the passes of a recipe are called, in words."""
    return (name_of(rewrite).replace("_", " ") for rewrite in recipe)
