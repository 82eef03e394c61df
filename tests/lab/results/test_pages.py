"""The pages over results: what they hold, that they are made whole, and what a browser makes of them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.lab.results import write_index
from kokoro_lab.lab.results.kept import find_run, read_runs
from kokoro_lab.lab.results.pages import comparison_path, write_comparison
from tests.browser import chromium, new_page, serious_findings
from tests.lab.results.planted import GATE, HOSTILE, plant, record


def comparison(folder: Path) -> Path:
    runs = read_runs(folder)
    a, b = find_run("aa01", runs), find_run("aa02", runs)
    return write_comparison(a, b, comparison_path(folder, a, b))


def test_the_index_has_each_run_with_its_verdict_and_a_link(tmp_path: Path) -> None:
    page = write_index(plant(tmp_path)).read_text("utf-8")
    assert page.count("<tr data-notebook") == 11
    assert f'href="{GATE}/20260102T100000Z-aa02/report.html"' in page
    for verdict in ("passed", "failed", "crashed", "interrupted", "running", "unreadable"):
        assert f'<span class="verdict {verdict}">{verdict}</span>' in page
    assert "loudest file, from −16 LUFS to −15.9 LUFS in 2 runs" in page, "the curve says what it shows"


def test_of_an_empty_folder_the_index_says_what_to_do(tmp_path: Path) -> None:
    assert "kokoro-lab run 00_quickstart" in write_index(tmp_path / "results").read_text("utf-8")


def test_what_a_notebook_says_is_text_and_no_page(tmp_path: Path) -> None:
    plant(tmp_path)
    run = tmp_path / "20_quantization_abx/20260112T100000Z-aa12"
    write_json(run / "result.json", record(parameters={"voices": HOSTILE + "!"}))
    (run / "note.txt").write_text(HOSTILE)
    runs = read_runs(tmp_path)
    a, b = find_run("aa11", runs), find_run("aa12", runs)
    for page in (write_index(tmp_path), write_comparison(a, b, tmp_path / "compared/page.html")):
        text = page.read_text("utf-8")
        assert "&lt;script&gt;document.title" in text
        assert "<script>document.title" not in text
        assert "<img" not in text


def test_the_index_is_in_place_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_index(plant(tmp_path))
    write_index(tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["index.html"]


@pytest.mark.test_all
def test_a_thousand_runs_cost_little(tmp_path: Path) -> None:
    for number in range(1000):
        run_id = f"20260101T{number // 60:04}{number % 60:02}Z-{number:04x}"
        write_json(tmp_path / GATE / run_id / "result.json", record())
    began = time.process_time()
    page = write_index(tmp_path)
    assert time.process_time() - began < 5
    assert page.stat().st_size < 2_000_000
    assert page.read_text('utf-8').count('<tr data-notebook') == 1000


def test_the_comparison_has_the_regression_first_and_both_sounds(tmp_path: Path) -> None:
    page = comparison(plant(tmp_path)).read_text("utf-8")
    rows = re.findall(r'<tr class="(\w*)"><th scope="row" title="(\w+)"', page)
    assert rows[:2] == [("bad", "stream_true_peak_dbtp"), ("bad", "loudest_file_lufs")]
    for run in ("20260101T100000Z-aa01", "20260102T100000Z-aa02"):
        assert f'src="../{GATE}/{run}/audio/loud.wav"' in page
    assert page.count("the same bytes") == 1


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.browser
@pytest.mark.test_all
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_both_pages_open_offline_and_bar_nobody(
    tmp_path: Path, browser: Any, scheme: str, width: int
) -> None:
    plant(tmp_path)
    for path in (write_index(tmp_path), comparison(tmp_path)):
        asked: list[str] = []
        with new_page(browser) as page:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 800})
            page.on("request", lambda request: asked.append(request.url))  # noqa: B023
            page.goto(path.as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert serious_findings(page) == []
            assert "taken" not in page.title()
        assert [url for url in asked if not url.startswith("file://")] == []


@pytest.mark.browser
@pytest.mark.test_all
def test_the_index_sorts_and_filters(tmp_path: Path, browser: Any) -> None:
    with new_page(browser) as page:
        page.goto(write_index(plant(tmp_path)).as_uri())
        rows = page.locator("#all tbody tr:visible")

        def first() -> str:
            return str(rows.first.locator("td").first.inner_text())

        assert (rows.count(), first()) == (11, "aa11")
        page.get_by_role("button", name="when").click()
        assert first() == "aa01"
        page.get_by_role("button", name="notebook").click()
        assert rows.first.locator("td").nth(1).inner_text() == "20_quantization_abx"
        page.get_by_label("Verdict").select_option("failed")
        assert rows.count() == 3
        page.get_by_label("Words").fill("peak")
        assert (rows.count(), first()) == (1, "aa02")
        assert page.locator("#shown").inner_text() == "1 shown"
        page.locator("#all tbody tr:visible a").click()
        assert page.title() == "A report"


@pytest.mark.browser
@pytest.mark.test_all
def test_both_sounds_of_a_comparison_play(tmp_path: Path, browser: Any) -> None:
    with new_page(browser) as page:
        page.goto(comparison(plant(tmp_path)).as_uri())
        assert page.locator("table tbody tr").first.inner_text().startswith("stream true peak\tfails now")
        for label in ("A, loud.wav", "B, loud.wav"):
            sound = page.get_by_label(label, exact=True)
            played = "s => new Promise(end => { s.onended = () => end(s.currentTime); s.play() })"
            assert sound.evaluate(played) == pytest.approx(0.3, abs=0.05)
