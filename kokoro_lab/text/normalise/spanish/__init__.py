"""The rules of Spanish. Where Spain and America differ, the words are those that both understand."""

from __future__ import annotations

from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.normalise.spanish import (
    abbreviations,
    counts,
    dates,
    electronic,
    quantities,
    roman,
    signs,
)
from kokoro_lab.text.normalise.spanish.dates import date, time
from kokoro_lab.text.normalise.spanish.numerals import cardinal, ordinal

RULES: tuple[Rule, ...] = (
    *electronic.RULES,
    *dates.RULES,
    *electronic.TELEPHONE,
    *counts.VERSIONS,
    *counts.MIXED,
    *quantities.MONEY,
    *quantities.RULES,
    *roman.RULES,
    *counts.ORDINALS,
    *abbreviations.RULES,
    *counts.RULES,
    *signs.RULES,
)
"""More specific rules come first. A number is read as a plain number only if no other rule takes it."""
