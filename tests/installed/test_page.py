"""The page of `kokoro-lab serve`, in a browser, on the real weights; and what its figures rest on."""

from __future__ import annotations

import base64
import io
import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import httpx2
import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from tests.browser import chromium, new_page, serious_findings
from tests.clients.test_page import LISTEN
from tests.installed.command import READY_S, Served
from tests.server.conftest import wait_until

TEXT = "The page reads this sentence twice, and says of the second time where its first sound came from."
SHORT = "It cost $3 😀, said Dr. Smith."
PADDING_S = {"wav": 0, "flac": 0, "opus": 0.001, "mp3": 0.1, "aac": 0.1}
"""How much longer than the speech a file of each may be: MP3 and AAC come in frames, behind a delay."""
SAMPLE_S = 1 / SAMPLE_RATE_HZ
WATCH_MS = 60
"""Between two looks at the marked word. The page looks at its clock in between: every `REDRAW_MS`, 30 ms."""
LATENCY_S = 0.02
"""By how much a browser may think otherwise of its device's latency from one look to the next."""
WATCH_WORDS = """(everyMs) => {
    window.told = []   // the words of every event, when the page reads it and not when it shows them
    window.looks = []  // how much has been played, how many words were told, and which one is marked (or -1)
    const parse = JSON.parse
    JSON.parse = (...given) => {
        const event = parse(...given)
        if (event?.type === "speech.audio.words") told.push(...event.words)
        return event
    }
    const look = () => {
        setTimeout(look, everyMs)  // from now on, however late this look is: the page's own comes in between
        if (!scheduled.length) return
        const marked = [...document.querySelectorAll("#words span")].findIndex((span) => span.matches(".now"))
        const playing = new Set(scheduled.map((block) => block.context)).size
        looks.push({ playing, playedS: playedS(), told: told.length, marked })
    }
    look()
}"""


PLAYED = """
window.playedS = () => {  // of what was scheduled last, by the clock of the device
    const { context } = scheduled.at(-1)
    const nowS = context.currentTime - (context.outputLatency || 0)
    return scheduled.filter((block) => block.context === context && block.when <= nowS)
        .reduce((sum, { when, samples, rate }) => sum + Math.min(nowS - when, samples.length / rate), 0)
}
"""
WATCH_CLICK = """() => document.addEventListener("click", () => {  // behind the page's own listener
    window.clicked = [document.querySelector("#position").valueAsNumber, playedS()]
})"""


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture
def page(served: Served, driver: Any) -> Iterator[Any]:
    """The page, opened, with its voices; what it does wrong by its own account fails the test."""
    with new_page(driver) as opened:
        wrong: list[str] = []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.on("console", lambda said: wrong.append(said.text) if "Security" in said.text else None)
        opened.add_init_script(LISTEN + PLAYED)
        opened.asked = []  # of the server, for speech
        opened.on(
            "request",
            lambda request: opened.asked.append(request.post_data_json) if request.method == "POST" else None,
        )
        open_page(opened, served)
        yield opened
        assert not wrong


def open_page(page: Any, served: Served) -> None:
    page.goto(served.url)
    page.locator("#server", has_text="ready").wait_for()
    page.locator("#voice option[value=zf_xiaoni]").wait_for(state="attached")


def speak(page: Any, text: str, state: str = "Done") -> None:
    page.locator("#text").fill(text)
    page.get_by_role("button", name="Speak").click()
    status(page, state)


def status(page: Any, words: str) -> None:
    page.get_by_role("status").filter(has_text=words).wait_for()


def unplayed(page: Any, least_s: float) -> None:
    """Waits until so much speech has arrived that was not played.

    The slider's `max` does not tell: it is the width of the waveform, 4 s at least, whatever has arrived.
    """
    page.wait_for_function(
        "least => parseFloat(document.getElementById('length').textContent) - position.valueAsNumber > least",
        arg=least_s,
    )


