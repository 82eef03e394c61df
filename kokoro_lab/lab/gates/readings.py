"""The share of pasted texts that are read right, by language and kind of problem."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pandas as pd
import regex
from scipy.stats import binomtest

from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.lab.fixtures import load_rows

SETS = ("reported", "own", "pasted", "later", "further", "common", "languages", "everyday", "same")
"""The files `fixtures/texts/readings_<set>.jsonl`. `reported`: texts from public reports of errors. `own`:
texts of ours of the same kinds. `pasted`: texts of ours as logs, shops, doctors and others write them;
`later`, `further`: more of them, in ten languages and accents; `common`: more in English, of what people meet
most often; `languages`, `everyday`: more, none in English. These six sets were written before any rule was
mended for them. `same`: texts that look difficult and must be read as they are written."""
PAUSE = "|"
_SILENT = regex.compile(r"[\s,.;:!?…—–\-\"“”'’()<>\[\]¿¡「」『』、。・]+")
_MARK = regex.compile(r"[;:,.!?…—]")
_SOUND = regex.compile(r"[^\s;:,.!?…—“”()\"]")


@cache
def _front_end() -> FrontEnd:
    return FrontEnd()


def heard(text: str, language: str) -> tuple[str, str]:
    """The spoken words of `text`, with `PAUSE` at marks and borders, and its phonemes."""
    words: list[str] = []
    segments = list(_front_end().segments(text, language, lambda _: None))
    for segment in segments:
        for word in segment.words:
            if _SOUND.search(word.phonemes):
                words.append(word.text)
            if _MARK.search(word.phonemes):
                words.append(PAUSE)
        if segment.pause_after_s:
            words.append(PAUSE)
    return " ".join(words), " ".join(segment.phonemes for segment in segments)


def _bare(text: str) -> tuple[str, frozenset[int]]:
    """The letters of a reading without "and", and the numbers of letters after which there is a pause."""
    bare, pauses = "", set()
    for part in regex.sub(r"\band\b", " ", text.casefold()).split(PAUSE):
        bare += _SILENT.sub("", part)
        pauses.add(len(bare))
    return bare, frozenset(pauses)


def is_right(words: str, phonemes: str, row: dict[str, list[str]]) -> bool:
    """Whether the words match one of the right forms (`spoken`), with a pause wherever that form has one, and
    the phonemes contain all `sounds` of the row and none that it must `never` have.

    Letter case, spaces, hyphens, punctuation and "and" do not count.
    """
    read, pauses = _bare(words)
    forms = map(_bare, row["spoken"])
    return (
        any(read == form and needed <= pauses | {0, len(read)} for form, needed in forms)
        and all(sound in phonemes for sound in row.get("sounds", ()))
        and not any(sound in phonemes for sound in row.get("never", ()))
    )


def _rows(sets: tuple[str, ...]) -> Iterator[dict[str, object]]:
    for name in sets:
        for row in load_rows(f"readings_{name}"):
            words, phonemes = heard(row["written"], row["language"])
            kept = {field: row[field] for field in ("language", "category", "written")}
            found = {"expected": " or ".join(row["spoken"]), "read": words, "phonemes": phonemes}
            yield {"set": name, **kept, **found, "right": is_right(words, phonemes, row)}


def measure(sets: tuple[str, ...] = SETS) -> pd.DataFrame:
    """Read every line of the sets. Columns: `set`, `language`, `category`, `written`, `expected`, `read`,
    `phonemes` and whether it is `right`."""
    return pd.DataFrame(_rows(sets))


def accuracy(table: pd.DataFrame, by: tuple[str, ...] = ("language", "category")) -> pd.DataFrame:
    """For each value of the columns `by`: `lines`, `right`, the share of right lines, and its 95 % interval
    (Wilson)."""
    counted = table.groupby(list(by)).right.agg(lines="count", right="sum").reset_index()
    counted["right_share"] = counted.right / counted.lines
    intervals = [
        binomtest(int(right), int(lines)).proportion_ci(method="wilson")
        for right, lines in zip(counted.right, counted.lines, strict=True)
    ]
    return counted.assign(low=[each.low for each in intervals], high=[each.high for each in intervals])
