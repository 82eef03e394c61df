"""Words that are written short: titles, streets, states, Latin."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import digits, in_pairs
from kokoro_lab.text.normalise.english.patterns import END, START, any_of
from kokoro_lab.text.normalise.rules import Rule, rule

TITLES = {
    "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Dr": "Doctor", "Prof": "Professor", "Rev": "Reverend",
    "Fr": "Father", "Sr": "Sister", "Hon": "Honorable", "Gov": "Governor", "Sen": "Senator",
    "Rep": "Representative", "Pres": "President", "Gen": "General", "Col": "Colonel", "Maj": "Major",
    "Capt": "Captain", "Cpt": "Captain", "Lt": "Lieutenant", "Sgt": "Sergeant", "Cpl": "Corporal", "Pvt": "Private", "Cmdr": "Commander",
    "Adm": "Admiral", "Messrs": "Messieurs", "Mme": "Madame", "Mlle": "Mademoiselle", "Supt": "Superintendent",
    "Insp": "Inspector", "Det": "Detective", "Atty": "Attorney", "Mt": "Mount", "Ft": "Fort", "Pt": "Point",
    "Msgr": "Monsignor", "Ald": "Alderman", "Amb": "Ambassador", "Sec": "Secretary", "Treas": "Treasurer",
}  # fmt: skip
"""Before a name."""
STREETS = {
    "St": "Street", "Ave": "Avenue", "Av": "Avenue", "Blvd": "Boulevard", "Rd": "Road", "Dr": "Drive", "Ln": "Lane",
    "Ct": "Court", "Pl": "Place", "Sq": "Square", "Pkwy": "Parkway", "Hwy": "Highway", "Expy": "Expressway",
    "Fwy": "Freeway", "Ter": "Terrace", "Terr": "Terrace", "Cir": "Circle", "Tpke": "Turnpike", "Aly": "Alley",
    "Trl": "Trail", "Xing": "Crossing", "Cres": "Crescent", "Bldg": "Building", "Plz": "Plaza", "Wy": "Way",
}  # fmt: skip
"""Behind a name."""
DIRECTIONS = {
    "N": "North", "S": "South", "E": "East", "W": "West", "NE": "Northeast", "NW": "Northwest", "SE": "Southeast",
    "SW": "Southwest",
}  # fmt: skip
STATES = {
    "AL": "Alabama", "AK": "Alaska", "AZ": "Arizona", "AR": "Arkansas", "CA": "California", "CO": "Colorado",
    "CT": "Connecticut", "DE": "Delaware", "FL": "Florida", "GA": "Georgia", "HI": "Hawaii", "ID": "Idaho",
    "IL": "Illinois", "IN": "Indiana", "IA": "Iowa", "KS": "Kansas", "KY": "Kentucky", "LA": "Louisiana",
    "ME": "Maine", "MD": "Maryland", "MA": "Massachusetts", "MI": "Michigan", "MN": "Minnesota",
    "MS": "Mississippi", "MO": "Missouri", "MT": "Montana", "NE": "Nebraska", "NV": "Nevada",
    "NH": "New Hampshire", "NJ": "New Jersey", "NM": "New Mexico", "NY": "New York", "NC": "North Carolina",
    "ND": "North Dakota", "OH": "Ohio", "OK": "Oklahoma", "OR": "Oregon", "PA": "Pennsylvania",
    "RI": "Rhode Island", "SC": "South Carolina", "SD": "South Dakota", "TN": "Tennessee", "TX": "Texas",
    "UT": "Utah", "VT": "Vermont", "VA": "Virginia", "WA": "Washington", "WV": "West Virginia",
    "WI": "Wisconsin", "WY": "Wyoming", "DC": "DC",
}  # fmt: skip
PLAIN = {
    "vs.": "versus", "vs": "versus", "v.s.": "versus", "etc.": "et cetera", "etc": "et cetera", "e.g.": "for example", "eg.": "for example",
    "i.e.": "that is", "ie.": "that is", "viz.": "namely", "cf.": "compare", "et al.": "et al", "ca.": "circa",
    "approx.": "approximately", "dept.": "department", "Dept.": "Department", "est.": "established", "Est.": "Established",
    "Inc.": "Incorporated", "Ltd.": "Limited", "Corp.": "Corporation", "Co.": "Company", "Bros.": "Brothers",
    "Jr.": "Junior", "Jr": "Junior", "Sr.": "Senior", "Esq.": "Esquire", "Assn.": "Association",
    "Assoc.": "Association", "Univ.": "University", "govt.": "government", "Govt.": "Government",
    "intl.": "international", "Intl.": "International", "misc.": "miscellaneous", "apt.": "apartment",
    "Apt.": "Apartment", "Ste.": "Suite", "avg.": "average", "max.": "maximum", "min.": "minimum",
    "temp.": "temperature", "incl.": "including", "excl.": "excluding", "p.s.": "PS", "P.S.": "PS",
    "w/o": "without", "w/": "with", "b/c": "because", "c/o": "care of", "n/a": "not applicable",
    "N/A": "not applicable", "a.k.a.": "also known as", "aka": "also known as", "AKA": "also known as",
    "R.I.P.": "rest in peace", "Mt.": "Mount", "Ft.": "Fort", "hrs.": "hours", "mins.": "minutes", "secs.": "seconds",
    "yrs.": "years", "mos.": "months", "wks.": "weeks", "tel.": "telephone", "Tel.": "Telephone", "ext.": "extension",
    "fwd.": "forward", "ref.": "reference", "attn.": "attention", "Attn.": "Attention", "pop.": "population",
    "b.": "born", "Jan.": "January", "Feb.": "February", "Mar.": "March", "Apr.": "April", "Jun.": "June",
    "Jul.": "July", "Aug.": "August", "Sept.": "September", "Sep.": "September", "Oct.": "October", "Nov.": "November",
    "Dec.": "December", "Mon.": "Monday", "Tues.": "Tuesday", "Tue.": "Tuesday", "Wed.": "Wednesday",
    "Thurs.": "Thursday", "Thu.": "Thursday", "Thur.": "Thursday", "Fri.": "Friday", "Sat.": "Saturday", "Sun.": "Sunday",
    "Calif.": "California", "Mass.": "Massachusetts", "Conn.": "Connecticut", "Penn.": "Pennsylvania",
    "Fla.": "Florida", "Ariz.": "Arizona", "Colo.": "Colorado", "Tex.": "Texas", "Wash.": "Washington",
    "Ill.": "Illinois", "Mich.": "Michigan", "Minn.": "Minnesota", "Tenn.": "Tennessee", "Va.": "Virginia",
}  # fmt: skip
SENTENCE_WORDS = frozenset(("min.", "max.", "Sun.", "Sat.", "Mon.", "Mar.", "Wash.", "Mass.", "Ill.", "Co.", "b.", "est.", "temp.", "pop.", "Fri.", "Wed.", "Dec.", "Jan."))
"""Words of their own when a sentence ends with them: they need something behind."""
NUMBERED = {
    "No": "number", "no": "number", "Nos": "numbers", "nos": "numbers", "Nr": "number", "p": "page", "pp": "pages", "pg": "page", "pgs": "pages", "vol": "volume", "Vol": "Volume", "vols": "volumes", "ch": "chapter", "Ch": "Chapter", "chap": "chapter", "Chap": "Chapter", "sec": "section", "Sec": "Section", "fig": "figure", "Fig": "Figure", "figs": "figures", "Figs": "Figures", "eq": "equation", "Eq": "Equation", "art": "article", "Art": "Article", "para": "paragraph", "ed": "edition", "bk": "book", "ser": "series", "pt": "part", "Pt": "Part", "par": "paragraph", "ver": "version", "Ver": "Version", "ext": "extension", "Ext": "Extension", "Rm": "Room", "rm": "room", "Apt": "Apartment", "apt": "apartment", "Ste": "Suite", "Hwy": "Highway", "Rte": "Route", "Op": "Opus", "op": "opus", "lot": "lot", "ref": "reference", "Ref": "Reference", "ca": "circa", "c": "circa", "l": "line", "ll": "lines", "vv": "verses", "tel": "telephone", "Tel": "Telephone", "Bldg": "Building",
}  # fmt: skip
"""Before a number, with a point."""


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
    """`U.S.A.` is said like `USA`; its last point may be the sentence's."""
    text = match["letters"].replace(".", "").replace(" ", "").upper()
    return text + (match["own"] or "") + _stop(match)


