"""Reads the tables beside the code: spellings with their readings, lists of words, units, currencies.

They are tab-separated, and their first line names the columns. A cell may hold several entries: `km, Km`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Literal, NamedTuple

import regex


def rows(package: str, name: str) -> Iterator[dict[str, str]]:
    """The rows of a table in `package`, by the names of its columns. Empty cells at the end of a row may be
    missing.

    Raises
    ------
    ValueError
        A row has no first cell, or more cells than there are columns. The error names the file and the line.
    """
    header, *lines = files(package).joinpath(name).read_text("utf-8").removesuffix("\n").split("\n")
    columns = header.split("\t")
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if not cells[0] or len(cells) > len(columns):
            raise ValueError(f"{name}, line {number}: {len(cells)} cells, where {', '.join(columns)} belong")
        yield dict(zip(columns, cells + [""] * (len(columns) - len(cells)), strict=True))


def entries(cell: str) -> list[str]:
    """The entries of one cell; an empty one has none."""
    return cell.split(", ") if cell else []


Gender = Literal["m", "f"]


class CountedUnit(NamedTuple):
    """The name of a unit in singular and plural. If the language has genders, also the unit's gender, with
    which the number agrees; for a currency, also the name of its hundredth part."""

    one: str
    many: str
    gender: Gender | None = None
    minor_one: str = ""
    minor_many: str = ""


def units(package: str, name: str, language: str | None = None) -> dict[str, CountedUnit]:
    """A table of units or currencies: `written` entry → its unit; of one `language`, if given.

    Raises
    ------
    ValueError
        In the cases in which `rows` raises it; or a gender is neither `m` nor `f`.
    """
    found: dict[str, CountedUnit] = {}
    for number, row in enumerate(rows(package, name), 2):
        if language in (None, row.get("language")):
            fields: dict[str, Any] = {field: row[field] for field in CountedUnit._fields if field in row}
            if fields.get("gender", "m") not in ("m", "f"):
                raise ValueError(f"{name}, line {number}: gender is {row['gender']!r}, not m or f")
            found |= dict.fromkeys(entries(row["written"]), CountedUnit(**fields))
    return found


@cache
def names(package: str, name: str = "names.tsv") -> dict[str, dict[str, str]]:
    """For each `kind` in a table: `written` entry → `spoken` words.

    Raises
    ------
    ValueError
        In the cases in which `rows` raises it; or an entry stands twice in a kind.
    """
    found: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows(package, name), 2):
        kind = found.setdefault(row["kind"], {})
        for written in entries(row["written"]):
            if written in kind:
                raise ValueError(f"{name}, line {number}: {written} stands twice in {row['kind']}")
            kind[written] = row["spoken"]
    return found


@cache
def words(package: str, name: str = "words.tsv") -> dict[str, frozenset[str]]:
    """Name of each `list` in a table → its `words`, which may stand in several rows.

    Raises
    ------
    ValueError
        In the cases in which `rows` raises it.
    """
    found: dict[str, frozenset[str]] = {}
    for row in rows(package, name):
        found[row["list"]] = found.get(row["list"], frozenset()).union(entries(row["words"]))
    return found


def any_of(written: Iterable[str]) -> str:
    """A pattern for one of `written`, the longest that fits; it may stand in a verbose pattern too."""
    return f"(?:{'|'.join(regex.escape(each) for each in sorted(written, key=len, reverse=True))})"
