"""How many heteronyms are read as meant, by misaki alone and with their context (30 s, no model).

python scripts/heteronym_accuracy.py [CORPUS READINGS]: files like `fixtures/texts/heteronyms.jsonl` and
`heteronym_readings.json`, which are read by default.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from kokoro_lab.g2p.english import EnglishG2P
from kokoro_lab.provenance import repository_root
from kokoro_lab.text.aligned import AlignedText

TEXTS = repository_root() / "fixtures" / "texts"


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


def misread(g2p: EnglishG2P, corpus: Path, readings: Path) -> tuple[Counter[str], int]:
    """Words with readings that were not spoken as meant, and how many sentences there are."""
    choices = json.loads(readings.read_text("utf-8"))
    rows = [json.loads(line) for line in corpus.read_text("utf-8").splitlines()]
    wrong: Counter[str] = Counter()
    for row in rows:
        words = g2p(AlignedText.of(row["text"]), lambda _: None)
        said = next(word.phonemes for word in words if word.start <= row["start"] < word.end)
        of_word = choices[row["word"]]
        spoken = {of_word[name] for name in spoken_reading(said, of_word)}
        wrong[f"{row['word']} {row['reading']}"] += spoken != {of_word[row["reading"]]}
    return +wrong, len(rows)


if __name__ == "__main__":
    files = [Path(name) for name in sys.argv[1:3]]
    corpus, readings = files or [TEXTS / "heteronyms.jsonl", TEXTS / "heteronym_readings.json"]
    for by_context in (False, True):
        wrong, sentences = misread(EnglishG2P("en-us", by_context=by_context), corpus, readings)
        right = sentences - wrong.total()
        listed = ", ".join(f"{word} ({times})" for word, times in wrong.most_common())
        name = "with context" if by_context else "misaki alone"
        sys.stdout.write(f"{name}: {right} of {sentences}, {right / sentences:.1%}; misread: {listed}\n")
