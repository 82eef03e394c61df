"""Addresses of the net, files, handles and hashtags: read so that a listener could type them."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import cardinal, digits, in_pairs
from kokoro_lab.text.normalise.english.patterns import END, START, any_of, words_of
from kokoro_lab.text.normalise.rules import Rule, digit_rule, rule

SIGNS = {
    ".": "dot", "/": "slash", ":": "colon", "-": "dash", "_": "underscore", "@": "at", "?": "question mark",
    "=": "equals", "&": "ampersand", "#": "hash", "%": "percent", "+": "plus", "~": "tilde",
    "\\": "backslash", ",": "comma", ";": "semicolon", "!": "exclamation mark", "*": "asterisk",
    "$": "dollar", "'": "apostrophe", "(": "open parenthesis", ")": "close parenthesis",
    "[": "open bracket", "]": "close bracket", "|": "pipe",
}  # fmt: skip
TOP_LEVEL = words_of("""
com org net edu gov mil int info biz name io ai dev app co uk us ca au de fr es it nl eu jp cn in ru
br mx ch at be se no dk fi pl cz ie nz za kr tv me ly gg fm sh xyz online site tech store blog cloud
news wiki museum travel jobs
""")
SPELT = words_of("""
uk us eu tv io ai ca au de fr es jp cn ru br mx ch se dk fi pl cz ie nz za kr ly gg fm sh xyz nl
""")
"""Ends of addresses that are said letter by letter; `com`, `org`, `net` and words are said as words."""
WORDS = frozenset(TOP_LEVEL) - SPELT - {"mil", "biz", "int", "edu", "gov"} | {
    "edu", "gov", "gmail", "yahoo", "hotmail", "outlook", "html", "github", "youtube", "wikipedia", "google",
}  # fmt: skip
FILES = words_of("""
txt pdf doc docx xls xlsx ppt pptx csv json yaml yml xml html css js ts py rb rs go java cpp hpp sh
md rst ipynb png jpg jpeg gif svg webp bmp tiff mp3 mp4 wav flac ogg mov avi mkv zip tar gz exe dll
dmg iso apk onnx toml ini cfg conf log sql db bin dat bak
""")
FILE_WORDS = words_of("""
zip tar log bin dat bak conf doc java go toml gif jpeg
""")

SHORT_WORDS = words_of("my in on at to go we me be is it by up hi no so do of an or as if")

_PART = regex.compile(r"\p{L}+|\d+|[^\p{L}\d\s]")
_VOWELS = frozenset("aeiouy")


def speak(text: str) -> str:
    """An address piece by piece: words as words, other letters and digits one by one, signs by name."""
    return " ".join(filter(None, (_piece(piece) for piece in _PART.findall(text))))


def _piece(piece: str) -> str:
    if piece[0].isdecimal():
        return cardinal(int(piece)) if len(piece) == 2 and piece[0] != "0" else digits(piece)
    if piece[0].isalpha():
        return piece if pronounceable(piece) else letters(piece)
    return SIGNS.get(piece, "")


def pronounceable(text: str) -> bool:
    """Whether letters look like a word: a vowel, and no more consonants in a row than English has."""
    low = text.lower()
    if low in WORDS:
        return True
    if len(low) < 3 or low in SPELT or (text.isupper() and len(text) < 6):
        return len(low) == 2 and low in SHORT_WORDS
    if not any(c in _VOWELS for c in low):
        return False
    longest = max(len(run) for run in regex.findall(r"[^aeiouy]*", low))
    return longest <= 4 and not regex.match(r"(?:[bcdfgklmnpqrtvwxz]{3}|[^aeiouy]{4})", low)


def letters(text: str) -> str:
    """Letters one by one, in capitals, so that each is read by its name."""
    return " ".join(text.upper())


def _email(match: Any) -> str:
    user, _, host = match.group().partition("@")
    return f"{speak(user.removeprefix('mailto:'))} at {_host(host)}"


def _host(text: str) -> str:
    labels = text.split(".")
    spoken = [speak(label) for label in labels[:-1]]
    end = labels[-1].lower()
    spoken.append(letters(end) if end in SPELT or not pronounceable(end) else end)
    return " dot ".join(spoken)


def _url(match: Any) -> str:
    scheme, host, port, path = (match[name] or "" for name in ("scheme", "host", "port", "path"))
    trailing = "".join(_TRAILING.findall(path))
    path = path.removesuffix(trailing) if trailing else path
    words = []
    if scheme:
        words.append(f"{letters(scheme.rstrip(':/'))} colon slash slash")
    words.append(_host(host))
    if port:
        words.append(f"colon {digits(port)}")
    if path.rstrip("/"):
        words.append(speak(path.rstrip("/")))
    return " ".join(words) + trailing


_TRAILING = regex.compile(r"[.,;:!?)\]'\"]+$")


def _ip(match: Any) -> str:
    words = " dot ".join(digits(part) for part in match["ip"].split("."))
    if match["mask"]:
        words += f" slash {cardinal(int(match['mask']))}"
    if match["port"]:
        words += f" colon {digits(match['port'])}"
    return words


def _file(match: Any) -> str:
    end = match["end"]
    said = end if end.lower() in FILE_WORDS else letters(end)
    return f"{speak(match['name'])} dot {said}"


def _path(match: Any) -> str:
    text = match.group()
    trailing = "".join(_TRAILING.findall(text))
    return speak(text.removesuffix(trailing) if trailing else text) + trailing


def _handle(match: Any) -> str:
    return f"at {_camel(match['name'])}"


def _hashtag(match: Any) -> str:
    return f"hashtag {_camel(match['name'])}"


def _camel(text: str) -> str:
    """The words of a name without spaces: at its capitals, digits and underscores."""
    words = regex.findall(r"\p{Lu}{2,}(?=\p{Lu}\p{Ll}|\d|_|$)|\p{Lu}?\p{Ll}+|\p{L}+|\d+", text)
    return " ".join(_number(word) if word.isdecimal() else word for word in words)


def _number(text: str) -> str:
    return in_pairs(text) if len(text) <= 4 else digits(text)


def _code(match: Any) -> str | None:
    """A name from a program: its words."""
    return _camel(match.group())


def _call(match: Any) -> str:
    return f"{_camel(match['name'])}"


_LABEL = r"[\p{L}\d](?:[\p{L}\d-]*[\p{L}\d])?"
_HOST = rf"(?:{_LABEL}\.)+{any_of(TOP_LEVEL)}"

RULES: tuple[Rule, ...] = (
    rule(
        "e-mail",
        r"""(?<![\p{L}\p{N}_.@])(?:mailto:)?[\p{L}\p{N}][\p{L}\p{N}._%+-]*@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}
        (?![\p{L}\p{N}_@])""",
        _email,
        wakes="@",
    ),
    rule(
        "web address",
        r"""(?<![\p{L}\p{N}_@./])(?:(?P<scheme>(?:https?|ftp|ssh|wss?|file)://)(?P<host>
        (?:[\p{L}\d-]+\.)*[\p{L}\d-]+)|(?P<host>www\.(?:[\p{L}\d-]+\.)+\p{L}{2,}))
        (?::(?P<port>\d{2,5}))?(?P<path>[/?#][^\s<>"”“]*)?""",
        _url,
        ignore_case=True,
        wakes="./",
    ),
    rule(
        "host",
        rf"""(?<![\p{{L}}\p{{N}}_@./-])(?P<scheme>(?!))?(?P<host>{_HOST})(?::(?P<port>\d{{2,5}}))?
        (?P<path>/[^\s<>"”“]*)?(?![\p{{L}}\p{{N}}_@-])""",
        _url,
        ignore_case=True,
        wakes=".",
    ),
    digit_rule(
        "IP address",
        r"""(?<![\p{L}\p{N}_.])(?P<ip>\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})(?:/(?P<mask>\d{1,2}))?(?::
        (?P<port>\d{2,5}))?(?![\p{L}\p{N}_]|\.\d)""",
        _ip,
    ),
    digit_rule(
        "local host",
        rf"{START}localhost:(?P<port>\d{{2,5}}){END}",
        lambda match: f"localhost colon {digits(match['port'])}",
    ),
    rule("Windows path", r"(?<![\p{L}\p{N}_])[A-Za-z]:\\[^\s\"“”]*", _path, wakes="\\"),
    rule(
        "path",
        r"(?<![\p{L}\p{N}_<.)/])(?:~|\.{1,2})?/(?:[\p{L}\p{N}_.@+-]+/)*[\p{L}\p{N}_.@+-]*[\p{L}\p{N}_](?:/)?",
        _path,
        wakes="/",
    ),
    rule(
        "file",
        rf"""(?<![\p{{L}}\p{{N}}_./])(?P<name>[\p{{L}}\p{{N}}_][\p{{L}}\p{{N}}_.-]*
        (?:/[\p{{L}}\p{{N}}_.-]+)*)\.
        (?P<end>{"|".join(sorted(FILES, key=len, reverse=True))})(?![\p{{L}}\p{{N}}_/])""",
        _file,
        wakes=".",
    ),
    rule("hashtag", r"(?<![\p{L}\p{N}_&])\#(?P<name>\p{L}[\p{L}\p{N}_]*)", _hashtag, wakes="#"),
    rule("handle", r"(?<![\p{L}\p{N}_@.])@(?P<name>\p{L}[\p{L}\p{N}_]*)", _handle, wakes="@"),
    rule("call", r"(?<![\p{L}\p{N}_.])(?P<name>[\p{L}_][\p{L}\p{N}_]*)\(\)", _call, wakes="("),
    rule(
        "snake case",
        r"(?<![\p{L}\p{N}_.-])\p{L}[\p{L}\p{N}]*(?:_[\p{L}\p{N}]+)+(?![\p{L}\p{N}])",
        _code,
        wakes="_",
    ),
    rule(
        "camel case",
        r"(?<![\p{L}\p{N}_.-])(?:\p{Ll}{2,}\p{Lu}\p{Ll}+(?:\p{Lu}\p{Ll}+)*)(?![\p{L}\p{N}_])",
        _code,
    ),
)
