"""What a notebook shows: a frame with the page of the test, served by the kernel on the loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.listening import ListeningSession, open_session
from kokoro_lab.lab.listening.view import ListeningView
from tests.lab.listening.tones import pairs


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    return open_session(tmp_path, pairs(2), repeats=3, seed=3)


@pytest.fixture
def view(session: ListeningSession) -> Iterator[ListeningView]:
    view = ListeningView(session, "ada")
    yield view
    view.close()


def test_a_notebook_shows_the_page_in_a_frame(view: ListeningView) -> None:
    assert view.url.startswith("http://127.0.0.1:")
    bundle = view._repr_mimebundle_()
    assert f'<iframe src="{view.url}"' in bundle["text/html"]
    assert view.url in bundle["text/plain"]
    page = httpx2.get(view.url)
    assert page.status_code == 200
    assert "frame-ancestors http://127.0.0.1:*" in page.headers["Content-Security-Policy"]


def test_it_is_the_listeners_own_test(view: ListeningView, session: ListeningSession) -> None:
    state = httpx2.get(f"{view.url}state").json()
    assert (state["answered"], state["trials"]) == (0, 6)
    body = {"trial": 0, "answer": "A", "plays": {}, "heard_s": {"A": 1, "B": 1, "X": 1}}
    assert httpx2.post(f"{view.url}answers", json=body).json()["answered"] == 1
    assert session.sitting("ada").answers.letters == ["A"]


def test_it_goes_on_where_another_one_stopped(view: ListeningView, session: ListeningSession) -> None:
    session.sitting("ada").answers.append("B", {})
    other = ListeningView(open_session(session.folder), "ada")
    try:
        assert httpx2.get(f"{other.url}state").json()["answered"] == 1
    finally:
        other.close()


def test_a_cut_off_answer_is_said(view: ListeningView, session: ListeningSession) -> None:
    session.sitting("ada").answers.append("B", {})
    with session.path_of("ada").open("ab") as file:
        file.write(b'{"trial": 1')
    assert "trial 2 is asked again" in httpx2.get(f"{view.url}state").json()["note"]


def test_a_wrong_name_is_refused_before_anything_is_shown(session: ListeningSession) -> None:
    with pytest.raises(ParameterError, match="listener"):
        ListeningView(session, "no name")


def test_none_is_served_when_it_is_closed(session: ListeningSession) -> None:
    view = ListeningView(session, "bo")
    view.close()
    with pytest.raises(httpx2.TransportError):
        httpx2.get(view.url)
