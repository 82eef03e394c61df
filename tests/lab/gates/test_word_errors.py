"""Word errors as listeners hear them: what is read, what may pass, and what must not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import plots
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import FixtureText, load_rows
from kokoro_lab.lab.gates import damages, word_errors
from kokoro_lab.metrics.intelligibility import LANGUAGES, Recogniser
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.speech.engine import Engine

pytest.importorskip("jiwer", reason="word errors need the extra `quality`, which is not installed")


class Dictated:
    """Knows some recordings by heart; of all others it hears the same words."""

    def __init__(self, known: dict[bytes, str], otherwise: str = "something else altogether") -> None:
        self.known = known
        self.otherwise = otherwise
        self.languages: set[str] = set()

    def transcribe(self, samples: np.ndarray, sample_rate_hz: int, language: str = "en") -> str:
        self.languages.add(language)
        return self.known.get(samples.tobytes(), self.otherwise)


@pytest.fixture(scope="module")
def scribe(hum: Engine) -> Dictated:
    """A recogniser that understands the first three sentences, streamed and not, and nothing else."""
    known = {}
    for text in word_errors.sentences("en", 3):
        for clip in (word_errors.streamed(hum, text.text, "hum"), hum.synthesize(text.text, voice="hum")):
            known[clip.samples.tobytes()] = text.text
    return Dictated(known)


@pytest.fixture(scope="module")
def measured(hum: Engine, scribe: Dictated) -> pd.DataFrame:
    return word_errors.measure(hum, hum, ["hum"], scribe, limit=3)


def table(language: str = "en", *, texts: int = 100, words: int = 12, lost: int = 0) -> pd.DataFrame:
    """Two voices of some texts; the candidate lost a word in `lost` clips, the reference in every 40th."""
    rows = [
        {
            "text": f"text {i}",
            "language": language,
            "voice": voice,
            "said": "nobody is on the pier",
            "words": words,
            "characters": 6 * words,
            "word_errors_reference": int(i % 40 == 0),
            "character_errors_reference": 0,
            "heard_reference": "nobody is on the pier",
        }
        for voice in ("first", "second")
        for i in range(texts)
    ]
    found = pd.DataFrame(rows)
    wrong = found.word_errors_reference + (np.arange(len(found)) < lost)
    heard = ["nobody on the pier" if count else "nobody is on the pier" for count in wrong]
    return found.assign(
        word_errors_candidate=wrong, character_errors_candidate=3 * wrong, heard_candidate=heard
    )


def verdicts(of: pd.DataFrame) -> dict[str, bool]:
    return {check.name: check.passed for check in word_errors.judge(of)}


# ------------------------------------------------------------------------------------------- what is read


def test_there_are_a_hundred_english_sentences_and_some_of_every_other_language() -> None:
    for language in LANGUAGES:
        found = word_errors.sentences(language)
        assert len(found) == (100 if language == "en" else 10)
        assert len({text.text for text in found}) == len(found)
    assert word_errors.sentences("pt-br") == word_errors.sentences("pt")
    assert {row["language"] for row in load_rows("intelligibility")} == set(LANGUAGES)


def test_the_fixture_keeps_its_own_rule() -> None:
    english = word_errors.sentences("en")
    assert word_errors.plain(english) == english
    for language in LANGUAGES:
        assert not any(char.isdigit() for text in word_errors.sentences(language) for char in text.text)


@pytest.mark.parametrize(
    ("line", "is_plain"),
    [
        ("there was an infirmary, properly found and duly looked after.", True),
        ("He said that I was right, and I agreed.", True),
        ("the box had number twenty one painted on it", False),
        ("the box had number 21 painted on it", False),
        ("as the witness Oswald said to the police", False),
        ("He waited (for an hour) near the old gate", False),
        ("not at all now", False),
        ("and so on " * 9, False),
    ],
)
def test_numbers_names_and_odd_lengths_are_left_out(line: str, is_plain: bool) -> None:
    assert bool(word_errors.plain([FixtureText("a", "prose", line.strip())])) is is_plain


def test_a_corpus_takes_the_place_of_the_english_sentences_alone(tmp_path: Path) -> None:
    corpus = tmp_path / "prose.txt"
    corpus.write_text("the old gate was never painted again.\nMr. Brown had 3 hats and a stick.\n", "utf-8")
    assert [text.id for text in word_errors.sentences("en-gb", corpus=str(corpus))] == ["line 1"]
    assert word_errors.sentences("es", corpus=str(corpus)) == word_errors.sentences("es")
    corpus.write_text("21 42\n", "utf-8")
    with pytest.raises(ParameterError, match="no plain sentence"):
        word_errors.sentences("en", corpus=str(corpus))


def test_a_language_that_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be counted"):
        word_errors.sentences("ko")


def test_voices_are_named_or_all_of_the_languages_that_can_be_counted() -> None:
    assert word_errors.voices_of("af_heart, bf_emma", "") == ["af_heart", "bf_emma"]
    assert word_errors.voices_of("", "ef_dora") == ["ef_dora"]
    assert {name[0] for name in word_errors.voices_of("all", "")} == {"a", "b"}
    assert {name[0] for name in word_errors.voices_of("", "all")} == set("efijpz")


# --------------------------------------------------------------------------------------------- the limits


def test_what_is_understood_as_well_passes() -> None:
    assert verdicts(table()) == {
        "en_word_error_rate_percent": True,
        "en_word_error_rate_rise_upper_95_points": True,
    }


def test_half_a_point_more_is_too_much() -> None:
    # 12 of 2400 words are the margin itself, so that its confidence limit is over it
    assert verdicts(table(lost=3))["en_word_error_rate_rise_upper_95_points"]
    assert not verdicts(table(lost=12))["en_word_error_rate_rise_upper_95_points"]
    assert verdicts(table(lost=12))["en_word_error_rate_percent"]


def test_a_rate_over_four_percent_fails_though_the_reference_has_it_too() -> None:
    poor = table(lost=100)
    poor["word_errors_reference"] = poor.word_errors_candidate
    assert verdicts(poor) == {
        "en_word_error_rate_percent": False,
        "en_word_error_rate_rise_upper_95_points": True,
    }


def test_of_few_words_one_may_be_lost_and_not_two() -> None:
    few = {"texts": 10, "words": 12}
    assert all(verdicts(table(**few, lost=1)).values())
    assert verdicts(table(**few, lost=2)) == {
        "en_word_error_rate_percent": True,
        "en_words_more_misheard_count": False,
    }


def test_other_languages_are_compared_with_the_reference_alone() -> None:
    french = table("fr", texts=10, words=8)
    french[["word_errors_reference", "word_errors_candidate"]] += 3
    assert verdicts(french) == {"fr_word_error_rate_rise_points": True}
    assert not any(verdicts(table("fr", texts=10, words=8, lost=12)).values())


def test_a_language_cannot_hide_behind_another() -> None:
    both = pd.concat([table(), table("es", texts=10, words=8, lost=15)])
    assert [name for name, passed in verdicts(both).items() if not passed] == [
        "es_word_error_rate_rise_points"
    ]


# ---------------------------------------------------------------------------------------------- the tables


def test_rates_are_of_each_voice_with_their_intervals() -> None:
    found = word_errors.rates(table(lost=30))
    first, second = found.loc["first"], found.loc["second"]
    assert first.candidate_percent == pytest.approx(100 * 33 / 1200)
    assert first.reference_percent == second.candidate_percent == pytest.approx(100 * 3 / 1200)
    assert first.candidate_low < first.candidate_percent < first.candidate_high
    figure = plots.error_rates(found).figure
    assert figure is not None
    (axes,) = figure.axes
    drawn = [height for dots in axes.containers for height in dots[0].get_ydata()]
    assert drawn == pytest.approx([*found.candidate_percent, *found.reference_percent])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["first\nen", "second\nen"]


def test_figures_name_language_and_voice() -> None:
    found = word_errors.figures(table(lost=12))
    assert found["clips_count"] == 200
    assert found["en_word_error_rate_rise_points"] == pytest.approx(0.5)
    assert found["first_word_error_rate_rise_points"] == pytest.approx(1.0)
    assert found["second_word_error_rate_rise_points"] == 0
    assert found["first_words_count"] == 1200


def test_the_words_that_are_lost_most_often_come_first_with_what_was_heard() -> None:
    found = word_errors.worst_words(table(lost=7))
    (row,) = found.itertuples(index=False)
    assert (row.language, row.said, row.heard) == ("en", "is", "")
    assert (row.candidate, row.reference) == (int((table(lost=7).word_errors_candidate > 0).sum()), 0)
    assert word_errors.worst_words(table(texts=3).assign(heard_candidate="Nobody is on the pier!")).empty


def test_the_clips_that_only_the_candidate_lost_come_first() -> None:
    judged = table(lost=2)
    first, second, third, *_, last = worst_first(word_errors.judged_clips(judged, {}))
    assert [clip.figures["more_word_errors_count"] for clip in (first, second, third)] == [1, 1, 0]
    assert third.figures["word_errors_candidate_count"] == 1, "what both lose is before what nobody does"
    assert last.figures["word_errors_candidate_count"] == 0
    assert set(first.notes) == {"heard of the candidate", "heard of the reference"}


# ------------------------------------------------------------------------------- speaking, and the controls


def test_what_is_streamed_and_what_is_written_are_both_heard(measured: pd.DataFrame, hum: Engine) -> None:
    assert list(measured.word_errors_candidate) == list(measured.word_errors_reference) == [0, 0, 0]
    assert set(measured.language) == {"en"}


def test_only_the_sounds_of_the_worst_are_held(
    hum: Engine, scribe: Dictated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sides of each are what was judged: the candidate streamed, the reference whole."""
    monkeypatch.setattr(word_errors, "WORST_COUNT", 2)
    errors = iter([0, 2, 1])
    understood = word_errors.understood
    monkeypatch.setattr(
        word_errors, "understood", lambda *given: understood(*given) | {"word_errors_candidate": next(errors)}
    )
    sounds: dict[int, dict[str, Any]] = {}
    table = word_errors.measure(hum, hum, ["hum"], scribe, limit=3, sounds=sounds)
    assert list(sounds) == [1, 2]
    worst = worst_first(word_errors.judged_clips(table, sounds))[0]
    assert worst.candidate().words == sounds[1]["candidate"].timings
    assert sounds[1]["candidate"].report.streamed
    assert not sounds[1]["reference"].report.streamed


