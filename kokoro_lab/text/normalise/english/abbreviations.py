"""English abbreviations: titles, streets, states, Latin."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.boundaries import PRONOUN
from kokoro_lab.text.normalise.english.dates import DAY, DAYS, MONTH, SHORT_DAY
from kokoro_lab.text.normalise.english.numerals import digits, in_pairs, number
from kokoro_lab.text.normalise.english.patterns import (
    END,
    LOOSE_END,
    NAMES,
    START,
    WORDS,
    any_word,
    ends_text,
    optional,
    stop,
)
from kokoro_lab.text.normalise.english.quantities import UNITS
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule
from kokoro_lab.text.tables import any_of

TITLES, STREETS, STATES, NUMBERED = (NAMES[kind] for kind in ("title", "street", "state", "numbered"))
"""Abbreviations by their place: before a name; after a name; with a postal code; before a number, with a
point."""
_AMOUNT_BEFORE = regex.compile(r"\d[\ -]?(?:\p{L}+/)?$")
SENTENCE_WORDS = NAMES["ambiguous"]
"""Abbreviations that are also words. They are read as abbreviations only if more text follows."""
CONTRACTIONS = NAMES["contraction"]
"""Words that an apostrophe shortens in the middle, in lower case."""
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


_PERSON = regex.compile(
    rf"\b(?:Dr\.?|(?i:{any_word('first name')})|\p{{Lu}}\.)(?:\ \p{{Lu}}[\p{{L}}.]*+)+,\ $", regex.VERBOSE
)


def _state(match: Any) -> str | None:
    """The name of the state behind a town; None for the degrees `MD` and `MA` behind a person's name."""
    degree = match["state"] in ("MD", "MA") and _PERSON.search(match.string, 0, match.start())
    return None if degree else STATES[match["state"]]


def _zip(match: Any) -> str:
    more = f", {digits(match['more'])}" if match["more"] else ""
    return f"{STATES[match['state']]} {digits(match['zip'])}{more}"


def _dotted(match: Any) -> str:
    """`U.S.A.` is said like `USA`, letter by letter; its last point may be the sentence's.

    The initials of a person stay apart, and so do letters that together would make a word: `O. H. Lee` is not
    read "oh Lee".
    """
    text: str = match["letters"].replace(".", "").upper()
    if text.lower() in WORDS["read as a word"]:
        text = " ".join(text)
    return text + (match["own"] or "") + stop(match)


_DRAWN_OUT = regex.compile(r"(\p{L})\1{2,}", regex.IGNORECASE)


def _shortened(match: Any) -> str | None:
    """A word that is drawn out, as it is spelt: `nooo`, `goood`."""
    shorter = (_DRAWN_OUT.sub(kept, match.group()) for kept in (r"\1\1", r"\1"))
    return next((each for each in shorter if each.lower() in WORDS["drawn out"]), None)


def _house(match: Any) -> str | None:
    """The words for a house number, or for a span of them: `7-9`. `41-25` is one number of a house."""
    first, last = match["first"], match["number"]
    if first and int(first) >= int(last):
        return None
    return (f"{in_pairs(first)} to " if first else "") + in_pairs(last) + _direction(match)


def _contraction(match: Any) -> str:
    words = CONTRACTIONS[match.group().lower()]
    return words.capitalize() if match.group()[0].isupper() else words


_A_NAME = regex.compile(rf"\ (?!{any_word('part of a building')}\b)\p{{Lu}}", regex.VERBOSE)


def _before_name(match: Any) -> bool:
    """Whether a name follows: then `St.` is a saint and `Dr.` a doctor, whatever stands before. `Apt.` is no
    name."""
    following = match.string[match.end() :]
    named = _A_NAME.match(following) and match["direction"] is None
    return bool(named) and match["street"] in ("St", "Dr")


_NAME = r"\p{Lu}[\p{Ll}'’]+"
_STREET = any_of(STREETS)
_STREET_WORD = any_of(set(STREETS.values()) - {"Square", "Court", "Place", "Point", "Way", "Trail"})
_ZIP = r"(?P<zip>\d{5})(?:-(?P<more>\d{4}))?"
_OF_A_STREET = r"(?P<direction>[NSEW]\.?|NE|NW|SE|SW)"

