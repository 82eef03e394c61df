"""Spanish dates with the day first, ISO dates, abbreviated months, decades, eras; and clock times.

Spanish has two ways to say a time, and the written form decides between them. Up to twelve o'clock, and with
`a. m.` or `p. m.`, times are said by the 12-hour clock as schoolbooks teach it: `dos y cuarto`, `dos y
media`. Minutes past the half hour are counted from the full hour before, which both Spain and America
understand (`tres menos cuarto` and `un cuarto para las tres` are each used on one side only). Past twelve,
times are said by the 24-hour clock, in numbers alone: `catorce treinta`. The article before a time (`las`) is
not added: a text that needs it has it.
"""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.roman import roman
from kokoro_lab.text.normalise.rules import Rule, digit_rule, in_calendar
from kokoro_lab.text.normalise.spanish.abbreviations import final_stop
from kokoro_lab.text.normalise.spanish.agreement import word_before
from kokoro_lab.text.normalise.spanish.numerals import cardinal, counted
from kokoro_lab.text.tables import any_of, names, words

MONTHS = tuple(names(__package__)["month by number"].values())
_SHORT = {name[:3]: i for i, name in enumerate(MONTHS, 1)} | {"sept": 9, "set": 9}
_MONTH_NUMBERS = _SHORT | {name: i for i, name in enumerate(MONTHS, 1)} | {"setiembre": 9}
_NAMES, _SHORT_NAMES = any_of((*MONTHS, "setiembre")), any_of(_SHORT)
_NUMBERED_BY_YEAR = words(__package__)["numbered by year"]
"""Words before a number and a year: `ley 8/2020` is the eighth law of 2020, and no law of August 2020."""
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


def _checked(year: int | None, month: int, day: int | None) -> str | None:
    return date(year, month, day) if in_calendar(year or None, month, day) else None


def _numeric(match: Any) -> str | None:
    year, first, second = _year(match["year"]), int(match["first"]), int(match["second"])
    # day first, as in all of the Spanish-speaking world; the American order only where no other is possible
    return _checked(year, second, first) or _checked(year, first, second)


def _date(match: Any) -> str | None:
    """The words for the parts that the match has: a day, a month by its name or number, and a year. None if
    there is no such date."""
    groups = match.groupdict()
    month = _MONTH_NUMBERS.get(groups["month"].casefold()) or int(groups["month"])
    year, day = groups.get("year"), groups.get("day")
    return _checked(_year(year) if year else None, month, int(day) if day else None)


def _roman_month(match: Any) -> str | None:
    return _checked(_year(match["year"]), roman(match["month"]) or 0, int(match["day"]))


def _day_of_month(match: Any) -> str | None:
    day = int(match["day"])
    return date(None, None, day) if 1 <= day <= 31 else None


def _month_of_year(match: Any) -> str | None:
    return None if word_before(match.string, match.start()) in _NUMBERED_BY_YEAR else _date(match)


def _decade(match: Any) -> str:
    return cardinal(int(match["decade"]))


_DAYS = ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo")
_DAY = {**{day: day for day in _DAYS}, **{day[:3]: day for day in _DAYS}}
_ANY_DAY = any_of(_DAY)


def _days(match: Any) -> str:
    """`lun-vie` is "lunes a viernes"."""
    return " a ".join(_DAY[match[end].lower()] for end in ("first", "last"))


_QUARTERS = {15: "cuarto", 30: "media"}
HALF = r"(?P<half>[ap])[ ]?\.?[ ]?m(?:\.|(?!\w))"


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """`dos y media de la tarde`, `catorce treinta`, `catorce horas treinta minutos y quince segundos`."""
    if second is not None:
        parts = [counted(hour, "hora"), counted(minute or 0, "minuto")]
        return " ".join((*parts, "y", counted(second, "segundo"))) + _part_of_day(hour, minute, half)
    if half or 1 <= hour <= 12:
        return _twelve(hour, minute or 0) + _part_of_day(hour, minute, half)
    return _twenty_four(hour, minute or 0)


def _twelve(hour: int, minute: int) -> str:
    said = cardinal(hour, gender="f")
    return f"{said} y {_QUARTERS.get(minute) or cardinal(minute)}" if minute else said


