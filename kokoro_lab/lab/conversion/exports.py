"""Exports graphs to a folder with a manifest, and checks them by speaking before the folder is put in place.

<folder>/
    prosody.ort trunk.ort excitation.ort vocoder.ort      or .onnx
    layers.npz
    manifest.json      as in the cache (see `artefacts`), and the target and check of the export

With `KOKORO_STAGES` (`EngineConfig.stages`), the engine runs the graphs of such a folder. Fixed windows of
the vocoder are exported for other applications:

<folder>/
    vocoder_32.onnx or vocoder_32.mlpackage, and the other sizes
    spectrum.onnx layers.npz      what an application needs before the windows
    prosody/prosody_padded.onnx   only for ONNX: prosody that can be fed with pads (see `padding_passes`)
    manifest.json                 the source, the target, and how far their samples agree
"""

from __future__ import annotations

import json
import math
import platform
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np

from kokoro_lab.config import STAGED
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.graphs import artefacts, mlprogram, padding_passes, passes, signatures
from kokoro_lab.graphs.making import make_stages
from kokoro_lab.graphs.recipes import Recipes
from kokoro_lab.graphs.static_passes import SAMPLES
from kokoro_lab.lab.conversion import mil_reference
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.model.prosody import Prosody, Values
from kokoro_lab.model.static_vocoder import (
    WINDOWS,
    StaticVocoder,
    StaticWindow,
    feed_of,
    static_folder,
    write_program,
)
from kokoro_lab.model.windows import WindowPlan, WindowSizes
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.typed import require_choice, require_range
from kokoro_lab.weights.disk import whole_or_not_at_all
from kokoro_lab.weights.joining import sha256_of
from kokoro_lab.weights.progress import step_bar

FIXED = ("static", "mlpackage")
FORMATS = ("ort", "onnx", *FIXED)
AGREEMENT_LOW_DB = 80.0
"""Least SNR of an export's samples against its source's. Below it, the export fails."""
PADDED: Recipes = {"prosody_padded": ("prosody", (passes.speed_by_token, padding_passes.masked_ids))}
PADDING_ERROR_HIGH = 1e-4
"""Largest difference in features, F0 (Hz) and energy that pads may make, relative to the largest value."""
Segments = Iterable[tuple[Sequence[int], Values]]
"""Token ids without pads, and a style vector."""


