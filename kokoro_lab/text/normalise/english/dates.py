"""Dates, years, decades and centuries."""

from __future__ import annotations

from datetime import date as calendar_date
from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal, year
from kokoro_lab.text.normalise.english.patterns import (
    DAY_OF,
    DAYS,
    END,
    MONTH_OF,
    MONTHS,
    START,
    any_of,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

MONTH = rf"(?:{any_of(MONTHS)}|{any_of(n for n in MONTH_OF if len(n) < 5 and n != 'may')}\.?)"
WEEKDAY = rf"(?:{any_of(DAYS)}|{any_of(n for n in DAY_OF if len(n) < 6)}\.?)"
YEAR = r"(?:1[0-9]\d{2}|20\d{2}|21\d{2})"
ERA = r"(?:\ ?(?P<era>AD|BC|BCE|CE|A\.D\.|B\.C\.(?:E\.)?|C\.E\.))"
DAY = r"(?:0?[1-9]|[12]\d|3[01])"
APOSTROPHE = "'"
THE_DAY = rf"(?:{DAY})(?:st|nd|rd|th)?"

TENS = {
    2: "twenties",
    3: "thirties",
    4: "forties",
    5: "fifties",
    6: "sixties",
    7: "seventies",
    8: "eighties",
    9: "nineties",
}
"""What a decade is called. The tens have no name that people agree on."""


def date(year_number: int | None, month: int | None, day: int | None) -> str:
    """`2024, 3, 5` is "March fifth twenty twenty four"; what is None is left out."""
    words = []
    if month is not None:
        words.append(MONTHS[month - 1])
    if day is not None:
        words.append(ordinal(day) if month is not None else f"the {ordinal(day)}")
    if year_number is not None:
        words.append(year(year_number))
    return " ".join(words)


def century_year(text: str) -> str:
    """A year of four digits, or of two, which people say as they are written: `'05` is "oh five"."""
    if len(text) == 4:
        return year(int(text))
    return f"oh {cardinal(int(text))}" if text[0] == "0" and text != "00" else cardinal(int(text))


def _weekday(match: Any) -> str:
    written = match.groupdict().get("weekday")
    return f"{DAY_OF[written.lower().rstrip('.')]}, " if written else ""


def _month_day_year(match: Any) -> str:
    words = f"{_weekday(match)}{_month(match)} {_ordinal(match['day'])}"
    if match["last"]:
        words += f" to {_ordinal(match['last'])}"
    return words + _year_behind(match)


def _dates(match: Any) -> str:
    """From a day of one month to a day of another."""
    until = MONTHS[MONTH_OF[match["until"].lower().rstrip(".")] - 1]
    return (
        f"{_month(match)} {_ordinal(match['day'])} to {until} {_ordinal(match['last'])}{_year_behind(match)}"
    )


def _day_month_year(match: Any) -> str:
    until = f" to the {_ordinal(match['last'])}" if match["last"] else ""
    return f"{_weekday(match)}the {_ordinal(match['day'])}{until} of {_month(match)}{_year_behind(match)}"


def _month_year(match: Any) -> str:
    return f"{_month(match)}{_year_behind(match)}"


def _month(match: Any) -> str:
    return MONTHS[MONTH_OF[match["month"].lower().rstrip(".")] - 1]


def _ordinal(text: str) -> str:
    return ordinal(int(text.rstrip("sthndr")))


def _year_behind(match: Any) -> str:
    if not match["year"]:
        return ""
    comma = "," if "," in match["year_part"] else ""
    return f"{comma} {century_year(match['year'].removeprefix(APOSTROPHE))}{_era(match)}"


def _era(match: Any) -> str:
    era = match.groupdict().get("era")
    return f" {era.replace('.', '')}" if era else ""


def _names(match: Any) -> str | None:
    """`Mon-Fri`, `Jan-Mar`; what is only a hyphenated word is left alone."""
    spoken = []
    for text in (match["first"], match["last"]):
        key = text.lower().rstrip(".")
        spoken.append(DAY_OF.get(key) or (MONTHS[MONTH_OF[key] - 1] if key in MONTH_OF else None))
    if None in spoken or not match.group()[:1].isupper():
        return None
    return f"{spoken[0]} to {spoken[1]}"


def _iso(match: Any) -> str | None:
    y, m, d = int(match["year"]), int(match["month"]), int(match["day"])
    return date(y, m, d) if exists(y, m, d) else None


def _slashed(match: Any) -> str | None:
    """Month first, as Americans write; day first where only that is a date."""
    first, second, y = int(match["first"]), int(match["second"]), match["year"]
    full = int(y) if len(y) == 4 else 2000 + int(y) if int(y) < 70 else 1900 + int(y)
    for month, day in ((first, second), (second, first)):
        if exists(full, month, day):
            return f"{MONTHS[month - 1]} {ordinal(day)} {year(full)}"
    return None


def exists(y: int, m: int, d: int) -> bool:
    """Whether the calendar has this day."""
    try:
        calendar_date(y, m, d)
    except ValueError:
        return False
    return True


def decade(text: str) -> str:
    """`1990`, `90`, `1900`, `2000` as decades: "nineteen nineties", "nineties", "nineteen hundreds"."""
    value = int(text)
    tens = value // 10 % 10
    if tens == 0:
        if len(text) == 2:
            return "two thousands"
        return f"{year(value)}s"
    name = TENS.get(tens, "tens")
    return name if len(text) == 2 else f"{cardinal(value // 100)} {name}"


def _decade(match: Any) -> str:
    return decade(match["decade"])


def _years(match: Any) -> str:
    """A span of years: the second may leave its century out."""
    first, last = match["first"], match["last"]
    if len(last) == 2:
        # 1999-00 is said as the season it names; 2003-04 "oh four"
        return f"{year(int(first))} to {century_year(last)}"
    return f"{year(int(first))} to {year(int(last))}{_era(match)}"


def _year_alone(match: Any) -> str | None:
    return f"{year(int(match['year']))}{_era(match)}"


def _era_year(match: Any) -> str:
    """Before our era a number of any length is a year."""
    text = match["year"].replace(",", "")
    spoken = year(int(text)) if len(text) == 4 and "," not in match["year"] else cardinal(int(text))
    return f"{spoken}{_era(match)}"


def _ad_year(match: Any) -> str:
    return f"AD {year(int(match['year']))}"


def _year_month(match: Any) -> str | None:
    """A year and its month, unless the second number is the year behind the first: 2008-09 is a season."""
    month = int(match["month"])
    if int(match["year"]) % 100 + 1 == month and "-" in match.group():
        return None
    return f"{MONTHS[month - 1]} {year(int(match['year']))}" if 1 <= month <= 12 else None


_YEAR_BEHIND = rf"(?P<year_part>(?:,\ |,|\ |\ of\ )(?P<year>{YEAR}|'\d\d){END}(?!:\d|\.\d|,\d|%){ERA}?)?"

_NOT_A_YEAR = (
    r"(?!\ ?(?:%|percent|°))(?![.,:/]\d)(?!\ (?:and\ a\ half|million|billion|thousand|hundred|dozen)\b)"
)
_COUNTED = (
    r"(?!\ (?:(?:more|new|other|different|additional|such|\p{Ll}{4,}(?:ed|al|ic|an|ive|ous|ful))\ )?"
    r"(?!was\b|is\b|has\b|its\b|this\b|as\b|his\b|us\b|plus\b|across\b|versus\b|less\b|unless\b|perhaps\b"
    r"|sees\b|always\b|besides\b|towards\b|Paris\b|census\b|series\b|olympics\b|elections?\b|crisis\b"
    r"|games\b|playoffs\b|finals\b|levels\b|prices\b)"
    r"(?:\p{Ll}{2,}(?<!s)s|people|men|women|children|feet|km|kg|m|cm|mm|mi|lb|lbs|votes|of)\b)"
)
_YEAR_CUE = (
    r"(?<=\b(?i:in|since|until|till|by|from|before|after|during|around|circa|c\.|ca\.|of|year|years|class\ of"
    r"|early|late|mid|spring|summer|autumn|fall|winter|through|season|and|between|to|or|the|"
    r"fy|©|copyright)[\ -])"
)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "span of dates",
        rf"""{START}(?P<month>{MONTH})\ (?P<day>{THE_DAY})\ ?[-–]\ ?(?P<until>{MONTH})[ ]
        (?P<last>{THE_DAY}){END}
        (?!\.\d|:\d|/\d){_YEAR_BEHIND}""",
        _dates,
        ignore_case=True,
    ),
    digit_rule(
        "years until now",
        rf"{START}(?P<year>{YEAR})\ ?[-–]\ ?(?P<now>present|today|now|date)\b",
        lambda match: f"{year(int(match['year']))} to {match['now']}",
    ),
    digit_rule(
        "month, day and year",
        rf"""{START}(?:(?P<weekday>{WEEKDAY}),?\ )?(?P<month>{MONTH})\ (?:the\ )?(?P<day>{THE_DAY}){END}
        (?!\.\d|:\d|/\d|,\d)(?:\ ?[-–]\ ?(?P<last>{THE_DAY}){END}(?!:|/))?{_YEAR_BEHIND}""",
        _month_day_year,
        ignore_case=True,
    ),
    digit_rule(
        "day, month and year",
        rf"""{START}(?:(?P<weekday>{WEEKDAY}),?\ )?(?:the\ )?(?P<day>{THE_DAY})(?:\ ?[-–]\ ?
        (?P<last>{THE_DAY}))?
        (?:\ (?:of\ )?|-)(?P<month>{MONTH}){END}(?P<year_part>(?:,\ |\ |-)(?P<year>{YEAR}|'\d\d){END}
        (?!:\d|\.\d){ERA}?)?""",
        _day_month_year,
        ignore_case=True,
    ),
    digit_rule(
        "month and year",
        rf"""{START}(?P<month>{MONTH}|May)(?P<year_part>(?:,\ |\ |\ of\ |-)(?P<year>{YEAR}|'\d\d)){END}
        (?!:\d
        |\.\d)""",
        _month_year,
        ignore_case=True,
    ),
    digit_rule(
        "ISO date",
        rf"{START}(?P<year>\d{{4}})([-/.])(?P<month>0?[1-9]|1[0-2])\2(?P<day>{DAY}){END}(?![-/]\d)",
        _iso,
    ),
    digit_rule(
        "slashed date",
        rf"{START}(?P<first>\d{{1,2}})([-/.])(?P<second>\d{{1,2}})\2(?P<year>\d{{4}}|\d\d){END}(?![-/.]\d)",
        _slashed,
    ),
    rule(
        "span of days or months",
        rf"{START}(?P<first>{WEEKDAY}|{MONTH})\ ?[-–]\ ?(?P<last>{WEEKDAY}|{MONTH}){END}(?!\ \d)",
        _names,
        ignore_case=True,
        wakes="-–",
    ),
    digit_rule(
        "year and month",
        rf"{START}(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2]){END}(?![-/]\d)",
        _year_month,
    ),
    digit_rule(
        "decade",
        rf"""{START}(?:(?P<decade>(?:1\d|20)\d0)'?s|'(?P<decade>\d0)'?s|(?<=\b(?:the|early|late|mid|my|his
        |her
        |their|our|your)[\ -])(?P<decade>[2-9]0)'?s){END}""",
        _decade,
    ),
    digit_rule(
        "year without its century",
        rf"(?<![\p{{L}}\p{{N}}])'(?P<year>\d\d){END}(?!')",
        lambda m: century_year(m["year"]),
    ),
    digit_rule(
        "year of an era", rf"{START}(?P<year>\d{{1,3}}(?:,\d{{3}})*|\d+){ERA}(?![\p{{L}}\p{{N}}])", _era_year
    ),
    digit_rule("AD year", rf"{START}(?:AD|A\.D\.)\ (?P<year>\d{{1,4}}){END}", _ad_year),
    digit_rule(
        "years",
        rf"{START}(?P<first>{YEAR})\ ?[-–]\ ?(?P<last>{YEAR}|\d\d){ERA}?{END}(?![-–:/.]\d){_COUNTED}",
        _years,
    ),
    digit_rule(
        "year after a word",
        rf"""{_YEAR_CUE}(?P<year>10[1-9]\d|1[1-9]\d\d|20\d\d){ERA}?{END}(?!-)
        (?!\ ?[-–+×*/=]\ ?\d){_NOT_A_YEAR}{_COUNTED}""",
        _year_alone,
    ),
    digit_rule(
        "year",
        rf"""(?<![\p{{L}}\p{{N}}_$€£¥#+\-–./]|[.,:]\d?|\b(?i:number|no\.|room|flight|bus|route|page|line
        |about|over|
        nearly|almost|than|approximately|some|least|most|only|exactly|roughly|every|another|total\ of
        |model|
        plus|minus|times|by|equals|extension|box|suite|code|pin|channel|highway|gate)\ )
        (?P<year>1[5-9]\d\d|20\d\d){END}(?!\ ?[-–+×*/=]\ ?\d){_NOT_A_YEAR}{_COUNTED}""",
        _year_alone,
    ),
)
