"""Japanese: digits and signs become kanji numerals and kana, as they are read aloud."""

from __future__ import annotations

from kokoro_lab.text.normalise.japanese import (
    counts,
    dates,
    electronic,
    identifiers,
    letters,
    quantities,
    symbols,
)
from kokoro_lab.text.normalise.japanese.dates import date, time
from kokoro_lab.text.normalise.japanese.numbers import cardinal, ordinal
from kokoro_lab.text.normalise.rules import Rule

RULES: tuple[Rule, ...] = (
    *electronic.RULES,
    *dates.RULES,
    *letters.WHOLE_NAMES,
    *identifiers.RULES,
    *symbols.BEFORE_NUMBERS,
    *dates.TIMES,
    *counts.RULES_BEFORE,
    *counts.RANGES,
    *quantities.RULES,
    *counts.RULES,
    *letters.RULES,
    *symbols.RULES,
)
