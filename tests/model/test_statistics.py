"""Windows with given statistics are the whole; predictions are close, and know whom they know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import passes, rewriting, signatures
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.cutting import cut
from kokoro_lab.lab.tuning.reporter import OwnStatistics
from kokoro_lab.metrics.perceptual import pesq_wb, signal_to_difference_db, stoi
from kokoro_lab.model.decoder import SegmentRequest
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.model.prosody import Prosody, ProsodyModel
from kokoro_lab.model.vocoder import Vocoder
from kokoro_lab.model.windows import CONTEXT_FRAMES, WindowPlan, WindowSizes, undivided
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.store import model_path
from kokoro_lab.weights.voices import VoiceCache

Values = npt.NDArray[np.float32]
SENTENCE = "He said that the ships, with all the fishers, have left the harbour for the open sea."


@pytest.mark.parametrize("frames", [1, 9, 16, 17, 30, 200, 1000])
@pytest.mark.parametrize(
    "windows", [WindowSizes(), WindowSizes(first=4, size=20), WindowSizes(first=80, size=80)]
)
def test_windows_cover_every_frame_once(frames: int, windows: WindowSizes) -> None:
    spans = list(windows.spans(0, frames))
    assert [f for a, b in spans for f in range(a, b)] == list(range(frames))
    assert spans[0][1] <= windows.first + CONTEXT_FRAMES
    assert all(b - a <= windows.size + CONTEXT_FRAMES for a, b in spans)


def test_a_voice_that_it_cannot_predict_is_refused_with_the_reason() -> None:
    predictor = StatisticsPredictor.load()
    for parts in (["af_heart"], ["af_nicole"], ["af_heart", "bm_george"]):
        assert predictor.doubts(parts) is None
    assert "not fitted on af_nobody" in str(predictor.doubts(["af_heart", "af_nobody"]))
    assert "whisper" in str(predictor.doubts(["af_heart", "af_nicole"]))
    assert "creaks" in str(predictor.doubts(["bm_lewis"]))


@pytest.fixture(scope="module")
def vocoder() -> Vocoder:
    config = EngineConfig(variant="fp32")
    native = native_operators(config)
    return Vocoder(stages_folder(config, native), config, native)


@pytest.fixture(scope="module")
def layers(vocoder: Vocoder) -> AdainLayers:
    return vocoder.layers


class StatisticsReporter:
    """The model up to its vocoder, and the vocoder's true statistics of what it decodes."""

    def __init__(self, config: EngineConfig) -> None:
        native = native_operators(config)
        folder = stages_folder(config, native)
        self._prosody = ProsodyModel(folder, config, native)
        self._names = AdainLayers.load(folder / "layers.npz").names
        vocoder = cut(onnx.load(model_path("fp32", config.home)))["vocoder"]
        reporting = rewriting.apply(vocoder, (passes.fold_constants, passes.report_statistics))
        self._vocoder = make_session(reporting.SerializeToString(), config)

    def __call__(
        self, token_ids: Sequence[int], style: Values, speed: float
    ) -> tuple[Prosody, Values, Values]:
        """Prosody of a segment, and mean and variance of each distinct channel, float32 (8448,) each."""
        prosody = self._prosody.predict(token_ids, style, speed)
        found = self._vocoder.run(
            list(self._names),
            {
                signatures.TRUNK: prosody.trunk,
                signatures.EXCITATION: prosody.excitation,
                signatures.DECODER_STYLE: style[:, :128],
            },
        )
        flat = np.concatenate([statistic.reshape(-1) for statistic in found])
        half = len(flat) // 2
        return prosody, flat[:half], flat[half:]


@pytest.fixture(scope="module")
def reporter() -> StatisticsReporter:
    return StatisticsReporter(EngineConfig(variant="fp32"))


def spoken(
    engine: Engine, reporter: StatisticsReporter, voice: str, text: str = SENTENCE
) -> tuple[Prosody, np.ndarray, np.ndarray]:
    """Prosody of a sentence, and its true means and variances."""
    segment = next(engine.front_end.segments(text, "en-us", lambda _: None))
    style = engine.voice(voice).style(len(segment.token_ids))
    return reporter(segment.token_ids, style, 1.0)


