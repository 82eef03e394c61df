"""Which package reads which language."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Protocol, cast

from kokoro_lab.text.normalise.rules import Rule

READERS = {
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "hi": "hindi",
    "ja": "japanese",
}
"""Of a language's two letters, the package here that reads its numbers and signs."""


class Reader(Protocol):
    """What each language's package has. All of these give words, lower-case, without punctuation."""

    RULES: tuple[Rule, ...]

    def cardinal(self, value: int) -> str: ...

    def ordinal(self, value: int) -> str: ...

    def date(self, year: int | None, month: int | None, day: int | None) -> str: ...

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """`half` is `am`, `pm`, or None for the 24-hour clock."""
        ...


@cache
def reader(language: str) -> Reader | None:
    """The package for `language`, loaded when it is first asked for; None if there is none."""
    name = READERS.get(language.split("-")[0])
    return cast(Reader, import_module(f"{__package__}.{name}")) if name else None
