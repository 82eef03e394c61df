"""The pages that tell people how to use kokoro-lab: one of them by its path, or all of them."""

from __future__ import annotations

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kokoro_lab.config import PREFIX, Settings

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
RECIPES = ROOT / "CONTRIBUTING.md"


def page(name: str) -> str:
    """The text of a page, by its path in the repository."""
    return (ROOT / name).read_text("utf-8")


def all_pages() -> str:
    """The text of README.md, of every page in docs/ and of CONTRIBUTING.md, one behind the other."""
    return "\n".join(path.read_text("utf-8") for path in (*PAGES, RECIPES))


class Block(NamedTuple):
    """A fenced block of a page: its language as the fence names it, and what stands in it."""

    language: str
    text: str


def blocks_of(text: str) -> list[Block]:
    """The fenced blocks of a page, in its order."""
    return [Block(*found) for found in re.findall(r"^```(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)]


def block(holds: str) -> str:
    """What stands in the only block of all pages that holds this; it may stand there more than once."""
    (found,) = {each.text for each in blocks_of(all_pages()) if holds in each.text}
    return found


def settings_table() -> str:
    """The table of docs/configuration.md: the fields of `Settings`, and what stands under each."""
    tree = ast.parse((ROOT / "kokoro_lab/config.py").read_text("utf-8"))
    (fields,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    rows = ["| variable | default | what it sets |", "|---|---|---|"]
    for field, said in pairwise(fields):
        if not isinstance(field, ast.AnnAssign):
            continue
        assert isinstance(field.target, ast.Name)
        name = field.target.id
        value = Settings.model_fields[name].default
        default = "unset" if value in ("", None) else f"`{value}`"
        default = "the user's cache folder" if name == "home" else default
        rows.append(
            f"| `{PREFIX}{name.upper()}` | {default} | {' '.join(ast.literal_eval(said.value).split())} |"
        )
    return "\n".join(rows)
