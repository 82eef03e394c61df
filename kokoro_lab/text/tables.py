"""Tables beside the code: what is written and how it is said, lists of words, units, currencies.

They are tab-separated, and their first line names the columns. A cell may hold several entries: `km, Km`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files

import regex


def rows(package: str, name: str, **allowed: Sequence[str]) -> Iterator[dict[str, str]]:
    """The rows of a table in `package`, by the names of its columns. Cells that end a row may be missing.

    Parameters
    ----------
    **allowed : sequence of str
        By the name of a column, what may stand in it.

    Raises
    ------
    ValueError
        A row has no first cell, more cells than there are columns, or one that is not `allowed`. It names the
        file and the line.
    """
    header, *lines = files(package).joinpath(name).read_text("utf-8").removesuffix("\n").split("\n")
    columns = header.split("\t")
    for number, line in enumerate(lines, 2):
        cells = line.split("\t")
        if not cells[0] or len(cells) > len(columns):
            raise ValueError(f"{name}, line {number}: {len(cells)} cells, where {', '.join(columns)} belong")
        row = dict(zip(columns, cells + [""] * (len(columns) - len(cells)), strict=True))
        for column, values in allowed.items():
            if row[column] not in values:
                raise ValueError(
                    f"{name}, line {number}: {column} is {row[column]!r}, not {' or '.join(values)}"
                )
        yield row


def entries(cell: str) -> list[str]:
    """The entries of one cell; an empty one has none."""
    return cell.split(", ") if cell else []


@cache
def names(package: str, name: str = "names.tsv") -> dict[str, dict[str, str]]:
    """By the `kind` of a table's row, what is `spoken` for each of its `written` entries.

    Raises
    ------
    ValueError
        As `rows`; or an entry stands twice in a kind.
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
    """By the name of a `list`, its `words`, which may stand in several rows.

    Raises
    ------
    ValueError
        As `rows`.
    """
    found: dict[str, frozenset[str]] = {}
    for row in rows(package, name):
        found[row["list"]] = found.get(row["list"], frozenset()).union(entries(row["words"]))
    return found


def any_of(written: Iterable[str]) -> str:
    """A pattern for one of `written`, the longest that fits; it may stand in a verbose pattern too."""
    return f"(?:{'|'.join(regex.escape(each) for each in sorted(written, key=len, reverse=True))})"