def told(served: Served, body: dict[str, Any]) -> tuple[bytes, list[dict[str, Any]]]:
    """The audio and the words that the server answers a request of the page with."""
    answer = httpx2.post(f"{served.url}/v1/audio/speech", json=body, timeout=READY_S).raise_for_status()
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    audio = b"".join(base64.b64decode(event["audio"]) for event in events if "audio" in event)
    return audio, [word for event in events for word in event.get("words", ())]


def marked_words(page: Any, playing: int) -> list[int]:
    """The words that were seen marked in a playing (the first is 1), from the first word told, which is 0.

    Each look fails that finds another one marked than was heard since the look before. A word counts from
    when the page was told of it, however late a slow machine tells.
    """
    begins_s = [word["start_s"] for word in page.evaluate("told")]

    def heard(told: int, played_s: float) -> int:
        return bisect_right(begins_s[:told], played_s) - 1

    looks = [look for look in page.evaluate("looks") if look["playing"] == playing]
    for before, look in pairwise(looks):
        first = heard(before["told"], before["playedS"] - LATENCY_S)
        last = heard(look["told"], look["playedS"] + LATENCY_S)
        assert first <= look["marked"] <= last, (before, look)
    return [look["marked"] for look in looks[1:] if look["marked"] >= 0]


def downloaded(page: Any, name: str) -> tuple[str, bytes]:
    """The name and the bytes of the file that a button gives."""
    with page.expect_download() as found:
        page.get_by_role("button", name=name, exact=True).click()
    return found.value.suggested_filename, found.value.path().read_bytes()


def decoded(data: bytes) -> tuple[np.ndarray[Any, Any], float]:
    """Samples of a file, and how long it is in seconds."""
    import av

    with av.open(io.BytesIO(data)) as container:
        stream = container.streams.audio[0]
        samples = np.concatenate([block.to_ndarray() for block in container.decode(stream)], axis=-1)
        return samples.ravel(), samples.shape[-1] / stream.rate


def first_audio(served: Served, text: str) -> str:
    answer = served.speak(text, stream=True)
    assert answer.status_code == 200
    return str(answer.headers["X-Kokoro-First-Audio"])


def test_a_stream_says_whether_its_first_audio_was_kept(served: Served) -> None:
    text = "This sentence is asked for twice by a client that measures."
    assert [first_audio(served, text), first_audio(served, text)] == ["computed", "cache"]


# ------------------------------------------------------------------------------------ what is said


@pytest.mark.browser
def test_a_first_audio_from_the_cache_is_no_time_to_first_audio(page: Any) -> None:
    speak(page, TEXT)
    assert "cached" not in page.locator("main").text_content()
    speak(page, TEXT, state="its beginning was cached")
    status(page, "Done")
    assert page.locator("#ttfa").text_content().endswith("ms, cached")
    assert "cached" in page.locator("#summary").inner_text()


@pytest.mark.browser
def test_people_read_sentences_and_figures_are_folded_away(page: Any) -> None:
    speak(page, TEXT)
    assert "s of speech by af_heart, heard after" in page.locator("#summary").inner_text()
    assert "times as fast as it is spoken" in page.locator("#summary").inner_text()
    assert not page.locator("#rtf").is_visible()
    assert "CPUExecutionProvider" not in page.locator("main").inner_text()
    page.locator("summary", has_text="Details").click()
    pace = float(page.locator("#summary").inner_text().split(" times as fast")[0].split()[-1])
    rounded = 0.0005 + 0.06 / pace**2  # by three decimals, and by the one decimal of the pace
    assert float(page.locator("#rtf").inner_text()) == pytest.approx(1 / pace, abs=rounded)
    assert "CPUExecutionProvider" in page.locator("#ran").inner_text()


