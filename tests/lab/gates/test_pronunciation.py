"""The notebook on pronunciation notices what is read otherwise, and refuses what is no entry."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.pronunciation import controls, entry, measure, same


def test_an_entry_is_a_grapheme_and_its_phonemes() -> None:
    (found,) = entry("nginx", " ˈɛnʤɪnˈɛks")
    assert (found.grapheme, found.phoneme) == ("nginx", "ˈɛnʤɪnˈɛks")
    assert entry("", "") == ()
    with pytest.raises(ParameterError, match="has no phonemes"):
        entry("nginx", "")


@pytest.mark.parametrize(
    ("read", "expected", "language", "alike"),
    [
        ("It is five.", "it is five", "en", True),
        ("It is nine.", "it is five", "en", False),
        ("It is five five.", "it is five", "en", False),
        ("三 百", "三百", "ja", True),
        ("三百一", "三百", "ja", False),
        ("三 百。", "三百", "zh", True),
    ],
)
def test_readings_are_compared_word_by_word(read: str, expected: str, language: str, alike: bool) -> None:
    assert same(read, expected, language) is alike


def test_every_corpus_is_read_as_expected_and_a_fault_is_caught() -> None:
    table = measure()
    assert set(table.language) == {"en", "es", "ja", "zh"}
    assert table[~table.right].empty, table[~table.right].to_string()
    assert all(control.caught for control in controls(table))
