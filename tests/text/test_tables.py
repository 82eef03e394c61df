"""Tables beside the code are checked as they are read: an error names the file and the line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import regex

from kokoro_lab.text import tables


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A package with a table in it, whose lines are the fixture's parameter."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "names.tsv").write_text("\n".join(request.param) + "\n", "utf-8")
    (folder / "words.tsv").write_text("list\twords\ncolour\tred, dark blue\ncolour\tgreen\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "shelf", raising=False)
    tables.names.cache_clear()
    tables.words.cache_clear()
    return "shelf"


HEADER = "kind\twritten\tspoken"


@pytest.mark.parametrize(
    "package", [[HEADER, "unit\tkm, Km\tkilometer", "sign\t®", "unit\tm\tmeter"]], indirect=True
)
def test_a_table_says_what_is_written_and_how_it_is_said(package: str) -> None:
    assert tables.names(package) == {
        "unit": {"km": "kilometer", "Km": "kilometer", "m": "meter"},
        "sign": {"®": ""},
    }
    assert tables.words(package) == {"colour": {"red", "dark blue", "green"}}


@pytest.mark.parametrize(
    ("package", "error"),
    [
        ([HEADER, "unit\tkm\tkilometer\tmore"], "names.tsv, line 2: 4 cells"),
        ([HEADER, "unit\tkm\tkilometer", ""], "names.tsv, line 3: 1 cells"),
        ([HEADER, "unit\tkm\tkilometer", "unit\tm, km\tmile"], "names.tsv, line 3: km stands twice"),
    ],
    indirect=["package"],
)
def test_a_row_that_is_wrong_is_named(package: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        tables.names(package)


@pytest.mark.parametrize(
    "package", [["one\tmany\tgender\twritten", "hora\thoras\tf\th, hs", "gramo\tgramos\tn\tg"]], indirect=True
)
def test_a_unit_of_no_known_gender_is_named(package: str) -> None:
    with pytest.raises(ValueError, match=r"names\.tsv, line 3: gender is 'n', not m or f"):
        tables.units(package, "names.tsv")


def test_the_longest_word_that_fits_is_taken() -> None:
    pattern = regex.compile(rf"(?:{tables.any_of(['m', 'm/s', 'sq. ft'])})", regex.VERBOSE)
    assert [pattern.match(text)[0] for text in ("m/s", "m x", "sq. ft")] == ["m/s", "m", "sq. ft"]