@pytest.mark.browser
def test_after_a_stop_a_resize_leaves_as_much_marked_as_was_played(page: Any) -> None:
    """A phone's address bar resizes the page: the rest of a stopped speech is not shown as played."""
    speak(page, " ".join([TEXT] * 4), state="Speaking")
    page.wait_for_function("() => position.valueAsNumber > 0")
    page.get_by_role("button", name="Pause").click()  # so that more comes than is played, however slowly
    unplayed(page, 4)
    page.get_by_role("button", name="Stop").click()
    status(page, "Stopped")
    wait_until(lambda: 0 < played_ratio(page) < 0.9)  # drawn once more when the rest is known not to come
    before = played_ratio(page)
    page.evaluate("window.dispatchEvent(new Event('resize'))")
    assert played_ratio(page) == pytest.approx(before, abs=0.02)


# ------------------------------------------------------------------------------------------- words


@pytest.mark.browser
def test_words_are_marked_in_their_order_and_at_their_time(page: Any, served: Served) -> None:
    page.evaluate(WATCH_WORDS, WATCH_MS)
    speak(page, "Each of these words is marked while it is heard. That needs a clock which does not err.")
    marked_words(page, playing=1)
    page.get_by_role("button", name="Play again").click()
    status(page, "Playing again")
    status(page, "Done")
    again = marked_words(page, playing=2)
    assert again
    assert again == sorted(again)
    words = [word["text"] for word in page.evaluate("told")]
    assert page.locator("#words span").all_text_contents() == words


@pytest.mark.browser
def test_what_is_written_is_marked_however_it_is_said(page: Any) -> None:
    """`$3` is two words in one place, `😀` two units of JavaScript, and no letter is lost."""
    speak(page, SHORT)
    assert page.locator("#words").text_content() == SHORT
    assert page.locator("#words span").all_text_contents() == [
        "It",
        "cost",
        "$3",
        "😀",
        "said",
        "Dr.",
        "Smith",
    ]


@pytest.mark.browser
def test_a_click_on_a_word_goes_there_and_so_do_keys(page: Any, served: Served) -> None:
    speak(page, TEXT)
    requests = len(page.asked)
    _, words = told(served, page.asked[0])
    begin_s = next(word["start_s"] for word in words if word["text"] == "where")
    page.evaluate(WATCH_CLICK)
    page.locator("#words span", has_text="where").click()
    position_s, played_s = page.evaluate("clicked")
    assert begin_s - SAMPLE_S <= position_s <= begin_s + played_s + SAMPLE_S
    status(page, "Done")
    samples = page.evaluate(
        "scheduled.filter((b) => b.context === scheduled.at(-1).context).flatMap((b) => b.samples)"
    )
    whole, _ = told(served, page.asked[0])
    heard = np.frombuffer(whole, "<i2")[round(begin_s * SAMPLE_RATE_HZ) :] / 32768
    np.testing.assert_allclose(samples, heard, atol=1e-6)

    page.locator("#words").focus()
    for _ in range(2):  # played from its beginning, and held there before it can end
        page.keyboard.press("Space")
    status(page, "Paused.")
    page.wait_for_function("() => contexts.at(-1).state === 'suspended'")
    page.locator("#words span", has_text="where").click()
    assert page.evaluate("clicked[0]") == pytest.approx(begin_s, abs=SAMPLE_S)
    assert page.locator("#words .now").text_content() == "where"
    at = [word["text"] for word in words].index("where")
    for key, step in (("ArrowLeft", -1), ("ArrowLeft", -1), ("ArrowRight", 1)):
        page.keyboard.press(key)
        at += step
        assert page.locator("#words .now").text_content() == words[at]["text"]
    page.keyboard.press("Escape")
    assert len(page.asked) == requests, "what is here is not asked for again"


# ------------------------------------------------------------------------------ files and history


