"""What people paste is judged leniently, and what is right of it does not become less."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.lab.gates.readings import SETS, accuracy, heard, is_right, measure


@pytest.mark.parametrize(
    ("words", "phonemes", "row", "right"),
    [
        ("Press F | B I", "x", {"spoken": ["press f b i"]}, True),
        ("ten-meter rope", "x", {"spoken": ["a rope", "ten meter rope"]}, True),
        ("two and a half", "x", {"spoken": ["two a half"]}, True),
        ("two halves", "x", {"spoken": ["two half"]}, False),
        ("one | two |", "x", {"spoken": ["one | two"]}, True),
        ("one two", "x", {"spoken": ["one | two"]}, False),
        ("◦ one", "x", {"spoken": ["one"]}, False),
        ("A four", "ˈA fˈɔɹ", {"spoken": ["a four"], "sounds": ["ˈA"]}, True),
        ("A four", "ɐ fˈɔɹ", {"spoken": ["a four"], "sounds": ["ˈA"]}, False),
        ("A four", "ɐ fˈɔɹ", {"spoken": ["a four"], "never": ["ɐ"]}, False),
    ],
)
def test_a_reading_is_right_by_its_words_its_pauses_and_its_sounds(
    words: str, phonemes: str, row: dict[str, Any], right: bool
) -> None:
    assert is_right(words, phonemes, row) is right


def test_what_is_heard_has_a_pause_where_a_mark_or_a_line_ends_a_part() -> None:
    words, phonemes = heard("Well, 2 plums.\nNo.", "en-us")
    assert words.replace("| |", "|") == "Well | two plums | No |"
    assert phonemes.startswith("wˈɛl, ")


def test_the_share_that_is_right_is_shown_with_what_it_is_of_and_an_interval() -> None:
    table = pd.DataFrame(
        {"language": ["es"] * 4, "category": ["unit"] * 4, "right": [True, True, True, False]}
    )
    (row,) = accuracy(table).itertuples()
    assert (row.lines, row.right, row.right_share) == (4, 3, 0.75)
    assert (round(row.low, 2), round(row.high, 2)) == (0.3, 0.95)


def test_no_set_is_read_worse_than_it_was() -> None:
    table = measure()
    right = accuracy(table, ("set",)).set_index("set").right
    wrong = table[~table.right].groupby("set").written.apply(list).to_dict()
    assert right["same"] >= LEAST["same"], wrong["same"]
    assert right["own"] >= LEAST["own"], wrong["own"]
    assert right["pasted"] >= LEAST["pasted"], wrong["pasted"]
    assert right["later"] >= LEAST["later"], wrong["later"]
    assert right["further"] >= LEAST["further"], wrong["further"]
    assert right["common"] >= LEAST["common"], wrong["common"]
    assert right["languages"] >= LEAST["languages"], wrong["languages"]
    assert right["everyday"] >= LEAST["everyday"], wrong["everyday"]
    assert right["reported"] >= LEAST["reported"], wrong["reported"]


def test_no_line_lists_more_right_forms_than_a_person_would_look_through() -> None:
    # All combinations of several numbers in a line had made one file of 1.5 MB
    for name in SETS:
        for row in load_rows(f"readings_{name}"):
            assert len(row["spoken"]) <= 24, row["written"]


LEAST = {
    "reported": 140,
    "own": 335,
    "pasted": 200,
    "later": 100,
    "further": 328,
    "common": 422,
    "languages": 144,
    "everyday": 404,
    "same": 275,
}
"""How many lines of each set are right, of 140, 336, 200, 100, 329, 440, 144, 427 and 275."""
