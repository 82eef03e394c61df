"""What takes long says how far it is, on a terminal; a log is spared."""

from __future__ import annotations

import io
import sys

import pytest

from kokoro_lab.weights.progress import Step, step_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, shown: bool = True) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with step_bar("graphs", 3, shown) as begins:
        for name in ("reading", "rewriting", "writing"):
            begins(name)
    return stream.getvalue()


def test_on_a_terminal_every_step_is_named_and_the_bar_ends_full(monkeypatch: pytest.MonkeyPatch) -> None:
    said = drawn(monkeypatch, Terminal())
    places = [said.index(name) for name in ("reading", "rewriting", "writing", "done")]
    assert places == sorted(places)
    assert "graphs" in said
    assert "3/3" in said.split("\r")[-1]


def test_a_step_that_began_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(OSError, match="full"), step_bar("graphs", 2, True) as begins:
        fill_the_disk(begins)
    assert "2/2" not in stream.getvalue()
    assert "done" not in stream.getvalue()


def fill_the_disk(begins: Step) -> None:
    begins("reading")
    begins("writing")
    raise OSError("full")


def test_nothing_is_drawn_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, io.StringIO()) == ""
    assert drawn(monkeypatch, Terminal(), shown=False) == ""
