"""A plan is drawn from a seed: blind, fair, the same again for the same listener."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.listening import ListeningPlan, PassagePair
from kokoro_lab.lab.listening.plan import LISTENING_LUFS, match_loudness, missed_catches, right_answers
from kokoro_lab.metrics import abx
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from tests.lab.listening.tones import RATE_HZ, pair, pairs, tone


def plan(count: int = 4, repeats: int = 4, seed: int = 1) -> ListeningPlan:
    return ListeningPlan(tuple(pairs(count)), repeats, seed)


def test_every_pair_is_heard_once_before_any_is_heard_again() -> None:
    heard = [trial.pair for trial in plan().trials("ada")]
    for start in range(0, 16, 4):
        assert sorted(heard[start : start + 4]) == [0, 1, 2, 3]


@pytest.mark.parametrize(("count", "repeats"), [(4, 4), (5, 3), (1, 1)])
def test_the_reference_is_a_in_half_of_the_trials(count: int, repeats: int) -> None:
    for listener in ("ada", "bo", "cy"):
        firsts = [t.a == "reference" for t in plan(count, repeats).trials(listener)]
        assert abs(2 * sum(firsts) - len(firsts)) <= 1


def test_x_is_a_fair_coin_whatever_a_is() -> None:
    trials = [t for seed in range(100) for t in plan(seed=seed).trials("ada")]
    for side in ("reference", "candidate"):
        tosses = [t.x == "A" for t in trials if t.a == side]
        assert binom.cdf(min(sum(tosses), len(tosses) - sum(tosses)), len(tosses), 0.5) > 0.001


@pytest.mark.parametrize("habit", ["always A", "A and B in turn", "A in exactly half", "the last X again"])
def test_no_habit_of_a_listener_who_hears_nothing_raises_false_alarms(habit: str) -> None:
    random = np.random.default_rng(5)
    alarms = 0
    for seed in range(1500):
        trials = plan(seed=seed).trials("ada")
        answers = {
            "always A": ["A"] * 16,
            "A and B in turn": ["A", "B"] * 8,
            "A in exactly half": ["AB"[i] for i in random.permutation([0, 1] * 8)],
            "the last X again": ["A", *(t.x for t in trials[:-1])],
        }[habit]
        alarms += abx.p_value(right_answers(trials, answers), 16) <= 0.05  # type: ignore[arg-type]
    # 3.84 % of tests of 16; more than this one time in a thousand
    assert alarms <= binom.isf(0.001, 1500, abx.p_value(12, 16))


def test_a_listener_gets_the_same_order_again_and_another_one_another() -> None:
    assert plan().trials("ada") == plan().trials("ada")
    assert plan().trials("ada") != plan().trials("bo")
    assert plan(seed=1).trials("ada") != plan(seed=2).trials("ada")


def test_the_buttons_play_what_the_trial_says() -> None:
    for trial in plan().trials("ada"):
        assert {trial.side("A"), trial.side("B")} == {"reference", "candidate"}
        assert trial.side("A") == trial.a
        assert trial.side("X") == trial.side(trial.x)


def test_right_answers_are_those_that_name_x() -> None:
    trials = plan().trials("ada")
    right = [t.x for t in trials]
    assert right_answers(trials, right) == 16
    assert right_answers(trials, right[:5]) == 5
    assert right_answers(trials, ["B" if x == "A" else "A" for x in right]) == 0


def test_catch_trials_stand_among_the_others_and_change_none_of_them() -> None:
    plain = ListeningPlan(tuple(pairs(4)), 10, 1)
    caught = ListeningPlan(tuple(pairs(4)), 10, 1, catches=8)
    assert (len(plain), len(caught), caught.judged) == (40, 48, 40)
    places: list[int] = []
    for listener in ("ada", "bo", "cy"):
        trials = caught.trials(listener)
        assert [trial for trial in trials if not trial.catch] == plain.trials(listener)
        at = [number for number, trial in enumerate(trials) if trial.catch]
        assert [sum(6 * k <= each < 6 * k + 6 for each in at) for k in range(8)] == [1] * 8
        places += [each % 6 for each in at]
    assert len(set(places)) > 3
    answers = [trial.x for trial in trials]
    assert (right_answers(trials, answers), missed_catches(trials, answers)) == (40, 0)
    wrong = ["B" if x == "A" else "A" for x in answers]
    assert (right_answers(trials, wrong), missed_catches(trials, wrong)) == (0, 8)


def test_catch_trials_are_fair_coins() -> None:
    trials = [t for seed in range(40) for t in ListeningPlan(tuple(pairs(4)), 4, seed, 16).trials("ada")]
    for tosses in ([t.x == "A" for t in trials if t.catch], [t.a == "reference" for t in trials if t.catch]):
        assert binom.cdf(min(sum(tosses), len(tosses) - sum(tosses)), len(tosses), 0.5) > 0.001


@pytest.mark.parametrize("catches", [-1, 17])
def test_catch_trials_are_fewer_than_the_others(catches: int) -> None:
    with pytest.raises(ParameterError, match="catch trials"):
        ListeningPlan(tuple(pairs(4)), 4, 1, catches)


def test_the_hash_changes_with_everything_that_makes_another_test() -> None:
    louder = pairs(4)
    louder[3] = pair("passage 4", hz=720, amplitude=0.1001)
    others = [plan(seed=2), plan(repeats=3), plan(count=3), ListeningPlan(tuple(louder), 4, 1)]
    others.append(ListeningPlan(tuple(pairs(4)), 4, 1, catches=2))
    assert plan().sha256 == plan().sha256
    assert len({plan().sha256, *(other.sha256 for other in others)}) == 6


@pytest.mark.parametrize(
    ("given", "repeats", "seed", "said"),
    [
        ([], 1, 0, "one pair or more"),
        ([pair("a"), pair("a")], 1, 0, "a name of its own"),
        ([pair()], 0, 0, "not a listening test"),
        ([pair()], 401, 0, "not a listening test"),
        ([pair()], 1, -1, "seed"),
    ],
)
def test_what_is_no_test_is_refused(given: list[PassagePair], repeats: int, seed: int, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        ListeningPlan(tuple(given), repeats, seed)


@pytest.mark.parametrize(
    "samples",
    [np.zeros(0, np.float32), np.zeros((9, 2), np.float32), np.zeros(9), np.full(9, np.nan, np.float32)],
)
def test_what_is_no_clip_is_refused(samples: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="candidate"):
        PassagePair("a", tone(440), samples, RATE_HZ)


def test_a_pair_says_how_much_longer_the_candidate_is() -> None:
    assert pair(seconds=0.625).duration_difference_s == pytest.approx(0.025)


@pytest.mark.parametrize("amplitude", [0.02, 0.1, 0.5])
def test_the_candidate_is_as_loud_as_the_reference(amplitude: float) -> None:
    matched = match_loudness(pair(hz=440, amplitude=amplitude))
    assert matched.candidate_gain_db == pytest.approx(20 * np.log10(0.1 / amplitude), abs=0.01)
    assert abs(matched.residual_lu) < 0.001
    for samples in (matched.reference, matched.candidate):
        assert integrated_lufs(samples, RATE_HZ) == pytest.approx(LISTENING_LUFS, abs=0.001)


def test_a_peaky_clip_makes_both_quieter_instead_of_being_limited() -> None:
    peaky = pair(hz=440)
    peaky.candidate[3000] = 0.9
    matched = match_loudness(peaky)
    assert matched.level_lufs < LISTENING_LUFS
    assert true_peak_dbtp(matched.candidate, RATE_HZ) == pytest.approx(-1, abs=0.01)
    assert integrated_lufs(matched.reference, RATE_HZ) == pytest.approx(matched.level_lufs, abs=0.001)
    assert abs(matched.residual_lu) < 0.001


@pytest.mark.parametrize(
    ("candidate", "said"), [(np.zeros(24_000, np.float32), "silent"), (tone(440, seconds=0.3), "too short")]
)
def test_what_has_no_loudness_is_refused(candidate: np.ndarray, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        match_loudness(PassagePair("a", tone(440), candidate, RATE_HZ))
