"""English clock times with AM, PM and time zones, spans of such times, and times of races."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.boundaries import TIME_ZONE
from kokoro_lab.text.normalise.english.dates import DAYS, SHORT_DAY
from kokoro_lab.text.normalise.english.numerals import cardinal, counted, number, two_digits
from kokoro_lab.text.normalise.english.patterns import (
    DASH,
    END,
    LOOSE_END,
    START,
    any_word,
    optional,
    stop,
    took_part,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of

HALF = r"(?:[AaPp]\.\ ?[Mm]\.?|[AaPp][Mm])"
ZONE = rf"""(?:\ (?P<zone>{TIME_ZONE}(?P<offset>[+-]\d{{1,2}})?){END}
|(?<=:\d\d)\ (?P<shift>[+-]\d{{4}}){END})?"""
_MILITARY = regex.compile(r"(?P<hour>\d\d)(?P<minute>\d\d)")
HOUR_24, MINUTE = r"(?:[01]?\d|2[0-4])", r"[0-5]\d"
_POINTED_SPAN = (
    rf"(?P<first>{HOUR_24}\.{MINUTE})\ ?[-–]\ ?(?P<last>{HOUR_24}\.{MINUTE})(?![\p{{L}}\p{{N}}%]|[.,]\d)"
)


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """`14, 5, None, None` is "fourteen oh five", `2, None, None, "pm"` "two PM"."""
    words = [cardinal(hour)]
    if second is not None and minute is not None and half is None:
        parts = ((hour, "hour"), (minute, "minute"), (second, "second"))
        named = [counted(str(value), unit, f"{unit}s") for value, unit in parts]
        return f"{named[0]} {named[1]} and {named[2]}"
    if minute:
        words.append(two_digits(minute))
    elif minute == 0 and half is None and not second:
        if hour == 0:
            return "midnight"
        words.append("hundred hours" if hour > 12 else "o'clock")
    elif second:
        words.append("oh oh")
    if second:
        words.append(f"and {counted(str(second), 'second', 'seconds')}")
    if half:
        words.append(half.upper())
    return " ".join(words)


def _time(match: Any) -> str | None:
    hour, minute, second = int(match["hour"]), optional(match, "minute"), optional(match, "second")
    half = optional(match, "half").replace(".", "").replace(" ", "").lower() if hour <= 12 else ""
    words = time(hour, int(minute) if minute else None, int(second) if second else None, half or None)
    if not half and minute == "00" and took_part(match, "behind"):
        words = cardinal(hour)  # "ten o'clock o'clock"
    return words + stop(match) + _zone(match)


def _zone(match: Any) -> str:
    zone, offset, shift = (optional(match, each) for each in ("zone", "offset", "shift"))
    if shift:  # of a letter's head: "-0530"
        hours, minutes = int(shift[1:3]), int(shift[3:])
        said = [cardinal(hours), *([two_digits(minutes)] if minutes else [])]
        return " ".join([" UTC", *(["plus" if shift[0] == "+" else "minus", *said] if hours else [])])
    if not zone:
        return ""
    shift = f" {'plus' if offset[0] == '+' else 'minus'} {cardinal(int(offset[1:]))}" if offset else ""
    return f" {zone.removesuffix(offset)}{shift}"


def _clock(text: str) -> str:
    """The words for one end of a span of times."""
    if text.isalpha():
        return text
    half = None
    lowered = regex.sub(r"(?<=\d)\.(?=\d)", ":", text.strip().lower()).replace(".", "").replace(" ", "")
    if lowered.endswith(("am", "pm")):
        half, lowered = lowered[-2:], lowered[:-2]
    hour, _, minute = lowered.partition(":")
    if not half and not minute:
        return cardinal(int(hour))
    return time(int(hour), int(minute) if minute else None, None, half)


def _span(match: Any) -> str:
    return f"{_clock(match['first'])} to {_clock(match['last'])}{stop(match)}{_zone(match)}"


def _either_hour(match: Any) -> str | None:
    """The words for two hours that follow one another; other numbers with a stroke are a date."""
    first, last = int(match["first"]), int(match["last"])
    if last != first % 12 + 1:
        return None
    joint = "and" if match.string[: match.start()].endswith("between ") else "or"
    half = match["half"].replace(".", "").replace(" ", "").upper()
    return f"{cardinal(first)} {joint} {cardinal(last)} {half}{stop(match)}{_zone(match)}"


def _pace(match: Any) -> str:
    minutes, seconds = int(match["minutes"]), int(match["seconds"])
    per = "kilometer" if match["per"] == "km" else "mile"
    return f"{cardinal(minutes)} {two_digits(seconds) if seconds else 'minutes'} per {per}"


def _military(match: Any) -> str:
    hour, minute = int(match["hour"]), int(match["minute"])
    lead = f"zero {cardinal(hour)}" if hour < 10 else cardinal(hour)
    return f"{lead} {'hundred' if not minute else two_digits(minute)} hours"


def _military_span(match: Any) -> str:
    first, last = (match[each] for each in ("first", "last"))
    ends = (_MILITARY.fullmatch(each) for each in (first, last))
    said = " to ".join(_military(each).removesuffix(" hours") for each in ends)
    return f"{said} hours" if match["hours"] else said


def _lap(match: Any) -> str:
    """Minutes, seconds and hundredths: a race result, not a time of day."""
    names = [name for name in ("hours", "minutes") if match[name]]
    words = [counted(str(int(match[name])), name[:-1], name) for name in names]
    whole, _, part = match["seconds"].partition(".")
    return " ".join((*words, number(f"{int(whole)}.{part}"), "seconds"))


RULES: tuple[Rule, ...] = (
    digit_rule(
        "span from or to noon",
        rf"""{START}(?:(?P<first>noon|midnight){DASH}
        (?P<last>\d{{1,2}}(?::[0-5]\d)?(?:\ ?{HALF})?){LOOSE_END}
        |(?P<first>\d{{1,2}}(?::[0-5]\d)?(?:\ ?{HALF})?){DASH}(?P<last>noon|midnight){END})""",
        _span,
        ignore_case=True,
        also="-–—",
    ),
    digit_rule(
        "span of clock times",
        rf"""{START}(?:(?P<first>{HOUR_24}(?:[.:]{MINUTE})?\ ?{HALF}){DASH}
        (?P<last>\d{{1,2}}(?:[.:]{MINUTE})?(?:\ ?{HALF})?)
        |(?P<first>{HOUR_24}:{MINUTE}){DASH}(?P<last>{HOUR_24}:{MINUTE}(?:\ ?{HALF})?)
        |(?P<first>(?:1[0-2]|\d)(?:[.:][0-5]\d)?){DASH}(?P<last>(?:1[0-2]|\d)(?:[.:][0-5]\d)?\ ?{HALF}))
        {LOOSE_END}(?!:\d){ZONE}""",
        _span,
        also="-–—",
    ),
    digit_rule(
        "span of times with points",
        rf"""(?<=\b(?i:{any_word("near a time with a point")}|{any_of(DAYS)}|{SHORT_DAY})\b[^!?\d]{{0,20}}
        (?:[\d.]+\ ?[-–]\ ?[\d.]+(?:,|\ and)\ )?){_POINTED_SPAN}
        |{START}(?<![$€£.,]){_POINTED_SPAN}
        (?=,?\ (?:on\ )?(?i:daily|sharp|every\ day|{any_of(DAYS)}s?|{SHORT_DAY})\b)""",
        _span,
        also="-–",
    ),
    digit_rule(
        "span of military times",
        rf"""(?<![\p{{L}}\p{{N}}_.,/+-])(?<!\b(?i:{any_word("before a number that is no time")})\.?\ )
        (?P<first>0\d[0-5][05]|(?:[01]\d|2[0-3])[0-5]\d(?=[-–]\d{{4}}\ h))[-–]
        (?P<last>(?:[01]\d|2[0-3])[0-5][05]|2400)(?P<hours>\ (?:hrs|hours|h))?
        (?![\p{{L}}\p{{N}}_-]|[.,]\d)""",
        _military_span,
        also="-–",
    ),
    digit_rule(
        "one hour or the next",  # `at 5/6 p.m.`
        rf"""{START}(?<![.,:/]|\b[Oo]n\ )(?P<first>1[0-2]|[1-9])/
        (?P<last>1[0-2]|[1-9])\ ?(?P<half>{HALF}){LOOSE_END}{ZONE}""",
        _either_hour,
        wakes="/",
    ),
    Rule(
        "stroke between times",
        rf"""(?<=\d\ ?{HALF}|\d\ ?(?:{HALF}\ )?{TIME_ZONE})\ ?/
        (?=\ ?\d{{1,2}}(?:[:.]{MINUTE})?\ ?(?:{HALF}|{TIME_ZONE}))""",
        lambda match: ",",
        wakes="/",
    ),
    digit_rule(
        "clock times with one letter",
        rf"""{START}(?:(?P<first>\d{{1,2}}(?::[0-5]\d)?\ ?[ap])[-–](?P<last>\d{{1,2}}(?::[0-5]\d)?\ ?[ap])
        |(?P<first>\d{{1,2}})[-–](?P<last>\d{{1,2}}:[0-5]\d[ap])|(?P<first>\d{{1,2}}:[0-5]\d)[-–](?P<last>\d{{1,2}}(?::[0-5]\d)?[ap])
        |(?P<first>\d{{1,2}}:[0-5]\d[ap])(?P<last>)){END}""",
        lambda m: " to ".join(
            _clock(f"{each}m" if each[-1] in "ap" else each) for each in m.group("first", "last") if each
        ),
    ),
    digit_rule(
        "military time",
        rf"{START}(?P<hour>[01]\d|2[0-3]):?(?P<minute>[0-5]\d)\ (?:hrs|hours|h){END}",
        _military,
    ),
    digit_rule(
        "pace of a runner",  # `4:33/km`, `4:33 min/km`
        rf"""{START}(?P<minutes>\d{{1,2}}):(?P<seconds>[0-5]\d)\ ?(?:mins?)?\ ?/\ ?
        (?P<per>km|mi(?:le)?){END}""",
        _pace,
        also="/",
    ),
    digit_rule(
        "time of a race",
        rf"{START}(?:(?P<hours>\d{{1,2}}):)?(?P<minutes>\d{{1,2}}):(?P<seconds>[0-5]\d\.\d{{1,3}}){END}",
        _lap,
    ),
    digit_rule(
        "clock time",
        rf"""{START}(?<!\d[:.]|[$€£])(?P<hour>{HOUR_24}):(?P<minute>{MINUTE})(?::(?P<second>{MINUTE}))?
        (?!\.?\d|:\d)(?:\ ?(?P<half>{HALF}){LOOSE_END}|{END}){ZONE}
        (?P<behind>(?=\ (?:o'clock|noon|midnight)\b))?""",
        _time,
    ),
    digit_rule(
        "hour and half of the day",
        rf"""{START}(?<!\d[:.]|[$€£])(?P<hour>\d{{1,2}})(?:[.](?P<minute>{MINUTE}))?\ ?
        (?P<half>{HALF}){LOOSE_END}{ZONE}""",
        _time,
    ),
    digit_rule(
        "clock time with a point",
        r"""(?<=\b(?:at|until|till|by)\ )(?P<hour>1\d|2[0-3])\.(?P<minute>[0-5]\d)
        (?=[,;!?]?(?:\ (?:on|sharp)\b|\.?$))""",
        _time,
    ),
    digit_rule(
        "clock time with a point, by the words beside it",  # `the 7.45 to Leeds`, `dinner is at 7.30`
        rf"""{START}(?P<hour>1?\d|2[0-3])\.(?P<minute>[0-5]\d)(?:
        (?<=\b[Tt]he\ [\d.]+)
        (?=\ (?:(?:to|from)\ \p{{Lu}}|(?:train|bus|ferry|flight|service|sailing)\b))
        |(?<=\b(?i:{any_word("said of a time")})\b[^.!?\d]{{0,24}}\bat\ [\d.]+)
        (?=[,;!?]?(?:\ (?:on|sharp|and)\b|\.?$|(?<=[,;!?])\ )))""",
        _time,
    ),
    digit_rule(
        "time with h",
        rf"{START}(?P<hour>{HOUR_24})h(?P<minute>{MINUTE}){END}",
        _time,
    ),
    digit_rule(
        "military time with its zone",  # `0630L`, `1915Z`
        rf"""{START}(?<![-.,/])(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)
        (?P<zone>Z|(?<=\b0\d{{3}}|\b(?:ETA|ETD|NLT|NET)\ \d{{4}})L){END}(?!-)""",
        lambda m: f"{_military(m).removesuffix(' hours')} {'Zulu' if m['zone'] == 'Z' else 'local'}",
        also="ZL",
    ),
    Rule(
        "half of the day",
        rf"(?<=\b{any_word('small number in words')}\ )(?P<half>[ap]\.m\.|[ap]m){LOOSE_END}",
        lambda match: f"{match['half'].replace('.', '').upper()}{stop(match)}",
    ),
)
