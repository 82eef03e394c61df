"""A test in a folder: begun once, resumed with the same sounds, taken by several, counted at the end."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import soundfile

from kokoro_lab.errors import AnswersError, ParameterError
from kokoro_lab.lab.listening import ListeningSession, PassagePair, open_session
from kokoro_lab.lab.listening.result import ListeningResult
from kokoro_lab.lab.listening.session import BUTTONS
from tests.lab.listening.tones import CANDIDATE_HZ, RATE_HZ, REFERENCE_HZ, pair, pairs, pitch_hz, tone

PLAYS = {"A": 1, "B": 1, "X": 1}


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    """Two pairs, each four times."""
    return open_session(tmp_path / "test", pairs(2), repeats=4, seed=7)


def take(
    session: ListeningSession,
    listener: str,
    trials: int,
    *,
    hears: Literal["all", "nothing", "wrong"] = "all",
) -> None:
    """Answer by listening: compare X with A and with B, sample by sample."""
    sitting = session.sitting(listener)
    for _ in range(trials):
        sounds = {button: played(sitting.wav(button)) for button in BUTTONS}
        x_is_a = np.std(sounds["X"] - sounds["A"]) < np.std(sounds["X"] - sounds["B"])
        answer = hears == "nothing" or x_is_a == (hears == "all")
        sitting.answers.append("A" if answer else "B", PLAYS)


def played(wav: bytes) -> np.ndarray:
    samples, rate_hz = soundfile.read(io.BytesIO(wav), dtype="float32")
    assert rate_hz == RATE_HZ
    return samples


def test_a_listener_who_hears_it_is_right_every_time(session: ListeningSession) -> None:
    take(session, "ada", 8)
    assert session.result().counts == {"ada": (8, 8)}
    take(session, "bo", 8, hears="wrong")
    assert session.result().counts == {"ada": (8, 8), "bo": (0, 8)}


def test_a_and_b_are_reference_and_candidate_in_changing_places(session: ListeningSession) -> None:
    sitting = session.sitting("ada")
    firsts = set()
    for _ in range(8):
        pitch = {button: pitch_hz(played(sitting.wav(button))) for button in BUTTONS}
        assert pitch["X"] in (pitch["A"], pitch["B"])
        assert min(pitch.values()) == pytest.approx(REFERENCE_HZ, abs=2)
        assert max(pitch.values()) >= CANDIDATE_HZ - 2
        firsts.add(pitch["A"] < pitch["B"])
        sitting.answers.append("A", PLAYS)
    assert firsts == {True, False}


def test_x_can_be_played_again_but_is_never_the_same_bytes_as_a_or_b(session: ListeningSession) -> None:
    sitting = session.sitting("ada")
    sounds = {button: sitting.wav(button) for button in BUTTONS}
    assert sounds == {button: sitting.wav(button) for button in BUTTONS}
    assert len(set(sounds.values())) == 3
    assert len({len(sound) for sound in sounds.values()}) == 1
    assert len({sound[:44] for sound in sounds.values()}) == 1


def test_a_catch_trial_is_the_reference_with_and_without_noise(tmp_path: Path) -> None:
    session = open_session(tmp_path / "test", pairs(2), repeats=4, seed=7, catches=2)
    sitting, caught = session.sitting("ada"), 0
    for trial in sitting.trials:
        sounds = {button: played(sitting.wav(button)) for button in BUTTONS}
        if trial.catch:
            caught += 1
            assert {pitch_hz(sound) for sound in sounds.values()} == {pitch_hz(sounds["A"])}
            clean = session.plan.pairs[trial.pair].reference
            noise_db = {
                button: 20 * np.log10(np.std(sound - clean) / np.std(clean))
                for button, sound in sounds.items()
            }
            other = "B" if trial.x == "A" else "A"
            assert noise_db["X"] == pytest.approx(noise_db[trial.x], abs=1)
            assert max(noise_db.values()) == pytest.approx(-20, abs=0.5)
            assert abs(noise_db["X"] - noise_db[other]) > 40
        sitting.answers.append("A", PLAYS)
    assert caught == 2
    assert open_session(session.folder).plan.catches == 2


def test_it_is_resumed_after_the_last_answer_by_another_process(session: ListeningSession) -> None:
    take(session, "ada", 3)
    again = open_session(session.folder, pairs(2), repeats=4, seed=7)
    sitting = again.sitting("ada")
    assert (len(sitting.answers.letters), sitting.answers.trials, sitting.answers.complete) == (3, 8, False)
    take(again, "ada", 5)
    assert open_session(session.folder).sitting("ada").answers.complete
    assert open_session(session.folder).result().counts == {"ada": (8, 8)}


def test_the_folder_alone_is_enough_to_take_the_test_elsewhere(
    session: ListeningSession, tmp_path: Path
) -> None:
    shutil.copytree(session.folder, tmp_path / "elsewhere")
    elsewhere = open_session(tmp_path / "elsewhere")
    assert elsewhere.plan.sha256 == session.plan.sha256
    take(elsewhere, "mia", 8)
    shutil.copy(elsewhere.path_of("mia"), session.folder)
    take(session, "ada", 8)
    assert session.result().counts == {"ada": (8, 8), "mia": (8, 8)}


def test_nothing_in_a_file_name_or_an_answer_tells_what_x_was(session: ListeningSession) -> None:
    take(session, "ada", 8)
    assert {p.name for p in session.folder.iterdir()} == {"test.npz", "ada.jsonl"}
    text = session.path_of("ada").read_text()
    assert not any(word in text for word in ("reference", "candidate", "right", "correct"))


@pytest.mark.parametrize("changed", [{"repeats": 3}, {"seed": 8}])
def test_answers_to_a_changed_plan_are_refused(session: ListeningSession, changed: dict[str, int]) -> None:
    take(session, "ada", 3)
    with pytest.raises(AnswersError, match="another test") as caught:
        open_session(session.folder, pairs(2), **{"repeats": 4, "seed": 7, **changed})
    assert "Give the parameters that it was begun with" in str(caught.value)
    assert len(open_session(session.folder).sitting("ada").answers.letters) == 3


@pytest.mark.parametrize("given", [pairs(3), [pairs(1)[0], pair("passage 2", hz=900)], pairs(2)[::-1]])
def test_other_sounds_are_refused_once_there_are_answers(
    session: ListeningSession, given: list[PassagePair]
) -> None:
    take(session, "ada", 1)
    with pytest.raises(AnswersError, match="not those of the test") as caught:
        open_session(session.folder, given, repeats=4, seed=7)
    assert "new folder" in str(caught.value)


def test_sounds_that_differ_by_rounding_are_the_same_test(session: ListeningSession) -> None:
    take(session, "ada", 3)
    rounded = [
        PassagePair(p.name, p.reference * np.float32(1 + 1e-6), p.candidate, p.sample_rate_hz)
        for p in pairs(2)
    ]
    assert open_session(session.folder, rounded, repeats=4, seed=7).plan.sha256 == session.plan.sha256


def test_a_test_that_nobody_has_answered_may_be_made_anew(session: ListeningSession) -> None:
    other = open_session(session.folder, pairs(3), repeats=2)
    assert open_session(session.folder).sitting("ada").answers.trials == 6
    assert other.plan.sha256 == open_session(session.folder).plan.sha256 != session.plan.sha256


def test_a_folder_without_a_test_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AnswersError, match="no listening test"):
        open_session(tmp_path)


def test_a_bare_name_is_sought_among_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.lab.listening.session.results_folder", lambda: tmp_path / "results")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    kept = open_session("fp32-int8", pairs(2))
    assert kept.folder == tmp_path / "results" / "listening" / "fp32-int8"
    assert open_session("fp32-int8").folder == kept.folder
    assert open_session("./here", pairs(2)).folder == Path("here")
    assert open_session("here").folder == Path("here")
    with pytest.raises(AnswersError, match=r"results/listening/none\b"):
        open_session("none")


def test_the_passage_for_the_level_is_the_loudest_and_by_either(tmp_path: Path) -> None:
    soft = PassagePair("soft", tone(440), tone(660), RATE_HZ)
    peaks = np.zeros_like(soft.reference)
    peaks[::6000] = 0.999  # its peaks keep it below the listening level
    spiky = PassagePair("spiky", soft.reference + peaks, soft.candidate + peaks, RATE_HZ)
    session = open_session(tmp_path, [spiky, soft])
    levels = [pair.level_lufs for pair in session.plan.pairs]
    assert levels[0] < levels[1] - 1
    pitches = {round(pitch_hz(played(session.sitting(f"l{n}").calibration())), -1) for n in range(20)}
    assert pitches == {440, 660}


def test_a_damaged_file_of_sounds_is_refused(session: ListeningSession) -> None:
    (session.folder / "test.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(AnswersError, match="cannot be read"):
        open_session(session.folder)


def test_a_listeners_file_cannot_become_anothers(session: ListeningSession) -> None:
    take(session, "ada", 8)
    shutil.copy(session.path_of("ada"), session.path_of("eve"))
    with pytest.raises(AnswersError, match="holds the answers of 'ada'"):
        session.result()


def test_a_name_must_be_a_name(session: ListeningSession) -> None:
    with pytest.raises(ParameterError):
        session.sitting("../ada")


def test_an_unfinished_listener_is_named_but_not_counted_or_told(session: ListeningSession) -> None:
    take(session, "ada", 5)
    result = session.result()
    assert result.pooled is None
    assert result.table().empty
    assert result.figures() == {}
    assert result.sentences()[0] == "ada has answered 5 of 8 trials and is not counted."
    assert "Nobody" in result.sentences()[1]


def test_listeners_are_pooled(session: ListeningSession) -> None:
    take(session, "ada", 8)
    take(session, "bo", 8)
    result = session.result()
    assert list(result.table().listener) == ["ada", "bo", "everybody"]
    assert result.figures()["human_trials_count"] == 16
    assert result.figures()["human_p"] == pytest.approx(2**-16)
    said = " ".join(result.sentences())
    assert "16 of 16 right: a difference is heard" in said
    assert "not shown to differ" in said


def test_a_pool_of_unequal_listeners_says_so(session: ListeningSession) -> None:
    take(session, "ada", 8)
    take(session, "bo", 8, hears="wrong")
    assert "describes none of them" in session.result().sentences()[-1]


def test_the_result_says_what_the_number_of_trials_can_show(session: ListeningSession) -> None:
    take(session, "ada", 8, hears="nothing")
    said = " ".join(session.result().sentences())
    assert "7 of 8 would have been significant" in said
    assert "60%: 11%" in said  # the power of 8 trials
    assert "Inaudibility (below 0.70) is not shown" in said
    assert "39 trials with at most 22 right" in said


def test_what_is_heard_seldom_is_not_called_inaudible() -> None:
    said = " ".join(ListeningResult({"ada": (300, 500)}, {}).sentences())
    assert "a difference is heard" in said
    assert "heard now and then at most" in said
    assert "Inaudibility" not in said


def test_too_few_trials_say_that_they_are(tmp_path: Path) -> None:
    session = open_session(tmp_path, pairs(2), repeats=2)
    take(session, "ada", 4)
    assert "4 trials are too few to show anything" in " ".join(session.result().sentences())


def test_what_could_give_a_pair_away_is_in_its_table(tmp_path: Path) -> None:
    longer = PassagePair("longer", tone(440), tone(440, seconds=0.65, amplitude=0.2), RATE_HZ)
    table = open_session(tmp_path, [longer]).pairs_table()
    assert table.duration_difference_s[0] == pytest.approx(0.05)
    assert table.candidate_gain_db[0] == pytest.approx(-6.02, abs=0.3)
    assert abs(table.residual_lu[0]) < 0.001
