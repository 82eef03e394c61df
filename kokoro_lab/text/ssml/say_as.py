"""`say-as`: reads a text as a number, date, time or other named kind.

The words are those of the language's normalisation; a text that could mean something else is refused here.
"""

from __future__ import annotations

import re

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import LANGUAGES
from kokoro_lab.text.normalise import Reader, name_of, normalise, reader
from kokoro_lab.text.normalise.rules import in_calendar
from kokoro_lab.text.tables import any_of, entries

MAX_DIGITS = 18
"""A number with more digits is read digit by digit in every language."""
DATE_FORMATS = ("mdy", "dmy", "ymd", "md", "dm", "ym", "my", "y", "m", "d")
TIME_FORMATS = ("hms12", "hms24")
KINDS = ("cardinal", "ordinal", "date", "time", "characters", "telephone", "unit")
FORMATS = {"date": DATE_FORMATS, "time": TIME_FORMATS}

_TELEPHONE = re.compile(r"\+?[\d\s().\-/]*\d[\d\s().\-/]*", re.ASCII)
_WORD_OR_SIGN = re.compile(r"[^\W\d_]+|[^\w\s.,/+-]")
_TIME = re.compile(r"(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?(?:\s?([ap])\.?m\.?)?", re.ASCII | re.IGNORECASE)


class Unreadable(ValueError):
    """The text is not of the named kind. `allowed` describes texts that are."""

    def __init__(self, message: str, allowed: str) -> None:
        super().__init__(message)
        self.allowed = allowed


def said(text: str, kind: str, form: str | None, language: str) -> str:
    """The words for what is between the tags.

    Parameters
    ----------
    text : str
    kind : str
        One of `KINDS`.
    form : str or None
        One of the `FORMATS` of its kind.
    language : str
        A canonical tag.

    Raises
    ------
    Unreadable
        The text does not fit its kind or format, is impossible (30 February), or `language` has no number
        words here.
    """
    speaker = reader(language)
    if speaker is None:
        raise Unreadable(f"there is nothing here that reads a {kind} in {language}", "words")
    if kind == "cardinal":
        return speaker.cardinal(_integer(text, language))
    if kind == "ordinal":
        return speaker.ordinal(_rank(text, language))
    if kind == "date":
        return speaker.date(*_date(text, form))
    if kind == "characters":
        return _characters(text, speaker, language)
    if kind == "telephone":
        return _said_telephone(text, speaker, language)
    if kind == "unit":
        return _measure(text, language)
    return _said_time(text, form, speaker)


def _characters(text: str, speaker: Reader, language: str) -> str:
    """Letters, digits and signs by their names; white space between them is left out."""
    found = []
    for character in "".join(text.split()):
        digit = character.isdecimal()
        name = speaker.cardinal(int(character)) if digit else name_of(character, language)
        if name is None:
            raise Unreadable(
                f"there is no name for {character!r} in {language}", "letters, digits and signs with a name"
            )
        found.append(name)
    if not found:
        raise Unreadable("there is none", "letters, digits and signs with a name")
    return " ".join(found)


def _said_telephone(text: str, speaker: Reader, language: str) -> str:
    """A telephone number by the language's own rules if they recognise it, else digit by digit, group by
    group."""
    for rule in speaker.RULES:
        match = next(rule.matches(text), None) if "telephone" in rule.name else None
        if match and match.span() == (0, len(text)) and (words := rule.say(match)):
            return words
    if not _TELEPHONE.fullmatch(text):
        raise Unreadable("this is no telephone number", "digits, with + ( ) - . / and spaces")
    groups = (" ".join(speaker.cardinal(int(digit)) for digit in run) for run in re.findall(r"\d+", text))
    plus = f"{name_of('+', language)} " if text[0] == "+" else ""
    return plus + ", ".join(groups)


def _measure(text: str, language: str) -> str:
    """A number and its unit in words. Raises `Unreadable` if the language's rules do not know the unit."""
    words = normalise(AlignedText.of(text), language).text
    units = set(_WORD_OR_SIGN.findall(text))
    if not units or not any(map(str.isdecimal, text)) or units & set(_WORD_OR_SIGN.findall(words)):
        raise Unreadable(f"this is no number with a unit that is known in {language}", "such as 12 km/h")
    return words


def _integer(text: str, language: str) -> int:
    grouper = re.escape(LANGUAGES[language]["thousands"])
    match = re.fullmatch(
        rf"([+-]?)(\d+|\d{{1,3}}(?:([ \u00a0\u202f{grouper}])\d{{3}})(?:\3\d{{3}})*)", text, re.ASCII
    )
    digits = re.sub(r"\D", "", text)
    if not match or len(digits) > MAX_DIGITS:
        raise Unreadable("this is no whole number", f"a whole number of up to {MAX_DIGITS} digits")
    return -int(digits) if match[1] == "-" else int(digits)


def _rank(text: str, language: str) -> int:
    endings = any_of(entries(LANGUAGES[language]["ordinal_endings"]))
    match = re.fullmatch(rf"(\d{{1,{MAX_DIGITS}}})\.?{endings}?", text, re.ASCII | re.IGNORECASE)
    if not match:
        raise Unreadable("this is no rank", f"digits, up to {MAX_DIGITS}, with or without an ending")
    return int(match[1])


def _date(text: str, form: str | None) -> tuple[int | None, int | None, int | None]:
    """Year, month and day, as far as they are given."""
    if form is None:
        if not re.fullmatch(r"\d{4}-\d{1,2}-\d{1,2}", text, re.ASCII):
            raise Unreadable("without a format, a date is read as year-month-day", "such as 2024-03-05")
        form = "ymd"
    example = "-".join({"y": "2024", "m": "03", "d": "05"}[part] for part in form)
    parts = _date_parts(text, form)
    if parts is None:
        raise Unreadable(f"this is no date of the format {form}", f"such as {example}")
    year, month, day = (parts.get(part) for part in "ymd")
    if not in_calendar(year, month, day):
        raise Unreadable("there is no such date", f"such as {example}")
    return year, month, day


def _date_parts(text: str, form: str) -> dict[str, int] | None:
    mark = next((each for each in "-/." if each in text), "")
    if not mark and len(form) == 2:
        return None
    least = 1 if mark or len(form) == 1 else 2  # 20240305
    digits = {"y": r"\d{4}", "m": rf"\d{{{least},2}}", "d": rf"\d{{{least},2}}"}
    match = re.fullmatch(re.escape(mark).join(f"(?P<{part}>{digits[part]})" for part in form), text, re.ASCII)
    return {part: int(written) for part, written in match.groupdict().items()} if match else None


def _said_time(text: str, form: str | None, speaker: Reader) -> str:
    match = _TIME.fullmatch(text)
    half = match[4].lower() + "m" if match and match[4] else None
    form = form or ("hms12" if half else "hms24")
    allowed = "such as 3:05pm or 3:05:30" if form == "hms12" else "such as 15:05 or 15:05:30"
    if not match or (match[2] is None and half is None) or (form == "hms24" and half):
        raise Unreadable(f"this is no time of the format {form}", allowed)
    hour, minute, second = (None if part is None else int(part) for part in match.groups()[:3])
    assert hour is not None, "the pattern begins with it"
    hours = range(1, 13) if form == "hms12" else range(24)
    if hour not in hours or (minute or 0) > 59 or (second or 0) > 59:
        raise Unreadable("there is no such time", allowed)
    return speaker.time(hour, minute, second, half)
