"""The page, clicked without a browser: blind, replayable, and no answer before all three were heard."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ipywidgets
import numpy as np
import pytest
import soundfile

from kokoro_lab.lab.listening import ListeningSession, open_session
from kokoro_lab.lab.listening.answers import read_answers
from kokoro_lab.lab.listening.view import ListeningView
from tests.lab.listening.tones import pairs, pitch_hz


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    return open_session(tmp_path, pairs(2), repeats=3, seed=3)


def shown(widget: Any) -> list[Any]:
    """A widget and everything in it."""
    return [widget, *(w for child in getattr(widget, "children", ()) for w in shown(child))]


def player(view: ListeningView) -> Any:
    (found,) = [w for w in shown(view.root) if isinstance(w, ipywidgets.Audio)]
    return found


def hear(view: ListeningView) -> dict[str, float]:
    pitch = {}
    for button, control in view.play.items():
        control.click()
        samples, _ = soundfile.read(io.BytesIO(player(view).value))
        pitch[button] = pitch_hz(np.asarray(samples))
    return pitch


def answer(view: ListeningView) -> None:
    """Hear all three, and answer right."""
    pitch = hear(view)
    view.answers["A" if pitch["X"] == pitch["A"] else "B"].click()


def text_of(view: ListeningView) -> str:
    return " ".join(w.value for w in shown(view.root) if isinstance(w, ipywidgets.HTML))


def test_a_listener_goes_through_to_the_result(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    for number in range(1, 7):
        assert f"Trial {number} of 6" in view.heading.value
        assert view.progress.value == number - 1
        answer(view)
    assert "All 6 trials are answered" in text_of(view)
    assert "6 of 6 right: a difference is heard" in text_of(view)
    assert "would have been significant" in text_of(view)
    (image,) = [w for w in shown(view.root) if isinstance(w, ipywidgets.Image)]
    assert bytes(image.value).startswith(b"\x89PNG")
    assert not [w for w in shown(view.root) if isinstance(w, ipywidgets.Button)]


def test_every_answer_is_on_the_disk_with_how_often_each_was_played(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    view.play["X"].click()
    answer(view)
    assert len(read_answers(session.path_of("ada")).letters) == 1
    assert '"plays": {"A": 1, "B": 1, "X": 2}' in session.path_of("ada").read_text()


def test_nothing_tells_right_from_wrong_before_the_end(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    pages = set()
    for wrong in (False, True, False, True):
        pitch = hear(view)
        right = "A" if pitch["X"] == pitch["A"] else "B"
        view.answers[{"A": "B", "B": "A"}[right] if wrong else right].click()
        pages.add(text_of(view).replace(f"Trial {view.progress.value + 1}", "Trial"))
    (page,) = pages
    assert not any(word in page.lower() for word in ("right", "wrong", "correct"))


def test_nothing_in_the_page_tells_which_is_which(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    for _ in range(3):
        hear(view)
        state = " ".join(
            str({k: v for k, v in w.get_state().items() if not isinstance(v, (bytes, memoryview))})
            for w in shown(view.root)
        ).lower()
        assert not any(word in state for word in ("reference", "candidate", "fp32", "int8", "passage"))
        view.answers["A"].click()


def test_there_is_no_answer_before_a_b_and_x_were_played(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    for button in "AX":
        view.play[button].click()
        assert all(control.disabled for control in view.answers.values())
    view.answers["A"].click()  # a disabled button cannot be clicked in a browser, but a message can come late
    assert "Trial 1 of" in view.heading.value
    view.play["B"].click()
    assert not any(control.disabled for control in view.answers.values())


def test_a_double_click_answers_one_trial(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    hear(view)
    view.answers["A"].click()
    view.answers["A"].click()
    assert len(read_answers(session.path_of("ada")).letters) == 1


def test_a_sound_can_be_played_again_and_stops_the_one_before(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    view.play["X"].click()
    first = player(view)
    view.play["X"].click()
    second = player(view)  # there is one player at a time
    assert second is not first
    assert bytes(second.value) == bytes(first.value)
    assert second.autoplay
    assert not second.loop


def test_a_new_page_goes_on_where_the_last_one_stopped(session: ListeningSession) -> None:
    before = ListeningView(session, "ada")
    answer(before)
    answer(before)
    after = ListeningView(open_session(session.folder), "ada")
    assert "Trial 3 of 6" in after.heading.value
    answer(after)
    assert "Trial 4 of 6" in after.heading.value


def test_a_page_left_open_elsewhere_is_told_to_go_on_here(session: ListeningSession) -> None:
    old, new = ListeningView(session, "ada"), ListeningView(session, "ada")
    answer(new)
    hear(old)
    old.answers["A"].click()
    assert "run this cell again" in old.message.value
    assert len(read_answers(session.path_of("ada")).letters) == 1


def test_a_cut_off_answer_is_said(session: ListeningSession) -> None:
    answer(ListeningView(session, "ada"))
    with session.path_of("ada").open("ab") as file:
        file.write(b'{"trial": 1')
    view = ListeningView(session, "ada")
    assert "trial 2 is asked again" in view.message.value
    assert "trial 2 is asked again" in text_of(view)


def test_a_finished_listener_sees_the_result_at_once(session: ListeningSession) -> None:
    view = ListeningView(session, "ada")
    for _ in range(6):
        answer(view)
    assert "6 of 6 right" in text_of(ListeningView(session, "ada"))


def test_a_notebook_shows_it(session: ListeningSession) -> None:
    bundle = ListeningView(session, "ada")._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
