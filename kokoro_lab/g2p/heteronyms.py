"""Heteronyms: words that are spelt alike and said differently, read by their context.

misaki picks a reading by Penn tag alone. Here each heteronym of a sentence gets the tag of the reading
that its context asks for, before misaki looks it up; where the context says nothing, the tagger's stands.
Two kinds of words are told apart:

- by word class (`record`, `use`, `separate`): noun or verb, weighed anew in `word_class`;
- by meaning (`bass`, `lead`, `bow`): cues that `heteronyms.json` lists for each reading, see `senses`.

`heteronyms.json` also holds what misaki's lexicon lacks, American and British (null: misaki's stands):
`classes`, the phonemes of a word by word class; `fixed`, forms that have one reading, but not misaki's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from kokoro_lab.g2p.senses import Senses, reading_tag
from kokoro_lab.g2p.special_words import SPECIAL
from kokoro_lab.g2p.word_class import TaggedSentence, is_verb


class HeteronymToken(Protocol):
    """What is read and written of misaki's `MToken`."""

    text: str
    tag: str
    phonemes: str | None


class Heteronyms:
    """Decides readings for one accent.

    Parameters
    ----------
    golds : dict of str to phonemes, or to a dict of phonemes by tag
        misaki's first lexicon. It is extended, in place, by the readings that it lacks.
    plural : callable
        misaki's rule for the -s form of a word's phonemes.
    british : bool
    """

    def __init__(
        self, golds: dict[str, Any], plural: Callable[[str], str | None], *, british: bool = False
    ) -> None:
        self._senses = _senses()
        self._teach(golds, plural, british=british)
        self._classes = {word: entry for word, entry in golds.items() if _by_class(word, entry)}
        self._golds = golds

    def _teach(self, golds: dict[str, Any], plural: Callable[[str], str | None], *, british: bool) -> None:
        accent = int(british)
        for word, said in _data()["fixed"].items():
            if said[accent]:
                golds[word] = golds[word.capitalize()] = said[accent]
        for word, by_class in _data()["classes"].items():
            entry = {name: said[accent] for name, said in by_class.items() if said[accent]}
            if entry:
                entry.setdefault("DEFAULT", next(iter(entry.values())))
                _enter(golds, word, entry)
                _enter(golds, word + "s", {name: plural(said) or said for name, said in entry.items()})
        for word, readings in self._senses.readings().items():
            entry = {reading_tag(name): said[accent] for name, said in readings.items()}
            for form in (word, word.capitalize()):  # `Polish` has an entry of its own, `Bass` has not
                was = golds.get(form, next(iter(entry.values())))
                golds[form] = (was if isinstance(was, dict) else {"DEFAULT": was}) | entry

    def decide(self, tokens: Sequence[HeteronymToken]) -> None:
        """Give every heteronym in `tokens` whose reading is clear the tag that stands for it.

        Tokens that have phonemes already, from a lexicon or a user, are left alone.
        """
        sentence: TaggedSentence | None = None
        for i, token in enumerate(tokens):
            word = token.text.lower()
            if token.phonemes is not None or not self._concerns(word):
                continue
            if sentence is None:
                sentence = TaggedSentence.of([t.text for t in tokens], [t.tag for t in tokens])
            tag = self._tag(sentence, i)
            if tag is not None:
                token.tag = tag

    def _concerns(self, word: str) -> bool:
        return word in SPECIAL or word in self._senses or word in self._classes or self._inflected(word)

    def _inflected(self, word: str) -> bool:
        """Whether misaki would make the word of a heteronym and -ed or -ing: always the verb."""
        if not word.endswith(("ed", "ing")) or word in self._golds:
            return False
        stem = word[:-2] if word.endswith("ed") else word[:-3]
        return any(s in self._classes for s in (stem, stem + "e", stem[:-1])) and stem[-1:].isalpha()

    def _tag(self, sentence: TaggedSentence, i: int) -> str | None:
        word = sentence.words[i]
        if word in SPECIAL:
            return SPECIAL[word](sentence, i)
        if word in self._senses:
            return self._senses.decide(sentence, i)
        if word in self._classes:
            return self._class_tag(sentence, i)
        return "VBG" if word.endswith("ing") else "VBN"

    def _class_tag(self, sentence: TaggedSentence, i: int) -> str | None:
        word, tag = sentence.words[i], sentence.tags[i]
        entry = self._classes[word]
        if is_verb(sentence, i):
            return None if tag.startswith("VB") else "VB"
        if "ADJ" in entry and "VERB" not in entry:
            return "JJ"
        if tag.startswith("VB") or (tag == "JJ" and sentence.tag(i + 1).startswith("NN")):
            return "NN"  # also before a noun: `import duties` have the stress of the noun
        return None


def _by_class(word: str, entry: object) -> bool:
    """Whether verb or not decides: not for `inside` or `arsenic`, which are adjectives, adverbs and nouns."""
    if not isinstance(entry, dict) or word != word.lower() or len(set(entry.values())) < 2:
        return False
    if "VERB" in entry or "NOUN" in entry:
        return True
    return "ADJ" in entry and (word.endswith("ate") or word in ("diffuse", "converse"))


def _enter(golds: dict[str, Any], word: str, entry: Mapping[str, str]) -> None:
    for form in (word, word.capitalize()):
        golds[form] = dict(entry)


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath("heteronyms.json").read_text("utf-8"))
    return data


@cache
def _senses() -> Senses:
    return Senses(_data()["senses"])
