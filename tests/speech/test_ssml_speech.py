"""SSML as it is heard: on a voice that hums and follows what is asked of it, and on the real weights."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples, WordTiming
from kokoro_lab.errors import ParameterError, SsmlError, TextError
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES, frames_of
from kokoro_lab.metrics.perceptual import pesq_wb
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.speech.engine import Engine
from kokoro_lab.weights.voices import Voice, VoiceCache
from tests import tiny_voice

SPEECH = 10 ** (-54 / 20)
"""Of a sample that trimming hears."""
LONGEST_QUIET_S = 0.02
"""Less than this is no pause."""


class Following:
    """A decoder that hums each token id in its own tone, as long and as high as it is asked to."""

    details: Mapping[str, str] = {}

    def predicts(self, voice: Voice) -> str | None:
        return None

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        speed, delivery = asked.speed, asked.delivery
        ids = np.array([0, *asked.token_ids, 0])
        unrounded = np.full((1, len(ids)), 2 * tiny_voice.TOKEN_FRAMES, np.float32)
        durations = frames_of(unrounded / speed) if delivery is None else delivery.durations(unrounded, speed)
        silent = (ids == 0) | (ids == tiny_voice.SPACE_ID)
        tones_hz = np.where(silent, 0.0, tiny_voice.token_hz(1, 0.0) + ids)
        f0 = np.repeat(tones_hz, 2 * durations).astype(np.float32).reshape(1, -1)
        if delivery is not None:
            f0 = delivery.pitched(f0, durations)
        hz = np.repeat(f0.reshape(-1), DURATION_FRAME_SAMPLES // 2)
        samples = 0.1 * np.sin(2 * np.pi * np.cumsum(hz) / SAMPLE_RATE_HZ) * (hz > 0)
        return DecodedSegment(durations, iter(np.split(samples.astype(np.float32), 7 * np.arange(1, 40))))


@pytest.fixture(scope="module")
def following(hum: Engine) -> Engine:
    return Engine(replace(hum.parts, decoder=Following()))  # type: ignore[arg-type]


def speak(engine: Engine, inside: str, **options: object) -> Clip:
    fixed = {"voice": "hum"} if engine.model_sha256 == "hum" else {}
    return engine.synthesize(
        f"<speak>{inside}</speak>", input_format="ssml", **fixed | {"loudness": "none"} | options
    )


def timing(clip: Clip, word: str) -> WordTiming:
    (found,) = (each for each in clip.timings if each.text == word)
    return found


def length_s(clip: Clip, word: str) -> float:
    found = timing(clip, word)
    return found.end_s - found.start_s


def sound(clip: Clip, word: str, edge_s: float = 0.04) -> Samples:
    """The middle of a word."""
    found = timing(clip, word)
    return clip.samples[int((found.start_s + edge_s) * 24_000) : int((found.end_s - edge_s) * 24_000)]


def level_db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(samples.astype(np.float64) ** 2)))


def hz(samples: Samples) -> float:
    """Of a pure tone, by counting how often it rises through zero."""
    rising = np.flatnonzero((samples[:-1] < 0) & (samples[1:] >= 0))
    return float((len(rising) - 1) * SAMPLE_RATE_HZ / (rising[-1] - rising[0]))


def pauses_s(samples: Samples) -> list[float]:
    """What is silent before, within and after the speech."""
    loud = np.flatnonzero(np.abs(samples) >= SPEECH)
    within = np.diff(loud) - 1
    edges = loud[0], len(samples) - 1 - loud[-1]
    return [
        round(float(n) / SAMPLE_RATE_HZ, 6)
        for n in (edges[0], *within[within > LONGEST_QUIET_S * SAMPLE_RATE_HZ], edges[1])
    ]


# --------------------------------------------------------------------------------- on a voice that hums


@pytest.mark.parametrize("asked_s", [0.0, 0.03, 0.079, 0.25, 1.5, 10.0])
def test_a_break_is_exactly_as_long_as_it_is_asked_for(following: Engine, asked_s: float) -> None:
    pause = f"<break time='{asked_s * 1000:g}ms'/>"
    clip = speak(following, f"{pause}zoo,{pause}zoo.{pause}")
    assert pauses_s(clip.samples) == pytest.approx(
        [asked_s] * (3 if asked_s > LONGEST_QUIET_S else 2), abs=1e-4
    )


def test_a_break_shorter_than_a_sample_is_as_if_there_were_none(following: Engine) -> None:
    clip = speak(following, "<break time='0.01ms'/>")
    assert len(clip.samples) == 2400
    assert clip.report.fallbacks[-1].reason == "no word is in this text: 100 ms of silence instead"
    assert len(speak(following, "<break time='1ms'/>").samples) == 24


def test_breaks_in_a_row_add_up_and_speed_does_not_change_them(following: Engine) -> None:
    clip = speak(following, "zoo<break time='0.5s'/> <break strength='x-weak'/>zoo", speed=2.0)
    assert pauses_s(clip.samples)[1] == pytest.approx(0.75, abs=1e-4)


def test_a_break_between_marks_that_nobody_says_is_kept(following: Engine) -> None:
    clip = speak(following, "zoo<break time='0.3s'/>…<break time='0.4s'/>zoo")
    assert pauses_s(clip.samples)[1] == pytest.approx(0.7, abs=1e-4)


def test_no_array_is_as_long_as_a_break(following: Engine) -> None:
    """A minute of silence takes 5.8 MB, if it is one block."""

    def peak_bytes(breaks: str) -> int:
        document = f"<speak>zoo{breaks}zoo</speak>"
        tracemalloc.start()
        try:
            for _ in following.stream(document, voice="hum", input_format="ssml", loudness="voice"):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak_bytes("")  # what is imported late is no part of it
    assert peak_bytes(6 * "<break time='10s'/>") < peak_bytes("<break time='250ms'/>") + 1e6


DOCUMENTS = (
    "zoo <emphasis level='strong'>zoo</emphasis> zoo.",
    "<p>Zoo.</p><p>Zoo <break time='0.5s'/> zoo <break strength='none'/> zoo, zoo.</p><break time='1s'/>",
    "<break time='20ms'/>zoo,<break time='3s'/><prosody rate='80%'>zoo zoo</prosody>."
    "<break/>The <prosody pitch='+20%'>kettle</prosody> is on. <prosody pitch='-2st'>Zoo!</prosody>",
)


@pytest.mark.parametrize("inside", DOCUMENTS)
@pytest.mark.parametrize("loudness", ["none", "voice", "measured"])
def test_a_stream_and_a_file_of_a_document_hold_the_same_samples(
    following: Engine, inside: str, loudness: str
) -> None:
    options = {"voice": "hum", "input_format": "ssml", "loudness": loudness, "statistics": "exact"}
    file = following.synthesize(f"<speak>{inside}</speak>", **options)
    for chunk_s in (0.03, 0.05, 0.12):
        stream = following.stream(f"<speak>{inside}</speak>", chunk_s=chunk_s, **options)
        np.testing.assert_array_equal(np.concatenate([c.samples for c in stream]), file.samples)
        assert stream.timings == list(file.timings)


def test_a_pause_that_is_not_asked_for_is_as_in_plain_text(following: Engine) -> None:
    text = "The kettle is on the stove now. Nobody is in the kitchen now."
    plain = following.synthesize(text, voice="hum", loudness="none")
    np.testing.assert_array_equal(speak(following, text).samples, plain.samples)
    np.testing.assert_array_equal(speak(following, f"<p>{text}</p>").samples, plain.samples)


def test_words_are_heard_where_their_timings_say(following: Engine) -> None:
    clip = speak(following, "<break time='1s'/>zoo<break time='1s'/>ah")
    zoo, ah = clip.timings
    assert (zoo.start_s, ah.start_s - zoo.end_s) == pytest.approx((1.0, 1.0), abs=1e-3)


def test_marks_are_reached_between_words_and_breaks(following: Engine) -> None:
    marked = (
        "<mark name='a'/><break time='1s'/><mark name='b'/>zoo <mark name='c'/>ah<mark name='d'/>,"
        "<mark name='e'/><break time='0.5s'/><mark name='f'/><break time='0.25s'/> one.<mark name='g'/>"
        "<break time='2s'/><mark name='h'/>"
    )
    clip = speak(following, marked)
    zoo, ah, one = clip.timings
    reached = {mark.name: mark.start_s for mark in clip.marks}
    assert list(reached) == list("abcdefgh")
    assert reached == pytest.approx(
        {
            **{"a": 0.0, "b": zoo.start_s, "c": ah.start_s, "d": one.start_s - 0.75},
            **{"e": one.start_s - 0.75, "f": one.start_s - 0.25, "g": one.end_s, "h": one.end_s + 2},
        },
        abs=1e-3,
    )
    source = f"<speak>{marked}</speak>"
    assert [source[mark.start :][12:13] for mark in clip.marks] == list("abcdefgh")
    without = speak(following, re.sub("<mark [^>]*>", "", marked))
    np.testing.assert_array_equal(clip.samples, without.samples)
    assert [m.start_s for m in speak(following, "<break time='1s'/><mark name='a'/>").marks] == [1.0]


def test_a_stream_that_goes_on_tells_of_no_mark_twice(following: Engine) -> None:
    document = (
        "<speak>zoo <mark name='a'/>ah.<mark name='b'/><break/><mark name='c'/>one<mark name='d'/></speak>"
    )
    options = {"voice": "hum", "input_format": "ssml", "loudness": "none"}
    whole = following.stream(document, **options)
    list(whole)
    later = following.stream(document, place=whole.places[1], heard_samples=0, **options)
    list(later)
    assert [mark.segment_id for mark in whole.marks] == [0, 1, 1, 1]
    assert later.marks == whole.marks[1:]


@pytest.mark.parametrize(
    "behind",
    [
        "Ah.</voice>{} One.",
        "Ah.{}</voice> One.",
        "Ah.</voice> {}, one.",
        "Ah</voice>{}<break time='1s'/>One.",
    ],
)
def test_a_mark_at_the_end_of_a_voice_is_reached_before_the_next_word(hum: Engine, behind: str) -> None:
    document = "<speak>Zoo. <voice name='hum_high'>" + behind.format("<mark name='m'/>") + "</speak>"
    options = {"voice": "hum", "input_format": "ssml", "loudness": "none"}
    whole = hum.stream(document, **options)
    list(whole)
    (mark,) = whole.marks
    assert mark.segment_id == 2
    assert mark.start_s == pytest.approx(whole.timings[2].start_s - ("break" in behind))
    for place in whole.places.values():
        later = hum.stream(document, place=place, heard_samples=place.start_samples, **options)
        list(later)
        assert later.marks == [mark]


def test_a_mark_behind_the_last_voice_is_reached_when_it_ends(hum: Engine) -> None:
    clip = speak(hum, "Zoo. <voice name='hum_high'>Ah.</voice><mark name='m'/>")
    assert [(m.segment_id, m.start_s) for m in clip.marks] == [(1, clip.timings[-1].end_s)]


DIALOGUE = "Zoo. <voice name='hum_high'>Ah, zoo.</voice> Zoo zoo."


def test_each_voice_speaks_its_own_turn(hum: Engine) -> None:
    clip = speak(hum, DIALOGUE)
    assert [segment.voice for segment in clip.segments] == [None, "hum_high", None]
    for segment in clip.segments:
        text = f"<speak>{DIALOGUE}</speak>"[segment.start : segment.end]
        alone = hum.synthesize(text, voice=segment.voice or "hum", loudness="none")
        first = next(timing for timing in clip.timings if timing.segment_id == segment.segment_id)
        start = round(first.start_s * SAMPLE_RATE_HZ)
        heard = clip.samples[start : start + 20_000]
        begins = round(alone.timings[0].start_s * SAMPLE_RATE_HZ)
        np.testing.assert_array_equal(heard[:10_000], alone.samples[begins:][:10_000])


@pytest.mark.parametrize("loudness", ["voice", "measured"])
def test_all_voices_are_equally_loud(hum: Engine, loudness: str) -> None:
    """`hum_high` is said to be 6 LU softer than it is, so it is given 6 dB more."""
    softer = VoiceCache(
        lambda spec: replace(tiny_voice.voice(spec), level_lufs=-17.0 - 6.0 * (spec != "hum"))
    )
    engine = Engine(replace(hum.parts, voices=softer))
    document = "Zoo zoo zoo. <voice name='hum_high'>Zoo zoo zoo.</voice> Zoo zoo zoo." * 3
    relative = []
    for each in (hum, engine):
        clip = speak(each, document, loudness=loudness)
        low, high = (
            [t for t in clip.timings if (clip.segments[t.segment_id].voice is None) == plain]
            for plain in (True, False)
        )
        loud = [
            np.concatenate([clip.samples[int(t.start_s * 24e3) : int(t.end_s * 24e3)] for t in timings])
            for timings in (low, high)
        ]
        relative.append(level_db(loud[1]) - level_db(loud[0]))
    assert relative[1] - relative[0] == pytest.approx(6.0, abs=0.3)


def test_a_dialogue_is_the_same_streamed_resumed_and_whole(hum: Engine) -> None:
    document = f"<speak>{DIALOGUE}</speak>"
    options = {"voice": "hum", "input_format": "ssml", "loudness": "voice", "statistics": "exact"}
    whole = hum.synthesize(document, **options)
    stream = hum.stream(document, **options)
    np.testing.assert_array_equal(np.concatenate([c.samples for c in stream]), whole.samples)
    for place in list(stream.places.values())[1:]:
        later = hum.stream(document, place=place, heard_samples=place.start_samples, **options)
        chunks = [chunk for chunk in later if chunk.start_s * 24_000 >= place.start_samples]
        start = round(chunks[0].start_s * 24_000)
        np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), whole.samples[start:])
    other = hum.stream(document.replace("hum_high", "hum"), **options)
    assert not np.array_equal(np.concatenate([c.samples for c in other]), whole.samples)


def test_what_is_not_predicted_of_another_voice_is_exact_and_said(following: Engine) -> None:
    class Doubtful(Following):
        asked: ClassVar[list[bool]] = []

        def predicts(self, voice: Voice) -> str | None:
            return None if voice.name == "hum" else "it was never measured"

        def decode(self, asked: SegmentRequest) -> DecodedSegment:
            self.asked.append(asked.predicted)
            return super().decode(asked)

    engine = Engine(replace(following.parts, decoder=Doubtful()))  # type: ignore[arg-type]
    clip = speak(engine, "Zoo. <voice name='hum_high'>Ah.</voice> Zoo.", statistics="predicted")
    assert Doubtful.asked == [True, False, True]
    (said,) = (each for each in clip.report.fallbacks if each.stage == "statistics")
    assert said.reason == "exact instead of predicted: it was never measured"


def test_inline_marks_are_heard_as_ssml_is(hum: Engine) -> None:
    marked = "Zoo [pause:0.5s] ah. [voice:hum_high] Ah, [zoo](/kˈO/)."
    ssml = "Zoo <break time='0.5s'/> ah. <voice name='hum_high'> Ah, <phoneme ph='kˈO'>zoo</phoneme>.</voice>"
    clip = hum.synthesize(marked, voice="hum", input_format="marked", loudness="none")
    np.testing.assert_array_equal(clip.samples, speak(hum, ssml).samples)
    plain = hum.synthesize(marked, voice="hum", loudness="none")
    assert "pause" in " ".join(timing.text for timing in plain.timings)


def test_a_rate_shortens_its_words_and_leaves_the_others(following: Engine) -> None:
    plain = speak(following, "one two three")
    fast = speak(following, "one <prosody rate='200%'>two</prosody> three")
    assert length_s(fast, "two") == pytest.approx(length_s(plain, "two") / 2)
    assert length_s(fast, "one") == length_s(plain, "one")
    assert length_s(fast, "three") == pytest.approx(length_s(plain, "three"))


def test_a_pitch_raises_its_words_and_leaves_the_others(following: Engine) -> None:
    plain = speak(following, "one two three")
    high = speak(following, "one <prosody pitch='+4st'>two</prosody> three")
    assert hz(sound(high, "two")) / hz(sound(plain, "two")) == pytest.approx(2 ** (4 / 12), rel=0.01)
    for word in ("one", "three"):
        assert hz(sound(high, word)) == pytest.approx(hz(sound(plain, word)), rel=0.01)
    assert [w.start_s for w in high.timings] == [w.start_s for w in plain.timings]


def test_emphasis_is_louder_longer_and_higher(following: Engine) -> None:
    plain, *emphasised = (
        speak(following, f"one <emphasis level='{level}'>two</emphasis> three")
        for level in ("none", "reduced", "moderate", "strong")
    )
    levels = [level_db(sound(clip, "two")) - level_db(sound(plain, "two")) for clip in emphasised]
    assert levels == pytest.approx([-4.0, 2.5, 4.0], abs=0.2)
    lengths = [length_s(clip, "two") for clip in (emphasised[0], plain, *emphasised[1:])]
    assert lengths == sorted(lengths)
    pitches = [hz(sound(clip, "two")) for clip in (emphasised[0], plain, *emphasised[1:])]
    assert pitches == sorted(set(pitches))
    for clip in emphasised:
        assert level_db(sound(clip, "one")) == pytest.approx(level_db(sound(plain, "one")), abs=0.1)


def test_nested_prosody_composes(following: Engine) -> None:
    plain = speak(following, "one two three")
    inside = (
        "<prosody rate='50%' pitch='+10%'>one <prosody rate='200%' pitch='+10%'>two</prosody> three</prosody>"
    )
    nested = speak(following, inside)
    assert length_s(nested, "two") == pytest.approx(length_s(plain, "two"))
    assert length_s(nested, "one") == pytest.approx(2 * length_s(plain, "one"))
    assert hz(sound(nested, "two")) / hz(sound(plain, "two")) == pytest.approx(1.21, rel=0.01)


def test_a_stream_is_the_file(following: Engine) -> None:
    inside = (
        "<break/>The <emphasis>kettle</emphasis> is <prosody rate='fast' pitch='low'>on</prosody>, and "
        "<break time='80ms'/> the window is open. Nobody is in.<break/>"
    )
    stream = following.stream(f"<speak>{inside}</speak>", voice="hum", loudness="none", input_format="ssml")
    clip = speak(following, inside)
    np.testing.assert_array_equal(np.concatenate([c.samples for c in stream]), clip.samples)
    assert stream.timings == list(clip.timings)


def test_silence_that_is_asked_for_is_no_first_audio(following: Engine) -> None:
    stream = following.stream(
        "<speak><break time='2s'/>zoo</speak>", voice="hum", input_format="ssml", loudness="voice"
    )
    next(stream)
    assert np.isnan(stream._ttfa_s)
    list(stream)
    assert stream.report.ttfa_s > 0


def test_what_one_graph_cannot_follow_is_said(hum: Engine) -> None:
    inside = "one <prosody rate='200%' pitch='+2st'>two</prosody> three"
    report = speak(hum, inside).report
    said = {fallback.reason: fallback for fallback in report.fallbacks if fallback.stage == "prosody"}
    assert any("rates of single words" in reason for reason in said)
    assert any("pitch" in reason for reason in said)
    assert all(fallback.start == len("<speak>") for fallback in said.values())


def test_one_graph_follows_a_rate_that_all_words_have(hum: Engine) -> None:
    fast = speak(hum, "<prosody rate='150%'>one two three</prosody>")
    np.testing.assert_array_equal(fast.samples, speak(hum, "one two three", speed=1.5).samples)
    assert "prosody" not in {fallback.stage for fallback in fast.report.fallbacks}


def test_what_is_wrong_is_said_before_anything_is_spoken(hum: Engine) -> None:
    with pytest.raises(SsmlError, match="Line 1, column 8: There is no element <audio>"):
        hum.stream("<speak><audio/></speak>", voice="hum", input_format="ssml")
    with pytest.raises(TextError, match="nothing to speak"):
        hum.synthesize("<speak> <p/> <break strength='none'/></speak>", voice="hum", input_format="ssml")
    with pytest.raises(ParameterError, match="text, ssml, markdown"):
        hum.stream("Hello.", voice="hum", input_format="html")


def test_tags_in_plain_text_stay_text(hum: Engine) -> None:
    texts = [word.text for word in hum.synthesize("a <break/> b", voice="hum").timings]
    assert "break" in " ".join(texts)


PARTS = ["<p>", "</p>", "<s>", "</s>", "<emphasis>", "</emphasis>", "<break/>", "<prosody>", "</prosody>"]
PARTS += ["zoo", ",", ".", "…", "7", "&amp;", "&x;", "<"]
PARTS += ["<break time='20ms'/>", "<break strength='none'/>", "<emphasis level='strong'>", " ", " zoo "]
PARTS += ["<prosody rate='60%'>", "<prosody pitch='-40Hz'>", "<lang xml:lang='en'>", "</lang>"]
PARTS += ["<say-as interpret-as='cardinal'>", "</say-as>", "</phoneme>", "</sub>"]
PARTS += ["<voice name='hum_high'>", "</voice>", "<voice name='nobody'>"]
PARTS += [
    "<mark name='m'/>",
    "<phoneme ph='zu'>",
    "<sub alias='zoo, zoo'>",
    "<say-as interpret-as='characters'>",
]


@given(st.lists(st.sampled_from(PARTS), max_size=14))
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mangled_document_is_spoken_or_a_clear_error(following: Engine, parts: list[str]) -> None:
    with suppress(TextError):
        clip = speak(following, "".join(parts))
        assert (np.abs(clip.samples).max() > SPEECH) == bool(clip.segments)
        assert np.isfinite(clip.samples).all()


@pytest.mark.parametrize(
    ("speed", "rate", "by_model"), [(1.0, 2.0, 1.0), (1.5, 1.3, 1.5), (1.5, 2.0, 1.0), (3.0, 2.0, 1.0)]
)
def test_a_rate_and_a_speed_multiply(following: Engine, speed: float, rate: float, by_model: float) -> None:
    inside = f"one two <prosody rate='{100 * rate:.0f}%'>zoo zoo zoo</prosody> three"
    plain = speak(following, inside.replace(f"{100 * rate:.0f}", "100"))
    clip = speak(following, inside, speed=speed)
    assert clip.report.stretches == (by_model / speed,)
    for timing, before in zip(clip.timings, plain.timings, strict=True):
        asked = min(speed * (rate if timing.text == "zoo" else 1.0), 4.0)
        length_s = timing.end_s - timing.start_s
        assert length_s * asked == pytest.approx(before.end_s - before.start_s, rel=0.15), timing.text


@pytest.mark.parametrize("speed", [0.4, 3.0])
def test_breaks_are_to_the_sample_whatever_the_speed(following: Engine, speed: float) -> None:
    clip = speak(following, "zoo<break time='0.5s'/>zoo", speed=speed)
    loud = np.flatnonzero(np.abs(clip.samples) > SPEECH)
    assert np.diff(loud).max() == pytest.approx(0.5 * SAMPLE_RATE_HZ, abs=40)


# --------------------------------------------------------------------------------- on the real weights


SENTENCE = "That {} evening everybody was {}."
PLAIN_SENTENCE = SENTENCE.format("remarkable", "neighbourly")


def voice_hz(frame: Samples) -> float:
    """The pitch of 50 ms of a voice, by autocorrelation; not a number where there is none."""
    lags = range(SAMPLE_RATE_HZ // 450, SAMPLE_RATE_HZ // 60)
    likeness = [
        float(frame[lag:] @ frame[:-lag])
        / float(np.linalg.norm(frame[lag:]) * np.linalg.norm(frame[:-lag]) + 1e-9)
        for lag in lags
    ]
    # The shortest period that fits as well as any: twice of it fits, too
    best = next(i for i, found in enumerate(likeness) if found > 0.95 * max(likeness))
    best += int(np.argmax(likeness[best : best + 10]))
    return SAMPLE_RATE_HZ / lags[best] if likeness[best] > 0.7 else float("nan")


def semitones(clip: Clip, reference: Clip, word: str) -> float:
    """How much higher a word is than in a clip of the same timing: the median over its voiced moments."""
    size, found = 1_200, []
    starts = [int(timing(each, word).start_s * SAMPLE_RATE_HZ) for each in (clip, reference)]
    for at in range(0, int(length_s(clip, word) * SAMPLE_RATE_HZ) - size, 300):
        here, there = (
            voice_hz(each.samples[start + at : start + at + size])
            for each, start in zip((clip, reference), starts, strict=True)
        )
        found.append(12 * np.log2(here / there))
    return float(np.nanmedian(found))


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Clip:
    return speak(engine, PLAIN_SENTENCE)


@pytest.mark.model
def test_a_document_without_marks_sounds_like_its_text(engine: Engine, plain: Clip) -> None:
    text = engine.synthesize(PLAIN_SENTENCE, loudness="none")
    np.testing.assert_array_equal(plain.samples, text.samples)


@pytest.mark.model
@pytest.mark.parametrize(("rate", "factor"), [("150%", 1.5), ("67%", 0.67)])
def test_a_real_word_is_spoken_at_its_rate_and_the_others_as_before(
    engine: Engine, plain: Clip, rate: str, factor: float
) -> None:
    marked = f"<prosody rate='{rate}'>remarkable</prosody>"
    clip = speak(engine, SENTENCE.format(marked, "neighbourly"))
    assert length_s(plain, "remarkable") / length_s(clip, "remarkable") == pytest.approx(factor, rel=0.03)
    for word in ("was", "evening", "everybody"):
        assert length_s(clip, word) == pytest.approx(length_s(plain, word), abs=1e-6)


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize(
    ("voice", "pitch", "asked"),
    [("af_heart", "+4st", 4.0), ("af_heart", "-4st", -4.0), ("am_michael", "+20%", 12 * np.log2(1.2))],
)
def test_a_real_word_is_spoken_at_its_pitch_and_the_others_as_before(
    engine: Engine, voice: str, pitch: str, asked: float
) -> None:
    plain = speak(engine, PLAIN_SENTENCE, voice=voice)
    marked = f"<prosody pitch='{pitch}'>remarkable</prosody>"
    clip = speak(engine, SENTENCE.format(marked, "neighbourly"), voice=voice)
    assert semitones(clip, plain, "remarkable") == pytest.approx(asked, abs=0.5)
    assert semitones(clip, plain, "everybody") == pytest.approx(0, abs=0.3)
    assert len(clip.samples) == pytest.approx(len(plain.samples), abs=600)


@pytest.mark.model
@pytest.mark.parametrize("statistics", ["exact", "predicted"])
def test_a_break_in_real_speech_is_exactly_as_long_as_it_is_asked_for(
    engine: Engine, statistics: str
) -> None:
    inside = "It was on the table,<break time='250ms'/> and nobody saw it."
    samples = speak(engine, inside, statistics=statistics).samples
    loud = np.flatnonzero(np.abs(samples) >= SPEECH)
    assert 6_000 in np.diff(loud) - 1


@pytest.mark.model
@pytest.mark.parametrize("statistics", ["exact", "predicted"])
def test_a_stream_and_a_file_of_a_real_document_hold_the_same_samples(
    engine: Engine, statistics: str
) -> None:
    document = (
        "<speak>It was <prosody pitch='+2st'>there</prosody>.<break time='250ms'/>And "
        "<emphasis level='strong'>nobody</emphasis> saw it, <prosody rate='80%'>he said</prosody>.</speak>"
    )
    options = {"input_format": "ssml", "statistics": statistics, "loudness": "voice"}
    stream = engine.stream(document, **options)
    samples = np.concatenate([chunk.samples for chunk in stream])
    assert stream.report.statistics == statistics
    np.testing.assert_array_equal(samples, engine.synthesize(document, **options).samples)


@pytest.mark.model
def test_emphasis_on_a_real_word_is_heard(engine: Engine, plain: Clip) -> None:
    marked = "<emphasis level='strong'>remarkable</emphasis>"
    clip = speak(engine, SENTENCE.format(marked, "neighbourly"))
    louder = level_db(sound(clip, "remarkable")) - level_db(sound(plain, "remarkable"))
    assert louder == pytest.approx(4, abs=1.5)
    assert length_s(clip, "remarkable") > 1.1 * length_s(plain, "remarkable")
    assert "prosody" not in {fallback.stage for fallback in clip.report.fallbacks}
    assert level_db(sound(clip, "everybody")) == pytest.approx(level_db(sound(plain, "everybody")), abs=1)


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize("style", ["rate='50%'", "rate='200%'", "pitch='-12%'", "pitch='+15%'"])
def test_predicted_statistics_hold_where_prosody_is_changed(engine: Engine, style: str) -> None:
    inside = SENTENCE.format(f"<prosody {style}>remarkable", "neighbourly</prosody>")
    exact, predicted = (speak(engine, inside, statistics=s) for s in ("exact", "predicted"))
    assert predicted.report.fallbacks == ()
    size = min(len(exact.samples), len(predicted.samples))
    assert pesq_wb(exact.samples[:size], predicted.samples[:size], 24_000) > 4
    assert not np.array_equal(exact.samples, predicted.samples)


@pytest.mark.model
@pytest.mark.parametrize("style", ["pitch='-40%'", "pitch='+50%'"])
def test_where_they_do_not_it_is_decoded_exactly_and_said(engine: Engine, style: str) -> None:
    inside = SENTENCE.format(f"<prosody {style}>remarkable", "neighbourly</prosody>")
    exact, asked = (speak(engine, inside, statistics=s) for s in ("exact", "predicted"))
    np.testing.assert_array_equal(exact.samples, asked.samples)
    (said,) = asked.report.fallbacks
    assert said.stage == "statistics"
    assert "semitones" in said.reason
    assert said.start == inside.index("That") + len("<speak>")


@pytest.mark.parametrize(
    ("inside", "asked_s"),
    [
        ("<break time='250ms'/>", 0.25),
        ("<break time='2s'/> ... <break time='1.5s'/>", 3.5),
        ("...", 0.1),
        ("<s>!</s><s>?</s>", 0.1),
    ],
)
def test_a_document_without_a_word_is_as_long_as_its_breaks(hum: Engine, inside: str, asked_s: float) -> None:
    clip = speak(hum, inside, loudness="auto")
    assert len(clip.samples) == round(asked_s * SAMPLE_RATE_HZ)
    assert not clip.samples.any()
    assert [fallback.stage for fallback in clip.report.fallbacks] == ["text"]


def test_a_region_in_a_document_is_read_as_its_language_and_that_is_said(hum: Engine) -> None:
    inside = "one <lang xml:lang='es-MX'>dos</lang>"
    clip = speak(hum, inside)
    (said,) = (fallback for fallback in clip.report.fallbacks if fallback.stage == "language")
    assert said.reason.startswith("es-MX is read as es")
    np.testing.assert_array_equal(clip.samples, speak(hum, inside.replace("es-MX", "es")).samples)