def export(
    config: EngineConfig,
    folder: Path,
    form: str,
    segments: Segments,
    *,
    precision: str = "float16",
    say: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Write the graphs of a variant to `folder`. If anything fails, there is no folder.

    Parameters
    ----------
    config : EngineConfig
        Its variant is one of `STAGED`, or fp32 for fixed windows. An .ort file is written with its
        optimisation level.
    folder : Path
        A folder that does not exist yet, or is empty.
    form : {"ort", "onnx", "static", "mlpackage"}
        The stages in ONNX Runtime's own format, optimised for this kind of machine, or as ONNX; the vocoder
        in fixed windows, as ONNX or as ML Programs.
    segments : iterable of tuple
        Token ids without pads, and a style vector, for each segment. To check the export, the variant and the
        export both synthesise them. For ML Programs, every size is evaluated on the first segment.
    precision : {"float32", "float16", "int8"}
        Precision of ML Programs.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ParameterError
        The variant runs as one graph, or has no fixed windows; format or precision is unknown; or the folder
        is not empty.
    SynthesisError
        The exported graphs gave samples that are not finite.
    WeightsError
        The weights are missing, `folder` cannot be written, or the samples of the exported graphs differ too
        much from the source's.
    """
    fixed = form in FIXED
    _require_variant(config.variant, fixed=fixed)
    require_known("format", form, FORMATS, "--format")
    mlprogram.require_precision(precision)
    _require_new(folder)
    native = native_operators(config, say)
    decoder = StagedDecoder(config, say=say)
    source = static_folder(config, say) if fixed else artefacts.stages_folder(config, native, say)
    windows = {window.name: window for window in WINDOWS}
    graphs = list(windows) if fixed else sorted(path.stem for path in source.glob("*.onnx"))
    suffix = "onnx" if form == "static" else form
    manifest: dict[str, Any] = json.loads((source / "manifest.json").read_text("utf-8"))
    with whole_or_not_at_all(folder) as making:
        # A decoder reads the manifest; before fixed windows, an application computes the spectrum
        for kept in ("layers.npz", "spectrum.onnx" if fixed else "manifest.json"):
            shutil.copy2(source / kept, making)
        title = f"fixed windows, {form}" if fixed else f"{config.variant} as {form}"
        with step_bar(title, len(graphs) + 1, say is not None) as begins:
            for name in graphs:
                begins(name)
                path = making / f"{name}.{suffix}"
                if form == "ort":
                    make_session(str(source / f"{name}.onnx"), config, library=native.library, save=path)
                elif form == "mlpackage":
                    write_program(source, windows[name], path, precision)
                else:
                    shutil.copy2(source / f"{name}.onnx", path)
            begins("comparing" if fixed else "speaking")
            if fixed:
                of_these: dict[str, Any] = {"files": {name: f"{name}.{suffix}" for name in graphs}}
                of_these |= {"precision": precision} if form == "mlpackage" else {}
                manifest["graphs"] = {name: manifest["graphs"][name] for name in ("spectrum", *graphs)}
                checked = _check_windows(decoder, config, source, making, form, segments, precision)
            else:
                of_these = {
                    "native": native.library is not None,
                    "optimisation": config.optimisation if form == "ort" else "none",
                    "machine": platform.machine(),
                }
                for name in graphs:
                    about = manifest["graphs"][name]
                    about |= {"made_from_sha256": about["sha256"], **_described(making / f"{name}.{form}")}
                checked = speak_alike(decoder, StagedDecoder(config, folder=making), segments)
        manifest["export"] = {"format": form, **of_these, "checked": checked}
        (making / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return manifest


def _require_variant(variant: str, *, fixed: bool) -> None:
    if fixed and variant != "fp32":
        raise ParameterError(
            f"Fixed windows are made of the fp32 weights, not of {variant}.",
            field="variant",
            value=variant,
            allowed="fp32",
            mend="`--precision` says what an ML Program computes in.",
        )
    message = f"The variant {variant!r} is run as it was published: there is nothing to export."
    require_choice("variant", variant, STAGED, message)


def speak_alike(reference: Decoder, candidate: Decoder, segments: Segments) -> dict[str, Any]:
    """Have both decoders speak whole segments, and compare the samples.

    Returns
    -------
    dict
        segments_count, audio_s, differing_samples_count, and agreement_db, the SNR of the segment that
        differs most: None if all samples of all segments are the same.

    Raises
    ------
    SynthesisError
        A sample is not finite.
    WeightsError
        The samples differ too much, or there was nothing to speak.
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
    least = _least_agreement(agreements, "The exported graphs agree with their source")
    return {
        "segments_count": len(agreements),
        "audio_s": round(total / SAMPLE_RATE_HZ, 3),
        "differing_samples_count": differing,
        "agreement_db": round(least, 1) if math.isfinite(least) else None,
    }


def _least_agreement(agreements_db: Sequence[float], what: str) -> float:
    least = min(agreements_db)
    message = f"{what} to {least:.0f} dB only."
    require_range("agreement_db", least, AGREEMENT_LOW_DB, message=message, error=WeightsError)
    return least


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


def _require_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ParameterError(
            f"{folder} is there already.",
            field="--output",
            value=str(folder),
            mend="Name a new folder, or remove it first.",
        )


# ------------------------------------------------------------------------------------ fixed windows


@dataclass(frozen=True, slots=True, eq=False)
class VocoderInputs:
    """The vocoder's inputs for a segment, with scale and shift from predicted statistics."""

    token_ids: tuple[int, ...]
    prosody: Prosody
    scale: Values
    shift: Values

    @classmethod
    def of(cls, decoder: StagedDecoder, token_ids: Sequence[int], style: Values) -> Self:
        """Compute everything before the vocoder for a segment.

        Parameters
        ----------
        decoder : StagedDecoder
        token_ids : sequence of int
            The segment's ids, without pads.
        style : numpy.ndarray
            float32 (1, 256): the style vector that speaks it.
        """
        prosody = decoder.prosody.predict(token_ids, style, 1.0)
        windowed = decoder.windowed
        statistics = windowed.predictor.predict(prosody)
        return cls(tuple(token_ids), prosody, *windowed.vocoder.layers.scale_and_shift(*statistics, style))

    def feed(self, window: StaticWindow, spectrum: Values) -> dict[str, Values]:
        """The inputs of a window in the middle of the segment."""
        start = max(0, (self.prosody.frames - window.frames) // 2)
        return feed_of(window, self.prosody.trunk, spectrum, self.scale, self.shift, start)


def windows_agree_db(decoder: StagedDecoder, fixed: StaticVocoder, sentence: VocoderInputs) -> float:
    """The SNR of fixed windows' samples against those of the engine's own windows, in dB."""
    given = (sentence.prosody, sentence.scale, sentence.shift)
    frames = sentence.prosody.frames
    free, same = (WindowPlan(frames, (*cut.spans(0, frames),)) for cut in (WindowSizes(), fixed.cut))
    reference = np.concatenate([*decoder.vocoder.windows(*given, free)])
    return signal_to_difference_db(reference, np.concatenate([*fixed.windows(*given, same)]))


def evaluated(
    package: Path, window: StaticWindow, fixed: StaticVocoder, sentence: VocoderInputs
) -> dict[str, float]:
    """Read an ML Program and evaluate it in NumPy (see `mil_reference`) on a window of the sentence.

    Returns
    -------
    dict
        operations, without constants; megabytes of the package; error, the largest difference of a sample
        divided by the largest sample; agreement_db, power of the samples divided by that of the differences,
        in dB. The differences are from ONNX Runtime's samples with the graph from which the program was made.
    """
    feed = sentence.feed(window, fixed.spectrum(sentence.prosody))
    reference = fixed.run(window, feed)
    program = mil_reference.read(package)
    samples = mil_reference.evaluate(program, feed)[SAMPLES]
    return {
        "operations": len(program.operations),
        "megabytes": sum(f.stat().st_size for f in package.rglob("*") if f.is_file()) / 1e6,
        "error": float(np.abs(samples - reference).max() / np.abs(reference).max()),
        "agreement_db": signal_to_difference_db(reference.reshape(-1), samples.reshape(-1)),
    }


def _check_windows(
    decoder: StagedDecoder,
    config: EngineConfig,
    source: Path,
    making: Path,
    form: str,
    segments: Segments,
    precision: str,
) -> dict[str, Any]:
    """Check the fixed windows in `making`: ONNX graphs on all segments, ML Programs on the first one. Returns
    the manifest's entries on this check."""
    segments = list(segments if form == "static" else islice(segments, 1))
    if not segments:
        raise ParameterError("There is nothing to compare the export on.", field="segments", value=0)
    fixed = StaticVocoder(source, config)
    if form == "mlpackage":
        return _evaluated(VocoderInputs.of(decoder, *segments[0]), fixed, making, precision)
    make_stages(making / "prosody", config, PADDED)
    padding_error = _padded(making / "prosody", config, *segments[0])
    agreements = [windows_agree_db(decoder, fixed, VocoderInputs.of(decoder, *given)) for given in segments]
    least = _least_agreement(agreements, "The fixed windows agree with those of any length")
    return {
        "segments_count": len(agreements),
        "agreement_db": round(least, 1),
        "padding_error_ratio": padding_error,
    }


def _padded(folder: Path, config: EngineConfig, token_ids: Sequence[int], style: Values) -> float:
    """The largest difference that pads make to an output of the padded prosody, relative to its largest
    value."""
    session = make_session(str(folder / "prosody_padded.onnx"), config)
    given = {"style": style, "speed": np.ones(1, np.float32)}
    count = len(token_ids) + 2
    plain, with_pads = (
        session.run(
            list(signatures.STAGES["prosody"][1]), padding_passes.padded(token_ids, (length,)) | given
        )
        for length in (count, next(n for n in padding_passes.TOKEN_LENGTHS if n >= count))
    )
    if plain[0].shape != with_pads[0].shape:
        raise WeightsError("Pads change how long the padded prosody speaks.")
    error = max(
        float(np.abs(a - b).max() / np.abs(a).max()) for a, b in zip(plain[:3], with_pads[:3], strict=True)
    )
    message = "Pads change what the padded prosody gives, as a part of the largest value."
    require_range("error", error, 0, PADDING_ERROR_HIGH, message, WeightsError)
    return error


def _evaluated(sentence: VocoderInputs, fixed: StaticVocoder, folder: Path, precision: str) -> dict[str, Any]:
    found = {
        window.name: evaluated(folder / f"{window.name}.mlpackage", window, fixed, sentence)
        for window in fixed.cut.sizes
    }
    for name, one in found.items():
        message = f"The ML Program {name} gives other samples than ONNX Runtime, as a part of the largest."
        require_range("error", one["error"], 0, mlprogram.ERROR_HIGH[precision], message, WeightsError)
    return {
        name: {"error_ratio": round(one["error"], 7), "agreement_db": round(one["agreement_db"], 1)}
        for name, one in found.items()
    }
