"""Numbers and fractions that agree with the noun behind them, in the languages of `others.tsv`."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.boundaries import is_label
from kokoro_lab.text.detect import FUNCTION_WORDS
from kokoro_lab.text.normalise.other_numbers import OtherNumbers, last_stop
from kokoro_lab.text.tables import CountedUnit, Gender, entries

VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_HALVES = {1: "डेढ़", 2: "ढाई"}
_HALF_OF_ONE = {"mezzo": "mezza", "meio": "meia", "demi": "demie"}
_NOUN = regex.compile(r"(?:\ mil)?\ (?P<noun>\p{Ll}\p{L}{2,})(?![\p{L}@]|\.\p{L})")
_WORD_BEFORE = regex.compile(r"(?:(?<!\p{L})(?P<article>\p{L}+)['’ ])?(?P<word>\p{L}+[.°]?)\ $")
_BEFORE_CHARS = 24
"""Number of characters before a number that may say what it numbers."""
_IMPURE = regex.compile(r"s[^aeiou]|z|gn|p[sn]|x|y|i[aeou]")
"""How Italian nouns begin that `uno` stands before."""


class OtherAgreement(OtherNumbers):
    """The gender of nouns, by tables of endings, and of the numbers that count them."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._labels = frozenset(entries(self._words["before a label's number"]))
        self._articles = frozenset(entries(self._words["articles"]))
        self._masculine = frozenset(entries(self._words["masculine nouns"]))
        self._feminine_nouns = frozenset(entries(self._words["feminine nouns"]))
        self._feminine_endings = tuple(entries(self._words["feminine endings"]))
        listed = ("no noun behind a number", "months")
        self._no_nouns = frozenset(word for each in listed for word in entries(self._words[each]))

    def _gender(self, noun: str, whole: int) -> Gender:
        """The gender of a noun by its ending or a table. If `whole` is more than 1, the noun is a plural."""
        locale = self._words["locale"]
        if locale == "it" and whole > 1 and noun[-1] == "e":
            return "f"
        singular = noun
        if whole > 1 and locale != "it":
            for ending, one in self._pairs("endings of a plural").items():
                if noun.endswith(ending):
                    singular = noun.removesuffix(ending) + one.strip("-")
                    break
        if singular in self._masculine:
            return "m"
        feminine = singular.endswith(self._feminine_endings)
        return "f" if feminine or singular in self._feminine_nouns else "m"

    def _agreeing(self, said: str, match: Any) -> str:
        """The words `said` for a whole number, in the gender of the noun behind it: "duas filhas". Where the
        number names the noun before it, as in "la stanza 1 guarda", they stay as they are."""
        locale = self._words["locale"]
        found = _NOUN.match(match.string, match.end())
        single = said.endswith(("un", "uno", "um")) and match.group() == "1"
        plural = locale != "it" and found and found["noun"][-1] in "sx"
        if locale == "hi" or not found or not (single or plural):
            return said
        noun = found["noun"]
        before = _WORD_BEFORE.search(match.string, max(0, match.start() - _BEFORE_CHARS), match.start())
        word = before["word"].lower() if before else ""
        label = before and (
            (is_label(word, self._language) and word not in FUNCTION_WORDS[self._language])
            or word in self._labels
            or before["word"][-1] in ".°º"
            or (len(before["word"]) > 1 and before["word"].isupper())
            or (single and (before["article"] or "").lower() in self._articles)
        )
        if label or noun in self._no_nouns:
            return said
        gender = self._gender(noun, 1 if single else 2)
        head, _, last = said.rpartition(" ")
        last = self._pairs(f"{gender}, before a noun").get(last, last)
        if locale == "it" and single:
            impure = gender == "m" and _IMPURE.match(noun)
            last = "uno" if impure else "un" if noun[0] in "aeiou" else last
        said = f"{head} {last}".strip()
        return said.replace("entos", "entas") if gender == "f" and locale == "pt_BR" else said

    def _mixed(self, match: Any) -> str:
        """The words for a whole number, a fraction and their noun: "due tazze e mezza"."""
        part, whole, unit = match["part"], int(match["whole"]), match["unit"]
        part = VULGAR.get(part, part)
        noun = match["next"] or ""
        if unit:
            noun = self._units[unit].one if whole == 1 else self._units[unit].many
        if self._words["locale"] == "hi":
            return f"{self._hindi_share(whole, part)} {noun}".rstrip()
        linked = noun in entries(self._words["no noun behind a fraction"])
        gender = (self._units[unit].gender if unit else self._gender(noun or "o", whole)) or "m"
        said = regex.sub(r" d[ei]$", "", self._pairs("fractions")[part])
        if part == "1/2":
            said = {"mezzo": "mezza", "meio": "meia", "un demi": "un demie"}[said] if gender == "f" else said
        joint = self._words["and"] or "et"
        head = self._counted(whole, CountedUnit("", "", gender)).strip()
        counted = head if linked or not noun else f"{head} {noun}"
        said = said.removeprefix("un ") if part == "1/2" else said
        return f"{counted} {joint} {said}{f' {noun}' if linked else ''}{last_stop(match) if unit else ''}"

    def _hindi_share(self, whole: int, part: str) -> str:
        """The words for a whole number and a fraction in Hindi. Quarters are counted from the nearest whole
        number: a quarter more, half more, a quarter less."""
        if part == "1/2":
            return _HALVES.get(whole) or f"साढ़े {self._say(whole)}"
        if part in ("1/4", "3/4"):
            return f"सवा {self._say(whole)}" if part == "1/4" else f"पौने {self._say(whole + 1)}"
        return f"{self._say(whole)} {self._pairs('fractions')[part]}"

    def _share(self, match: Any) -> str:
        """The words for a fraction of a unit, or of what the next word names: "mezzo litro"."""
        part, unit = match["part"], match["unit"]
        said = self._pairs("fractions")[VULGAR.get(part, part)]
        noun = self._units[unit].one if unit else match["next"]
        gender = self._units[unit].gender if unit else self._gender(noun, 1)
        if gender == "f" and said in ("mezzo", "meio"):
            said = {"mezzo": "mezza", "meio": "meia"}[said]
        if gender == "f" and said == "un demi":
            said = "une demi"
        if noun in entries(self._words["no noun behind a fraction"]):
            said = regex.sub(r" d[ei]$", "", said)
        return f"{said} {noun}{last_stop(match)}" if unit else said

    def _half(self, match: Any) -> str | None:
        """The words for a half behind its noun, as in `1 h 1/2`: "et demie"."""
        if self._words["locale"] == "hi":
            return None
        noun = match["noun"]
        gender = self._units[noun].gender if noun in self._units else self._gender(noun, 2)
        said = self._pairs("fractions")["1/2"].removeprefix("un ")
        said = _HALF_OF_ONE[said] if gender == "f" else said
        return said if match["linked"] else f"{self._words['and'] or 'et'} {said}"
