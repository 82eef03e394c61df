"""Graphs to take along: a variant's in a folder of their own, with a manifest, spoken before they count.

<folder>/
    prosody.ort trunk.ort excitation.ort vocoder.ort      or .onnx
    layers.npz
    manifest.json      as in the cache (see `artefacts`), and what it was exported for and checked with

`KOKORO_STAGES` (`EngineConfig.stages`) runs it.
"""

from __future__ import annotations

import json
import math
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kokoro_lab.config import STAGED
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.model.prosody import Values
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.weights.disk import whole_or_not_at_all
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.progress import step_bar

FORMATS = ("ort", "onnx")
AGREEMENT_LOW_DB = 80.0
"""An export that speaks less like its source than this is another model."""


def export(
    config: EngineConfig,
    folder: Path,
    form: str,
    segments: Iterable[tuple[Sequence[int], Values]],
    *,
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Write the graphs of a variant to `folder`, which is there as a whole or not at all.

    Parameters
    ----------
    config : EngineConfig
        Its variant is one of `STAGED`; the optimisation level is the one that an .ort file is left with.
    folder : Path
        Must not be there yet, or be empty.
    form : {"ort", "onnx"}
        ONNX Runtime's own format, optimised for this kind of machine; or ONNX.
    segments : iterable of tuple
        Token ids without pads, and a style vector: spoken by source and export to check it.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ParameterError
        A variant that runs as one graph, another format, or a folder that holds something.
    SynthesisError
        The exported graphs gave samples that are not finite.
    WeightsError
        The weights are missing, `folder` cannot be written, or the exported graphs speak otherwise than
        their source.
    """
    _require(config, folder, form)
    native = native_operators(config, say)
    source = stages_folder(config, native, say)
    graphs = sorted(path.stem for path in source.glob("*.onnx"))
    with whole_or_not_at_all(folder) as making:
        manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text("utf-8"))
        for kept in ("layers.npz", "manifest.json"):  # the manifest is what a decoder says of its graphs
            shutil.copy2(source / kept, making)
        with step_bar(f"{config.variant} as {form}", len(graphs) + 1, say is not None) as begins:
            for name in graphs:
                begins(name)
                path = making / f"{name}.{form}"
                if form == "ort":
                    make_session(str(source / f"{name}.onnx"), config, library=native.library, save=path)
                else:
                    shutil.copy2(source / f"{name}.onnx", path)
                manifest["graphs"][name] |= {"made_from_sha256": manifest["graphs"][name]["sha256"]}
                manifest["graphs"][name] |= _described(path)
            begins("speaking")
            manifest["export"] = {
                "format": form,
                "native": native.library is not None,
                "optimisation": config.optimisation if form == "ort" else "none",
                "machine": platform.machine(),
                "checked": speak_alike(StagedDecoder(config), StagedDecoder(config, folder=making), segments),
            }
        (making / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def speak_alike(
    reference: Decoder, candidate: Decoder, segments: Iterable[tuple[Sequence[int], Values]]
) -> dict[str, Any]:
    """Let both speak whole segments, and compare.

    Returns
    -------
    dict
        segments_count, audio_s, differing_samples_count, and agreement_db of the segment that agrees the
        least: None if every sample of all is the same.

    Raises
    ------
    SynthesisError
        A sample is not finite.
    WeightsError
        They disagree, or there was nothing to speak.
    """
    agreements: list[float] = []
    total = differing = 0
    for token_ids, style in segments:
        a, b = (
            np.concatenate([*d.decode(SegmentRequest(token_ids, style)).blocks])
            for d in (reference, candidate)
        )
        if len(a) != len(b):
            raise WeightsError(
                f"The exported graphs give {len(b)} samples where their source gives {len(a)}."
            )
        total += len(a)
        differing += int(np.count_nonzero(a != b))
        agreements.append(signal_to_difference_db(a, b))
    if not agreements:
        raise WeightsError("The exported graphs were not checked: there was nothing to speak.")
    least = min(agreements)
    if least < AGREEMENT_LOW_DB:
        raise WeightsError(
            f"The exported graphs agree with their source to {least:.0f} dB only.",
            field="agreement_db",
            value=round(least, 1),
            allowed=f"at least {AGREEMENT_LOW_DB:g} dB",
        )
    return {
        "segments_count": len(agreements),
        "audio_s": round(total / SAMPLE_RATE_HZ, 3),
        "differing_samples_count": differing,
        "agreement_db": round(least, 1) if math.isfinite(least) else None,
    }


def operators_of_ort(path: Path) -> dict[str, int]:
    """How many nodes of each operator type a file in ONNX Runtime's format holds, most first."""
    from onnxruntime.tools.ort_format_model.ort_flatbuffers_py.fbs import InferenceSession

    session = InferenceSession.InferenceSession.GetRootAsInferenceSession(path.read_bytes(), 0)
    graph = session.Model().Graph()
    names = (graph.Nodes(i).OpType().decode() for i in range(graph.NodesLength()))
    return dict(Counter(names).most_common())


def _described(path: Path) -> dict[str, Any]:
    about: dict[str, Any] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    if path.suffix == ".ort":
        found = operators_of_ort(path)
        about |= {"nodes": sum(found.values()), "operators": found}
    return about


def _require(config: EngineConfig, folder: Path, form: str) -> None:
    if config.variant not in STAGED:
        raise ParameterError(
            f"The variant {config.variant!r} is run as it was published: there is nothing to export.",
            field="variant",
            value=config.variant,
            allowed=", ".join(STAGED),
        )
    if form not in FORMATS:
        raise ParameterError(
            f"There is no format {form!r}.", field="--format", value=form, allowed=", ".join(FORMATS)
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(
            f"{folder} is there already.",
            field="--output",
            value=str(folder),
            mend="Name a new folder, or remove it first.",
        )
