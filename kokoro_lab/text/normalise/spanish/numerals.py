"""Numbers as they are written in Spanish texts: both decimal marks, and four ways to part the thousands."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kokoro_lab.text.normalise.spanish.words import LONGEST, Gender, cardinal, decimals, digits

NUMERAL = r"""(?:
    \d{1,3}'\d{3}(?:[.,]\d{3})+(?!\d)                       # 1'234.567
  | \d{1,3}(?:\.\d{3})+(?:,\d+)?(?![\d])                    # 1.234.567,89
  | \d{1,3}(?:,\d{3})+\.\d+(?!\d)                           # 1,234.56
  | \d{1,3}(?:,\d{3}){2,}(?!\d)                             # 1,234,567
  | \d{1,3}(?:[ ]\d{3})+(?:[.,]\d+)?(?!\d|[ ]\d)            # 1 234 567,8
  | \d+(?:[.,]\d+)?
)"""
"""A number without its sign, for patterns in verbose style."""

SIGN = r"(?:(?<![\w\p{Sc}°%)\].,])[-+±])?"
"""A sign that is one: nothing that it could join stands before it."""

_MARKS = {",": "coma", ".": "punto"}
_SIGNS = {"-": "menos ", "+": "más ", "±": "más menos ", "": ""}


@dataclass(frozen=True, slots=True)
class Numeral:
    """A written number, taken apart.

    Parameters
    ----------
    whole : str
        Digits before the decimal mark, without what parts them.
    decimals : str
        Digits behind it; empty if there is none.
    mark : str
        The decimal mark, `,` or `.`; empty if there is none.
    grouped : bool
        Whether something parts the thousands. A year is not grouped.
    """

    whole: str
    decimals: str = ""
    mark: str = ""
    grouped: bool = False

    @property
    def value(self) -> int:
        """The whole part."""
        return int(self.whole)

    @property
    def is_one(self) -> bool:
        """Whether what it counts is in the singular."""
        return self.value == 1 and not self.decimals

    def words(self, gender: Gender | None = None) -> str:
        """As it is said before a noun of `gender`, or before none."""
        if self.decimals:
            # "veintiuno coma cinco kilos": apocope is for whole numbers
            return f"{self._whole(None)} {_MARKS[self.mark]} {decimals(self.decimals)}"
        return self._whole(gender)

    def _whole(self, gender: Gender | None) -> str:
        led_by_zero = len(self.whole) > 1 and self.whole.startswith("0")
        if led_by_zero or len(self.whole) > LONGEST:
            return digits(self.whole)
        return cardinal(self.value, gender=gender)


def read(written: str, *, comma_groups: bool = False) -> Numeral:
    """What a match of `NUMERAL` stands for.

    Parameters
    ----------
    comma_groups : bool
        Whether `1,234` is a thousand and something, as with money and people, and not 1 and decimals.
    """
    plain = written.replace("'", "").replace(" ", "")
    grouped = plain != written
    marks = re.findall(r"[.,]", plain)
    if not marks:
        return Numeral(plain, grouped=grouped)
    if "'" in written or (len(marks) > 1 and len(set(marks)) == 1):
        return Numeral(re.sub(r"[.,]", "", plain), grouped=True)
    if len(marks) > 1:
        whole, behind = plain.rsplit(marks[-1], 1)
        return Numeral(re.sub(r"[.,]", "", whole), behind, marks[-1], grouped=True)
    whole, behind = plain.split(marks[0])
    if not grouped and _parts_thousands(whole, marks[0], behind, comma_groups):
        return Numeral(whole + behind, grouped=True)
    return Numeral(whole, behind, marks[0], grouped=grouped)


def _parts_thousands(whole: str, mark: str, behind: str, comma_groups: bool) -> bool:
    if len(behind) != 3 or len(whole) > 3 or whole.startswith("0"):
        return False
    # `1.234` is a thousand wherever Spanish is written with points; of `10,000` nobody writes the zeros
    # for the sake of precision
    return mark == "." or comma_groups or behind.endswith("00")


def signed(sign: str | None, words: str) -> str:
    """`words` behind what the sign is called."""
    return _SIGNS[sign or ""] + words
