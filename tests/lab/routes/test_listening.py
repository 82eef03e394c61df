"""The pages of a listening test, over HTTP: nothing without a token, nothing that tells A, B and X apart."""

from __future__ import annotations

import io
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import soundfile

from kokoro_lab.lab.listening import ListeningSession, PassagePair, open_session
from kokoro_lab.lab.listening.panel import JOIN, Panel
from kokoro_lab.lab.routes.listening import PAGE, bound_to, create_app, make_listening_server
from kokoro_lab.metrics.loudness import integrated_lufs
from tests.lab.listening.tones import CANDIDATE_HZ, RATE_HZ, REFERENCE_HZ, pitch_hz, tone

TELLING = re.compile(r"fp32|int8|reference|candidate|passage \d", re.IGNORECASE)
HEARD_S = {"A": 2.0, "B": 2.0, "X": 2.0}
TRIALS = 6


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    """Of pairs whose two sides are not of one length, which the size of a file would tell."""
    unequal = [
        PassagePair(f"passage {number}", tone(REFERENCE_HZ), tone(CANDIDATE_HZ, seconds=0.7), RATE_HZ)
        for number in (1, 2)
    ]
    return open_session(tmp_path / "fp32-int8", unequal, repeats=3, seed=3)


@pytest.fixture
def panel(session: ListeningSession) -> Panel:
    return Panel(session, ["ada", "bo"])


@pytest.fixture
def client(panel: Panel) -> Any:
    client = create_app(panel).test_client()
    get = client.get

    def whole(path: str) -> Any:
        answer = get(path)
        answer.get_data()
        answer.close()  # a file that is sent stays open as long as its answer
        return answer

    client.get = whole  # type: ignore[method-assign]
    return client


def give(client: Any, token: str, number: int, letter: str = "A", **changed: object) -> Any:
    body = {"trial": number, "answer": letter, "plays": {"A": 1, "B": 1, "X": 1}, "heard_s": HEARD_S}
    return client.post(f"/{token}/answers", json=body | changed)


