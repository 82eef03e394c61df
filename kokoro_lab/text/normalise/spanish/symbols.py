"""Signs of arithmetic, and the others that have a name."""

from __future__ import annotations

from typing import Any
from unicodedata import digit

from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule
from kokoro_lab.text.normalise.spanish.words import cardinal

_BETWEEN = {
    "+": "más", "=": "igual a", "×": "por", "·": "por", "*": "por", "÷": "dividido entre", "<": "menor que",
    ">": "mayor que", "≤": "menor o igual que", "≥": "mayor o igual que", "≠": "distinto de",
    "≈": "aproximadamente igual a",
    "<=": "menor o igual que", ">=": "mayor o igual que", "!=": "distinto de", "==": "igual a",
    "±": "más menos",
    "≡": "idéntico a", "∈": "pertenece a", "∪": "unión", "∩": "intersección", "∝": "proporcional a",
}  # fmt: skip
_ANYWHERE = {
    "&": "y", "%": "por ciento", "‰": "por mil", "@": "arroba", "#": "almohadilla", "§": "sección",
    "©": "copyright",
    "®": "marca registrada", "™": "marca registrada", "°": "grados", "√": "raíz cuadrada de",
    "∛": "raíz cúbica de",
    "∞": "infinito", "π": "pi", "∑": "sumatorio de", "∫": "integral de", "∂": "derivada parcial de",
    "∆": "delta",
    "Δ": "delta", "€": "euros", "$": "dólares", "£": "libras", "¥": "yenes", "¢": "centavos", "¶": "párrafo",
    "†": "cruz", "№": "número", "→": "flecha", "_": "guion bajo", "~": "aproximadamente", "^": "elevado a",
    "|": "barra",
    "\\": "barra invertida", "µ": "micro", "α": "alfa", "β": "beta", "γ": "gamma", "λ": "lambda",
    "σ": "sigma",
    "Ω": "omega", "θ": "theta",
} | _BETWEEN  # fmt: skip
_POWERS = {"2": "al cuadrado", "3": "al cubo"}


def _named(match: Any) -> str:
    return _apart(match, _ANYWHERE[match["sign"]])


def _minus(match: Any) -> str | None:
    """Between two words a hyphen is one, unless the text has a sum in it."""
    spaced = match.string[match.start() - 1].isspace() and match.string[match.end()].isspace()
    return _apart(match, "menos") if spaced else None


def _power(match: Any) -> str:
    exponent = "".join("-" if each == "⁻" else str(digit(each)) for each in match.group())
    if not exponent.lstrip("-").isdecimal() or exponent.rfind("-") > 0:
        return _apart(match, "elevado a menos")
    return _apart(match, _POWERS.get(exponent) or f"elevado a {cardinal(int(exponent))}")


def _apart(match: Any, said: str) -> str:
    """Set off from signs and brackets too: letters and digits are seen to by whoever applies the rule."""
    before = match.string[: match.start()][-1:]
    after = match.string[match.end() : match.end() + 1]
    left = (
        " " if before and not before.isspace() and not before.isalnum() and before not in "(“\"'¿¡[" else ""
    )
    right = (
        " "
        if after
        and not after.isspace()
        and not after.isalnum()
        and after not in _ANYWHERE
        and after not in ".,;:)”\"'?!]"
        else ""
    )
    return left + said + right


_SIGNS = "".join(sign for sign in _ANYWHERE if len(sign) == 1 and sign not in r"_~*|\^-·→" + "µαβγλσΩθπ")
_GREEK = "µαβγλσΩθπ"

RULES: tuple[Rule, ...] = (
    rule("minus", r"(?<=[\p{L})²³\d][ ]?)[-–](?=[ ]?[\d\p{L}(²³]+[ ]?[-+=<>≤≥≈])", _minus, wakes="-–"),
    rule("compound sign", r"(?<=[\w\)][ ]?)(?P<sign><=|>=|!=|==)(?=[ ]?[\w(])", _named, wakes="<=>"),
    rule("times", r"(?<=[\d)][ ]?)(?P<sign>[*·])(?=[ ]?[\d(])", _named, wakes="*·"),
    digit_rule("times, by an x", r"(?<=\d[ ]?|\d[ ]?\p{Ll}{1,2}[ ])[xX](?=[ ]?\d)", lambda _: "por"),
    rule("raised to", r"(?<=[\w)])(?P<sign>\^)(?=[\w(-])", _named, wakes="^"),
    rule("about", r"(?<!\w)(?P<sign>~)(?=[ ]?\d)", _named, wakes="~"),
    rule("number sign", r"(?<!\w)\#(?=[ ]?\d)", lambda _: "número", wakes="#"),
    rule("power", r"[⁰¹²³⁴-⁹⁻]+", _power),
    rule("Greek letter", rf"(?<!\p{{L}})(?P<sign>[{_GREEK}])(?!\p{{L}})", _named),
    rule("sign alone", r"(?<![^\s])(?P<sign>[_^|\\~])(?![^\s])", _named, wakes="\\^_|~"),
    rule("sign", rf"(?P<sign>[{_SIGNS}])", _named),
    rule("either or", r"(?<=\by)/(?=o\b)", lambda _: " ", wakes="/"),
)
