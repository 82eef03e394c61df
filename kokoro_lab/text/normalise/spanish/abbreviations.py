"""Spanish abbreviations, which are read in full, acronyms, which are spelt, and codes of letters and digits.

Whether the stop of an abbreviation stays depends on whether a sentence ends there. An acronym that can be
read as a word stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.boundaries import initial
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule
from kokoro_lab.text.normalise.spanish.numerals import cardinal, digits
from kokoro_lab.text.tables import any_of, names, words

_NAMES, _WORDS = names(__package__), words(__package__)
_VOWELS = "aeiouáéíóúü"
_SYLLABLES = regex.compile(
    rf"""(?:ps(?=[{_VOWELS}]))?
    (?:
        (?:[bcfgpkt]r|[bcfgpk]l|dr|ch|ll|qu(?=[eiéí])|[bcdfghjklmnñprstvxyzw])?
        (?:[{_VOWELS}]{{1,3}}|y(?![{_VOWELS}]))
        (?:[lnrszdmxcbpgtf](?![{_VOWELS}])|y(?![{_VOWELS}]))?
    )+
    (?:ns|(?<=[{_VOWELS}])[bkptfg])?$""",
    regex.VERBOSE,
)


def spell(letters: str) -> str:
    """`FBI` as `efe be i`, by the names of the Academies' Ortografía of 2010.

    A character without a name of its own (an accent, another script) stays.
    """
    return " ".join(_NAMES["letter"].get(each, each) for each in letters.casefold())


def is_sayable(word: str) -> bool:
    """Whether `word` falls into syllables that Spanish has: `OTAN` does, `FBI` and `ONG` do not."""
    return _SYLLABLES.match(word.casefold()) is not None


_END = regex.compile(r"[\"”')\]]*\Z")
_NEXT_SENTENCE = regex.compile(r"[ ]+[¿¡\"“(]*\p{Lu}")


def final_stop(match: Any, *, leads_to_name: bool = False) -> str:
    """If the match ends with a point that also ends the sentence: a point; else empty.

    Parameters
    ----------
    leads_to_name : bool
        Whether a capital after the abbreviation may begin a name, and so does not show the end of a sentence:
        `Dra. Ana`.
    """
    closes = match.group().endswith(".") and (
        _END.match(match.string, match.end())
        or (not leads_to_name and _NEXT_SENTENCE.match(match.string, match.end()))
    )
    return "." if closes else ""


def _any(table: Iterable[str]) -> str:
    """A pattern for any abbreviation in `table`. Spaces may follow the stops inside:
    `EE. UU.`, `p. ej.`, `a. de C.`"""
    found = any_of(table).replace("deC", "[ ]?de[ ]?C")
    return str(regex.sub(r"\\\.(?=\p{L})", r"\\.[ ]?", found))


_BEFORE_NAME, _BEFORE_NUMBER = _NAMES["before a name"], _NAMES["before a number"]
_CAPITALISED = {
    key[0].upper() + key[1:]: spoken
    for key, spoken in _NAMES["abbreviation"].items()
    if key[0].islower() and not spoken.endswith("de Cristo")
}
"""Abbreviations with a capital, as at the beginning of a sentence; without eras, which mean something else in
capitals."""
_ABBREVIATIONS = _CAPITALISED | _NAMES["abbreviation"]
_SPOKEN = {key.replace(" ", ""): spoken for key, spoken in _ABBREVIATIONS.items()}


def _always(match: Any) -> str | None:
    found = match.group().replace(" ", "")
    if found not in _SPOKEN:
        return None
    return _SPOKEN[found] + final_stop(match, leads_to_name=found not in _WORDS["ends a sentence"])


def _era(match: Any) -> str:
    """An era, but only after a year or a century: `Washington D. C.` has none."""
    return ("antes" if match.group().startswith("A") else "después") + " de Cristo" + final_stop(match)


_LIKE_ONE = rf"(?=[\p{{L}}\ ]{{1,6}}[./ºª°-]|{_any(each for each in _ABBREVIATIONS if each.isalpha())})"
"""A pattern that fits all abbreviations and few other words. It is tried before the many patterns for single
abbreviations, to save time."""
_EDGE = r"(?<![\p{L}\d])(?<!\p{Lu}\.[ ]?)"

LONGEST = 5
_INHABITED = regex.compile(r"\b(?i:puebl|alde|poblaci|municipi|densidad|caserío|censo|localidad)")
_LOWERED = "₀₁₂₃₄₅₆₇₈₉"
_SUBSCRIPTS = str.maketrans(_LOWERED, "0123456789")


def _acronym(match: Any) -> str | None:
    letters = match["letters"]
    if letters in _WORDS["read as a word"] or letters in _WORDS["word in capitals"]:
        return None
    vowels_only = len(letters) <= 3 and not regex.search(r"[^AEIOUÁÉÍÓÚ]", letters)
    if letters not in _WORDS["spelt"] and not vowels_only and len(letters) > 2 and is_sayable(letters):
        return None
    if _shouts(match.string) and is_sayable(letters):
        return None
    return spell(letters)


def _rooms(match: Any) -> str | None:
    """The word for the rooms of a flat; None if the text is about a place and those who live there."""
    if _INHABITED.search(match.string):
        return None
    number = int(match["number"])
    noun = "habitación" if number == 1 else "habitaciones"
    return f"{cardinal(number, gender='f')} {noun}{final_stop(match)}"


def _ampersand(match: Any) -> str:
    return " y ".join(spell(part) for part in match.group().split("&"))


def _shouts(text: str) -> bool:
    """Whether a text is written in capitals throughout, so that a word in capitals is no acronym."""
    return len(regex.findall(r"\p{Lu}{2,}", text)) > 2 and not regex.search(r"\p{Ll}", text)


def _dotted(match: Any) -> str:
    return spell(match.group().replace(".", "").replace(" ", ""))


def _code(match: Any) -> str:
    return " ".join(_part(part) for part in regex.findall(r"\p{L}+|\d+|[₀-₉]+", match.group()))


def _part(part: str) -> str:
    if part.isdecimal():
        return digits(part) if part.startswith("0") or len(part) > 4 else cardinal(int(part))
    if part[0] in _LOWERED:
        return cardinal(int(part.translate(_SUBSCRIPTS)))
    return part if len(part) > 3 and is_sayable(part) else spell(part)


RULES: tuple[Rule, ...] = (
    digit_rule(
        "abbreviation before a number",
        rf"{_EDGE}{_any(_BEFORE_NUMBER)}(?=[ ]?\d)",
        lambda match: _BEFORE_NUMBER[match.group()],
    ),
    Rule(
        "greatest or least",
        r"(?P<short>máx|mín)\.?(?!\p{L})(?<=(?<!\p{L})"
        rf"(?i:{any_of(_WORDS['that have a greatest'])})(?P<many>(?:e?s)?)\ "
        r"(?:m[áí][xn]\.?[^!?\n]{1,40}(?:[,;(/]\ ?|\b(?:y|la)\ ))?m[áí][xn]\.?)",
        lambda m: f"{m['short']}ima{m['many'][-1:]}{final_stop(m)}",
        wakes="áí",
    ),
    Rule(
        "greatest or least heat",
        r"(?<=(?:^|[:;,(–-][ ]?|\by[ ]))(?P<short>(?i:máx|mín))\.?:?(?=[ ]-?\d+(?:[.,]\d+)?[ ]?[°º])",
        lambda m: f"{m['short']}ima" if regex.search(r"(?i:mín.*máx|máx.*mín)", m.string) else None,
        wakes="°º",
    ),
    digit_rule(
        "rooms",  # of a flat: `3 hab., 2 baños`
        r"(?<![\w.,])(?P<number>\d)[ ]hab\.(?![ ]?/)",
        _rooms,
    ),
    Rule("era in capitals", r"(?<=[\dIVX][ ])(?:A|D)\.[ ]?C\.?(?!\w)", _era, wakes="."),
    Rule(
        "abbreviation before a name",
        rf"{_EDGE}{_any(_BEFORE_NAME)}(?=[ ]\p{{Lu}}\p{{Ll}})",
        lambda match: _BEFORE_NAME[match.group()],
    ),
    Rule(
        "district",  # `10 % dto. de Navidad` is a discount
        rf"{_EDGE}(?<![%\d][ ](?:de[ ])?)Dto\.(?=[ ]de(?:[ ]l[ao]s?|l)?[ ]"
        rf"(?!{_any(_WORDS['discounted'])}\b)\p{{Lu}}\p{{Ll}})",
        lambda match: None if "%" in match.string else "distrito",
        wakes=".",
    ),
    Rule("abbreviation", rf"{_EDGE}{_LIKE_ONE}{_any(_ABBREVIATIONS)}(?![\p{{L}}\d])(?!\.\p{{L}})", _always),
    Rule(
        "initial of a name",
        r"(?<![\p{L}\p{M}\p{N}.'’-])\p{Lu}\.(?=\ \p{Lu})",
        partial(initial, code="es"),
        wakes=POINT_WITHIN,
    ),
    Rule("dotted acronym", r"(?<![\w.])(?:\p{Lu}\.){2,}(?:\p{Lu}(?!\w))?", _dotted, wakes="."),
    Rule(
        "code",
        r"(?<![\w.,-])(?=\d*\p{Lu})(?=\p{Lu}*[\d₀-₉])(?:\p{Lu}{1,5}|\d{1,12}|[₀-₉]{1,3}){2,6}(?!\w)(?![.,]\d)",
        _code,
    ),
    digit_rule("code with a hyphen", r"(?<![\w-])(?:\p{Lu}{1,3}-\d{1,12}|\d{1,4}-\p{Lu})(?![\w-])", _code),
    Rule("letters and letters", r"(?<![\w&])\p{Lu}{1,3}&\p{Lu}{1,3}(?![\w&])", _ampersand, wakes="&"),
    digit_rule("word and number", r"(?<=\p{L}{2})-(?=\d)", lambda _: " "),
    Rule(
        "acronym",
        rf"(?<![\w.@#])(?P<letters>\p{{Lu}}{{2,{LONGEST}}})(?:'?s)?(?:-(?=\p{{L}}))?(?<=-|(?![\w@]|\.\p{{L}}))",
        _acronym,
    ),
)
