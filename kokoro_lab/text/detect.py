"""Detects the language of each Latin word of a sentence.

One word is little evidence, so all words of a sentence are weighed together. For each word and each language,
the evidence is the probability of the word's letters and some features of its spelling. A Viterbi search
finds the sequence of languages with the most evidence, less a cost for each change of language. Consecutive
words of another language than the request's are accepted only if the sum of their evidence is large: in plain
English, a false change is worse than a missed one.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, pairwise

from kokoro_lab.text.language_table import LanguageTable
from kokoro_lab.text.tables import words as word_lists

LATIN = ("en", "es", "fr", "it", "pt")
"""Languages that are distinguished word by word."""
FUNCTION_WORDS = {language: word_lists(__package__)[f"{language} function word"] for language in LATIN}
"""Short words that show a language where statistics of letters cannot. The lists need not be complete. A word
in several lists is no evidence between their languages."""
PHRASES: dict[str, list[tuple[str, ...]]] = {}
"""Phrases that all languages share, such as Latin ones, as lists of words by their first word. Such a phrase
takes the language around it."""
for _phrase in word_lists(__package__)["phrase of every language"]:
    PHRASES.setdefault(_phrase.split()[0], []).append(tuple(_phrase.split()))
OPENINGS = frozenset(word_lists(__package__)["opening of a letter"])
"""Words, besides `FUNCTION_WORDS`, that a name may follow and that are not part of the name."""
SWITCH_COST = 2.0
"""Cost of a change of language between two words, in nats; the next value is for a change at a mark, where
changes are likely."""
SWITCH_COST_AT_MARK = 0.75
THIRD_COST = 2.0
"""Further cost of a change between two languages of which neither is the request's."""
BASE_PRIOR = 0.5
"""What the request's language has ahead of the others in every word, before any evidence, in nats."""
FLOOR = 0.01
"""The least probability that a word gives any language, so that no single word can rule a language out."""
FUNCTION = 2.0
"""The penalty of a function word for the languages that do not have it, in nats."""
KNOWN, KNOWN_ACCENTED = 1.0, 4.0
"""The penalty, in nats, for all languages but the request's if the word is in the request's lexicon. It is
larger for a word with an accent (`naïve`, `cliché`), since the accent is evidence for other languages."""
NAME = 0.1
"""The penalty, in nats, for all languages but the request's if the word is a name, so that a name in doubt
takes the request's language."""
NAME_PARTICLE_LETTERS = 4
"""Longest word that may stand between the parts of a name."""
INVERTED = 1.5
"""The evidence for Spanish, in nats, that an inverted mark (`¿`, `¡`) gives each word between it and its
closing mark."""
EVIDENCE = 3.0
"""The evidence that a run needs to be accepted, in nats; the next value is for a single word."""
EVIDENCE_ALONE = 4.0

AMBIGUOUS, AMBIGUOUS_WORDS = -2.0, 2
"""A word with less than 2 nats of evidence against a language may still be of that language. Up to
`AMBIGUOUS_WORDS` such words between a run of that language and a mark join the run."""

Known = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class LatinWord:
    """A Latin word, with what the detector uses of its context.

    Parameters
    ----------
    text : str
        The word as it is written.
    opens : bool
        Whether a sentence or a quotation begins here, so that a capital letter is no sign of a name.
    after_mark : bool
        Whether a mark stands between it and the word before.
    inverted : bool
        Whether it stands between an inverted mark (`¿`, `¡`) and its closing one.
    """

    text: str
    opens: bool = False
    after_mark: bool = False
    inverted: bool = False


