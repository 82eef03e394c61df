"""Pieces of patterns that several kinds of written things share."""

from __future__ import annotations

from collections.abc import Iterable

from kokoro_lab.text.normalise.english import numerals

START = r"(?<![\p{L}\p{N}_])"
"""Nothing that belongs to the same word stands before."""
END = r"(?![\p{L}\p{N}_])"
WHOLE = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)"
DECIMAL = rf"(?:{WHOLE}(?:\.\d+)?|\.\d+)"
DASH = r"(?:\ ?[-–—]\ ?)"
SIGN = r"(?:(?<![\p{L}\p{N}_)\]]|(?<=[\p{L}\p{N}]\ ))[-−+±])"
"""A sign belongs to the number behind it: nothing is glued to it from before."""
MAGNITUDES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mm": "million", "mn": "million",
    "MM": "million", "mln": "million", "b": "billion", "B": "billion", "bn": "billion", "bln": "billion",
    "t": "trillion", "T": "trillion", "tn": "trillion", "trn": "trillion",
}  # fmt: skip
MAGNITUDE = r"(?:hundred|thousand|million|billion|trillion|quadrillion|dozen)"

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
MONTH_OF = {
    **{name.lower(): i for i, name in enumerate(MONTHS, 1)},
    **{name[:3].lower(): i for i, name in enumerate(MONTHS, 1)},
    "sept": 9,
}
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
DAY_OF = {
    **{name.lower(): name for name in DAYS},
    **{name[:3].lower(): name for name in DAYS},
    "tues": "Tuesday", "weds": "Wednesday", "thur": "Thursday", "thurs": "Thursday",
}  # fmt: skip


def any_of(words: Iterable[str]) -> str:
    """A pattern for one of `words`, the longest that fits."""
    escaped = (word.replace(".", r"\.").replace(" ", r"\ ") for word in sorted(words, key=len, reverse=True))
    return f"(?:{'|'.join(escaped)})"


def words_of(text: str) -> frozenset[str]:
    """The words of a text, for a table that is read more easily so."""
    return frozenset(text.split())


def scaled(amount: str, magnitude: str | None) -> str:
    """`2.5`, `m` is "two point five million"."""
    words = numerals.number(amount)
    return f"{words} {MAGNITUDES.get(magnitude, magnitude.lower())}" if magnitude else words
