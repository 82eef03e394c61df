"""Puts written forms into spoken words: numbers, dates, money, units, addresses, signs, abbreviations, emoji.

English, Spanish and Japanese have a package each, Mandarin has a module, and each other language has a column
of a table. Each of them has `RULES`, in the order in which they are tried. Each also has `cardinal`,
`ordinal`, `date` and `time`, for callers that know what a number means (SSML's `say-as`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Protocol, cast

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import pasted
from kokoro_lab.text.normalise.pictographs import name_emoji, ratings
from kokoro_lab.text.normalise.rules import Rule, apply
from kokoro_lab.text.tables import names

READERS = ("en", "es", "fr", "it", "pt", "hi", "ja", "zh")
"""Languages, by their two letters, whose numbers and signs are read here."""
_PACKAGES = {"en": "english", "es": "spanish", "ja": "japanese", "zh": "mandarin"}
"""Languages with rules of their own → the module that has the rules."""


class Reader(Protocol):
    """The functions that each language has. All return words without punctuation, in lower case but for words
    that the language writes with a capital (`March`) and letters that are read by their names (`PM`)."""

    RULES: tuple[Rule, ...]

    def cardinal(self, value: int) -> str: ...

    def ordinal(self, value: int) -> str: ...

    def date(self, year: int | None, month: int | None, day: int | None) -> str: ...

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """`half` is `am`, `pm`, or None for the 24-hour clock."""
        ...


@cache
def reader(language: str) -> Reader | None:
    """The reader of `language`, loaded when it is first asked for; None if the language has none."""
    code = language.split("-")[0]
    if code not in READERS:
        return None
    if code in _PACKAGES:
        return cast(Reader, import_module(f"{__package__}.{_PACKAGES[code]}"))
    from kokoro_lab.text.normalise.other import OtherReader

    return OtherReader(code)


def normalise(text: AlignedText, language: str, keep: Sequence[tuple[int, int]] = ()) -> AlignedText:
    """One sentence in the spoken words of `language`. Its punctuation stays, because it shapes the prosody.

    Parameters
    ----------
    text : AlignedText
        Sanitised; one sentence, or a part of one, in one language.
    language : str
        A canonical tag such as `en-us`.
    keep : sequence of (int, int)
        Parts of `text`, in order, that stay as they are written.
    """
    rules = _rules(language)
    named = name_emoji(text, language, [*keep, *ratings(text.text)] if rules else keep)
    if not rules:
        return named
    return apply(named, rules, [named.range_of(*text.span(i, j)) for i, j in keep])


def name_of(character: str, language: str) -> str | None:
    """The name of a letter or a sign in `language`; None if it has none."""
    code = language.split("-")[0]
    known = names(__package__, "other_signs.tsv").get(code, {})
    if not known:  # languages in packages have tables of their own
        tables = names(f"{__package__}.{_PACKAGES[code]}")
        known = tables["sign in an address"] | tables.get("letter", {})
    capital = character.upper() if len(character.upper()) == 1 else character
    named = (known.get(each) for each in (character, character.lower(), capital))
    return next(filter(None, named), capital if character.isalpha() else None)


def warm(language: str) -> None:
    """Compile the rules of `language`, so that no text waits for that."""
    for each in _rules(language):
        next(each.matches(""), None)


@cache
def _rules(language: str) -> tuple[Rule, ...]:
    """The rules for pasted texts of any language, then those of `language`; none if the language has no
    reader."""
    found = reader(language)
    if not found:
        return ()
    signs = () if language.startswith("ja") else (pasted.numerals(found.cardinal),)  # Japanese has its own
    stars = pasted.stars(language.split("-")[0], found.cardinal)
    own = getattr(found, "BRITISH", found.RULES) if language == "en-gb" else found.RULES
    return (*pasted.RULES, stars, *signs, *own)
