"""Where the sentence splitter ends a sentence that goes on, since it does not know all abbreviations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import regex


@dataclass(frozen=True, slots=True)
class Joins:
    """What shows that a border between two pieces of a text is none.

    Parameters
    ----------
    leads_on : regex.Pattern
        Matches the end of a piece after which no sentence ends, whatever follows.
    leads_to_number : regex.Pattern
        Likewise, if a number follows.
    goes_on : regex.Pattern
        Matches the start of a piece with which no sentence starts.
    """

    leads_on: Any
    leads_to_number: Any
    goes_on: Any


JOINS = {
    "es": Joins(
        leads_on=regex.compile(
            r"""(?<![\p{L}\d])(?:
                D|Dña|Sto|Sta|Sr|Sra|Srta|Sres|Dr|Dra|Dres|Lic|Lcd[oa]|Ing|Arq|Prof|Profa|Gral|Cnel|Tte|Cap|Mons
                |Rvdo|Excm[oa]|Ilm[oa]|Mtr[oa]|Hn[oa]|Avda|Av|Pza|Plza|Ctra|Urb|Edif|Pol|Col
                |EE|RR|JJ|FF|CC|DD|SS|AA|VV|Bs|op|ej|aprox|máx|mín|cf|cfr|vs
            )\.[ ]*\Z""",
            regex.VERBOSE,
        ),
        leads_to_number=regex.compile(
            r"""(?<![\p{L}\d])(?i:
                pp?|art|arts|cap|caps|figs?|núms?|págs?|vols?|no|nro|n|ss?|vv?|hab|ed|párr|tels?|tfno|tlf|ext|ref|c|h
                |ene|feb|mar|abr|may|jun|jul|ago|sept?|set|oct|nov|dic
            )\.[ ]*\Z""",
            regex.VERBOSE,
        ),
        # a small letter, an ordinal's sign, the end of a range, what is after Christ
        goes_on=regex.compile(r"[ ]*(?:[ºª°]|\p{Ll}|[-–][ ]?\d)|[ ]*C\.(?<=\b[ad]\.[ ]*C\.)"),
    ),
}
_NUMBER = regex.compile(r"[ ]*(?:\d|[IVXLC]+\b)")


def rejoined(borders: Iterable[tuple[int, int]], text: str, language: str) -> Iterator[tuple[int, int]]:
    """The spans of `borders`, with those made one between which no sentence ends.

    Parameters
    ----------
    borders : iterable of tuple of int
        Start and end of each sentence in `text`, in order, without gaps.
    language : str
        A canonical tag such as `es`.
    """
    joins = JOINS.get(language.split("-")[0])
    held: tuple[int, int] | None = None
    for start, end in borders:
        if held and joins and _is_one(text, held[1], joins, held[0]):
            held = (held[0], end)
            continue
        if held:
            yield held
        held = (start, end)
    if held:
        yield held


def _is_one(text: str, border: int, joins: Joins, start: int) -> bool:
    if "\n" in text[max(start, border - 2) : border]:  # lines are cut by other rules
        return False
    glued = not text[border - 1].isspace() and regex.search(
        r"(?<!\p{L})\p{L}\.\Z", text[max(0, border - 3) : border]
    )
    return bool(
        glued
        or joins.goes_on.match(text, border)
        or joins.leads_on.search(text, max(start, border - 12), border)
        or (
            _NUMBER.match(text, border)
            and joins.leads_to_number.search(text, max(start, border - 12), border)
        )
    )
