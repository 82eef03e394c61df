"""Internet addresses, user names, hashtags, paths of files and telephone numbers in Spanish.

Parts of an address that can be read as a word are read as one, as in dictation; other parts (`txt`, `mx`,
`http`) are spelt. Every sign has its name, and digits are said one by one.

In a telephone number that is written in groups, pairs of digits are said as numbers and longer groups digit
by digit, as people dictate it in Spain and in America (`noventa y uno, uno dos tres, cuarenta y cinco`).
"""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule
from kokoro_lab.text.normalise.spanish.abbreviations import is_sayable, spell
from kokoro_lab.text.normalise.spanish.numerals import cardinal, digits
from kokoro_lab.text.tables import any_of, names, words

_NAMES, _WORDS = names(__package__)["sign in an address"], words(__package__)
_DOMAINS, _FILES = any_of(_WORDS["top-level domain"]), any_of(_WORDS["ending of a file"])
_TRAILING = r"(?<![.,;:!?…\"”')\]])"
_SHORT = 3
"""A part of an address with at most this many letters is spelt unless it falls into Spanish syllables. A
longer part with a vowel is read as a name."""
_TOKEN = regex.compile(r"\p{L}+|\d+|.")


def _address(match: Any) -> str:
    """`ana_lopez@correo.mx` as `ana guion bajo lopez arroba correo punto eme equis`; no `https://`."""
    address = regex.sub(r"^\w+://", "", match.group())
    return " ".join(word for token in _TOKEN.findall(address) if (word := _part(token)))


def _part(token: str) -> str:
    if token.isdecimal():
        return digits(token)
    if not token[0].isalpha():
        return _NAMES.get(token, token.strip())
    has_vowel = regex.search(r"[aeiouáéíóúüy]", token.casefold())
    if token.casefold() in _WORDS["said in an address"]:  # although they are no syllables of Spanish
        return token
    spelt = len(token) == 1 or not has_vowel or (len(token) <= _SHORT and not is_sayable(token))
    return spell(token) if spelt else token


