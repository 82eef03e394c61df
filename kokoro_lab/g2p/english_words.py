"""How misaki reads the words of a tagged English sentence: which parts it looks up, and how it joins them.

A word may be made of several parts, such as `state-of-the-art` or `MP3`. It is read from its end: at each
step, the longest run of parts that the dictionary knows is read as one. The words of a sentence are also read
from the last to the first, since the sound of `the` and `to` depends on the word after them. The rules are
those of `misaki/en.py` 0.9.4 (hexgrad, Apache License 2.0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import regex

from kokoro_lab.g2p.dictionary import PRIMARY, VOWELS, Dictionary, Following, plain, stressed
from kokoro_lab.g2p.english_numbers import CURRENCIES, read_number

UNKNOWN = "❓"
SPLIT_WORDS_KEPT = 4096
"""The division of this many words into parts is remembered, those used last."""
MOST_PARTS = 12
"""The most parts of one word. Every run of neighbouring parts is looked up. Without a limit, a word of 800
parts, such as a row of `1/`, would take minutes."""

_PART = regex.compile(
    r"^['‘’]+|\p{Lu}(?=\p{Lu}\p{Ll})|(?:^-)?(?:\d?[,.]?\d)+|[-_]+|['‘’]{2,}"
    r"|\p{L}*?(?:['‘’]\p{L})*?\p{Ll}(?=\p{Lu})|\p{L}+(?:['‘’]\p{L})*|[^-_\p{L}'‘’\d]|['‘’]+$"
)
_SILENT = frozenset("',-._‘’/")
_MARKS = frozenset(';:,.!?—…"“”')
_PAUSES = _MARKS - frozenset('"“”')
_CONSONANTS = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ")
_DIPHTHONGS = frozenset("AIOQWYʤʧ")
_MARK_TAGS = frozenset((".", ",", "-LRB-", "-RRB-", "``", '""', "''", ":", "$", "#", "NFP"))
_SAID_FOR_TAG = {"-LRB-": "(", "-RRB-": ")", "``": "“", '""': "”", "''": "”"}


@dataclass(slots=True)
class EnglishToken:
    """A token, or a part of one. `phonemes` is None until it is read.

    `alias` is a word that is read instead of the token; `currency` is the sign before a number. `first` says
    whether the token begins a word, `apart` whether a space goes before its phonemes.
    """

    text: str
    tag: str
    whitespace: str
    phonemes: str | None = None
    alias: str | None = None
    currency: str | None = None
    first: bool = True
    apart: bool = False


def read(
    tokens: Sequence[EnglishToken], dictionary: Dictionary, otherwise: Callable[[str], str | None]
) -> list[EnglishToken]:
    """Words with their phonemes, in order; tokens that have phonemes already keep them.

    Parameters
    ----------
    tokens : sequence of EnglishToken
        The tokens of one sentence.
    dictionary : Dictionary
    otherwise : callable
        Returns the phonemes of a text that the dictionary cannot read, or None.

    Returns
    -------
    list of EnglishToken
        One token for each word. Its phonemes are None, or contain `UNKNOWN`, if nothing could read it.
    """
    words: list[EnglishToken] = []
    following = Following()
    for parts in reversed(_in_words(tokens)):
        if len(parts) == 1:
            word = parts[0]
            if word.phonemes is None:
                word.phonemes = _look_up(word, dictionary, following)
            if word.phonemes is None:
                word.phonemes = otherwise(word.text)
            following = _before(word, word.phonemes, following)
        else:
            following = _read_parts(parts, dictionary, otherwise, following)
            word = replace(_joined(parts), phonemes=_joined_phonemes(parts))
        if word.phonemes:
            word.phonemes = word.phonemes.replace("ɾ", "T").replace("ʔ", "t")
        words.append(word)
    return words[::-1]


def _in_words(tokens: Sequence[EnglishToken]) -> list[list[EnglishToken]]:
    """The parts of each word. A mark, or a token that has phonemes already, is a word by itself."""
    words: list[list[EnglishToken]] = []
    goes_on = False
    currency: str | None = None
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        parts = _parts(token)
        for j, part in enumerate(parts):
            if part.phonemes is None and part.tag == "$" and part.text in CURRENCIES:
                currency, part.phonemes = part.text, ""  # it is said after the number
            elif part.phonemes is None:
                part.phonemes = _mark(part)
            if part.phonemes is None and currency is not None:
                if part.tag != "CD":
                    currency = None
                elif j + 1 == len(parts) and (after is None or after.tag != "CD"):
                    part.currency = currency
            elif part.text == "2" and 0 < j < len(parts) - 1:
                between = parts[j - 1].text[-1] + parts[j + 1].text[0]
                part.alias = "to" if between.isalpha() else None  # `B2B`
            is_whole = part.phonemes is not None or part.alias is not None
            part.first = is_whole or not goes_on
            if part.first or len(words[-1]) == MOST_PARTS:
                words.append([part])
            else:
                words[-1].append(part)
            goes_on = not is_whole and not part.whitespace
    return words


def _parts(token: EnglishToken) -> list[EnglishToken]:
    if token.phonemes is not None:
        return [token]
    parts = [EnglishToken(text, token.tag, "") for text in _split(token.text)]
    parts[-1].whitespace = token.whitespace
    return parts


@lru_cache(SPLIT_WORDS_KEPT)
def _split(word: str) -> tuple[str, ...]:
    """Split a word at hyphens, between letters and digits, and where a capital begins a word."""
    return tuple(_PART.findall(word))


def _mark(part: EnglishToken) -> str | None:
    """If `part` is a punctuation mark: its phonemes (the mark itself, or an empty string if it is silent);
    else None."""
    if part.tag == ":" and part.text in ("-", "–"):
        return "—"
    if part.tag in _MARK_TAGS and not (part.text.isascii() and part.text.isalpha()):
        return _SAID_FOR_TAG.get(part.tag) or "".join(c for c in part.text if c in _MARKS)
    return None


def _look_up(token: EnglishToken, dictionary: Dictionary, following: Following) -> str | None:
    word, currency = plain(token.text if token.alias is None else token.alias), token.currency
    found = dictionary.read(word, token.tag, following)
    if found is None:
        return read_number(dictionary, word, currency, first=token.first)
    unit = dictionary.inflected(CURRENCIES[currency][0] + "s", "s") if currency in CURRENCIES else None
    return f"{found} {unit}" if unit else found


def _before(token: EnglishToken, phonemes: str | None, following: Following) -> Following:
    """The facts about `token`, read as `phonemes`, that the word before it depends on."""
    vowel = following.vowel
    for symbol in phonemes or "":
        if symbol in VOWELS or symbol in _CONSONANTS or symbol in _PAUSES:
            vowel = None if symbol in _PAUSES else symbol in VOWELS
            break
    is_to = token.text in ("to", "To") or (token.text == "TO" and token.tag in ("TO", "IN"))
    return Following(vowel, is_to)


def _read_parts(
    parts: Sequence[EnglishToken],
    dictionary: Dictionary,
    otherwise: Callable[[str], str | None],
    following: Following,
) -> Following:
    """Read a word from its end: at each step, the longest run of parts that the dictionary knows. If it knows
    no run that ends with the next part, and this part is no silent mark, `otherwise` reads the whole word."""
    left, right = 0, len(parts)
    while left < right:
        run = parts[left:right]
        joined = _joined(run)
        found = _look_up(joined, dictionary, following)
        if found is not None:
            _say_as_one(run, found)
            following = _before(joined, found, following)
            left, right = 0, left
        elif left + 1 < right:
            left += 1
        else:
            left, right = 0, right - 1
            if not _SILENT.issuperset(parts[right].text):
                _say_as_one(parts, otherwise(_joined(parts).text))
                return following
            parts[right].phonemes = ""
    _stress_together(parts)
    return following


def _say_as_one(parts: Sequence[EnglishToken], phonemes: str | None) -> None:
    parts[0].phonemes = phonemes
    for part in parts[1:]:
        part.phonemes = ""


def _stress_together(parts: Sequence[EnglishToken]) -> None:
    """Join the parts of a word, with fewer primary stresses. A word with letters and digits, or with a slash,
    keeps its stresses, and has a space between its parts."""
    text = _joined(parts).text
    kinds = {(c.isalpha(), c.isascii() and c.isdigit()) for c in text if c not in _SILENT}
    apart = " " in text or "/" in text or len(kinds) > 1
    for part in parts[1:]:
        part.apart = apart
    said = [
        (PRIMARY in part.phonemes, _weight(part.phonemes), i) for i, part in enumerate(parts) if part.phonemes
    ]
    if apart or len(said) < 2:
        return
    weaker = []
    if len(said) == 2 and len(parts[said[0][2]].text) == 1:
        weaker = said[1:]
    elif sum(is_primary for is_primary, _, _ in said) > (len(said) + 1) // 2:
        weaker = sorted(said)[: len(said) // 2]
    for _, _, i in weaker:
        parts[i].phonemes = stressed(parts[i].phonemes or "", -0.5)


def _weight(phonemes: str) -> int:
    return sum(2 if symbol in _DIPHTHONGS else 1 for symbol in phonemes)


def _joined(parts: Sequence[EnglishToken]) -> EnglishToken:
    """The parts as one token, without phonemes. Its tag is that of the part with the most capitals."""
    last = parts[-1]
    text = "".join(part.text + part.whitespace for part in parts[:-1]) + last.text
    tag = max(parts, key=lambda part: sum(1 + (c != c.lower()) for c in part.text)).tag
    currency = max((part.currency for part in parts if part.currency), default=None)
    return EnglishToken(text, tag, last.whitespace, None, None, currency, parts[0].first, parts[0].apart)


def _joined_phonemes(parts: Sequence[EnglishToken]) -> str:
    phonemes = ""
    for part in parts:
        if part.apart and part.phonemes and phonemes and not phonemes[-1].isspace():
            phonemes += " "
        phonemes += UNKNOWN if part.phonemes is None else part.phonemes
    return phonemes
