"""What reads which language."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Protocol, cast

from kokoro_lab.text.normalise.rules import Rule

READERS = ("en", "es", "fr", "it", "pt", "hi", "ja")
"""Languages, by their two letters, whose numbers and signs are read here."""
_PACKAGES = {"en": "english", "es": "spanish", "ja": "japanese"}
"""Those with rules of their own."""


class Reader(Protocol):
    """What each language has. All of these give words, lower-case, without punctuation."""

    RULES: tuple[Rule, ...]

    def cardinal(self, value: int) -> str: ...

    def ordinal(self, value: int) -> str: ...

    def date(self, year: int | None, month: int | None, day: int | None) -> str: ...

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """`half` is `am`, `pm`, or None for the 24-hour clock."""
        ...


@cache
def reader(language: str) -> Reader | None:
    """What reads `language`, loaded when it is first asked for; None if there is nothing."""
    code = language.split("-")[0]
    if code not in READERS:
        return None
    if code in _PACKAGES:
        return cast(Reader, import_module(f"{__package__}.{_PACKAGES[code]}"))
    from kokoro_lab.text.normalise.other import OtherReader

    return OtherReader(code)
