"""How loud speech leaves: the target for a file, the voice's gain for a stream, below the peak limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.datatypes import Clip
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest, WholeGraph
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.levelling import MEASURABLE_S
from kokoro_lab.weights.voices import ENERGY_LU, ENERGY_SLOPE, Voice
from tests import tiny_voice
from tests.speech.decoders import PARAGRAPH, Whole, with_decoder


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
        span = slice(int(timings[0].start_s * 24_000), int(timings[-1].end_s * 24_000))
        ratio = float(np.abs(levelled.samples[span]).max() / np.abs(raw.samples[span]).max())
        gains_db.append(20 * np.log10(ratio))
    wanted_db = [
        -16 - voice.level_at(len(segment.token_ids)) + 1.6 * (1 - stretch)
        for segment, stretch in zip(levelled.segments, levelled.report.stretches, strict=True)
    ]
    assert max(levelled.report.stretches) < 0.5, "what a stretch makes softer is made up for"
    assert max(wanted_db) - min(wanted_db) > 0.3, "the segments are not of one length"
    assert gains_db == pytest.approx(wanted_db, abs=0.01)
    assert levelled.report.gain_db == pytest.approx(wanted_db[0])


class Energetic(Whole):
    """A decoder that predicts an energy; with `at_once`, all of a segment is there at once."""

    details: Mapping[str, str] = {}

    def __init__(self, inner: WholeGraph, *, at_once: bool = False) -> None:
        self._inner, self._at_once = inner, at_once

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        decoded = self._inner.decode(asked)
        later = None if self._at_once else lambda sample: (0, decoded.blocks)
        return replace(decoded, energy=1.5, later=later)


def stream_of(hum: Engine, voice: Voice, *, at_once: bool = False, **options: object) -> Clip:
    engine = with_decoder(hum, Energetic(hum.decoder, at_once=at_once), voices=lambda _: voice)
    return engine.stream(PARAGRAPH, voice="hum", **options).joined()


@pytest.mark.parametrize(("speed", "parts"), [(1.0, 1), (1.25, 1), (1.0, 2)])
def test_the_gain_follows_the_predicted_energy_of_voices_and_blends_at_every_speed(
    hum: Engine, speed: float, parts: int
) -> None:
    """It is 0.5 above what is usual: that is 0.75 LU."""
    voice = replace(tiny_voice.voice("hum"), parts=("hum",) * parts, usual_energy=1.0)
    clip = stream_of(hum, voice, speed=speed)
    octaves = np.log2(max(len(clip.segments[0].token_ids), 50) / 100)
    assert clip.report.gain_db == pytest.approx(1.0 - (0.75 - ENERGY_LU * ENERGY_SLOPE * octaves))


def test_a_short_file_and_its_stream_follow_the_energy_alike(hum: Engine) -> None:
    voice = replace(tiny_voice.voice("hum"), usual_energy=1.0)
    engine = with_decoder(hum, Energetic(hum.decoder), voices=lambda _: voice)
    file, stream = engine.synthesize("Ah.", voice="hum"), engine.stream("Ah.", voice="hum").joined()
    assert file.duration_s < MEASURABLE_S
    assert file.report.gain_db < 0.9, "the energy is above what is usual"
    assert np.array_equal(file.samples, stream.samples)


def test_a_segment_of_a_blend_that_is_there_at_once_is_measured(hum: Engine) -> None:
    """Its voices are said to be 3 dB louder than they are."""
    blend = replace(tiny_voice.voice("hum"), parts=("hum", "hum"), level_lufs=-14.0)
    wrong, measured = (stream_of(hum, blend, at_once=at_once) for at_once in (False, True))
    assert integrated_lufs(wrong.samples, 24_000) < -18
    assert integrated_lufs(measured.samples, 24_000) == pytest.approx(-16, abs=0.3)
    single = stream_of(hum, replace(blend, parts=("hum",)), at_once=True)
    assert np.array_equal(single.samples, wrong.samples), "a voice by itself keeps the gain of its level"


def test_a_stream_that_is_turned_up_stays_below_the_peak_limit(hum: Engine) -> None:
    quiet = replace(tiny_voice.voice("hum"), level_lufs=-36.0)
    engine = with_decoder(hum, hum.decoder, voices=lambda _: quiet)
    stream = engine.stream(PARAGRAPH, voice="hum")
    samples = np.concatenate([chunk.samples for chunk in stream])
    assert true_peak_dbtp(samples, 24_000) <= -1
    assert stream.report.limited_db > 3, "there was something to limit"
