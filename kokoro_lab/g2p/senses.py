"""Heteronyms decided by meaning: each reading has cues, and the cues of a sentence are added up.

A reading of `heteronyms.json` may have these cues, whose weights are the constants below:

- `phrases`: words around the heteronym `~`, in order and without gaps. `a/the` is either word, `*` any
  one; names in capitals are beginnings of Penn tags (`NN`), `END` is the beginning or end of the sentence,
  or a mark that ends a clause.
- `before`, `after`: words next to the heteronym. `near`: words anywhere in the sentence, which weigh more if
  they are close.
- `verb`, `noun`, `capital`: how much speaks for the reading if the word is a verb, if it is not, or
  if it is written with a capital inside a sentence.

Words are compared by their stems. The reading with the greatest sum is taken if it leads clearly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kokoro_lab.g2p.word_class import TaggedSentence, is_verb

PHRASE = 4.0
ADJACENT = 2.5
NEAR = 1.5
FAR = 0.9
NEAR_WORDS = 5
LEAD = 0.5
"""By how much the best reading's sum must exceed the next one's."""

Pattern = tuple[tuple[frozenset[str], ...], tuple[frozenset[str], ...]]


def reading_tag(reading: str) -> str:
    """The made-up tag for a reading that no Penn tag names."""
    return f"reading:{reading}"


def stem(word: str) -> str:
    """A word without the commonest endings. The stem may be rough, since both sides of every comparison are
    stems."""
    word = word.removesuffix("'s")
    for ending, instead in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return (word[: -len(ending)] + instead).removesuffix("e")
    return word


@dataclass(frozen=True, slots=True)
class Cues:
    """The cues for one reading."""

    phrases: tuple[Pattern, ...] = ()
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    verb: float = 0.0
    noun: float = 0.0
    capital: float = 0.0

    @classmethod
    def of(cls, cues: Mapping[str, Any]) -> Cues:
        unknown = cues.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            raise ValueError(f"no such cue: {', '.join(sorted(unknown))}")
        stems = {name: _stems(cues[name]) for name in ("before", "after", "near") if name in cues}
        phrases = tuple(_pattern(phrase) for phrase in cues.get("phrases", ()))
        return cls(**{**cues, **stems, "phrases": phrases})


class Senses:
    """Every word of the table with its readings and their cues.

    Raises
    ------
    ValueError
        A phrase without its `~`, or a cue of no known kind.
    """

    def __init__(self, table: Mapping[str, Mapping[str, Any]]) -> None:
        self._table = table
        self._cues = {
            word: {reading: Cues.of(cues) for reading, cues in entry["cues"].items()}
            for word, entry in table.items()
        }

    def __contains__(self, word: str) -> bool:
        return word in self._table

    def readings(self) -> dict[str, dict[str, list[str]]]:
        """American and British phonemes of each reading of each word."""
        return {word: entry["readings"] for word, entry in self._table.items()}

    def decide(self, sentence: TaggedSentence, i: int) -> str | None:
        """The tag of the reading that the context of token `i` asks for, or None if it is not clear."""
        word = sentence.words[i]
        weights = dict.fromkeys(self._table[word]["readings"], 0.0)
        stems = [stem(other) for other in sentence.words]
        verb = is_verb(sentence, i)
        for reading, cues in self._cues[word].items():
            weights[reading] += cues.verb if verb else cues.noun
            weights[reading] += cues.capital * _capital_inside(sentence, i)
            weights[reading] += sum(_in_context(cues, sentence, stems, i))
        (best, most), (_, next_most) = sorted(weights.items(), key=lambda item: -item[1])[:2]
        if most - next_most >= LEAD:
            return reading_tag(best)
        otherwise = self._table[word].get("otherwise")
        return reading_tag(otherwise) if otherwise else None


def _in_context(cues: Cues, sentence: TaggedSentence, stems: list[str], i: int) -> Iterator[float]:
    yield from (PHRASE for phrase in cues.phrases if _matches(phrase, sentence, i))
    if i > 0 and stems[i - 1] in cues.before:
        yield ADJACENT
    if i + 1 < len(stems) and stems[i + 1] in cues.after:
        yield ADJACENT
    for j, other in enumerate(stems):
        if other in cues.near and j != i:
            yield NEAR if abs(j - i) <= NEAR_WORDS else FAR


def _capital_inside(sentence: TaggedSentence, i: int) -> bool:
    return i > 0 and sentence.texts[i][:1].isupper() and sentence.words[i - 1] not in ('"', "“", "‘", ":")


def _pattern(phrase: str) -> Pattern:
    before, tilde, after = phrase.partition("~")
    if not tilde:
        raise ValueError(f"no place for the word, written ~, in {phrase!r}")
    sides = (tuple(frozenset(part.split("/")) for part in side.split()) for side in (before, after))
    first, last = sides
    return first, last


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


def _matches(pattern: Pattern, sentence: TaggedSentence, i: int) -> bool:
    before, after = pattern
    places = [*zip(range(i - len(before), i), before, strict=True), *enumerate(after, i + 1)]
    return all(_fits(sentence, place, wanted) for place, wanted in places)


def _fits(sentence: TaggedSentence, i: int, wanted: frozenset[str]) -> bool:
    word, tag = sentence.word(i), sentence.tag(i)
    if tag in ("", ".", ":") and "END" in wanted:
        return True
    if word in wanted:
        return True
    if "*" in wanted:
        return bool(word)
    return any(name.isupper() and tag.startswith(name) for name in wanted)
