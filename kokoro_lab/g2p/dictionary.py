"""misaki's English dictionaries, and misaki's rules for their words and for forms of these (-s, -ed, -ing).

The rules are those of `misaki/en.py` 0.9.4 (hexgrad, Apache License 2.0), which cannot be imported without
spaCy. They are followed to the letter: tests compare 2,000 texts with what misaki itself reads.
"""

from __future__ import annotations

import re
import unicodedata
from importlib.resources import files
from typing import NamedTuple

from kokoro_lab.g2p.entries import Entries

PRIMARY, SECONDARY = "ˈˌ"
VOWELS = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ")

_TAPPED = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
"""Sounds after which a `t` becomes a tap in American English."""
_ADDRESS_MARKS = {".": "dot", "/": "slash"}
_SIGNS = {"%": "percent", "&": "and", "+": "plus", "@": "at"}
_WORD_CLASSES = {"VB": "VERB", "NN": "NOUN", "ADV": "ADV", "RB": "ADV", "ADJ": "ADJ", "JJ": "ADJ"}
"""Beginning of a tag → the class of its words."""
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'-")
_ENDINGS = {
    "s": ((r".+[^s]s", 1, ""), (r".+'s|.{2,}[^i]es", 2, ""), (r".{2,}ies", 3, "y")),
    "ed": ((r".{2,}[^d]d", 1, ""), (r".{2,}[^e]ed", 2, "")),
    "ing": ((r".{3,}ing", 3, ""), (r".{2,}ing", 3, "e"), (r".+(?:([bcdgklmnprstvxz])\1|ck)ing", 4, "")),
}
"""For each ending: the words that may have it, and how many letters to remove and which to add for the stem.
The first known stem counts."""
_CAPITALISED_STRESS, _CAPITALS_STRESS = 0.5, 2.0


class Following(NamedTuple):
    """The word that follows: whether it begins with a vowel (None before a pause or the end), and whether it
    is `to`."""

    vowel: bool | None = None
    to: bool = False