def _tag(match: Any) -> str:
    """The words for a hashtag, which is divided at its capitals: `#BuenosDias`."""
    words = regex.findall(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\d+", match["tag"])
    said = [cardinal(int(word)) if word.isdecimal() and len(word) < 5 else _part(word) for word in words]
    return " ".join(("hashtag", *said))


_EXTENSION = r"(?:,?[ ]?(?:ext|extensión|int|anexo|x)\.?[ ]?(?P<extension>\d{1,5})(?!\w))?"
LAST_YEAR = 2100
"""A range of numbers that ends after this one is no range of years."""
_SPACE = r"[ .-]"
_START, _STOP = r"(?<![\w+/.,:-])", r"(?![\w/:-]|[.,]\d|[ ]\d)"
_COUNTED = (
    r"(?![ ](?!(?:antes|después|gracias|pues|además|tras|entonces|los|las|nos|sus)\b)"
    r"(?:de[ ]|euros|pesos|dólares|habitantes|personas|km|kg|[€$%]|\p{Ll}{3,}s(?!\w)))"
)
_LEAD = r"""(?<=\b(?:tel|tels|tfno|tlf|tlfno|telf|teléfonos?|móvil|celular|cel|fax|whatsapp
    |ll[aá]m\p{L}+|m[aá]r[cq]\p{L}+|número)
    (?:[ ](?:fijo|móvil|de[ ]contacto|es|al|a|el|es[ ]el|con[ ]el|por[ ]el))*[.:]{0,2}[ ]?)"""


def _group(group: str) -> str:
    if len(group) == 2 and not group.startswith("0"):
        return cardinal(int(group))
    return digits(group)


def _telephone(match: Any) -> str:
    number = match["number"]
    groups = regex.findall(r"\d+", number)
    said = [_group(group) for group in groups]
    if number.startswith("+"):
        # a country's code is a number of its own, but not when everything is glued to it
        said[0] = f"más {cardinal(int(groups[0])) if len(groups) > 1 else digits(groups[0])}"
    if match["extension"]:
        said += ["extensión", _group(match["extension"])]
    return " ".join(said)


def _counted(match: Any) -> str | None:
    return _telephone(match) if 7 <= len(regex.sub(r"\D", "", match["number"])) <= 15 else None


def _two_fours(match: Any) -> str | None:
    low, high = int(match["left"]), int(match["right"])
    range_of_years = low < high <= LAST_YEAR
    range_of_round = low < high and low % 50 == high % 50 == 0
    return None if range_of_years or range_of_round else _telephone(match)


RULES: tuple[Rule, ...] = (
    Rule(
        "URL",
        rf"(?<!\w)(?:(?:https?|ftp|file)://|www\.)[^\s<>\"“”]+{_TRAILING}",
        _address,
        ignore_case=True,
        wakes="./",
    ),
    Rule("e-mail address", r"(?<![\w.])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+", _address, wakes="@"),
    Rule(
        "domain",
        rf"(?<![\w@/.-])(?:[\p{{L}}\d](?:[\w-]*[\p{{L}}\d])?\.)+(?<=\p{{L}}[\w-]*\.){_DOMAINS}(?![\w-]|\.\w)"
        rf"(?:[:/][^\s<>\"“”]*{_TRAILING})?",
        _address,
        wakes=POINT_WITHIN,
    ),
    Rule("file", rf"(?<![\w@/\\.])[\w-]+\.{_FILES}(?!\w)", _address, wakes=POINT_WITHIN),
    Rule("path", rf"(?<![\w/.])~?(?:/[\p{{L}}\d_.-]+){{2,}}/?{_TRAILING}", _address, wakes="/"),
    Rule("path on Windows", rf"(?<!\w)[A-Z]:\\[^\s<>\"“”]*{_TRAILING}", _address, wakes="\\"),
    Rule("user name", r"(?<![\w@.])@\w[\w.]*(?<=\w)", _address, wakes="@"),
    Rule("hashtag", r"(?<![\w\#])\#(?P<tag>\w*\p{L}\w*)", _tag, wakes="#"),
)

TELEPHONE: tuple[Rule, ...] = (
    Rule(
        "international telephone number",
        rf"(?<![\w+])(?P<number>\+\d{{1,3}}(?:{_SPACE}?\(\d{{1,4}}\))?(?:{_SPACE}?\d{{1,4}}){{2,6}}){_EXTENSION}{_STOP}",
        _counted,
        wakes="+",
    ),
    digit_rule(
        "telephone number with an area code",
        rf"(?<![\w+])(?P<number>\(\d{{2,4}}\)[ ]?\d{{3,4}}[ -]?\d{{2,4}}(?:[ -]?\d{{2,4}})?)"
        rf"{_EXTENSION}{_STOP}",
        _counted,
    ),
    digit_rule(
        "telephone number in groups",
        rf"""{_START}(?P<number>
              [89]\d[ .-]\d{{3}}[ .-]\d{{2}}[ .-]\d{{2}}        # 91 123 45 67
            | [6-9]\d{{2}}[ .-]\d{{2}}[ .-]\d{{2}}[ .-]\d{{2}}  # 600 11 22 33
            | [6-9]\d{{2}}[ -]\d{{3}}[ -]\d{{3}}                # 912 345 678
            | \d{{3}}-\d{{3}}-\d{{4}} | \d{{3}}[ ]\d{{3}}[ ]\d{{4}} | \d{{3}}-\d{{4}}
            | \d{{2}}[ -]\d{{4}}[ -]\d{{4}} | \d{{3}}-\d{{2}}-\d{{2}} | \d{{1,2}}-\d{{3}}-\d{{3}}-\d{{4}}
            | \d[ -]\d{{3}}-\d{{4}}
            ){_EXTENSION}{_STOP}{_COUNTED}""",
        _telephone,
    ),
    digit_rule(
        "number that can only be a telephone's",
        rf"{_START}(?P<number>[679]\d{{8}}|\d{{10,11}})(?<!000){_EXTENSION}{_STOP}{_COUNTED}",
        _counted,
    ),
    digit_rule(
        "two fours that are no years",
        rf"{_START}(?P<number>(?P<left>\d{{4}})-(?P<right>\d{{4}})){_EXTENSION}{_STOP}{_COUNTED}",
        _two_fours,
    ),
    digit_rule(
        "number that is said to be a telephone's",
        rf"{_LEAD}(?P<number>\d(?:{_SPACE}?\d){{6,14}}){_EXTENSION}{_STOP}{_COUNTED}",
        _counted,
        ignore_case=True,
    ),
)
