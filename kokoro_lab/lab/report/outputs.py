"""Outputs of cells as HTML: tables, figures and sounds, without progress bars and `repr`s."""

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


def text_of(value: Any) -> str:
    """A text of a notebook as one string. The notebook's file may hold it as a list of lines."""
    return value if isinstance(value, str) else "".join(value)


def message_of(output: Mapping[str, Any]) -> str:
    """Text that a reader may skip: warnings, and the traceback of a crash; empty for other outputs."""
    if output["output_type"] == "error":
        if output["ename"] == "GateFailed":  # the header shows it
            return ""
        return _ANSI.sub("", "\n".join(output["traceback"]))
    if output["output_type"] == "stream" and output["name"] == "stderr":
        said = _BAR.sub("", _ANSI.sub("", text_of(output["text"]))).replace("\r", "")
        return "\n".join(line for line in said.splitlines() if line.strip())
    return ""


def output_html(output: Mapping[str, Any], under: str) -> str:
    """One output of a cell as HTML; empty if it shows nothing.

    Parameters
    ----------
    output : mapping
        An output, as the notebook's file holds it.
    under : str
        The heading above the output, which describes a picture that has no description of its own.
    """
    if output["output_type"] == "stream":
        return _said(text_of(output["text"])) if output["name"] == "stdout" else ""
    data = {kind: text_of(value) for kind, value in output.get("data", {}).items() if _is_text(value)}
    if "text/html" in data:
        return "" if MARK in data["text/html"] else data["text/html"]
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


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(line, str) for line in value)
    )


def _said(text: str) -> str:
    return f'<p class="said">{escape(text.strip())}</p>' if text.strip() else ""


def _without_quotes(text: str) -> str:
    """A string literal without Python's quotes and escapes; any other text as it is."""
    with suppress(ValueError, SyntaxError):
        if text[:1] in "'\"" and isinstance(found := ast.literal_eval(text), str):
            return found
    return text