def decoded(
    vocoder: Vocoder,
    layers: AdainLayers,
    prosody: Prosody,
    mean: np.ndarray,
    variance: np.ndarray,
    **sizes: int,
) -> np.ndarray:
    scale, shift = layers.scale_and_shift(mean, variance, prosody.style)
    plan = WindowPlan(prosody.frames, tuple(WindowSizes(**sizes).spans(0, prosody.frames)))
    return np.concatenate(list(vocoder.windows(prosody, scale, shift, plan)))


@pytest.mark.test_all
@pytest.mark.model
def test_statistics_are_read_off_the_scale_and_shift_that_they_make(
    engine: Engine, layers: AdainLayers, reporter: StatisticsReporter
) -> None:
    prosody, mean, variance = spoken(engine, reporter, "af_heart", "Yes.")
    scale, shift = layers.scale_and_shift(mean, variance, prosody.style)
    found_mean, found_variance = layers.found(prosody.style, scale, shift)
    deviation = np.sqrt(variance) + 1e-3
    assert np.abs((found_mean - mean) / deviation).max() < 1e-3
    assert np.abs((np.sqrt(found_variance.clip(0)) - np.sqrt(variance)) / deviation).max() < 1e-3


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize("variant", ["int8", "int8fp16mix"])
def test_of_a_variant_on_integers_its_own_statistics_are_predicted(
    engine: Engine, reporter: StatisticsReporter, variant: str
) -> None:
    own = OwnStatistics(EngineConfig(variant=variant))
    fp32, shifted = (StatisticsPredictor.load().of_variant(name) for name in ("fp32", variant))
    off: dict[str, list[np.ndarray]] = {"fp32": [], variant: []}
    for voice in ("af_heart", "am_michael", "bf_emma"):
        prosody, *_ = spoken(engine, reporter, voice)
        mean, variance = own(prosody)
        for name, predictor in (("fp32", fp32), (variant, shifted)):
            predicted_mean, predicted_variance = predictor.predict(prosody)
            change = np.log((predicted_variance + 1e-8) / (variance + 1e-8))
            off[name].append(np.concatenate([predicted_mean - mean, change]) / predictor.unit)
    # On average over voices, where the predictor's own errors are not alike
    bias = {name: float(np.abs(np.mean(errors, axis=0)).mean()) for name, errors in off.items()}
    assert bias[variant] < 0.95 * bias["fp32"]


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize("text", [SENTENCE, "Yes."])
def test_windows_with_true_statistics_are_the_whole(
    engine: Engine, vocoder: Vocoder, layers: AdainLayers, reporter: StatisticsReporter, text: str
) -> None:
    prosody, mean, variance = spoken(engine, reporter, "af_heart", text)
    whole = vocoder.whole(prosody)
    assert len(whole) == 300 * prosody.frames
    for size in (16, 40, 200):
        windowed = decoded(vocoder, layers, prosody, mean, variance, first=size, size=size)
        assert len(windowed) == len(whole)
        assert signal_to_difference_db(whole, windowed) > 100


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize("voice", ["af_heart", "am_santa", "bf_emma", "hm_psi"])
@pytest.mark.parametrize("text", ["Hat.", "She sold it.", "And then?"])
def test_what_is_not_decoded_around_the_words_is_silent(
    engine: Engine, vocoder: Vocoder, layers: AdainLayers, reporter: StatisticsReporter, voice: str, text: str
) -> None:
    prosody, mean, variance = spoken(engine, reporter, voice, text)
    whole = vocoder.whole(prosody)
    first, last = prosody.audible
    assert 0 < first < last <= prosody.frames
    around = np.concatenate([whole[: 300 * (first + 2)], whole[300 * last :]])
    assert np.abs(around).max() < 10 ** (-54 / 20)  # where trimming begins to hear
    scale, shift = layers.scale_and_shift(mean, variance, prosody.style)
    cut = np.concatenate(list(vocoder.windows(prosody, scale, shift, undivided(prosody.energy))))
    assert len(cut) == len(whole)
    assert np.abs(cut - whole).max() < 10 ** (-54 / 20)
    inside = slice(300 * (first + 8), 300 * (last - 8))
    assert signal_to_difference_db(whole[inside], cut[inside]) > 95