@pytest.mark.parametrize(
    "path", ["/", "/x/", "/x/state", "/x/sounds/A", "/ada/", "/page/", "/page/panel.html"]
)
def test_who_has_no_token_gets_nothing(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert not TELLING.search(answer.text)
    assert give(client, "x", 0).status_code == 404


def test_a_token_of_one_opens_nothing_of_the_other_kind(client: Any, panel: Panel) -> None:
    mine = panel.tokens[""]
    assert client.get(f"/{mine}/state").status_code == 404
    assert give(client, mine, 0).status_code == 404
    assert "listener" in client.get(f"/{mine}/").text
    assert "bo" not in re.findall(r"\w+", client.get(f"/{panel.tokens['ada']}/").text)


def test_nothing_that_a_listener_can_fetch_tells_which_is_which(client: Any, panel: Panel) -> None:
    token = panel.tokens["ada"]
    static = [f"/page/{file.name}" for file in PAGE.iterdir() if file.suffix in (".css", ".js")]
    for path in (f"/{token}/", "/page/style.css", *static):
        answer = client.get(path)
        assert answer.status_code == 200
        assert not TELLING.search(answer.text + str(answer.headers)), path
    seen = set()
    for number in range(TRIALS):
        state = client.get(f"/{token}/state")
        assert not TELLING.search(state.text + str(state.headers))
        ids = [*state.json["sounds"].values(), state.json["calibration"]]
        answers = [client.get(f"/{token}/sounds/{sound}") for sound in ids]
        heads = [[(k, v) for k, v in answer.headers if k != "Date"] for answer in answers]
        assert heads == [heads[0]] * 4
        assert len({len(answer.data) for answer in answers}) == 1
        assert len({answer.data for answer in answers}) == 4  # X is not the bytes of A or B
        pitches = [round(pitch_hz(soundfile.read(io.BytesIO(answer.data))[0])) for answer in answers]
        seen.add((pitches[0] < pitches[1], pitches[2] == pitches[0]))
        answer = give(client, token, number, "AB"[number % 2])
        assert not TELLING.search(answer.text + str(answer.headers))
        assert not (number < TRIALS - 1 and re.search("right|wrong|correct", answer.text))
    assert len(seen) > 2  # which of the two is A, and which is X, changes


def test_the_passage_for_the_level_is_as_loud_as_the_trials(client: Any, panel: Panel) -> None:
    token = panel.tokens["ada"]
    state = client.get(f"/{token}/state").json
    lufs = []
    for sound in (state["calibration"], *state["sounds"].values()):
        samples, rate_hz = soundfile.read(io.BytesIO(client.get(f"/{token}/sounds/{sound}").data))
        lufs.append(integrated_lufs(np.trim_zeros(np.where(abs(samples) > 1e-3, samples, 0)), rate_hz))
    assert max(lufs) - min(lufs) < 0.1


@pytest.mark.parametrize(
    "changed",
    [{"trial": -1}, {"trial": "0"}, {"answer": "X"}, {"heard_s": {}}, {"heard_s": {"A": "NaN"}}, {"more": 1}],
)
def test_what_is_no_answer_is_refused_and_not_kept(
    client: Any, panel: Panel, session: ListeningSession, changed: dict[str, object]
) -> None:
    assert give(client, panel.tokens["ada"], 0, **changed).status_code == 400
    assert session.sitting("ada").answers.letters == []


def test_an_answer_from_an_old_page_is_refused_with_a_way_out(client: Any, panel: Panel) -> None:
    token = panel.tokens["ada"]
    assert give(client, token, 0).json["answered"] == 1
    late = give(client, token, 0)
    assert late.status_code == 409
    assert "Load the page again" in late.json["error"]


def test_pages_ask_nobody_else_and_are_kept_by_nobody(client: Any, panel: Panel) -> None:
    answer = client.get(f"/{panel.tokens['ada']}/")
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert not re.search(r"https?://", answer.text)


def test_who_runs_the_test_sees_who_is_how_far_and_then_the_result(client: Any, panel: Panel) -> None:
    mine = panel.tokens[""]
    give(client, panel.tokens["bo"], 0)
    page = client.get(f"/{mine}/").text
    assert f"0 of {TRIALS}" in page
    assert f"1 of {TRIALS}" in page
    assert "Nobody has answered every trial yet." in page
    for name in ("ada", "bo"):
        for number in range(name == "bo", TRIALS):
            give(client, panel.tokens[name], number)
    page = client.get(f"/{mine}/").text
    assert "everybody" in page
    assert f"of {2 * TRIALS} right" in page


def test_one_link_leads_each_browser_to_a_place_of_its_own(session: ListeningSession) -> None:
    panel = Panel(session, ["listener-1", "listener-2"])
    everybody = f"/{panel.tokens[JOIN]}/"
    app = create_app(panel)
    browsers = [app.test_client() for _ in range(3)]
    for browser in browsers:
        page = browser.get(everybody)
        assert page.status_code == 200
        assert "Headphones" in page.text
        assert not TELLING.search(page.text + str(page.headers))
    assert panel.free_places() == ["listener-1", "listener-2"], "looking at the page takes no place"
    given = [browser.post(f"{everybody}join") for browser in browsers]
    assert [answer.status_code for answer in given] == [303, 303, 404]
    places = [f"../{panel.tokens[name]}/" for name in ("listener-1", "listener-2")]
    assert [answer.headers["Location"] for answer in given[:2]] == places
    assert [browser.get(everybody).headers.get("Location") for browser in browsers] == [*places, None]
    assert "All places are taken" in browsers[2].get(everybody).text
    for path in ("state", "sounds/A"):
        assert browsers[0].get(everybody + path).status_code == 404


def test_no_other_link_gives_places(client: Any, panel: Panel) -> None:
    for token in ("x", panel.tokens[""], panel.tokens["ada"]):
        assert client.post(f"/{token}/join").status_code == 404


def test_a_listener_is_told_what_to_know(client: Any, panel: Panel) -> None:
    page = client.get(f"/{panel.tokens['ada']}/").text
    assert f"for {TRIALS} trials" in page
    assert "About 4 minutes" in page


def test_many_listen_at_once(session: ListeningSession) -> None:
    names = [f"listener-{number}" for number in range(1, 9)]
    panel = Panel(session, names)
    server, address = make_listening_server(panel, bound_to("127.0.0.1", 0))

    def take(name: str) -> list[str]:
        given = []
        with httpx2.Client(base_url=f"{address}{panel.tokens[name]}/", timeout=30) as http:
            for number in range(TRIALS):
                state = http.get("state").json()
                for sound in state["sounds"].values():
                    assert http.get(f"sounds/{sound}").status_code == 200
                given.append("AB"[(number + len(name) + int(name[-1])) % 2])
                body = {"trial": number, "answer": given[-1], "plays": {}, "heard_s": HEARD_S}
                assert http.post("answers", json=body).status_code == 200
        return given

    with ThreadPoolExecutor(len(names) + 1) as threads:
        threads.submit(server.serve_forever)
        try:
            given = dict(zip(names, threads.map(take, names), strict=True))
        finally:
            server.shutdown()
            server.server_close()
    assert {name: session.sitting(name).answers.letters for name in names} == given
