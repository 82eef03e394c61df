"""An amount: a sign, a number or two with a range between them. What money and measures begin with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kokoro_lab.text.normalise.spanish.numerals import NUMERAL, SIGN, Numeral, read, signed
from kokoro_lab.text.normalise.spanish.words import Gender

START = r"(?<!\w)(?<!\d[.,:/'])"
"""Where a number may start that belongs to nothing before it."""
RANGE = r"(?:[ ]?[-–][ ]?|[ ]a[ ])"
AMOUNT = rf"(?P<sign>{SIGN})(?P<low>{NUMERAL})(?:{RANGE}(?P<high>{NUMERAL}))?"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, or all from one to another."""

    sign: str
    low: Numeral
    high: Numeral | None = None

    @property
    def last(self) -> Numeral:
        """The number that stands beside what is counted."""
        return self.high or self.low

    @property
    def is_one(self) -> bool:
        return self.high is None and self.low.is_one

    def words(self, gender: Gender | None) -> str:
        """`menos cinco`, `diez a quince`."""
        said = self.low.words(gender)
        if self.high:
            said = f"{said} a {self.high.words(gender)}"
        return signed(self.sign, said)


def amount_of(match: Any, *, comma_groups: bool = False) -> Amount:
    """From a match of a pattern that holds `AMOUNT`."""
    high = match["high"]
    return Amount(
        match["sign"] or "",
        read(match["low"], comma_groups=comma_groups),
        read(high, comma_groups=comma_groups) if high else None,
    )
