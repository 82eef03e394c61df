"""Finds a variant's graphs in the cache; if they are missing, makes them from the fp32 weights, once.

<home>/derived/<first 12 of the source's SHA-256>-<variant>[-native]-<first 12 of the key>/
    prosody.onnx trunk.onnx excitation.onnx
    vocoder.onnx          takes scale and shift; decodes windows, or a whole segment with its own statistics
    vocoder_exact.onnx    fp32 without our operators: the published model's samples to the last bit
    layers.npz            what turns statistics and style into scale and shift
    manifest.json

With `-native`, the graphs use our own operators (see `native`). `recipe_digest` computes the key, `derived`
replaces damaged folders, `recipes` lists the passes, and `making` makes the graphs. `recipes` and `making`
are imported only if graphs must be made.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs.derived import MANIFEST, damage_in, derived_home, promised_by, whole_folder
from kokoro_lab.graphs.recipe_digest import key_of, recipe_digest
from kokoro_lab.native.operators import Native
from kokoro_lab.weights.progress import step_bar
from kokoro_lab.weights.store import model_path, model_sha256, weights_home

if TYPE_CHECKING:
    from kokoro_lab.graphs.recipes import Recipes

EXPORT_AGAIN = "Write it again with `kokoro-lab export`, or unset KOKORO_STAGES."


def stages_folder(config: EngineConfig, native: Native, say: Callable[[str], None] | None = None) -> Path:
    """The folder with the graphs of a configuration. If there is none, it is made, which takes about 10 s.

    If `config.stages` names a folder that `export` wrote, that folder is returned.

    Parameters
    ----------
    config : EngineConfig
        Its variant is one of `STAGED`.
    native : Native
        Our own operators; its `library` is None if they are not used.
    say : callable, optional
        Called with a line if graphs must be made; on a terminal, a progress bar follows. Without it, neither
        is shown.

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written; the exported graphs are
        not whole, not of this variant, or not for this machine.
    """
    if config.stages is not None:
        return _exported(config, config.stages, native)
    uses = native.library is not None
    what = f"{config.variant} graphs"

    def made_by() -> Recipes:
        from kokoro_lab.graphs.recipes import recipes

        return recipes(config.variant, uses)

    recipe = recipe_of(config.variant, native_operators=uses)
    return kept_graphs(config, kind_of(config.variant, native_operators=uses), recipe, made_by, what, say)


def recipe_of(variant: str, *, native_operators: bool) -> str:
    """The `recipe_digest` of a variant's graphs."""
    kind = kind_of(variant, native_operators=native_operators)
    return recipe_digest(kind, native_operators=native_operators)


def kind_of(variant: str, *, native_operators: bool) -> str:
    return f"{variant}-native" if native_operators else variant


def kept_graphs(
    config: EngineConfig,
    kind: str,
    recipe: str,
    made_by: Callable[[], Recipes],
    what: str,
    say: Callable[[str], None] | None,
) -> Path:
    """The folder in the cache with graphs that are made from the fp32 weights. If the folder is missing or
    damaged, it is made.

    Parameters
    ----------
    kind : str
        What the graphs are, as a part of the folder's name: the variant, or a window and its size.
    recipe : str
        The `recipe_digest` of the graphs.
    made_by : callable
        Returns the recipes. Called only if graphs must be made.
    what : str
        What the graphs are, in words, for messages.
    say : callable or None
        Called with a line if graphs must be made; on a terminal, a progress bar follows. None shows neither.

    Raises
    ------
    WeightsError
        The weights are missing or cannot be cut, or the cache cannot be written.
    """
    root = weights_home(config.home)

    def make(folder: Path, damage: str) -> None:
        from kokoro_lab.graphs.making import make_stages, steps_of

        model_path("fp32", config.home)  # says so if the weights are missing
        if say:
            say(f"Making the {what} from the weights (once, about 10 s).")
        recipes = made_by()
        with step_bar(what, len(steps_of(recipes)), say is not None) as begins:
            make_stages(folder, config, recipes, begins=begins, recipe=recipe, damage=damage)

    return whole_folder(root, f"{model_sha256('fp32')[:12]}-{kind}", key_of(recipe), make)


def _exported(config: EngineConfig, folder: Path, native: Native) -> Path:
    """Check that the graphs in `folder` are what its manifest promises and can run here; returns `folder`."""

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
    if recipe != recipe_of(variant, native_operators=native_operators):
        # Another variant's graphs have other inputs, and our operators could misread their weights
        raise refused("another version of kokoro-lab made them, by other passes or operators", EXPORT_AGAIN)
    if form == "ort" and machine != platform.machine():
        raise refused(
            f"they were optimised for {machine}, this is {platform.machine()}",
            "Export as onnx, or on this machine.",
        )
    if damage := damage_in(folder, derived_home(weights_home(config.home))):
        raise refused(damage, EXPORT_AGAIN)
    return folder
