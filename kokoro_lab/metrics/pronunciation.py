"""Which of a word's readings was spoken: the nearest one, by edits of phonemes."""

from __future__ import annotations

from collections.abc import Mapping


def edits(a: str, b: str) -> int:
    """The least number of symbols to insert, delete or replace that makes `b` of `a` (Levenshtein, 1966)."""
    above = list(range(len(b) + 1))
    for i, symbol in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (symbol != other)))
        above = row
    return above[-1]


def spoken_reading(phonemes: str, readings: Mapping[str, str]) -> frozenset[str]:
    """Names of the readings that `phonemes` is nearest to; several where they sound alike or are as near.

    Parameters
    ----------
    phonemes : str
        As spoken, with stress marks.
    readings : mapping of str to str
        Phonemes of each reading, by name.
    """
    distance = {name: edits(phonemes, said) for name, said in readings.items()}
    least = min(distance.values())
    return frozenset(name for name, edited in distance.items() if edited == least)
