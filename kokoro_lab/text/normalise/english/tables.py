"""The tables beside the rules: units, currencies and abbreviations, a line each, tab-separated."""

from __future__ import annotations

import csv
from importlib.resources import files


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table of this package, by the names in its first line."""
    text = files(__package__).joinpath(name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))
