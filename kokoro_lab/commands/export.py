"""`export`: writes a variant's graphs to a folder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click

from kokoro_lab.commands.console import say, show
from kokoro_lab.commands.options import choice_option, json_option
from kokoro_lab.config import STAGED


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="New folder to write.")
@click.option("--variant", type=click.Choice(STAGED), help="Precision of the weights.")
@choice_option(
    "--format",
    ["ort", "onnx", "static", "mlpackage"],
    "ort",
    "ONNX Runtime's own, optimised for this kind of machine; ONNX; the vocoder of fp32 in windows of "
    "fixed sizes, as ONNX for accelerators or as Core ML's ML Programs.",
    "form",
)
@choice_option(
    "--precision",
    ["float32", "float16", "int8"],
    "float16",
    "Precision of ML Programs; with int8, only the weights have 8 bits.",
)
@click.option(
    "--texts",
    default=0,
    type=click.IntRange(0),
    help="How many fixture texts are spoken to check the export; 0 takes all (some minutes).",
)
@click.option("--voices", default="af_heart,bm_lewis", show_default=True, help="Voices that speak the texts.")
@json_option
def export(
    output: Path, variant: str | None, form: str, precision: str, texts: int, voices: str, as_json: bool
) -> None:
    """Write a variant's graphs to a folder, check that they speak, and describe them in a manifest."""
    from kokoro_lab.engine_config import EngineConfig
    from kokoro_lab.lab.conversion import exports
    from kokoro_lab.lab.fixtures import load_texts
    from kokoro_lab.lab.tuning.comparison import segments_of_all

    config = EngineConfig.from_settings()
    fixed = form in exports.FIXED
    config = replace(config, variant=variant or ("fp32" if fixed else config.variant), stages=None)
    segments = segments_of_all([text.text for text in load_texts(limit=texts)], voices.split(","))
    told = None if as_json else say
    manifest = exports.export(config, output, form, segments, precision=precision, say=told)
    checked = manifest["export"]["checked"]
    if fixed:
        lines = [f"wrote   {output}", f"checked {json.dumps(checked)}"]
    else:
        size_mb = sum(about["bytes"] for about in manifest["graphs"].values()) / 1e6
        exact = checked["agreement_db"] is None
        agreement = "the same samples" if exact else f"{checked['agreement_db']:.0f} dB"
        lines = [
            f"wrote   {output} ({size_mb:.0f} MB of graphs)",
            f"checked {checked['segments_count']} segments, {checked['audio_s']:.1f} s, finite, {agreement}",
            f"run it  KOKORO_STAGES={output} KOKORO_VARIANT={config.variant}",
        ]
    show(lines, manifest, as_json)
