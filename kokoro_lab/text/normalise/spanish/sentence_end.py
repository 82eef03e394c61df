"""An abbreviation's full stop may also end the sentence; then it must stay, for the voice to fall."""

from __future__ import annotations

from typing import Any

import regex

_END = regex.compile(r"[\"”')\]]*(?:\Z|[ ]+[¿¡\"“(]*\p{Lu})")


def final_stop(match: Any) -> str:
    """`.` if the match ends in one that closes the sentence, else nothing."""
    closes = match.group().endswith(".") and _END.match(match.string, match.end())
    return "." if closes else ""
