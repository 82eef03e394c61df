"""Word errors: counted fairly, summed over words and not over clips, and heard by a real Whisper."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.errors import MissingExtra, ParameterError, WeightsError
from kokoro_lab.metrics import intelligibility
from kokoro_lab.metrics.intelligibility import Recogniser, count_errors, joined, listen, units, wrong_words
from kokoro_lab.speech.engine import Engine

pytestmark = pytest.mark.skipif(
    find_spec("faster_whisper") is None or find_spec("jiwer") is None,
    reason="word errors need the extra `quality`, which is not installed",
)

SAID = "The ferry leaves at nine, and nobody is on the pier."
PLAIN = "The train leaves in the morning, and nobody is on the platform."
"""No word of it has a double: a ferry is a fairy to Whisper on one processor and not on another."""


class Dictated:
    """A recogniser that hears what it is told to."""

    def __init__(self, hypothesis: str) -> None:
        self.hypothesis = hypothesis

    def transcribe(self, samples: np.ndarray, sample_rate_hz: int, language: str = "en") -> str:
        return self.hypothesis


def test_the_same_words_have_no_errors() -> None:
    found = listen(
        np.zeros(10, np.float32), 24_000, SAID, Dictated("the ferry leaves at 9 and nobody is on the pier")
    )
    assert found.hypothesis.startswith("the ferry")
    assert found.errors.word_errors == found.errors.character_errors == 0
    assert found.errors.words == 11


@pytest.mark.parametrize(
    ("hypothesis", "missed", "replaced", "added"),
    [
        ("The ferry leaves at nine, and nobody is on pier.", 1, 0, 0),
        ("The fairy leaves at nine, and nobody is on the pier.", 0, 1, 0),
        ("The ferry leaves here at nine, and nobody is on the pier.", 0, 0, 1),
        ("At nine, and nobody is on the pier. The ferry leaves.", 3, 0, 3),
        ("", 11, 0, 0),
    ],
)
def test_each_kind_of_error_is_counted(hypothesis: str, missed: int, replaced: int, added: int) -> None:
    found = count_errors(SAID, hypothesis)
    assert (found.missed, found.replaced, found.added) == (missed, replaced, added)
    assert found.word_errors == missed + replaced + added
    assert found.words == 11
    assert found.character_errors > 0


def test_a_word_that_is_nearly_right_costs_fewer_characters() -> None:
    near, far = (count_errors(SAID, SAID.replace("ferry", word)) for word in ("fairy", "captain"))
    assert near.word_errors == far.word_errors == 1
    assert 0 < near.character_errors < far.character_errors


@pytest.mark.parametrize(
    ("said", "hypothesis"),
    [
        ("I don’t know; she couldn't come.", "I do not know. She could not come."),
        ("It’s late.", "It's late"),
        ("They came in nineteen sixty-three.", "They came in 1963."),
        ("It weighs one hundred thirty-six pounds.", "It weighs 136 pounds."),
        ("Ten thousand men on the twenty-third of May.", "10,000 men on the 23rd of May"),
        ("The rain (if that is rain) has stopped.", "The rain, if that is rain, has stopped."),
        ("They say… it comes by itself.", "They say it comes by itself"),
        ("It left at seven forty-five.", "It left at 7:45."),
        ("At twelve thirty PM on November twenty-two.", "At 12.30 p.m. on November 22."),
        ("At twelve thirty p m.", "At 12:30pm."),
        ("It costs 3.50 a metre.", "It costs 3.50 a meter."),
        ("Mr. Brown met Dr. Allen.", "Mister Brown met Doctor Allen."),
        ("A grey colour — half-finished.", "a gray color, half finished"),
    ],
)
def test_spelling_is_no_error(said: str, hypothesis: str) -> None:
    assert count_errors(said, hypothesis).word_errors == 0
    assert count_errors(hypothesis, said).word_errors == 0


def test_what_is_in_brackets_is_spoken_and_can_be_missed() -> None:
    assert count_errors("The rain (if that is rain) has stopped.", "The rain has stopped.").missed == 4


def test_more_may_be_added_than_was_said() -> None:
    found = count_errors("Stop.", "Stop thank you for watching")
    assert (found.word_errors, found.words) == (4, 1)


@pytest.mark.parametrize("said", ["", " … ", "Hmm.", "👍"])
def test_a_text_without_words_is_refused(said: str) -> None:
    with pytest.raises(ParameterError, match="no words") as caught:
        count_errors(said, "something")
    assert caught.value.allowed


def test_a_folder_without_the_model_names_the_command_and_asks_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def network(*_: object, **__: object) -> None:
        raise AssertionError("a download was tried")

    monkeypatch.setattr("faster_whisper.transcribe.download_model", network)
    with pytest.raises(WeightsError, match="fetch --recogniser"):
        Recogniser(tmp_path / "nowhere")
    for name in intelligibility.MODEL_FILES[1:]:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(WeightsError, match=r"lacks config\.json\."):
        Recogniser(tmp_path)


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("faster_whisper", "jiwer"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"faster_whisper is not installed.*kokoro-lab\[quality\]"):
        Recogniser(tmp_path)
    with pytest.raises(MissingExtra, match=r"jiwer is not installed"):
        count_errors(SAID, SAID)


@pytest.mark.parametrize(
    ("language", "said", "hypothesis"),
    [
        ("en-gb", "The colour of the harbour.", "the color of the harbor"),
        ("es", "¿Cómo está la mañana?", "cómo está la mañana"),
        ("fr", "L’avion est là-bas.", "l'avion est là bas"),
        ("it", "È un'aria fresca.", "è un aria fresca"),
        ("pt-br", "As crianças brincam!", "as crianças brincam"),
        ("ja", "今日は、雨です。", "今日は 雨です"),
        ("zh", "我们今天，下雨了。", "我們今天 下雨了"),
    ],
)
def test_punctuation_and_capitals_are_no_error_in_any_language(
    language: str, said: str, hypothesis: str
) -> None:
    assert count_errors(said, hypothesis, language).word_errors == 0
    assert units(said, language)


@pytest.mark.parametrize(
    ("language", "said", "hypothesis"),
    [
        ("es", "el año pasado", "el ano pasado"),
        ("fr", "il a pêché hier", "il a péché hier"),
        ("ja", "橋を見る", "箸を見る"),
    ],
)
def test_what_marks_tell_apart_is_an_error(language: str, said: str, hypothesis: str) -> None:
    assert count_errors(said, hypothesis, language).word_errors == 1


def test_japanese_is_counted_by_characters() -> None:
    found = count_errors("雨が降る。", "雨降る", "ja")
    assert (found.words, found.missed) == (found.characters, found.character_errors) == (4, 1)
    assert joined(units("雨が降る。", "ja"), "ja") == "雨が降る"


@pytest.mark.parametrize("language", ["hi", "ko", ""])
def test_a_language_whose_words_cannot_be_counted_is_refused(language: str) -> None:
    with pytest.raises(ParameterError, match="cannot be counted") as caught:
        count_errors("ni hao", "ni hao", language)
    assert caught.value.field == "language"
    assert "pt" in str(caught.value.allowed)


def test_wrong_words_are_named_with_what_was_heard() -> None:
    heard = "The fairy leaves here at nine, and nobody is on pier."
    assert wrong_words(SAID, heard) == [("ferry", "fairy"), ("", "here"), ("the", "")]
    assert wrong_words(SAID, SAID) == []


def test_as_many_words_are_wrong_as_errors_are_counted() -> None:
    for heard in ("", "Something else.", SAID + " Thank you.", "at nine nobody the pier"):
        assert len(wrong_words(SAID, heard)) == count_errors(SAID, heard).word_errors


# --------------------------------------------------------------------------------- the real recogniser


@pytest.mark.model
def test_whisper_is_told_the_language(engine: Engine, recogniser: Recogniser) -> None:
    said = "今日は天気がいいので、公園を歩きます。"
    speech = engine.synthesize(said, voice="jf_alpha").samples
    # Of characters, a few of which it may write in kana; told that it is English, it translates
    errors = listen(speech, 24_000, said, recogniser, "ja").errors
    assert errors.word_errors < 0.3 * errors.words
    assert recogniser.transcribe(speech, 24_000, "en").isascii()
    with pytest.raises(ParameterError, match="cannot be counted"):
        recogniser.transcribe(speech, 24_000, "ko")


@pytest.mark.model
def test_whisper_understands_speech(engine: Engine, recogniser: Recogniser) -> None:
    speech = engine.synthesize(PLAIN).samples
    found = listen(speech, 24_000, PLAIN, recogniser)
    assert found.errors.word_errors == 0
    assert found == listen(speech, 24_000, PLAIN, recogniser)


@pytest.mark.model
def test_whisper_misses_what_is_cut_out(engine: Engine, recogniser: Recogniser) -> None:
    clip = engine.synthesize(PLAIN)
    nobody = next(word for word in clip.timings if word.text == "nobody")
    cut = np.delete(clip.samples, slice(round(nobody.start_s * 24_000), round(nobody.end_s * 24_000)))
    found = listen(cut, 24_000, PLAIN, recogniser)
    assert 1 <= found.errors.word_errors <= 3
    assert "nobody" not in found.hypothesis.lower()
    silence = listen(np.zeros(48_000, np.float32), 24_000, PLAIN, recogniser)
    assert silence.errors.word_errors > 0.9 * silence.errors.words


@pytest.mark.model
@pytest.mark.parametrize(
    "samples",
    [np.zeros(0, np.float32), np.array([0.0, np.nan], np.float32), np.zeros((2, 9), np.float32)],
)
def test_what_cannot_be_heard_is_refused(samples: np.ndarray, recogniser: Recogniser) -> None:
    with pytest.raises(ParameterError, match="cannot be measured"):
        recogniser.transcribe(samples, 24_000)
