"""Words are heard where their timings say."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.speech.engine import Engine
from tests import tiny_voice
from tests.speech.decoders import PARAGRAPH, tone_hz


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
            heard = clip.samples[int((start + 0.2 * each) * 24_000) : int((start + 0.8 * each) * 24_000)]
            assert tone_hz(heard) == pytest.approx(tiny_voice.token_hz(token_id, row), abs=12)


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


def test_every_word_of_a_long_text_is_heard_in_its_place(hum: Engine) -> None:
    stream = hum.stream(" ".join([PARAGRAPH] * 3), voice="hum", speed=4.0)
    samples = np.concatenate([chunk.samples for chunk in stream])
    words = [timing for timing in stream.timings if timing.text.isalpha()]
    assert [w.text for w in words] == re.findall(r"[A-Za-z]+", PARAGRAPH) * 3
    for word in words:
        heard = samples[int(word.start_s * 24_000) : int(word.end_s * 24_000)]
        assert np.abs(heard).max() > 0.1


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