def _twenty_four(hour: int, minute: int) -> str:
    said = cardinal(hour, gender="f")
    if not minute:
        return f"{said} horas"
    return f"{said} y {cardinal(minute)}" if minute < 10 else f"{said} {cardinal(minute)}"


def _with_hours(hour: int, minute: int) -> str:
    """A time with `h` or `horas` after it: `quince treinta horas`, as in announcements."""
    said = cardinal(hour, gender="f")
    if minute:
        said = f"{said} {'cero ' if minute < 10 else ''}{cardinal(minute)}"
    return f"{said} {'hora' if hour == 1 and not minute else 'horas'}"


def _part_of_day(hour: int, minute: int | None, half: str | None) -> str:
    if not half:
        return ""
    if half.startswith("a"):
        return " de la noche" if hour == 12 else " de la mañana"
    if hour == 12 and not minute:
        return " del mediodía"
    return " de la noche" if 8 <= hour < 12 else " de la tarde"


def _clock(match: Any) -> str | None:
    groups = match.groupdict()
    hour, minute = int(match["hour"]), int(match["minute"])
    half = groups.get("half")
    if half and not 1 <= hour <= 12:
        half = None  # "14:30 p. m.": the 24-hour clock tells already
    if groups.get("lasts"):  # "1h45min" is how long
        return f"{counted(hour, 'hora')} {counted(minute, 'minuto')}"
    if groups.get("hours"):
        return _with_hours(hour, minute)
    second = groups.get("second")
    said = time(hour, minute, int(second) if second else None, half.casefold() if half else None)
    return said + final_stop(match)


def _stamp(match: Any) -> str:
    day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    second = int(match["second"]) or None if match["second"] else None
    return f"{day}, {time(int(match['hour']), int(match['minute']), second, None)}"


def _hour(match: Any) -> str | None:
    hour = int(match["hour"])
    return time(hour, None, None, match["half"].casefold()) + final_stop(match) if 1 <= hour <= 12 else None


def _from_to(match: Any) -> str:
    first = time(int(match["hour"]), int(match["minute"]), None, None)
    return f"{first} a {time(int(match['hour2']), int(match['minute2']), None, None)}"


def _bare_hour(match: Any) -> str | None:
    hour = int(match["hour"])
    if hour > 24:
        return None
    return (counted(hour, "hora") if match["hours"] else cardinal(hour, gender="f")) + final_stop(match)


def _verse(match: Any) -> str:
    """A passage of the Bible: chapter and verse, or a span of verses."""
    chapter, verse, last = (cardinal(int(each)) for each in match.groups(default="0"))
    return f"{chapter} {verse} a {last}" if match[3] else f"{chapter} {verse}"


