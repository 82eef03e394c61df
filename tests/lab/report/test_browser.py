"""A report in a browser: everybody can read it, on a phone and in the dark; it asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kokoro_lab.containers import write_file
from kokoro_lab.lab.report.page import write_report
from kokoro_lab.lab.results import Check, NegativeControl, open_run
from tests.browser import chromium, new_page, serious_findings
from tests.lab.report.test_page import code, markdown, said

pytestmark = pytest.mark.browser

WIDE = pd.DataFrame([[f"a long text in column {n}" for n in range(20)], list(range(20))])
HOSTILE = '<img alt="" src="http://outside.invalid/a.png"><script>fetch("http://outside.invalid/b")</script>'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run with sounds, tables, messages, a wide table, and an output that would fetch."""
    folder = tmp_path_factory.mktemp("99_test") / "20261126T101112Z-ab12"
    run = open_run("99_test", folder, {"voice": "af_heart", "text": "word " * 80})
    for name in ("a", "b#1", "c", "d", "e"):
        write_file(folder / f"audio/{name}.wav", pd.Series([0.0] * 2400).to_numpy("float32"), 24_000)
    run.keep_table("streams", WIDE)
    run.finish(
        {"variant": "int8", "active_provider": "CPUExecutionProvider"},
        checks=[Check("quietest_file_lufs", -16.2, low=-17, high=-15), Check("x_db", 1.95, high=2.0)],
        controls=[NegativeControl(f"fault {n}", caught=True) for n in range(9)],
        remarks=["41 of 46 lines not measured"],
    )
    frame = {"output_type": "execute_result", "metadata": {}}
    cells = [
        markdown("# Is it loud?\nA sentence about `clips`."),
        markdown("## Wide"),
        code(
            {**frame, "data": {"text/html": WIDE._repr_html_()}}, said("x" * 400), said("A warning", "stderr")
        ),
        code({**frame, "data": {"text/html": HOSTILE}}),
    ]
    (folder / "executed.ipynb").write_text(json.dumps({"cells": cells}))
    write_report(folder / "executed.ipynb", folder / "report.html")
    return folder / "report.html"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(browser: Any, report: Path, scheme: str) -> None:
    with new_page(browser) as page:
        page.emulate_media(color_scheme=scheme)
        page.goto(report.as_uri())
        for summary in page.query_selector_all("summary"):
            summary.click()
        assert serious_findings(page) == []


def test_the_header_is_at_the_top_with_margins(browser: Any, report: Path) -> None:
    with new_page(browser) as page:
        page.goto(report.as_uri())
        assert (
            page.title()
            == f"{report.parent.parent.name}: passed; 41 of 46 lines not measured, "
            + (json.loads((report.parent / "result.json").read_text())["started_at"][:10])
        )
        assert page.inner_text(".run-header .headline") == "Passed; 41 of 46 lines not measured"
        assert page.locator(".run-header .headline").bounding_box()["y"] < 250
        rows = [row.inner_text().split("\t") for row in page.query_selector_all("table.checks tbody tr")[:2]]
        assert [row[0] for row in rows] == ["x", "quietest file"], "the nearest to its limit first"
        assert [row[-2].strip() for row in rows] == ["0.05", "0.8"]


def test_nothing_is_fetched_from_outside_and_its_sounds_play(browser: Any, report: Path) -> None:
    with new_page(browser) as page:
        asked: list[Any] = []
        page.on("request", lambda request: asked.append(request))
        page.goto(report.as_uri())
        page.wait_for_timeout(300)
        page.click("summary:has-text('Sounds')")
        heard = page.evaluate("""async () => {
            const sounds = [...document.querySelectorAll("audio")];
            await Promise.all(sounds.map(sound => new Promise(done => {
                sound.onloadedmetadata = done; sound.onerror = done; sound.preload = "auto"; sound.load();
            })));
            return sounds.map(sound => sound.duration);
        }""")
        assert heard == [pytest.approx(0.1)] * 5
        outside = [request for request in asked if not request.url.startswith(("file:", "data:"))]
        assert {request.failure for request in outside} == {"csp"}, "what an output asks for is refused"


def test_on_a_phone_only_boxes_scroll(browser: Any, report: Path) -> None:
    with new_page(browser) as page:
        page.set_viewport_size({"width": 390, "height": 800})
        page.goto(report.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = page.locator(".output:has(table)").first
        assert box.evaluate("box => box.scrollWidth > box.clientWidth")


def test_on_paper_what_is_folded_is_open_and_black_on_white(browser: Any, report: Path) -> None:
    with new_page(browser) as page:
        page.goto(report.as_uri())
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("td:has-text('fault 8')").bounding_box()["height"] > 0
