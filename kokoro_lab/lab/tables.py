"""Formats tables for readers, in notebooks and files: columns with units, only meaningful digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.results.units import label_of, words_of

DIGITS = 4
SHOWN_ROWS = 100
LONG_TEXT = 40
NO_VALUE = "–"

_KINDS = {
    **dict.fromkeys(("passed", "caught"), "good"),
    **dict.fromkeys(("failed", "crashed", "missed", "LOST"), "bad"),
    **dict.fromkeys(("stale", "not measured"), "waiting"),
}


@dataclass(frozen=True)
class ShownTable:
    """A table that shows itself in a notebook; made by `shown`.

    Parameters
    ----------
    frame : DataFrame
        The table with every value as text; columns without any value are left out.
    numbers : frozenset of str
        Columns that are aligned to the right.
    note : str
        Says which rows or columns are left out.
    """

    frame: pd.DataFrame
    numbers: frozenset[str]
    note: str = ""

    def __repr__(self) -> str:
        return self.frame.to_string(index=False) if len(self.frame) else self.note

    def _repr_html_(self) -> str:
        rows = list(self.frame.itertuples(index=False))
        return filled("tables", columns=list(self.frame.columns), rows=rows, note=self.note, kind=self._kind)

    def _kind(self, column: str, text: str) -> str:
        if column in self.numbers:
            return "number"
        return "long" if len(text) > LONG_TEXT or "\n" in text else _KINDS.get(text, "")


def shown(
    rows: pd.DataFrame | pd.Series | Sequence[Any], *, most: int = SHOWN_ROWS, none: str = "No rows."
) -> ShownTable:
    """A table for readers, with meaningful digits only and without empty columns.

    Parameters
    ----------
    rows : DataFrame, Series or sequence of dataclasses
        An index that has a name, or is no plain count, is shown, too.
    most : int
        How many rows are shown. If there are more, a line below says how many.
    none : str
        The text if there is no row.
    """
    frame = pd.DataFrame(rows)
    if any(frame.index.names) or not pd.api.types.is_integer_dtype(frame.index):
        frame = frame.reset_index(names=[name or "" for name in frame.index.names])
    frame.columns = [
        " ".join(map(str, name)).strip() if isinstance(name, tuple) else str(name) for name in frame.columns
    ]
    if frame.empty:
        return ShownTable(pd.DataFrame(), frozenset(), none)
    valueless = [name for name in frame.columns if frame[name].isna().all()]
    notes = [f"Without a value: {', '.join(map(words_of, valueless))}."] if valueless else []
    if len(frame) > most:
        notes.append(f"The first {most} of {len(frame)} rows.")
    frame = frame.drop(columns=valueless).head(most)
    named = {name: label_of(name) or name for name in frame.columns}
    labels = [label if list(named.values()).count(label) == 1 else name for name, label in named.items()]
    numbers = (label for label, name in zip(labels, frame.columns, strict=True) if _is_number(frame[name]))
    texts = {label: _texts(frame[name]) for label, name in zip(labels, frame.columns, strict=True)}
    return ShownTable(pd.DataFrame(texts), frozenset(numbers), " ".join(notes))


def _is_number(column: pd.Series) -> bool:
    there = column.dropna()
    return all(isinstance(value, Real) and not isinstance(value, bool | np.bool_) for value in there)


def _texts(column: pd.Series) -> list[str]:
    """The numbers of a column as text with the same number of decimals, unless the smallest number would then
    show fewer than two digits."""
    sizes = [
        abs(float(value)) for value in column if isinstance(value, float) and math.isfinite(value) and value
    ]
    most = max(sizes, default=1.0)
    places = min(DIGITS, max(0, DIGITS - 1 - math.floor(math.log10(most))))
    alike = _is_number(column) and (not sizes or min(sizes) >= 10 ** (1 - places))
    return [_text(value, f",.{places}f" if alike else f",.{DIGITS}g") for value in column]


def _text(value: Any, how: str) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            return NO_VALUE if math.isnan(value) else "∞" if value > 0 else "−∞"
        text = format(float(value), how)
        return text.removeprefix("-") if not text.strip("-0.") else text.replace("-", "−")
    if isinstance(value, int | np.integer):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(map(str, value)) or NO_VALUE
    return NO_VALUE if value is None or value is pd.NA or value == "" else str(value)


def markdown(table: pd.DataFrame) -> str:
    """A table in GitHub's Markdown; line breaks within a cell are kept."""

    def row(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    body = [
        [str(cell).replace("|", "\\|").replace("\n", "<br>") for cell in each]
        for each in table.itertuples(index=False)
    ]
    return "\n".join([row(list(table.columns)), row(["---"] * len(table.columns)), *map(row, body), ""])


def write(folder: Path, name: str, title: str, summary: str, table: pd.DataFrame) -> None:
    """Write `<name>.md` and `<name>.html` with title, summary and table; the folder is made if it is
    missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"# {title}\n{summary}\n\n{markdown(table)}", "utf-8")
    whole = Markup(shown(table, most=len(table))._repr_html_())
    page = filled("table_page", title=title, summary=summary, table=whole)
    (folder / f"{name}.html").write_text(page, "utf-8")
