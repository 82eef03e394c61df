"""Numbers that name a line, a card or an account: read digit by digit, in the groups they are written in."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import DIGITS, digits
from kokoro_lab.text.normalise.english.patterns import END, START
from kokoro_lab.text.normalise.rules import Rule, digit_rule

_SEPARATORS = r"[-.\ ]"


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


RULES: tuple[Rule, ...] = (
    digit_rule(
        "telephone number",
        rf"""(?<![\p{{L}}\p{{N}}_.,+/-])(?:(?P<country>\+\d{{1,3}}|1(?={_SEPARATORS}\(?\d{{3}}))
        (?:{_SEPARATORS}|(?=\()|(?<=\+\d)(?=\d{{10}}\b)))?
        (?P<rest>\(\d{{2,5}}\)\ ?\d{{3,4}}(?:{_SEPARATORS}\d{{3,4}})*
        |\d{{3}}[-.\ ]\d{{3}}[-.\ ]\d{{4}}
        |\d{{3}}-\d{{4}}(?!-)
        |[2-9]\d{{2}}-(?:\p{{Lu}}{{4,7}}|\p{{Lu}}{{3}}-\p{{Lu}}{{4}}|\p{{Lu}}+-\p{{Lu}}+(?:-\p{{Lu}}+)*
        |\d{{3}}-\p{{Lu}}{{4}})
        |(?<=\+\d{{1,3}}{_SEPARATORS}?)\(?\d{{1,5}}\)?(?:{_SEPARATORS}\d{{2,8}}){{1,5}}
        |0\d{{2,4}}[\ -]\d{{3,4}}(?:[\ -]\d{{3,4}})?
        |(?<=\+\d)\d{{10}}
        )(?:,?\ ?(?:ext\.?|extension|x)\ ?(?P<extension>\d{{1,5}}))?{END}""",
        _phone,
        ignore_case=False,
    ),
    digit_rule(
        "emergency number",
        r"""(?<=\b(?i:call|calls|called|calling|dial|dialed|dialled|dialing|ring|phone)\ (?:the\ )?)
        (?P<number>\d{3})(?![\p{L}\p{N}-]|[.,]\d)""",
        _digits,
    ),
    digit_rule(
        "emergency call",
        r"(?<![\p{L}\p{N}])(?P<number>911|999)(?=\ (?:call|operator|dispatcher|emergency))",
        _digits,
    ),
    digit_rule("social security number", rf"{START}(?P<number>\d{{3}}-\d{{2}}-\d{{4}}){END}(?!-)", _digits),
    digit_rule(
        "card number", rf"{START}(?P<number>\d{{4}}[-\ ]\d{{4}}[-\ ]\d{{4}}[-\ ]\d{{1,4}}){END}", _digits
    ),
    digit_rule("ISBN", rf"(?<=\bISBN:?\ (?:-13:?\ )?)(?P<number>\d[\d-]{{8,15}}\d){END}", _digits),
    digit_rule(
        "code in digits",
        r"""(?<=\b(?i:pin|pin\ code|code|passcode|password|zip|zip\ code|postcode|ssn|id|account
        |account\ number
        |serial\ number|order\ number|tracking\ number|confirmation\ number)(?::\ ?|[ ])
        (?:is\ |was\ |no\.\ |number[ ]|:\ )?)
        (?P<number>\d{4,}(?:-\d+)*)(?![\p{L}\p{N}-]|[.,]\d)""",
        _digits,
    ),
)
