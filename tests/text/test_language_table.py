"""The table of letters judges words as lingua does, and a damaged one is refused."""

from __future__ import annotations

import csv
import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from kokoro_lab.errors import IntegrityError
from kokoro_lab.text.detect import FLOOR, LATIN
from kokoro_lab.text.language_table import TABLE_FILE, LanguageTable

GROUPS = {
    "en": {"a": -1.0, "b": -2.0, "ab": -0.5, "aba": -0.2, "abab": -0.3, "ababa": -0.4, "c": -3.0},
    "es": {"a": -2.0, "b": -1.0, "ab": -4.5, "ba": -0.3, "é": -5.0, "bé": -0.1},
}
"""Statistics of two small languages: logarithms of probabilities."""
HAVING = {"é": {"es"}}


@pytest.fixture(scope="module")
def making(repository: Path) -> ModuleType:
    """`scripts/language_table.py`, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("making", repository / "scripts" / "language_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def table() -> LanguageTable:
    return LanguageTable.load()


def written(making: ModuleType, path: Path) -> Path:
    np.savez_compressed(path, **making.table(GROUPS, HAVING, known_by=1))
    return path


MEAN_NATS, MOST_NATS, SAME = 0.05, 0.15, 0.96


def worst_in_nats(found: dict[str, float], meant: dict[str, float]) -> float:
    """The largest difference that the detector sees, which raises all probabilities to a floor."""
    return max(abs(math.log(max(found[x], FLOOR) / max(meant[x], FLOOR))) for x in LATIN)


def test_words_are_judged_as_lingua_judges_them(repository: Path, table: LanguageTable) -> None:
    path = repository / "fixtures" / "texts" / "word_languages.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    meant = [{x: float(row[x]) for x in LATIN} for row in rows]
    found = [table.probabilities(row["word"]) for row in rows]
    errors = [worst_in_nats(*pair) for pair in zip(found, meant, strict=True)]
    assert len(rows) > 1300
    assert np.mean(errors) < MEAN_NATS
    assert np.quantile(errors, 0.99) < MOST_NATS
    likeliest = [max(each, key=each.__getitem__) for each in found]
    assert np.mean([max(m, key=m.__getitem__) == x for m, x in zip(meant, likeliest, strict=True)]) > SAME


def test_it_has_the_languages_that_are_distinguished(table: LanguageTable) -> None:
    assert table.languages == LATIN
    assert TABLE_FILE.stat().st_size < 1_500_000


def test_a_word_is_judged_by_the_longest_groups_that_a_language_knows(
    making: ModuleType, tmp_path: Path
) -> None:
    table = LanguageTable.load(written(making, tmp_path / "small.npz"))
    # In `abab`, each group counts once: a, b, ab, ba, aba, bab, abab
    english = (-1.0 - 2.0 - 0.5 - 2.0 - 0.2 - 2.0 - 0.3) / 2
    spanish = (-2.0 - 1.0 - 4.5 - 0.3 - 4.5 - 0.3 - 4.5) / 2
    meant = 1 / (1 + math.exp(spanish - english))
    assert table.probabilities("abab") == pytest.approx({"en": meant, "es": 1 - meant})


@pytest.mark.parametrize(
    ("word", "english"),
    [
        ("é", 0.0),  # by its accent
        ("bé", 0.0),
        ("c", 1.0),  # only one language has the letter
        ("ac", 1 / (1 + math.exp((-2 - 2) - (-1 - 3 - 1) / 2))),
        ("a'a", 1 / (1 + math.exp(-2 + 1))),
        ("aж", 1 / (1 + math.exp((-2 - 2) - (-1 - 1)))),
    ],
)
def test_letters_that_a_language_lacks(making: ModuleType, tmp_path: Path, word: str, english: float) -> None:
    table = LanguageTable.load(written(making, tmp_path / "small.npz"))
    assert table.probabilities(word)["en"] == pytest.approx(english)


@pytest.mark.parametrize("word", ["", "'", "日本", "ж"])
def test_what_has_no_letter_of_the_alphabet_tells_nothing(table: LanguageTable, word: str) -> None:
    assert table.probabilities(word) == dict.fromkeys(LATIN, 0.0)


def test_of_the_longer_groups_those_are_kept_that_tell_most(making: ModuleType) -> None:
    groups = {
        "en": GROUPS["en"] | {"abaa": -0.01},
        "es": GROUPS["es"] | {"aba": -0.2, "abaa": -0.01, "bab": -0.3, "baba": -0.3, "babab": -3.0},
    }
    found = making.table(groups, HAVING, kept=1, known_by=1)
    # `babab` tells most, and begins with `baba`; `abaa` is as likely in both languages
    assert np.bincount(found["length"]).tolist() == [0, 4, 3, 2, 1, 1]


@pytest.mark.parametrize(
    "damage", ["flipped", "cut", "gone", "without its letters", "out of order", "short", "empty"]
)
def test_a_damaged_table_is_refused(damage: str, making: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "language_table.npz"
    arrays = making.table(GROUPS, HAVING, known_by=1)
    if damage in ("flipped", "cut"):
        content = bytearray(TABLE_FILE.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content if damage == "flipped" else content[:100_000])
    elif damage != "gone":
        match damage:
            case "without its letters":
                del arrays["letters"]
            case "out of order":
                arrays["last"] = arrays["last"][::-1]
            case "short":
                arrays["steps"] = arrays["steps"][:, 1:]
            case "empty":
                arrays |= {name: arrays[name][..., :0] for name in ("length", "last", "steps")}
        np.savez_compressed(path, **arrays)
    with pytest.raises(IntegrityError, match=r"language_table\.npz") as caught:
        LanguageTable.load(path)
    assert "install kokoro-lab again" in str(caught.value.mend)
