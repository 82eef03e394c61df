"""The pages that tell people how to use kokoro-lab: one of them by its path, or all of them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def page(name: str) -> str:
    """The text of a page, by its path in the repository."""
    return (ROOT / name).read_text("utf-8")


def all_pages() -> str:
    """The text of README.md and of every page in docs/, one behind the other."""
    return "\n".join(path.read_text("utf-8") for path in PAGES)
