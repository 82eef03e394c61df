"""Where sentences end.

`sentencex` (Wikimedia) knows the abbreviations of many languages. What it cuts all the same, although
nobody would stop there, is joined again.
"""

from __future__ import annotations

from collections.abc import Iterator

import regex
from sentencex import get_sentence_boundaries

_ABBREVIATIONS = {
    # before a number
    "en": r"(?i:vols?|pp?|figs?|nos?|chs?|chap|secs?|sect|arts?|eqs?|cols?|tab|ver|approx|ca|op|nr|pgs?|pts?"
    r"|apt|rm|ste|hwy|rte|ext|tel|cap|st|mt|ft|(?<!\d )(?:max|min))\.$",
    "es": r"(?:págs?|p{1,2}|vols?|caps?|arts?|núms?|figs?|aprox|tel|ref|(?<!\d )(?:máx|mín))\.$",
    "fr": r"(?:pp?|vol|chap|art|fig|env|tél|réf|no?)\.$",
    "it": r"(?:pagg?|p{1,2}|vol|cap|artt?|figg?|nn?|tel|ca)\.$",
    "pt": r"(?:págs?|p{1,2}|vols?|caps?|arts?|figs?|núm|tel|aprox)\.$",
}
_TITLES = {
    # before a name
    "en": r"(?:Gov|Sen|Rep|Gen|Capt|Lt|Col|Sgt|Maj|Cmdr|Rev|Hon|Messrs|Mme|Mlle|Mt|Ft)\.$",
    "es": r"(?:Srs?|Sras?|Srtas?|Dr[as]?s?|D|Dña|Ud|Uds|Prof|Ing|Lic|Gral|Cap|Avda?|Sto|Sta|Mons)\.$",
    "fr": r"(?:MM?|Mme|Mlle|Dr|Pr|Me|Mgr|St|Ste|av|bd|boul)\.$",
    "it": r"(?:[Ss]ig|[Dd]ott|[Pp]rof|[Ii]ng|[Aa]vv|[Oo]n|[Gg]en|[Mm]ons|[Gg]eom|[Rr]ag|[Ss]pett)\.$",
    "pt": r"(?:Srs?|Sras?|Dra?|Av|R|Prof|Profa|Eng|Gen|Pe|Sto|Sta|D)\.$",
}
_ABBREVIATION, _TITLE = (
    {language: regex.compile(rf"(?<!\w){pattern}") for language, pattern in patterns.items()}
    for patterns in (_ABBREVIATIONS, _TITLES)
)
_NUMBER_OF_ITEM = regex.compile(r"[.!?…][\"”')]*\s+(\d{1,2}\.)$")
_AHEAD = 12
"""Characters either side of a border that are looked at."""
_DOT_OF_WORD = regex.compile(r"(?:^|\s)\.$")
"""As in `.NET`."""
_GLUED = regex.compile(r"[.．][-–\p{Lu}\p{Nd}]")
"""A dot with something right behind it is inside a name, an address or a number."""
_SHORT_WORD = regex.compile(r"(?<!\p{L})\p{L}{1,5}\.$")
_NUMBER = regex.compile(r"\d{1,3}\.")
_QUOTED = regex.compile(r"[」』]$")
_GOES_ON = regex.compile(r"(?:と|って|など)(?!ても)")


def sentence_ranges(text: str, language: str) -> Iterator[tuple[int, int]]:
    """Half-open ranges of the sentences of `text`, in order; together they are all of it that is not space.

    Parameters
    ----------
    text : str
        A paragraph.
    language : str
        A canonical tag.
    """
    code = language.split("-")[0]
    start: int | None = None
    found = [(each["start_index"], each["end_index"]) for each in get_sentence_boundaries(code, text)]
    for (first, end), following in zip(found, [*found[1:], None], strict=True):
        start = first if start is None else start
        said = text[start:end].rstrip()
        behind = text[start + len(said) : start + len(said) + _AHEAD]
        rest = behind.lstrip()
        if following is not None and "\n" not in behind[: len(behind) - len(rest)]:
            glued = behind == rest and (_DOT_OF_WORD.search(said) or _GLUED.search(said[-1:] + rest[:1]))
            if glued or _goes_on(said, rest, code):
                continue
            item = _NUMBER_OF_ITEM.search(said)
            if item and not _abbreviated(said[: item.start(1)], code):  # the number of what follows
                yield start, start + item.start(1)
                start += item.start(1)
                continue
        yield start, end
        start = None


def _abbreviated(said: str, code: str) -> bool:
    """Whether it ends with an abbreviation that a number follows."""
    return code in _ABBREVIATION and bool(_ABBREVIATION[code].search(said.rstrip()[-_AHEAD:]))


def _goes_on(said: str, rest: str, code: str) -> bool:
    tail = said[-_AHEAD:]
    if _NUMBER.fullmatch(said) or (rest[:1].isdigit() and _abbreviated(said, code)):
        return True
    if rest[:1].isupper() and code in _TITLE and _TITLE[code].search(tail):
        return True
    if rest[:1].islower() and _SHORT_WORD.search(tail):
        return True  # an abbreviation that is in no list
    return bool(_QUOTED.search(tail) and _GOES_ON.match(rest))
