"""Words of a sentence by the script that they are written in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import regex

_WORD = regex.compile(
    r"""
      (?P<ja> [\p{Hiragana}\p{Katakana}\p{Han}ー々〆〇]+ )
    | (?P<hi> \p{Devanagari}[\p{Devanagari}\u200c\u200d]* )
    | (?P<latin> \p{Latin}[\p{Latin}\p{M}]* (?: '\p{Latin}[\p{Latin}\p{M}]* )* )
    | (?P<other> \p{L}[\p{L}\p{M}--[\p{Latin}\p{Hiragana}\p{Katakana}\p{Han}\p{Devanagari}]]* )
    """,
    regex.VERBOSE | regex.V1,
)

# By this table, and not by `unicodedata`, whose Unicode is older: there a new letter is no letter
_READ = regex.compile(r"[\p{L}\p{N}]")
_SOUND = regex.compile(r"[\p{L}\p{N}\p{Sm}\p{Sc}\p{So}]")


def is_read(character: str) -> bool:
    """Whether it is a letter or a numeral of any script."""
    return _READ.match(character) is not None


def sounds(text: str) -> bool:
    """Whether a person would say something for it: letters, numerals and symbols, not punctuation."""
    return _SOUND.search(text) is not None


class ScriptWord(NamedTuple):
    """Letters that stand together: `text[start:end]`, in the script of a language, or `latin`, or `other`."""

    start: int
    end: int
    script: str


def script_words(text: str) -> Iterator[ScriptWord]:
    """The words of `text` in order; a change of script ends a word.

    Han without kana is taken for Japanese: nothing here speaks Chinese.
    """
    for match in _WORD.finditer(text):
        yield ScriptWord(match.start(), match.end(), match.lastgroup or "other")
