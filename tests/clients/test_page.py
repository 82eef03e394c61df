"""The page at `/`, as a person uses it: in headless Chromium, on the running server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np
import pytest

from tests.browser import chromium, new_page
from tests.server.conftest import RunningServer, wait_until
from tests.server.scripted import SLOW_S

pytestmark = pytest.mark.browser

FIRST = "The first sentence is long enough to stand alone. "
TEXT = "Hello there. And you."
ENDLESS = FIRST + "And this is a slow one, which takes its time. " * 40
# Slow, because a browser throws away what a page has not read yet when its connection breaks
BROKEN = FIRST + "And then, after a slow while, a boom is heard, within the second."

PRIMER_SAMPLES = 1200
"""Of silence, with which raw audio begins and events do not."""

LISTEN = """
window.scheduled = []  // every block: in which context, when it begins, and its samples
window.contexts = []
window.ears = []       // an analyser at each way into the loudspeaker
const start = AudioBufferSourceNode.prototype.start
window.originalStart = start
AudioBufferSourceNode.prototype.start = function (when) {
    const samples = Array.from(this.buffer.getChannelData(0))
    scheduled.push({ context: this.context, when, rate: this.buffer.sampleRate, samples })
    return start.call(this, when)
}
const connect = AudioNode.prototype.connect
AudioNode.prototype.connect = function (target, ...rest) {
    if (target instanceof AudioDestinationNode && this.context instanceof AudioContext) {
        const ear = this.context.createAnalyser()
        connect.call(this, ear)
        contexts.push(this.context)
        ears.push(ear)
    }
    return connect.call(this, target, ...rest)
}
window.loudness = () => {
    const heard = new Float32Array(ears.at(-1).fftSize)
    ears.at(-1).getFloatTimeDomainData(heard)
    return Math.max(...heard.map(Math.abs))
}
"""
RENDERED = """async () => {
    const last = scheduled.at(-1)
    const { context, rate } = last
    const speech = scheduled.filter((block) => block.context === context)  // none of a speech before it
    const begin = speech[0].when
    const frames = Math.round((last.when - begin) * rate) + last.samples.length
    const offline = new OfflineAudioContext(1, frames, rate)
    for (const { when, samples } of speech) {
        const buffer = offline.createBuffer(1, samples.length, rate)
        buffer.copyToChannel(Float32Array.from(samples), 0)
        const source = offline.createBufferSource()
        source.buffer = buffer
        source.connect(offline.destination)
        originalStart.call(source, when - begin)
    }
    return Array.from((await offline.startRendering()).getChannelData(0))
}"""
LATE_BLOCK = """async (atS) => {
    let nowS = 0  // by the device's clock, which the test turns
    window.AudioContext = class {
        get currentTime() { return nowS }
        resume() {}
        createGain() { return { connect() {} } }
        createBuffer() { return { copyToChannel() {} } }
        createBufferSource() { return { connect() {}, start() {} } }
    }
    const { Player } = await import("/page/player.js")
    const recording = { samples: 24_000, complete: false }
    recording.read = (from, to) => new Float32Array(Math.min(to, recording.samples) - from)
    const player = new Player(recording)
    return atS.map((s) => {
        nowS = s
        recording.samples = s < 5 ? 24_000 : 72_000
        player.more()
        return player.playedSamples
    })
}"""
CONTRAST = """() => {
    const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
    }
    const ratio = (a, b) => Math.max(light(a) / light(b), light(b) / light(a))
    const ground = getComputedStyle(document.body).backgroundColor
    const on = (selector) => ratio(getComputedStyle(document.querySelector(selector)).color, ground)
    const button = getComputedStyle(document.querySelector("#speak"))
    return [on("h1"), on(".quiet"), on(".error"), on("dt"), ratio(button.color, button.backgroundColor)]
}"""


# The page needs sound and a person's patience, its files do not
browser = pytest.mark.browser


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(server: RunningServer, driver: Any) -> Iterator[Any]:
    """The page, opened; whatever it does wrong by its own account fails the test."""
    with new_page(driver) as opened:
        wrong: list[str] = []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else None)
        opened.add_init_script(LISTEN)
        opened.goto(server.url)
        opened.locator("#server", has_text="ready").wait_for()
        yield opened
        assert not wrong


def speak(page: Any, text: str) -> None:
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Speak").click()


def state(page: Any, words: str) -> None:
    page.get_by_role("status").filter(has_text=words).wait_for()


def figure(page: Any, name: str) -> float:
    return float(page.locator(f"#{name}").text_content().split()[0])


def pcm_of(server: RunningServer, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    answer = httpx2.post(server.speech_url, json={"input": text, "response_format": "pcm"})
    samples = np.frombuffer(answer.raise_for_status().content, "<i2").astype(np.float32) / 32768
    return samples[PRIMER_SAMPLES:]


# ------------------------------------------------------------------------------------------- sound


@browser
def test_what_is_played_is_what_the_server_sends_sample_for_sample_and_without_a_gap(
    page: Any, server: RunningServer
) -> None:
    speak(page, TEXT)
    state(page, "Done")
    rendered = np.array(page.evaluate(RENDERED), np.float32)
    np.testing.assert_allclose(rendered, pcm_of(server, TEXT), atol=1e-6, rtol=0)
    assert figure(page, "gaps") == 0


@browser
def test_it_is_heard_and_not_only_scheduled(page: Any) -> None:
    speak(page, TEXT)
    page.wait_for_function("() => ears.length && loudness() > 0.05")
    before = page.evaluate("contexts[0].currentTime")
    page.wait_for_function("before => contexts[0].currentTime > before + 0.2", arg=before)
    state(page, "Done")
    page.wait_for_function("() => contexts[0].state == 'closed'")
    samples = sum(page.evaluate("scheduled.map(block => block.samples.length)"))
    assert page.evaluate("contexts[0].currentTime") >= samples / 24_000, "it was done before it was heard"


@browser
def test_sound_begins_while_the_rest_is_still_computed(page: Any, server: RunningServer) -> None:
    speak(page, ENDLESS)
    page.wait_for_function("() => ears.length && loudness() > 0.05")
    assert server.status()["active"] == 1
    page.get_by_role("button", name="Stop").click()
    state(page, "Stopped.")


@browser
def test_stop_is_silence_and_frees_the_slot(page: Any, server: RunningServer) -> None:
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)  # what was stopped before is counted
    before = server.status()["requests"]["cancelled"]
    speak(page, ENDLESS)
    page.wait_for_function("() => ears.length && loudness() > 0.05")
    page.get_by_role("button", name="Stop").click()
    state(page, "Stopped.")
    blocks = page.evaluate("scheduled.length")
    page.wait_for_function("() => loudness() == 0 || contexts[0].state == 'closed'")
    page.wait_for_function("() => contexts[0].state == 'closed'")
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)
    assert server.status()["requests"]["cancelled"] == before + 1
    page.wait_for_timeout(2000 * SLOW_S)
    assert page.evaluate("scheduled.length") == blocks, "something was scheduled after the stop"
    assert page.get_by_role("button", name="Stop").is_disabled()


@browser
def test_a_new_speech_ends_the_one_before(page: Any, server: RunningServer) -> None:
    speak(page, ENDLESS)
    page.wait_for_function("() => ears.length && loudness() > 0.05")
    speak(page, TEXT)
    state(page, "Done")
    assert page.evaluate("contexts.length") == 2
    np.testing.assert_allclose(page.evaluate(RENDERED), pcm_of(server, TEXT), atol=1e-6, rtol=0)
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)


@browser
def test_a_server_that_warms_up_is_said_to_be_ready_once_it_is(page: Any) -> None:
    looks = []

    def cold_at_first(route: Any) -> None:
        looks.append(route)
        answer = route.fetch()
        warmth = {"status": "warming"} if len(looks) == 1 else {}
        route.fulfill(response=answer, json={**answer.json(), **warmth})

    page.route("**/health", cold_at_first)
    page.reload()
    page.locator("#server", has_text="warming up").wait_for()
    page.locator("#server", has_text="is ready").wait_for()


@browser
def test_after_a_gap_no_more_counts_as_played_than_was_heard(page: Any) -> None:
    """A late block is scheduled a little ahead: until it sounds, the position stands where it stood."""
    at_s = [0.52, 1.02, 5.0, 5.02, 5.52]  # one second is here, and the next two come at 5 s
    played = page.evaluate(LATE_BLOCK, at_s)
    assert played == pytest.approx([12_000, 24_000, 24_000, 24_000, 36_000])


# ----------------------------------------------------------------------------------------- figures


@browser
def test_time_to_first_audio_does_not_count_the_primer(page: Any) -> None:
    speak(page, "This slow sentence is the first of them, and takes its time.")
    state(page, "Done")
    assert 1000 * SLOW_S <= figure(page, "ttfa") < figure(page, "heard")


@browser
def test_the_figures_are_those_of_the_speech(page: Any, server: RunningServer) -> None:
    speak(page, TEXT)
    state(page, "Done")
    samples = pcm_of(server, TEXT)
    loud = np.flatnonzero(np.abs(samples) >= 10 ** (-54 / 20))
    assert figure(page, "length") == pytest.approx((loud[-1] + 1 - loud[0]) / 24_000, abs=0.006)
    assert 0 < figure(page, "rtf") < 5
    assert page.locator("#ran").text_content().startswith("hum, fp32, CPU")


@browser
def test_the_waveform_shows_the_speech(page: Any) -> None:
    painted = """() => {
        const canvas = document.querySelector("canvas")
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data
        return data.filter((value, at) => at % 4 == 3 && value > 0).length
    }"""
    assert page.evaluate(painted) == 0
    speak(page, TEXT)
    state(page, "Done")
    assert page.evaluate(painted) > 1000
    assert "seconds of speech" in page.get_by_role("img").get_attribute("aria-label")


# ------------------------------------------------------------------------------------ without a mouse


@browser
def test_everything_can_be_done_by_keyboard(page: Any, server: RunningServer) -> None:
    order = []
    for _ in range(7):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.localName"))
    assert order == ["text", "voice", "sample", "speed", "normal", "summary", "speak"]
    assert page.evaluate(
        "[...document.querySelectorAll('textarea, select, input')].every(f => f.labels.length || f.ariaLabel)"
    )

    page.locator("#text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("One line, and")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("another slow one. " * 10)
    assert page.locator("#text").input_value().startswith("One line, and\nanother")
    page.keyboard.press("Enter")
    page.wait_for_function("() => ears.length && loudness() > 0.05")
    page.keyboard.press("Escape")
    state(page, "Stopped.")
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)

    page.get_by_role("button", name="Speak").focus()
    page.keyboard.press("Space")
    state(page, "Speaking.")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "pause"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "stop"
    page.keyboard.press("Enter")
    state(page, "Stopped.")
    assert page.evaluate("document.activeElement.id") == "speak", "the focus went with the disabled button"
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)


# ------------------------------------------------------------------------------------------ errors


@browser
def test_an_empty_text_is_said_at_its_field(page: Any) -> None:
    speak(page, "   ")
    error = page.get_by_role("alert").filter(has_text="text")
    error.wait_for()
    assert "{" not in error.inner_text()
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.locator("#text").get_attribute("aria-invalid") == "true"
    assert page.evaluate("scheduled.length") == 0
    speak(page, TEXT)  # and the next attempt starts clean
    state(page, "Done")
    assert page.get_by_role("alert").inner_text() == ""
    assert page.locator("#text").get_attribute("aria-invalid") is None


@browser
def test_an_unknown_voice_is_said_at_its_field(page: Any) -> None:
    # A page that was opened before the server lost a voice
    page.evaluate("document.querySelector('#voice').add(new Option('nobody'))")
    page.locator("#voice").select_option("nobody")
    speak(page, TEXT)
    page.get_by_role("alert").filter(has_text="hum, hum_high").wait_for()
    assert page.evaluate("document.activeElement.id") == "voice"


@browser
def test_a_language_that_nobody_reads_is_said_at_its_field(page: Any) -> None:
    page.evaluate("document.querySelector('#language').add(new Option('tlh', 'tlh', true, true))")
    page.evaluate("document.querySelector('#more').open = false")
    speak(page, TEXT)
    page.get_by_role("alert").filter(has_text="tlh").wait_for()
    assert page.evaluate("document.activeElement.id") == "language", "the field is folded away"


@browser
def test_a_speech_that_breaks_off_is_played_so_far_and_said_to_be_broken(page: Any) -> None:
    speak(page, BROKEN)
    page.get_by_role("alert").filter(has_text="broke off").wait_for()
    assert sum(page.evaluate("scheduled.map(block => block.samples.length)")) > 24_000
    assert page.get_by_role("button", name="Stop").is_disabled()


@browser
def test_a_server_that_is_gone_is_said_to_be(page: Any) -> None:
    page.route("**/v1/audio/speech", lambda route: route.abort())
    speak(page, TEXT)
    page.get_by_role("alert").filter(has_text="cannot be reached").wait_for()


@browser
def test_a_busy_server_is_asked_again(page: Any) -> None:
    tries = []

    def busy_at_first(route: Any) -> None:
        tries.append(route)
        if len(tries) == 1:
            route.fulfill(status=429, headers={"Retry-After": "1"}, body="{}")
        else:
            route.continue_()

    page.route("**/v1/audio/speech", busy_at_first)
    speak(page, TEXT)
    state(page, "asking again in 1 s")
    state(page, "Done")
    assert len(tries) == 2
    assert figure(page, "ttfa") < 1000, "waiting for a slot is not part of it"


@browser
def test_a_key_is_asked_for_and_kept_nowhere(locked: RunningServer, driver: Any) -> None:
    with new_page(driver) as page:
        page.goto(locked.url)
        speak(page, TEXT)
        page.get_by_role("alert").filter(has_text="API key").wait_for()
        assert page.evaluate("document.activeElement.id") == "key"
        page.keyboard.type("sesame")
        page.keyboard.press("Enter")
        state(page, "Done")
        kept = page.evaluate("[JSON.stringify(localStorage), sessionStorage.length, document.cookie]")
        assert "sesame" not in kept[0]
        assert kept[1:] == [0, ""]
        page.reload()
        assert page.locator("#key").input_value() == ""


# --------------------------------------------------------------------------------------- the files


@browser
def test_nothing_is_fetched_from_elsewhere(page: Any, server: RunningServer) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    speak(page, TEXT)
    state(page, "Done")
    assert len(asked) >= 8
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(server.url).netloc}


@browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_can_be_read_in_light_and_dark_and_on_a_small_screen(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 320, "height": 600})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert min(page.evaluate(CONTRAST)) >= 4.5
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 24, 22)"
    assert dark == (scheme == "dark")


def test_the_page_allows_scripts_and_styles_of_its_own_alone(server: RunningServer) -> None:
    answer = httpx2.get(f"{server.url}/")
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    fetched = re.sub(r"<a [^>]*>", "", answer.text)  # a link is followed by whoever wants to
    for foreign in ("://", "<style", " style=", " onclick="):
        assert foreign not in fetched


@pytest.mark.parametrize(
    ("path", "kind"),
    [("page.js", "javascript"), ("player.js", "javascript"), ("page.css", "text/css"), ("icon.svg", "svg")],
)
def test_its_files_are_served_with_their_types(server: RunningServer, path: str, kind: str) -> None:
    answer = httpx2.get(f"{server.url}/page/{path}")
    assert answer.status_code == 200
    assert kind in answer.headers["Content-Type"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    again = httpx2.get(f"{server.url}/page/{path}", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("path", ["..%2ffront_page.py", "..%2f..%2fserve.py", "", "none.js"])
def test_nothing_beside_them_is_served(server: RunningServer, path: str) -> None:
    answer = httpx2.get(f"{server.url}/page/{path}")
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
