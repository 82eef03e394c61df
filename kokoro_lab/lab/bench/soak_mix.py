"""What is asked for in a soak: several lengths, voices and languages, over every transport, by turns."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.texts import texts_of
from kokoro_lab.lab.fixtures import load_rows

Way = Literal["http", "sse", "websocket"]
WAYS: tuple[Way, ...] = ("http", "sse", "websocket")
"""Raw audio, server-sent events, and tagged frames."""
LENGTHS = {"short": 40, "medium": 140, "paragraph": 400}
"""Characters, about."""
SENTENCE = "sentence"
"""What is read in other languages than English."""
ENGLISH = "en"

READERS = (
    (ENGLISH, "medium", ""),
    ("es", SENTENCE, "ef_dora"),
    (ENGLISH, "short", "am_michael"),
    (ENGLISH, "paragraph", "bf_emma"),
    ("fr", SENTENCE, "ff_siwis"),
    (ENGLISH, "short", ""),
    ("it", SENTENCE, "if_sara"),
    (ENGLISH, "medium", "bf_emma"),
    ("pt", SENTENCE, "pf_dora"),
    (ENGLISH, "paragraph", ""),
)
"""Language of the text, its length, and who reads it; "" is the voice that was asked for. Japanese is left
out, as its G2P is an extra."""


@dataclass(frozen=True, slots=True)
class SoakReading:
    """One text that is read again and again by one voice.

    Parameters
    ----------
    name : str
        Such as `3 en paragraph bf_emma`.
    """

    name: str
    text: str
    voice: str


@dataclass(frozen=True, slots=True)
class ReadingTurn:
    """One time that a reading is asked for."""

    number: int
    reading: SoakReading
    way: Way


def foreign_sentences() -> dict[str, list[str]]:
    """Those of the fixtures, by language."""
    found: dict[str, list[str]] = {}
    for row in load_rows("intelligibility"):
        if row["language"] != ENGLISH:
            found.setdefault(row["language"], []).append(row["text"])
    return found


def readings_of(
    sentences: Sequence[str], foreign: Mapping[str, Sequence[str]], voice: str, texts: int, seed: int = 0
) -> list[SoakReading]:
    """`texts` readings, by the readers in turn.

    Parameters
    ----------
    sentences : sequence of str
        What the English texts are made of.
    foreign : mapping
        Sentences by language; a language that is not in it is left out.
    voice : str
        Who reads most of the English ones.
    texts : int
        How many.
    seed : int
        The same seed gives the same texts.

    Raises
    ------
    ParameterError
        The sentences do not suffice for so many different texts.
    """
    readers = [one for one in READERS if one[0] == ENGLISH or foreign.get(one[0])]
    chosen = [readers[number % len(readers)] for number in range(texts)]
    english = {
        length: texts_of(sentences, characters, sum(one[1] == length for one in chosen), seed + number,
                         own_beginnings=False)
        for number, (length, characters) in enumerate(LENGTHS.items())
    }  # fmt: skip
    others = {language: iter(random.Random(seed).sample(list(s), len(s))) for language, s in foreign.items()}
    found = []
    for number, (language, length, reader) in enumerate(chosen):
        text = next(english[length] if language == ENGLISH else others[language], None)
        if text is None:
            raise ParameterError(
                f"There are not enough sentences in {language!r} for {texts} texts.",
                field="--trials",
                value=texts,
                allowed="fewer",
            )
        found.append(SoakReading(f"{number} {language} {length} {reader or voice}", text, reader or voice))
    return found


def turns(
    readings: Sequence[SoakReading], ways: Sequence[Way] = WAYS, seed: int = 0
) -> Iterator[ReadingTurn]:
    """Without end, in rounds: each holds every reading once, in an order of its own. From round to round a
    reading goes over the next transport, so that every stretch of a soak holds the same mix."""
    draw = random.Random(seed)
    numbers = count()
    for rounds in count():
        order = list(enumerate(readings))
        draw.shuffle(order)
        for place, reading in order:
            yield ReadingTurn(next(numbers), reading, ways[(place + rounds) % len(ways)])
