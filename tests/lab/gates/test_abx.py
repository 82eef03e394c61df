"""The machine listener: what it is given, what it lets pass, and what it must not."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import HELD_OUT
from kokoro_lab.lab.gates import abx, damages
from kokoro_lab.lab.gates.speaking import SpokenPair
from kokoro_lab.lab.listening import PassagePair
from kokoro_lab.lab.listening.result import ListeningResult
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine

needs_dnsmos = pytest.mark.skipif(
    find_spec("speechmos") is None, reason="DNSMOS needs the extra `quality`, which is not installed"
)


@pytest.fixture(scope="module")
def spoken() -> list[SpokenPair]:
    """Three passages of speech, each with itself in 16 bit."""
    samples, rate_hz = soundfile.read(Path(__file__).parents[2] / "metrics/speech.flac", dtype="float32")
    third = len(samples) // 3
    passages = [samples[i * third : (i + 1) * third] for i in range(3)]
    return [
        SpokenPair(
            f"text {i}",
            "af_heart",
            PassagePair(f"text {i}", part, abx._dithered(part), rate_hz),
            "",
            slice(0),
        )
        for i, part in enumerate(passages)
    ]


def test_the_pair_that_is_furthest_apart_is_the_worst_and_heard_at_one_loudness(
    spoken: list[SpokenPair],
) -> None:
    louder = candidates(spoken, lambda samples: samples * np.float32(1.2))
    names = [each.pair.name for each in louder]
    near = {"position": [0.1, 0.7, 0.3], "candidate": 1.0}
    table = pd.DataFrame(near | {"dnsmos_reference": 4.0, "dnsmos_candidate": 3.9}, index=names)
    errors = {"word_errors_candidate": 2, "word_errors_reference": 1}
    words = pd.DataFrame(errors | {"heard_candidate": "a", "heard_reference": "b"}, index=names)
    first, *_ = worst_first(abx.judged_clips(louder, table, words))
    assert (first.name, first.figures["more_word_errors_count"]) == (names[1], 1)
    assert first.figures["dnsmos_change_percent"] == pytest.approx(-2.5)
    assert first.notes["heard of the reference"] == "b"
    assert first.reference is not None
    np.testing.assert_allclose(first.candidate().samples, first.reference().samples, atol=1e-3)


def candidates(spoken: list[SpokenPair], damage) -> list[SpokenPair]:  # type: ignore[no-untyped-def]
    return [e._replace(pair=replace(e.pair, candidate=damage(e.pair.reference))) for e in spoken]


@pytest.mark.test_all
@needs_dnsmos
def test_an_inaudible_change_passes(spoken: list[SpokenPair]) -> None:
    table = abx.measure(spoken)
    assert all(check.passed for check in abx.judge(table))
    assert table.position.max() < 0.05
    assert (table[abx.NOISY] > 20 * table[abx.DITHERED]).all()


@needs_dnsmos
def test_every_fault_put_in_on_purpose_is_caught(spoken: list[SpokenPair]) -> None:
    # Another voice of a text is not another text: three of them must be found
    again = [each._replace(voice="am_michael") for each in spoken]
    found = abx.controls([spoken[0], again[0], *spoken[1:], *again[1:]])
    assert [control.name for control in found if not control.caught] == []
    assert len(found) == 6


@needs_dnsmos
def test_the_anchor_of_noise_is_at_the_far_end(spoken: list[SpokenPair]) -> None:
    table = abx.measure(candidates(spoken, damages.noisy))
    assert table.position.to_numpy() == pytest.approx(1, abs=0.01)


@needs_dnsmos
def test_loudness_alone_is_no_difference(spoken: list[SpokenPair]) -> None:
    table = abx.measure(candidates(spoken, lambda s: s * np.float32(0.7)))
    assert all(check.passed for check in abx.judge(table))
    assert table.position.max() < 0.05


@needs_dnsmos
def test_another_timing_fails_where_it_is_shared_and_is_not_measured_where_it_is_not(
    spoken: list[SpokenPair],
) -> None:
    longer = candidates(spoken, abx._long)
    table = abx.measure(longer)
    shared = {c.name for c in abx.judge(table) if not c.passed}
    assert shared >= {abx.DURATION_CHECK, abx.POSITION_CHECK}
    assert {c.name for c in abx.judge(table, abx.OWN)} == {abx.DNSMOS_CHECK, abx.RESIDUAL_CHECK}
    assert table.duration_difference_s.to_numpy() == pytest.approx(0.025)
    assert table.candidate.isna().all()


def test_both_engines_speak_every_text_and_are_cut_alike(hum: Engine) -> None:
    texts = abx.short_texts("2")
    made = abx.make_pairs(hum, hum, texts, ["hum", "hum_high"])
    assert [(each.text, each.voice) for each in made] == [
        (text.id, voice) for voice in ("hum", "hum_high") for text in texts
    ]
    for each in made:
        np.testing.assert_array_equal(each.pair.reference, each.pair.candidate)
        assert "reference" not in each.pair.name
    assert len({each.pair.reference.tobytes() for each in made}) == 4


def test_it_is_known_what_was_said_and_where_the_longest_word_is(hum: Engine) -> None:
    (text,) = [text for text in abx.short_texts() if text.id == "question"]
    (made,) = abx.make_pairs(hum, hum, [text], ["hum"])
    assert made.said == text.text
    word = made.longest_word
    assert 0 <= word.start < word.stop <= len(made.pair.reference)
    rest = np.delete(made.pair.reference, word)
    assert len(rest) == len(made.pair.reference) - (word.stop - word.start)


def test_what_people_hear_is_spread_over_the_pairs(hum: Engine) -> None:
    made = abx.make_pairs(hum, hum, abx.short_texts("4"), ["hum", "hum_high"])
    assert [pair.name for pair in abx.heard(made, 4)] == [made[i].pair.name for i in (0, 2, 4, 6)]
    assert len(abx.heard(made, 0)) == 8


def test_people_hear_the_same_pairs_whether_or_not_the_others_are_spoken(hum: Engine) -> None:
    texts, voices = abx.short_texts("3"), ["hum", "hum_high"]
    all_spoken = abx.heard(abx.make_pairs(hum, hum, texts, voices), 4)
    alone = abx.make_heard(hum, hum, voices, 4, texts)
    assert [pair.name for pair in alone] == [pair.name for pair in all_spoken]
    for one, other in zip(alone, all_spoken, strict=True):
        np.testing.assert_array_equal(one.candidate, other.candidate)


@pytest.mark.parametrize(
    ("trials", "shape"), [(1, (1, 1)), (6, (6, 1)), (39, (10, 4)), (40, (10, 4)), (41, (9, 5))]
)
def test_a_test_has_ten_pairs_at_most_and_trials_enough(trials: int, shape: tuple[int, int]) -> None:
    assert abx.shape_of(trials) == shape


@pytest.mark.parametrize(
    ("counts", "passes"),
    [
        (dict.fromkeys("abcde", (22, 39)), True),
        (dict.fromkeys("abcde", (4, 8)), True),
        (dict.fromkeys("abcd", (22, 39)), False),  # a listener is missing
        (dict.fromkeys("abcde", (3, 7)), False),  # four trials are
        (dict.fromkeys("abcd", (20, 39)) | {"odd": (9, 39)}, False),
        ({"ada": (19, 39)}, False),  # one pair of ears
        ({"ada": (8, 16)}, False),  # too few trials show nothing
        (dict.fromkeys("abcd", (18, 40)) | {"cy": (31, 40)}, False),  # one of them hears it
        ({}, False),
    ],
)
def test_people_must_show_inaudibility_together(counts: dict[str, tuple[int, int]], passes: bool) -> None:
    checks = abx.human_checks(ListeningResult(counts, {}, planned=5, catches=8))
    assert all(check.passed for check in checks) == passes


@pytest.mark.parametrize(
    ("planned", "catches", "fails"),
    [
        (5, 5, []),
        (
            0,
            8,
            ["human_planned_listeners_count"],
        ),  # open after each listener: it may be stopped when it looks good
        (1, 8, ["human_planned_listeners_count"]),
        (5, 0, ["human_catch_trials_count"]),  # whoever presses keys at random is counted
        (5, 4, ["human_catch_trials_count"]),
    ],
)
def test_people_show_nothing_without_a_rule_and_catch_trials(
    planned: int, catches: int, fails: list[str]
) -> None:
    guessing = ListeningResult(dict.fromkeys("abcde", (20, 40)), {}, planned=planned, catches=catches)
    assert failed(abx.human_checks(guessing)) == fails


def test_texts_are_short_enough_to_be_compared() -> None:
    assert len(abx.short_texts()) >= 15
    assert all(len(text.text) <= abx.LONGEST_CHARACTERS for text in abx.short_texts())


def test_texts_of_some_kinds_alone() -> None:
    kinds = [text.kind for text in abx.short_texts()]
    assert [text.kind for text in abx.short_texts("short")] == ["short"] * kinds.count("short")
    of_two = [text.kind for text in abx.short_texts("code,short")]
    assert of_two == [kind for kind in kinds if kind in ("code", "short")]


@pytest.mark.parametrize("kinds", ["loud", "short,loud", "short,"])
def test_a_kind_that_no_short_text_has_is_refused(kinds: str) -> None:
    with pytest.raises(ParameterError, match=r"no short text of the kind .*short"):
        abx.short_texts(kinds)


def test_a_corpus_gives_its_last_lines(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    fitted = "Fitted.\n" * 3
    corpus.write_text(f"{fitted}\n Two. \n{'Three ' * 40}\n" + "Four.\n" * (HELD_OUT - 2), "utf-8")
    first, second, *rest = abx.short_texts(corpus=str(corpus))
    assert [(t.id, t.text) for t in (first, second)] == [("line 5", "Two."), ("line 7", "Four.")]
    assert len(rest) == HELD_OUT - 3
    assert [t.text for t in abx.short_texts("1", str(corpus))] == ["Two."]


@pytest.mark.parametrize("content", [None, " \n\n"])
def test_a_corpus_without_a_line_is_refused(content: str | None, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    if content is not None:
        corpus.write_text(content, "utf-8")
    with pytest.raises(ParameterError, match="no line of text"):
        abx.short_texts(corpus=str(corpus))


def test_an_unknown_timing_is_refused() -> None:
    with pytest.raises(ParameterError, match="shared, own"):
        abx.engine_of("fp32", "mine")


@pytest.mark.test_all
@pytest.mark.model
def test_int8_told_the_timing_speaks_it_and_left_alone_does_not(engine: Engine) -> None:
    texts = abx.short_texts()[1:2]
    told = abx.make_pairs(engine, abx.engine_of("int8-upstream"), texts, ["af_heart"])
    alone = abx.engine_of("int8-upstream", abx.OWN)
    left = abx.make_pairs(engine, alone, texts, ["af_heart"])
    assert told[0].pair.duration_difference_s == 0
    assert not np.array_equal(told[0].pair.reference, told[0].pair.candidate)
    assert left[0].pair.duration_difference_s != 0
    assert alone.config.variant == "int8-upstream"
