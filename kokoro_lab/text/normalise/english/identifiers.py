"""English digits and letters that identify: telephone and card numbers, versions, models, codes."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import DIGITS, cardinal, digits, in_pairs, number
from kokoro_lab.text.normalise.english.patterns import (
    END,
    LOOSE_END,
    LOOSE_START,
    NAMES,
    START,
    WORDS,
    any_word,
    optional,
)
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule


def serial(text: str) -> str:
    """The words for a code of letters and digits: `B-52` is "B fifty two", `A320` "A three twenty", `3D`
    "three D". Capitals that the G2P would read as a word are spelt."""
    runs = regex.findall(r"\p{L}+|\d+(?:\.\d+)?", text)
    return " ".join(_number(run) if run[0].isdecimal() else _letters(run) for run in runs)


def _letters(run: str) -> str:
    if run == "a":
        return "A"  # not the article
    return " ".join(run) if run.isupper() and run.lower() in WORDS["read as a word"] else run


def _model(match: Any) -> str:
    """The words for the name of a model such as `Llama-3.1-70B`: its name, its version and its size."""
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
    """The words for groups of digits: each digit by its name, with a pause between two groups. `800` and
    `900` are "eight hundred" and "nine hundred" if there are more than two groups, or if `prefixed`."""
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


_SIDES = {"L": "left", "R": "right", "C": "center"}
_PIECES = {"K": "king", "Q": "queen", "R": "rook", "B": "bishop", "N": "knight"}
_MOVE = r"(?:(?:[KQRBN][a-h]?[1-8]?|[a-h](?=x))?x?[a-h][1-8](?:=[QRBN])?[+\#]?|O-O(?:-O)?)"
"""A pattern for a move of chess, such as `Nxe5` and `Qd4+`."""


def _moves(match: Any) -> str:
    said = [_move(each) for each in match["moves"].split(" ")]
    return f"{number(match['number'])}, {', '.join(said)}"


def _move(text: str) -> str:
    if text.startswith("O"):
        return "castles queenside" if text.count("O") == 3 else "castles"
    named = _PIECES | {"x": "takes", "=": "becomes", "+": "check", "#": "mate"}
    return " ".join(DIGITS[int(c)] if c.isdecimal() else named.get(c, c.upper()) for c in text)


_SEPARATORS = r"[-.\ ]"
_TAIL = r"(?P<tail>-?(?:rc|alpha|beta|a|b|dev|post)\.?\d*)?"

BEFORE_WORDS: tuple[Rule, ...] = (
    digit_rule(
        "model with its version and size",
        r"""(?<![\p{L}\p{N}_.-])\p{Lu}\p{L}+-?\d+(?=[\d.-]*\d[BM]?\b)(?:(?:\.\d+)+(?:[BM]\b)?|-\d+[BM]\b)
        (?:-(?:[vV]?\d+(?:\.\d+)*[BM]?|\p{L}+)){0,4}(?![\p{L}\p{N}_])
        |(?<![\p{L}\p{N}_.-])\p{Lu}\p{L}+(?:-\p{L}+)?-\d+(?:\.\d+)?[BM](?:-(?:[vV]?\d+(?:\.\d+)*[BM]?|\p{L}+)){0,4}
        (?![\p{L}\p{N}_])""",
        _model,
    ),
    digit_rule(
        "version and size behind a name",  # the lexicon may have this name
        r"(?<=\p{L})-\d+(?:\.\d+)*-\d+(?:\.\d+)?[BM](?![\p{L}\p{N}_])",
        _model,
    ),
    digit_rule(
        "letter, point and number",
        r"(?<![\p{L}\p{N}_.])(?P<letter>[A-Z])\.(?P<number>\d{2,4})(?![\p{L}\p{N}_]|[.,]\d)",
        lambda match: f"{match['letter']} dot {digits(match['number'])}",
    ),
    digit_rule(
        "standard of a network",
        r"(?<![\p{L}\p{N}_.])802\.(?P<number>\d{1,2})(?P<letters>\p{Ll}{0,2})(?![\p{L}\p{N}_])",
        lambda m: f"eight oh two dot {cardinal(int(m['number']))} {' '.join(m['letters'].upper())}".rstrip(),
    ),
    digit_rule(
        "airliner, processor or status of a web server",
        rf"""(?=[1-9])(?:(?<=\b(?:Boeing|[Tt]he|[Aa]n?)\ )7\d7-(?:[1-9]00(?:ER|LR|F)?|\d{{1,2}})
        |(?<=\b(?:Boeing|[Aa])\ )7[0-8]7
        |(?:(?<=\b{any_word("before a model")}\ )|(?<=\bi[3579]-))\d{{4,5}}\p{{Lu}}{{0,2}}
        |(?<=\bHTTP\ (?:status\ |error\ |code\ ){{0,2}})[1-5]\d\d
        |(?<=\b(?:[Ee]rror|[Ss]tatus)\ (?:code\ )?)[345]0[0-4]
        |404(?=\ (?:error\b|page|[Nn]ot\ [Ff]ound|status)))(?![\p{{L}}\p{{N}}_-]|[.,]\d)""",
        _spelt,
    ),
    digit_rule(
        "flight of an airline",  # `UA 2214: ORD to BOS`
        rf"""{START}(?P<code>{any_word("airline")})\ ?(?P<number>[1-9]\d{{2,3}}){END}
        (?=:|,?\ (?:(?:from|to)\ )?(?-i:\p{{Lu}}{{3}}){END}|,?\ (?:{any_word("said of a flight")})\b)""",
        lambda match: f"{' '.join(match['code'])} {in_pairs(match['number'])}",
        also="ABDEFIJKLNQSTUVW",
    ),
    digit_rule(
        "runway",
        rf"""(?<=\b[Rr]unways?\ (?:\d\d?[LRC]?(?:/|\ and\ |\ or\ ))?)(?P<number>\d{{1,2}})
        (?P<side>[LRC])?{END}(?![.,]\d)""",
        lambda m: digits(m["number"]) + (f" {_SIDES[m['side']]}" if m["side"] else ""),
        also="Rr",
    ),
    digit_rule(
        "wind for a pilot",  # `wind 250/12G20`
        r"""(?<=\b[Ww]ind\ )(?P<from>[0-3]\d0)/(?P<speed>\d{1,2})(?:G(?P<gust>\d\d))?
        (?:\ ?(?P<unit>KT|kts?))?(?![\p{L}\p{N}_]|[.,]\d)""",
        lambda m: (
            f"{digits(m['from'])} at {number(m['speed'].lstrip('0') or '0')}"
            + (f" gusting {number(m['gust'])}" if m["gust"] else "")
            + (" knots" if m["unit"] else "")
        ),
        also="/",
    ),
    digit_rule(
        "code of a transponder or an altimeter",
        r"(?<=\b(?:QNH|QFE|[Ss]quawk(?:ing)?)\ )(?P<number>\d{3,4})(?![\p{L}\p{N}_-]|[.,]\d)",
        _digits,
        also="QSs",
    ),
    digit_rule(
        "meeting in groups of digits",  # `845 3321 9076`
        r"(?<![\p{L}\p{N}_.,+/-]|\d\ )(?P<number>\d{3}\ \d{4}\ \d{4})(?![\p{L}\p{N}_-]|[.,]\d|\ \d)",
        _digits,
    ),
    digit_rule(
        "span of numbers with a letter",  # `zones 5b-9a`
        rf"""(?<=\b(?i:{any_word("before a number with a letter")})\ )(?P<first>\d{{1,3}}\p{{L}})\ ?[-–]\ ?
        (?P<last>\d{{1,3}}\p{{L}})(?![\p{{L}}\p{{N}}_-])""",
        lambda match: f"{serial(match['first'].upper())} to {serial(match['last'].upper())}",
        also="-–",
    ),
    digit_rule(
        "M.2",
        rf"{START}(?<!\.)M\.2(?:\ (?P<size>22(?:30|42|60|80)))?{END}(?![.,]\d)",
        lambda match: "M dot two" + (f" {in_pairs(match['size'])}" if match["size"] else ""),
        also="M",
    ),
    digit_rule(
        "moves of chess",  # `12.Nxe5 Qd4+`
        rf"""(?<![\p{{L}}\p{{N}}_.,-])(?P<number>\d{{1,3}})\.(?:\.\.)?\ ?(?P<moves>{_MOVE}(?:\ {_MOVE})?)
        (?![\p{{L}}\p{{N}}_-]|[.,]\d)""",
        _moves,
        also=POINT_WITHIN,
    ),
    digit_rule(
        "number of a weakness",
        r"(?<![\p{L}\p{N}_-])CVE-(?P<year>(?:19|20)\d\d)-(?P<number>\d{4,7})(?![\p{L}\p{N}_-])",
        lambda m: f"CVE {in_pairs(m['year'])}, {digits(m['number'])}",
        also="-",
    ),
    digit_rule(
        "3M, the company",
        rf"""{LOOSE_START}3M(?:(?='s\b|\ (?:Company|Co|Corp|{any_word("behind the company 3M")})\b)
        |(?<=\b(?:at|by|for|from|like|of)\ 3M)(?=[,.;!?)]|$))""",
        lambda match: "three M",
    ),
    digit_rule(
        "last digits",
        rf"""(?:\*{{2,}}\ ?|(?<=\b(?i:{any_word("before last digits")}):?\ ))(?P<number>\d{{3,4}})
        (?![\p{{L}}\p{{N}}_-]|[.,]\d)""",
        _digits,
    ),
    digit_rule(
        "padded number",
        rf"(?<=\b(?i:{any_word('before a padded number')})\ )0+(?P<number>[1-9]\d?){END}(?![.:,/-]?\d)",
        lambda match: cardinal(int(match["number"])),
    ),
    digit_rule(
        "telephone number",
        rf"""(?<![\p{{L}}\p{{N}}_.,+/-])(?:(?P<country>\+\d{{1,3}}|1(?={_SEPARATORS}\(?\d{{3}}))
        (?:{_SEPARATORS}|(?=\()|(?<=\+\d)(?=\d{{10}}\b)))?
        (?P<rest>\(\d{{1,5}}\)\ ?\d{{2,4}}(?:{_SEPARATORS}\d{{3,4}})*
        |\d{{3}}[-.\ ]\d{{3}}[-.\ ]\d{{4}}
        |\d{{3}}-\d{{4}}(?!-)
        |[2-9]\d{{2}}-(?:\p{{Lu}}{{4,7}}|\p{{Lu}}{{3}}-\p{{Lu}}{{4}}|\p{{Lu}}+-\p{{Lu}}+(?:-\p{{Lu}}+)*
        |\d{{3}}-\p{{Lu}}{{4}})
        |(?<=\+\d{{1,3}}{_SEPARATORS}?)\(?\d{{1,5}}\)?(?:{_SEPARATORS}\d{{2,8}}){{1,5}}
        |0\d{{3,4}}\ \d{{6}}
        |0(?!00?\b)\d{{2,4}}[\ -]\d{{3,4}}(?:[\ -]\d{{3,4}})?
        |(?<=\+\d)\d{{10}}
        )(?:,?\ ?(?:ext\.?|extension|x)\ ?(?P<extension>\d{{1,5}}))?{END}""",
        _phone,
    ),
    digit_rule(
        "emergency number",
        rf"""(?<=\b(?i:{any_word("before a number that is dialled")})\ (?:the\ )?)
        (?P<number>\d{{3}})(?![\p{{L}}\p{{N}}-]|[.,]\d)""",
        _digits,
    ),
    digit_rule(
        "emergency call",
        rf"{LOOSE_START}(?P<number>911|999)(?=\ (?:call|operator|dispatcher|emergency))",
        _digits,
    ),
    digit_rule(
        "social security number", rf"{START}(?P<number>\d{{3}}-\d{{2}}-\d{{4}}){END}(?!-)", _digits, also="-"
    ),
    digit_rule(
        "card number", rf"{START}(?P<number>\d{{4}}[-\ ]\d{{4}}[-\ ]\d{{4}}[-\ ]\d{{1,4}}){END}", _digits
    ),
    digit_rule("ISBN", rf"(?<=\bIS(?:B|S|M)N:?\ (?:-13:?\ )?)(?P<number>\d[\d-]{{6,15}}\d){END}", _digits),
    digit_rule(
        "code in digits",
        rf"""(?<=\b(?i:{any_word("before a code in digits")})(?::\ ?|[ ])(?:is\ |was\ |no\.\ |number[ ]|:\ )?)
        (?P<number>\d{{4,}}(?:-\d+)*)(?![\p{{L}}\p{{N}}-]|[.,]\d)""",
        _digits,
    ),
)

RULES: tuple[Rule, ...] = (
    Rule(
        "bound of a version",
        r"""(?P<comma>,\ ?)?(?P<bound>[<>]=?|[=!]=)\ ?(?P<number>\d+(?:\.\d+)+)
        (?:(?=,\ ?[<>=!])|(?<=[<>=]\ ?\d[\d.]*,\ ?[<>=!]{1,2}\ ?[\d.]+))(?!\.?\d|\w)""",
        lambda m: f"{', ' if m['comma'] else ''}{NAMES['operator'][m['bound']]} {_version(m)}",
        wakes="<=>",
    ),
    digit_rule(
        "version",
        rf"""{START}(?P<v>(?:v|V(?!\d+(?!\.?\d)))\.?\ ?(?=\d))?(?<=[vV]\.?\ ?)  # but a V8
        (?P<number>\d+(?:\.\d+)*){_TAIL}{END}(?!\.\d)""",
        _version,
    ),
    digit_rule(
        "long version",
        rf"{START}(?P<number>\d+(?:\.\d+){{2,}}){_TAIL}{END}(?!\.\d)",
        _version,
    ),
    digit_rule(
        "version of a program",
        rf"""(?<=\b{any_word("program with versions")}(?:\ |\ ?[<>=!~^≥≤]+\ ?))
        (?P<number>\d+\.\d+){LOOSE_END}(?!\.\d)""",
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
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?!\d+\p{{Greek}})(?=[\p{{L}}-]*\d)(?=[\d-]*\p{{L}})[\p{{L}}\p{{N}}]+
        (?:-[\p{{L}}\p{{N}}]+)*{END}(?![.,]\d)""",
        _spelt,
    ),
)
