"""A listener opens a report from the disk, clicks on the worst clip, and hears it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from kokoro_lab.lab.results import open_run
from tests.browser import chromium, new_page
from tests.lab.clips.planted import LIMITS, clip
from tests.lab.listening.test_browser import Lab, lab, run_the_cell  # noqa: F401  # a fixture, by its name

pytestmark = pytest.mark.browser

HEARD = """() => {
    const heard = [...document.querySelectorAll(".drawer:not([hidden]) audio")].find((one) => !one.muted)
    return {
        file: heard.getAttribute("src"), time: heard.currentTime, playing: !heard.paused,
        shown: heard.closest(".side").checkVisibility(), word: document.querySelector(".word.now")?.innerText,
        cursor: parseFloat(heard.parentElement.querySelector(".cursor").style.left),
        row: document.querySelector("tr.shown button").innerText.trim(),
    }
}"""


@pytest.fixture
def requests() -> list[str]:
    return []


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def report(browser: Any, tmp_path: Path, requests: list[str]) -> Iterator[Any]:
    """The clips 1 to 3, of which the worst is 3, and 1 has no reference."""
    run = open_run("99_test", tmp_path)
    html = run.keep_clips([clip(1, reference=False), clip(3), clip(2)], LIMITS)._repr_html_()
    page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Clips</title><h1>Clips</h1>{html}'
    (tmp_path / "report.html").write_text(page, "utf-8")
    with new_page(browser) as opened:
        opened.on("request", lambda request: requests.append(request.url))
        opened.goto((tmp_path / "report.html").as_uri())
        yield opened


def heard(page: Any, after_s: float = -1.0) -> dict[str, Any]:
    """What is heard and shown once more than `after_s` of the clip is over, in the frame that draws it: the
    page has asked for the frame before, so it draws first.

    The page waits by itself, since to ask again takes a busy machine longer than a word.
    """
    found: dict[str, Any] = page.evaluate(f"""async () => {{
        for (const since = performance.now(); performance.now() - since < 30_000;) {{
            await new Promise(requestAnimationFrame)
            const now = ({HEARD})()
            if (now.time > {after_s}) return now
        }}
        throw Error("the clip does not come to {after_s} s")
    }}""")
    return found


def test_a_click_on_the_worst_clip_plays_it_and_marks_its_words(
    report: Any, requests: list[str], tmp_path: Path
) -> None:
    report.locator("tbody tr").first.click()
    first = heard(report, 0.3)
    assert first["row"] == "clip 3 & more"
    assert first["file"] == "audio/worst-01-clip-3-more-candidate.flac"
    assert (first["playing"], first["shown"]) == (True, True)
    assert first["word"].split() == ["<Kettle>", "kˈɛtᵊl"]
    assert first["cursor"] == pytest.approx(50 * first["time"], abs=3)
    assert heard(report, 1.1)["word"].startswith("on")
    report.wait_for_function(f"() => !({HEARD})().playing")
    assert heard(report)["time"] == pytest.approx(2.0, abs=0.05), "to its end"
    assert {url.rpartition("/")[0] for url in requests if not url.startswith("data:")} == {
        tmp_path.as_uri(),
        f"{tmp_path.as_uri()}/audio",
    }


def test_a_dot_plays_its_clip_and_a_second_click_pauses_it(report: Any) -> None:
    report.locator('.dot[data-clip="1"]').click()
    dot = "document.querySelector('.dot[data-clip=\"1\"]')"
    click = f"{dot}.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))"
    # In one step, since a clip that has ended would begin again
    again = f"() => {{ const now = ({HEARD})(); if (!(now.time > 0.2)) return null; {click}; return now }}"
    playing = report.wait_for_function(again).json_value()
    assert (playing["row"], playing["playing"]) == ("clip 2 & more", True)
    assert not heard(report)["playing"]
    assert report.locator(".place").nth(1).inner_text().endswith("of 2.00 s")


SWITCHED = {
    "key": "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'r', bubbles: true }))",
    "button": "document.querySelector('.drawer:not([hidden]) .switch').click()",
}


@pytest.mark.parametrize("by", SWITCHED)
def test_the_reference_goes_on_at_the_same_instant(report: Any, by: str) -> None:
    report.locator("tbody tr").first.click()
    heard(report, 0.5)
    both = f"() => {{ const now = {HEARD}; const before = now(); {SWITCHED[by]}; return [before, now()] }}"
    before, after = report.evaluate(both)
    assert after["file"].endswith("reference.flac")
    assert (after["playing"], after["shown"]) == (True, True)
    assert after["time"] == pytest.approx(before["time"], abs=0.11)
    heard(report, after["time"] + 0.1)
    report.keyboard.press("r")
    assert heard(report)["file"].endswith("candidate.flac")


def test_the_next_clip_begins_with_its_candidate(report: Any) -> None:
    report.locator("tbody tr").first.click()
    report.keyboard.press("r")
    report.locator("tbody tr").nth(1).click()
    assert heard(report, 0.1)["file"].endswith("candidate.flac")


def test_all_can_be_done_by_keys(report: Any) -> None:
    keys = report.keyboard
    keys.press("Tab")
    assert report.evaluate("document.activeElement.innerText") == "clip 3 & more"
    keys.press("ArrowDown")
    keys.press("Enter")
    assert heard(report, 0.2)["row"] == "clip 2 & more"
    keys.press(" ")
    stopped = heard(report)
    assert not stopped["playing"]
    keys.press("ArrowRight")
    assert heard(report)["time"] == pytest.approx(stopped["time"] + 0.5, abs=0.02)
    keys.press("ArrowLeft")
    keys.press("ArrowLeft")
    assert heard(report)["time"] == pytest.approx(max(stopped["time"] - 0.5, 0), abs=0.02)
    keys.press(" ")
    assert heard(report)["playing"]
    keys.press("ArrowDown")
    keys.press("Enter")
    assert heard(report, 0.2)["row"] == "clip 1 & more"
    keys.press("r")
    assert heard(report)["file"].endswith("candidate.flac"), "it has no reference"


def test_a_click_into_the_picture_seeks_there(report: Any) -> None:
    report.locator("tbody tr").first.click()
    heard(report, 0.1)
    report.keyboard.press(" ")
    box = report.locator(".spectrogram:visible").bounding_box()
    report.mouse.click(box["x"] + 0.75 * box["width"], box["y"] + 50)
    assert heard(report)["time"] == pytest.approx(1.5, abs=0.02)
    report.locator(".word:visible").first.click()
    assert heard(report)["time"] == pytest.approx(0.2, abs=0.01)


def test_a_sound_that_is_gone_is_said_to_be(report: Any, tmp_path: Path) -> None:
    for path in (tmp_path / "audio").iterdir():
        path.unlink()
    report.locator("tbody tr").first.click()
    alert = report.locator(".drawer:visible [role=alert]")
    alert.get_by_text("cannot be played").wait_for()
    assert alert.inner_text().startswith("audio/worst-01-clip-3-more-candidate.flac ")


def test_a_phone_scrolls_tables_and_pictures_and_not_the_page(report: Any) -> None:
    report.set_viewport_size({"width": 390, "height": 800})
    report.locator("tbody tr").first.click()
    assert report.evaluate("document.documentElement.scrollWidth") == 390


CELL = f"""\
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from kokoro_lab.lab.clips import ClipsView, kept, worst_first
from tests.lab.clips.planted import LIMITS, clip
from pathlib import Path
Path("audio").mkdir()
ranked = worst_first([clip(1), clip(3)])
worst = [kept(one, place, Path(".")) for place, one in enumerate(ranked, 1)]
ClipsView(worst, ranked, LIMITS, Path("."), embedded=True)"""


@pytest.mark.notebook
def test_it_is_the_same_in_jupyterlab_which_takes_no_key_of_a_listener(browser: Any, lab: Lab) -> None:  # noqa: F811
    kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
    cells = [nbformat.v4.new_code_cell(CELL)]  # type: ignore[no-untyped-call]
    notebook = nbformat.v4.new_notebook(metadata=kernel, cells=cells)  # type: ignore[no-untyped-call]
    nbformat.write(notebook, lab.folder / "clips.ipynb")  # type: ignore[no-untyped-call]
    with new_page(browser) as page:
        page.on("dialog", lambda dialog: dialog.accept())  # "leave the page?"
        page.goto(lab.url("lab/tree/clips.ipynb"))
        run_the_cell(page)
        page.locator(".kokoro-clips tbody tr").first.click()
        assert heard(page, 0.3)["row"] == "clip 3 & more"
        page.keyboard.press("r")
        assert page.locator(".side.reference:visible").count() == 1
        page.keyboard.press(" ")
        assert not heard(page)["playing"]
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert heard(page, 0.1)["row"] == "clip 1 & more"
        page.keyboard.press("m")  # to JupyterLab: make the cell Markdown
        page.wait_for_timeout(300)
        assert page.locator(".jp-CodeCell").count() == page.locator(".jp-Cell").count()
