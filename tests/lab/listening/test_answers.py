"""No answer is lost, and none is taken for one of another test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kokoro_lab.errors import AnswersError, ParameterError
from kokoro_lab.lab.listening.answers import AnswerFile, check_listener, open_answers, read_answers

PLAYS = {"A": 1, "B": 2, "X": 3}
ABOUT = {"test": "f" * 64, "listener": "ada", "trials": 4}


def opened(path: Path, **about: object) -> AnswerFile:
    return open_answers(path, **{**ABOUT, **about})  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with two answers."""
    file = opened(tmp_path / "ada.jsonl")
    file.append("B", PLAYS)
    file.append("A", PLAYS)
    return file.path


def test_an_answer_is_a_line_as_soon_as_it_is_given(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == ABOUT
    assert [(line["trial"], line["answer"], line["plays"]) for line in lines[1:]] == [
        (0, "B", PLAYS),
        (1, "A", PLAYS),
    ]


def test_it_holds_how_long_each_was_heard(path: Path) -> None:
    heard_s = {"A": 1.5, "B": 2.25, "X": 3.0}
    opened(path).append("A", PLAYS, heard_s)
    assert json.loads(path.read_text().splitlines()[-1])["heard_s"] == heard_s
    assert opened(path).letters == ["B", "A", "A"]


def test_each_answer_is_forced_to_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    file = opened(path)
    file.append("A", PLAYS)
    assert synced == [path.stat().st_size]


def test_it_goes_on_after_the_last_answer(path: Path) -> None:
    file = opened(path)
    assert (file.letters, file.note) == (["B", "A"], "")
    file.append("B", PLAYS)
    assert opened(path).letters == ["B", "A", "B"]
    assert not read_answers(path).complete


@pytest.mark.parametrize(
    "tail", [b'{"trial": 2, "ans', b'{"trial": 2, "answer": "A"}', b"\x00\x00\x00\n", b"\xff\n"]
)
def test_a_last_line_that_was_cut_off_is_left_out_said_and_asked_again(path: Path, tail: bytes) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    file = opened(path)
    assert file.letters == ["B", "A"]
    assert "ada.jsonl" in file.note
    assert "trial 3 is asked again" in file.note
    assert path.read_bytes() == whole + tail  # nothing is thrown away before there is something better
    file.append("A", PLAYS)
    assert path.read_bytes().startswith(whole)
    assert opened(path).letters == ["B", "A", "A"]
    assert opened(path).note == ""


def test_answers_to_another_test_are_refused_with_a_way_out(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(AnswersError, match="2 answers to another test") as caught:
        opened(path, test="0" * 64)
    assert "new folder" in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("line", "put"),
    [
        (0, "no JSON"),
        (0, '{"other": 1}'),
        (1, "no JSON"),
        (1, '{"trial": 5, "answer": "A"}'),
        (1, '{"trial": 0}'),
        (1, "3"),
    ],
)
def test_damage_in_the_middle_is_refused(path: Path, line: int, put: str) -> None:
    lines = path.read_text().splitlines()
    lines[line] = put
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(AnswersError, match=f"Line {line + 1} of ada.jsonl"):
        opened(path)


@pytest.mark.parametrize("content", [b"", b'{"test": "ff'])
def test_a_file_without_a_beginning_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(AnswersError, match="Line 1"):
        opened(path)


def test_more_answers_than_trials_are_refused(path: Path) -> None:
    file = opened(path)
    for _ in range(3):
        file.append("A", PLAYS)
    with pytest.raises(AnswersError):
        opened(path)


def test_two_windows_cannot_answer_the_same_trial(path: Path) -> None:
    one, other = opened(path), opened(path)
    one.append("A", PLAYS)
    with pytest.raises(AnswersError, match="load this one again"):
        other.append("B", PLAYS)
    assert read_answers(path).letters == ["B", "A", "A"]


def test_a_file_that_was_taken_away_is_not_made_up_again(path: Path) -> None:
    file = opened(path)
    path.unlink()
    with pytest.raises(AnswersError, match="changed"):
        file.append("A", PLAYS)


@pytest.mark.parametrize("name", ["", "../ada", "a b", "-ada", "ä", "a" * 41, "a.b"])
def test_a_name_that_cannot_name_a_file_is_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="listener"):
        check_listener(name)
