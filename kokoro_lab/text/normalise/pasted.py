"""Rules for pasted text of any language: bullets, notes of songs, times of subtitles, paths of menus."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import regex

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise.rules import Rule, read_rules

_TIME = r"(?:\d+:)?[0-5]\d:[0-5]\d[.,]\d{3}"


def _dash(match: Any) -> str:
    return "—" if match.string[match.start() - 1].isspace() else " —"


RULES = read_rules(__package__, name="pasted.tsv")

_NUMERALS = "".join(
    map(chr, (*range(0x2160, 0x2180), *range(0x2460, 0x249C), 0x24EA, *range(0x2776, 0x2794)))
)


def numerals(cardinal: Callable[[int], str]) -> Rule:
    """A number in one sign, `Ⅻ` or `①`, in the words that `cardinal` has for it."""
    return Rule(
        "numeral in one sign",
        rf"[{_NUMERALS}]",
        lambda match: cardinal(int(unicodedata.numeric(match.group()))),
        wakes=_NUMERALS,
    )


_MAY_BE_LEFT_OUT = regex.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]|-->")
_READ = regex.compile(r"\p{L}+|\p{Nd}[\p{Nd}:.,]*|\p{No}+")


def left_out(text: str, said: AlignedText) -> Iterator[tuple[int, int]]:
    """Ranges of `text` that these rules removed: no character of `said` stands for them."""
    if _MAY_BE_LEFT_OUT.search(text):
        heard = {i for start, end in zip(said.starts, said.ends, strict=True) for i in range(start, end)}
        yield from (found.span() for found in _READ.finditer(text) if heard.isdisjoint(range(*found.span())))
