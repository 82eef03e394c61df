"""Signs of arithmetic, and all other signs with a Spanish name."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any
from unicodedata import digit

from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.normalise.spanish.numerals import cardinal
from kokoro_lab.text.tables import any_of, names

_OWN, _GREEK, _OTHERS = (
    names(__package__)[kind] for kind in ("sign in a rule of its own", "Greek letter", "sign")
)
_NAMES = {**_OWN, **_GREEK, **_OTHERS}
_OPENING, _CLOSING = frozenset("(“\"'¿¡["), frozenset(".,;:)”\"'?!]")
_EACH = {
    "día": "al",
    "semana": "a la",
    "mes": "al",
    "año": "al",
    "noche": "por",
    "hora": "por",
    "persona": "por",
}
_POWERS = {"2": "al cuadrado", "3": "al cubo"}


def _named(match: Any) -> str:
    return _apart(match, _NAMES[match["sign"]])


def _minus(match: Any) -> str | None:
    """The word for a minus. A hyphen between two words is no minus, unless the text has a sum in it."""
    spaced = match.string[match.start() - 1].isspace() and match.string[match.end()].isspace()
    return _apart(match, "menos") if spaced else None


def _power(match: Any) -> str:
    exponent = "".join("-" if each == "⁻" else str(digit(each)) for each in match.group())
    if not exponent.lstrip("-").isdecimal() or exponent.rfind("-") > 0:
        return _apart(match, "elevado a menos")
    return _apart(match, _POWERS.get(exponent) or f"elevado a {cardinal(int(exponent))}")


def _apart(match: Any, said: str) -> str:
    """`said`, with a space where it would touch a sign or a bracket. Beside letters and digits, `apply` adds
    spaces."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    return _space(before, _OPENING) + said + _space(after, _CLOSING | _NAMES.keys())


def _space(beside: str, close: AbstractSet[str]) -> str:
    """A space; but empty if there is no neighbouring character `beside`, or if that is white space, a letter,
    a digit, or one of `close`."""
    return "" if not beside or beside.isspace() or beside.isalnum() or beside in close else " "


RULES: tuple[Rule, ...] = (
    Rule("minus", r"(?<=[\p{L})²³\d][ ]?)[-–](?=[ ]?[\d\p{L}(²³]+[ ]?[-+=<>≤≥≈])", _minus, wakes="-–"),
    Rule("compound sign", r"(?<=[\w\)][ ]?)(?P<sign><=|>=|!=|==)(?=[ ]?[\w(])", _named, wakes="<=>"),
    Rule("times", r"(?<=[\d)][ ]?)(?P<sign>[*·])(?=[ ]?[\d(])", _named, wakes="*·"),
    digit_rule("times, by an x", r"(?<=\d[ ]?|\d[ ]?\p{Ll}{1,2}[ ])[xX](?=[ ]?\d)", lambda _: "por"),
    digit_rule("factorial", r"(?<=\d)!(?=[ ]?[=+×÷/*])", lambda _: " factorial", wakes="!"),
    Rule("raised to", r"(?<=[\w)])(?P<sign>\^)(?=[\w(-])", _named, wakes="^"),
    Rule("about", r"(?<!\w)(?P<sign>~)(?=[ ]?\d)", _named, wakes="~"),
    Rule("number sign", r"(?<!\w)\#(?=[ ]?\d)", lambda _: "número", wakes="#"),
    Rule("power", r"[⁰¹²³⁴-⁹⁻]+", _power, wakes="⁰¹²³⁴⁵⁶⁷⁸⁹⁻"),
    Rule(
        "Greek letter",
        rf"(?<!\p{{L}})(?P<sign>[{''.join(_GREEK)}])(?!\p{{L}})",
        _named,
        wakes="".join(_GREEK),
    ),
    Rule("sign alone", r"(?<![^\s])(?P<sign>[_^|\\~])(?![^\s])", _named, wakes="\\^_|~"),
    Rule(
        "sign before a number",
        r"(?<![\w)]|[\w)][ ])[<>](?=[ ]?\d)",
        lambda match: "menos de" if match.group() == "<" else "más de",
        wakes="<>",
    ),
    Rule("sign", rf"(?P<sign>[{''.join(_OTHERS)}])", _named, wakes="".join(_OTHERS)),
    Rule(
        "scale behind a number",
        r"(?<=\d[ ]?)(?:(?P<m>M(?=[ ]de[ ])|mill\.(?=[ ]))|k(?=[ ]\p{Ll}{3,}s(?!\w)))",
        lambda match: "millones" if match["m"] else "mil",
        wakes="Mmk",
    ),
    Rule(
        "so many in each",
        rf"(?<=\d[ ](?:[$€£][ ])?\p{{Ll}}+)/(?=(?P<each>{any_of(_EACH)})(?!\w))",
        lambda match: _EACH[match["each"]],
        wakes="/",
    ),
    Rule("either or", r"(?<=\p{L})/(?=\p{L})", lambda _: " ", wakes="/"),
)
