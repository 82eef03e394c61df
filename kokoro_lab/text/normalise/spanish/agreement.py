"""Whether a number counts the word after it, and the gender of that word.

There is no lexicon of nouns: their endings decide, and lists have the common nouns that break the rule.
"""

from __future__ import annotations

import re

from kokoro_lab.text.tables import Gender, names, words

_WORD = re.compile(r" ?([^\W\d_]+)")
_SERIES = re.compile(r" [ouóya] \d+ ([^\W\d_]{3,}s)\b")
_LAST = re.compile(r"([^\W\d_]+)[.:º]? ?$")

_WORDS = words(__package__)
_NO_NOUN = _WORDS["no noun"]
_LABELS = _WORDS["numbered, not counted"]
"""Words that a number names rather than counts: `capítulo 1` is `capítulo uno`, whatever follows."""
_FEMININE = _WORDS["feminine"]
_FEMININE_IN_O = _WORDS["feminine in -o"]
_STRESSED_A = _WORDS["feminine with a stressed a"]
"""Feminine nouns that have `un` in the singular: `un agua`."""
_MASCULINE_IN_A = _WORDS["masculine in -a"]
_MASCULINE_IN_ION = _WORDS["masculine in -ión"]
_FEMININE_ENDINGS = re.compile(r"(?:[cstxgnl]ión|dad|tad|tud|umbre|itis|eza|idez)$")
_FEMININE_ENDINGS_PLURAL = re.compile(r"(?:[cstxgnl]iones|[dt]ades|tudes|umbres)$")


def word_before(text: str, start: int) -> str:
    """The word that `text[start:]` follows, in lower case; empty if there is none."""
    found = _LAST.search(text, max(0, start - 40), start)
    return found[1].casefold() if found else ""


def names_a_thing(text: str, start: int) -> bool:
    """Whether the number at `start` is a name: `capítulo 1`."""
    return word_before(text, start) in _LABELS


def gender_behind(text: str, start: int, end: int, *, one: bool, grouped: bool = True) -> Gender | None:
    """The gender of the noun that the number `text[start:end]` counts; None if it counts none.

    Parameters
    ----------
    one : bool
        Whether the number is 1, so that its noun is in the singular.
    grouped : bool
        Whether the number cannot be a year.
    """
    last = word_before(text, start)
    if last in _LABELS or (not grouped and end - start == 4 and last in _WORDS["before a year"]):
        return None
    found = _WORD.match(text, end)
    if found and found[1] in {"mil", "millones", "billones"}:
        counted = _WORD.match(text, found.end()) if found[1] == "mil" else None
        if not counted or not counted[1].endswith("s") or counted[1] in _NO_NOUN:
            return "m"  # "veintiún mil", "doscientos millones"
        found = counted  # "doscientas mil personas"
    if not found or found[1].isupper():
        return None
    word = found[1].casefold()
    if one and word in {"o", "u", "ó", "y", "a"} and (series := _SERIES.match(text, end)):
        # "1 o 2 veces"; but "uno o dos días" has no apocope
        return "f" if plural_gender(series[1].casefold()) == "f" else None
    if word in _NO_NOUN:
        return None
    if one:
        plural_or_adverb = (word.endswith("s") and word not in _WORDS["singular in -s"]) or word.endswith(
            "mente"
        )
        return None if plural_or_adverb else gender_of(word)
    if not word.endswith("s"):
        return None
    following = _WORD.match(text, found.end())
    return plural_gender(word, following[1].casefold() if following else "")


def gender_of(noun: str) -> Gender:
    """The gender of a singular noun by its ending; masculine if in doubt."""
    if noun in _STRESSED_A:
        return "m"
    if noun in _FEMININE:
        return "f"
    if noun in _MASCULINE_IN_ION:
        return "m"
    if _FEMININE_ENDINGS.search(noun) or noun in _FEMININE_IN_O:
        return "f"
    if noun.endswith(("a", "á")):
        return "m" if noun in _MASCULINE_IN_A or _is_person(noun) else "f"
    return "m"


def _is_person(noun: str) -> bool:
    """Whether `noun` may name a man (`turista`) rather than a thing (`lista`)."""
    return noun.endswith(("ista", "cida")) and noun not in _WORDS["thing in -ista or -cida"]


def plural_gender(noun: str, following: str = "") -> Gender:
    """The gender of a plural noun; an adjective after it may decide."""
    if noun.endswith("as"):
        stem = noun[:-1]
        masculine = stem in _MASCULINE_IN_A or noun in _MASCULINE_IN_A or _is_person(stem)
        return "m" if masculine else "f"
    if noun.endswith("os"):
        return "f" if noun[:-1] in _FEMININE_IN_O else "m"
    if not noun.endswith("es"):
        return "f" if noun in _FEMININE or noun.endswith("itis") else "m"
    if {noun, noun[:-1], noun[:-2], _unaccented_stem(noun)} & _FEMININE or _feminine_es(noun):
        return "f"
    # an adjective may stand between: "200 grandes empresas"
    adjective = (
        following not in _NO_NOUN and following.endswith("as") and following[:-1] not in _MASCULINE_IN_A
    )
    return "f" if adjective else "m"


def _unaccented_stem(noun: str) -> str:
    """The singular of a plural in -es, with the accents of the singular: `voces` → `voz`, `imágenes` →
    `imagen`."""
    stem = noun.removesuffix("es")
    if stem.endswith("c"):
        stem = stem[:-1] + "z"
    return names(__package__)["singular with another accent"].get(stem, stem)


def _feminine_es(noun: str) -> bool:
    if noun.removesuffix("ones") + "ón" in _MASCULINE_IN_ION:
        return False
    return bool(_FEMININE_ENDINGS_PLURAL.search(noun))
