"""Formulas: sums, powers, roots, comparisons, numbers times a power of ten; and signs by themselves."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import number
from kokoro_lab.text.normalise.english.patterns import DECIMAL, NAMES

SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉"
_EXPONENTS = str.maketrans(SUPERSCRIPT + "⁻", "0123456789-", "⁺")
OPERATORS, GREEK, SIGNS = (NAMES[kind] for kind in ("operator", "Greek letter", "sign"))
"""Names of signs. A sign that stands by itself is said by its name; a sign without a name marks a list or a
note."""


def power(text: str) -> str:
    """The words for an exponent after its base."""
    return {"2": "squared", "3": "cubed"}.get(text) or f"to the power of {number(text)}"


def _formula(match: Any) -> str | None:
    """Terms and operators in turn; a lone hyphen between two names is no formula."""
    words: list[str] = []
    tokens = _TOKENS.findall(match.group())
    for before, token, behind in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token == "x" and not (before[-1:].isdecimal() and behind[:1].isdecimal()):
            words.append(token)  # an unknown, not the sign of a product
        elif token in OPERATORS:
            divided = token == "/" and before[-1:].isdecimal() and behind[:1].isdecimal()
            words.append("divided by" if divided else OPERATORS[token])
        elif token[0] in SUPERSCRIPT:
            words.append(power(token.translate(_EXPONENTS)))
        elif token[0] == "^":
            exponent = token[1:].strip("{}()")
            words.append(power(exponent) if exponent.isdecimal() else f"to the power of {token[1:]}")
        elif token[0].isdecimal() or token[0] == ".":
            words.append(number(token))
        elif token in GREEK:
            words.append(GREEK[token])
        elif token == "√":
            words.append("the square root of")
        elif token in "()[]":
            continue
        else:
            words.append(token)
    return " ".join(words)


def _sum(match: Any) -> str | None:
    """A sum without a result. Two numbers that grow around a dash are a range, and letters alone a name."""
    text = match.group()
    if not any(c.isdecimal() for c in text):
        return None
    pair = regex.fullmatch(r"([\d.,]+) [-−–] ([\d.,]+)", text)
    if pair and float(pair[1].replace(",", "")) < float(pair[2].replace(",", "")):
        return None
    return _formula(match)


def _exponent(match: Any) -> str:
    base = match["base"]
    spoken = number(base) if base[0].isdecimal() else base
    text = match["power"]
    exponent = text[1:].strip("{}()") if text[0] == "^" else text.translate(_EXPONENTS)
    if exponent.lstrip("-").isdecimal():
        if base == "10" or exponent.startswith("-") or int(exponent) > 3:
            return f"{spoken} to the power of {number(exponent)}"
        return f"{spoken} {power(exponent)}"
    return f"{spoken} to the {exponent}"


def _subscript(match: Any) -> str:
    index = "".join(str(SUBSCRIPT.index(c)) for c in match["index"])
    return f"{match['base']} {number(index)}"


def _scientific(match: Any) -> str:
    exponent = match["exponent"].translate(_EXPONENTS).replace("−", "-").lstrip("+")
    return f"{number(match['number'])} times ten to the power of {number(exponent)}"


_TERM = rf"""(?:√?\(?(?:{DECIMAL}|\b[a-zA-Z]\b|\b[a-zA-Z]{{1,2}}(?=[²³^])|[α-ωΑ-ΩΔπ])
(?:[{SUPERSCRIPT}]+|\^[\w{{}}()-]+)?%?\)?)"""
_STRONG = r"(?:==|!=|<=|>=|[=≠<>≤≥≈×÷±∈∝≡*^])"
_WEAK = r"(?:[+−–/-])"
_TOKENS = regex.compile(
    r"""==|!=|<=|>=|\^[\w{}()-]+|[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+|\p{L}+|√
    |[-+−–×*·/÷=≠<>≤≥≈±∈→∝≡%()]"""
)

_WIDE_MARKS = dict(zip("，、。！？：；", ",,.!?:;", strict=True))


def _musical_or_plus(match: Any) -> str:
    return f"{match['letter'].upper()} {('plus plus' if match['plus'] else 'sharp')}"


def _joined_letters(match: Any) -> str:
    return f"{' '.join(match['first'])} and {' '.join(match['second'])}"


_GREEK_LETTERS, _ANY_SIGN = "".join(GREEK), "".join(SIGNS)
