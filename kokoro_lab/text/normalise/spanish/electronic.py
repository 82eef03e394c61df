"""Addresses of the net, user names, hashtags, paths of files: every sign has its name.

Parts that can be read as a word are read as one, as whoever dictates an address does; only what cannot be
(`txt`, `mx`, `http`) is spelt. Digits are said one by one, since in an address each of them counts.
"""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.rules import Rule, rule
from kokoro_lab.text.normalise.spanish.letters import is_sayable, spell
from kokoro_lab.text.normalise.spanish.words import cardinal, digits

SIGNS = {
    "@": "arroba", ".": "punto", "-": "guion", "_": "guion bajo", "/": "barra", "\\": "barra invertida",
    ":": "dos puntos", "?": "interrogación", "=": "igual", "&": "ampersand", "#": "almohadilla",
    "%": "por ciento",
    "+": "más", "~": "virgulilla", "*": "asterisco", ",": "coma", ";": "punto y coma", "!": "exclamación",
    "$": "dólar", "'": "apóstrofo", "(": "paréntesis", ")": "cierra paréntesis", "|": "barra vertical",
}  # fmt: skip
_DOMAINS = (
    "com|org|net|edu|gob|gov|info|biz|int|mil|app|dev|blog|shop|online|store|tienda|eu|cat|gal|eus|"
    "es|mx|ar|co|cl|pe|ve|ec|uy|py|bo|cr|pa|gt|hn|sv|ni|do|cu|pr|us|uk|fr|de|it|pt|br|io|ai|tv|me|ly"
)
_FILES = (
    "txt|pdf|docx?|xlsx?|pptx?|odt|csv|json|xml|html?|js|py|jpe?g|png|gif|svg|mp[34]|wav|avi|zip|rar|exe|log"
)
_TRAILING = r"(?<![.,;:!?…\"”')\]])"
_SHORT = 3
"""Up to this many letters, a part that is no syllable is spelt; longer ones are names somebody made up."""
_SAID = frozenset(("org", "gob", "app", "apps"))
"""Said as words although they are no syllables of Spanish."""
_TOKEN = regex.compile(r"\p{L}+|\d+|.")


def say_address(address: str) -> str:
    """`ana_lopez@correo.mx` as `ana guion bajo lopez arroba correo punto eme equis`."""
    return " ".join(word for token in _TOKEN.findall(address) if (word := _part(token)))


def _part(token: str) -> str:
    if token.isdecimal():
        return digits(token)
    if not token[0].isalpha():
        return SIGNS.get(token, token.strip())
    has_vowel = regex.search(r"[aeiouáéíóúüy]", token.casefold())
    if token.casefold() in _SAID:
        return token
    spelt = len(token) == 1 or not has_vowel or (len(token) <= _SHORT and not is_sayable(token))
    return spell(token) if spelt else token


def _address(match: Any) -> str:
    return say_address(match.group())


def _tag(match: Any) -> str:
    """The words of a hashtag are told apart by their capitals: `#BuenosDias`."""
    words = regex.findall(r"\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\d+", match["tag"])
    said = [cardinal(int(word)) if word.isdecimal() and len(word) < 5 else _part(word) for word in words]
    return " ".join(("hashtag", *said))


RULES: tuple[Rule, ...] = (
    rule(
        "URL",
        rf"(?<!\w)(?:(?:https?|ftp|file)://|www\.)[^\s<>\"“”]+{_TRAILING}",
        _address,
        ignore_case=True,
        wakes="./",
    ),
    rule("e-mail address", r"(?<![\w.])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+", _address, wakes="@"),
    rule(
        "domain",
        rf"(?<![\w@/.-])(?:[\p{{L}}\d](?:[\w-]*[\p{{L}}\d])?\.)+(?<=\p{{L}}[\w-]*\.)(?:{_DOMAINS})(?![\w-]|\.\w)"
        rf"(?:[:/][^\s<>\"“”]*{_TRAILING})?",
        _address,
        wakes=".",
    ),
    rule("file", rf"(?<![\w@/\\.])[\w-]+\.(?:{_FILES})(?!\w)", _address, wakes="."),
    rule("path", rf"(?<![\w/.])~?(?:/[\p{{L}}\d_.-]+){{2,}}/?{_TRAILING}", _address, wakes="/"),
    rule("path on Windows", rf"(?<!\w)[A-Z]:\\[^\s<>\"“”]*{_TRAILING}", _address, wakes="\\"),
    rule("user name", r"(?<![\w@.])@\w[\w.]*(?<=\w)", _address, wakes="@"),
    rule("hashtag", r"(?<![\w\#])\#(?P<tag>\w*\p{L}\w*)", _tag, wakes="#"),
)