def _slash(match: Any) -> str:
    return {"and/or": "and or", "he/she": "he or she", "she/he": "she or he", "his/her": "his or her", "him/her": "him or her", "s/he": "she or he", "yes/no": "yes or no"}[match.group().lower()]


_NAME = r"\p{Lu}[\p{Ll}'’]+"
_STREET = any_of(STREETS)

RULES: tuple[Rule, ...] = (
    rule("state and code", rf"(?<=,\ |\p{{Ll}}\ )(?P<state>{any_of(STATES)}),?\ (?P<zip>\d{{5}})(?:-(?P<more>\d{{4}}))?{END}", _zip),
    rule("state behind a town", rf"(?<=\p{{Lu}}\p{{Ll}}+,\ )(?P<state>{any_of(STATES)})(?![\p{{L}}\p{{N}}])(?!\.\p{{L}})", _state),
    rule(
        "house number",
        rf"""{START}(?<![$€£¥#])(?P<number>\d{{1,5}})(?:\ (?P<direction>[NSEW]\.?|NE|NW|SE|SW)(?=\ ))?
        (?=\ (?:\d+(?:st|nd|rd|th)|(?:{_NAME}|\p{{Lu}}{{2,}})(?:\ {_NAME}){{0,2}})\ (?:{_STREET}\.?|{any_of(n for n in STREETS.values() if n not in ('Square', 'Court', 'Place', 'Point', 'Way', 'Trail'))}){END})""",
        _house,
    ),
    rule("box of a post office", rf"{START}(?:P\.\ ?O\.|PO)\ [Bb]ox\ (?P<number>\d+){END}", lambda m: f"PO Box {in_pairs(m['number']) if len(m['number']) < 5 else digits(m['number'])}"),
    rule(
        "street",
        rf"""(?<=(?:{_NAME}|\d(?:st|nd|rd|th)|\p{{Lu}}{{2,}})\ )(?P<street>{_STREET})(?:\.|(?=[,;\ ]|$))(?:\ (?P<direction>[NSEW]\.?|NE|NW|SE|SW)(?=,|$|\ |\.))?
        (?!\ {_NAME}\ (?:said|says|was|is|has|had)\b)(?<!(?<=\b(?i:in|the|a|of|and|with|by|old|dear|to|for|from|at)\ (?:Dr|Pl|Ct)\.?))""",
        lambda match: None if _before_name(match) else _street(match),
    ),
    rule("saint", rf"{START}(?:St|Saint|Ste)\.?\ ?(?<=\ |\.)(?=\p{{Lu}}[\p{{Ll}}'])", _saint),
    rule("title", rf"{START}(?P<title>{any_of(TITLES)})\.(?=\ ?(?:{_NAME}|\p{{Lu}}\.|\p{{Lu}}\p{{L}}|\p{{Lu}}\b))", _title),
    rule("British title", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof|Lt|Capt|Sgt|Gen|Col)(?=\ {_NAME})", _title),
    rule("title alone", rf"{START}(?P<title>Mr|Mrs|Ms|Dr|Prof)\.", _title),
    rule(
        "short word before a number",
        rf"{START}(?P<short>{any_of(NUMBERED)})\.\ ?(?=\d|[IVXLC]+\b)",
        _numbered,
    ),
    rule("numero", r"№\ ?", lambda match: "number "),
    rule("letters with points", rf"{START}(?P<letters>(?:\p{{L}}\.\ ?){{2,}}(?<!\ )|(?:\p{{Lu}}\.){{2,}}\p{{Lu}}(?!\p{{L}}))(?P<own>'s)?(?![\p{{L}}\p{{N}}])", lambda m: None if m["letters"].lower() in PLAIN or _initials(m) else _dotted(m)),
    rule("either or", r"(?<![\p{L}/])(?:and/or|he/she|she/he|his/her|him/her|s/he|yes/no)(?![\p{L}/])", _slash, ignore_case=True),
    rule("short word", rf"{START}(?P<short>{any_of(PLAIN)})(?<=[./]|/\p{{L}})(?![\p{{L}}\p{{N}}])", _plain),
    rule("short word without a point", rf"{START}(?P<short>vs|etc|Jr|aka|AKA){END}(?!\.)", _plain),
    rule("with", r"(?<![\p{L}\p{N}/])w/(?=\ \p{L}|\p{L}{2})", lambda match: "with"),
)


def _before_name(match: Any) -> bool:
    """`St.` behind a name and before another: a saint's, unless the first is all of a street's name."""
    following = match.string[match.end() :]
    return match["street"] in ("St", "Dr") and bool(following[:1] == " " and following[1:2].isupper() and not match.group().endswith(".") and match["direction"] is None)


def _initials(match: Any) -> bool:
    """The initials of a person keep their points: they are read as letters anyway."""
    return False
