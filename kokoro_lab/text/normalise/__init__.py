"""What is written becomes what is said: numbers, dates, money, units, addresses, signs, abbreviations, emoji.

English, Spanish and Japanese have a package each, the others a column of a table; all have `RULES` in the
order in which they have their say, and `cardinal`, `ordinal`, `date` and `time` for whoever knows already
what a number is (SSML's `say-as`).
"""

from __future__ import annotations

from collections.abc import Sequence

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.languages import reader
from kokoro_lab.text.normalise.pictographs import name_emoji
from kokoro_lab.text.normalise.rules import apply


def normalise(text: AlignedText, language: str, keep: Sequence[tuple[int, int]] = ()) -> AlignedText:
    """One sentence as it is said in `language`, in words; its punctuation stays, it shapes the prosody.

    Parameters
    ----------
    text : AlignedText
        Sanitised; one sentence, or a part of one, in one language.
    language : str
        A canonical tag such as `en-us`.
    keep : sequence of (int, int)
        Parts of `text`, in order, that stay as they are written.
    """
    named = name_emoji(text, language, keep)
    found = reader(language)
    if not found:
        return named
    return apply(named, found.RULES, [named.range_of(*text.span(i, j)) for i, j in keep])


def warm(language: str) -> None:
    """Compile the rules of `language`, so that no text waits for it."""
    found = reader(language)
    for rule in found.RULES if found else ():
        next(rule.matches(""), None)