@pytest.mark.browser
@pytest.mark.parametrize("kind", sorted(PADDING_S))
def test_what_was_heard_is_a_file_of_the_chosen_format(page: Any, served: Served, kind: str) -> None:
    speak(page, SHORT)
    whole = np.frombuffer(told(served, page.asked[0])[0], "<i2")
    page.get_by_label("Format").select_option(kind)
    name, data = downloaded(page, "Download")
    assert name == f"It-cost-3-said-Dr-Smith.{kind}"
    samples, length_s = decoded(data)
    assert 0 <= length_s - len(whole) / SAMPLE_RATE_HZ <= PADDING_S[kind]
    if kind in ("wav", "flac"):
        np.testing.assert_array_equal(samples, whole)
    requests = 1 if kind == "wav" else 2  # that of the speech, and one for what only the server can write
    assert len(page.asked) == requests
    assert downloaded(page, "Download") == (name, data)
    assert len(page.asked) == requests


@pytest.mark.browser
def test_the_last_speeches_are_played_and_kept_without_being_spoken_again(page: Any, served: Served) -> None:
    speak(page, SHORT)
    speak(page, "And this one is the second.")
    items = page.locator("#history li")
    assert items.count() == 2
    assert "af_heart" in items.nth(0).inner_text()
    assert "second" in items.nth(0).inner_text(), "the newest is first"
    asked, first = len(page.asked), page.asked[0]
    again = page.get_by_role("button", name="Play again: It cost")
    again.click()
    status(page, "Playing again")
    status(page, "Done")
    samples = page.evaluate(
        "scheduled.filter((b) => b.context === scheduled.at(-1).context).flatMap((b) => b.samples)"
    )
    whole = np.frombuffer(told(served, first)[0], "<i2")
    np.testing.assert_allclose(samples, whole / 32768, atol=1e-6)
    name, data = downloaded(page, f"Download: {SHORT}")
    np.testing.assert_array_equal(decoded(data)[0], whole)
    assert name == "It-cost-3-said-Dr-Smith.wav"
    assert len(page.asked) == asked


@pytest.mark.browser
def test_what_was_stopped_before_it_had_come_is_no_file(page: Any) -> None:
    speak(page, " ".join([TEXT] * 40), state="Speaking")
    page.keyboard.press("Escape")
    status(page, "Stopped. What had not arrived is not kept.")
    assert page.get_by_role("button", name="Download", exact=True).is_disabled()
    assert page.locator("#history li").count() == 0


# ---------------------------------------------------------------------------------------- choices


@pytest.mark.browser
def test_a_mixture_is_sent_as_it_is_said(page: Any) -> None:
    page.locator("summary", has_text="More").click()
    assert page.locator("#other").is_disabled(), "there is nothing to mix it with"
    page.locator("#voice").select_option("af_bella")
    page.locator("#other").select_option("af_sky")
    page.locator("#share").fill("3")
    assert "70 % af_bella, 30 % af_sky: sent as af_bella(7)+af_sky(3)" in page.locator("#mixed").inner_text()
    page.locator("#speed").fill("1.5")
    speak(page, SHORT)
    assert page.asked[0]["voice"] == "af_bella(7)+af_sky(3)"
    assert page.asked[0]["speed"] == 1.5
    assert "af_bella(7)+af_sky(3)" in page.locator("#summary").inner_text()
    page.get_by_role("button", name="Normal speed").click()
    assert page.locator("#speed-said").inner_text() == "1.00 ×"


def _answering(answer: Any) -> Callable[[Any], None]:
    return lambda route: route.fulfill(json=answer)


@pytest.mark.browser
def test_voices_that_read_nothing_here_can_be_chosen_only_for_another_language(
    page: Any, served: Served
) -> None:
    offered = httpx2.get(f"{served.url}/v1/audio/voices").json()["voices"]
    unread = {"zf_xiaoni": "zh needs an extra"}  # as a server without it says
    answers = {
        "v1/audio/voices": {"voices": [voice for voice in offered if voice["id"] not in unread]},
        "status": served.status() | {"voices_not_offered": unread},
    }
    for path, answer in answers.items():
        page.route(f"{served.url}/{path}", _answering(answer))
    open_page(page, served)
    disabled = page.evaluate(
        "[...document.querySelectorAll('#voice option')].filter((o) => o.disabled).map((o) => o.value)"
    )
    assert disabled == ["zf_xiaoni"]
    page.locator("summary", has_text="More").click()
    assert "zh needs an extra" in page.locator("#voices").inner_text()
    page.locator("#language").select_option("en-gb")
    page.locator("#voice").select_option("zf_xiaoni")
    speak(page, SHORT)
    assert (page.asked[0]["voice"], page.asked[0]["language"]) == ("zf_xiaoni", "en-gb")


