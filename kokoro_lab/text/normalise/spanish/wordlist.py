"""Lists of words, written as running text."""

from __future__ import annotations


def wordlist(text: str) -> frozenset[str]:
    """The words of `text`."""
    return frozenset(text.split())