def detect(words: Sequence[LatinWord], base: str, known: Known | None = None) -> list[str]:
    """The language of each word, as a code of two letters, such as `fr`.

    Parameters
    ----------
    words : sequence of LatinWord
        The Latin words of one sentence, in order.
    base : str
        The language of the request, of two letters, one of `LATIN`.
    known : callable, optional
        Returns whether a lower-case word is in the lexicon of `base`.
    """
    if not words:
        return []
    if known is not None and not any(_suspicious(word, base, known) for word in words):
        return [base] * len(words)  # most sentences: the table is not even loaded for them
    tell_nothing = _between_names(words) | _titles(words) | _phrases(words)
    gains = [
        _name_gain(word, base) if k in tell_nothing or _is_name(word) else _gain(word, base, known)
        for k, word in enumerate(words)
    ]
    if all(sum(max(0.0, gain[language]) for gain in gains) < EVIDENCE for language in LATIN):
        return [base] * len(words)  # no run could be accepted
    marks = [word.after_mark for word in words]
    believed = _believed(_viterbi(gains, marks, base), gains, base, _in_doubt(words, known))
    return _to_marks(believed, gains, marks, base)


def _suspicious(word: LatinWord, base: str, known: Known) -> bool:
    """Whether a word may be of another language than `base`, so that the sentence must be examined."""
    plain = word.text.lower()
    if word.inverted:
        return True
    if _is_name(word) or plain in FUNCTION_WORDS[base]:
        return False
    return not known(plain) or any(plain in listed for listed in FUNCTION_WORDS.values())


def _gain(word: LatinWord, base: str, known: Known | None) -> dict[str, float]:
    """The evidence for each language against `base`, in nats; 0 for `base` itself."""
    inverted = _inverted(word)
    plain = word.text.lower()
    probabilities = _probabilities(plain)
    listed = [language for language in LATIN if plain in FUNCTION_WORDS[language]]
    lexical = 0.0
    if known is not None and known(_unaccented(plain)):
        lexical = KNOWN if plain.isascii() else KNOWN_ACCENTED
    score = {
        language: math.log(max(probabilities[language], FLOOR))
        - (FUNCTION if listed and language not in listed else 0.0)
        - (0.0 if language == base or language in listed else lexical)
        + inverted.get(language, 0.0)
        for language in LATIN
    }
    return {language: score[language] - score[base] - BASE_PRIOR * (language != base) for language in LATIN}


def _name_gain(word: LatinWord, base: str) -> dict[str, float]:
    inverted = _inverted(word)
    return {language: inverted.get(language, 0.0) - NAME * (language != base) for language in LATIN}


def _inverted(word: LatinWord) -> dict[str, float]:
    return {"es": INVERTED} if word.inverted else {}


def _between_names(words: Sequence[LatinWord]) -> set[int]:
    """Indices of one or two short words between capitalised words, such as `de la` in `Plaza de la Luz`."""
    capital = [word.text[:1].isupper() for word in words]
    found: set[int] = set()
    for first in range(1, len(words) - 1):
        for last in (first, first + 1):
            inner = range(first, last + 1)
            if (
                last + 1 < len(words)
                and capital[first - 1]
                and capital[last + 1]
                and not any(words[k].after_mark for k in (*inner, last + 1))
                and all(not capital[k] and len(words[k].text) <= NAME_PARTICLE_LETTERS for k in inner)
            ):
                found.update(inner)
    return found


def _titles(words: Sequence[LatinWord]) -> set[int]:
    """Indices of words that open a sentence before another capitalised word, as in `Santa Fe`, but not
    `Gracias` before `Maria`."""
    return {
        k
        for k, (word, following) in enumerate(pairwise(words))
        if word.text[:1].isupper()
        and not following.after_mark
        and _is_name(following)
        and (plain := word.text.lower()) not in OPENINGS
        and not any(plain in listed for listed in FUNCTION_WORDS.values())
    }


def _phrases(words: Sequence[LatinWord]) -> set[int]:
    """Indices of the words of `PHRASES`."""
    plain = tuple(word.text.lower() for word in words)
    return {
        k + i
        for k, first in enumerate(plain)
        for phrase in PHRASES.get(first, ())
        if plain[k : k + len(phrase)] == phrase
        for i in range(len(phrase))
    }


