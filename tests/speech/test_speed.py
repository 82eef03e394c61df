"""On the real weights: a speech is as long as its speed asks for, at the pitch of the model."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import Samples
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.speech.engine import Engine
from tests.speech.test_ssml_speech import voice_hz

TEXT = "When he came back in the evening, the house was quiet. Nobody had lit the fire."
BY_MODEL = {0.25: 0.7, 0.5: 0.7, 2.0: 1.5, 3.0: 1.5, 4.0: 1.5}


def hz_at(samples: Samples, at: int) -> float:
    """The pitch of 50 ms around a sample; not a number where there is no voice."""
    frame = samples[max(0, at - 600) : at + 600]
    return voice_hz(frame) if len(frame) == 1200 and np.abs(frame).mean() > 0.02 else float("nan")


def pitch_ratio(samples: Samples, before: Samples, stretch: float) -> float:
    """The median of how much higher `samples` are than what they were stretched from, place by place."""
    places = np.arange(600, len(before) - 600, 480)
    return float(
        np.nanmedian([hz_at(samples, round(at * stretch)) / hz_at(before, at) for at in places.tolist()])
    )


@pytest.mark.model
@pytest.mark.test_all
@pytest.mark.parametrize("voice", ["af_heart", "am_michael"])
def test_a_speed_divides_the_length_and_leaves_the_pitch(engine: Engine, voice: str) -> None:
    plain = engine.synthesize(TEXT, voice=voice)
    by_model = {speed: engine.synthesize(TEXT, voice=voice, speed=speed) for speed in (0.7, 1.5)}
    for speed, clip in by_model.items():
        assert clip.duration_s * speed == pytest.approx(plain.duration_s, rel=0.1)
        assert set(clip.report.stretches) == {1.0}
    for speed, models in BY_MODEL.items():
        clip = engine.synthesize(TEXT, voice=voice, speed=speed)
        assert clip.duration_s * speed == pytest.approx(plain.duration_s, rel=0.1)
        before = by_model[models].samples
        ratio = pitch_ratio(clip.samples, before, len(clip.samples) / len(before))
        assert ratio == pytest.approx(1.0, abs=0.02), speed
        assert clip.report.stretches == pytest.approx([models / speed] * len(clip.segments), rel=0.15)


@pytest.mark.model
@pytest.mark.test_all
def test_a_stream_is_made_no_softer_by_its_stretch(engine: Engine) -> None:
    def level_lufs(speed: float) -> float:
        streams = (
            engine.stream(f"{TEXT} {TEXT}", voice=voice, speed=speed) for voice in ("af_heart", "am_michael")
        )
        return float(np.mean([integrated_lufs(s.joined().samples, 24_000) for s in streams]))

    at_lufs = level_lufs(1.5)
    for speed in (2.0, 3.0, 4.0):
        assert level_lufs(speed) == pytest.approx(at_lufs, abs=0.4)


@pytest.mark.model
@pytest.mark.parametrize("text", ["The kettle is on.", "Good morning."])
def test_what_the_model_rounds_is_made_up_for_in_few_words(engine: Engine, text: str) -> None:
    plain = engine.synthesize(text, voice="am_michael").timings
    for speed in (0.5, 2.0, 3.0):
        timings = engine.synthesize(text, voice="am_michael", speed=speed).timings
        spoken_s = timings[-1].end_s - timings[0].start_s
        assert spoken_s * speed == pytest.approx(plain[-1].end_s - plain[0].start_s, rel=0.1)


@pytest.mark.model
def test_a_click_that_the_model_adds_behind_two_words_makes_no_clip_longer(engine: Engine) -> None:
    plain = engine.synthesize("Hello there.", voice="bf_emma").duration_s
    for speed in (0.25, 0.8, 1.5, 4.0):
        clip = engine.synthesize("Hello there.", voice="bf_emma", speed=speed)
        assert clip.duration_s * speed == pytest.approx(plain, rel=0.1), speed
