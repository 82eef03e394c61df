"""Numbers, money, percent, dates and clock times where a language has no rules of its own yet.

Thin on purpose: what num2words and Babel know, with the marks and words of each language around it.
Whatever digits are left are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date as calendar_date
from functools import cached_property
from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, digit_rule

MAX_DIGITS = 15
"""A longer row of digits is no quantity: it is read digit by digit."""


@dataclass(frozen=True, slots=True)
class CountedUnit:
    """What is counted, for one and for several; `feminine` decides how the number agrees."""

    one: str
    many: str
    feminine: bool = False


@dataclass(frozen=True)
class Numerals:
    """How a language says numbers: the words that `OtherReader` needs.

    Parameters
    ----------
    name : str
        For Babel: `fr`, `pt_BR`, ...
    say, rank : callable
        Words of a whole number that is not negative, and of an ordinal.
    minus, point, percent, to, hour, and_ : str
        Words for the sign, the decimal mark, `%`, between the ends of a range, for hours, and between hours
        and minutes, major and minor units.
    decimal, grouping : str
        The decimal mark, and the characters that may part thousands.
    ordinal, feminine : str
        Regular expressions for what marks an ordinal behind its digits, and one that is feminine.
    inflect : callable
        From an ordinal to its feminine.
    money : mapping
        Of a currency's sign or code, the unit and its hundredth.
    agree : mapping
        Of gender (`feminine`, `masculine`), the last word of a number and what it becomes before a noun.
    of : callable
        What stands between a million and what is counted.
    first : str
        The first day of a month.
    """

    name: str
    say: Callable[[int], str]
    rank: Callable[[int], str]
    minus: str
    point: str
    percent: str
    to: str
    hour: CountedUnit
    and_: str
    decimal: str
    grouping: str
    ordinal: str
    feminine: str
    inflect: Callable[[str], str]
    money: Mapping[str, tuple[CountedUnit, CountedUnit | None]]
    agree: Mapping[str, Mapping[str, str]]
    of: Callable[[str], str]
    first: str
    date_of: str = " "


class OtherReader:
    """`Reader` (see `languages.py`) from `Numerals`."""

    def __init__(self, numerals: Numerals) -> None:
        self._n = numerals

    def cardinal(self, value: int) -> str:
        """Words of a whole number."""
        return f"{self._n.minus} {self._n.say(-value)}" if value < 0 else self._n.say(value)

    def ordinal(self, value: int) -> str:
        """Words of a rank, masculine."""
        return self._n.rank(value)

    def date(self, year: int | None, month: int | None, day: int | None) -> str:
        """Words of a date, day first."""
        parts = []
        if day is not None:
            parts.append(self._n.first if day == 1 else self._n.say(day))
        if month is not None:
            parts.append(self._months[month])
        if year is not None:
            parts.append(self.cardinal(year))
        return self._n.date_of.join(parts)

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """Words of a clock time; one with a half of the day is turned to the 24-hour clock."""
        if half is not None:
            hour = hour % 12 + (12 if half == "pm" else 0)
        said = self._counted(hour, self._n.hour)
        for part in (minute, second):
            if part:
                said += f" {self._n.and_} {self._n.say(part)}".replace("  ", " ")
        return said

    @cached_property
    def _months(self) -> Mapping[int, str]:
        from babel.dates import get_month_names

        return dict(get_month_names("wide", locale=self._n.name))

    def rules(self) -> tuple[Rule, ...]:
        """What the language's package calls `RULES`."""
        n = self._n
        group = regex.escape(n.grouping)
        whole = rf"(?:\d{{1,3}}(?:[{group}]\d{{2,3}})+(?![\d])|\d+)"
        number = rf"(?P<sign>(?<!\S)-)?(?P<whole>{whole})(?:{regex.escape(n.decimal)}(?P<part>\d+))?"
        signs = "|".join(sorted((regex.escape(sign) for sign in n.money), key=len, reverse=True))
        return (
            digit_rule(
                "date", r"(?<![\w/.-])(?P<d>\d{1,2})([/.-])(?P<m>\d{1,2})\2(?P<y>\d{4})(?![\w/-])", self._day
            ),
            digit_rule("date", r"(?<![\w/.-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-])", self._day),
            digit_rule(
                "time", r"(?<![\w:.,])(?P<h>\d{1,2})(?::|\s?h\s?)(?P<m>[0-5]\d)(?![\w:]|[.,]\d)", self._clock
            ),
            digit_rule("money", rf"(?P<unit>{signs})\s?{number}(?![\w])", self._money),
            digit_rule("money", rf"(?<![\w]){number}\s?(?P<unit>{signs})(?!\w)", self._money),
            digit_rule("percent", rf"(?<![\w]){number}\s?%", self._percent),
            digit_rule(
                "ordinal",
                rf"(?<![\w.,])(?P<whole>\d+)\s?(?:(?P<feminine>{n.feminine})|{n.ordinal})(?!\w)",
                self._rank,
            ),
            digit_rule(
                "range", r"(?<![\w.,-])(?P<a>\d{1,6})\s?[-–]\s?(?P<b>\d{1,6})(?![\w-]|[.,]\d)", self._range
            ),
            digit_rule("number", rf"(?<![\w]){number}(?!\d)", self._number),
            digit_rule("digits", r"\d+", lambda match: self._digits(match.group())),
        )

    def _day(self, match: Any) -> str | None:
        year, month, day = (int(match[part]) for part in "ymd")
        try:
            calendar_date(year, month, day)
        except ValueError:
            return None
        return self.date(year, month, day)

    def _clock(self, match: Any) -> str | None:
        hour, minute = int(match["h"]), int(match["m"])
        return self.time(hour, minute, None, None) if hour < 24 else None

    def _percent(self, match: Any) -> str | None:
        said = self._number(match)
        return f"{said} {self._n.percent}" if said else None

    def _rank(self, match: Any) -> str | None:
        value = int(match["whole"])
        if not 0 < value <= 10_000:
            return None
        return self._n.inflect(self.ordinal(value)) if match["feminine"] else self.ordinal(value)

    def _range(self, match: Any) -> str | None:
        first, last = int(match["a"]), int(match["b"])
        return f"{self.cardinal(first)} {self._n.to} {self.cardinal(last)}" if first < last else None

    def _number(self, match: Any) -> str | None:
        whole = self._plain(match["whole"])
        sign = f"{self._n.minus} " if match["sign"] else ""
        if len(whole) > MAX_DIGITS or (len(whole) > 1 and int(whole[0]) == 0):
            return f"{sign}{self._digits(whole)}"
        said = self._n.say(int(whole))
        if match["part"]:
            said += f" {self._n.point} {self._fraction(match['part'])}"
        return sign + said

    def _money(self, match: Any) -> str | None:
        major, minor = self._n.money[match["unit"]]
        whole = self._plain(match["whole"])
        if len(whole) > MAX_DIGITS:
            return None
        sign = f"{self._n.minus} " if match["sign"] else ""
        part = match["part"]
        if part and (minor is None or len(part) != 2):
            said = self._number(match)
            return f"{said} {major.many}" if said else None
        said = self._counted(int(whole), major)
        if part and int(part) and minor is not None:
            cents = self._counted(int(part), minor)
            said = f"{said} {self._n.and_} {cents}".replace("  ", " ") if int(whole) else cents
        return sign + said

    def _counted(self, value: int, unit: CountedUnit) -> str:
        said = self._n.say(value)
        gender = "feminine" if unit.feminine else "masculine"
        head, _, last = said.rpartition(" ")
        last = self._n.agree.get(gender, {}).get(last, last)
        said = f"{head} {last}".strip()
        noun = unit.one if value == 1 else unit.many
        if value and value % 1_000_000 == 0:
            return said + self._n.of(noun)
        return f"{said} {noun}"

    def _fraction(self, digits: str) -> str:
        """Behind the decimal mark: a short part as a number, its zeros first; a long one digit by digit."""
        if len(digits) > 2:
            return self._digits(digits)
        zeros = len(digits) - len(digits.lstrip("0०"))
        rest = [self._n.say(int(digits[zeros:]))] if digits[zeros:] else []
        return " ".join([self._n.say(0)] * zeros + rest)

    def _digits(self, digits: str) -> str:
        return " ".join(self._n.say(int(digit)) for digit in digits)

    def _plain(self, digits: str) -> str:
        return "".join(c for c in digits if c.isdecimal())


def by_num2words(language: str) -> tuple[Callable[[int], str], Callable[[int], str]]:
    """num2words' cardinals and ordinals without the commas, at which the voice would pause."""

    def said(value: int, to: str) -> str:
        from num2words import num2words

        return str(num2words(value, lang=language, to=to)).replace(",", "")

    return lambda value: said(value, "cardinal"), lambda value: said(value, "ordinal")
