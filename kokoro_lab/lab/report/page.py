"""Makes the report of a run: its header, then the text and outputs of its notebook, in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape, unescape
from pathlib import Path
from typing import Any

import mistune
from markupsafe import Markup

from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.report.header import header_html, title_of
from kokoro_lab.lab.report.outputs import message_of, output_html, text_of
from kokoro_lab.lab.results import INTERRUPTED, Result, read_result
from kokoro_lab.provenance import git_state, machine

Cells = Sequence[dict[str, Any]]


def write_report(executed: Path, report: Path) -> None:
    """Write the report of a run into its folder: no code, all tables, figures and sounds.

    Parameters
    ----------
    executed : Path
        The notebook as it was executed; a run that was ended early may have left none.
    report : Path
        Path of the page. The result, or the note of a crash, lies beside it.

    Raises
    ------
    ResultError
        The result cannot be read.
    """
    cells = json.loads(executed.read_text("utf-8"))["cells"] if executed.exists() else []
    folder = report.parent
    result = read_result(folder) or Result(folder.parent.name, {}, folder, INTERRUPTED)
    if "git" not in result.record:  # the run ended too early to record these; they are those of this process
        made = {"git": git_state(), "machine": machine()}
        result = replace(result, record={**made, **result.record})
    report.write_text(page_html(result, cells), "utf-8")


def page_html(result: Result, cells: Cells) -> str:
    """The whole page, made of a run's result and the cells of its notebook."""
    read = _Reader()
    body = "\n".join(read.sections(cells))
    return filled(
        "report/templates/page",
        title=title_of(result),
        notebook=result.notebook,
        question=Markup(read.question or escape(result.notebook)),
        header=header_html(result, came_to=_came_to(cells)),
        contents=[(anchor, Markup(words)) for anchor, words in read.contents],
        body=Markup(body),
        messages=read.messages,
    )


@dataclass
class _Reader:
    """Goes through the cells once, and collects the parts that are shown elsewhere on the page."""

    question: str = ""
    contents: list[tuple[str, str]] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def sections(self, cells: Cells) -> Iterator[str]:
        """Cells as HTML. A heading with nothing under it is left out, and so are the cells that papermill
        adds."""
        markdown = mistune.create_markdown(renderer=_Headings(self), plugins=["table"])
        bare = ""  # a heading that waits for something to stand under it
        for cell in cells:
            if "papermill-error-cell-tag" in cell["metadata"].get("tags", []):
                continue
            if cell["cell_type"] == "markdown":
                before = len(self.contents)
                html = str(markdown(text_of(cell["source"]))).strip()
                if bare and html.startswith("<h2"):
                    del self.contents[before - 1]
                elif bare:
                    yield bare
                bare = html if re.fullmatch(r"<h2[^\n]*</h2>", html) else ""
                if html and not bare:
                    yield html
                continue
            for output in cell.get("outputs", []):
                if message := message_of(output):
                    self.messages.append(message)
                under = unescape(
                    re.sub("<.*?>", "", self.contents[-1][1] if self.contents else self.question)
                )
                if html := output_html(output, under):
                    if bare:
                        yield bare
                        bare = ""
                    # An output that may be too wide scrolls in a box, also by keys; the others bring their
                    # own boxes
                    wide = html.startswith(("<img", "<table")) or 'class="dataframe"' in html
                    focus = f' tabindex="0" role="group" aria-label="{escape(under)}"' if wide else ""
                    yield f'<div class="output"{focus}>{html}</div>'
        if bare:
            del self.contents[-1:]


class _Headings(mistune.HTMLRenderer):
    """Writes each heading of a notebook with an anchor that links can name. The first heading of the first
    level is the notebook's question; it is left out here, since it stands at the top of the page."""

    def __init__(self, reader: _Reader) -> None:
        super().__init__()
        self._reader = reader
        self._anchors: set[str] = set()

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        if level == 1 and not self._reader.question:
            self._reader.question = text
            return ""
        anchor = re.sub(r"\W+", "-", re.sub("<.*?>", "", text).lower()).strip("-")
        while anchor in self._anchors:
            anchor += "-"
        self._anchors.add(anchor)
        if level == 2:
            self._reader.contents.append((anchor, text))
        return f'<h{level} id="{escape(anchor)}">{text}</h{level}>\n'


def _came_to(cells: Cells) -> str:
    """A sentence on where a notebook stopped; empty if it finished."""
    steps, heading = [], ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            found = re.match(r"#+ (.*)", text_of(cell["source"]))
            heading = found[1] if found else heading
        else:
            steps.append((cell["metadata"].get("papermill", {}).get("status"), heading))
    for number, (status, under) in enumerate(steps, 1):
        if status != "completed":
            return f"It came to step {number} of {len(steps)}" + (f", under “{under}”." if under else ".")
    return ""