class Dictionary:
    """Phonemes of English words, American or British, in misaki's symbols.

    Parameters
    ----------
    british : bool

    Attributes
    ----------
    golds, silvers : Entries
        Dictionaries; `golds` is searched before `silvers`.
    """

    def __init__(self, *, british: bool) -> None:
        self.british = british
        self.golds, self.silvers = (
            Entries((files("misaki") / f"data/{'gb' if british else 'us'}_{name}.json").read_bytes())
            for name in ("gold", "silver")
        )

    def read(self, word: str, tag: str, following: Following) -> str | None:
        """Phonemes of `word`, written as `plain` writes it, with the Penn tag `tag`; None if the word is
        unknown."""
        stress = None
        if word != word.lower():
            stress = _CAPITALS_STRESS if word == word.upper() else _CAPITALISED_STRESS
        return self._word(word, tag, stress, following)

    def lookup(
        self,
        word: str,
        tag: str | None = None,
        stress: float | None = None,
        following: Following | None = None,
    ) -> str | None:
        """Phonemes of a word in the dictionaries. A word that is not there is spelt letter by letter."""
        is_name = False
        if word == word.upper() and word not in self.golds:
            word, is_name = word.lower(), tag == "NNP"
        found = self.golds.get(word)
        if found is None and not is_name:
            found = self.silvers.get(word)
        if isinstance(found, dict):
            if following and following.vowel is None and "None" in found:
                tag = "None"
            elif tag not in found:
                tag = _word_class(tag)
            found = found[tag] if tag in found else found["DEFAULT"]
        if found is None or (is_name and PRIMARY not in found):
            return self.spelt(word)
        return stressed(found, stress)

    def spelt(self, word: str) -> str | None:
        """A word spelt letter by letter, with the stress on the last letter; None if a letter has no name."""
        letters = [self.golds.get(c.upper()) for c in word if c.isalpha()]
        if not all(letters):
            return None
        return PRIMARY.join(stressed("".join(map(str, letters)), 0).rsplit(SECONDARY, 1))

    def _special(self, word: str, tag: str, stress: float | None, following: Following) -> str | None:
        """Phonemes of words with rules of their own: marks that are said as words, abbreviations with points,
        and words whose sound depends on class or neighbours (`a`, `the`, `to`). None for any other word."""
        if tag == "ADD" and word in _ADDRESS_MARKS:
            return self.lookup(_ADDRESS_MARKS[word], None, -0.5, following)
        if word in _SIGNS:
            return self.lookup(_SIGNS[word], None, None, following)
        if "." in word.strip(".") and word.replace(".", "").isalpha() and max(map(len, word.split("."))) < 3:
            return self.spelt(word)
        if word in ("a", "A"):
            return "ɐ" if tag == "DT" else "ˈA"
        if word in ("am", "Am", "AM"):
            if tag.startswith("NN"):
                return self.spelt(word)
            is_stressed = following.vowel is None or word != "am" or (stress and stress > 0)
            return str(self.golds["am"]) if is_stressed else "ɐm"
        if word in ("an", "An", "AN"):
            return self.spelt(word) if word == "AN" and tag.startswith("NN") else "ɐn"
        if word == "I" and tag == "PRP":
            return SECONDARY + "I"
        if word in ("by", "By", "BY") and _word_class(tag) == "ADV":
            return "bˈI"
        if word in ("to", "To") or (word == "TO" and tag in ("TO", "IN")):
            if following.vowel is None:
                return str(self.golds["to"])
            return "tʊ" if following.vowel else "tə"
        if word in ("in", "In") or (word == "IN" and tag != "NNP"):
            return (PRIMARY if following.vowel is None or tag != "IN" else "") + "ɪn"
        if word in ("the", "The") or (word == "THE" and tag == "DT"):
            return "ði" if following.vowel else "ðə"
        if tag == "IN" and word.lower() in ("vs", "vs."):
            return self.lookup("versus", None, None, following)
        if word in ("used", "Used", "USED"):
            habit = tag in ("VBD", "JJ") and following.to
            return self.lookup("used", "VBD" if habit else "DEFAULT")
        return None

    def _word(self, word: str, tag: str, stress: float | None, following: Following) -> str | None:
        special = self._special(word, tag, stress, following)
        if special is not None:
            return special
        if self._is_said_in_lower_case(word, tag, stress, following):
            word = word.lower()
        for known in (word, word[:-2] + "'s" if word.endswith("s'") else "", word.removesuffix("'")):
            if known and self._knows(known):
                return self.lookup(known, tag, stress, following)
        for ending in _ENDINGS:
            found = self.inflected(word, ending, tag, stress, following)
            if found is not None:
                return found
        return None

    def _is_said_in_lower_case(self, word: str, tag: str, stress: float | None, following: Following) -> bool:
        """Whether a word such as `Wordy` or `WORDY` is read as `wordy`, since the dictionaries know only
        that. Names of up to seven letters are not."""
        lower = word.lower()
        if len(word) < 2 or word == lower or not word.replace("'", "").isalpha():
            return False
        if (tag == "NNP" and len(word) <= 7) or word in self.golds or word in self.silvers:
            return False
        if word != word.upper() and word[1:] != word[1:].lower():
            return False
        return (
            lower in self.golds
            or lower in self.silvers
            or any(self.inflected(lower, ending, tag, stress, following) for ending in _ENDINGS)
        )

    def _knows(self, word: str) -> bool:
        """Whether `lookup` can read the word: it is in a dictionary, or its capitals can be spelt."""
        if word in self.golds or word in _SIGNS or word in self.silvers:
            return True
        if not word.isalpha() or not _LETTERS.issuperset(word):
            return False
        if len(word) == 1 or (word == word.upper() and word.lower() in self.golds):
            return True
        return word[1:] == word[1:].upper()

    def inflected(
        self,
        word: str,
        ending: str,
        tag: str | None = None,
        stress: float | None = None,
        following: Following | None = None,
    ) -> str | None:
        """Phonemes of `word` if it is a known word with an `ending` of `_ENDINGS`, else None."""
        for pattern, dropped, added in _ENDINGS[ending]:
            stem = word[:-dropped] + added
            if re.fullmatch(pattern, word) and self._knows(stem):
                stress = 0.5 if ending == "ing" and stress is None else stress
                form = {"s": self.s_form, "ed": self.ed_form, "ing": self.ing_form}[ending]
                return form(self.lookup(stem, tag, stress, following))
        return None

    def s_form(self, stem: str | None) -> str | None:
        """Phonemes with the -s of a plural, a genitive or a verb."""
        return s_form(stem, british=self.british) if stem else None

    def ed_form(self, stem: str | None) -> str | None:
        if not stem:
            return None
        if stem[-1] in "pkfθʃsʧ":
            return stem + "t"
        if stem[-1] == "d":
            return stem + ("ɪd" if self.british else "ᵻd")
        if stem[-1] != "t":
            return stem + "d"
        if self.british or len(stem) < 2:
            return stem + "ɪd"
        return stem[:-1] + "ɾᵻd" if stem[-2] in _TAPPED else stem + "ᵻd"

    def ing_form(self, stem: str | None) -> str | None:
        if not stem or (self.british and stem[-1] in "əː"):
            return None
        if not self.british and len(stem) > 1 and stem[-1] == "t" and stem[-2] in _TAPPED:
            return stem[:-1] + "ɾɪŋ"
        return stem + "ɪŋ"


