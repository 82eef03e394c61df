"""English digits and letters that identify: telephone and card numbers, versions, models, codes."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import DIGITS, cardinal, digits, in_pairs, number
from kokoro_lab.text.normalise.english.patterns import WORDS, optional


def serial(text: str) -> str:
    """`B-52` is "B fifty two", `A320` "A three twenty", `3D` "three D"; letters like a word are spelt."""
    runs = regex.findall(r"\p{L}+|\d+(?:\.\d+)?", text)
    return " ".join(_number(run) if run[0].isdecimal() else _letters(run) for run in runs)


def _letters(run: str) -> str:
    return " ".join(run) if run.isupper() and run.lower() in WORDS["read as a word"] else run


def _model(match: Any) -> str:
    """`Llama-3.1-70B`: its name, its version, its size."""
    words = []
    for part in regex.findall(r"[vV]?\d+(?:\.\d+)*|\p{L}+", match.group()):
        if part[-1].isdecimal():
            number_of = part.lstrip("vV")
            words += ["version"] if number_of != part else []
            words.append(" point ".join(_number(each) for each in number_of.split(".")))
        else:
            words.append(part)
    return " ".join(words)


def _number(run: str) -> str:
    if "." in run:
        return number(run)
    if len(run) == 3 and run.endswith("00"):
        return cardinal(int(run))
    return in_pairs(run)


def _spelt(match: Any) -> str:
    """Letters and digits of a code, as one would dictate it."""
    spoken = serial(match.group())
    return spoken.replace("A ", "A-", 1) if match.start() == 0 else spoken  # no article: `A4 paper`


def _version(match: Any) -> str:
    lead = "version " if optional(match, "v") else ""
    parts = match["number"].split(".")
    spoken = " point ".join(digits(p) if len(p) > 1 and p[0] == "0" else cardinal(int(p)) for p in parts)
    tail = optional(match, "tail")
    return f"{lead}{spoken} {serial(tail)}" if tail else f"{lead}{spoken}"


def groups(text: str, *, prefixed: bool = False) -> str:
    """Digits by name, a pause between groups; 800 and its like in the second place are "eight hundred"."""
    found = regex.findall(r"\d+|\p{L}+", text)
    spoken = []
    for group in found:
        if group.isalpha():
            spoken.append(group)
        elif regex.fullmatch(r"[89]00", group) and (prefixed or len(found) > 2):
            spoken.append(f"{DIGITS[int(group[0])]} hundred")
        else:
            spoken.append(digits(group))
    return ", ".join(spoken)


def _phone(match: Any) -> str:
    country, rest, extension = match["country"], match["rest"], match["extension"]
    words = []
    if country:
        words.append(f"plus {digits(country)}" if "+" in country else digits(country))
    words.append(groups(rest, prefixed=bool(country)))
    if extension:
        words.append(f"extension {digits(extension)}")
    return ", ".join(words)


def _digits(match: Any) -> str:
    return ", ".join(digits(part) for part in regex.split(r"[-\s]", match["number"]) if part)


_SEPARATORS = r"[-.\ ]"
_TAIL = r"(?P<tail>-?(?:rc|alpha|beta|a|b|dev|post)\.?\d*)?"


def _network_standard(match: Any) -> str:
    return f"eight oh two dot {cardinal(int(match['number']))} {' '.join(match['letters'].upper())}".rstrip()
