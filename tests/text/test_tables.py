"""Tables beside the code are read by row; one that cannot be read is named by its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kokoro_lab.text import tables

PACKAGE = "kokoro_lab.text.normalise.spanish"


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("euro\teuros\tm\t€\tmore", "4 columns|5 cells"),
        ("\teuros\tm\t€", "4 cells"),
        ("euro\teuros\tn\t€", "gender is 'n', not m or f"),
    ],
)
def test_a_wrong_row_is_named(line: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table.tsv").write_text(f"one\tmany\tgender\twritten\nsol\tsoles\tm\n{line}\n", "utf-8")
    monkeypatch.setattr(tables, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=rf"table\.tsv, line 3: .*(?:{wrong})"):
        list(tables.rows("somewhere", "table.tsv", gender=("m", "f")))


def test_cells_hold_entries_and_those_at_the_end_may_be_missing() -> None:
    written = {row["one"]: row["written"] for row in tables.rows(PACKAGE, "currencies.tsv")}
    assert tables.entries(written["euro"]) == ["€", "EUR"]
    assert tables.entries(written["franco"]) == []


def test_a_list_of_words_goes_on_over_rows() -> None:
    assert {"vez", "simiente"} <= tables.words(PACKAGE)["feminine"]
    assert tables.names(PACKAGE)["sign"]["&"] == "y"


def test_the_longest_of_several_is_found() -> None:
    assert tables.any_of(["a", "a b", "ab."]).count("|") == 2
    assert tables.any_of(["a", "a b"]).startswith(r"(?:a\ b")
