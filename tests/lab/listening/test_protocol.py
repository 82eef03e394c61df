"""The rule of a panel: written before anybody listens, kept, and what is refused or left out by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kokoro_lab.errors import AnswersError
from kokoro_lab.lab.listening import ListeningSession, open_session, open_with_rule
from kokoro_lab.lab.listening.plan import ListeningPlan, match_loudness
from kokoro_lab.lab.listening.protocol import (
    PROTOCOL_FILE,
    planned_listeners,
    rule_of,
    write_protocol,
)
from kokoro_lab.lab.listening.result import ListeningResult
from tests.lab.listening.test_session import PLAYS, take
from tests.lab.listening.tones import pairs


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    """Two pairs, each four times, and two catch trials."""
    return open_session(tmp_path / "test", pairs(2), repeats=4, seed=7, catches=2)


def test_the_rule_is_in_the_folder_before_anybody_listens(session: ListeningSession) -> None:
    write_protocol(session.folder, session.plan, 3)
    kept = json.loads((session.folder / PROTOCOL_FILE).read_text("utf-8"))
    assert (kept["test"], kept["listeners"]) == (session.plan.sha256, 3)
    assert kept["rule"] == rule_of(session.plan, 3)
    assert "A listener who misses more than 0 of 2 catch trials is not counted." in kept["rule"]
    assert planned_listeners(session.folder, session.plan) == 3


def test_the_rule_follows_the_number_of_listeners_until_somebody_begins(session: ListeningSession) -> None:
    write_protocol(session.folder, session.plan, 1)  # --serve alone, and then with --listeners 10
    write_protocol(session.folder, session.plan, 10)
    assert planned_listeners(session.folder, session.plan) == 10
    written = (session.folder / PROTOCOL_FILE).read_bytes()
    write_protocol(session.folder, session.plan, 10)
    session.sitting("ada")
    write_protocol(session.folder, session.plan, 1)
    assert (session.folder / PROTOCOL_FILE).read_bytes() == written


def test_a_test_of_a_notebook_has_its_rule_and_catch_trials_before_anybody_listens(tmp_path: Path) -> None:
    begun = open_with_rule(tmp_path / "test", pairs(2), repeats=5, seed=7, listeners=5)
    assert begun.plan.catches == 2  # one for five others
    result = begun.result()
    assert (result.planned, result.catches) == (5, 2)
    again = open_with_rule(tmp_path / "test", pairs(2), repeats=5, seed=7, listeners=3)
    assert again.result().planned == 5, "a rule that is there is kept"
    take(again, "ada", 12)
    assert again.result().pooled is None, "four are missing"
    alone = open_with_rule(tmp_path / "alone", pairs(2), repeats=5, seed=7, listeners=0)
    assert not (alone.folder / PROTOCOL_FILE).exists()


def test_a_rule_is_not_written_after_the_first_answer(session: ListeningSession) -> None:
    take(session, "ada", 1)
    write_protocol(session.folder, session.plan, 3)
    assert not (session.folder / PROTOCOL_FILE).exists()
    assert planned_listeners(session.folder, session.plan) == 0


def test_nothing_is_shown_before_all_have_finished(session: ListeningSession) -> None:
    write_protocol(session.folder, session.plan, 2)
    take(session, "ada", 10)
    result = session.result()
    assert result.outcome == "open"
    assert result.figures() == {}
    assert result.table().empty
    assert result.headline().startswith("1 of 2 listeners have answered every trial")
    assert "8 of 8" not in result._repr_html_()
    take(session, "bo", 10)
    assert session.result().outcome == "heard"


@pytest.mark.parametrize(
    "changed",
    [
        {"rule": ["A difference is heard if ten answers are right."]},
        {"test": "another"},
        {"listeners": 5},
        {"listeners": None},
    ],
)
def test_a_protocol_that_was_changed_is_refused(
    session: ListeningSession, changed: dict[str, object]
) -> None:
    write_protocol(session.folder, session.plan, 3)
    path = session.folder / PROTOCOL_FILE
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | changed), "utf-8")
    with pytest.raises(AnswersError, match="not the protocol of this test"):
        session.result()


@pytest.mark.parametrize("content", ["", "[]", "{", "3"])
def test_a_damaged_protocol_is_refused(session: ListeningSession, content: str) -> None:
    (session.folder / PROTOCOL_FILE).write_text(content)
    with pytest.raises(AnswersError, match="not the protocol of this test"):
        open_session(session.folder)


def test_a_test_with_a_protocol_keeps_its_sounds(session: ListeningSession) -> None:
    write_protocol(session.folder, session.plan, 3)
    with pytest.raises(AnswersError, match="not those of the test"):
        open_session(session.folder, pairs(3), repeats=4, seed=7)
    assert open_session(session.folder, pairs(2)).plan.sha256 == session.plan.sha256


def test_who_does_not_listen_is_not_counted(session: ListeningSession) -> None:
    take(session, "ada", 10)
    take(session, "bo", 10, hears="wrong")
    sitting = session.sitting("cy")
    for trial in sitting.trials:  # wrong in the catch trials alone
        sitting.answers.append("AB"[(trial.x == "B") ^ trial.catch], PLAYS)  # type: ignore[arg-type]
    result = session.result()
    assert result.counts == {"ada": (8, 8)}
    assert result.inattentive == {"bo": (2, 2), "cy": (2, 2)}
    assert result.finished == 3
    assert result.figures()["human_inattentive_listeners_count"] == 2
    assert "cy missed 2 of 2 catch trials" in " ".join(result.sentences())
    (session.folder / "ada.jsonl").unlink()
    assert session.result().headline().startswith("Nobody can be counted")
    assert session.result().outcome == "open"


def test_one_slip_in_eight_catch_trials_is_forgiven_and_two_are_not(tmp_path: Path) -> None:
    session = open_session(tmp_path / "test", pairs(2), repeats=20, catches=8)
    for name, slips in (("ada", 1), ("bo", 2)):
        sitting, missed = session.sitting(name), 0
        for trial in sitting.trials:
            slip = trial.catch and missed < slips
            missed += slip
            sitting.answers.append("AB"[(trial.x == "B") ^ slip], PLAYS)  # type: ignore[arg-type]
    assert session.result().counts == {"ada": (40, 40)}
    assert session.result().inattentive == {"bo": (2, 8)}


@pytest.mark.parametrize(("right", "heard"), [(28, False), (29, True)])
def test_one_of_ten_must_hear_it_clearly_where_they_differ(right: int, heard: bool) -> None:
    """28 of 40 have p = 0.008, which is 0.08 with ten listeners."""
    others = {f"listener-{number}": (14, 40) for number in range(1, 10)}
    result = ListeningResult(others | {"ada": (right, 40)}, {})
    assert result.pooled
    assert result.pooled.differ
    assert (result.outcome == "heard") is heard


def test_the_rule_names_no_catch_trials_where_there_are_none() -> None:
    plan = ListeningPlan(tuple(map(match_loudness, pairs(2))), 4, 1)
    assert not any("catch" in sentence for sentence in rule_of(plan, 10))
