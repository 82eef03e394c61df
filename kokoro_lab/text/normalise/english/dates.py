"""English dates, years, decades, centuries and seasons; and durations."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import cardinal, counted, ordinal, two_digits, year
from kokoro_lab.text.normalise.english.patterns import (
    END,
    LOOSE_END,
    NAMES,
    START,
    any_word,
    optional,
    stop,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule, in_calendar
from kokoro_lab.text.tables import any_of

MONTHS = tuple(NAMES["month by number"].values())
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SPAN_DAY = any_of(NAMES["day of a span"])
"""Short names of days that only count in a span, such as Mo-Fr."""
AND = r"(?:,|\ [&+])"
SHORT_DAY = r"(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b"
FULL = (
    {name.lower(): name for name in (*MONTHS, *DAYS)} | NAMES["month"] | NAMES["day"] | NAMES["day of a span"]
)
"""How a month or a day of the week is written, in lower case → its full name."""

MONTH = rf"(?:{any_of(MONTHS)}|{any_of(('june', 'july', *NAMES['month']))}\.?)"
WEEKDAY = rf"(?:{any_of(DAYS)}|{any_of(NAMES['day'])}\.?)"
YEAR = r"(?:1[0-9]\d{2}|20\d{2}|21\d{2})"
ERA = r"(?:\ ?(?P<era>AD|BC|BCE|CE|A\.D\.|B\.C\.(?:E\.)?|C\.E\.))"
DAY = r"(?:0?[1-9]|[12]\d|3[01])"
APOSTROPHE = "'"
THE_DAY = rf"(?:{DAY})(?:st|nd|rd|th)?"


def date(year_number: int | None, month: int | None, day: int | None) -> str:
    """`2024, 3, 5` is "March fifth twenty twenty four"; parts that are None are left out."""
    words = []
    if month is not None:
        words.append(MONTHS[month - 1])
    if day is not None:
        words.append(ordinal(day) if month is not None else f"the {ordinal(day)}")
    if year_number is not None:
        words.append(year(year_number))
    return " ".join(words)


def century_year(text: str) -> str:
    """The words for a year of four digits, or of the last two: `'05` is "oh five"."""
    if len(text) == 4:
        return year(int(text))
    return f"oh {cardinal(int(text))}" if text[0] == "0" and text != "00" else cardinal(int(text))


def _full(text: str) -> str:
    return FULL[text.casefold().rstrip(".")]


def _ordinal(text: str) -> str:
    return ordinal(int(text.rstrip("sthndr")))


def _weekday(match: Any) -> str:
    return f"{_full(match['weekday'])}, " if optional(match, "weekday") else ""


def _year_behind(match: Any) -> str:
    if not match["year"]:
        return ""
    comma = "," if "," in match["year_part"] else ""
    return f"{comma} {century_year(match['year'].removeprefix(APOSTROPHE))}{_era(match)}"


def _era(match: Any) -> str:
    era = optional(match, "era").replace(".", "")
    return f" {era}" if era else ""


def _month_day_year(match: Any) -> str:
    """The words for month, day and year, or for a span of days that ends in the same month or in another
    one."""
    until = f"{_full(match['until'])} " if optional(match, "until") else ""
    last = f" to {until}{_ordinal(match['last'])}" if match["last"] else ""
    return f"{_weekday(match)}{_full(match['month'])} {_ordinal(match['day'])}{last}{_year_behind(match)}"


def _day_month_year(match: Any) -> str:
    until = f" to the {_ordinal(match['last'])}" if match["last"] else ""
    day, month = _ordinal(match["day"]), _full(match["month"])
    return f"{_weekday(match)}the {day}{until} of {month}{_year_behind(match)}"


def _names(match: Any) -> str | None:
    """Spans such as `Mon-Fri` and `Jan-Mar`; other hyphenated words are left alone."""
    return f"{_full(match['first'])} to {_full(match['last'])}" if match.group()[:1].isupper() else None


def _iso(match: Any) -> str | None:
    given = (int(match["year"]), int(match["month"]), int(match["day"]))
    return date(*given) if in_calendar(*given) else None


_OF_A_VERSION = regex.compile(
    rf"\b(?i:{any_word('before a version')})\b[^!?;]*$|\b[vV]\.?\ ?$", regex.VERBOSE
)
"""Words before a version, which may look like a date with points: 4.17.20."""


_ON = regex.compile(r"\b(?i:on|by|until|till|since|dated)\ $")


def _slashed(match: Any, *, british: bool = False) -> str | None:
    dated = _ON.search(match.string, max(0, match.start() - 10), match.start())
    if (
        "." in match.group()
        and not dated
        and _OF_A_VERSION.search(match.string, max(0, match.start() - 60), match.start())
    ):
        return None
    y = match["year"]
    full = None if not y else int(y) if len(y) == 4 else 2000 + int(y) if int(y) < 70 else 1900 + int(y)
    return _in_order(int(match["first"]), int(match["second"]), full, british=british)


def _slashed_span(match: Any, *, british: bool = False) -> str | None:
    ends = ((match["first"], match["second"]), (match["month"], match["day"]))
    first, last = (_in_order(int(one), int(other), None, british=british) for one, other in ends)
    return f"{first} to {last}" if first and last else None


def _span_with_years(match: Any, *, british: bool = False) -> str | None:
    ends = []
    for each in (match["from"], match["until"]):
        first, second, year_text = regex.split("[/.-]", each)
        full = int(year_text) + (0 if len(year_text) == 4 else 2000 if int(year_text) < 70 else 1900)
        ends.append(_in_order(int(first), int(second), full, british=british))
    return f"{ends[0]} to {ends[1]}" if all(ends) else None


def _in_order(first: int, second: int, full: int | None, *, british: bool) -> str | None:
    """The words for a date that is written in numbers: the month comes first in American English, the day in
    British. If the date does not exist in that order, the other order is taken; None if it exists in
    neither."""
    orders = [(first, second), (second, first)]
    for month, day in reversed(orders) if british else orders:
        if in_calendar(full, month, day):
            if not british:
                return date(full, month, day)
            return f"the {ordinal(day)} of {MONTHS[month - 1]} {year(full) if full else ''}".rstrip()
    return None


def decade(text: str) -> str:
    """`1990`, `90`, `1900`, `2000` as decades: "nineteen nineties", "nineties", "nineteen hundreds"."""
    value = int(text)
    tens = value // 10 % 10
    if tens == 0:
        if len(text) == 2:
            return "two thousands"
        return f"{year(value)}s"
    name = NAMES["decade"].get(str(tens), "tens")  # the second decade of a century has no agreed name
    return name if len(text) == 2 else f"{cardinal(value // 100)} {name}"


def _years(match: Any) -> str:
    """The words for a span of years, of which the second may be written without its century."""
    first, last = match["first"], match["last"]
    # 1999-00 is said as the season it names; 2003-04 "oh four"
    era = _era(match) if len(last) == 4 else ""
    return f"{year(int(first))} to {century_year(last)}{era}"


def _year_alone(match: Any) -> str:
    return f"{year(int(match['year']))}{_era(match)}"


def _era_year(match: Any) -> str:
    """The words for a year with its era. It may have any number of digits."""
    text = match["year"].replace(",", "")
    spoken = year(int(text)) if len(text) == 4 and "," not in match["year"] else cardinal(int(text))
    return f"{spoken}{_era(match)}"


def _year_month(match: Any) -> str | None:
    """A year and its month, unless the second number is the following year: 2008-09 is a season."""
    month, following = int(match["month"]), int(match["year"]) % 100 + 1
    return None if month == following and "-" in match.group() else date(int(match["year"]), month, None)


_YEAR_BEHIND = rf"(?P<year_part>(?:,\ |,|\ |\ of\ )(?P<year>{YEAR}|'\d\d){END}(?!:\d|\.\d|,\d|%){ERA}?)?"

_NOT_A_YEAR = rf"(?!\ ?(?:%|percent|°))(?![.,:/]\d)(?!\ {any_word('behind no year')}\b)"
_COUNTED = rf"""
(?!\ (?:(?:{any_word("before what is counted")}|\p{{Ll}}{{4,}}(?:ed|al|ic|an|ive|ous|ful))\ )?
(?!{any_word("not counted")}\b)(?:\p{{Ll}}{{2,}}(?<!s)s|{any_word("counted")})\b)
"""
_YEAR_CUE = rf"(?<=\b(?i:{any_word('before a year')})[\ -])"


def _season(match: Any) -> str | None:
    """A season over two years, such as 2023/24. 2008/09 may also be a month, so it is a season only where the
    text calls it one."""
    first, last = int(match["first"]), int(match["last"])
    if last == first + 1:
        return f"{year(first)} {year(last)}"
    if (first + 1) % 100 != last or (1 <= last <= 12 and not match["named"]):
        return None
    return f"{year(first)} {two_digits(last)}"


def _duration(match: Any) -> str:
    units = ("day", "hour", "minute", "second")
    given = ((unit, regex.sub(r"^0+(?=\d)", "", match[unit] or "")) for unit in units)
    return " ".join(counted(text, unit, f"{unit}s") for unit, text in given if text)


RULES: tuple[Rule, ...] = (
    digit_rule(
        "duration",
        r"""(?<![\p{L}\p{N}_.,/:])(?=\d+(?:d\ ?\d+[hm]|h\ ?\d+[ms]|m\ ?[\d.]+s))
        (?:(?P<day>\d+)d\ ?)?(?:(?P<hour>\d+)h\ ?)?
        (?:(?P<minute>\d+)m(?:in)?\ ?)?(?:(?P<second>\d+(?:\.\d+)?)s)?(?<!\ )(?![\p{L}\p{N}_])""",
        _duration,
    ),
    digit_rule(
        "minutes",
        rf"""(?<![\p{{L}}\p{{N}}_.,/:])(?:(?<=\b(?i:{any_word("before minutes")}):?\ )(?P<minute>\d{{1,3}})m
        |(?P<minute>\d{{1,3}})m(?=\ (?:ago|early|late)\b))(?![\p{{L}}\p{{N}}_])""",
        lambda m: counted(m["minute"], "minute", "minutes"),
    ),
    digit_rule(
        "season",
        rf"""{START}(?P<first>(?:19|20)\d\d)/(?P<last>\d\d(?:\d\d)?){END}
        (?P<named>(?=\ (?i:seasons?|campaign|school|academic|
        winter|tax|financial|fiscal)\b))?(?![/-]\d)""",
        _season,
    ),
    digit_rule(
        "span of days with strokes",
        rf"""{START}(?:(?<=\b(?:(?i:{any_word("before a short date")}|open|closed|dates:?)
        |(?:{any_of(DAYS)}|{SHORT_DAY}\.?),?)\ )
        (?P<first>\d{{1,2}})/(?P<second>\d{{1,2}})|(?P<first>\d{{1,2}})/(?P<second>1[3-579]|2\d|3[01]))
        \ ?[-–]\ ?(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}}){END}(?![-/.]\d|["″]|\ (?:of|cups?|inch)\b)""",
        _slashed_span,
    ),
    digit_rule(
        "month and day",
        rf"""(?<=\b(?:(?i:{any_word("before a short date")})|(?:{any_of(DAYS)}|{SHORT_DAY}\.?),?
        |\d{{1,2}}\ (?i:{MONTH})\ (?:&|and))\ )(?P<first>\d{{1,2}})/(?P<second>\d{{1,2}}){END}
        (?P<year>(?![/.-]\d|\ (?:of|cups?|inch|full|price)\b))""",
        _slashed,
    ),
    digit_rule(
        "span of dates",
        rf"""{START}(?P<month>{MONTH})\ (?P<day>{THE_DAY})\ ?[-–]\ ?
        (?P<until>{MONTH})\ (?P<last>{THE_DAY}){END}(?!\.\d|:\d|/\d){_YEAR_BEHIND}""",
        _month_day_year,
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
        (?!\.\d|:\d|/\d|,\d)(?:\ ?[-–]\ ?(?P<last>{THE_DAY}){END}(?!:|/|\ ?%))?{_YEAR_BEHIND}""",
        _month_day_year,
        ignore_case=True,
    ),
    digit_rule(
        "day, month and year",
        rf"""{START}(?:(?P<weekday>{WEEKDAY}),?\ )?(?:the\ )?(?P<day>{THE_DAY})
        (?:\ ?[-–]\ ?(?P<last>{THE_DAY}))?(?:\ (?:of\ )?|-)(?P<month>{MONTH}){END}
        (?P<year_part>(?:,\ |\ |-)(?P<year>{YEAR}|'\d\d|(?<=\p{{L}}-)\d\d){END}(?!:\d|\.\d){ERA}?)?""",
        _day_month_year,
        ignore_case=True,
    ),
    digit_rule(
        "month and year",
        rf"""{START}(?P<month>{MONTH}|May)(?P<year_part>(?:,\ |\ |\ of\ |-)
        (?P<year>{YEAR}|'\d\d|(?<=-)\d\d(?!-))){END}(?!:\d|\.\d)""",
        lambda match: _full(match["month"]) + _year_behind(match),
        ignore_case=True,
    ),
    digit_rule(
        "ISO date",
        rf"{START}(?P<year>\d{{4}})([-/.])(?P<month>0?[1-9]|1[0-2])\2(?P<day>{DAY}){END}(?![-/]\d)",
        _iso,
    ),
    digit_rule(
        "span of slashed dates",
        rf"""{START}(?P<from>\d{{1,2}}([/.])\d{{1,2}}\2(?:\d{{4}}|\d\d))\ ?[-–]\ ?
        (?P<until>\d{{1,2}}\2\d{{1,2}}\2(?:\d{{4}}|\d\d)){END}(?![-/.]\d)""",
        _span_with_years,
        also="-–",
    ),
    digit_rule(
        "slashed date",
        rf"{START}(?P<first>\d{{1,2}})([-/.])(?P<second>\d{{1,2}})\2(?P<year>\d{{4}}|\d\d){END}(?![-/.]\d)",
        _slashed,
    ),
    Rule(
        "span of days or months",
        rf"""{START}(?:(?P<first>{WEEKDAY}|{SPAN_DAY})\ ?[-–]\ ?(?P<last>{WEEKDAY}|{SPAN_DAY}){END}
        |(?P<first>{MONTH})\ ?[-–]\ ?(?P<last>{MONTH}){END}(?!\ \d))""",
        _names,
        ignore_case=True,
        wakes="-–",
    ),
    digit_rule(
        "working days",
        rf"{START}M\ ?[-–]\ ?(?P<last>F|Th)(?=:?,?\ \d)",
        lambda match: f"Monday to {'Friday' if match['last'] == 'F' else 'Thursday'}",
    ),
    Rule(
        "day of the week",
        rf"""{START}(?P<day>{SHORT_DAY})\.?(?:(?=,?\ \d{{1,2}}(?!\d|\ \p{{L}}{{3}})|:\ \d|{AND}\ {SHORT_DAY})
        |(?=/{SHORT_DAY})|(?<={SHORT_DAY}/\w+)
        |(?<=\b(?:{any_word("before a day")}|{SHORT_DAY}\.?{AND})\ \w+\.?)(?!\ \p{{Lu}}))""",
        lambda match: _full(match["day"]) + stop(match),
        ignore_case=True,
        wakes="MTWFS",
    ),
    digit_rule(
        "year and month",
        rf"{START}(?P<year>(?:19|20)\d\d)[-/](?P<month>0[1-9]|1[0-2]){END}(?![-/]\d)",
        _year_month,
    ),
    digit_rule(
        "month and year with a stroke",
        rf"{START}(?<![/.,$€£¥])(?P<month>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d){END}(?![-/.]\d|\ of\b)",
        lambda match: date(int(match["year"]), int(match["month"]), None),
    ),
    digit_rule(
        "decade",
        rf"""{START}(?:(?P<decade>(?:1\d|20)\d0)'?s|'(?P<decade>\d0)'?s
        |(?<=\b{any_word("before a decade")}[\ -])(?P<decade>[2-9]0)'?s){END}""",
        lambda match: decade(match["decade"]),
    ),
    digit_rule(
        "year without its century",
        rf"(?:(?<![\p{{L}}\p{{N}}])|(?<=\b[HQ][1-4]))'(?P<year>\d\d){END}(?!')",
        lambda m: century_year(m["year"]),
        also="'",
    ),
    digit_rule(
        "years of an era",
        rf"""{START}(?P<first>\d{{1,4}})(?:\ ?(?P<early>BCE?|CE|AD))?
        (?:\ ?[-–]\ ?|\ (?P<word>to|and|until|or)\ )(?P<last>\d{{1,4}}){ERA}{LOOSE_END}""",
        lambda m: (
            f"{year(int(m['first']))}{' ' * bool(m['early'])}{m['early'] or ''} {m['word'] or 'to'} "
            f"{year(int(m['last']))}{_era(m)}"
        ),
    ),
    digit_rule("year of an era", rf"{START}(?P<year>\d{{1,3}}(?:,\d{{3}})*|\d+){ERA}{LOOSE_END}", _era_year),
    digit_rule(
        "AD year",
        rf"{START}(?:AD|A\.D\.)\ (?P<year>\d{{1,4}}){END}",
        lambda match: f"AD {year(int(match['year']))}",
    ),
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
        rf"""(?<![\p{{L}}\p{{N}}_$€£¥#+\-–./]|[.,:]\d?|\b(?i:{any_word("before no year")})\ )
        (?P<year>1[5-9]\d\d|20\d\d){END}(?!\ ?[-–+×*/=]\ ?\d){_NOT_A_YEAR}{_COUNTED}""",
        _year_alone,
    ),
)

DAY_FIRST = {
    each.name: replace(each, say=partial(each.say, british=True))
    for each in RULES
    if each.say in (_slashed, _slashed_span, _span_with_years)
}
"""The rules for dates that the British read in another order."""
