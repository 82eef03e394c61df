"""Shows how a text is read word by word, and compares each language's corpus with the expected readings."""

from __future__ import annotations

import pandas as pd
import regex

from kokoro_lab.datatypes import Clip, LexiconEntry
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.intelligibility import UNSPACED
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.sentences import sentences

CORPORA = ("en", "es", "ja", "zh")
"""Languages with a corpus `fixtures/texts/normalisation_<language>.jsonl` of pairs (written, spoken), which
we wrote."""
_MARKS = regex.compile(r"[^\w\s]|_")


def entry(word: str, phonemes: str) -> tuple[LexiconEntry, ...]:
    """A lexicon with one entry, or an empty lexicon if `word` is empty.

    Raises
    ------
    ParameterError
        `word` is given, but `phonemes` is empty.
    """
    if not word:
        return ()
    if not phonemes:
        raise ParameterError(
            f"{word!r} has no phonemes.",
            field="phonemes",
            value=phonemes,
            allowed="IPA, as `kokoro-lab text` prints it",
            mend="Write them, like ˈɛnʤɪnˈɛks; or leave the word out.",
        )
    return (LexiconEntry("*", word.strip(), phonemes.strip()),)


def words(clip: Clip) -> pd.DataFrame:
    """Each word of a clip as it was read: its place in the text, phonemes, language, and source, which gave
    the phonemes (a lexicon, G2P, ...)."""
    spoken = [word for segment in clip.segments for word in segment.words]
    columns = ("text", "start", "end", "phonemes", "language", "source")
    return pd.DataFrame([{name: getattr(word, name) for name in columns} for word in spoken])


def measure(languages: tuple[str, ...] = CORPORA) -> pd.DataFrame:
    """Read every line of the corpora.

    Returns
    -------
    pandas.DataFrame
        `language`, `category`, `written`, `expected`, `read`, and whether it is `right`: letter case,
        punctuation and, in Japanese and Mandarin, spaces do not count.
    """
    rows = []
    for language in languages:
        for pair in load_rows(f"normalisation_{language}"):
            written, expected = pair["written"], pair["spoken"]
            read = as_said(written, language)
            row = {"language": language, "category": pair["category"], "written": written}
            rows.append(row | {"expected": expected, "read": read, "right": same(read, expected, language)})
    return pd.DataFrame(rows)


def as_said(text: str, language: str) -> str:
    """`text` as spoken words, sentence by sentence."""
    return " ".join(normalise(s.text, language).text for s in sentences(sanitise(text), language))


def same(read: str, expected: str, language: str) -> bool:
    """Whether two readings have the same words."""
    return _bare(read, language) == _bare(expected, language)


def _bare(text: str, language: str) -> str:
    bare = _MARKS.sub(" ", text.casefold()).split()
    return ("" if language in UNSPACED else " ").join(bare)


def judge(table: pd.DataFrame, clip: Clip) -> list[Check]:
    """The checks: all of the corpus is read as expected, and no word of the tried text is lost
    (`word_checks`)."""
    return [
        *(
            Check(f"read_as_expected_{language}_share", float(rows.right.mean()), low=1.0)
            for language, rows in table.groupby("language")
        ),
        *word_checks(clip),
    ]


def word_checks(clip: Clip) -> list[Check]:
    """The checks that a clip has speech for every word: it has words, each of them lasts, and the report says
    of nothing that it was not spoken."""
    silent = sum(timing.end_s <= timing.start_s for timing in clip.timings)
    left_out = sum(fallback.reason.startswith("not spoken") for fallback in clip.report.fallbacks)
    return [
        Check("words_count", len(clip.timings), low=1),
        Check("words_without_sound_count", silent, high=0),
        Check("words_not_spoken_count", left_out, high=0),
    ]


def figures(table: pd.DataFrame, clip: Clip) -> dict[str, float]:
    """How many lines were read, and how many fallbacks the tried text needed."""
    return {"lines_count": len(table), "fallbacks_count": len(clip.report.fallbacks)}


def controls(table: pd.DataFrame) -> list[NegativeControl]:
    """Controls, one in each language: an expected reading with words too many, which the comparison must
    notice."""
    found = []
    for language, rows in table.groupby("language"):
        row = rows.iloc[0]
        caught = not same(row["read"], f"{row.expected} {row.expected}", str(language))
        found.append(NegativeControl(f"{language}: a word too many", caught))
    return found
