"""A report is one file that says how a run ended, and asks nobody for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.report.page import write_report
from kokoro_lab.lab.results import Check, open_run

MOST_BYTES = 3_000_000
"""A report may hold, with its sounds beside it."""
FETCHED = {"src", "href", "srcset", "poster", "data", "action", "xlink:href"}


def markdown(source: str, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source, "metadata": metadata}


def code(*outputs: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": "secret()",
        "metadata": {"papermill": {"status": status}},
        "outputs": list(outputs),
    }


def said(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


CELLS = [
    markdown("# Is it *loud*?\nOne row a `clip`."),
    markdown("## The clips"),
    code(said("as loud as ever"), said("175 samples were clipped\n", "stderr")),
    markdown("## The clips"),
    markdown("And again."),
    markdown("## Verdict"),
    code(),
]


class Page(HTMLParser):
    """Addresses that a page names, and the ids that it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in FETCHED]
        self.ids += [value or "" for name, value in attrs if name == "id"]


def outside(addresses: list[str]) -> Iterator[str]:
    """Addresses that are neither on the page, nor in it, nor beside it."""
    for address in addresses:
        scheme = address.partition(":")[0] if ":" in address.partition("/")[0] else ""
        if address.startswith("//") or scheme not in ("", "data"):
            yield address


def report(folder: Path, cells: list[dict[str, Any]] | None) -> str:
    if cells is not None:
        (folder / "executed.ipynb").write_text(json.dumps({"cells": cells}))
    write_report(folder / "executed.ipynb", folder / "report.html")
    return (folder / "report.html").read_text("utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a run that has passed."""
    found = tmp_path / "99_test" / "20261126T101112Z-ab12"
    open_run("99_test", found).finish({"variant": "int8"}, checks=[Check("x_db", 1.0, high=2.0)])
    return found


def test_the_verdict_comes_first_and_then_what_the_notebook_says(folder: Path) -> None:
    html = report(folder, CELLS)
    parts = ["<h1>Is it <em>loud</em>?</h1>", "Passed", "≤ 2", "<nav", "One row a <code>clip</code>"]
    places = [html.index(part) for part in [*parts, "as loud as ever", "And again."]]
    assert places == sorted(places)
    assert "<title>99_test: passed, 20" in html
    assert "secret()" not in html


def test_a_heading_has_an_anchor_and_one_with_nothing_under_it_is_left_out(folder: Path) -> None:
    html = report(folder, CELLS)
    page = Page(html)
    assert [one for one in page.addresses if one.startswith("#")] == ["#the-clips", "#the-clips-"]
    assert {"the-clips", "the-clips-"} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "Verdict</h2>" not in html


def test_messages_are_folded_at_the_end(folder: Path) -> None:
    html = report(folder, CELLS)
    assert html.index("And again.") < html.index('<details class="messages"') < html.index("175 samples")
    assert '<details class="messages"' not in report(folder, CELLS[3:])


def test_a_report_asks_nobody_for_anything(folder: Path) -> None:
    (folder / "audio/a.wav").write_bytes(b"")
    page = Page(report(folder, [*CELLS, markdown('<img src="http://x/y.png">')]))
    assert "audio/a.wav" in page.addresses
    assert list(outside(page.addresses)) == []
    assert list(outside(["//x/y", "https://x", "data:a", "b.wav", "#c"])) == ["//x/y", "https://x"]


def test_its_own_part_is_small(folder: Path) -> None:
    assert len(report(folder, CELLS)) < 20_000


def test_a_failed_run_has_its_header_without_its_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "99_test/1"
    with pytest.raises(GateFailed):
        open_run("99_test", folder).finish({}, checks=[Check("x_db", 3.0, high=2.0)])
    error = {"output_type": "error", "ename": "GateFailed", "evalue": "", "traceback": ["GateFailed"]}
    html = report(folder, [*CELLS, code(error, status="failed")])
    assert "not within: x" in html
    assert "GateFailed" not in html
    assert "It came to" not in html


def test_a_crash_says_how_far_it_came_and_keeps_its_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "99_test" / "20261126T101112Z-ab12"
    folder.mkdir(parents=True)
    (folder / "crash.json").write_text('{"message": "ZeroDivisionError: by zero", "parameters": {}}')
    error = {"output_type": "error", "ename": "ZeroDivisionError", "evalue": "", "traceback": ["line 7"]}
    note = markdown('<span style="color:red">An Exception</span>', tags=["papermill-error-cell-tag"])
    html = report(folder, [note, *CELLS[:3], code(error, status="failed"), code(status="pending")])
    assert "ZeroDivisionError: by zero. It came to step 2 of 3, under “The clips”." in html
    assert "line 7" in html
    assert "An Exception" not in html
    assert "<title>99_test: crashed, 2026-11-26" in html
    assert "2026-11-26 10:11 UTC" in html


def test_a_run_that_left_nothing_has_a_header(tmp_path: Path) -> None:
    folder = tmp_path / "99_test" / "1"
    folder.mkdir(parents=True)
    html = report(folder, None)
    assert "Interrupted" in html
    assert "neither a result nor a reason" in html
    assert "<h1>99_test</h1>" in html
