"""The whole pipeline: on a voice that hums, so that every mistake can be heard, and on the real weights."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from kokoro_lab.datatypes import Samples, Utterance
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.speech.engine import Engine
from tests import tiny_voice
from tests.speech.decoders import PARAGRAPH, Counting, Whole, tone_hz, with_decoder


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


@pytest.mark.model
def test_a_new_process_begins_to_speak_without_what_measures() -> None:
    """Importing SciPy's signal processing took as long as loading the graphs, and 60 MB."""
    words = (
        "from kokoro_lab.speech.engine import load_engine; next(load_engine().stream('The kettle is on.')); "
    )
    heavy = "{'scipy', 'pandas', 'pyloudnorm', 'matplotlib'} & set(sys.modules)"
    asked = subprocess.run([sys.executable, "-c", f"import sys; {words}print({heavy})"], capture_output=True)
    assert asked.stdout.decode().strip() == "set()", asked.stderr.decode()