@pytest.mark.browser
def test_voices_stand_by_language_and_sex(page: Any) -> None:
    groups = page.evaluate(
        "Object.fromEntries([...document.querySelectorAll('#voice optgroup')]"
        ".map((g) => [g.label, [...g.children].map((o) => o.value)]))"
    )
    assert "bf_emma" in groups["British English, female"]
    assert "am_adam" in groups["American English, male"]


@pytest.mark.browser
def test_a_sample_goes_with_the_voice_and_never_takes_what_was_written(page: Any) -> None:
    page.locator("#voice").select_option("ff_siwis")
    assert "soleil" in page.locator("#text").input_value()
    page.locator("#text").fill("Mine.")
    page.locator("#voice").select_option("if_sara")
    assert page.locator("#text").input_value() == "Mine."
    page.get_by_label("Sample text").select_option("Hindi")
    page.get_by_label("Sample text").select_option("Your own text")
    assert page.locator("#text").input_value() == "Mine."


@pytest.mark.browser
def test_text_and_choices_outlast_a_reload_until_they_are_forgotten(page: Any, served: Served) -> None:
    chosen = {"voice": "bm_george", "other": "bf_emma", "language": "en-us", "format": "flac"}
    speak(page, SHORT)
    page.locator("summary", has_text="More").click()
    for field, value in chosen.items():
        page.locator(f"#{field}").select_option(value)
    page.locator("#speed").fill("2")
    page.locator("#ssml").check()
    page.locator("#text").fill("<speak>Mine.</speak>")
    open_page(page, served)
    assert {field: page.locator(f"#{field}").input_value() for field in chosen} == chosen
    assert page.locator("#text").input_value() == "<speak>Mine.</speak>"
    assert page.locator("#speed").input_value() == "2"
    assert page.locator("#ssml").is_checked()
    page.get_by_role("button", name="Forget").click()
    open_page(page, served)
    assert page.locator("#voice").input_value() == ""
    assert "fox" in page.locator("#text").input_value()
    assert page.evaluate("localStorage.length") == 0 or "Mine" not in page.evaluate(
        "JSON.stringify(localStorage)"
    )


@pytest.mark.browser
def test_where_nothing_may_be_kept_it_speaks_all_the_same(page: Any, served: Served) -> None:
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'Security') } })"
    )
    open_page(page, served)
    speak(page, SHORT)
    assert page.get_by_role("alert").inner_text() == ""


@pytest.mark.browser
def test_a_text_file_is_read_into_the_field(page: Any) -> None:
    file = {"name": "a.ssml", "mimeType": "text/plain", "buffer": b"<speak>From a file.</speak>"}
    page.locator("summary", has_text="More").click()
    page.get_by_label("Text from a file").set_input_files(file)
    status(page, "a.ssml is in the field.")
    assert page.locator("#ssml").is_checked()
    page.evaluate(
        """() => {
            const dataTransfer = new DataTransfer()
            dataTransfer.items.add(new File(["# Dropped"], "b.md", { type: "text/markdown" }))
            document.querySelector("#text").dispatchEvent(
                new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }))
        }"""
    )
    status(page, "b.md is in the field.")
    assert page.locator("#text").input_value() == "# Dropped"
    assert not page.locator("#ssml").is_checked()


# ------------------------------------------------------------------------------------ for everybody


