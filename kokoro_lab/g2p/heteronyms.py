"""Decides by context how heteronyms are read: words that are spelt alike and said differently.

misaki picks a reading only by the word's Penn tag (its word class). Here each heteronym of a sentence gets
the tag of the reading that fits its context, before misaki looks it up. If the context does not decide, the
tagger's tag stays. Three kinds of words are told apart:

- by word class (`record`, `use`, `separate`): noun or verb, decided in `word_class`;
- by meaning (`bass`, `lead`, `bow`): cues that `heteronyms.json` lists for each reading, see `senses`;
- by tense or construction: `read`, `used`.

`heteronyms.json` also holds readings that misaki's dictionaries lack, each in American and British English
(`null`: misaki's own reading stays). `classes` has the phonemes of a word for each word class; `fixed` has
forms with a single reading, which differs from that of misaki.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from kokoro_lab.g2p.english_words import EnglishToken
from kokoro_lab.g2p.entries import Entries
from kokoro_lab.g2p.senses import Senses, reading_tag
from kokoro_lab.g2p.word_class import BE, BEFORE_INFINITIVE, DO, FUNCTION_WORDS, HAVE, TaggedSentence, is_verb

_PAST_TIMES, _PRESENT_HABITS = FUNCTION_WORDS["past times"], FUNCTION_WORDS["present habits"]
_PAST = _PAST_TIMES | FUNCTION_WORDS["past order"]
_PRESENT = _PRESENT_HABITS | FUNCTION_WORDS["present times"]


class Heteronyms:
    """Decides readings for one accent.

    Parameters
    ----------
    golds : Entries
        misaki's first dictionary. The readings that it lacks are added to it, in place.
    plural : callable
        misaki's rule for the -s form of a word's phonemes.
    british : bool
    """

    def __init__(self, golds: Entries, plural: Callable[[str], str | None], *, british: bool = False) -> None:
        self._senses = _senses()
        self._teach(golds, plural, british=british)
        self._classes = {word: entry for word, entry in golds.of_several_readings() if _by_class(word, entry)}
        self._golds = golds

    def _teach(self, golds: Entries, plural: Callable[[str], str | None], *, british: bool) -> None:
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
                was = golds.get(form) or next(iter(entry.values()))
                golds[form] = (was if isinstance(was, dict) else {"DEFAULT": was}) | entry

    def decide(self, tokens: Sequence[EnglishToken]) -> None:
        """Give each heteronym in `tokens` whose reading is clear the tag of that reading.

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
        return word in _SPECIAL or word in self._senses or word in self._classes or self._inflected(word)

    def _inflected(self, word: str) -> bool:
        """Whether misaki would read the word as a heteronym with -ed or -ing, which is always the verb."""
        if not word.endswith(("ed", "ing")) or word in self._golds:
            return False
        stem = word[:-2] if word.endswith("ed") else word[:-3]
        return any(s in self._classes for s in (stem, stem + "e", stem[:-1])) and stem[-1:].isalpha()

    def _tag(self, sentence: TaggedSentence, i: int) -> str | None:
        word = sentence.words[i]
        if word in _SPECIAL:
            return _SPECIAL[word](sentence, i)
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
    """Whether a word is read differently as a verb and otherwise. It is not for `inside` or `arsenic`, whose
    readings are adjectives, adverbs and nouns."""
    if not isinstance(entry, dict) or len(set(entry.values())) < 2:
        return False
    if "VERB" in entry or "NOUN" in entry:
        return True
    return "ADJ" in entry and (word.endswith("ate") or word in ("diffuse", "converse"))


def _enter(golds: Entries, word: str, entry: Mapping[str, str]) -> None:
    for form in (word, word.capitalize()):
        golds[form] = dict(entry)


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath("heteronyms.json").read_text("utf-8"))
    return data


@cache
def _senses() -> Senses:
    return Senses(_data()["senses"])


