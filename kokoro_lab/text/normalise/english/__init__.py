"""The rules of English, American and British.

A part of a text goes to the first rule that accepts it. So rules for forms that can hardly be anything else
come first: an address before a number, a date before a fraction, a plain number last.
"""

from __future__ import annotations

from kokoro_lab.text.normalise.english import (
    abbreviations,
    counts,
    dates,
    electronic,
    formulas,
    identifiers,
    money,
    quantities,
    roman,
    scripture,
    sizes,
    times,
)
from kokoro_lab.text.normalise.english.dates import date
from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal
from kokoro_lab.text.normalise.english.times import time
from kokoro_lab.text.normalise.rules import Rule

RULES: tuple[Rule, ...] = (
    *electronic.RULES,
    *scripture.RULES,
    *dates.RULES,
    *times.RULES,
    *money.RULES,
    *quantities.RATES,
    *identifiers.BEFORE_WORDS,
    *abbreviations.RULES,
    *counts.BEFORE_UNITS,
    *sizes.RULES,
    *quantities.RULES,
    *roman.RULES,
    *formulas.RULES,
    *counts.RULES,
    *identifiers.RULES,
    *counts.PLAIN,
    *formulas.SIGNS_ALONE,
)
_BRITISH = dates.DAY_FIRST | counts.BRITISH
BRITISH = tuple(_BRITISH.get(each.name, each) for each in RULES)
"""`RULES` of British English."""
