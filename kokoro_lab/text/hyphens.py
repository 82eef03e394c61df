"""Joins words that were hyphenated at the end of a line: `emo- tional`."""

from __future__ import annotations

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.detect import LATIN, Known
from kokoro_lab.text.tables import words

_CUT = regex.compile(
    r"(?<![\p{L}\p{N}-])(\p{L}{2,}|[\p{L}--[A-D]])(-\s+)(\p{Ll}+)(?![\p{L}'])", regex.VERSION1
)
_WORDS = words(__package__)


def joined(text: AlignedText, language: str, known: Known | None) -> AlignedText:
    """`text`, in which the two parts of each word that was hyphenated at the end of a line are joined.

    English has many words with hyphens: there, the hyphen stays unless `known` says that the joined parts are
    a word. A part before a word such as `and` is left alone: `pre- and post-war`.
    """
    code = language.split("-")[0]
    if ("- " not in text.text and "-\n" not in text.text) or code not in LATIN:
        return text
    edits = []
    for match in _CUT.finditer(text.text):
        if match[3] not in _WORDS[f"{code} behind a half word"]:
            whole = known is None or known((match[1] + match[3]).lower())
            edits.append((*match.span(2), "" if whole else "-"))
    return text.rewrite(edits)