def _read(sentence: TaggedSentence, i: int) -> str | None:
    """The tag of `read`, past (as *red*) or present (as *reed*): decided by an auxiliary (`has`, `will`,
    `did`) and, without one, by the tense of the sentence."""
    j = sentence.before(i)
    word, tag = sentence.word(j), sentence.tag(j)
    if word == "to" or tag == "MD" or word in DO or word in BEFORE_INFINITIVE or word in ("please", "why"):
        return "VB"
    if sentence.word(i + 1) == "-" and sentence.word(i + 2) in ("only", "write", "me", "through", "aloud"):
        return "VB"
    if word in HAVE or word in BE or word in ("got", "gets", "get", "having"):
        return "VBN"
    if tag in ("DT", "PRP$", "JJ") and word not in ("that", "this", "these", "those", "all", "both", "some"):
        return "NN"
    if sentence.word(i - 1) == "-":
        return "VBN"
    if j < 0:
        return "VBN" if sentence.word(i + 1) in ("by", "aloud") else "VB"
    if tag in ("PRP", "NNP", "NNS", "WP", "WDT", "CC", "NN") and _after_auxiliary(sentence, j):
        return "VB" if _asks(sentence, j) else "VBN"
    if word in ("he", "she", "it") or tag in ("NN", "NNP"):
        return "VBD"
    if word.removesuffix("s") in FUNCTION_WORDS["inscribed"]:
        return "VBD"
    return "VBD" if _past(sentence, i) else "VB"


def _after_auxiliary(sentence: TaggedSentence, j: int) -> bool:
    """Whether the word at `j`, which stands before `read`, shows which form of `read` is meant: it is a
    pronoun that follows its auxiliary (`did you read`), or a conjunction with a verb before it (`sat and
    read`)."""
    if sentence.tag(j) == "CC":
        return _joined(sentence, j) is not None
    before = sentence.before(j)
    word = sentence.word(before)
    first = before <= 0 or not sentence.word(before - 1)[:1].isalpha() or sentence.tag(before - 1)[:1] == "W"
    return sentence.tag(j) == "PRP" and first and (word in DO or word in HAVE or sentence.tag(before) == "MD")


def _asks(sentence: TaggedSentence, j: int) -> bool:
    """Whether the word at `j` asks for a present form: it is a pronoun after `do` or a modal verb (`did you
    read`), or a conjunction that joins `read` to a verb in the present tense or the infinitive."""
    if sentence.tag(j) == "CC":
        return _joined(sentence, j) == "VB"
    before = sentence.before(j)
    return sentence.word(before) in DO or sentence.tag(before) == "MD"


def _joined(sentence: TaggedSentence, j: int) -> str | None:
    """If one of the seven words before the conjunction at `j` is a verb, and no `-ing` form: the tag of the
    nearest one, `VB` for any present tense; else None."""
    for k in range(j - 1, max(j - 8, -1), -1):
        if sentence.tag(k) in ("VB", "VBD", "VBN"):
            return sentence.tag(k)
        if sentence.tag(k) in ("VBP", "VBZ"):
            return "VB"
    return None


def _past(sentence: TaggedSentence, i: int) -> bool:
    """Whether the rest of the sentence speaks of the past: its verbs and words of time count, near ones
    more."""
    weight = 0.0
    for j, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True)):
        near = 1.0 if abs(j - i) <= 8 else 0.7
        if j == i:
            continue
        if tag == "VBD" or word in _PAST:
            weight += near * (1.5 if word in _PAST_TIMES else 1.0)
        elif tag in ("VBZ", "VBP") or word in _PRESENT:
            weight -= near * (1.5 if word in _PRESENT_HABITS else 1.0)
        elif tag == "MD" or (tag == "CD" and len(word) == 4):
            weight += near if tag == "CD" else -0.7 * near if word in ("will", "can", "may") else 0.0
    if not weight:
        return sentence.tags[i] in ("VBD", "VBN")
    return weight > 0


def _used(sentence: TaggedSentence, i: int) -> str | None:
    """The tag of `used`: with the s of *goose* for a habit (`used to`), with a z for use."""
    if sentence.word(i + 1) != "to":
        return "VBN"
    j = sentence.before(i)
    infinitive = sentence.tag(i + 2) in ("VB", "RB") or sentence.word(i + 2) == "be"
    if sentence.word(j) in ("get", "gets", "got", "getting", "grew", "grow", "grown", "growing"):
        return "VBD"
    if sentence.word(j) in BE:
        return "VBN" if infinitive else "VBD"
    if sentence.tag(j) in ("VBD", "VBN", "VBG", "IN", "DT") or sentence.word(j) in FUNCTION_WORDS["means"]:
        return "VBN"
    return None


_SPECIAL = dict.fromkeys(("read", "reread", "misread"), _read) | {"used": _used}
