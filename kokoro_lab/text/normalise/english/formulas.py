"""Formulas: sums, powers, roots, comparisons, numbers times a power of ten; and signs by themselves."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.identifiers import serial
from kokoro_lab.text.normalise.english.numerals import number
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    LOOSE_START,
    NAMES,
    START,
    any_word,
)
from kokoro_lab.text.normalise.rules import DIGITS, Rule, digit_rule
from kokoro_lab.text.tables import any_of

SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉"
_INDICES = str.maketrans(SUBSCRIPT, "0123456789")
_EXPONENTS = str.maketrans(SUPERSCRIPT + "⁻", "0123456789-", "⁺")
OPERATORS, GREEK, SIGNS = (NAMES[kind] for kind in ("operator", "Greek letter", "sign"))
"""Names of signs. A sign that stands by itself is said by its name; a sign without a name marks a list or a
note."""


def power(text: str) -> str:
    """The words for an exponent after its base."""
    return {"2": "squared", "3": "cubed"}.get(text) or f"to the power of {number(text)}"


def _formula(match: Any) -> str | None:
    """The words for a formula: for its numbers, letters, powers and operators, in their order."""
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
            words.append("A" if token == "a" else token)  # a letter, not the article
    return " ".join(words)


def _sum(match: Any) -> str | None:
    """The words for a sum without a result. None if two numbers around a dash are a range, since the second
    is larger, or if there are only letters, which are a name."""
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


def _ion(match: Any) -> str:
    """`SO4^2-`: its letters and numbers, then its charge."""
    formula = match["formula"].translate(_INDICES)
    charge = match["charge"].replace("⁺", "+").translate(_EXPONENTS)
    said = "plus" if charge[-1] == "+" else "minus"
    return " ".join((serial(formula), *map(number, charge[:-1]), said))


def _scientific(match: Any) -> str:
    exponent = match["exponent"].translate(_EXPONENTS).replace("−", "-").lstrip("+")
    return f"{number(match['number'])} times ten to the power of {number(exponent)}"


_UP = r"\^(?:[-−]?\w+|\{[^{}]*\}|\([^()]*\))"
"""A pattern for a power. A sign after it belongs to the next term."""
_TERM = rf"""(?:√?\(?(?:\d+[abckn-rt-z](?![\p{{L}}\d])|{DECIMAL}
|\b[a-zA-Z]\b|\b[a-zA-Z]{{1,2}}(?=[²³^])|[α-ωΑ-ΩΔπ])
(?:[{SUPERSCRIPT}]+|{_UP})?%?\)?)"""
_STRONG = r"(?:==|!=|<=|>=|[=≠<>≤≥≈×÷±∈∝≡*^])"
_WEAK = r"(?:[+−–/-])"
_TOKENS = regex.compile(
    rf"==|!=|<=|>=|{_UP}"
    r"|[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+|\p{L}+|√|[-+−–×*·/÷=≠<>≤≥≈±∈→∝≡%()]"
)

_WIDE_MARKS = dict(zip("，、。！？：；", ",,.!?:;", strict=True))

RULES: tuple[Rule, ...] = (
    Rule(
        "ion",
        rf"""(?<![\p{{L}}\p{{N}}_])(?P<formula>(?:\p{{Lu}}\p{{Ll}}?[\d₀-₉]*){{1,5}})(?:
        \^\{{?(?P<charge>\d?[-+−])\}}?|(?P<charge>[²³⁴]?[⁺⁻])
        |(?<=(?<!\p{{L}}){any_word("ion written with its minus")})(?P<charge>[-−]))
        (?![\p{{L}}\p{{N}}_(-]|\ \d|\ \p{{Lu}}\b)""",
        _ion,
        wakes="-+−⁺⁻",
    ),
    digit_rule(
        "scientific number",
        rf"""{START}(?P<number>\d+(?:\.\d+)?)(?:\ ?[×x*]\ ?10(?:\^(?P<exponent>[-−+]?\d+)|
        (?P<exponent>[⁺⁻]?[{SUPERSCRIPT}]+))|[eE](?P<exponent>[-−+]?\d+)){END}""",
        _scientific,
    ),
    Rule(
        "formula",
        rf"""(?<![\p{{L}}\p{{N}}_.]|\p{{L}}\(){_TERM}(?:\ ?(?:{_STRONG}|(?<=\ ){_WEAK}(?=\ )|[+/−]|
        (?<=[\p{{N}}\p{{L}})]){_WEAK})\ ?[-−]?{_TERM})*\ ?{_STRONG}\ ?[-−]?{_TERM}
        (?:\ ?(?:{_STRONG}|{_WEAK})\ ?{_TERM})*(?![\p{{L}}\p{{N}}_]|\.\d)""",
        _formula,
        wakes="*<=>^±×÷∈∝≈≠≡≤≥",
    ),
    Rule(
        "sum",
        rf"""(?<![\p{{L}}\p{{N}}_.,/-]){_TERM}(?:\ \+\ |\+|\ [-−–]\ (?=\d)|(?<={_UP}|[²³])\ ?[-−–]\ ?){_TERM}
        (?:(?:\ ?[+−–-]\ ?){_TERM})*(?![\p{{L}}\p{{N}}_]|\.\d|-)""",
        _sum,
        wakes=DIGITS + "+",
        also="+-−–",
    ),
    Rule(
        "power",
        rf"""{START}(?P<base>\d+(?:\.\d+)?|\p{{L}}{{1,3}})(?P<power>[⁺⁻]?[{SUPERSCRIPT}]+
        |\^(?:-?\d+|\p{{L}}\b|\{{[^}}]+\}}))""",
        _exponent,
        wakes=f"^{SUPERSCRIPT}",
    ),
    Rule("subscript", rf"(?P<base>\p{{L}})(?P<index>[{SUBSCRIPT}]+)", _subscript, wakes=SUBSCRIPT),
    Rule(
        "square root",
        rf"√\ ?(?P<number>{DECIMAL})",
        lambda match: f"the square root of {number(match['number'])}",
        wakes="√",
    ),
)

SIGNS_ALONE: tuple[Rule, ...] = (
    Rule(
        "span of letters",
        r"(?<![\p{L}\p{N}_-])(?P<first>A)\ ?[-–]\ ?(?P<last>[C-Z])(?![\p{L}\p{N}_-])",
        lambda match: f"{match['first']} to {match['last']}",
        wakes="-–",
    ),
    Rule(
        "C plus plus",
        rf"{START}(?P<letter>[A-Za-z])(?:(?P<plus>\+\+)|[#♯]){LOOSE_END}",
        lambda m: f"{m['letter'].upper()} {'plus plus' if m['plus'] else 'sharp'}",
        wakes="#+♯",
    ),
    Rule(
        "letters joined by and",
        rf"{LOOSE_START}(?P<first>\p{{Lu}}{{1,3}})&(?P<second>\p{{Lu}}{{1,3}}){LOOSE_END}",
        lambda m: f"{' '.join(m['first'])} and {' '.join(m['second'])}",
        wakes="&",
    ),
    Rule(
        "operator of a program",
        rf"(?<=\s|^|[\p{{L}}\p{{N}})]){any_of(NAMES['operator of a program'])}(?=\s|$|[\p{{L}}\p{{N}}(])",
        lambda m: NAMES["operator of a program"][m.group()],
        wakes="&+:<=>|",
    ),
    Rule(
        "letter at an end",
        r"(?<=(?<![\p{L}\p{N}.&°-]|\d\ )\p{Lu})\.(?=[\"'”)]*$)",
        lambda m: " .",
        wakes=".",
    ),
    Rule(
        "letter by its name",
        r"""(?<=\b[Tt]he\ (?:letter|vowel)\ ["“']?)a
        (?=["”'.,;:!?)]|$|\ (?:is|was|and|or|in|at|has|as|on|appears|comes)\b)""",
        lambda m: "A",
    ),
    Rule("dash", r"(?<=\s)-(?=\s)", lambda m: "—", wakes="-"),
    Rule("repeat of a pattern", r"\b[Rr]ep\.?(?=\ from\ \*)", lambda m: "repeat", wakes="*"),
    Rule("multiplied", r"(?<=\p{N}\ )\*(?=\ \p{N})", lambda m: "times", wakes="*"),
    Rule(
        "sign between two",
        r"(?<=\s)[<>|*](?=\s)",
        lambda m: NAMES["sign between two"][m.group()],
        wakes="<>|*",
    ),
    Rule(
        "either or",
        r"(?<=\p{L})\ ?/\ ?(?=\p{L})|(?<=\p{L})/(?=\p{N})|(?<=\p{L}\d{1,4})/(?=[\p{L}\p{N}])",
        lambda m: " ",
        wakes="/",
    ),
    Rule("stroke between prices", r"(?<=\d)\ /(?=\ \p{Lu}{0,3}[$€£]\d)", lambda m: ",", wakes="/"),
    Rule(
        "grade with its minus",
        r"""(?<=\b(?:[Aa]n?|[Gg]ot|[Gg]rades?|[Mm]ark|[Ee]arned|[Rr]ated|[Ii]s|was|[Tt]ype|[Bb]lood)\ )
        (?P<letter>[A-DO]|AB)[-−](?=[\s.,;!?)]|$)""",
        lambda m: f"{m['letter']} minus",
        wakes="-−",
    ),
    Rule(
        "Greek letter",
        rf"(?<![\p{{L}}])(?P<letter>[{''.join(GREEK)}])(?![\p{{Greek}}])",
        lambda m: GREEK[m["letter"]],
        wakes="".join(GREEK),
    ),
    Rule(
        "stars of a rating",
        r"(?<![★☆])(?:(?P<full>★{2,}|★(?=☆))(?P<empty>☆*)|(?<=\d\ ?)★)(?![★☆])",
        lambda m: (
            (number(str(len(m["full"]))) if m["full"] else "")
            + (f" out of {number(str(len(m.group())))}" if m["empty"] else "")
            + " stars"
        ).lstrip(),
        wakes="★",
    ),
    Rule("sign", rf"[{''.join(SIGNS)}]", lambda m: SIGNS[m.group()], wakes="".join(SIGNS)),
    Rule("hash", r"\#(?=\s|$)", lambda m: "hash", wakes="#"),
    Rule(
        "mark beside Chinese or Japanese",
        r"[，、。！？：；]",
        lambda m: _WIDE_MARKS[m.group()],
        wakes="，、。！？：；",
    ),
)
