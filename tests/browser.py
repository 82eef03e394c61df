"""Headless Chromium for the tests that a person would take, and what is said where it is missing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

AXE = Path(__file__).parent / "clients/node_modules/axe-core/axe.min.js"
"""What looks for barriers on a page, as the npm package of its name has it."""


def require(there: dict[str, object]) -> None:
    """Skip a test, saying what to install, if one of the values is false. In CI that is a failure."""
    missing = [how for how, found in there.items() if not found]
    if missing:
        message = f"install {' and '.join(missing)}"
        assert not os.environ.get("CI"), message
        pytest.skip(message)


@contextmanager
def chromium() -> Iterator[Any]:
    """Headless Chromium, to open pages with."""
    require(
        {
            "Chromium (Debian: apt-get install chromium; or Google Chrome)": CHROMIUM,
            "playwright (the extra `dev`: make env)": find_spec("playwright"),
        }
    )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Root, as in a container, has no sandbox; the pages are ours
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        browser.close()


@contextmanager
def new_page(browser: Any) -> Iterator[Any]:
    """A page without a past: no cookies, no storage."""
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()


def serious_findings(page: Any) -> list[str]:
    """What axe-core calls serious or critical on a page as it stands: a line for each, with where it is."""
    require({"axe-core (make clients)": AXE.exists()})
    page.evaluate(f"{AXE.read_text()};0")
    found = page.evaluate("axe.run()")["violations"]
    return [
        f"{each['id']}: {each['help']}: {[node['target'] for node in each['nodes']]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
