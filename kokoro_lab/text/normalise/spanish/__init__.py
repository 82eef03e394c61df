"""Spanish, of Spain and of America: where they differ, what both understand."""

from __future__ import annotations

from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.normalise.spanish import (
    abbreviations,
    acronyms,
    dates,
    electronic,
    measures,
    money,
    ordinals,
    plain,
    roman,
    symbols,
    telephone,
    times,
)
from kokoro_lab.text.normalise.spanish.dates import date
from kokoro_lab.text.normalise.spanish.times import time
from kokoro_lab.text.normalise.spanish.words import cardinal, ordinal

RULES: tuple[Rule, ...] = (
    *electronic.RULES,
    *dates.RULES,
    *times.RULES,
    *telephone.RULES,
    *plain.VERSIONS,
    *money.RULES,
    *measures.RULES,
    *roman.RULES,
    *ordinals.RULES,
    *abbreviations.RULES,
    *acronyms.RULES,
    *plain.RULES,
    *symbols.RULES,
)
"""What is more particular comes first: a number is only a plain one if it is nothing else."""

__all__ = ["RULES", "cardinal", "date", "ordinal", "time"]
