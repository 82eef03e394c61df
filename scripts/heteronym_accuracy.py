"""How many heteronyms are read as meant, by misaki alone and with their context (30 s, no model).

python scripts/heteronym_accuracy.py [CORPUS READINGS]: files like `fixtures/texts/heteronyms.jsonl` and
`heteronym_readings.json`, which are read by default.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

from kokoro_lab.g2p.english import EnglishG2P
from kokoro_lab.metrics.pronunciation import spoken_reading
from kokoro_lab.provenance import repository_root
from kokoro_lab.text.aligned import AlignedText

TEXTS = repository_root() / "fixtures" / "texts"


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
