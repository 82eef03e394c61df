"""A stream: chunks in order, computed as they are asked for, and whole."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from kokoro_lab.datatypes import Utterance
from kokoro_lab.errors import (
    SynthesisError,
)
from kokoro_lab.speech.engine import Engine
from tests.speech.decoders import PARAGRAPH, Broken, Counting, Silent, with_decoder


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


def test_a_listener_in_real_time_has_as_much_in_hand_however_long_it_listens(
    hum: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, leads_s = [100.0], []
    engine = Engine(replace(hum.parts))  # with cores of its own
    monkeypatch.setattr(engine.parts.cores, "clock", lambda: now_s[0])
    monkeypatch.setattr("kokoro_lab.speech.stream.time", SimpleNamespace(perf_counter=lambda: now_s[0]))
    stream, begun = engine.stream(PARAGRAPH, voice="hum"), list[float]()
    monkeypatch.setattr(stream._ahead, "begin", lambda: begun.append(now_s[0]))
    for chunk in stream:
        leads_s.append(stream.fill["lead_s"])
        now_s[0] += chunk.duration_s
    assert len(leads_s) > 10
    assert set(leads_s[:-1]) == {leads_s[0]}, "one chunk: it takes the next one when it has heard that"
    assert begun, "computing waits for it, so the next segment is prepared in the meantime"


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


def test_the_next_segments_text_is_read_while_this_one_is_decoded(hum: Engine) -> None:
    stream = hum.stream("The first sentence is long enough to stand alone here. " * 6, voice="hum")
    next(stream)
    read_at_first = hum.front_end.cache.figures()["misses"] + hum.front_end.cache.figures()["hits"]
    while len(stream.segments) == 1:
        next(stream)
    read_later = hum.front_end.cache.figures()["misses"] + hum.front_end.cache.figures()["hits"]
    assert 0 <= read_later - read_at_first <= 2  # never more than the next one
    stream.close()
