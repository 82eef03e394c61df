"""Signs of arithmetic, and the others that have a name."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.rules import Rule, rule

_BETWEEN = {
    "+": "más", "=": "igual a", "×": "por", "·": "por", "*": "por", "÷": "dividido entre", "<": "menor que",
    ">": "mayor que", "≤": "menor o igual que", "≥": "mayor o igual que", "≠": "distinto de", "≈": "aproximadamente igual a",
    "<=": "menor o igual que", ">=": "mayor o igual que", "!=": "distinto de", "==": "igual a", "±": "más menos",
    "≡": "idéntico a", "∈": "pertenece a", "∪": "unión", "∩": "intersección", "∝": "proporcional a",
}  # fmt: skip
_ANYWHERE = {
    "&": "y", "%": "por ciento", "‰": "por mil", "@": "arroba", "#": "almohadilla", "§": "sección", "©": "copyright",
    "®": "marca registrada", "™": "marca registrada", "°": "grados", "√": "raíz cuadrada de", "∛": "raíz cúbica de",
    "∞": "infinito", "π": "pi", "∑": "sumatorio de", "∫": "integral de", "∂": "derivada parcial de", "∆": "delta",
    "Δ": "delta", "€": "euros", "$": "dólares", "£": "libras", "¥": "yenes", "¢": "centavos", "¶": "párrafo",
    "†": "cruz", "№": "número", "→": "flecha", "_": "guion bajo", "~": "aproximadamente", "^": "elevado a", "|": "barra",
    "\\": "barra invertida", "µ": "micro", "α": "alfa", "β": "beta", "γ": "gamma", "λ": "lambda", "σ": "sigma",
    "Ω": "omega", "θ": "theta",
} | _BETWEEN  # fmt: skip
_POWERS = {"²": "al cuadrado", "³": "al cubo", "⁴": "a la cuarta", "⁵": "a la quinta"}


def _named(match: Any) -> str:
    sign = match["sign"]
    said = _ANYWHERE[sign]
    text = match.string
    before = " " if match.start() and not text[match.start() - 1].isspace() else ""
    after = " " if match.end() < len(text) and not text[match.end()].isspace() else ""
    return before + said + after


def _power(match: Any) -> str:
    before = " " if match.start() and not match.string[match.start() - 1].isspace() else ""
    return before + _POWERS[match.group()]


_SIGNS = "".join(sign for sign in _ANYWHERE if len(sign) == 1 and sign not in r"_~*|\^-·→" + "µαβγλσΩθπ")
_GREEK = "µαβγλσΩθπ"

RULES: tuple[Rule, ...] = (
    rule("minus", r"(?<=[\d\p{L})²³][ ])[-–](?=[ ][\d\p{L}(]+[ ]?[=<>≤≥≈])", lambda _: "menos"),
    rule("compound sign", r"(?<=[\w\)][ ]?)(?P<sign><=|>=|!=|==)(?=[ ]?[\w(])", _named),
    rule("times", r"(?<=[\d)][ ]?)(?P<sign>[*·])(?=[ ]?[\d(])", _named),
    rule("times, by an x", r"(?<=\d[ ]?)[xX](?=[ ]?\d)", lambda _: "por"),
    rule("raised to", r"(?<=[\w)])(?P<sign>\^)(?=[\w(-])", _named),
    rule("about", r"(?<!\w)(?P<sign>~)(?=[ ]?\d)", _named),
    rule("number sign", r"(?<!\w)\#(?=\d)", lambda _: "número "),
    rule("power", r"[²³⁴⁵]", _power),
    rule("Greek letter", rf"(?<!\p{{L}})(?P<sign>[{_GREEK}])(?!\p{{L}})", _named),
    rule("sign alone", r"(?<![^\s])(?P<sign>[_^|\\~])(?![^\s])", _named),
    rule("sign", rf"(?P<sign>[{_SIGNS}])", _named),
    rule("either or", r"(?<=\by)/(?=o\b)", lambda _: " "),
)
