"""Tables for readers without a notebook: Markdown and HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pandas as pd

_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; }
td.passed, td.caught { background: #dff3df; }
td.failed, td.crashed { background: #f7caca; font-weight: bold; }
td.not-measured, td.stale { background: #fbefc4; }
"""


def markdown(table: pd.DataFrame) -> str:
    """A table as GitHub's Markdown has it; lines within a cell are kept."""

    def row(cells: list[str]) -> str:
        return f"| {' | '.join(cells)} |"

    body = [
        [str(cell).replace("|", "\\|").replace("\n", "<br>") for cell in each]
        for each in table.itertuples(index=False)
    ]
    return "\n".join([row(list(table.columns)), row(["---"] * len(table.columns)), *map(row, body), ""])


def html(table: pd.DataFrame) -> str:
    """A table as HTML; a cell has its own text as its class, so that verdicts have colours."""
    head = "".join(f"<th>{escape(str(name))}</th>" for name in table.columns)
    rows = "".join(
        f"<tr>{''.join(_cell(str(cell)) for cell in each)}</tr>\n" for each in table.itertuples(index=False)
    )
    return f"<table>\n<tr>{head}</tr>\n{rows}</table>\n"


def write(folder: Path, name: str, title: str, summary: str, table: pd.DataFrame) -> None:
    """Write `<name>.md` and `<name>.html`: a title, a sentence and the table."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(f"# {title}\n{summary}\n\n{markdown(table)}", "utf-8")
    page = (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style>\n<h1>{escape(title)}</h1>\n<p>{escape(summary)}</p>\n{html(table)}</html>\n"
    )
    (folder / f"{name}.html").write_text(page, "utf-8")


def _cell(text: str) -> str:
    kind = f' class="{text.replace(" ", "-")}"' if text.replace(" ", "").isalpha() and len(text) < 13 else ""
    return f"<td{kind}>{escape(text).replace(chr(10), '<br>')}</td>"