@pytest.mark.model
def test_a_window_without_context_is_noticed(
    engine: Engine,
    vocoder: Vocoder,
    layers: AdainLayers,
    reporter: StatisticsReporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prosody, mean, variance = spoken(engine, reporter, "af_heart")
    monkeypatch.setattr("kokoro_lab.model.vocoder.CONTEXT_FRAMES", 0)
    windowed = decoded(vocoder, layers, prosody, mean, variance)
    assert signal_to_difference_db(vocoder.whole(prosody), windowed) < 40


@pytest.mark.test_all
@pytest.mark.model
def test_statistics_of_another_voice_are_noticed(
    engine: Engine, vocoder: Vocoder, layers: AdainLayers, reporter: StatisticsReporter
) -> None:
    prosody, _, _ = spoken(engine, reporter, "af_heart")
    _, mean, variance = spoken(engine, reporter, "am_michael")
    wrong = decoded(vocoder, layers, prosody, mean, variance)
    assert pesq_wb(vocoder.whole(prosody), wrong, 24_000) < 3.5


@pytest.mark.model
@pytest.mark.parametrize("voice", ["af_heart", "am_michael", "bf_emma", "af_bella(2)+af_sky(1)"])
def test_predicted_statistics_sound_like_true_ones(engine: Engine, voice: str) -> None:
    segment = next(engine.front_end.segments(SENTENCE, "en-us", lambda _: None))
    style = engine.voice(voice).style(len(segment.token_ids))
    exact, predicted = (
        np.concatenate(
            list(engine.decoder.decode(SegmentRequest(segment.token_ids, style, predicted=p)).blocks)
        )
        for p in (False, True)
    )
    assert pesq_wb(exact, predicted, 24_000) > 4
    assert stoi(exact, predicted, 24_000) > 0.98


@pytest.mark.model
def test_a_skipped_window_is_noticed(engine: Engine) -> None:
    segment = next(engine.front_end.segments(SENTENCE, "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    result = engine.decoder.decode(SegmentRequest(segment.token_ids, style, predicted=True))
    blocks = list(result.blocks)
    assert sum(map(len, blocks)) == 600 * result.durations.sum()
    assert sum(map(len, blocks[:2] + blocks[3:])) != 600 * result.durations.sum()


@pytest.mark.model
def test_a_voice_that_the_predictor_does_not_know_is_decoded_exactly_and_said(engine: Engine) -> None:
    known = engine.voice("af_heart")
    own = replace(known, name="my_own", parts=("my_own",), pack=known.pack * np.float32(1.1))
    other = Engine(replace(engine.parts, voices=VoiceCache(lambda _: own)))
    text = "Listen to the river."
    stream = other.stream(text, voice="my_own", loudness="none")
    samples = np.concatenate([c.samples for c in stream])
    report = stream.report
    assert report.statistics == "exact"
    assert any("my_own" in f.reason for f in report.fallbacks if f.stage == "statistics")
    exact = other.synthesize(text, voice="my_own", loudness="none").samples
    np.testing.assert_array_equal(samples, exact)


@pytest.mark.model
def test_a_stream_and_a_file_agree_where_their_statistics_do(engine: Engine) -> None:
    for statistics in ("predicted", "exact"):
        options = {"statistics": statistics, "loudness": "voice"}
        stream = engine.stream(SENTENCE, **options)
        joined = np.concatenate([c.samples for c in stream])
        np.testing.assert_array_equal(joined, engine.synthesize(SENTENCE, **options).samples)
        assert stream.report.statistics == statistics
