"""Words that are written short: titles, streets, states, Latin."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.measures import UNITS
from kokoro_lab.text.normalise.english.numerals import digits, in_pairs
from kokoro_lab.text.normalise.english.patterns import END, START, any_of, words_of
from kokoro_lab.text.normalise.english.tables import table
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

TABLE = table("abbreviations.tsv")


def _of(*kinds: str) -> dict[str, str]:
    return {row["written"]: row["spoken"] for row in TABLE if row["kind"] in kinds}


TITLES = _of("title")
"""Before a name."""
STREETS = _of("street")
"""Behind a name."""
DIRECTIONS = _of("direction")
STATES = _of("state")
NUMBERED = _of("numbered")
"""Before a number, with a point."""
PLAIN = _of("word", "ambiguous")
SENTENCE_WORDS = frozenset(_of("ambiguous"))
"""Words of their own when a sentence ends with them: they need something behind."""


READ_AS_WORDS = words_of("""
ad ah am an and are as at be by do go ha he hi ho id if in is it la lo ma me mr ms my no now of oh on or
ox pa so st the to up us was we who you bad bed bet bit but cab can cat cop dad day did dim dog eat end
eye fat few fin for fun get god got had has her him his hit hot how ill job led let lid lit lot man map
may men mix net new not off one our out own pan pat pen pet pit pot put ram ran rid sad say see set she
sit son sun ten tin too top try two use van war wet why win yes yet
""") - {"us", "ad", "id", "la", "st", "mr", "ms"}
"""Letters with points that are no abbreviation if the points are left out."""


def _title(match: Any) -> str:
    return TITLES[match["title"]]


def _saint(match: Any) -> str:
    return "Saint"


def _street(match: Any) -> str:
    direction = match["direction"]
    name = STREETS[match["street"]]
    lead = f" {DIRECTIONS[direction.replace('.', '')]}" if direction else ""
    return f"{name}{lead}{_stop(match)}"


def _stop(match: Any) -> str:
    return "." if match.group().endswith(".") and not match.string[match.end() :].strip(" \"”')") else ""


def _plain(match: Any) -> str | None:
    text = match["short"]
    words = PLAIN.get(text) or PLAIN.get(text.lower()) or PLAIN.get(text.capitalize())
    ends = not match.string[match.end() :].strip(" \"”')")
    if text in SENTENCE_WORDS and ends:
        return None
    if text in UNITS and match.string[: match.start()].rstrip()[-1:].isdigit():
        return None  # `5 min.` is a quantity
    return None if words is None else words + ("." if ends and text.endswith(".") else "")


def _numbered(match: Any) -> str:
    return NUMBERED[match["short"]]


def _house(match: Any) -> str:
    direction = match["direction"]
    lead = f" {DIRECTIONS[direction.replace('.', '')]}" if direction else ""
    return f"{in_pairs(match['number'])}{lead}"


def _state(match: Any) -> str:
    return STATES[match["state"]]


def _zip(match: Any) -> str:
    words = digits(match["zip"])
    return f"{STATES[match['state']]} {words}" + (f", {digits(match['more'])}" if match["more"] else "")


def _dotted(match: Any) -> str:
    """`U.S.A.` is said like `USA`, letter by letter; its last point may be the sentence's.

    The initials of a person stay apart, and so do letters that would make a word: `O. H. Lee` is no oh.
    """
    text: str = match["letters"].replace(".", "").upper()
    if text.lower() in READ_AS_WORDS:
        text = " ".join(text)
    return text + (match["own"] or "") + _stop(match)


def _slash(match: Any) -> str:
    return {
        "and/or": "and or",
        "he/she": "he or she",
        "she/he": "she or he",
        "his/her": "his or her",
        "him/her": "him or her",
        "s/he": "she or he",
        "yes/no": "yes or no",
    }[match.group().lower()]


_NAME = r"\p{Lu}[\p{Ll}'’]+"
_STREET = any_of(STREETS)
_STREET_WORD = any_of(
    name for name in STREETS.values() if name not in ("Square", "Court", "Place", "Point", "Way", "Trail")
)

RULES: tuple[Rule, ...] = (
    digit_rule(
        "code behind a state with points",
        r"""(?<=\b(?:D\.\ ?C\.|N\.\ ?[YJHMCD]\.|S\.\ ?[CD]\.|R\.\ ?I\.|W\.\ ?Va\.|Calif\.|Mass\.
        |Conn\.),?\ )
        (?P<zip>\d{5})(?![\p{L}\p{N}]|[.,]\d)""",
        lambda match: digits(match["zip"]),
    ),
    digit_rule(
        "state and code alone",
        rf"""{START}
        (?P<state>{any_of(s for s in STATES if s not in ("IN", "OR", "ME", "OK", "HI", "OH"))})[ ]
        (?P<zip>\d{{5}})(?:-(?P<more>\d{{4}}))?{END}""",
        _zip,
    ),
    rule(
        "street behind a point",
        r"""(?<=\b(?:\p{Lu}|\p{Lu}\p{Ll}{1,4})\.\ )(?P<street>Ave|Blvd|Rd|Ln|Pkwy|Hwy|St)\.
        (?!\ \p{Lu})""",
        lambda match: STREETS[match["street"]] + _stop(match),
        wakes=".",
    ),
    digit_rule(
        "state and code",
        rf"(?<=,\ |\p{{Ll}}\ )(?P<state>{any_of(STATES)}),?\ (?P<zip>\d{{5}})(?:-(?P<more>\d{{4}}))?{END}",
        _zip,
    ),
    rule(
        "state behind a town",
        rf"(?<=\p{{Lu}}\p{{Ll}}+,\ )(?P<state>{any_of(STATES)})(?![\p{{L}}\p{{N}}])(?!\.\p{{L}})",
        _state,
        wakes=",",
    ),
    digit_rule(
        "house number",
        rf"""{START}(?<![$€£¥#])(?P<number>\d{{1,5}})(?:\ (?P<direction>[NSEW]\.?|NE|NW|SE|SW)(?=\ ))?
        (?=\ (?:\d+(?:st|nd|rd|th)|(?:{_NAME}|\p{{Lu}}{{2,}})(?:\ {_NAME}){{0,2}})\ (?:{_STREET}\.?
        |{_STREET_WORD}){END})""",
        _house,
    ),
    digit_rule(
        "direction before a street",
        rf"""(?<=\d\ )(?P<direction>[NSEW])\.(?=\ (?:{_STREET}\.|{_STREET_WORD}|{_NAME}\ (?:{_STREET}\b
        |{_STREET_WORD})))""",
        lambda match: DIRECTIONS[match["direction"]],
    ),
    digit_rule(
        "box of a post office",
        rf"{START}(?:P\.\ ?O\.|PO)\ [Bb]ox\ (?P<number>\d+){END}",
        lambda m: f"PO Box {in_pairs(m['number']) if len(m['number']) < 5 else digits(m['number'])}",
    ),
    rule(
        "street",
        rf"""(?<=(?:{_NAME}|\d(?:st|nd|rd|th)|\p{{Lu}}{{2,}})\ )(?P<street>{_STREET})(?:\.|(?=[,;\ ]|$))
        (?:\ (?P<direction>[NSEW]\.?|NE|NW|SE|SW)(?=,|$|\ |\.))?
        (?!\ {_NAME}\ (?:said|says|was|is|has|had)\b)(?<!(?<=\b(?i:in|the|a|of|and|with|by|old|dear|to|for
        |from|at)\ (?:Dr|Pl|Ct)\.?))""",
        lambda match: None if _before_name(match) else _street(match),
    ),
    rule("saint", rf"{START}(?:St|Saint|Ste)\.?\ ?(?<=\ |\.)(?=\p{{Lu}}[\p{{Ll}}'])", _saint),
    rule(
        "title",
        rf"{START}(?P<title>{any_of(TITLES)})\.(?=\ ?(?:{_NAME}|\p{{Lu}}\.|\p{{Lu}}\p{{L}}|\p{{Lu}}\b))",
        _title,
        wakes=".",
    ),
    rule("British title", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof|Lt|Capt|Sgt|Gen|Col)(?=\ {_NAME})", _title),
    rule("title alone", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof)\.", _title, wakes="."),
    rule(
        "short word before a number",
        rf"{START}(?P<short>{any_of(NUMBERED)})\.\ ?(?=\d|[IVXLC]+\b|[ivxlc]+\b)",
        _numbered,
        wakes=".",
    ),
    rule("numero", r"№\ ?", lambda match: "number ", wakes="№"),
    rule(
        "avenue of",
        rf"{START}(?P<street>{_STREET})\.(?=\ of\b)",
        lambda match: STREETS[match["street"]],
        wakes=".",
    ),
    rule(
        "degree",
        rf"{START}(?P<short>Ph\.D\.?|M\.Sc\.|B\.Sc\.|M\.Phil\.|Ed\.D\.|D\.Phil\.)(?![\p{{L}}\p{{N}}])",
        _plain,
        wakes=".",
    ),
    rule(
        "letters with points",
        rf"""{START}(?P<letters>(?:\p{{L}}\.\ ?){{2,}}(?<!\ )|(?:\p{{Lu}}\.){{2,}}\p{{Lu}}(?!\p{{L}}))
        (?P<own>'s)?(?![\p{{L}}\p{{N}}])""",
        lambda m: None if m["letters"].lower() in PLAIN else _dotted(m),
        wakes=".",
    ),
    rule(
        "either or",
        r"(?<![\p{L}/])(?:and/or|he/she|she/he|his/her|him/her|s/he|yes/no)(?![\p{L}/])",
        _slash,
        ignore_case=True,
        wakes="/",
    ),
    rule(
        "short word",
        rf"{START}(?P<short>{any_of(PLAIN)})(?<=[./]|/\p{{L}})(?![\p{{L}}\p{{N}}])",
        _plain,
        wakes="./",
    ),
    rule(
        "short word without a point",
        rf"{START}(?P<short>vs|etc|Jr|aka|AKA|hrs|mins|secs|yrs){END}(?!\.)",
        _plain,
    ),
    rule("with", r"(?<![\p{L}\p{N}/])w/(?=\ \p{L}|\p{L}{2})", lambda match: "with", wakes="/"),
)


def _before_name(match: Any) -> bool:
    """Whether a name follows: then `St.` is a saint and `Dr.` a doctor, whatever stands before."""
    following = match.string[match.end() :]
    named = following[:1] == " " and following[1:2].isupper() and match["direction"] is None
    return named and match["street"] in ("St", "Dr")
