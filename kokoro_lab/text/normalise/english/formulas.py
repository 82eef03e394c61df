"""Formulas: sums, powers, roots, comparisons, and numbers times a power of ten."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import number
from kokoro_lab.text.normalise.english.patterns import DECIMAL, END, START
from kokoro_lab.text.normalise.rules import DIGITS, Rule, digit_rule, rule

SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"
SUBSCRIPT = "₀₁₂₃₄₅₆₇₈₉"
OPERATORS = {
    "+": "plus", "-": "minus", "−": "minus", "–": "minus", "×": "times", "*": "times", "·": "times",
    "x": "times", "/": "over", "÷": "divided by", "=": "equals", "==": "equals", "≠": "is not equal to",
    "!=": "is not equal to", "<": "is less than", ">": "is greater than", "≤": "is less than or equal to",
    "<=": "is less than or equal to", "≥": "is greater than or equal to",
    ">=": "is greater than or equal to", "≈": "is approximately", "±": "plus or minus", "∈": "is in",
    "→": "to", "^": "to the power of", "%": "percent", "∝": "is proportional to", "≡": "is identical to",
}  # fmt: skip
GREEK = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "delta", "ε": "epsilon", "ζ": "zeta",
    "η": "eta", "θ": "theta", "Θ": "theta", "ι": "iota", "κ": "kappa", "λ": "lambda", "Λ": "lambda",
    "μ": "mu", "µ": "mu", "ν": "nu", "ξ": "xi", "π": "pi", "Π": "pi", "ρ": "rho", "σ": "sigma",
    "Σ": "sigma", "τ": "tau", "υ": "upsilon", "φ": "phi", "Φ": "phi", "χ": "chi", "ψ": "psi", "Ψ": "psi",
    "ω": "omega", "Ω": "omega",
}  # fmt: skip


def power(text: str) -> str:
    """What is said for an exponent behind its base."""
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
            words.append(power("".join(str(SUPERSCRIPT.index(c)) for c in token)))
        elif token[0] == "^":
            words.append(
                power(token[1:].strip("{}()"))
                if token[1:].strip("{}()").isdecimal()
                else f"to the power of {token[1:]}"
            )
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
    if text[0] in "^":
        exponent = text[1:].strip("{}()")
    else:
        exponent = "".join("-" if c == "⁻" else "" if c == "⁺" else str(SUPERSCRIPT.index(c)) for c in text)
    if exponent.lstrip("-").isdecimal():
        if base == "10" or exponent.startswith("-") or int(exponent) > 3:
            return f"{spoken} to the power of {number(exponent)}"
        return f"{spoken} {power(exponent)}"
    return f"{spoken} to the {exponent}"


def _subscript(match: Any) -> str:
    index = "".join(str(SUBSCRIPT.index(c)) for c in match["index"])
    return f"{match['base']} {number(index)}"


def _scientific(match: Any) -> str:
    exponent = match["exponent"].replace("−", "-").lstrip("+")
    return f"{number(match['number'])} times ten to the power of {number(exponent)}"


def _raised(match: Any) -> str:
    exponent = "".join(
        "-" if c == "⁻" else "" if c == "⁺" else str(SUPERSCRIPT.index(c)) for c in match["raised"]
    )
    return f"{number(match['number'])} times ten to the power of {number(exponent)}"


_TERM = rf"""(?:√?\(?(?:{DECIMAL}|\b[a-zA-Z]\b|\b[a-zA-Z]{{1,2}}(?=[²³^])|[α-ωΑ-ΩΔπ])(?:[⁰¹²³⁴⁵⁶⁷⁸⁹]+
|\^[\w{{}}()-]+)?%?\)?)"""
_STRONG = r"(?:==|!=|<=|>=|[=≠<>≤≥≈×÷±∈∝≡*^])"
_WEAK = r"(?:[+−–/-])"
_TOKENS = regex.compile(
    r"""==|!=|<=|>=|\^[\w{}()-]+|[⁰¹²³⁴⁵⁶⁷⁸⁹]+|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d*\.?\d+|\p{L}+|√
    |[-+−–×*·/÷=≠<>≤≥≈±∈→∝≡%()]"""
)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "scientific number",
        rf"""{START}(?P<number>\d+(?:\.\d+)?)(?:\ ?[×x*]\ ?10(?:\^(?P<exponent>[-−+]?\d+)|
        (?P<raised>[⁺⁻]?[{SUPERSCRIPT}]+))|[eE](?P<exponent>[-−+]?\d+)){END}""",
        lambda match: _scientific(match) if match["exponent"] else _raised(match),
    ),
    rule(
        "formula",
        rf"""(?<![\p{{L}}\p{{N}}_.]){_TERM}(?:\ ?(?:{_STRONG}|(?<=\ ){_WEAK}(?=\ )|[+/−]|
        (?<=[\p{{N}}\p{{L}})]){_WEAK})\ ?[-−]?{_TERM})*\ ?{_STRONG}\ ?[-−]?{_TERM}
        (?:\ ?(?:{_STRONG}|{_WEAK})\ ?{_TERM})*(?![\p{{L}}\p{{N}}_]|\.\d)""",
        _formula,
        wakes="*<=>^±×÷∈∝≈≠≡≤≥",
    ),
    rule(
        "sum",
        rf"""(?<![\p{{L}}\p{{N}}_.,/-]){_TERM}(?:\ \+\ |\+|\ [-−–]\ (?=\d)){_TERM}(?:
        (?:\ ?[+−–-]\ ?){_TERM})*
        (?![\p{{L}}\p{{N}}_]|\.\d|-)""",
        _sum,
        wakes=DIGITS + "+",
    ),
    rule(
        "power",
        rf"""{START}(?P<base>\d+(?:\.\d+)?|\p{{L}}{{1,3}})(?P<power>[⁺⁻]?[{SUPERSCRIPT}]+|\^(?:-?\d+
        |\p{{L}}\b
        |\{{[^}}]+\}}))""",
        _exponent,
    ),
    rule("subscript", rf"(?P<base>\p{{L}})(?P<index>[{SUBSCRIPT}]+)", _subscript),
    rule(
        "square root",
        rf"√\ ?(?P<number>{DECIMAL})",
        lambda match: f"the square root of {number(match['number'])}",
        wakes="√",
    ),
)
