"""Names made of letters and digits: versions, models, codes."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import cardinal, digits, in_pairs, number
from kokoro_lab.text.normalise.english.patterns import END, START
from kokoro_lab.text.normalise.rules import Rule, digit_rule


def serial(text: str) -> str:
    """`B-52` is "B fifty two", `A320` "A three twenty", `3D` "three D"."""
    words = []
    for piece in regex.findall(r"\p{L}+|\d+(?:\.\d+)?", text):
        if piece[0].isdecimal():
            words.append(_number(piece))
        else:
            words.append(piece)
    return " ".join(words)


def _spelt(match: Any) -> str:
    """Letters and digits of a code, as one would dictate it."""
    return serial(match.group())


def _number(piece: str) -> str:
    if "." in piece:
        return number(piece)
    if len(piece) <= 2:
        return digits(piece) if piece[0] == "0" else cardinal(int(piece))
    if len(piece) == 3 and piece.endswith("00"):
        return cardinal(int(piece))
    return in_pairs(piece)


def _version(match: Any) -> str:
    lead = "version " if match["v"] else ""
    return (
        lead
        + " point ".join(
            digits(p) if len(p) > 1 and p[0] == "0" else cardinal(int(p)) for p in match["number"].split(".")
        )
        + _tail(match)
    )


def _tail(match: Any) -> str:
    tail = match.groupdict().get("tail")
    return f" {serial(tail.lstrip('-+.'))}" if tail else ""


def _mixed(text: str) -> str:
    """A word glued to a number, or a code of letters and digits in turn."""
    runs = regex.findall(r"\p{L}+|\d+|-", text)
    words = []
    for run in runs:
        if run == "-":
            continue
        if run.isdecimal():
            words.append(_number(run))
        else:
            words.append(run)
    return " ".join(words)


RULES: tuple[Rule, ...] = (
    digit_rule(
        "version",
        rf"""{START}(?P<v>[vV]\.?\ ?(?=\d))?(?<=[vV]\.?\ ?)(?P<number>\d+(?:\.\d+)*)(?P<tail>-?(?:rc|alpha
        |beta|a
        |b|dev|post)\.?\d*)?{END}(?!\.\d)""",
        _version,
    ),
    digit_rule(
        "long version",
        rf"""{START}(?P<v>(?!))?(?P<number>\d+(?:\.\d+){{2,}})(?P<tail>-?(?:rc|alpha|beta|a|b|dev
        |post)\.?\d*)?{END}(?!\.\d)""",
        _version,
    ),
    digit_rule(
        "version of a program",
        r"""(?<=\b(?:Python|Java|Node|version|Version|Ubuntu|iOS|Android|macOS|Windows|Linux|kernel|Firefox
        |Chrome|PyTorch|TensorFlow|CUDA|Debian|Fedora|release|Release|Ruby|Go|Rust|PHP|Bluetooth|USB|HTML
        |HTTP|Wi-Fi)\ )(?P<v>(?!))?(?P<number>\d+\.\d+)(?P<tail>(?!))?(?![\p{L}\p{N}]|\.\d)""",
        _version,
    ),
    digit_rule(
        "letters and a number",
        rf"""(?<![\p{{L}}\p{{N}}_.])(?:\p{{Lu}}{{1,4}}|[a-z]|\p{{Lu}}\p{{Ll}}+|covid|mp)-?\d{{1,4}}
        (?:-?\p{{Lu}}{{1,2}})?(?:-\d{{1,3}})?{END}(?![.,]\d)""",
        _spelt,
    ),
    digit_rule(
        "number and letters", rf"(?<![\p{{L}}\p{{N}}_.,])\d{{1,4}}-?\p{{Lu}}{{1,3}}\d{{0,3}}{END}", _spelt
    ),
    digit_rule(
        "mixed code",
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?=[\p{{L}}-]*\d)(?=[\d-]*\p{{L}})[\p{{L}}\p{{N}}]+
        (?:-[\p{{L}}\p{{N}}]+)*{END}(?![.,]\d)""",
        lambda match: _mixed(match.group()),
    ),
)
