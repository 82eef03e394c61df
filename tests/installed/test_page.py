"""The page of `kokoro-lab serve`, in a browser; and what its figures rest on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import chromium, new_page
from tests.installed.command import Served
from tests.server.conftest import wait_until

TEXT = "The page reads this sentence twice, and says of the second time where its first sound came from."


def first_audio(served: Served, text: str) -> str:
    answer = served.speak(text, stream=True)
    assert answer.status_code == 200
    return str(answer.headers["X-Kokoro-First-Audio"])


def test_a_stream_says_whether_its_first_audio_was_kept(served: Served) -> None:
    text = "This sentence is asked for twice by a client that measures."
    assert [first_audio(served, text), first_audio(served, text)] == ["computed", "cache"]


@pytest.mark.browser
def test_a_first_audio_from_the_cache_is_no_time_to_first_audio(served: Served) -> None:
    with chromium() as browser, new_page(browser) as page:
        page.goto(served.url)
        page.locator("#server", has_text="ready").wait_for()
        assert "cached" not in spoken(page)
        assert spoken(page).endswith("ms, cached")


@pytest.mark.browser
def test_after_a_stop_a_resize_leaves_as_much_marked_as_was_played(served: Served) -> None:
    """A phone's address bar resizes the page: the rest of a stopped speech is not shown as played."""
    with chromium() as browser, new_page(browser) as page:
        page.goto(served.url)
        page.locator("#server", has_text="ready").wait_for()
        page.locator("#text").fill(" ".join([TEXT] * 4))
        page.get_by_role("button", name="Speak").click()
        page.get_by_role("status").filter(has_text="Speaking").wait_for()
        # Far ahead of what is played, so that a part of the picture is not
        wait_until(lambda: float((page.locator("#length").text_content() or "0").split()[0]) > 8)
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("status").filter(has_text="Stopped").wait_for()
        before = played_ratio(page)
        page.evaluate("window.dispatchEvent(new Event('resize'))")
        assert played_ratio(page) == pytest.approx(before, abs=0.02)
        assert before < 0.9


def spoken(page: Any) -> str:
    """Speak `TEXT` to its end; the figure of TTFA then."""
    page.locator("#text").fill(TEXT)
    page.get_by_role("button", name="Speak").click()
    page.get_by_role("status").filter(has_text="Done").wait_for()
    return str(page.locator("#ttfa").text_content())


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
