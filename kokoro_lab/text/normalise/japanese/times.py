"""Clock times, durations in letters, and two numbers with a colon that are no time."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.japanese.numbers import cardinal, digits, number
from kokoro_lab.text.normalise.japanese.written import (
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    PLAIN,
    START,
    either_width,
)
from kokoro_lab.text.normalise.rules import Rule

LAST_HOUR = 29
"""Broadcasters count on after midnight: 25:30 is half past one of the next morning."""

_HALF = r"(?:[AaPp]\.?[Mm]\.?)"
_RATIO_AROUND = r"(?:比|割合|アスペクト)"


def time(hour: int, minute: int | None, second: int | None, half: str | None) -> str:
    """Words for a clock time: 午後二時三十分. A full hour has no minutes unless it has seconds."""
    said = {"am": "午前", "pm": "午後", None: ""}[half] + f"{cardinal(hour)}時"
    if minute or second:
        said += f"{cardinal(minute or 0)}分"
    return f"{said}{cardinal(second)}秒" if second else said


def _clock(match: Any) -> str | None:
    hour, minute = int(match["hour"]), int(match["minute"] or 0)
    second = int(match["second"]) if match["second"] else None
    half = match["before"] or match["behind"]
    if hour > (12 if half else LAST_HOUR):
        return None
    said = time(hour, minute, second, f"{half[0].lower()}m" if half else None)
    return (
        f"{said.removesuffix('秒')}点{digits(match['decimals'])}秒" if second and match["decimals"] else said
    )


def _duration(match: Any) -> str | None:
    said = "".join(
        f"{number(match[name])}{unit}"
        for name, unit in (("hours", "時間"), ("minutes", "分"), ("seconds", "秒"))
        if match[name]
    )
    return said or None


def _ratio(match: Any) -> str:
    return "対".join(number(part) for part in match.group().replace(" ", "").split(":"))


RULES: tuple[Rule, ...] = (
    either_width("hundredths of a second", r"(?<=\d秒)\d\d(?!\d)", lambda match: digits(match.group())),
    either_width(
        "minutes and seconds by their ticks",
        rf"{START}(?<minutes>\d{{1,2}})['′](?<seconds>[0-5]\d)[\"″](?<hours>)",
        _duration,
    ),
    either_width(
        "aspect ratio",
        rf"(?<={_RATIO_AROUND}.{{0,3}}){START}\d+:\d+(?![\d:])|{START}\d+:\d+(?=の?{_RATIO_AROUND})",
        _ratio,
    ),
    either_width(
        "clock time",
        rf"""{START}(?<![:])(?:{NO_LATIN_BEFORE}(?<before>{_HALF})\s?)?(?<hour>\d{{1,2}}):(?<minute>[0-5]\d)
            (?::(?<second>[0-5]\d)(?:\.(?<decimals>\d+))?)?(?![\d:])(?:\s?(?<behind>{_HALF}){NO_LATIN_AFTER})?""",
        _clock,
    ),
    either_width(
        "hour of a half day",
        rf"""{NO_LATIN_BEFORE}(?<before>{_HALF})\s?(?<hour>\d{{1,2}})(?<minute>)(?<second>)(?<behind>)(?![\d:.,])時?
            |{START}(?<hour>\d{{1,2}})\s?(?<behind>{_HALF}){NO_LATIN_AFTER}""",
        _clock,
    ),
    either_width(
        "duration",
        rf"""{START}(?:(?<hours>{PLAIN})\s?(?:hrs?|h)\s?(?<minutes>\d+)\s?(?:mins?|m)
            |(?<hours>{PLAIN})\s?(?:hours?|hrs?|h)|(?<minutes>{PLAIN})\s?(?:minutes?|mins?)
            |(?<seconds>{PLAIN})\s?(?:seconds?|secs?|s)){NO_LATIN_AFTER}(?![/\d])""",
        _duration,
    ),
    either_width("ratio", rf"{START}(?<!:){PLAIN}(?:\s?:\s?{PLAIN})+(?![\d:])", _ratio),
)
