"""What cannot be spoken is refused before anything is computed; what can is settled once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.datatypes import LexiconEntry, Utterance
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import (
    LanguageError,
    LexiconError,
    ParameterError,
    SettingsError,
    TextError,
    VoiceError,
)
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.speech.engine import Engine

MARKS = ("...", "?!", "—", "*", ":)", "***", "---", "- - -", "“ ”", "。", "…\n\n…")


@pytest.mark.parametrize("text", ["", "   ", "\n\n", "\u200b", " \u2060\t"])
def test_nothing_to_speak_is_an_error(hum: Engine, text: str) -> None:
    with pytest.raises(TextError, match="nothing to speak"):
        hum.synthesize(text, voice="hum")


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
