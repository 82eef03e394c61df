"""Clock times.

Which of the two ways to say a time is meant, the way of writing tells. Up to twelve o'clock, and wherever
`a. m.` or `p. m.` stands, it is the clock of twelve hours, said as schoolbooks teach it: `dos y cuarto`,
`dos y media`. But minutes past the half hour are counted from the hour before, which Spain and America
both understand (`tres menos cuarto` and `un cuarto para las tres` each belong to one side). Past twelve it
is the clock of 24 hours, which has numbers only: `catorce treinta`. The article is left to the text.
"""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.dates import date
from kokoro_lab.text.normalise.spanish.sentence_end import final_stop
from kokoro_lab.text.normalise.spanish.words import cardinal

_QUARTERS = {15: "cuarto", 30: "media"}
HALF = r"(?P<half>[ap])[ ]?\.?[ ]?m(?:\.|(?!\w))"


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """`dos y media de la tarde`, `catorce treinta`, `catorce horas treinta minutos y quince segundos`."""
    if second is not None:
        parts = [_counted(hour, "hora"), _counted(minute or 0, "minuto")]
        return " ".join((*parts, "y", _counted(second, "segundo"))) + _part_of_day(hour, minute, half)
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
    """Where `h` or `horas` stands behind: `quince treinta horas`, as it is announced."""
    said = cardinal(hour, gender="f")
    if minute:
        said = f"{said} {'cero ' if minute < 10 else ''}{cardinal(minute)}"
    return f"{said} {'hora' if hour == 1 and not minute else 'horas'}"


def _counted(number: int, name: str) -> str:
    words = cardinal(number, gender="f" if name == "hora" else "m")
    return f"{words} {name}{'' if number == 1 else 's'}"


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
        return f"{_counted(hour, 'hora')} {_counted(minute, 'minuto')}"
    if groups.get("hours"):
        return _with_hours(hour, minute)
    said = time(
        hour, minute, int(match["second"]) if match["second"] else None, half.casefold() if half else None
    )
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
    return cardinal(hour, gender="f") if hour <= 24 else None


_HOUR, _MINUTE = r"(?P<hour>[01]?\d|2[0-4])", r"(?P<minute>[0-5]\d)"
_START, _STOP = r"(?<![\w:/-])(?<!\d[.,])", r"(?![\w:/]|[.,]\d)"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "hours from and to",
        rf"{_START}{_HOUR}:{_MINUTE}[ ]?[-–][ ]?(?P<hour2>[01]?\d|2[0-4]):(?P<minute2>[0-5]\d)"
        rf"{_STOP}(?![ ]?h)",
        _from_to,
    ),
    digit_rule(
        "clock time with h",
        rf"(?<![\w:/])(?<!\d[.,])(?:{_HOUR}[:.]{_MINUTE}[ ]?(?P<hours>horas|hrs\.?|hs\.?|h\.?)(?!\w)"
        rf"|(?P<hour>[01]?\d|2[0-4])(?P<hours>h|[ ]h[ ])(?P<minute>[0-5]\d)(?P<lasts>min|m)?(?!\w|[ ]min))",
        _clock,
    ),
    digit_rule(
        "clock time",
        rf"(?<![\w:/])(?<!\d[.,]){_HOUR}:{_MINUTE}(?::(?P<second>[0-5]\d))?(?:[ ]?{HALF})?{_STOP}",
        _clock,
        ignore_case=True,
    ),
    digit_rule(
        "clock time with a point",
        rf"(?<=\blas[ ]){_HOUR}\.{_MINUTE}(?P<second>(?!))?(?:[ ]?{HALF})?{_STOP}",
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
        r"(?<=\b(?:a|de|desde|hasta|sobre)[ ]las?[ ])(?P<hour>\d{1,2})(?![\w:%/°ºª]|[.,]\d|[ ](?:mil|\d))",
        _bare_hour,
        ignore_case=True,
    ),
)
