"""Signs that are said as words, and those that only shape the voice."""

from __future__ import annotations

from kokoro_lab.text.normalise.english.formulas import GREEK
from kokoro_lab.text.normalise.rules import Rule, rule

SIGNS = {
    "&": "and", "@": "at", "%": "percent", "+": "plus", "=": "equals", "×": "times", "÷": "divided by",
    "±": "plus or minus", "≈": "approximately", "≠": "is not equal to", "≤": "is less than or equal to",
    "≥": "is greater than or equal to", "∞": "infinity", "√": "square root", "∑": "sum", "∫": "integral",
    "∂": "partial", "∆": "delta", "∇": "nabla", "°": "degrees", "§": "section", "¶": "paragraph",
    "©": "copyright", "®": "", "™": "", "†": "", "‡": "", "•": "", "·": "", "‣": "", "▪": "", "●": "",
    "■": "", "→": "to", "⇒": "implies", "←": "from", "↑": "up", "↓": "down", "↔": "to and from",
    "✓": "check", "✔": "check", "✗": "cross", "✘": "cross", "∀": "for all", "∃": "there exists", "∈": "in",
    "∩": "intersection", "∪": "union", "¢": "cents", "€": "euros", "£": "pounds", "¥": "yen",
    "$": "dollars", "₹": "rupees", "₿": "bitcoins", "‰": "per mille", "′": "prime", "″": "double prime",
    "★": "star", "☆": "star", "♯": "sharp", "♭": "flat", "¹": "one", "²": "squared", "³": "cubed", "ª": "a",
    "º": "o",
}  # fmt: skip
"""A sign that stands by itself, by its name; those with none mark a list or a note."""
CODE = {
    "&&": "and",
    "||": "or",
    "==": "equals",
    "===": "equals",
    "!=": "is not equal to",
    "<=": "is less than or equal to",
    ">=": "is greater than or equal to",
    "->": "to",
    "=>": "to",
    "<-": "from",
    "::": "colon colon",
    "++": "plus plus",
    "--": "—",
    "+=": "plus equals",
    "//": "",
    "**": "",
    "...": "…",
}


RULES: tuple[Rule, ...] = (
    rule(
        "span of letters",
        r"(?<![\p{L}\p{N}_-])(?P<first>A)\ ?[-–]\ ?(?P<last>[C-Z])(?![\p{L}\p{N}_-])",
        lambda match: f"{match['first']} to {match['last']}",
        wakes="-–",
    ),
    rule(
        "C plus plus",
        r"(?<![\p{L}\p{N}_])(?P<letter>[A-Za-z])(?:(?P<plus>\+\+)|(?P<sharp>[#♯]))(?![\p{L}\p{N}])",
        lambda m: f"{m['letter'].upper()} {'plus plus' if m['plus'] else 'sharp'}",
        wakes="#+♯",
    ),
    rule(
        "letters joined by and",
        r"(?<![\p{L}\p{N}])(?P<first>\p{Lu}{1,3})&(?P<second>\p{Lu}{1,3})(?![\p{L}\p{N}])",
        lambda m: f"{' '.join(m['first'])} and {' '.join(m['second'])}",
        wakes="&",
    ),
    rule(
        "operator of a program",
        r"(?<=\s|^|[\p{L}\p{N})])(?P<sign>===|==|!=|<=|>=|&&|\|\||->|=>|<-|\+=|\+\+|::)(?=\s|$|[\p{L}\p{N}(])",
        lambda m: CODE[m["sign"]],
        wakes="&+:<=>|",
    ),
    rule(
        "dashes",
        r"(?<=\s)-{2,3}(?=\s)|(?<=\p{L})--(?=\p{L})",
        lambda m: " — " if m.string[m.start() - 1].isalpha() else "—",
        wakes="-",
    ),
    rule(
        "emphasis of plain text",
        r"""(?<![\p{L}\p{N}*])\*{1,3}(?=\S)|(?<=\S)\*{1,3}(?![\p{L}\p{N}*])|(?<![\p{L}\p{N}`])`+|`+
        (?![\p{L}\p{N}`])|^\#{1,6}\ """,
        lambda m: "",
        wakes="#*`",
    ),
    rule("underscore", r"(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])", lambda m: "", wakes="_"),
    rule(
        "less or greater",
        r"(?<=\s)(?P<sign>[<>])(?=\s)",
        lambda m: {"<": "is less than", ">": "is greater than"}[m["sign"]],
        wakes="<>",
    ),
    rule("multiplied", r"(?<=\p{N}\ )\*(?=\ \p{N})", lambda m: "times", wakes="*"),
    rule("either or", r"(?<=\p{L})\ ?/\ ?(?=\p{L})", lambda m: " ", wakes="/"),
    rule(
        "Greek letter",
        rf"(?<![\p{{L}}])(?P<letter>[{''.join(GREEK)}])(?![\p{{Greek}}])",
        lambda m: GREEK[m["letter"]],
    ),
    rule("sign", rf"(?P<sign>[{''.join(SIGNS)}])".replace("$", r"\$"), lambda m: SIGNS[m["sign"]]),
    rule("hash", r"\#(?=\s|$)", lambda m: "hash", wakes="#"),
)
