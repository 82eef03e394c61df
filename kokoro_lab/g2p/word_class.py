"""Whether a word is a verb: the tagger's opinion, weighed against the words around it.

The tagger is right about most words, but heteronyms are the words that taggers find hard. Determiners,
modals, the `to` of the infinitive and what follows the word decide nearly all of them, so each of these has a
weight; the tagger's own opinion has the weight `TAGGER`. The weights are set by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kokoro_lab.text.tables import words

FUNCTION_WORDS = words(__package__, "function_words.tsv")
"""Short lists of English words that show the class of the words beside them."""
BE, HAVE, DO = (FUNCTION_WORDS[name] for name in ("be", "have", "do"))
"""The forms of `be` and of verbs that are used like it, those of `have`, and those of `do`."""
BEFORE_INFINITIVE = FUNCTION_WORDS["before infinitive"]
"""Verbs that a bare infinitive follows, like modal verbs and `do`."""

TAGGER = 2.0
SURE = 0.75
"""If the sum of the weights is nearer to 0 than this, the tagger's opinion stands."""

LONE_VERB = 2.4
"""The weight of a word as a verb if the sentence has no other finite verb."""
FEWEST_WORDS = 4
"""A shorter text is rather a heading than a sentence."""

FINITE = frozenset(("VBD", "VBZ", "VBP", "MD"))


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Tokens of a sentence with their Penn tags; outside it, words and tags are empty strings."""

    texts: Sequence[str]
    words: Sequence[str]
    tags: Sequence[str]

    @classmethod
    def of(cls, texts: Sequence[str], tags: Sequence[str]) -> TaggedSentence:
        return cls(texts, [text.lower().replace("’", "'") for text in texts], tags)

    def word(self, i: int) -> str:
        return self.words[i] if 0 <= i < len(self.words) else ""

    def tag(self, i: int) -> str:
        return self.tags[i] if 0 <= i < len(self.tags) else ""

    def before(self, i: int) -> int:
        """Place of the word before `i`, without adverbs, negations and opening quotation marks; -1 if there
        is none."""
        i -= 1
        while i >= 0 and (
            self.tags[i].startswith("RB") or self.words[i] in ("not", "n't", '"', "“", "‘", "`")
        ):
            i -= 1
        return i


def is_verb(sentence: TaggedSentence, i: int) -> bool:
    """Whether token `i` is used as a verb. For forms in -ed and -ing, the tagger alone decides."""
    if sentence.words[i].endswith(("ed", "ing")):
        return sentence.tags[i].startswith("VB")
    opinion = TAGGER if sentence.tags[i].startswith("VB") else -TAGGER
    if sentence.tags[i].startswith("NNP") and i > 0:
        opinion *= 2.0  # a name: `Air Transport`, `the White House`
    weight = opinion + _before(sentence, i) + _after(sentence, i) + LONE_VERB * _no_other_verb(sentence, i)
    return opinion > 0 if abs(weight) < SURE else weight > 0


def _no_other_verb(sentence: TaggedSentence, i: int) -> bool:
    words = sum(word[:1].isalpha() for word in sentence.words)
    if words < FEWEST_WORDS or sentence.before(i) < 0 or _in_s(sentence, i) or sentence.tags[-1] != ".":
        return False
    return not any(tag in FINITE for j, tag in enumerate(sentence.tags) if j != i)


def _in_s(sentence: TaggedSentence, i: int) -> bool:
    return sentence.words[i].endswith("s") and not sentence.words[i].endswith("ss")


def _before(sentence: TaggedSentence, i: int) -> float:
    j = sentence.before(i)
    word, tag = sentence.word(j), sentence.tag(j)
    in_s = _in_s(sentence, i)
    if sentence.word(i - 1) in ("-", "–") and i >= 2:
        return 0.0 if sentence.word(i - 2) in FUNCTION_WORDS["split prefixes"] else -3.0
    if j < 0:
        return 1.5 if sentence.tag(i + 1) in ("DT", "PRP$") and not in_s else 0.0
    if word == "to":
        return -4.0 if in_s else _after_to(sentence, j)
    if word in DO and j == i - 1 and sentence.tag(j - 1)[:2] in ("NN", "PR"):
        return -3.0  # `she does research`, not `nor does research show`
    if word in DO or tag == "MD" or word in BEFORE_INFINITIVE:
        return 0.0 if in_s else 4.0
    if word == "there" and in_s:
        return -1.0
    if tag in ("PRP", "WDT", "WP") or word in FUNCTION_WORDS["subjects"]:
        return _after_pronoun(word, in_s=in_s)
    if word == "that" and tag == "IN":
        return 0.0
    if tag in ("DT", "PRP$", "POS", "PDT", "WP$"):
        return -4.0 if word not in ("all", "both", "this", "that") else -2.5
    if tag == "CC":
        return _after_conjunction(sentence, j)
    if tag == "IN" or word in FUNCTION_WORDS["prepositions"]:
        return -3.0 if word in FUNCTION_WORDS["prepositions"] else 0.0
    weight = _after_content(sentence, j, in_s=in_s)
    return weight / 2 if weight > 0 and sentence.tags[i] == "JJ" else weight  # `all seamen present`


def _after_to(sentence: TaggedSentence, j: int) -> float:
    head = sentence.word(sentence.before(j))
    if head in FUNCTION_WORDS["takes preposition to"]:
        return -5.0
    return 3.5 if sentence.tag(j) == "TO" else 1.5


def _after_pronoun(word: str, *, in_s: bool) -> float:
    if in_s:
        return 3.5 if word in FUNCTION_WORDS["singular subjects"] else 0.0
    if word in ("who", "which", "that"):
        return 3.0
    return 3.5 if word in FUNCTION_WORDS["subjects"] else 0.5


def _after_conjunction(sentence: TaggedSentence, j: int) -> float:
    """How much the word before the conjunction at `j` speaks for a verb after it (below 0: against a verb),
    since words that a conjunction joins are of the same class."""
    tag = sentence.tag(j - 1)
    if tag in ("VB", "VBP", "VBZ"):
        return 2.0
    if tag.startswith(("NN", "JJ")):
        return -0.5
    return 0.0


def _after_content(sentence: TaggedSentence, j: int, *, in_s: bool) -> float:
    word, tag = sentence.word(j), sentence.tag(j)
    if word in BE or word in HAVE:
        return -3.0
    if tag == "CD":
        return -1.5
    if tag.startswith("JJ") or tag == "VBG":
        return -2.0
    plural = tag in ("NNS", "NNPS") or (tag == "VBZ" and sentence.tag(j - 1) in ("DT", "PRP$"))
    if plural:
        return -1.0 if in_s or word in FUNCTION_WORDS["plural modifiers"] else 3.0
    if tag in ("NN", "NNP"):
        return 0.8 if in_s else -1.2 + 1.5 * _plural_subject(sentence, j)
    if tag.startswith("VB"):
        return -1.0
    return 0.0


def _plural_subject(sentence: TaggedSentence, j: int) -> bool:
    """Whether the singular noun at `j` ends a plural subject: `day and night`, `schools in the area`."""
    k = j - 1
    if sentence.tag(k) == "CC":
        return sentence.tag(k - 1).startswith("NN")
    while sentence.tag(k) in ("DT", "PRP$", "JJ", "NN", "NNP"):
        k -= 1
    return k < j - 1 and sentence.tag(k) == "IN" and sentence.tag(k - 1) == "NNS"


def _after(sentence: TaggedSentence, i: int) -> float:
    word, tag = sentence.word(i + 1), sentence.tag(i + 1)
    if word in ("-", "–") or tag == "POS":
        return -2.5
    if word == "of":
        return -2.0
    if word in FUNCTION_WORDS["objects"] or word == "what" or tag in ("DT", "PRP$", "RP"):
        return 2.0
    if tag == "PRP":
        return 0.5
    if tag == "MD" or word in BE or word in HAVE:
        return -2.0
    if tag in ("VBD", "VBZ", "VBP"):
        return -1.5
    if tag == "RB" and word.endswith("ly"):
        return 1.0
    return 0.0
