"""The whole pipeline: on a voice that hums, so that every mistake can be heard, and on the real weights."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import onnxruntime as ort
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, LexiconEntry, Samples, Utterance
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import (
    LanguageError,
    LexiconError,
    ParameterError,
    SettingsError,
    SynthesisError,
    TextError,
    VoiceError,
    WeightsError,
)
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest, StagedDecoder
from kokoro_lab.model.whole_graph import WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.levelling import MEASURABLE_S
from kokoro_lab.weights.store import model_path
from kokoro_lab.weights.voices import Voice, VoiceCache
from tests import tiny_voice

PARAGRAPH = (
    "The kettle is on, and the window is open. Nobody is in. A letter lies on the table, "
    "addressed to somebody who left years ago; who wrote it, we shall never know."
)


def tone_hz(samples: Samples) -> float:
    """The strongest frequency."""
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), 1 << 16))
    return float(np.argmax(spectrum)) * SAMPLE_RATE_HZ / (1 << 16)


class Whole:
    """A decoder that knows no statistics in advance."""

    def predicts(self, voice: Voice) -> str:
        return "a test"


class Silent(Whole):
    """A decoder that gives nothing but silence."""

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        frames = np.full(len(asked.token_ids) + 2, 2)
        return DecodedSegment(frames, iter((np.zeros(int(frames.sum()) * 600, np.float32),)))


class Broken(Whole):
    """A decoder that fails at its `at`-th segment, or gives not-a-number there."""

    def __init__(self, inner: WholeGraph, at: int) -> None:
        self._inner, self._at, self._calls = inner, at, 0

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        self._calls += 1
        if self._calls == self._at:
            raise SynthesisError("The model broke.")
        return self._inner.decode(asked)


class Counting(Whole):
    """A decoder that keeps what it was asked for."""

    details: Mapping[str, str] = {}

    def __init__(self, inner: WholeGraph) -> None:
        self._inner = inner
        self.asked: list[tuple[tuple[int, ...], float]] = []
        self.styles: list[float] = []

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        self.asked.append((tuple(asked.token_ids), asked.speed))
        self.styles.append(float(asked.style[0, 0]))
        return self._inner.decode(asked)


def with_decoder(
    engine: Engine, decoder: object, voices: Callable[[str], Voice] = tiny_voice.voice
) -> Engine:
    parts = replace(engine.parts, decoder=decoder, voices=VoiceCache(voices))  # type: ignore[arg-type]
    return Engine(parts)


def test_each_token_sounds_where_its_timing_says(hum: Engine) -> None:
    clip = hum.synthesize("Zoo, ah.", voice="hum", loudness="none")
    segment = clip.segments[0]
    row = (len(segment.token_ids) - 1) / 1000
    words = zip(segment.words, segment.word_tokens, strict=True)
    spoken = [tokens for word, tokens in words if not word.is_mark]
    for timing, (first, stop) in zip(clip.timings, spoken, strict=True):
        each = (timing.end_s - timing.start_s) / (stop - first)
        for k, token_id in enumerate(segment.token_ids[first:stop]):
            start = timing.start_s + k * each
            piece = clip.samples[int((start + 0.2 * each) * 24_000) : int((start + 0.8 * each) * 24_000)]
            assert tone_hz(piece) == pytest.approx(tiny_voice.token_hz(token_id, row), abs=12)


def test_the_style_row_follows_the_number_of_token_ids(hum: Engine) -> None:
    counting = Counting(hum.decoder)  # type: ignore[arg-type]
    clip = with_decoder(hum, counting).synthesize(PARAGRAPH, voice="hum")
    for (ids, _), first_style, row in zip(
        counting.asked, counting.styles, clip.report.style_rows, strict=True
    ):
        assert row == len(ids) - 1
        assert first_style == pytest.approx(row / 1000, abs=1e-6)


def test_a_voice_sounds_like_itself(hum: Engine) -> None:
    low = hum.synthesize("Ah.", voice="hum", loudness="none").samples
    high = hum.synthesize("Ah.", voice="hum_high", loudness="none").samples
    assert tone_hz(high) - tone_hz(low) == pytest.approx(0.5 * tiny_voice.TONE_PER_STYLE_HZ, abs=15)


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0])
def test_speed_divides_the_length(hum: Engine, speed: float) -> None:
    def spoken_s(at: float) -> float:
        clip = hum.synthesize(PARAGRAPH, voice="hum", speed=at)
        pauses_s = sum(s.pause_after_s + 0.08 for s in clip.segments[:-1])
        return clip.timings[-1].end_s - pauses_s * clip.report.stretches[0]

    frames = tiny_voice.TOKEN_FRAMES
    by_model = min(max(speed, 0.7), 1.5)  # whole frames of a few: so it is 4, 6 or 3 of them
    expected = round(frames / by_model) / frames * by_model / speed
    assert spoken_s(speed) / spoken_s(1.0) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize(
    ("speed", "by_model"),
    [(0.25, 0.7), (0.69, 0.7), (0.7, 0.7), (1.0, 1.0), (1.5, 1.5), (1.51, 1.5), (4.0, 1.5)],
)
def test_the_model_is_asked_for_what_it_can_and_a_stretch_does_the_rest(
    hum: Engine, speed: float, by_model: float
) -> None:
    counting = Counting(hum.decoder)  # type: ignore[arg-type]
    clip = with_decoder(hum, counting).synthesize("One. Two.\n\nThree.", voice="hum", speed=speed)
    assert {asked_speed for _, asked_speed in counting.asked} == {by_model}
    assert clip.report.speed == speed
    assert clip.report.stretches == (by_model / speed,) * len(clip.segments)
    assert (set(clip.report.stretches) == {1.0}) == (0.7 <= speed <= 1.5)


def test_a_stretch_makes_up_for_what_the_model_rounds(hum: Engine) -> None:
    class Told(Whole):
        """Tells how many frames there would be at speed 1; at 1.5 the tiny voice makes 3 of 4, not 2.67."""

        details: Mapping[str, str] = {}

        def decode(self, asked: SegmentRequest) -> DecodedSegment:
            decoded = hum.decoder.decode(asked)
            return replace(decoded, plain_frames=(len(asked.token_ids) + 2) * tiny_voice.TOKEN_FRAMES)

    told = with_decoder(hum, Told())

    def spoken_s(speed: float) -> float:
        timings = told.synthesize("Ah. Oh oh ah.", voice="hum", speed=speed).timings
        return timings[-1].end_s - timings[0].start_s

    for speed in (0.4, 2.0, 3.0):
        assert spoken_s(speed) * speed == pytest.approx(spoken_s(1.0), rel=0.01)
    assert told.synthesize("Ah.", voice="hum", speed=1.5).report.stretches == (1.0,)


def test_who_asks_for_no_stretch_pays_for_none(hum: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kokoro_lab.dsp.stretch", None)
    for speed in (0.7, 1.0, 1.5):
        assert hum.synthesize("Ah.", voice="hum", speed=speed).duration_s > 0
    with pytest.raises(ImportError):
        hum.synthesize("Ah.", voice="hum", speed=1.6)


@pytest.mark.parametrize(("speed", "by_model"), [(0.4, 0.7), (3.0, 1.5)])
def test_words_of_a_stretched_stream_are_where_they_sound(hum: Engine, speed: float, by_model: float) -> None:
    asked = "One. Two.\n\nThree, and four."
    plain = hum.synthesize(asked, voice="hum", speed=by_model, loudness="none")
    clip = hum.synthesize(asked, voice="hum", speed=speed, loudness="none")
    for timing, before in zip(clip.timings, plain.timings, strict=True):
        assert timing.start_s == pytest.approx(before.start_s * by_model / speed, abs=0.06)
        assert timing.end_s == pytest.approx(before.end_s * by_model / speed, abs=0.06)
        a, b = (round(at_s * SAMPLE_RATE_HZ) for at_s in (timing.start_s, timing.end_s))
        assert np.abs(clip.samples[a:b]).mean() > 0.08


def test_not_streaming_is_streaming_joined(hum: Engine) -> None:
    for mode in ("voice", "measured", "none"):
        stream = hum.stream(PARAGRAPH, voice="hum", loudness=mode)
        joined = np.concatenate([chunk.samples for chunk in stream])
        clip = hum.synthesize(PARAGRAPH, voice="hum", loudness=mode)
        np.testing.assert_array_equal(joined, clip.samples)
        assert stream.timings == list(clip.timings)


def test_chunks_are_frames_in_order(hum: Engine) -> None:
    stream = hum.stream(PARAGRAPH, voice="hum", chunk_s=0.04)
    chunks = list(stream)
    assert [c.chunk_id for c in chunks] == list(range(len(chunks)))
    assert {len(c.samples) for c in chunks[:-1]} == {960}
    assert 0 < len(chunks[-1].samples) <= 960
    segments = [c.segment_id for c in chunks]
    assert segments == sorted(segments)
    assert set(segments) == {s.segment_id for s in stream.segments} == {0, 1, 2}
    assert chunks[10].start_s == pytest.approx(0.4)


def test_chunks_are_as_long_as_the_engine_is_configured_for(hum: Engine) -> None:
    engine = Engine(replace(hum.parts, config=replace(hum.config, chunk_ms=80)))
    lengths = [len(chunk.samples) for chunk in engine.stream("The kettle is on.", voice="hum")]
    assert set(lengths[:-1]) == {1920}


def test_a_stream_computes_only_what_is_asked_for(hum: Engine) -> None:
    counting = Counting(hum.decoder)  # type: ignore[arg-type]
    stream = with_decoder(hum, counting).stream(PARAGRAPH, voice="hum")
    assert counting.asked == []
    next(stream)
    assert len(counting.asked) == 1
    stream.close()
    assert list(stream) == []
    assert len(counting.asked) == 1
    with pytest.raises(SynthesisError, match="has not"):
        _ = stream.report


def test_pauses_follow_the_punctuation(hum: Engine) -> None:
    clip = hum.synthesize("The first sentence is here. The second sentence is there.", voice="hum")
    first, _ = clip.segments
    last, following = (t for t in clip.timings if t.text in ("here", "The") and t.start)
    stop_s = tiny_voice.TOKEN_FRAMES * 0.025  # this voice hums even a full stop
    gap_s = following.start_s - last.end_s - stop_s
    assert first.pause_after_s == pytest.approx(0.15)
    assert gap_s == pytest.approx(0.05 + 0.15 + 0.03, abs=0.012)  # trimmed tail, pause, trimmed lead


def test_leading_and_trailing_silence_is_trimmed(hum: Engine) -> None:
    samples = hum.synthesize("Ah.", voice="hum").samples
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    assert loud[0] / SAMPLE_RATE_HZ < 0.1
    assert (len(samples) - 1 - loud[-1]) / SAMPLE_RATE_HZ < 0.1


def test_a_row_of_marks_is_a_pause_not_a_sound(hum: Engine) -> None:
    clip = hum.synthesize(
        "The kettle is on the stove now.\n\n…\n\nNobody is in the kitchen now.", voice="hum"
    )
    assert len(clip.segments) == 2


def test_loudness_of_a_file_is_the_target(hum: Engine) -> None:
    clip = hum.synthesize(PARAGRAPH, voice="hum")
    assert clip.duration_s > MEASURABLE_S
    assert clip.report.loudness == "measured"
    assert integrated_lufs(clip.samples, 24_000) == pytest.approx(-16, abs=0.1)
    assert true_peak_dbtp(clip.samples, 24_000) <= -1


def test_a_short_clip_and_a_stream_get_the_gain_of_the_voice(hum: Engine) -> None:
    clip = hum.synthesize("Ah.", voice="hum")
    stream = hum.stream(PARAGRAPH, voice="hum")
    list(stream)
    assert clip.report.gain_db == stream.report.gain_db == pytest.approx(1.0)


def test_a_stream_is_as_loud_as_its_voice_is_on_average(hum: Engine) -> None:
    raw, levelled = (
        integrated_lufs(hum.stream(PARAGRAPH, voice="hum", loudness=mode).joined().samples, 24_000)
        for mode in ("none", "voice")
    )
    assert levelled - raw == pytest.approx(-16 - tiny_voice.voice("hum").level_lufs, abs=0.01)


def test_each_segment_of_a_stream_has_the_gain_of_its_length(hum: Engine) -> None:
    voice = replace(tiny_voice.voice("hum"), level_slope_lu=-1.0)
    engine = with_decoder(hum, hum.decoder, voices=lambda _: voice)
    text = f"{'The kettle is on the stove. ' * 4}\n\nAnd {'so is a very large pot, ' * 8} as well."
    raw, levelled = (
        engine.stream(text, voice="hum", speed=4.0, loudness=mode).joined() for mode in ("none", "voice")
    )
    gains_db = []
    for segment in levelled.segments:
        timings = [t for t in levelled.timings if t.segment_id == segment.segment_id]
        piece = slice(int(timings[0].start_s * 24_000), int(timings[-1].end_s * 24_000))
        ratio = float(np.abs(levelled.samples[piece]).max() / np.abs(raw.samples[piece]).max())
        gains_db.append(20 * np.log10(ratio))
    wanted_db = [
        -16 - voice.level_at(len(segment.token_ids)) + 1.6 * (1 - stretch)
        for segment, stretch in zip(levelled.segments, levelled.report.stretches, strict=True)
    ]
    assert max(levelled.report.stretches) < 0.5, "what a stretch makes softer is made up for"
    assert max(wanted_db) - min(wanted_db) > 0.3, "the segments are not of one length"
    assert gains_db == pytest.approx(wanted_db, abs=0.01)
    assert levelled.report.gain_db == pytest.approx(wanted_db[0])


def test_a_stream_that_is_turned_up_stays_below_the_peak_limit(hum: Engine) -> None:
    quiet = replace(tiny_voice.voice("hum"), level_lufs=-36.0)
    engine = with_decoder(hum, hum.decoder, voices=lambda _: quiet)
    stream = engine.stream(PARAGRAPH, voice="hum")
    samples = np.concatenate([chunk.samples for chunk in stream])
    assert true_peak_dbtp(samples, 24_000) <= -1
    assert stream.report.limited_db > 3, "there was something to limit"


def test_every_word_of_a_long_text_is_heard_in_its_place(hum: Engine) -> None:
    stream = hum.stream(" ".join([PARAGRAPH] * 3), voice="hum", speed=4.0)
    samples = np.concatenate([chunk.samples for chunk in stream])
    words = [timing for timing in stream.timings if timing.text.isalpha()]
    assert [w.text for w in words] == re.findall(r"[A-Za-z]+", PARAGRAPH) * 3
    for word in words:
        piece = samples[int(word.start_s * 24_000) : int(word.end_s * 24_000)]
        assert np.abs(piece).max() > 0.1


def test_the_same_request_gives_the_same_samples(hum: Engine) -> None:
    first, second = (hum.synthesize(PARAGRAPH, voice="hum").samples for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_many_threads_hear_what_one_hears(hum: Engine) -> None:
    texts = [f"Reader number {i} has arrived, and sits down by the window." for i in range(8)]

    def spoken(text: str) -> Samples:
        return hum.synthesize(text, voice="hum").samples

    alone = [spoken(text) for text in texts]
    with ThreadPoolExecutor(len(texts)) as pool:
        for a, b in zip(alone, pool.map(spoken, texts), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_stream_tells_how_full_its_stages_are(hum: Engine) -> None:
    stream = hum.stream(PARAGRAPH, voice="hum")
    assert stream.fill == {"prepared_segments": 0, "held_samples": 0, "lead_s": 0.0}
    leads_s = []
    while next(stream, None) is not None:
        fill = stream.fill
        assert fill["prepared_segments"] in (0, 1)
        assert fill["held_samples"] >= 0
        leads_s.append(fill["lead_s"])
    assert max(leads_s) > 0.05  # nobody listens in real time here
    assert stream.fill["prepared_segments"] == 0


def test_the_report_adds_up(hum: Engine) -> None:
    stream = hum.stream(Utterance(PARAGRAPH, voice="hum", seed=3))
    chunks = list(stream)
    report = stream.report
    assert report.audio_s == pytest.approx(sum(len(c.samples) for c in chunks) / 24_000)
    stages_s = report.text_s, report.model_s, report.dsp_s
    assert max(stages_s) <= report.compute_s <= sum(stages_s) + 1e-9  # stages may overlap
    assert report.ttfa_s > 0
    assert report.segments == len(stream.segments) == len(report.style_rows)
    assert report.characters == len(PARAGRAPH)
    assert report.active_provider == "CPUExecutionProvider"
    assert report.session["threads"] == 1
    assert "onnxruntime" in report.versions


def test_waiting_listeners_are_not_computing(hum: Engine) -> None:
    slept_s = 0.3
    started = time.perf_counter()
    stream = hum.stream(PARAGRAPH, voice="hum")
    next(stream)
    time.sleep(slept_s)
    list(stream)
    assert stream.report.compute_s <= time.perf_counter() - started - slept_s


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\u200b", " \u2060\t"])
def test_nothing_to_speak_is_an_error(hum: Engine, text: str) -> None:
    with pytest.raises(TextError, match="nothing to speak"):
        hum.synthesize(text, voice="hum")


MARKS = ("...", "?!", "—", "*", ":)", "***", "---", "- - -", "“ ”", "。", "…\n\n…")


@pytest.mark.parametrize("text", MARKS)
@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_marks_alone_are_a_short_silence_that_is_said(hum: Engine, text: str, speed: float) -> None:
    clip = hum.synthesize(text, voice="hum", speed=speed)
    chunks = list(stream := hum.stream(text, voice="hum", speed=speed))
    for samples, report in (
        (clip.samples, clip.report),
        (np.concatenate([chunk.samples for chunk in chunks]), stream.report),
    ):
        assert len(samples) == 2400
        assert not samples.any()
        (said,) = (each for each in report.fallbacks if each.stage == "text")
        assert said.reason == "no word is in this text: 100 ms of silence instead"
        assert (report.segments, report.token_count, report.words) == (0, 0, 0)
        assert np.isnan(report.ttfa_s)
    assert stream.wordless
    assert not clip.timings


@pytest.mark.parametrize(
    ("text", "voice_language", "written"),
    [
        ("Wait --- it cost $100, at 9:30PM.", None, "Wait it cost $100 $100 $100 at 9:30PM 9:30PM 9:30PM"),
        ('He said **bold** "now" (really)!', None, "He said bold now really"),
        ("So, that isn’t it… 🙂 ok", None, "So that isn’t it 🙂 🙂 🙂 ok"),
        ("はい、元気です。「本」", "ja", "はい 元気 です 本"),
        ("¿Qué tal? «Sí», dijo.", "es", "Qué tal Sí dijo"),
    ],
)
def test_word_timings_hold_words_and_no_marks(
    hum: Engine, text: str, voice_language: str | None, written: str
) -> None:
    clip = hum.synthesize(text, voice="hum", language=voice_language)
    assert [text[timing.start : timing.end] for timing in clip.timings] == written.split()
    assert clip.report.words == len(clip.timings)
    assert all(timing.start_s < timing.end_s for timing in clip.timings)
    for timing, following in pairwise(clip.timings):
        assert timing.end_s <= following.start_s
    spoken = {i for timing in clip.timings for i in range(timing.start, timing.end)}
    assert {i for i, character in enumerate(text) if character.isalnum()} <= spoken


def test_a_text_with_a_word_is_not_said_to_have_none(hum: Engine) -> None:
    report = hum.synthesize("... *** Well ...", voice="hum").report
    assert "text" not in {fallback.stage for fallback in report.fallbacks}
    assert report.segments == 1


def test_binary_is_an_error(hum: Engine) -> None:
    with pytest.raises(TextError, match="binary"):
        hum.synthesize("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e" * 20, voice="hum")


def test_emoji_alone_are_named(hum: Engine) -> None:
    assert [t.text for t in hum.synthesize("🎉", voice="hum").timings] == ["party", "popper"]


@pytest.mark.parametrize("speed", [0.0, 0.2, 4.1, float("nan"), -1.0, "fast"])
def test_a_speed_out_of_range_is_an_error(hum: Engine, speed: float) -> None:
    with pytest.raises(ParameterError, match=r"0\.25 to 4\.0"):
        hum.stream("Hello.", voice="hum", speed=speed)


def test_requests_that_cannot_be_spoken_fail_at_once(hum: Engine) -> None:
    with pytest.raises(VoiceError):
        hum.stream("Hello.", voice="nobody")
    with pytest.raises(LanguageError):
        hum.stream("Hello.", voice="hum", language="tlh")
    with pytest.raises(ParameterError, match="loudness"):
        hum.stream("Hello.", voice="hum", loudness="deafening")
    with pytest.raises(ParameterError, match="pitch"):
        hum.stream("Hello.", voice="hum", pitch=2)
    with pytest.raises(ParameterError, match="chunk"):
        hum.stream("Hello.", voice="hum", chunk_s=0.5)
    with pytest.raises(SettingsError, match="fp33"):
        EngineConfig(variant="fp33")


def test_a_silent_model_is_an_error(hum: Engine) -> None:
    with pytest.raises(SynthesisError, match="silent"):
        with_decoder(hum, Silent()).synthesize("Hello.", voice="hum")


def test_a_failure_comes_after_the_audio_before_it(hum: Engine) -> None:
    stream = with_decoder(hum, Broken(hum.decoder, at=2)).stream(PARAGRAPH, voice="hum")  # type: ignore[arg-type]
    heard = []
    with pytest.raises(SynthesisError, match="broke"):
        heard.extend(stream)
    assert heard
    assert {c.segment_id for c in heard} == {0}


def test_not_a_number_is_never_played(tmp_path: Path, hum: Engine) -> None:
    import onnx

    path = tiny_voice.build(tmp_path / "nan.onnx")
    model = onnx.load(path)
    amplitude = next(i for i in model.graph.initializer if i.name == "amplitude")
    amplitude.CopyFrom(onnx.numpy_helper.from_array(np.float32("nan"), "amplitude"))
    onnx.save(model, path)
    engine = with_decoder(hum, WholeGraph(path, EngineConfig(threads=1)))
    with pytest.raises(SynthesisError, match="finite"):
        engine.synthesize("Hello.", voice="hum")


def test_both_spellings_of_inputs_and_outputs_are_understood(tmp_path: Path, hum: Engine) -> None:
    other = WholeGraph(
        tiny_voice.build(tmp_path / "b.onnx", tokens="tokens", audio="audio"), EngineConfig(threads=1)
    )
    np.testing.assert_array_equal(
        with_decoder(hum, other).synthesize("Hello.", voice="hum").samples,
        hum.synthesize("Hello.", voice="hum").samples,
    )


def test_another_model_is_refused(tmp_path: Path) -> None:
    path = tiny_voice.build(tmp_path / "c.onnx", tokens="something")
    with pytest.raises(WeightsError, match="not a Kokoro export"):
        WholeGraph(path, EngineConfig(threads=1))


# On the real weights


@pytest.mark.model
@pytest.mark.parametrize(
    ("variant", "native", "tokens", "audio", "least_db"),
    [
        ("fp32", "auto", "input_ids", "waveform", 100.0),
        ("fp32", "off", "input_ids", "waveform", float("inf")),  # to the last bit
        ("int8-upstream", "off", "tokens", "audio", 100.0),
    ],
)
def test_decoding_equals_onnx_runtime_called_by_hand(
    engine: Engine, variant: str, native: Literal["auto", "off"], tokens: str, audio: str, least_db: float
) -> None:
    path = model_path(variant)
    config = replace(engine.config, variant=variant, native=native)
    decoder = StagedDecoder(config) if variant == "fp32" else WholeGraph(path, config)
    options = ort.SessionOptions()
    options.intra_op_num_threads = config.thread_count
    options.enable_mem_pattern = False
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    voice = engine.voice("af_heart")
    for text in ("Hello there.", PARAGRAPH.split(". ")[2]):
        segment = next(engine.front_end.segments(text, "en-us", lambda _: None))
        style = voice.style(len(segment.token_ids))
        by_hand = session.run(
            [audio],
            {
                tokens: np.array([[0, *segment.token_ids, 0]]),
                "style": style,
                "speed": np.array([1.0], np.float32),
            },
        )[0].reshape(-1)
        decoded = decoder.decode(SegmentRequest(segment.token_ids, style))
        samples = np.concatenate(list(decoded.blocks))
        assert len(samples) == decoded.durations.sum() * DURATION_FRAME_SAMPLES
        assert signal_to_difference_db(by_hand, samples) >= least_db


@pytest.mark.model
def test_real_speech_is_at_the_target_and_repeatable(engine: Engine) -> None:
    clip = engine.synthesize(PARAGRAPH)
    assert 5 < clip.duration_s < 20
    assert integrated_lufs(clip.samples, 24_000) == pytest.approx(-16, abs=0.1)
    assert true_peak_dbtp(clip.samples, 24_000) <= -1
    np.testing.assert_array_equal(engine.synthesize(PARAGRAPH).samples, clip.samples)
    assert all(t.end_s > t.start_s for t in clip.timings if t.text.isalpha())
    assert clip.timings[-1].end_s <= clip.duration_s
    assert all(a.end_s <= b.start_s + 1e-9 for a, b in pairwise(clip.timings))


@pytest.mark.model
def test_real_words_sound_where_their_timings_say(engine: Engine) -> None:
    """Between two words that a comma parts there is silence, and the words around it are loud. A comma has no
    time of its own."""
    clip = engine.synthesize("Listen, because the river never stops.", loudness="none")
    by_word = {t.text: t for t in clip.timings}
    pause = (by_word["Listen"].end_s, by_word["because"].start_s)

    def rms(start_s: float, end_s: float) -> float:
        return float(np.sqrt(np.mean(clip.samples[int(start_s * 24_000) : int(end_s * 24_000)] ** 2)))

    for word in ("Listen", "because"):
        assert rms(pause[0], sum(pause) / 2) < 0.1 * rms(by_word[word].start_s, by_word[word].end_s)


@pytest.mark.model
@pytest.mark.parametrize("speed", [0.25, 4.0])
def test_real_speech_at_both_ends_of_speed(engine: Engine, speed: float) -> None:
    plain = engine.synthesize("Listen to the river.")
    clip = engine.synthesize("Listen to the river.", speed=speed)
    assert (clip.duration_s > 2 * plain.duration_s) == (speed < 1)


@pytest.mark.model
def test_a_full_segment_of_510_token_ids_is_spoken(engine: Engine) -> None:
    ids = (43, 44, 156) * 170
    decoded = engine.decoder.decode(SegmentRequest(ids, engine.voice("af_heart").style(510), 2.0))
    assert len(decoded.durations) == 512
    assert sum(map(len, decoded.blocks)) == decoded.durations.sum() * 600


@pytest.mark.model
def test_a_blend_is_neither_of_its_voices(engine: Engine) -> None:
    text = "Listen to the river."
    heart, sky = (engine.synthesize(text, voice=v).samples for v in ("af_heart", "af_sky"))
    blend = engine.synthesize(text, voice="af_heart(2)+af_sky(1)")
    assert blend.report.voice == "af_heart(2)+af_sky(1)"
    assert len(blend.samples) != len(heart) or not np.allclose(blend.samples, heart, atol=1e-3)
    assert len(blend.samples) != len(sky) or not np.allclose(blend.samples, sky, atol=1e-3)


@pytest.mark.test_all
@pytest.mark.model
def test_two_thousand_characters_without_a_stop_are_all_heard(engine: Engine) -> None:
    words = ("the quick brown fox jumps over lazy dogs near seven grey stones " * 32)[:2000].split()
    stream = engine.stream(Utterance(" ".join(words), speed=4.0))
    list(stream)
    assert [t.text for t in stream.timings] == words
    assert stream.report.segments > 1


def test_the_next_segments_text_is_read_while_this_one_is_decoded(hum: Engine) -> None:
    stream = hum.stream("The first sentence is long enough to stand alone here. " * 6, voice="hum")
    next(stream)
    read_at_first = hum.front_end.cache.figures()["misses"] + hum.front_end.cache.figures()["hits"]
    while len(stream.segments) == 1:
        next(stream)
    read_later = hum.front_end.cache.figures()["misses"] + hum.front_end.cache.figures()["hits"]
    assert 0 <= read_later - read_at_first <= 2  # never more than the next one
    stream.close()


def test_a_mixed_text_is_spoken_and_detection_can_be_turned_off(hum: Engine) -> None:
    text = "We read 日本 and then नमस्ते."
    languages = [
        {
            word.language
            for segment in hum.synthesize(text, voice="hum", detect_languages=mode).segments
            for word in segment.words
        }
        for mode in ("scripts", "off")
    ]
    assert "hi" in languages[0]
    assert languages[1] == {"en-us"}
    with pytest.raises(ParameterError, match="auto, scripts, off"):
        hum.stream(text, voice="hum", detect_languages="guess")


def test_a_request_may_bring_a_lexicon(hum: Engine) -> None:
    clip = hum.synthesize("The zorp is in.", voice="hum", lexicon={"zorp": "zˈu"})
    spoken = {word.text: (word.phonemes, word.source) for s in clip.segments for word in s.words}
    assert spoken["zorp"] == ("zˈu", "lexicon")
    entry = LexiconEntry("*", "zorp", "zˈu")
    assert (
        hum.synthesize(Utterance("The zorp is in.", voice="hum", lexicon=(entry,))).segments == clip.segments
    )
    streamed = hum.stream("The zorp is in.", voice="hum", lexicon=[{"grapheme": "zorp", "phoneme": "zˈu"}])
    list(streamed)
    assert tuple(streamed.segments) == clip.segments
    assert hum.synthesize("The zorp is in.", voice="hum").segments != clip.segments


def test_a_wrong_lexicon_is_refused_before_anything_is_spoken(hum: Engine) -> None:
    with pytest.raises(LexiconError, match="❓"):
        hum.stream("The zorp is in.", voice="hum", lexicon={"zorp": "❓"})


def test_a_lexicon_that_cannot_be_read_is_in_the_report(hum: Engine, tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("no columns of ours\n")
    engine = Engine(replace(hum.parts, front_end=FrontEnd(Lexicons(project=tmp_path / "words.tsv"))))
    clip = engine.synthesize("The kettle is on.", voice="hum")
    assert [(f.stage, "words.tsv" in f.reason) for f in clip.report.fallbacks] == [("lexicon", True)]
    # One that is not there is said where operators look, once: nothing is read otherwise than it would be
    engine = Engine(replace(hum.parts, front_end=FrontEnd(Lexicons(project=tmp_path / "none.tsv"))))
    assert not engine.synthesize("The kettle is on.", voice="hum").report.fallbacks


@pytest.mark.model
def test_a_new_process_begins_to_speak_without_what_measures() -> None:
    """Importing SciPy's signal processing took as long as loading the graphs, and 60 MB."""
    words = (
        "from kokoro_lab.speech.engine import load_engine; next(load_engine().stream('The kettle is on.')); "
    )
    heavy = "{'scipy', 'pandas', 'pyloudnorm', 'matplotlib'} & set(sys.modules)"
    asked = subprocess.run([sys.executable, "-c", f"import sys; {words}print({heavy})"], capture_output=True)
    assert asked.stdout.decode().strip() == "set()", asked.stderr.decode()
