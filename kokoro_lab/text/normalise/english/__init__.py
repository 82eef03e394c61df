"""The rules of English, American and British.

Rules by kind, the ones that are surest of what they see first: an address before a number, a date before a
fraction, a plain number last.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from kokoro_lab.text.normalise.english.dates import date, slashed_date, time
from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal
from kokoro_lab.text.normalise.rules import read_rules

RULES = read_rules(__package__, "patterns", "numerals")
BRITISH = tuple(
    replace(rule, say=partial(slashed_date, british=True)) if rule.say is slashed_date else rule
    for rule in RULES
)
"""`RULES` of British English."""