@pytest.mark.browser
def test_keys_alone_do_all(page: Any) -> None:
    def tab_to(field: str) -> None:
        for _ in range(40):
            if page.evaluate("document.activeElement.id || document.activeElement.textContent") == field:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{field} cannot be reached")

    tab_to("text")
    page.keyboard.press("Control+A")
    page.keyboard.type(TEXT)
    tab_to("voice")
    page.keyboard.type("Emma")
    tab_to("speed")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Control+Enter")
    status(page, "Speaking")
    assert page.asked[0]["voice"] == "bf_emma"
    assert page.asked[0]["speed"] == pytest.approx(1.05)
    page.keyboard.press("Space")
    status(page, "Paused.")
    tab_to("position")
    # A slow server may not have sent more yet than was played, and then there is nothing to move to
    unplayed(page, 0.5)
    before = page.evaluate("position.valueAsNumber")
    page.keyboard.press("PageUp")
    assert page.evaluate("position.valueAsNumber") > before
    page.keyboard.press("Space")
    status(page, "Speaking.")
    status(page, "Done")
    tab_to("download")
    with page.expect_download():
        page.keyboard.press("Enter")
    tab_to("Play again")
    page.keyboard.press("Enter")
    status(page, "Playing again")
    page.keyboard.press("Escape")
    status(page, "Stopped.")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_bars_anybody(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    assert serious_findings(page) == []
    speak(page, TEXT, state="Speaking")
    page.locator("#words .now").wait_for()
    for folded in page.locator("summary").all():
        folded.click()
    assert serious_findings(page) == []
    status(page, "Done")
    assert "of them played" in page.get_by_role("img").get_attribute("aria-label")
    page.locator("#text").fill(" ")
    page.get_by_role("button", name="Speak").click()
    page.get_by_role("alert").filter(has_text="text").wait_for()
    assert serious_findings(page) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", [375, 390])
def test_it_fits_a_phone_and_a_thumb(served: Served, driver: Any, width: int) -> None:
    phone = driver.new_context(viewport={"width": width, "height": 844}, has_touch=True, is_mobile=True)
    page = phone.new_page()
    open_page(page, served)
    speak(page, " ".join([TEXT] * 2), state="Speaking")
    for folded in page.locator("summary").all():
        folded.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not page.locator("#keys").is_visible(), "a phone has no such keys"
    low = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, summary, nav a, .check")]
            .filter((e) => e.type !== "checkbox")  // its label is the target
            .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 44)
            .map((e) => e.id || e.textContent)"""
    )
    assert low == []
    phone.close()


@pytest.mark.browser
def test_nothing_is_fetched_from_elsewhere_and_little_from_here(page: Any, served: Served) -> None:
    answers: list[Any] = []
    page.on("response", lambda answer: answers.append(answer))
    open_page(page, served)
    speak(page, SHORT)
    downloaded(page, "Download")
    hosts = {urlsplit(answer.url).netloc for answer in answers if not answer.url.startswith("blob:")}
    assert hosts == {urlsplit(served.url).netloc}
    of_page = {urlsplit(a.url).path for a in answers if "/page/" in a.url} | {"/"}
    assert {"/page/words.js", "/page/history.js", "/page/player.js"} < of_page
    assert sum(len(httpx2.get(served.url + path).content) for path in of_page) < 60_000


def played_ratio(page: Any) -> float:
    """The share of the waveform's painted pixels that have the colour of what was played."""
    return float(
        page.evaluate(
            """() => {
                const canvas = document.querySelector("canvas");
                const pen = canvas.getContext("2d", { willReadFrequently: true });
                const probe = document.createElement("canvas").getContext("2d");
                probe.fillStyle = getComputedStyle(canvas).getPropertyValue("--accent");
                probe.fillRect(0, 0, 1, 1);
                const accent = probe.getImageData(0, 0, 1, 1).data;
                const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
                let painted = 0, played = 0;
                for (let at = 0; at < data.length; at += 4) {
                    if (data[at + 3] < 255) continue;
                    painted += 1;
                    if ([0, 1, 2].every((c) => Math.abs(data[at + c] - accent[c]) < 3)) played += 1;
                }
                return painted ? played / painted : 1;
            }"""
        )
    )
