"""A panel: links that stay, sounds by names that tell nothing, answers in the files of the test."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from kokoro_lab.errors import AnswersError, ParameterError
from kokoro_lab.lab.listening import ListeningSession, open_session
from kokoro_lab.lab.listening.panel import JOIN, LINKS_FILE, Panel, open_panel
from tests.lab.listening.tones import pairs

HEARD_S = {"A": 2.0, "B": 2.0, "X": 2.0}
PLAYS = {"A": 1, "B": 1, "X": 1}


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    return open_session(tmp_path / "test", pairs(2), repeats=2, seed=3)


@pytest.fixture
def panel(session: ListeningSession) -> Panel:
    return Panel(session, ["ada", "bo"])


def test_each_has_a_token_that_cannot_be_guessed(panel: Panel) -> None:
    assert len(set(panel.tokens.values())) == 3
    assert all(len(token) >= 43 for token in panel.tokens.values())  # 256 bits
    assert [panel.name_of(token) for token in panel.tokens.values()] == ["", "ada", "bo"]
    assert panel.name_of("") is panel.name_of("ada") is None


def test_links_stay_for_who_has_one_and_only_the_owner_can_read_them(session: ListeningSession) -> None:
    first = open_panel(session, ["ada"]).tokens
    again = open_panel(session, ["bo", "ada"])
    assert again.listeners == ["ada", "bo"]
    assert again.tokens.items() >= first.items()
    assert open_panel(session).tokens == again.tokens
    assert stat.S_IMODE((session.folder / LINKS_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["[]", "{", '{"ada": 1}'])
def test_a_damaged_file_of_links_is_refused(session: ListeningSession, content: str) -> None:
    (session.folder / LINKS_FILE).write_text(content)
    with pytest.raises(AnswersError, match="not a file of links"):
        open_panel(session)


def test_a_listener_needs_a_name_that_can_name_a_file(session: ListeningSession) -> None:
    with pytest.raises(ParameterError, match="listener"):
        Panel(session, ["../ada"])


def test_one_link_gives_each_who_opens_it_a_place_of_their_own(session: ListeningSession) -> None:
    panel = open_panel(session, ["listener-1", "listener-2", "ada"])
    assert panel.name_of(panel.tokens[JOIN]) == JOIN
    assert [panel.name_of(panel.join() or "") for _ in range(2)] == ["listener-1", "listener-2"]
    assert panel.free_places() == []
    assert panel.join() is None
    assert panel.progress() == {"listener-1": 0, "listener-2": 0, "ada": 0}
    again = open_panel(session)
    assert again.tokens == panel.tokens
    assert again.join() is None, "a place that was given is nobody else's after a restart"


def test_who_has_a_name_gets_no_place_by_chance(panel: Panel) -> None:
    assert JOIN not in panel.tokens


def test_sounds_have_new_names_in_each_trial_and_the_old_ones_are_gone(panel: Panel) -> None:
    first = panel.state("ada")
    assert panel.state("ada") == first  # a page that is loaded again
    names = {*first["sounds"].values(), first["calibration"]}
    assert len(names) == 4
    second = panel.answer("ada", 0, "A", PLAYS, HEARD_S)
    assert not names & {*second["sounds"].values(), second["calibration"]}
    assert {panel.sound("ada", name) for name in names} == {None}
    assert panel.sound("bo", second["sounds"]["A"]) is None  # another listener's


def test_answers_are_those_of_the_notebooks_session(panel: Panel, session: ListeningSession) -> None:
    panel.answer("ada", 0, "B", PLAYS, HEARD_S)
    assert open_session(session.folder).sitting("ada").answers.letters == ["B"]
    session.sitting("ada").answers.append("A", PLAYS)  # as in a notebook, meanwhile
    assert panel.state("ada")["answered"] == 2
    row = json.loads(session.path_of("ada").read_text().splitlines()[1])
    assert (row["plays"], row["heard_s"]) == (PLAYS, HEARD_S)


def test_an_answer_to_another_trial_is_refused(panel: Panel, session: ListeningSession) -> None:
    panel.answer("ada", 0, "B", PLAYS, HEARD_S)
    for number in (0, 2):
        with pytest.raises(AnswersError, match="not the next one"):
            panel.answer("ada", number, "A", PLAYS, HEARD_S)
    assert session.sitting("ada").answers.letters == ["B"]


@pytest.mark.parametrize("heard_s", [{}, {"A": 2, "B": 2}, {"A": 2, "B": 2, "X": 0.5}])
def test_there_is_no_answer_before_each_was_heard_long_enough(
    panel: Panel, session: ListeningSession, heard_s: dict[str, float]
) -> None:
    assert panel.state("ada")["least_s"] == 0.54  # of sounds of 0.6 s; of longer ones 1.5
    with pytest.raises(ParameterError, match="X must be heard first"):
        panel.answer("ada", 0, "A", PLAYS, heard_s)
    assert session.sitting("ada").answers.letters == []


def test_the_last_answer_brings_the_listeners_own_result(panel: Panel) -> None:
    for name in ("ada", "bo"):
        for number in range(4):
            state = panel.answer(name, number, "A", PLAYS, HEARD_S)
    assert state["complete"]
    assert "of 4" in state["result"]
    assert "ada" not in state["result"]
    assert "sounds" not in state
    with pytest.raises(AnswersError, match="not the next one"):
        panel.answer("bo", 4, "A", PLAYS, HEARD_S)


def test_a_damaged_file_of_one_keeps_nobody_else_from_the_test(
    panel: Panel, session: ListeningSession
) -> None:
    session.path_of("ada").write_text("no answers\n")
    for number in range(4):
        state = panel.answer("bo", number, "A", PLAYS, HEARD_S)
    assert "of 4" in state["result"]
    with pytest.raises(AnswersError, match=r"ada\.jsonl"):
        panel.state("ada")


def test_progress_names_all_who_take_part(panel: Panel, session: ListeningSession) -> None:
    panel.answer("bo", 0, "A", PLAYS, HEARD_S)
    session.sitting("mia").answers.append("A", PLAYS)  # in a notebook
    assert panel.progress() == {"ada": 0, "bo": 1, "mia": 1}
