"""Every entry of misaki's dictionaries is found, in both cases, without reading them as a whole."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from kokoro_lab.g2p.entries import Entries

FILE = """{
  "'em": "əm",
  "Polish": "pˈOlɪʃ",
  "a": "ɐ",
  "abuse": {
    "DEFAULT": "əbjˈuz",
    "NOUN": "əbjˈus"
  },
  "lead": "lˈid",
  "éclair": {
    "DEFAULT": "ɪklˈɛɹ"
  }
}""".encode()


@pytest.mark.parametrize("name", ["us_gold", "us_silver", "gb_gold", "gb_silver"])
def test_every_entry_of_a_dictionary_is_found(name: str) -> None:
    file = (files("misaki") / f"data/{name}.json").read_bytes()
    entries = Entries(file)
    for word, entry in json.loads(file).items():
        assert entries.get(word) == entry


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("lead", "lˈid"),
        ("Lead", "lˈid"),
        ("LEAD", None),
        ("Polish", "pˈOlɪʃ"),
        ("polish", "pˈOlɪʃ"),
        ("a", "ɐ"),
        ("A", None),  # a letter is no word
        ("'em", "əm"),
        ("Éclair", {"DEFAULT": "ɪklˈɛɹ"}),
        ("", None),
        ("DEFAULT", None),
        ("zz", None),
    ],
)
def test_a_word_is_found_with_and_without_its_capital(word: str, said: object) -> None:
    entries = Entries(FILE)
    assert entries.get(word) == said
    assert (word in entries) is (said is not None)


def test_what_is_taught_comes_before_what_is_written() -> None:
    entries = Entries(FILE)
    entries["lead"] = {"DEFAULT": "lˈid", "METAL": "lˈɛd"}
    assert entries["lead"] == {"DEFAULT": "lˈid", "METAL": "lˈɛd"}
    assert entries["Lead"] == "lˈid"
    with pytest.raises(KeyError):
        entries["zz"]
    several = dict(entries.of_several_readings())
    assert several == {word: entries[word] for word in ("lead", "abuse", "éclair")}
