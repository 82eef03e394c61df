"""Windows of fixed sizes: how a segment is cut for them, and that they speak like windows of any length."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.graphs import rewriting, signatures, static_passes
from kokoro_lab.graphs.static_passes import COLUMNS, SPECTRUM, TRUNK
from kokoro_lab.lab.conversion.exports import VocoderInputs, export
from kokoro_lab.lab.conversion.provider_partitions import speak
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import StagedDecoder, fixed_windows
from kokoro_lab.model.static_vocoder import (
    CACHE_KEY,
    WINDOWS,
    StaticVocoder,
    StaticWindow,
    StaticWindows,
    feed_of,
    static_folder,
)
from kokoro_lab.model.windows import WindowPlan, WindowSizes
from kokoro_lab.speech.engine import Engine, load_engine
from tests.sessions.fake_provider import NAME as COREML
from tests.sessions.fake_provider import FakeProvider

AGREEMENT_LOW_DB = 100


def test_windows_grow_and_cover_all_that_is_heard() -> None:
    spans = list(StaticWindows().spans(7, 400))
    assert [stop - start for start, stop in spans] == [12, 40, 120, 120, 101]
    assert spans[0][0] == 7
    assert spans[-1][1] == 400
    assert all(a[1] == b[0] for a, b in pairwise(spans))


def test_a_rest_is_decoded_by_the_smallest_window_that_holds_it() -> None:
    assert [StaticWindows().holding(n).frames for n in (1, 12, 13, 40, 41, 120)] == [12, 12, 40, 40, 120, 120]


def test_nothing_to_decode_is_no_window() -> None:
    assert list(StaticWindows().spans(5, 5)) == []


def plan_of(
    cut: StaticWindows | WindowSizes, frames: int, audible: tuple[int, int] | None = None
) -> WindowPlan:
    return WindowPlan(frames, tuple(cut.spans(*(audible or (0, frames)))))


def test_a_window_begins_where_a_span_does() -> None:
    plan = plan_of(StaticWindows(), 410, (7, 400))
    assert plan.begin(6) == 0
    assert plan.begin(60) == 59


@pytest.mark.parametrize("frames", [0, -3, 254])
def test_a_size_that_core_ml_refuses_is_refused(frames: int) -> None:
    with pytest.raises(ParameterError) as caught:
        StaticWindow(frames)
    assert (caught.value.allowed or "").startswith("1 to 253")


def test_zeros_stand_where_a_window_reaches_over_the_ends() -> None:
    window = StaticWindow(12)
    trunk = np.ones((1, 3, 20), np.float32)
    spectrum = np.ones((1, 2, 20 * COLUMNS + 1), np.float32)
    values = np.zeros(4, np.float32)
    feed = feed_of(window, trunk, spectrum, values, values, 5)
    assert feed[TRUNK].shape == (1, 3, 32)
    assert feed[TRUNK][0, 0].tolist() == [0] * 5 + [1] * 20 + [0] * 7
    assert feed[SPECTRUM].shape[2] == 32 * COLUMNS + 1
    assert np.flatnonzero(feed[SPECTRUM][0, 0]).tolist() == list(range(5 * COLUMNS, 25 * COLUMNS + 1))


def test_samples_come_five_to_a_column() -> None:
    assert static_passes.joined(np.arange(10, dtype=np.float32).reshape(1, 5, 2)).tolist() == [
        0, 2, 4, 6, 8, 1, 3, 5, 7, 9,
    ]  # fmt: skip


def test_the_cache_key_is_one_that_core_ml_takes_and_changes_with_the_size() -> None:
    keys = {window.cache_key for window in WINDOWS}
    assert len(keys) == len(WINDOWS)
    assert all(key.isalnum() and len(key) <= 64 for key in keys)
    assert StaticWindow(12, context=9).cache_key not in keys


@pytest.fixture(scope="module")
def decoder(engine: Engine) -> StagedDecoder:
    assert isinstance(engine.decoder, StagedDecoder)
    return engine.decoder


@pytest.fixture(scope="module")
def folder(engine: Engine) -> Path:
    return static_folder(engine.config)


@pytest.fixture(scope="module")
def fixed(engine: Engine, folder: Path) -> StaticVocoder:
    return StaticVocoder(folder, engine.config)


@pytest.fixture(scope="module")
def sentence(engine: Engine) -> VocoderInputs:
    return speak(engine, "The kettle is on.", "af_heart")


@pytest.mark.model
def test_every_shape_is_fixed_and_nothing_is_worked_out_at_run_time(folder: Path) -> None:
    for window in WINDOWS:
        model = onnx.load(folder / f"{window.name}.onnx")
        inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        known = rewriting.shapes((*inferred.graph.value_info, *inferred.graph.output))
        lengths = [length for shape in known.values() for length in shape or ["unknown"]]
        assert {output for node in model.graph.node for output in node.output} <= set(known)
        assert all(isinstance(n, int) and 0 < n <= static_passes.LONGEST_AXIS for n in lengths)
        assert not {"If", "Shape", "Gather", "Cast", "ScatterND"} & set(rewriting.operators(model))
        assert {e.key: e.value for e in model.metadata_props}[CACHE_KEY] == window.cache_key


@pytest.mark.model
def test_they_speak_like_windows_of_any_length(
    decoder: StagedDecoder, fixed: StaticVocoder, sentence: VocoderInputs
) -> None:
    given = (sentence.prosody, sentence.scale, sentence.shift)
    free, same = (plan_of(cut, sentence.prosody.frames) for cut in (WindowSizes(), fixed.cut))
    reference = np.concatenate([*decoder.vocoder.windows(*given, free)])
    samples = np.concatenate([*fixed.windows(*given, same)])
    assert len(samples) == len(reference)
    assert signal_to_difference_db(reference, samples) >= AGREEMENT_LOW_DB


@pytest.mark.model
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
def test_each_size_gives_the_samples_of_the_segment_as_a_whole(
    decoder: StagedDecoder, fixed: StaticVocoder, sentence: VocoderInputs, window: StaticWindow
) -> None:
    given = (sentence.prosody, sentence.scale, sentence.shift)
    frames = sentence.prosody.frames
    (whole,) = decoder.vocoder.windows(*given, WindowPlan(frames, ((0, frames),)))
    samples = static_passes.joined(fixed.run(window, sentence.feed(window, fixed.spectrum(sentence.prosody))))
    start = max(0, (frames - window.frames) // 2)
    kept = min(window.frames, frames - start) * signatures.TRUNK_FRAME_SAMPLES
    skipped = window.inner_context * signatures.TRUNK_FRAME_SAMPLES
    reference = whole[start * signatures.TRUNK_FRAME_SAMPLES :][:kept]
    assert signal_to_difference_db(reference, samples[skipped : skipped + kept]) >= AGREEMENT_LOW_DB


@pytest.mark.model
def test_silence_around_is_given_as_zeros_and_a_stream_can_begin_later(
    fixed: StaticVocoder, sentence: VocoderInputs
) -> None:
    given = (sentence.prosody, sentence.scale, sentence.shift)
    audible = sentence.prosody.audible
    plan = plan_of(fixed.cut, sentence.prosody.frames, audible)
    blocks = [*fixed.windows(*given, plan)]
    later = [*fixed.windows(*given, plan, begin=audible[0] + WINDOWS[0].frames)]
    assert sum(map(len, blocks)) == sentence.prosody.frames * signatures.TRUNK_FRAME_SAMPLES
    before, after = (
        frames * signatures.TRUNK_FRAME_SAMPLES
        for frames in (audible[0], sentence.prosody.frames - audible[1])
    )
    assert before > 0 < after
    assert not blocks[0][:before].any()
    assert not blocks[-1][-after:].any()
    assert all(np.array_equal(a, b) for a, b in zip(blocks[1:], later, strict=True))


@pytest.mark.test_all
@pytest.mark.model
def test_an_export_is_compared_before_it_counts(
    engine: Engine, decoder: StagedDecoder, sentence: VocoderInputs, tmp_path: Path
) -> None:
    segments = [(sentence.token_ids, sentence.prosody.style)]
    export(engine.config, tmp_path / "graphs", "static", segments)
    manifest = json.loads((tmp_path / "graphs" / "manifest.json").read_text("utf-8"))
    assert manifest["export"]["checked"]["agreement_db"] >= AGREEMENT_LOW_DB
    assert manifest["export"]["checked"]["padding_error_ratio"] <= 1e-5
    assert {f.name for f in (tmp_path / "graphs").iterdir()} == {
        "layers.npz", "manifest.json", "prosody", "spectrum.onnx", *(f"{w.name}.onnx" for w in WINDOWS),
    }  # fmt: skip
    with pytest.raises(ParameterError, match="there already"):
        export(engine.config, tmp_path / "graphs", "static", segments)


TEXT = "The kettle is on, and the window is open."


@pytest.mark.test_all
@pytest.mark.model
def test_core_ml_is_given_fixed_windows_and_speaks_like_the_cpu(engine: Engine, coreml: FakeProvider) -> None:
    """A stream is the same to 100 dB, also if the provider is lost in its midst; a file stays the CPU's."""
    on_coreml = load_engine(config=replace(engine.config, provider="coreml"))
    assert len(coreml.sessions) == len(WINDOWS)
    reference = engine.stream(TEXT, voice="af_heart").joined()
    candidate = on_coreml.stream(TEXT, voice="af_heart").joined()
    assert signal_to_difference_db(reference.samples, candidate.samples) >= AGREEMENT_LOW_DB
    assert candidate.report.active_provider == COREML
    assert candidate.report.session["windows"] == "of fixed sizes, in floats"
    files = [e.synthesize("Hi.", voice="af_heart").samples for e in (engine, on_coreml)]
    assert np.array_equal(*files)
    coreml.sessions[1].breaks_at = 0
    candidate = on_coreml.stream(TEXT, voice="af_heart").joined()
    assert signal_to_difference_db(reference.samples, candidate.samples) >= AGREEMENT_LOW_DB
    assert candidate.report.active_provider == "CPUExecutionProvider"
    assert any(f.stage == "provider" and "lost" in f.reason for f in candidate.report.fallbacks)


def test_windows_of_any_length_stay_where_nothing_wants_fixed_ones() -> None:
    assert fixed_windows(EngineConfig()) is None
    assert fixed_windows(EngineConfig(fixed_windows="off", provider="coreml")) is None


def test_fixed_windows_are_made_of_fp32(tmp_path: Path) -> None:
    config = replace(EngineConfig(), variant="int8")
    with pytest.raises(ParameterError, match="fp32"):
        export(config, tmp_path / "graphs", "static", [])
