"""Dates with the day first, ISO dates, months by abbreviation, decades, eras."""

from __future__ import annotations

from datetime import date as calendar_date
from typing import Any

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.agreement import word_before
from kokoro_lab.text.normalise.spanish.wordlist import wordlist
from kokoro_lab.text.normalise.spanish.words import cardinal

MONTHS = (
    "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
    "noviembre", "diciembre",
)  # fmt: skip
_SHORT = {name[:3]: i for i, name in enumerate(MONTHS, 1)} | {"sept": 9, "set": 9}
_MONTH_NUMBERS = _SHORT | {name: i for i, name in enumerate(MONTHS, 1)} | {"setiembre": 9}
_NAMES = "|".join((*MONTHS, "setiembre"))
_SHORT_NAMES = "|".join(sorted(_SHORT, key=len, reverse=True))
_NUMBERED_BY_YEAR = wordlist(
    """
    ley decreto orden directiva reglamento resolución sentencia expediente acuerdo auto legislativo orgánica
    circular real núm n nº
    """
)
"""`ley 8/2020` is the eighth law of that year, and not one of August."""
CENTURY_TURNS_AT = 50
"""A year of two digits below this is of the 2000s, else of the 1900s."""


def date(year: int | None, month: int | None, day: int | None) -> str:
    """`tres de abril de dos mil veinticuatro`, or those parts of it that are known.

    The first is `primero`: all of America says so, and Spain understands it.
    """
    parts = [
        ("primero" if day == 1 else cardinal(day)) if day is not None else "",
        MONTHS[month - 1] if month is not None else "",
        cardinal(year) if year is not None else "",
    ]
    return " de ".join(part for part in parts if part)


def _year(written: str) -> int:
    year = int(written)
    if len(written) > 2:
        return year
    return year + (2000 if year < CENTURY_TURNS_AT else 1900)


def _checked(year: int | None, month: int, day: int) -> str | None:
    try:
        calendar_date(year or 2000, month, day)  # 2000: a leap year
    except ValueError:
        return None
    return date(year, month, day)


def _numeric(match: Any) -> str | None:
    year, first, second = _year(match["year"]), int(match["first"]), int(match["second"])
    # day first, as in all of the Spanish-speaking world; the American order only where no other is possible
    return _checked(year, second, first) or _checked(year, first, second)


def _iso(match: Any) -> str | None:
    return _checked(int(match["year"]), int(match["month"]), int(match["day"]))


def _named(match: Any) -> str | None:
    month = _MONTH_NUMBERS[match["month"].casefold()]
    return _checked(_year(match["year"]) if match["year"] else None, month, int(match["day"]))


def _day_of_month(match: Any) -> str | None:
    day = int(match["day"])
    if not 1 <= day <= 31:
        return None
    return "primero" if day == 1 else cardinal(day)


def _month_of_year(match: Any) -> str | None:
    month = int(match["month"])
    if word_before(match.string, match.start()) in _NUMBERED_BY_YEAR:
        return None
    return date(int(match["year"]), month, None) if 1 <= month <= 12 else None


def _short_month_of_year(match: Any) -> str:
    return date(int(match["year"]), _SHORT[match["month"].casefold()], None)


def _without_year(match: Any) -> str | None:
    return _checked(None, int(match["month"]), int(match["day"]))


def _decade(match: Any) -> str:
    return cardinal(int(match["decade"]))


_DAYS = ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo")
_DAY = {**{day: day for day in _DAYS}, **{day[:3]: day for day in _DAYS}}
_ANY_DAY = rf"(?:{'|'.join(sorted(_DAY, key=len, reverse=True))})"


def _days(match: Any) -> str:
    """`lun-vie` is "lunes a viernes"."""
    return " a ".join(_DAY[match[end].lower()] for end in ("first", "last"))


RULES: tuple[Rule, ...] = (
    rule(
        "span of days of the week",
        rf"(?<![\p{{L}}\p{{N}}])(?P<first>{_ANY_DAY})\.?\ ?[-–]\ ?(?P<last>{_ANY_DAY})(?![\p{{L}}\p{{N}}])",
        _days,
        ignore_case=True,
        wakes="-–",
    ),
    rule(
        "date",
        r"""(?<![\w/.-])(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})
            (?![\w/-]|[.,]\d)""",
        _numeric,
    ),
    rule(
        "ISO date",
        r"(?<![\w/-])(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?![\w/-]|[.,]\d)",
        _iso,
    ),
    digit_rule(
        "date with a short month",
        rf"""(?<![\w/-])(?P<day>\d{{1,2}})(?:[ ]de[ ]|[ /-])(?P<month>{_SHORT_NAMES})(?!\p{{L}})\.?
             (?:(?:[ ]del?[ ]|[ /-])(?P<year>\d{{4}}|\d{{2}})(?![\w/]|[.,]\d))?""",
        _named,
        ignore_case=True,
    ),
    digit_rule(
        "date without its prepositions",
        rf"(?<![\w/-])(?P<day>\d{{1,2}})[ /-](?P<month>{_NAMES})[ /-](?P<year>\d{{4}})(?![\w/]|[.,]\d)",
        _named,
        ignore_case=True,
    ),
    digit_rule(
        "day of a month",
        rf"(?<![\w.,/:-])(?P<day>\d{{1,2}})°?(?=[ ](?:de[ ])?(?:{_NAMES})(?!\w))",
        _day_of_month,
        ignore_case=True,
    ),
    digit_rule(
        "short month and year",
        rf"(?<!\w)(?P<month>{'|'.join(_SHORT)})(?:\.[ ]|[-/])(?P<year>(?:19|20)\d{{2}})(?![\w/-])",
        _short_month_of_year,
        ignore_case=True,
    ),
    rule(
        "month and year",
        r"(?<![\w/-])(?P<month>0?\d|1[0-2])/(?P<year>(?:19|20)\d{2})(?![\w/-])",
        _month_of_year,
        wakes="/",
    ),
    rule(
        "date without a year",
        # `5/12` alone is a fraction: only what stands before makes it a day
        r"""(?<=\b(?:el|del|al|día|fecha:?|lunes|martes|miércoles|jueves|viernes|sábado|domingo),?[ ])
            (?P<day>\d{1,2})[/](?P<month>\d{1,2})(?![\w/]|[.,]\d|[ ](?:de|del)[ ])""",
        _without_year,
        ignore_case=True,
        wakes="/",
    ),
    digit_rule("decade with an s", r"(?<![\w.,])['’]?(?P<decade>(?:1[5-9]|20)?[1-9]0)['’]?s(?!\w)", _decade),
    digit_rule("decade with an apostrophe", r"(?<!\w)['’](?P<decade>\d{2})(?![\w'’])", _decade),
)
