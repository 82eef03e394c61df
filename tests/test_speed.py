"""On the real weights: a speech is as long as its speed asks for, at the pitch of the model."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine import Engine
from tests.test_ssml_speech import voice_hz

TEXT = "When he came back in the evening, the house was quiet. Nobody had lit the fire."
BY_MODEL = {0.25: 0.7, 0.5: 0.7, 2.0: 1.5, 3.0: 1.5, 4.0: 1.5}


def median_hz(samples: Samples) -> float:
    frames = [samples[at : at + 1200] for at in range(0, len(samples) - 1200, 600)]
    return float(np.nanmedian([voice_hz(frame) for frame in frames]))


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
        assert median_hz(clip.samples) == pytest.approx(median_hz(by_model[models].samples), rel=0.02)
        assert clip.report.stretches == pytest.approx([models / speed] * len(clip.segments), rel=0.15)


@pytest.mark.model
@pytest.mark.parametrize("text", ["The kettle is on.", "Good morning."])
def test_what_the_model_rounds_is_made_up_for_in_few_words(engine: Engine, text: str) -> None:
    plain = engine.synthesize(text, voice="am_michael").timings
    for speed in (0.5, 2.0, 3.0):
        timings = engine.synthesize(text, voice="am_michael", speed=speed).timings
        spoken_s = timings[-1].end_s - timings[0].start_s
        assert spoken_s * speed == pytest.approx(plain[-1].end_s - plain[0].start_s, rel=0.1)
