"""Make the table by which the languages of words are told apart, from lingua's statistics (15 s, 1 GB).

pip download --no-deps lingua-language-detector==1.3.5; pip install brotli
python scripts/language_table.py lingua_language_detector-1.3.5-py3-none-any.whl

lingua (Peter M. Stahl, Apache-2.0) counted groups of one to five letters in a million sentences of each
language. It has the probability of the last letter of a group after the others. All groups of up to three
letters are kept, and of the longer ones those that tell most: they are frequent in a language, and their last
letter is much more likely in some languages than in others. Nothing is fitted and nothing drawn by chance.
"""

from __future__ import annotations

import json
import math
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.text.detect import LATIN
from kokoro_lab.text.language_table import LONGEST, OTHER, PLACES, TABLE_FILE

KEPT_WHOLE = 3
"""Groups of up to this many letters are all kept."""
KEPT = 250_000
"""How many of the longer groups are kept. Those that they begin with are kept, too."""
STEP = 0.05
"""The step of the stored logarithms, in nats."""
KNOWN_BY = 4
"""A letter that fewer languages have is no part of the alphabet."""


def read(wheel: Path) -> tuple[dict[str, dict[str, float]], dict[str, set[str]]]:
    """For each language, the logarithm of the probability of each group; and for each letter with an accent,
    the languages that have it."""
    import brotli

    sys.path.insert(0, str(wheel))
    from lingua._constant import CHARS_TO_LANGUAGES_MAPPING

    groups: dict[str, dict[str, float]] = {language: {} for language in LATIN}
    with zipfile.ZipFile(wheel) as archive:
        for language in LATIN:
            for length in ("uni", "bi", "tri", "quadri", "five"):
                packed = archive.read(f"lingua/language-models/{language}/{length}grams.json.br")
                for fraction, written in json.loads(brotli.decompress(packed))["ngrams"].items():
                    count, of = map(int, fraction.split("/"))
                    groups[language] |= dict.fromkeys(written.split(" "), math.log(count / of))
    having: dict[str, set[str]] = {}
    for letters, languages in CHARS_TO_LANGUAGES_MAPPING.items():
        for letter in letters.lower():
            having[letter] = {each.iso_code_639_1.name.lower() for each in languages} & set(LATIN)
    return groups, having


def table(
    groups: Mapping[str, Mapping[str, float]],
    having: Mapping[str, Set[str]],
    *,
    kept: int = KEPT,
    known_by: int = KNOWN_BY,
) -> dict[str, npt.NDArray[Any]]:
    """The arrays of the table; `LanguageTable` says what they hold."""
    languages = tuple(groups)
    having_it = Counter(group for each in groups.values() for group in each if len(group) == 1)
    letters = "".join(sorted(c for c, count in having_it.items() if count >= known_by))
    assert len(letters) < OTHER
    number = {letter: k for k, letter in enumerate(letters, 1)}

    coded = []
    for each in groups.values():
        inside = [group for group in each if all(c in number for c in group)]
        codes = [sum(number[c] * int(place) for c, place in zip(g, PLACES, strict=False)) for g in inside]
        coded.append((np.array(codes, np.int64), np.array([each[group] for group in inside])))
    code = np.unique(np.concatenate([codes for codes, _ in coded]))
    log = np.full((len(code), len(languages)), np.nan)
    for k, (codes, values) in enumerate(coded):
        log[np.searchsorted(code, codes), k] = values

    length = LONGEST - (code[:, None] % PLACES == 0).sum(1) + 1
    ahead = code - code % PLACES[np.maximum(length - 2, 0)]  # the group without its last letter
    parent = np.searchsorted(code, ahead)
    assert (code[parent] == ahead).all(), "a group begins with one that is not there"
    whole, differing = np.where(np.isnan(log), -np.inf, log), np.zeros_like(log)
    valid = np.nan_to_num(log)
    for letter in range(2, LONGEST + 1):
        rows = np.flatnonzero(length == letter)
        before = valid[parent[rows]]
        valid[rows] = np.where(np.isnan(log[rows]), before, log[rows])
        differing[rows] = valid[rows] - before
        whole[rows] += whole[parent[rows]]
    telling = np.exp(whole.max(1)) * (differing.max(1) - differing.min(1))

    keep = length <= KEPT_WHOLE
    longer = np.flatnonzero(~keep)
    keep[longer[np.argsort(-telling[longer], kind="stable")[:kept]]] = True
    for letter in range(LONGEST, KEPT_WHOLE, -1):
        keep[parent[keep & (length == letter)]] = True
    steps = np.where(np.isnan(log), 0, np.round(-valid / STEP).clip(0, 254) + 1).astype(np.uint8)
    heard = steps.copy()
    for letter in range(2, LONGEST + 1):
        rows = np.flatnonzero(length == letter)
        before = heard[parent[rows]]
        heard[rows] = np.where(steps[rows] == 0, before, steps[rows])
        steps[rows] = np.where(heard[rows] == before, 0, steps[rows])
    return {
        "languages": np.array(languages),
        "letters": np.array(letters),
        "having": np.array([[each in having.get(c, ()) for each in languages] for c in letters]),
        "length": length[keep].astype(np.uint8),
        "last": (code // PLACES[length - 1] % (OTHER + 1))[keep].astype(np.uint8),
        "steps": np.ascontiguousarray(steps[keep].T),
        "step": np.array(STEP),
    }


if __name__ == "__main__":
    made = table(*read(Path(sys.argv[1])))
    np.savez_compressed(TABLE_FILE, **made)
    size = TABLE_FILE.stat().st_size // 1000
    sys.stdout.write(f"{TABLE_FILE.name}: {len(made['length'])} groups, {size} kB\n")