def _is_name(word: LatinWord) -> bool:
    """Whether a word has a capital within a sentence: a name or a brand, which takes the language around
    it."""
    text = word.text
    if len(text) == 1:
        return text.isupper() and text != "I"
    return text.isupper() or text[1:].lower() != text[1:] or (text[:1].isupper() and not word.opens)


def _unaccented(word: str) -> str:
    if word.isascii():
        return word
    return "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))


@lru_cache(maxsize=4096)
def _probabilities(word: str) -> dict[str, float]:
    return _table().probabilities(word)


@cache
def _table() -> LanguageTable:
    """The table, loaded when it is first needed: under 0.1 s, 5 MB."""
    return LanguageTable.load()


def _viterbi(gains: Sequence[dict[str, float]], after_mark: Sequence[bool], base: str) -> list[str]:
    """The most likely sequence of languages. It starts from `base`, so that beginning in another language
    costs too."""
    best = {language: 0.0 if language == base else -SWITCH_COST_AT_MARK for language in LATIN}
    best = {language: best[language] + gains[0][language] for language in LATIN}
    back: list[dict[str, str]] = []
    for gain, mark in zip(gains[1:], after_mark[1:], strict=True):
        cost = SWITCH_COST_AT_MARK if mark else SWITCH_COST
        came_from: dict[str, str] = {}
        now: dict[str, float] = {}
        for language in LATIN:
            reached = {before: best[before] - _cost(before, language, base, cost) for before in LATIN}
            # Of equally likely ways, the one that keeps the language is taken, then the request's language
            came_from[language] = max(LATIN, key=lambda b: (reached[b], b == language, b == base))
            now[language] = reached[came_from[language]] + gain[language]
        best = now
        back.append(came_from)
    path = [max(LATIN, key=lambda language: (best[language], language == base))]
    for came_from in reversed(back):
        path.append(came_from[path[-1]])
    return path[::-1]


def _cost(before: str, after: str, base: str, cost: float) -> float:
    if before == after:
        return 0.0
    return cost + (0.0 if base in (before, after) else THIRD_COST)


def _in_doubt(words: Sequence[LatinWord], known: Known | None) -> set[int]:
    """Indices of words of the request's lexicon that are also function words of several languages, such as
    `para`: alone, such a word is no sign of any of them."""
    return {
        k
        for k, word in enumerate(words)
        if known is not None
        and not word.inverted
        and known(plain := word.text.lower())
        and sum(plain in listed for listed in FUNCTION_WORDS.values()) > 1
    }


def _believed(path: list[str], gains: Sequence[dict[str, float]], base: str, in_doubt: set[int]) -> list[str]:
    """`path` with `base` in place of runs that have too little evidence. If only one word of a run is
    evidence, and it is in `in_doubt`, that is too little."""
    settled: list[str] = []
    for language, run in groupby(range(len(path)), key=path.__getitem__):
        indices = list(run)
        evidence = sum(gains[i][language] for i in indices)
        telling = {i for i in indices if gains[i][language] > 0}
        if len(telling) > 1:
            enough = evidence >= EVIDENCE
        else:
            enough = evidence >= EVIDENCE_ALONE and not telling <= in_doubt
        settled += [language if language == base or enough else base] * len(indices)
    return settled


def _to_marks(
    languages: list[str], gains: Sequence[dict[str, float]], marks: Sequence[bool], base: str
) -> list[str]:
    """Extend a run that ends a word or two before a mark up to the mark, if those words may be of either
    language."""
    count = len(languages)
    borders = {0, count} | {k for k in range(count) if marks[k]}
    for k in range(count):
        language = languages[k]
        if language == base:
            continue
        for edge in (range(k, max(-1, k - AMBIGUOUS_WORDS - 1), -1), range(k + 1, k + AMBIGUOUS_WORDS + 2)):
            stop = next((at for at in edge if at in borders), None)
            if stop is None:
                continue
            between = range(*sorted((stop, edge.start)))
            if all(languages[i] == base and gains[i][language] > AMBIGUOUS for i in between):
                languages[between.start : between.stop] = [language] * len(between)
    return languages
