"""An abbreviation's full stop may also end the sentence; then it must stay, for the voice to fall."""

from __future__ import annotations

from typing import Any

import regex

_END = regex.compile(r"[\"”')\]]*\Z")
_NEXT_SENTENCE = regex.compile(r"[ ]+[¿¡\"“(]*\p{Lu}")


def final_stop(match: Any, *, leads_to_name: bool = False) -> str:
    """`.` if the match ends in one that closes the sentence, else nothing.

    Parameters
    ----------
    leads_to_name : bool
        Whether a capital behind it tells nothing: `Dra. Ana`.
    """
    closes = match.group().endswith(".") and (
        _END.match(match.string, match.end())
        or (not leads_to_name and _NEXT_SENTENCE.match(match.string, match.end()))
    )
    return "." if closes else ""
