"""How each variant's graphs are made: from which stage, by which passes, and which layers stay in float."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

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
from kokoro_lab.graphs.quant_passes import byte_recurrences, half_weights, quantise_layers
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer

Passes = tuple[rewriting.Pass, ...]
Recipes = Mapping[str, tuple[str, Passes]]
"""Graph → the stage from which it is made, and the passes by which it is made."""
EXACT: Passes = (passes.fold_constants, passes.squares_as_products)
"""Passes after which the samples equal the published model's to the last bit."""
GIVEN: Passes = (*passes.GIVEN_STATISTICS, passes.own_statistics_unless_known)
TIDY: Passes = (
    passes.fold_constants,
    tidy_passes.drop_no_ops,
    tidy_passes.canonical_shapes,
    tidy_passes.known_lengths,
    passes.fold_constants,
)
"""Passes that remove a fifth of prosody's nodes and so 1 to 2 % of its time. ONNX Runtime then fuses other
nodes, which changes rounding."""


@cache
def exclusions() -> Mapping[str, Sequence[str]]:
    """Variant → patterns for the names of layers that stay in float, because integers would cost there more
    than they save."""
    return {variant: [row["layers"] for row in rows] for variant, rows in exclusion_list().items()}


def exclusion_list() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Variant → its exclusions as `exclusions.json` has them: patterns, and the measured gain and cost of
    each.

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
    """The recipes of a variant's graphs. If they are given, `keep` replaces the package's list of layers that
    stay in float, `ranges` replaces its ranges, and `adjusted` has the integers of some convolutions."""
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
    # In int8's trunk, one convolution of three taps is in float. As a fast one it would have twice as many
    # weights: 3 MB for half a millisecond
    wide = ours(native_passes.fast_convolutions) if variant != "int8" else ()
    recurrences, attention = ours(native_passes.recurrences), ours(attention_passes.attention)
    lighter: Passes = () if variant == "fp32" else (half_weights,)
    prosody: Passes
    trunk: Passes
    if variant == "fp32":
        # Without passes that round differently: with another F0, the phase of the voice drifts away from the
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


def unbound(rewrite: Any) -> Any:
    """The function of a pass, without the further arguments that a `partial` gives it."""
    while isinstance(rewrite, partial):
        rewrite = rewrite.func
    return rewrite


def name_of(rewrite: Any) -> str:
    return str(unbound(rewrite).__name__)
