"""One spelling for what was said and what was written down, so that only words that differ count.

English has a normaliser of its own; other languages lose their punctuation and capitals, no more. Japanese
has no spaces: its characters are counted, and one that stands in kana for a kanji counts as an error, though
it sounds the same. That is the recogniser's choice, so only the difference of two recordings says something.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from kokoro_lab.errors import ParameterError

ENGLISH, JAPANESE = "en", "ja"
LANGUAGES = (ENGLISH, "es", "fr", "it", JAPANESE, "pt")
"""What Whisper base writes and this project speaks, without their countries. Hindi it hears, but writes in
Urdu's letters, all words wrong; where a prompt makes it write Devanagari, it misspells most of them."""

# What the normaliser does not know: it splits don’t in two, takes … for a word, leaves out what stands in
# brackets, which is spoken all the same, and joins the numbers of "seven forty-five" but not those of 7:45
_PLAIN = str.maketrans({**dict.fromkeys("‘’ʼ", "'"), **dict.fromkeys("…()[]{}<>", " ")})
_HALF_OF_DAY = re.compile(r"(?<![a-z])([ap])\.?\s?m\b\.?", re.IGNORECASE)
_TIME_OF_DAY = re.compile(r"\b(\d{1,2})(?::(\d\d)(?!\d)|\.(\d\d)(?=\s?[ap]m\b))", re.IGNORECASE)


def spelling_language(tag: str) -> str:
    """The language whose spelling a tag such as `en-gb` or `pt-br` asks for: `en`, `pt`.

    Raises
    ------
    ParameterError
        Its words cannot be counted.
    """
    language = tag.partition("-")[0]
    if language not in LANGUAGES:
        raise ParameterError(
            f"Words of {tag!r} cannot be counted.",
            field="language",
            value=tag,
            allowed=", ".join(LANGUAGES),
        )
    return language


def units(text: str, language: str = ENGLISH) -> list[str]:
    """The words of a text in one spelling; of a Japanese one, its characters.

    English: lower case, no punctuation, numbers in digits, contractions in full, American endings; "um" and
    its like are no words. Others: lower case, no punctuation, accents as they are.

    Source: Radford et al., "Robust speech recognition via large-scale weak supervision", 2022, appendix C,
    by `whisper_normalizer`.

    Raises
    ------
    ParameterError
        A language other than `LANGUAGES`, with or without a country; or the extra `quality` is not
        installed.
    """
    language = spelling_language(language)
    plain = text.translate(_PLAIN)
    if language == ENGLISH:
        plain = _HALF_OF_DAY.sub(r"\1m", plain)
        plain = _TIME_OF_DAY.sub(r"\1\2\3", plain)
    words = _normaliser(language)(plain).split()
    return [*"".join(words)] if language == JAPANESE else words


def joined(parts: list[str], language: str = ENGLISH) -> str:
    """What `units` took apart: with spaces, if the language has any."""
    return ("" if spelling_language(language) == JAPANESE else " ").join(parts)


def require_packages(*modules: str) -> None:
    """Raise ParameterError, with the mend, unless all of the modules are installed."""
    lacking = [name for name in modules if find_spec(name) is None]
    if lacking:
        raise ParameterError(
            f"Word errors cannot be counted: {', '.join(lacking)} is not installed.",
            field="metric",
            value="word error rate",
            mend="Install the extra: pip install 'kokoro-lab[quality]'.",
        )


@cache
def _normaliser(language: str) -> Callable[[str], str]:
    require_packages("whisper_normalizer")
    from whisper_normalizer.basic import BasicTextNormalizer
    from whisper_normalizer.english import EnglishTextNormalizer

    normaliser: Any = EnglishTextNormalizer() if language == ENGLISH else BasicTextNormalizer()
    return lambda text: str(normaliser(text))
