"""HTML of the lab: fills templates, and joins style sheets and scripts that lie beside the code."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from jinja2 import Environment

LAB = Path(__file__).parent


def filled(name: str, **values: Any) -> Markup:
    """A template, filled with `values`, which are escaped unless they are Markup.

    Parameters
    ----------
    name : str
        The template's path from this folder, without `.html`, such as `report/templates/page`.
    """
    return Markup(_templates().get_template(f"{name}.html").render(values))


@cache
def own(*paths: str) -> Markup:
    """The text of style sheets or scripts, joined, for a page that takes it unescaped. Paths begin at this
    folder."""
    return Markup("\n".join((LAB / path).read_text("utf-8") for path in paths))


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader

    from kokoro_lab.lab.results.units import label_of, words_of  # results have pages, which are filled here

    made = Environment(loader=FileSystemLoader(LAB), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"words": words_of, "label": label_of}
    made.globals["own"] = own
    return made
