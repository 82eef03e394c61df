"""The page of a listener, as a person uses it: keys, switching in place, what must be heard, the result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from kokoro_lab.lab.listening import ListeningSession, PassagePair, open_session
from kokoro_lab.lab.listening.answers import read_answers
from kokoro_lab.lab.listening.panel import Panel
from kokoro_lab.lab.routes.listening import bound_to, make_listening_server
from tests.browser import chromium, serious_findings
from tests.lab.listening.tones import RATE_HZ

pytestmark = [pytest.mark.browser, pytest.mark.test_all]

SOUND_S = 4.0
LOW_HZ, HIGH_HZ = 1000.0, 5000.0
TRIALS = 4

# An analyser before the loudspeaker, and when each sound was started: not what the page says of itself
LISTEN = """
window.started = []
window.contexts = []
const start = AudioBufferSourceNode.prototype.start
AudioBufferSourceNode.prototype.start = function (when, ...rest) {
    started.push(when)
    return start.call(this, when, ...rest)
}
const connect = AudioNode.prototype.connect
AudioNode.prototype.connect = function (target, ...rest) {
    if (!(target instanceof AudioDestinationNode)) return connect.call(this, target, ...rest)
    if (!contexts.includes(this.context)) {
        contexts.push(this.context)
        window.ear = this.context.createAnalyser()
        ear.fftSize = 1024
        ear.smoothingTimeConstant = 0
        connect.call(ear, target)
    }
    return connect.call(this, ear, ...rest)
}
window.heard = () => {
    const samples = new Float32Array(ear.fftSize)
    ear.getFloatTimeDomainData(samples)
    return { at: ear.context.currentTime, samples: Array.from(samples) }
}
// What is heard during a switch, sampled as fast as the page can
window.record = (seconds, key) => new Promise((resolve) => {
    const blocks = []
    const begin = ear.context.currentTime
    let pressed = false
    const step = () => {
        blocks.push(heard())
        if (!pressed && ear.context.currentTime > begin + seconds / 2) {
            pressed = ear.context.currentTime
            document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))
        }
        if (ear.context.currentTime < begin + seconds) setTimeout(step, 4)
        else resolve({ blocks, pressed, playing: document.querySelector("[aria-pressed=true]").innerText })
    }
    step()
})
"""


def rising(begin: float) -> np.ndarray:
    """A tone whose pitch says how far it is: from 1 kHz to 5 kHz. `begin` is its first phase, in radians."""
    time_s = np.arange(round(SOUND_S * RATE_HZ)) / RATE_HZ
    phase = 2 * np.pi * (LOW_HZ * time_s + (HIGH_HZ - LOW_HZ) / (2 * SOUND_S) * time_s**2)
    return (0.1 * np.sin(phase + begin)).astype(np.float32)


def place_s(samples: list[float]) -> float:
    """Where in `rising` the middle of these samples is."""
    spectrum = np.abs(np.fft.rfft(np.array(samples) * np.hanning(len(samples)), 16 * len(samples)))
    hz = float(np.argmax(spectrum)) * RATE_HZ / (16 * len(samples))
    return (hz - LOW_HZ) / (HIGH_HZ - LOW_HZ) * SOUND_S


@pytest.fixture
def session(tmp_path: Path) -> ListeningSession:
    passages = [PassagePair(f"passage {k}", rising(0), rising(np.pi / 2), RATE_HZ) for k in (1, 2)]
    return open_session(tmp_path / "test", passages, repeats=2, seed=3)


@pytest.fixture
def panel(session: ListeningSession) -> Panel:
    return Panel(session, ["ada"])


@pytest.fixture
def url(panel: Panel) -> Iterator[str]:
    server, address = make_listening_server(panel, bound_to("127.0.0.1", 0))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 900, "height": 760})
    opened.set_default_timeout(20_000)
    opened.add_init_script(LISTEN)
    opened.asked = []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("pageerror", lambda error: pytest.fail(str(error)))
    yield opened
    opened.close()


def begin(page: Any, address: str, trial: int = 1) -> None:
    """Load the page, and go past the passage for the level to a trial whose sounds are there."""
    page.goto(address)
    page.locator("#begin").click()
    heading(page, trial)


def heading(page: Any, trial: int) -> None:
    page.get_by_role("heading", name=f"Trial {trial} of {TRIALS}").wait_for()
    page.locator("#why", has_text="Listen to A, B and X first").wait_for()


def hear(page: Any, buttons: str = "abx") -> None:
    """Each from its beginning, until the page has counted enough of it."""
    for key in buttons:
        page.keyboard.press(key)
        enough = (
            "name => document.querySelector(`[data-button=${name}]`).style.getPropertyValue('--heard') >= 1"
        )
        page.wait_for_function(enough, arg=key.upper())
        page.keyboard.press("Escape")


def pressed(page: Any) -> list[str]:
    return [each.inner_text()[-1] for each in page.locator("[data-button][aria-pressed=true]").all()]


def test_keys_play_switch_and_stop_and_what_plays_is_shown(page: Any, url: str, panel: Panel) -> None:
    begin(page, f"{url}{panel.tokens['ada']}/")
    for key in "abx":
        page.keyboard.press(key)
        assert pressed(page) == [key.upper()]
        assert page.locator("#stop").is_enabled()
    for key in ("Escape", " "):
        page.keyboard.press("a")
        page.keyboard.press(key)
        assert pressed(page) == []
        assert page.locator("#stop").is_disabled()
    page.wait_for_timeout(200)
    assert max(map(abs, page.evaluate("heard()")["samples"])) < 1e-3
    page.get_by_role("button", name="B", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    assert pressed(page) == []


def test_a_switch_goes_on_at_the_same_instant_without_a_gap_or_a_click(
    page: Any, url: str, panel: Panel
) -> None:
    begin(page, f"{url}{panel.tokens['ada']}/")
    page.keyboard.press("a")
    page.wait_for_timeout(500)
    found = page.evaluate("record(1.2, 'x')")
    began = set(page.evaluate("started"))
    assert len(began) == 1  # all three run in step, and none began again
    rows = [(block["at"], np.array(block["samples"])) for block in found["blocks"]]
    assert rows[0][0] < found["pressed"] < rows[-1][0] - 0.3
    delays_s = np.array([at - place_s(list(samples)) for at, samples in rows])
    assert np.ptp(delays_s) < 0.04  # ±20 ms
    loud = np.array([np.sqrt(np.mean(samples**2)) for _, samples in rows])
    assert loud.min() > 0.8 * np.median(loud)
    # A click would be a step steeper than the tone itself
    highest_hz = LOW_HZ + (HIGH_HZ - LOW_HZ) * (rows[-1][0] - began.pop()) / SOUND_S
    steepest = 2 * np.sin(np.pi * highest_hz / RATE_HZ) * max(np.abs(s).max() for _, s in rows)
    assert max(np.abs(np.diff(samples)).max() for _, samples in rows) < 1.1 * steepest
    assert found["playing"] == "♪ X"


def test_an_answer_needs_each_to_be_heard_long_enough_and_the_page_says_so(
    page: Any, url: str, panel: Panel, session: ListeningSession
) -> None:
    begin(page, f"{url}{panel.tokens['ada']}/")
    why = page.locator("#why")
    assert why.inner_text() == "Listen to A, B and X first: at least 1.5 s of each."
    for key in "abxabx":  # clicks alone are not listening
        page.keyboard.press(key)
    page.keyboard.press("1")
    page.get_by_role("button", name="X is A").click(force=True)  # it says that it is disabled
    assert session.sitting("ada").answers.letters == []
    hear(page, "a")
    assert why.inner_text() == "Listen to B and X first: at least 1.5 s of each."
    hear(page, "x")
    assert why.inner_text() == "Listen to B first: at least 1.5 s."
    assert page.get_by_role("button", name="X is B").get_attribute("aria-disabled") == "true"
    hear(page, "b")
    assert why.inner_text() == "Which one is X?"
    page.keyboard.press("2")
    heading(page, 2)
    assert session.sitting("ada").answers.letters == ["B"]


def test_the_result_comes_by_itself_after_a_reload_in_the_middle(
    page: Any, url: str, panel: Panel, session: ListeningSession
) -> None:
    address = f"{url}{panel.tokens['ada']}/"
    page.goto(address)
    page.get_by_role("button", name="Passage").click()
    page.wait_for_timeout(400)
    assert max(map(abs, page.evaluate("heard()")["samples"])) > 0.01
    page.locator("#begin").click()
    for trial in (1, 2):
        heading(page, trial)
        hear(page)
        page.keyboard.press("1")
    heading(page, 3)
    page.goto(address)
    page.get_by_role("heading", name=f"Welcome back: 2 of {TRIALS} trials are answered").wait_for()
    page.get_by_role("button", name="Go on with trial 3").click()
    for trial in (3, 4):
        heading(page, trial)
        hear(page)
        page.get_by_role("button", name="X is B").click()
    page.get_by_role("heading", name=f"Thank you. All {TRIALS} trials are answered.").wait_for()
    result = page.locator("#result")
    assert "Nothing is shown yet: ada was" in result.inner_text()
    assert "Missing: 35 trials and 4 listeners." in result.inner_text()
    assert result.locator("svg").count() == 2
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert read_answers(session.path_of("ada")).letters == ["A", "A", "B", "B"]
    assert serious_findings(page) == []
    assert {urlsplit(asked).netloc for asked in page.asked} == {urlsplit(url).netloc}


def test_an_answer_that_cannot_be_kept_is_said_and_can_be_given_again(
    page: Any, url: str, panel: Panel, session: ListeningSession
) -> None:
    begin(page, f"{url}{panel.tokens['ada']}/")
    hear(page)
    page.route("**/answers", lambda route: route.abort())
    page.keyboard.press("1")
    page.get_by_text("The server does not answer.").wait_for()
    page.unroute("**/answers")
    page.keyboard.press("1")
    heading(page, 2)
    assert page.locator("#message").inner_text() == ""
    assert session.sitting("ada").answers.letters == ["A"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_anybody_and_a_phone_shows_all(
    browser: Any, url: str, panel: Panel, scheme: str
) -> None:
    with browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844}) as context:
        page = context.new_page()
        page.goto(f"{url}{panel.tokens['ada']}/")
        page.locator("#begin").wait_for()
        assert serious_findings(page) == []
        page.locator("#begin").click()
        heading(page, 1)
        page.get_by_role("button", name="A", exact=True).click()
        assert serious_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto(f"{url}{panel.tokens['']}/")
        page.locator("#panel").wait_for()
        assert serious_findings(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_page_of_who_runs_the_test_keeps_itself_up_to_date(
    page: Any, url: str, panel: Panel, session: ListeningSession
) -> None:
    page.goto(f"{url}{panel.tokens['']}/")
    page.get_by_text(f"0 of {TRIALS}").wait_for()
    session.sitting("ada").answers.append("A", {})
    page.get_by_text(f"1 of {TRIALS}", exact=True).wait_for()
