"""Spanish of Spain and of America; where these differ, a form that both understand.

In `rules.tsv`, more specific rules come first: a number is read as a plain number only if it is nothing else.
"""

from __future__ import annotations

from kokoro_lab.text.normalise.rules import read_rules
from kokoro_lab.text.normalise.spanish.dates import date, time
from kokoro_lab.text.normalise.spanish.numerals import cardinal, ordinal

RULES = read_rules(__package__, "numerals")
