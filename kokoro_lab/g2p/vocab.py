"""Kokoro's 114 phoneme symbols and their token ids (0 is the pad)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

PAD_ID = 0


@cache
def symbols() -> dict[str, int]:
    """Token id of every symbol that the model knows; each symbol is one character."""
    table: dict[str, int] = json.loads(files(__package__).joinpath("vocab.json").read_text("utf-8"))
    return table


def encode(phonemes: str) -> tuple[int, ...]:
    """Token ids of `phonemes`.

    Raises
    ------
    KeyError
        A symbol is not in the vocabulary. G2P must not produce one: dropping it here would lose a sound
        unnoticed.
    """
    table = symbols()
    return tuple(table[symbol] for symbol in phonemes)


def known(phonemes: str) -> tuple[str, str]:
    """`phonemes` without the symbols that the model does not know, and those symbols."""
    table = symbols()
    if table.keys() >= set(phonemes):
        return phonemes, ""
    kept = "".join(symbol for symbol in phonemes if symbol in table)
    return kept, "".join(symbol for symbol in phonemes if symbol not in table)
