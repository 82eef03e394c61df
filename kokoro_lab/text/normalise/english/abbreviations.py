"""English abbreviations: titles, streets, states, Latin."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import digits, in_pairs
from kokoro_lab.text.normalise.english.patterns import NAMES, WORDS, ends_text, optional, stop
from kokoro_lab.text.normalise.english.quantities import UNITS
from kokoro_lab.text.tables import any_of

TITLES, STREETS, STATES, NUMBERED = (NAMES[kind] for kind in ("title", "street", "state", "numbered"))
"""Abbreviations by their place: before a name; after a name; with a postal code; before a number, with a
point."""
_AMOUNT_BEFORE = regex.compile(r"\d\ ?(?:\p{L}+/)?$")
SENTENCE_WORDS = NAMES["ambiguous"]
"""Abbreviations that are also words: they are abbreviations only if something follows."""
PLAIN = NAMES["word"] | SENTENCE_WORDS


def _direction(match: Any) -> str:
    direction = optional(match, "direction").replace(".", "")
    return f" {NAMES['direction'][direction]}" if direction else ""


def _compass(match: Any) -> str | None:
    found = NAMES["direction"].get(match["direction"])
    return found.lower() if found else None


def _title(match: Any) -> str:
    return TITLES[match["title"]]


def _street(match: Any) -> str:
    return f"{STREETS[match['street']]}{_direction(match)}{stop(match)}"


def _plain(match: Any) -> str | None:
    text = match["short"]
    words = PLAIN.get(text) or PLAIN.get(text.lower()) or PLAIN.get(text.capitalize())
    if text in SENTENCE_WORDS and ends_text(match):
        return None
    if text in UNITS and _AMOUNT_BEFORE.search(match.string, 0, match.start()):
        return None  # `5 min.` and `5 km/yr` are quantities
    return None if words is None else words + stop(match)


def _zip(match: Any) -> str:
    more = f", {digits(match['more'])}" if match["more"] else ""
    return f"{STATES[match['state']]} {digits(match['zip'])}{more}"


def _dotted(match: Any) -> str:
    """`U.S.A.` is said like `USA`, letter by letter; its last point may be the sentence's.

    The initials of a person stay apart, and so do letters that would make a word: `O. H. Lee` is no oh.
    """
    text: str = match["letters"].replace(".", "").upper()
    if text.lower() in WORDS["read as a word"]:
        text = " ".join(text)
    return text + (match["own"] or "") + stop(match)


def _before_name(match: Any) -> bool:
    """Whether a name follows: then `St.` is a saint and `Dr.` a doctor, whatever stands before."""
    following = match.string[match.end() :]
    named = following[:1] == " " and following[1:2].isupper() and match["direction"] is None
    return named and match["street"] in ("St", "Dr")


_NAME = r"\p{Lu}[\p{Ll}'’]+"
_STREET = any_of(STREETS)
_STREET_WORD = any_of(set(STREETS.values()) - {"Square", "Court", "Place", "Point", "Way", "Trail"})
_ZIP = r"(?P<zip>\d{5})(?:-(?P<more>\d{4}))?"
_OF_A_STREET = r"(?P<direction>[NSEW]\.?|NE|NW|SE|SW)"

SURE_STATES = STATES.keys() - {"IN", "OR", "ME", "OK", "HI", "OH"}
"""States whose short names are no English words."""


def _post_box(match: Any) -> str:
    return f"PO Box {(in_pairs(match['number']) if len(match['number']) < 5 else digits(match['number']))}"


def _street_unless_name(match: Any) -> str | None:
    return None if _before_name(match) else _street(match)


def _saint(match: Any) -> str:
    return "Sainte" if "e" in match.group() else "Saint"


def _letters_with_points(match: Any) -> str | None:
    return None if match["letters"].lower() in PLAIN else _dotted(match)


def _either_or(match: Any) -> str:
    return NAMES["either or"][match.group().lower()]