def s_form(phonemes: str, *, british: bool) -> str:
    """The phonemes with the -s of a plural, a genitive or a verb."""
    if phonemes[-1] in "ptkfθ":
        return phonemes + "s"
    if phonemes[-1] in "szʃʒʧʤ":
        return phonemes + ("ɪz" if british else "ᵻz")
    return phonemes + "z"


def plain(text: str) -> str:
    """`text` as the dictionaries write it: in Unicode's form NFKC, with straight apostrophes and ASCII
    digits."""
    text = unicodedata.normalize("NFKC", text.replace("‘", "'").replace("’", "'"))
    return "".join(map(_plain_digit, text))


def stressed(phonemes: str, stress: float | None) -> str:
    """`phonemes` with more or less stress. Below -1, all stress is removed. At -1, -0.5 and 0, a primary
    stress becomes the only secondary one. At 0, 0.5 and 1, a word without stress gets a secondary one. From 1
    on, a secondary stress becomes a primary one. Above 1, a word without stress gets a primary one."""
    if stress is None:
        return phonemes
    if stress < -1:
        return phonemes.replace(PRIMARY, "").replace(SECONDARY, "")
    if stress == -1 or (stress in (0, -0.5) and PRIMARY in phonemes):
        return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)
    if PRIMARY not in phonemes and SECONDARY not in phonemes:
        mark = SECONDARY if stress in (0, 0.5, 1) else PRIMARY if stress > 1 else ""
        return _before_vowel(mark, phonemes)
    if stress >= 1 and PRIMARY not in phonemes:
        return phonemes.replace(SECONDARY, PRIMARY)
    return phonemes


def _before_vowel(mark: str, phonemes: str) -> str:
    at = next((i for i, symbol in enumerate(phonemes) if symbol in VOWELS), None)
    return phonemes if at is None else phonemes[:at] + mark + phonemes[at:]


def _word_class(tag: str | None) -> str | None:
    return next((name for start, name in _WORD_CLASSES.items() if tag and tag.startswith(start)), tag)


def _plain_digit(character: str) -> str:
    """A digit of any kind as an ASCII digit (`²` as 2, `٣` as 3). Every other character stays."""
    if not character.isdigit():
        return character
    value = unicodedata.numeric(character)
    return str(int(value)) if value == int(value) else character
