"""Japanese: digits and signs become kanji numerals and kana, as they are read aloud."""

from __future__ import annotations

from kokoro_lab.text.normalise.japanese.dates import date, time
from kokoro_lab.text.normalise.japanese.numbers import cardinal, narrow, ordinal
from kokoro_lab.text.normalise.rules import read_rules

RULES = read_rules(__package__, "numbers", seen=narrow)