RULES: tuple[Rule, ...] = (
    digit_rule(
        "code behind a state with points",
        r"""(?<=\b(?:D\.\ ?C\.|N\.\ ?[YJHMCD]\.|S\.\ ?[CD]\.|R\.\ ?I\.|W\.\ ?Va\.|Calif\.|Mass\.|Conn\.),?\ )
        (?P<zip>\d{5})(?![\p{L}\p{N}]|[.,]\d)""",
        lambda match: digits(match["zip"]),
    ),
    digit_rule(
        "state and code alone",
        rf"{START}(?P<state>{any_of(STATES.keys() - {'IN', 'OR', 'ME', 'OK', 'HI', 'OH'})})\ {_ZIP}{END}",
        _zip,
    ),
    Rule(
        "number sign behind what it counts",  # `PO# 4471`
        rf"(?<=(?<![\p{{L}}\p{{N}}])(?i:{any_word('before a number sign')})\.?\ ?)\#(?=[\s:,;)\d]|$)",
        lambda match: "number",
        wakes="#",
    ),
    Rule(
        "street behind a point",
        r"""(?<=\b(?:\p{Lu}|\p{Lu}\p{Ll}{1,4})\.\ )(?P<street>Ave|Blvd|Rd|Ln|Pkwy|Hwy|St)\.
        (?!\ \p{Lu})""",
        _street,
        wakes=POINT_WITHIN,
    ),
    digit_rule(
        "state and code",
        rf"(?<=,\ |\p{{Ll}}\ )(?P<state>{any_of(STATES)}),?\ {_ZIP}{END}",
        _zip,
    ),
    Rule(
        "state behind a town",
        rf"(?<=\p{{Lu}}\p{{Ll}}+,\ )(?P<state>{any_of(STATES)}){LOOSE_END}(?!\.\p{{L}})",
        _state,
        wakes=",",
    ),
    digit_rule(
        "house number",
        rf"""{START}(?<![$€£¥#])(?:(?P<first>\d{{1,4}})[-–](?!\d+\ \d))?(?P<number>\d{{1,5}})
        (?:\ {_OF_A_STREET}(?=\ ))?(?=\ (?:\d+(?:st|nd|rd|th)|(?:{_NAME}|\p{{Lu}}{{2,}})(?:\ {_NAME}){{0,2}})
        \ (?:{_STREET}\.?|{_STREET_WORD}){END})""",
        _house,
    ),
    digit_rule(
        "direction before a street",
        rf"""(?<=\d\ )(?P<direction>[NSEW])\.
        (?=\ (?:{_STREET}\.|{_STREET_WORD}|{_NAME}\ (?:{_STREET}\b|{_STREET_WORD})))""",
        lambda match: NAMES["direction"][match["direction"]],
    ),
    digit_rule(
        "box of a post office",
        rf"{START}(?:P\.\ ?O\.|PO)\ [Bb]ox\ (?P<number>\d+){END}",
        lambda m: f"PO Box {in_pairs(m['number']) if len(m['number']) < 5 else digits(m['number'])}",
    ),
    Rule(
        "street",
        rf"""(?<=(?:{_NAME}|\d(?:st|nd|rd|th)|\p{{Lu}}{{2,}})\ )(?P<street>{_STREET})(?:\.|(?=[,;\ ]|$))
        (?:\ {_OF_A_STREET}(?=,|$|\ |\.))?(?!\ {_NAME}\ (?:said|says|was|is|has|had)\b)
        (?<!(?<=\b(?i:in|the|a|of|and|with|by|old|dear|to|for|from|at)\ (?:Dr|Pl|Ct)\.?))""",
        lambda match: None if _before_name(match) else _street(match),
    ),
    Rule(
        "direction",
        rf"""(?<![\p{{L}}_])(?P<direction>[NSEW]{{1,3}})(?:
        (?<=\b(?:I|US|SR|CR|{any_word("road with a number")})[-\ ]\d{{1,3}}(?:[A-Z]?\ )?[NSEW])
        |(?<=\b(?i:{any_word("before a direction")})\ [NSEW]{{2,3}})
        |(?<=\b\d\ (?:mi\.?|miles?|km|blocks?)\ [NSEW])
        |(?<=[NSEW]{{2}})(?=\ (?i:{any_word("behind a direction")})\b)
        |(?<=(?:^|[;,]\ |\b(?i:{any_word("before a wind")})\ )[NSEW]{{2,3}})
        (?=\ (?:\d|1[0-2])(?:[-–]|\ or\ |\ to\ )
        (?:\d|1[0-2])(?!\d))){LOOSE_END}(?!\.\p{{L}}|-)""",
        _compass,
        wakes="NSEW",
    ),
    Rule(
        "part of a country",
        rf"{START}(?P<direction>[NSEW])\.(?=\ {any_word('country or state with parts')}\b)",
        lambda match: NAMES["direction"][match["direction"]],
        wakes=POINT_WITHIN,
    ),
    Rule("th'", r"(?<![\p{L}\p{N}'])[Tt]h'(?=\ \p{L})", lambda match: "the", wakes="'"),
    Rule(
        "saint",
        rf"{START}(?:St|Saint|Ste)\.?\ ?(?<=\ |\.)(?=\p{{Lu}}[\p{{Ll}}'])",
        lambda match: "Sainte" if "e" in match.group() else "Saint",
    ),
    Rule(
        "senior",
        rf"{START}Sr\.?(?=\ {any_word('job behind senior')}\b)",
        lambda match: "Senior",
    ),
    Rule(
        "international",
        rf"{START}Int(?:'?l)?\.?(?=\ (?:{any_word('what is international')})\b)",
        lambda match: "International",
    ),
    Rule(
        "contraction",  # `req'd`, `B'ham`
        rf"{START}{any_of(CONTRACTIONS)}{LOOSE_END}(?!')",
        _contraction,
        ignore_case=True,
        wakes="'",
    ),
    Rule(
        "summary for who has no time",  # `TL;DR`
        rf"{START}tl;dr{END}",
        lambda match: "T L D R",
        ignore_case=True,
        wakes=";",
    ),
    Rule(
        "cross of a station",  # `King's X`
        r"(?<=\b(?:King'?s|Charing)\ )X(?![\p{L}\p{N}_'-])",
        lambda match: "Cross",
        wakes="X",
    ),
    Rule(
        "near a town",  # `Nr Bath`, but `Nr. 5`
        rf"{START}Nr\.?(?=\ \p{{Lu}}\p{{Ll}})",
        lambda match: "Near",
        wakes="N",
        also="r",
    ),
    Rule(
        "first name that is shortened",  # `Thos. Hale`
        rf"{START}(?P<short>{any_of(NAMES['shortened first name'])})\.(?=\ \p{{Lu}})",
        lambda match: NAMES["shortened first name"][match["short"]],
        wakes=POINT_WITHIN,
    ),
    digit_rule(
        "experience in years",
        r"(?<=\b(?:years?|yrs?)'?\.?(?:\ of)?\ )exp(?![\p{L}\p{N}_])\.?",
        lambda match: "experience" + stop(match),
        also="x",
    ),
    digit_rule(
        "mobile telephone",
        rf"{START}[Mm]ob(?:\.|:|(?=\ ))(?=\ ?(?:\+\d|\(?0\d{{2,4}}))",
        lambda match: f"{'M' if match.group()[0] == 'M' else 'm'}obile",
    ),
    digit_rule(
        "school year",
        rf"{START}Yr(?P<many>s?)(?=\ \d{{1,2}}(?!\d|[:.,]\d))",
        lambda match: "Years" if match["many"] else "Year",
        also="Y",
    ),
    Rule(
        "mark of a machine",  # `Gas Mk 4`, `Mk II`
        rf"{START}Mk\.?\ ?(?=\d|[IVX]+\b)",
        lambda match: "Mark",
        wakes="M",
        also="k",
    ),
    digit_rule(
        "section of an act",  # `s.21(4)`, but `in 5 s. 21 of us`
        r"""(?<![\p{L}\p{N}.'’]|\d\ )(?P<many>s)?s\.\ ?(?=\d{1,4}\p{Lu}{0,2}(?:\(|[\s,;)–-]|\.?$))
        (?:(?P<first>\d{1,4})[-–](?=\d))?""",
        lambda m: (
            ("sections" if m["many"] else "section") + (f" {number(m['first'])} to" if m["first"] else "")
        ),
        also=POINT_WITHIN,
    ),
    Rule(
        "declination of a star",  # `Dec. +41°`
        rf"{START}Dec\.?(?=\ [-−–+]?\d{{1,2}}(?:\.\d+)?\ ?°)",
        lambda match: "declination",
        wakes="°",
    ),
    Rule(
        "mode of a key",  # `in C♯ min.`, but `min. 5`
        r"""(?<![\p{L}\p{N}_])(?P<mode>min|maj)(?![\p{L}\p{N}_])\.?
        (?<=(?<![\p{L}\p{N}])(?:[A-G](?:[♯♭#b]|[\ -](?:sharp|flat))|(?<=\bin\ )[A-G])\ \p{L}{3}\.?)""",
        lambda match: ("minor" if match["mode"] == "min" else "major") + stop(match),
        wakes="ABCDEFG",
    ),
    digit_rule(
        "edition",
        r"(?<=\d(?:st|nd|rd|th)\ (?:rev\.\ )?)(?:ed|c)\.",
        lambda m: f"{'century' if m.group()[0] in 'cC' else 'edition'}{stop(m)}",
        ignore_case=True,
    ),
    digit_rule(
        "part of an army",
        rf"(?<=\d(?:st|nd|rd|th)\ (?:\p{{Lu}}\p{{Ll}}+\.?\ )?)(?P<short>{any_of(NAMES['part of an army'])})"
        r"(?:\.|(?![\p{L}\p{N}.]))",
        lambda match: f"{NAMES['part of an army'][match['short']]}{stop(match)}",
    ),
    Rule(
        "week commencing or ending",  # `w/c 4 March`
        rf"(?<![\p{{L}}\p{{N}}/])[Ww]/(?P<which>[ce])(?=:?\ (?:\d|(?:{SHORT_DAY}|{any_of(DAYS)})\b))",
        lambda match: f"week {'commencing' if match['which'] == 'c' else 'ending'}",
        wakes="/",
    ),
    Rule(
        "title",
        rf"{START}(?P<title>{any_of(TITLES)})\.(?=\ ?(?:{_NAME}|\p{{Lu}}\.|\p{{Lu}}\p{{L}}|\p{{Lu}}\b))",
        _title,
        wakes=POINT_WITHIN,
    ),
    Rule("British title", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof|Lt|Capt|Sgt|Gen|Col)(?=\ {_NAME})", _title),
    Rule("title alone", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof)\.", _title, wakes="."),
    digit_rule(
        "established or died in a year",
        r"""(?<![\p{L}\p{N}]|[\d%]\ \()(?:[Ee](?i:st)|d)\.(?=\ (?:in\ )?(?:1[5-9]|20)\d\d
        (?!\p{L}|\p{N}|[.,]\d|\ \p{Ll}{2,}s\b|\ ?%))""",
        lambda match: "died" if match.group() == "d." else "established",
    ),
    digit_rule(
        "children in a family tree",
        r"(?<=\bm\.[^!?]{0,60}\d\ )ch\.(?=[;,)\s]|$)",
        lambda match: "children" + stop(match),
        also=POINT_WITHIN,
    ),
    digit_rule(
        "died or married on a day",
        rf"""(?<![\p{{L}}\p{{N}}]|[\d%]\ \(|\d\ )(?P<short>[bdm])\.(?=\ {DAY}\ (?i:{MONTH})\ (?:1[5-9]|20)\d\d
        |(?<=m\.)\ [123](?:st|nd|rd)\ \p{{Lu}})""",
        lambda match: {"b": "born", "d": "died", "m": "married"}[match["short"]],
        also=POINT_WITHIN,
    ),
    digit_rule(
        "half time",
        r"(?<=\d[-–]\d{1,2}\ )[HF]T(?![\p{L}\p{N}])|(?<![\p{L}\p{N}])[HF]T(?=:?\ \d{1,2}[-–]\d{1,2}(?!\d))",
        lambda match: "half time" if match.group() == "HT" else "full time",
    ),
    digit_rule(
        "flight level",
        rf"{START}FL\ ?(?P<level>\d{{2}}0){END}(?![.,]\d|\ {any_of(UNITS)})",
        lambda match: f"flight level {digits(match['level'])}",
    ),
    digit_rule(
        "most or least",
        r"(?<=^|[(\n])(?P<short>Max|Min)\.\ (?=[$€£]?\d)",
        lambda match: {"Max": "Maximum ", "Min": "Minimum "}[match["short"]],
    ),
    Rule(
        "short word before a number",
        rf"{START}(?P<short>{any_of(NUMBERED)})\.\ ?(?=\(?\d|\(?(?!{PRONOUN})[IVXLC]+\b|\(?[ivxlc]+\b)",
        lambda match: NUMBERED[match["short"]],
        wakes=POINT_WITHIN,
    ),
    digit_rule(
        "road",
        rf"{START}(?P<short>Hwy|Rte|Apt|Bldg|Rm|Vol|Fig|Figs|Ch|Sec|Eq|Ext|Ste|Ep)(?=\ \#?\p{{Lu}}?\d)",
        lambda match: NUMBERED[match["short"]],
    ),
    Rule("numero", r"№|\bN[º°](?=\ ?\d)", lambda match: "number", wakes="№º°"),
    Rule("sections", r"§§", lambda match: "sections", wakes="§"),
    Rule("avenue of", rf"{START}(?P<street>{_STREET})\.(?=\ of\b)", _street, wakes=POINT_WITHIN),
    Rule(
        "degree",
        rf"{START}(?P<short>Ph\.D\.?|M\.Sc\.|B\.Sc\.|M\.Phil\.|Ed\.D\.|D\.Phil\.){LOOSE_END}",
        _plain,
        wakes=POINT_WITHIN,
    ),
    Rule(
        "letters with points",
        rf"""{START}(?P<letters>(?:\p{{L}}\.\ ?){{2,}}(?<!\ )|(?:\p{{Lu}}\.){{2,}}\p{{Lu}}(?!\p{{L}}))
        (?P<own>'s)?{LOOSE_END}""",
        lambda m: None if m["letters"].lower() in PLAIN else _dotted(m),
        wakes=POINT_WITHIN,
    ),
    Rule(
        "drawn-out word",
        r"(?<![\p{L}\p{N}_.@#/-])\p{L}*(\p{L})\1{2}\p{L}*(?![\p{L}\p{N}_@/-]|\.\p{L}|'\p{L})",
        _shortened,
        ignore_case=True,
    ),
    Rule(
        "either or",
        rf"(?<![\p{{L}}/]){any_of(NAMES['either or'])}(?![\p{{L}}/])",
        lambda match: NAMES["either or"][match.group().lower()],
        ignore_case=True,
        wakes="/",
    ),
    Rule(
        "short word",
        rf"{START}(?=\p{{L}}+[./]|et\ al)(?P<short>{any_of(PLAIN)})(?<=[./]|/\p{{L}}){LOOSE_END}",
        _plain,
        wakes="./",
    ),
    Rule(
        "short word without a point",
        rf"""{START}(?P<short>vs|etc|Jr|[Qq]ty|aka|AKA|hrs|mins|secs|yrs|[Pp]ls|mkt|Ctrl|Esc|[Tt]xns?){END}
        (?:(?!\.)|(?<=[Pp]ls)\.(?=\ \p{{Ll}}))""",
        _plain,
    ),
    Rule("with", r"(?<![\p{L}\p{N}/])w/(?=\ \p{L}|\p{L}{2})", lambda match: "with", wakes="/"),
)
