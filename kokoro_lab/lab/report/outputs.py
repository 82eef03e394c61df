"""What cells have shown, as HTML for readers: tables, figures and sounds, no progress bars and no `repr`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from contextlib import suppress
from html import escape
from typing import Any

from kokoro_lab.lab.report.header import MARK

_BAR = re.compile(r"[^\r\n]*\[\d\d+:\d\d[^\]\n]*\]")
"""A progress bar as tqdm draws it: it ends in `[00:05<01:17,  5.99s/it]`."""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r'<table border="1" class="dataframe">.*?</table>', re.DOTALL)
_HEAD = re.compile(r"<thead>\s*<tr>(.*?)</tr>\s*<tr>(.*?)</tr>\s*</thead>", re.DOTALL)
_CELL = re.compile(r"<(t[dh])>(.*?)</t[dh]>", re.DOTALL)
_FIGURE = re.compile(r"[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?%?|inf|-inf")
MISSING = ("NaN", "nan", "None", "NaT", "&lt;NA&gt;")
"""How pandas writes a value that is not there."""


def text_of(value: Any) -> str:
    """A notebook's text, which its format keeps whole or in lines."""
    return value if isinstance(value, str) else "".join(value)


def message_of(output: Mapping[str, Any]) -> str:
    """What a reader may skip: warnings, and the traceback of a crash; empty of anything else."""
    if output["output_type"] == "error":
        if output["ename"] == "GateFailed":  # the header has it
            return ""
        return _ANSI.sub("", "\n".join(output["traceback"]))
    if output["output_type"] == "stream" and output["name"] == "stderr":
        said = _BAR.sub("", _ANSI.sub("", text_of(output["text"]))).replace("\r", "")
        return "\n".join(line for line in said.splitlines() if line.strip())
    return ""


def output_html(output: Mapping[str, Any], under: str) -> str:
    """One output as HTML; empty where it shows nothing.

    Parameters
    ----------
    output : mapping
        As a notebook's file has it.
    under : str
        The heading that it stands under, which describes a figure that has no description of its own.
    """
    if output["output_type"] == "stream":
        return _said(text_of(output["text"])) if output["name"] == "stdout" else ""
    data = {kind: text_of(value) for kind, value in output.get("data", {}).items() if _is_text(value)}
    if "text/html" in data:
        return "" if MARK in data["text/html"] else legible(data["text/html"])
    if "image/svg+xml" in data:
        return data["image/svg+xml"]
    for kind in ("image/png", "image/jpeg"):
        if kind in data:
            size = output.get("metadata", {}).get(kind, {})
            wide = f' width="{int(size["width"])}"' if "width" in size else ""
            alt = escape(str(size.get("alt") or f"Figure: {under}"))
            return f'<img alt="{alt}"{wide} src="data:{kind};base64,{data[kind].strip()}">'
    if any("widget-view" in kind for kind in output.get("data", {})):
        return "<p><em>This part works in JupyterLab only.</em></p>"
    return _said(_without_quotes(data.get("text/plain", "")))


def legible(html: str) -> str:
    """Tables of pandas without its style: figures on the right, `–` for what is missing."""
    html = re.sub(r"<style scoped>.*?</style>", "", html, flags=re.DOTALL)
    return _FRAME.sub(lambda found: _aligned(found[0]), html)


def _aligned(table: str) -> str:
    rows = [[cell for kind, cell in _CELL.findall(row) if kind == "td"] for row in table.split("</tr>")]
    rows = [row for row in rows if row]
    # Columns are counted from the right: on the left, an index may span rows
    figures = {
        place
        for place in range(1, max(map(len, rows), default=0) + 1)
        if all(_is_figure(row[-place]) for row in rows if len(row) >= place)
        and any(row[-place] not in MISSING for row in rows if len(row) >= place)
    }

    def row_html(row: str) -> str:
        places = iter(range(len(_CELL.findall(row)), 0, -1))

        def cell_html(found: re.Match[str]) -> str:
            kind, cell = found[1], found[2]
            right = next(places) in figures and (kind == "td" or "<td>" not in row)
            shown = "–" if cell in MISSING else cell
            return f'<{kind} class="figure">{shown}</{kind}>' if right else f"<{kind}>{shown}</{kind}>"

        return _CELL.sub(cell_html, row)

    plain = table.replace(' border="1"', "").replace(' style="text-align: right;"', "")
    plain = _HEAD.sub(_one_row, plain)
    if not rows:
        plain = plain.replace("<tbody>", "<tbody><tr><td>no rows</td></tr>")
    return "</tr>".join(map(row_html, plain.split("</tr>")))


def _one_row(head: re.Match[str]) -> str:
    """Headings of columns and names of the index, which pandas puts into two rows, in one."""
    columns, index = (_CELL.findall(row) for row in head.groups())
    pairs = [(column, name) for (_, column), (_, name) in zip(columns, index, strict=False)]
    if len(columns) != len(index) or any(column and name for column, name in pairs):
        return head[0]
    return f"<thead><tr>{''.join(f'<th>{column or name}</th>' for column, name in pairs)}</tr></thead>"


def _is_figure(cell: str) -> bool:
    return cell in MISSING or cell == "" or _FIGURE.fullmatch(cell) is not None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(line, str) for line in value)
    )


def _said(text: str) -> str:
    return f'<p class="said">{escape(text.strip())}</p>' if text.strip() else ""


def _without_quotes(text: str) -> str:
    """A string as it reads, not as Python writes it."""
    with suppress(ValueError, SyntaxError):
        if text[:1] in "'\"" and isinstance(found := ast.literal_eval(text), str):
            return found
    return text
