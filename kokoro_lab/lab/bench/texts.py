"""The texts of a benchmark: distinct, of one length, and no two with the same beginning."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.sentences import sentences

PRESETS = {"short": 40, "medium": 140, "long": 1_000, "article": 10_000}
"""About how many characters each text has."""

TOO_LONG = 1.2
"""A text may be this many times as long as asked for. A longer one is cut after a word."""


def sentences_of(texts: Sequence[str], language: str = "en") -> list[str]:
    """Every sentence of `texts`, each once, in order."""
    found = (s.text.text for text in texts for s in sentences(AlignedText.of(text), language))
    return list(dict.fromkeys(found))


def fixture_sentences() -> list[str]:
    """The default sentences of benchmarks: the English prose of the fixtures."""
    return sentences_of([text.text for text in load_texts() if text.kind in ("prose", "short", "long")])


def texts_of(
    sentences: Sequence[str], characters: int, count: int, seed: int = 0, *, own_beginnings: bool = True
) -> Iterator[str]:
    """`count` texts of about `characters`, no two alike, put together from `sentences`.

    Unless `own_beginnings` is False, each text begins with another sentence, so that no first audio comes
    from a cache.

    Parameters
    ----------
    sentences : sequence of str
        At least `count`, from `sentences_of`.
    characters : int
        Length of a text; the texts made are 0.7 to 1.2 times as long.
    count : int
        Number of texts.
    seed : int
        The same seed gives the same texts.
    own_beginnings : bool
        Whether no two texts begin alike. If false, beginnings may recur, so that there can be more texts than
        sentences.

    Raises
    ------
    ParameterError
        There are too few distinct sentences.
    """
    draw = random.Random(seed)
    beginnings = list(dict.fromkeys(sentences))
    draw.shuffle(beginnings)
    given: set[str] = set()
    for beginning in beginnings * (1 if own_beginnings else -(-2 * count // len(beginnings))):
        if len(given) == count:
            return
        text = _cut(_prolonged(beginning, beginnings, characters, draw), characters)
        if text not in given:  # two sentences may begin with the same words, and be cut after them
            given.add(text)
            yield text
    if len(given) < count:
        raise ParameterError(
            f"{count} texts of {characters} characters were asked for; only {len(given)}"
            f"{' with a beginning of their own' if own_beginnings else ' that differ'} can be made.",
            field="--trials",
            value=count,
            allowed=f"up to {len(given)} of this corpus",
            mend="Give more sentences by --corpus.",
        )


def _prolonged(text: str, sentences: Sequence[str], characters: int, draw: random.Random) -> str:
    last = text
    while len(text) < characters:
        following = draw.choice(sentences)
        if following != last or len(sentences) == 1:  # a sentence said twice in a row sounds like a fault
            text, last = f"{text} {following}", following
    return text


def _cut(text: str, characters: int) -> str:
    if len(text) <= TOO_LONG * characters:
        return text
    return text[: characters + 1].rpartition(" ")[0].rstrip(",;:—- ") + "."