_BOOK = any_of(words(__package__)["book of the Bible"])
_HOUR, _MINUTE = r"(?P<hour>[01]?\d|2[0-4])", r"(?P<minute>[0-5]\d)"
_START, _STOP = r"(?<![\w:/-])(?<!\d[.,])", r"(?![\w:/]|[.,]\d)"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "verses of the Bible",
        rf"(?<=(?<!\w){_BOOK}[ ])(\d{{1,3}}):(\d{{1,3}})(?:[-–](\d{{1,3}}))?(?![\w:])",
        _verse,
        wakes=":",
    ),
    Rule(
        "span of days of the week",
        rf"(?<![\p{{L}}\p{{N}}])(?P<first>{_ANY_DAY})\.?\ ?[-–]\ ?(?P<last>{_ANY_DAY})(?![\p{{L}}\p{{N}}])",
        _days,
        ignore_case=True,
        wakes="-–",
    ),
    digit_rule(
        "date",
        r"""(?<![\w/.-])(?P<first>\d{1,2})(?P<mark>[/.-])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})
            (?![\w/-]|[.,]\d)""",
        _numeric,
    ),
    digit_rule(
        "date with a Roman month",
        r"(?<![\w/.-])(?P<day>\d{1,2})(?P<mark>[/.-])(?P<month>[IVX]{1,4})(?P=mark)(?P<year>\d{4}|\d\d)(?![\w/-])",
        _roman_month,
    ),
    digit_rule(
        "ISO date",
        r"(?<![\w/-])(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?![\w/-]|[.,]\d)",
        _date,
    ),
    digit_rule(
        "date with a short month",
        rf"""(?<![\w/-])(?P<day>\d{{1,2}})(?:[ ]de[ ]|[ /-])(?P<month>{_SHORT_NAMES})(?!\p{{L}})\.?
             (?:(?:[ ]del?[ ]|[ /-])(?P<year>\d{{4}}|\d{{2}})(?![\w/]|[.,]\d))?""",
        _date,
        ignore_case=True,
    ),
    digit_rule(
        "date without its prepositions",
        rf"(?<![\w/-])(?P<day>\d{{1,2}})[ /-](?P<month>{_NAMES})[ /-](?P<year>\d{{4}})(?![\w/]|[.,]\d)",
        _date,
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
        rf"(?<!\w)(?P<month>{_SHORT_NAMES})(?:\.[ ]|[-/])(?P<year>(?:19|20)\d{{2}})(?![\w/-])",
        _date,
        ignore_case=True,
    ),
    Rule(
        "month and year",
        r"(?<![\w/-])(?P<month>0?\d|1[0-2])/(?P<year>(?:19|20)\d{2})(?![\w/-])",
        _month_of_year,
        wakes="/",
    ),
    Rule(
        "date without a year",
        # `5/12` alone is a fraction: only what stands before makes it a day
        r"""(?<=\b(?:el|del|al|día|fecha:?|lunes|martes|miércoles|jueves|viernes|sábado|domingo),?[ ])
            (?P<day>\d{1,2})[/](?P<month>\d{1,2})(?![\w/]|[.,]\d|[ ](?:de|del)[ ])""",
        _date,
        ignore_case=True,
        wakes="/",
    ),
    digit_rule("decade with an s", r"(?<![\w.,])['’]?(?P<decade>(?:1[5-9]|20)?[1-9]0)['’]?s(?!\w)", _decade),
    digit_rule("decade with an apostrophe", r"(?<!\w)['’](?P<decade>\d{2})(?![\w'’])", _decade, wakes="'’"),
    digit_rule(
        "hours from and to",
        rf"{_START}{_HOUR}:{_MINUTE}[ ]?[-–][ ]?(?P<hour2>[01]?\d|2[0-4]):(?P<minute2>[0-5]\d)"
        rf"{_STOP}(?![ ]?h)",
        _from_to,
        wakes=":",
    ),
    digit_rule(
        "clock time with h",
        rf"(?<![\w:/])(?<!\d[.,])(?:{_HOUR}[:.]{_MINUTE}[ ]?(?P<hours>horas|hrs\.?|hs\.?|h\.?)(?!\w)"
        rf"|{_HOUR}(?P<hours>h|[ ]h[ ]){_MINUTE}(?P<lasts>min|m)?(?!\w|[ ]min))",
        _clock,
    ),
    digit_rule(
        "clock time",
        rf"(?<![\w:/])(?<!\d[.,]){_HOUR}:{_MINUTE}(?::(?P<second>[0-5]\d))?(?:[ ]?{HALF})?{_STOP}",
        _clock,
        ignore_case=True,
        wakes=":",
    ),
    digit_rule(
        "clock time with a point",
        rf"(?:(?<=\blas[ ])|(?<=\bde[ ])(?=[\d.]+[ ]a[ ][\d.]+[ ]?h))"
        rf"{_HOUR}\.{_MINUTE}(?:[ ]?{HALF})?{_STOP}",
        _clock,
        ignore_case=True,
    ),
    digit_rule(
        "ISO time stamp",
        r"""(?<![\w-])(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])[T ]
            (?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?Z?(?![\w.+])""",
        _stamp,
    ),
    digit_rule(
        "range between halves of the day",
        r"(?<=\d[ ]?[ap]\.?[ ]?m\.?[ ]?)[-–](?=[ ]?\d{1,2}(?::\d\d)?[ ]?[ap]\.?[ ]?m)",
        lambda _: "a",
        ignore_case=True,
    ),
    digit_rule(
        "hour with a half of the day", rf"{_START}(?P<hour>\d{{1,2}})[ ]?{HALF}", _hour, ignore_case=True
    ),
    digit_rule(
        "bare hour",
        r"(?<=\b(?:a|de|desde|hasta|sobre)[ ]las?[ ])(?P<hour>\d{1,2})(?P<hours>[ ]?h\b\.?)?"
        r"(?![\w:%/°ºª]|[.,]\d|[ ](?:mil|\d))",
        _bare_hour,
        ignore_case=True,
    ),
)
