"""Clock times, with halves of the day and time zones, and durations written like them."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, number, two_digits
from kokoro_lab.text.normalise.english.patterns import DASH, END, START, any_of, words_of
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

HALF = r"(?:[AaPp]\.\ ?[Mm]\.?|[AaPp][Mm])"
ZONES = words_of("""
UTC GMT EST EDT ET CST CDT CT MST MDT MT PST PDT PT AKST HST BST CET CEST WET WEST EET EEST MSK IST
JST KST AEST AEDT ACST AWST NZST NZDT SGT HKT Z
""")
ZONE = rf"(?P<zone>{any_of(zone for zone in ZONES if zone != 'Z')}(?P<offset>[+-]\d{{1,2}})?)"
HOUR_24, MINUTE = r"(?:[01]?\d|2[0-4])", r"[0-5]\d"


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """`14, 5, None, None` is "fourteen oh five", `2, None, None, "pm"` "two PM"."""
    words = [cardinal(hour)]
    if second is not None and minute is not None and half is None:
        parts = ((hour, "hour"), (minute, "minute"), (second, "second"))
        named = [f"{cardinal(value)} {unit}{'' if value == 1 else 's'}" for value, unit in parts]
        return f"{named[0]} {named[1]} and {named[2]}"
    if minute:
        words.append(two_digits(minute))
    elif minute == 0 and half is None and not second:
        words.append("hundred hours" if hour > 12 else "midnight" if hour == 0 else "o'clock")
        if hour == 0:
            words = ["midnight"]
    elif second:
        words.append("oh oh")
    if second:
        words.append(f"and {cardinal(second)} second{'s' if second != 1 else ''}")
    if half:
        words.append(half.upper())
    return " ".join(words)


def _half(text: str | None) -> str | None:
    return text.replace(".", "").replace(" ", "").lower() if text else None


def _time(match: Any) -> str | None:
    hour, minute = int(match["hour"]), match["minute"]
    half = _half(match["half"])
    if half and (hour > 12 or hour == 0):
        half = None if hour > 12 else half
    second = match["second"]
    words = time(hour, None if minute is None else int(minute), int(second) if second else None, half)
    if not half and match["minute"] == "00" and match["behind"] is not None:
        words = cardinal(hour)  # "ten o'clock o'clock"
    return words + _stop(match) + _zone(match)


def _stop(match: Any) -> str:
    """The point of `p.m.` ends the sentence too, if nothing follows."""
    text: str = match.group()
    return "." if text.endswith(".") and not match.string[match.end() :].strip(" \"”')") else ""


def _zone(match: Any) -> str:
    zone = match["zone"]
    if not zone:
        return ""
    name = zone.rstrip("+-0123456789")
    offset = match["offset"]
    if not offset:
        return f" {name}"
    return f" {name} {'plus' if offset[0] == '+' else 'minus'} {cardinal(int(offset[1:]))}"


def _clock(text: str) -> str:
    """One end of a span of times."""
    half = None
    bare = text.strip()
    lowered = bare.lower().replace(".", "").replace(" ", "")
    if lowered.endswith(("am", "pm")):
        half, lowered = lowered[-2:], lowered[:-2]
    hour, _, minute = lowered.partition(":")
    if not half and not minute:
        return cardinal(int(hour))
    return time(int(hour), int(minute) if minute else None, None, half)


def _named(text: str) -> str:
    """One end of a span that may be a word."""
    return text if text.isalpha() else _clock(text)


def _span(match: Any) -> str:
    return f"{_clock(match['first'])} to {_clock(match['last'])}{_stop(match)}{_zone(match)}"


def _military(match: Any) -> str:
    hour, minute = int(match["hour"]), int(match["minute"])
    lead = f"zero {cardinal(hour)}" if hour < 10 else cardinal(hour)
    return f"{lead} {'hundred' if not minute else two_digits(minute)} hours"


def _lap(match: Any) -> str:
    """Minutes, seconds and hundredths: a result, not a time of day."""
    hours, minutes, seconds = match["hours"], int(match["minutes"]), match["seconds"]
    words = f"{cardinal(int(hours))} {'hour' if int(hours) == 1 else 'hours'} " if hours else ""
    words += f"{cardinal(minutes)} minute{'s' if minutes != 1 else ''} "
    whole, _, part = seconds.partition(".")
    return f"{words}{number(f'{int(whole)}.{part}')} seconds"


_END_OF_HALF = r"(?![\p{L}\p{N}])"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "span from or to noon",
        rf"""{START}(?:(?P<first>noon|midnight){DASH}(?P<last>\d{{1,2}}(?::[0-5]\d)?
        (?:\ ?{HALF})?){_END_OF_HALF}
        |(?P<first>\d{{1,2}}(?::[0-5]\d)?(?:\ ?{HALF})?){DASH}(?P<last>noon|midnight){END})""",
        lambda match: " to ".join(_named(match[end]) for end in ("first", "last")) + _stop(match),
        ignore_case=True,
    ),
    digit_rule(
        "span of clock times",
        rf"""{START}(?:(?P<first>(?:[01]?\d|2[0-4])(?::[0-5]\d)?\ ?{HALF}){DASH}(?P<last>\d{{1,2}}
        (?::[0-5]\d)?(?:\ ?{HALF})?)
        |(?P<first>{HOUR_24}:{MINUTE}){DASH}(?P<last>{HOUR_24}:{MINUTE}(?:\ ?{HALF})?)
        |(?P<first>(?:1[0-2]|\d)(?::[0-5]\d)?){DASH}(?P<last>(?:1[0-2]|\d)(?::[0-5]\d)?\ ?{HALF}))
        {_END_OF_HALF}(?!:\d)(?:\ {ZONE}{END})?""",
        _span,
    ),
    digit_rule(
        "time of a race",
        rf"{START}(?:(?P<hours>\d{{1,2}}):)?(?P<minutes>\d{{1,2}}):(?P<seconds>[0-5]\d\.\d{{1,3}}){END}",
        _lap,
    ),
    digit_rule(
        "clock time",
        rf"""{START}(?<!\d[:.]|[$€£])(?P<hour>{HOUR_24}):(?P<minute>{MINUTE})(?::(?P<second>{MINUTE}))?
        (?!\.?\d|:\d)
        (?:(?:\ ?(?P<half>{HALF}){_END_OF_HALF}|{END})(?:\ {ZONE}{END})?)(?P<behind>(?=\ (?:o'clock|noon
        |midnight)\b))?""",
        _time,
    ),
    digit_rule(
        "hour and half of the day",
        rf"""{START}(?<!\d[:.]|[$€£])(?P<hour>\d{{1,2}})(?:[.](?P<minute>{MINUTE}))?(?P<second>(?!))?\ ?
        (?P<half>{HALF}){_END_OF_HALF}
        (?:\ {ZONE}{END})?(?P<behind>(?!))?""",
        _time,
    ),
    digit_rule(
        "clock time with a point",
        r"""(?<=\b(?:at|until|till|by)\ )(?P<hour>1\d|2[0-3])\.(?P<minute>[0-5]\d)(?P<second>(?!))?
        (?P<half>
        (?!))?(?P<zone>(?!))?(?P<offset>(?!))?(?P<behind>(?!))?(?=[,;!?]?(?:\ (?:on|sharp)\b|\.?$))""",
        _time,
    ),
    digit_rule(
        "time with h",
        rf"""{START}(?P<hour>[01]?\d|2[0-4])h(?P<minute>[0-5]\d)(?P<second>(?!))?(?P<half>(?!))?(?P<zone>
        (?!))?
        (?P<offset>(?!))?(?P<behind>(?!))?{END}""",
        _time,
    ),
    digit_rule(
        "military time",
        rf"{START}(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)\ (?:hrs|hours|h){END}",
        _military,
    ),
    rule(
        "half of the day",
        rf"""(?<=\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirty|fifteen
        |forty[- ]five)\ )(?P<half>[ap]\.m\.|[ap]m){_END_OF_HALF}""",
        lambda match: f"{match['half'].replace('.', '').upper()}{_stop(match)}",
    ),
)
