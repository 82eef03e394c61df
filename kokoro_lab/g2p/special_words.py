"""Heteronyms whose reading hangs on tense or on a construction rather than on cues: `read`, `used`."""

from __future__ import annotations

from collections.abc import Callable

from kokoro_lab.g2p.function_words import (
    BE,
    BEFORE_INFINITIVE,
    DO,
    HAVE,
    INSCRIBED,
    MEANS,
    PAST_ORDER,
    PAST_TIMES,
    PRESENT_HABITS,
    PRESENT_TIMES,
)
from kokoro_lab.g2p.word_class import TaggedSentence


def read(sentence: TaggedSentence, i: int) -> str | None:
    """Past (as red) or present (as reed): from auxiliaries, else from the tense of the sentence."""
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
    if word.removesuffix("s") in INSCRIBED:
        return "VBD"
    return "VBD" if _past(sentence, i) else "VB"


def _after_auxiliary(sentence: TaggedSentence, j: int) -> bool:
    """Whether the subject at `j` stands after its auxiliary, or a joined verb before it has one."""
    if sentence.tag(j) == "CC":
        return _joined(sentence, j) is not None
    before = sentence.before(j)
    word = sentence.word(before)
    first = before <= 0 or not sentence.word(before - 1)[:1].isalpha() or sentence.tag(before - 1)[:1] == "W"
    return sentence.tag(j) == "PRP" and first and (word in DO or word in HAVE or sentence.tag(before) == "MD")


def _asks(sentence: TaggedSentence, j: int) -> bool:
    """For a present: inverted `do` or a modal, or joined to an infinitive."""
    if sentence.tag(j) == "CC":
        return _joined(sentence, j) == "VB"
    before = sentence.before(j)
    return sentence.word(before) in DO or sentence.tag(before) == "MD"


def _joined(sentence: TaggedSentence, j: int) -> str | None:
    """The form of the nearest verb before the conjunction at `j`, if it shows the tense."""
    for k in range(j - 1, max(j - 8, -1), -1):
        if sentence.tag(k) in ("VB", "VBD", "VBN"):
            return sentence.tag(k)
        if sentence.tag(k) in ("VBP", "VBZ"):
            return "VB"
    return None


def _past(sentence: TaggedSentence, i: int) -> bool:
    """Whether the rest of the sentence speaks of the past: verbs near the word count, and adverbs of time."""
    weight = 0.0
    for j, (word, tag) in enumerate(zip(sentence.words, sentence.tags, strict=True)):
        near = 1.0 if abs(j - i) <= 8 else 0.7
        if j == i:
            continue
        if tag == "VBD" or word in PAST_TIMES or word in PAST_ORDER:
            weight += near * (1.5 if word in PAST_TIMES else 1.0)
        elif tag in ("VBZ", "VBP") or word in PRESENT_TIMES or word in PRESENT_HABITS:
            weight -= near * (1.5 if word in PRESENT_HABITS else 1.0)
        elif tag == "MD" or (tag == "CD" and len(word) == 4):
            weight += near if tag == "CD" else -0.7 * near if word in ("will", "can", "may") else 0.0
    if not weight:
        return sentence.tags[i] in ("VBD", "VBN")
    return weight > 0


def used(sentence: TaggedSentence, i: int) -> str | None:
    """`used to` of habit and custom has an s like *goose*; what is made use of, a z."""
    if sentence.word(i + 1) != "to":
        return "VBN"
    j = sentence.before(i)
    infinitive = sentence.tag(i + 2) in ("VB", "RB") or sentence.word(i + 2) == "be"
    if sentence.word(j) in ("get", "gets", "got", "getting", "grew", "grow", "grown", "growing"):
        return "VBD"
    if sentence.word(j) in BE:
        return "VBN" if infinitive else "VBD"
    if sentence.tag(j) in ("VBD", "VBN", "VBG", "IN", "DT") or sentence.word(j) in MEANS:
        return "VBN"
    return None


SPECIAL: dict[str, Callable[[TaggedSentence, int], str | None]] = {
    "read": read,
    "reread": read,
    "misread": read,
    "used": used,
}