def test_every_fault_put_in_on_purpose_is_caught(
    measured: pd.DataFrame, hum: Engine, scribe: Dictated
) -> None:
    found = word_errors.controls(measured, hum, scribe)
    assert [control.name for control in found if not control.caught] == []
    assert len(found) == 6


def test_clips_that_are_too_short_to_be_damaged_are_passed_over(
    measured: pd.DataFrame, hum: Engine, scribe: Dictated
) -> None:
    short = measured.assign(said=["Yes.", *measured.said[1:]])
    assert len(word_errors.streamed(hum, "Yes.", "hum").samples) < 1.5 * SAMPLE_RATE_HZ
    found = word_errors.controls(short.assign(words=[1, *measured.words[1:]]), hum, scribe)
    assert [control.name for control in found if not control.caught] == []
    assert len(found) == 6


def test_a_loss_over_the_margin_is_put_in_over_all_clips(
    hum: Engine, scribe: Dictated, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many words that the rate decides of the candidate: it must decide of a control, too."""
    enough = table().assign(said=word_errors.sentences("en", 1)[0].text, voice="hum")
    assert enough.words.sum() >= word_errors.ENOUGH_WORDS

    def over() -> list[bool]:
        found = word_errors.controls(enough, hum, scribe)
        return [control.caught for control in found if "margin" in control.name]

    assert over() == [True]
    monkeypatch.setattr(word_errors, "ENGLISH_MARGIN_POINTS", 1.0)
    assert over() == [False], "a gate that allows twice the margin is found out"


def test_the_loss_of_other_languages_is_not_judged_by_the_english_margin(hum: Engine) -> None:
    french = table("fr", texts=10, words=8).assign(voice="hum")
    found = word_errors.controls(french, hum, Dictated({}))
    assert not [control for control in found if "margin" in control.name]


def test_a_recogniser_that_hears_what_it_expects_is_found_out(measured: pd.DataFrame, hum: Engine) -> None:
    # It names one text whatever is played, so that the damaged clips are no worse than the others
    said = measured.said.iloc[0]
    same = measured.assign(said=said, words=measured.words.iloc[0])
    found = word_errors.controls(same, hum, Dictated({}, otherwise=said))
    assert [control.caught for control in found] == [True, True, True, False, False, False]


def test_where_nothing_is_understood_nothing_is_shown(measured: pd.DataFrame, hum: Engine) -> None:
    deaf = measured.assign(word_errors_candidate=measured.words, heard_candidate="")
    found = word_errors.controls(deaf, hum, Dictated({}))
    assert not found[0].caught


def test_the_longest_word_is_found_where_it_is_heard(hum: Engine) -> None:
    clip = word_errors.streamed(hum, "A thin extraordinary ox.", "hum")
    word = damages.longest_word(clip.timings)
    assert np.abs(clip.samples[word]).max() > 0.01
    (timing,) = [each for each in clip.timings if each.text == "extraordinary"]
    assert word.start == round(timing.start_s * 24_000)


@pytest.mark.test_all
@pytest.mark.model
def test_the_reference_is_the_published_file_run_as_one_graph(engine: Engine, recogniser: Recogniser) -> None:
    reference = word_errors.published(engine.config)
    assert isinstance(reference.decoder, WholeGraph)
    found = word_errors.measure(engine, reference, ["af_heart"], recogniser, limit=1)
    assert list(found.word_errors_reference) == [0]
    assert list(found.word_errors_candidate) == [0]
