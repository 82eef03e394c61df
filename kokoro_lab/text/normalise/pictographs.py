"""Replaces emoji by their names; skin tones are not read out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import emoji

from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.tables import names

TYPOGRAPHIC = frozenset("©®™‼⁉↔↕↖↗↘↙Ⓜ▪▫")
"""Signs of ordinary text that Unicode counts among the emoji. They are left to the rules of each language."""
_PICTURE = re.compile("[©®\u203c-\U0010ffff]")
"""A pattern for characters of which every emoji has at least one, even the emoji of a digit."""
RATING = re.compile(r"(?:⭐\ufe0f?){2,}☆*|(?:⭐\ufe0f?)+☆+")
"""A pattern for stars that are a rating. The rules of each language read it: "four stars"."""
_DRESS = re.compile("[\ufe0f\U0001f3fb-\U0001f3ff]")
"""A pattern for skin tones, and for the invisible sign that asks for an emoji in colours."""
_TONE = re.compile(r"_?(?:(?:medium-)?light|medium|(?:medium-)?dark)_skin_tone")


def name_emoji(
    aligned: AlignedText, language: str = "en", keep: Sequence[tuple[int, int]] = ()
) -> AlignedText:
    """Replace each emoji outside the ranges of `keep` by its Unicode CLDR short name in `language`.

    A run of the same emoji is named once: nobody reads three laughing faces out three times, and the
    name stands for the whole run in the offsets.
    """
    runs: list[tuple[int, int, str]] = []
    for match in _emoji_in(aligned.text):
        if any(i < match.end and match.start < j for i, j in keep):
            continue
        if match.emoji[0].isdecimal():  # 1️⃣ is the number of an item
            runs.append((match.start, match.end, match.emoji[0]))
            continue
        code = _loaded(language.split("-")[0])
        ours = names(__package__, "hindi_emoji.tsv")["emoji"] if code == "hi" else {}
        data = match.data or {}
        name = data.get(code) or ours.get(_DRESS.sub("", match.emoji)) or data.get("en") or ""
        spoken = _TONE.sub("", name.strip(":")).replace("_", " ").replace("-", " ").strip()
        behind = aligned.text[match.end :].lstrip(" ")
        if spoken and behind.casefold().startswith(spoken.casefold()):  # `⚠️ Warning` names itself
            runs.append((match.start, len(aligned.text) - len(behind), ""))
            continue
        start = match.start
        if runs and runs[-1][2] == spoken and not aligned.text[runs[-1][1] : start].strip():
            start = runs.pop()[0]
        runs.append((start, match.end, spoken))
    return aligned.rewrite(_spaced(aligned.text, run) for run in runs)


def ratings(text: str) -> list[tuple[int, int]]:
    """Ranges of `text` with emoji that are a rating in stars."""
    return [match.span() for match in RATING.finditer(text)] if "⭐" in text else []


def without_emoji(aligned: AlignedText) -> AlignedText:
    """Leave out each emoji. Of the emoji of a digit (`1️⃣`), the digit stays."""
    text = aligned.text
    edits: list[tuple[int, int, str]] = []
    for match in _emoji_in(text):
        between = text[match.start - 1 : match.start].isalnum() and text[match.end : match.end + 1].isalnum()
        kept = match.emoji[0] if match.emoji[0].isascii() else " " * between
        edits.append((match.start, match.end, kept))
    return aligned.rewrite(edits)


def _emoji_in(text: str) -> Iterator[Any]:
    if _PICTURE.search(text):  # most texts have none, and the emoji library looks at each character
        for token in emoji.analyze(text, join_emoji=True):
            match = token.value  # plain characters of a ZWJ sequence have no name
            if not isinstance(match, str) and match.emoji not in TYPOGRAPHIC:
                yield match


@cache
def _loaded(language: str) -> str:
    """Load the names of emoji in `language` (4 ms), and return `language`. The library itself loads only the
    English names."""
    if language in emoji.LANGUAGES:
        emoji.config.load_language(language)
    return language


def _spaced(text: str, run: tuple[int, int, str]) -> tuple[int, int, str]:
    """The replacement, with spaces where its name would touch a word of the text."""
    start, end, name = run
    before = " " if start and not text[start - 1].isspace() else ""
    after = " " if name and end < len(text) and text[end].isalnum() else ""
    return start, end, f"{before}{name}{after}"
