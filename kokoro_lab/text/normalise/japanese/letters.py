"""Latin letters in Japanese: acronyms and single letters by their Japanese names.

Words stay as they are written; they are spoken by the G2P of their own language.
"""

from __future__ import annotations

import regex

from kokoro_lab.text.normalise.japanese.written import (
    LATIN,
    NAMES,
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    either_width,
    narrow,
    with_point,
)
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of

LETTERS, GREEK = NAMES["letter"], NAMES["Greek letter"]
LONGEST_SPELT = 6
"""The longest run of capitals that is read by its letters' names; a longer run is a word in capitals."""

_VOWEL = "AEIOUY"
_ABBREVIATED = {written.lower(): said for written, said in NAMES["abbreviation"].items()}


def spelt(letters: str) -> str:
    """Letters by their names: NHK is エヌエイチケー."""
    return "".join(LETTERS.get(letter, letter) for letter in letters.upper())


def acronym(letters: str) -> str | None:
    """How capitals are said, or None if they look like a word that is only written so (SONY)."""
    if letters in NAMES["acronym said as a word"]:
        return NAMES["acronym said as a word"][letters]
    vowels = [letter in _VOWEL for letter in letters]
    pronounceable = any(vowels[1:]) and not all(vowels) and not regex.search(f"[^{_VOWEL}]{{3}}", letters)
    if len(letters) > LONGEST_SPELT or (len(letters) >= 4 and pronounceable):
        return None
    return spelt(letters)


LAUGH = r"(?:^|(?<=[\p{Hiragana}\p{Katakana}\p{Han}ー!?！？…)）]\s?))(?:w{2,}|(?<!^)w)(?=\s|$|[、。」!?…)])"
"""The letter w, once or several times, which stands for 笑い (laughter) after a text."""
_IN_A_PHRASE = r"(?<![a-z]['.]?\s)"
_PHRASE_AHEAD = r"(?!\s[A-Za-z]*[a-z])"
_NAME = (
    rf"(?<![A-Za-z][ ]|[A-Za-z\d@./-]){any_of(NAMES['name in Latin letters'])}(?!{LATIN}|[ ]{LATIN}|[@./-]\w)"
)
_KEYS = NAMES["key of a keyboard"]
_KEY = (
    rf"(?<![A-Za-z]){any_of(_KEYS)}(?!{LATIN})"
    r"(?:(?=\s?(?:[+＋]|キー|を押|を長押))|(?<=[+＋]\s?[A-Za-z]+))"
)
STAYS = regex.compile(f"{_NAME}|{_KEY}|{LAUGH}")
"""Latin letters that are read by these rules, and not by those of another language."""
WHOLE_NAMES: tuple[Rule, ...] = (
    either_width(
        "name in Latin letters",
        _NAME,
        lambda match: NAMES["name in Latin letters"][match.group()],
    ),
    either_width(
        "key of a keyboard",
        _KEY,
        lambda match: _KEYS[match.group()],
        wakes="".join({key[0] for key in _KEYS}),
    ),
    either_width("laugh", LAUGH, lambda match: "笑い"),
    either_width(
        "name with a digit",
        rf"(?<![A-Za-z0-9]){any_of(NAMES['name with a digit'])}(?![A-Za-z0-9])",
        lambda match: NAMES["name with a digit"][match.group()],
    ),
    either_width(
        "abbreviation",
        rf"{NO_LATIN_BEFORE}(?<word>{any_of(NAMES['abbreviation'])})\.\s?(?!\s*{LATIN})",
        lambda match: _ABBREVIATED[match["word"].lower()],
        ignore_case=True,
    ),
    either_width(
        "against",
        rf"""{NO_LATIN_BEFORE}{_IN_A_PHRASE}(?:(?<one>[A-Z])\s)?[Vv][Ss]\.?(?:\s(?<other>[A-Z]){NO_LATIN_AFTER})?
            {NO_LATIN_AFTER}{_PHRASE_AHEAD}""",
        lambda match: f"{spelt(match['one'] or '')}対{spelt(match['other'] or '')}",
        wakes="Vv",
    ),
    either_width("pH", rf"{NO_LATIN_BEFORE}pH{NO_LATIN_AFTER}", lambda _: "ピーエイチ", wakes="p"),
    either_width("e-mail", rf"{NO_LATIN_BEFORE}[Ee]-?mail{NO_LATIN_AFTER}", lambda _: "イーメール"),
    either_width("OK", rf"{NO_LATIN_BEFORE}(?:OK|O\.K\.){NO_LATIN_AFTER}", lambda _: "オーケー", wakes="O"),
)
"""Names in Latin letters, which no number rule may take apart."""

RULES: tuple[Rule, ...] = (
    either_width(
        "acronym",
        rf"{NO_LATIN_BEFORE}{_IN_A_PHRASE}(?<letters>[A-Z]{{2,}}){NO_LATIN_AFTER}(?!'[a-z]){_PHRASE_AHEAD}",
        lambda match: acronym(match["letters"]),
    ),
    with_point(
        "acronym with points",
        rf"{NO_LATIN_BEFORE}(?:[A-Z]\.){{2,}}[A-Z]?{NO_LATIN_AFTER}",
        lambda match: spelt(match.group().replace(".", "")),
    ),
    either_width(
        "single letter",
        rf"(?<!{LATIN}['.]?\s?|[@_]){LATIN}(?!['.]?\s?{LATIN}|[@_'])",
        lambda match: spelt(match.group()),
    ),
    either_width(
        "Greek letter",
        r"(?<!\p{Greek})\p{Greek}(?!\p{Greek})",
        lambda match: GREEK.get(match.group().lower()),
    ),
    Rule("wide Latin word", r"[Ａ-Ｚａ-ｚ]+", lambda match: narrow(match.group())),
)
