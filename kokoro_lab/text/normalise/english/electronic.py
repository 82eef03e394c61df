"""Internet addresses, file names, handles and hashtags, read so that a listener could type them."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.dates import date
from kokoro_lab.text.normalise.english.numerals import (
    DIGITS,
    cardinal,
    counted,
    digits,
    in_pairs,
    two_digits,
)
from kokoro_lab.text.normalise.english.patterns import END, NAMES, START, WORDS, any_word, optional
from kokoro_lab.text.normalise.english.times import time
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule, in_calendar
from kokoro_lab.text.tables import any_of

SIGNS = NAMES["sign in an address"]
TOP_LEVEL = WORDS["top-level domain"]
SPELT = WORDS["spelt domain"]
"""Ends of addresses that are said letter by letter; `com`, `org`, `net` and words are said as words."""
SPOKEN = TOP_LEVEL - SPELT - {"mil", "biz", "int"} | WORDS["word in an address"]

CHAT = NAMES["word of a chat"]
"""Words in which a digit stands for a sound."""

_RUN = regex.compile(r"\p{L}+|\d+|[^\p{L}\d\s]")
_VOWELS = frozenset("aeiouy")


def speak(text: str) -> str:
    """The words for an address: a word is said as a word, other letters and digits are said one by one, and
    signs by their names."""
    return " ".join(filter(None, (_run(run) for run in _RUN.findall(text))))


_IN_CAPITALS = regex.compile(r"(\p{Lu}{2,})(\p{Lu}\p{Ll}{2,})")


def _run(run: str) -> str:
    parted = _IN_CAPITALS.fullmatch(run)  # PRNewswire
    if parted:
        return " ".join(map(_run, parted.groups()))
    if run[0].isdecimal():
        return cardinal(int(run)) if len(run) == 2 and run[0] != "0" else digits(run)
    if run[0].isalpha():
        return run if pronounceable(run) else letters(run)
    return SIGNS.get(run, "")


def pronounceable(text: str) -> bool:
    """Whether letters can be said as a word: they have a vowel, and no more consonants in a row than English
    words have."""
    low = text.lower()
    if low in SPOKEN:
        return True
    if len(low) < 3 or low in SPELT or (text.isupper() and len(text) < 6):
        return len(low) == 2 and low in WORDS["word of two letters"]
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


def _parted(text: str) -> tuple[str, str]:
    """An address, and the marks after it that belong to the sentence."""
    address = text.rstrip(".,;:!?)]'\"")
    return address, text[len(address) :]


def _hexadecimal(match: Any) -> str:
    """`0xFF` is "zero x F F", with hyphens by name."""
    groups = regex.findall(r"[\da-wyzA-Z]+|[xX]", match.group())
    spoken = [" ".join(DIGITS[int(c)] if c.isdecimal() else c.upper() for c in group) for group in groups]
    return (" dash " if "-" in match.group() else " ").join(spoken)


def _date_and_time(match: Any) -> str | None:
    """A time stamp, perhaps without a date. Thousandths of a second are said unless they are 0."""
    day = [int(match[name]) for name in ("year", "month", "day") if match[name]]
    hour, minute = int(match["hour"]), int(match["minute"])
    whole, _, part = (match["second"] or "0").replace(",", ".").partition(".")
    if (day and not in_calendar(*day)) or hour > 24 or minute > 59:
        return None
    said = time(hour, minute, None, None)
    second = f"{int(whole)}.{part.rstrip('0')}".rstrip(".")
    if second != "0":
        past = two_digits(minute) if minute else "oh oh"
        said = f"{cardinal(hour)} {past} and {counted(second, 'second', 'seconds')}"
    return f"{date(*day)} {said}" if day else said


def _url(match: Any) -> str:
    host, port = match["host"], optional(match, "port")
    path, trailing = _parted(optional(match, "path"))
    words = []
    words.append(_host(host))
    if port:
        words.append(f"colon {digits(port)}")
    if path.rstrip("/"):
        words.append(speak(path.rstrip("/")))
    return " ".join(words) + trailing


def _ip(match: Any) -> str:
    words = " dot ".join(digits(part) for part in match["ip"].split("."))
    if match["mask"]:
        words += f" slash {cardinal(int(match['mask']))}"
    if match["port"]:
        words += f" colon {digits(match['port'])}"
    return words


def _file(match: Any) -> str:
    end = match["end"]
    said = end if end.lower() in WORDS["ending said as a word"] else letters(end)
    return f"{speak(match['name'])} dot {said}"


def _path(match: Any) -> str:
    path, trailing = _parted(match.group())
    return speak(path) + trailing


def _option(match: Any) -> str:
    """`-la` is "dash L A", `--no-cache` "dash dash no cache"."""
    name, dashes = match["name"], match["dashes"]
    short = dashes == "-" and len(name) < 4
    runs = regex.findall(r"\p{L}+|\d+", name)
    return " ".join(
        ["dash"] * len(dashes) + [letters(run) if short and run.isalpha() else _run(run) for run in runs]
    )


def _camel(text: str) -> str:
    """The words of a name that is written without spaces, cut at its capitals, digits and underscores:
    `my_fileName` is `my file Name`."""
    words = regex.findall(r"\p{Lu}{2,}(?=\p{Lu}\p{Ll}|\d|_|$)|\p{Lu}?\p{Ll}+|\p{L}+|\d+", text)
    return " ".join(in_pairs(word) if word.isdecimal() else word for word in words)


_LABEL = r"[\p{L}\d](?:[\p{L}\d-]*[\p{L}\d])?"
_ARGUMENT = r"(?:\ [\w./=*]*[\w/*])?"
_HOST = rf"(?:{_LABEL}\.)+{any_word('top-level domain')}"

RULES: tuple[Rule, ...] = (
    Rule(
        "e-mail",
        r"""(?<![\p{L}\p{N}_.@])(?:mailto:)?[\p{L}\p{N}][\p{L}\p{N}._%+-]*@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}
        (?![\p{L}\p{N}_@])""",
        _email,
        wakes="@",
    ),
    Rule(
        "web address",
        r"""(?<![\p{L}\p{N}_@./])(?:(?:https?|ftp|ssh|wss?|file)://(?P<host>
        (?:[\p{L}\d-]+\.)*[\p{L}\d-]+)|(?P<host>www\.(?:[\p{L}\d-]+\.)+\p{L}{2,}))
        (?::(?P<port>\d{2,5}))?(?P<path>[/?#][^\s<>"”“]*)?""",
        _url,
        ignore_case=True,
        wakes=f"{POINT_WITHIN}/",
    ),
    Rule(
        "host",
        rf"""(?<![\p{{L}}\p{{N}}_@./-])(?P<host>{_HOST})(?::(?P<port>\d{{2,5}}))?
        (?P<path>/[^\s<>"”“]*)?(?![\p{{L}}\p{{N}}_@-])""",
        _url,
        ignore_case=True,
        wakes=POINT_WITHIN,
    ),
    digit_rule(
        "identifier of a paper",
        r"(?<![\p{L}\p{N}_./])10\.\d{4,9}/[^\s<>\"”“]+",
        _path,
    ),
    Rule(
        "name with its packages",
        r"(?<![\p{L}\p{N}_.@/-])[\p{L}_][\p{L}\p{N}_]++(?:\.[\p{L}_][\p{L}\p{N}_]++){2,}(?=\(|[,:]?(?:\s|$))",
        lambda match: " dot ".join(match.group().split(".")),
        wakes=POINT_WITHIN,
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
    Rule(
        "plus or minus",  # the number that follows reads its own sign
        r"(?<![\p{L}\p{N}_])\+/(?:(?=[-−–](?:[\d.]|\ ?[$€£]))|(?P<minus>[-−–]\ ?)(?!/))",
        lambda match: "plus or minus" if match["minus"] else "plus or ",
        wakes="+",
    ),
    Rule(
        "Windows path",
        r"(?<![\p{L}\p{N}_])(?:[A-Za-z]:\\|\\\\(?=[\w.$-]+\\)|\\(?=[\w.$-]+\\[^\s\"“”]*\.\p{L}{2,4}\b))[^\s\"“”]*",
        _path,
        wakes="\\",
    ),
    digit_rule(
        "password",  # `Pwd: Xk9!-77`
        rf"""(?<=\b(?i:{any_word("before a password")}):\ ?)(?=\S*\p{{L}})(?=\S*\d)[^\s,;"“”]{{4,}}
        (?<![.:!?)])(?=[.:!?)]*(?:[\s,;"“”]|$))""",
        lambda match: speak(match.group()),
        also=":",
    ),
    Rule(
        "password by its short name",
        rf"{START}(?P<first>[Pp])(?:wd|WD)(?=:)",
        lambda match: f"{match['first']}assword",
        wakes=":",
    ),
    digit_rule(
        "word of a chat",  # `l8r`
        rf"(?<![\p{{L}}\p{{N}}_@#./'-]){any_of(CHAT)}(?![\p{{L}}\p{{N}}_@/'-]|\.\p{{L}})",
        lambda match: CHAT[match.group()],
    ),
    Rule(
        "heart",  # `<3`, but `<3 years`
        r"""(?<=^|[\p{L}\p{N}.!?…)]\ ?|<3)<3
        (?=\ *(?:$|[.!?…]|<3|:|;)|\ (?:x[xo]|(?:xD|u|you|btw|lol|love|miss)\b))
        |(?<=\b(?i:I|u|we)\ )<3(?=\ \p{L})""",
        lambda match: "heart",
        wakes="<",
        also="3",
    ),
    Rule(
        "face in marks",  # `:P`
        r"(?<!\S)[:;=][-'^]?[PpDO](?![\p{L}\p{N}:;=/.])",
        lambda match: "",
        wakes=":;=",
    ),
    Rule(
        "path",
        r"(?<![\p{L}\p{N}_<.)/])(?:~|\.{1,2})?/(?:[\p{L}\p{N}_.@+-]+/)*(?:\*(?=\.\p{L}))?[\p{L}\p{N}_.@+-]*[\p{L}\p{N}_](?:/)?",
        _path,
        wakes="/",
    ),
    Rule(
        "file",
        rf"""(?<![\p{{L}}\p{{N}}_./])(?P<name>[\p{{L}}\p{{N}}_][\p{{L}}\p{{N}}_.-]*(?:/[\p{{L}}\p{{N}}_.-]+)*)
        \.(?P<end>{any_word("ending of a file")})(?![\p{{L}}\p{{N}}_/])""",
        _file,
        wakes=POINT_WITHIN,
    ),
    digit_rule(
        "colour in hexadecimal digits",
        r"(?<![\p{L}\p{N}_&])\#(?=\d*[\dA-F]*[A-F])(?=[A-F]*\d)(?P<code>[\dA-F]{6})(?![\p{L}\p{N}_])",
        lambda match: f"hash {_hexadecimal(match)}",
        ignore_case=True,
    ),
    Rule(
        "prompt of a shell",
        rf"^\$\ (?={any_word('command of a shell')}(?:\ |$))",
        lambda match: "",
        wakes="$",
    ),
    Rule(
        "option of a command",
        rf"""(?<=(?:^|[$`"“(;&|]\ ?|\b(?i:{any_word("before a command")})\ ){any_word("command of a shell")}
        {_ARGUMENT}(?:\ --?[\w=-]+{_ARGUMENT}){{0,3}}\ )(?P<dashes>--?)(?P<name>\p{{L}}[\p{{L}}\d-]*)
        (?![\p{{L}}\p{{N}}_]|[^\n]{{0,60}}\p{{L}}-(?:[\s.,!?]|$))(?<!-)""",
        _option,
        wakes="-",
    ),
    Rule(
        "hashtag",
        r"(?<![\p{L}\p{N}_&])\#(?P<name>\p{L}[\p{L}\p{N}_]*|\d{1,3}\p{Lu}\p{Ll}+[\p{L}\p{N}_]*)",
        lambda match: f"hashtag {_camel(match['name'])}",
        wakes="#",
    ),
    Rule(
        "handle",
        r"(?<![\p{L}\p{N}_@.])@(?P<name>\p{L}[\p{L}\p{N}_]*)",
        lambda match: f"at {_camel(match['name'])}",
        wakes="@",
    ),
    Rule(
        "name in a program",
        r"""(?<![\p{L}\p{N}_.])[\p{L}_][\p{L}\p{N}_]*\(\)
        |(?<![\p{L}\p{N}_.-])\p{L}[\p{L}\p{N}]*(?:_[\p{L}\p{N}]+)+(?![\p{L}\p{N}])""",
        lambda match: _camel(match.group()),
        wakes="_(",
    ),
    Rule(
        "camel case",
        r"(?<![\p{L}\p{N}_.-])(?!mmHg)(?:\p{Ll}{2,}\p{Lu}\p{Ll}+(?:\p{Lu}\p{Ll}+)*)(?![\p{L}\p{N}_])",
        lambda match: _camel(match.group()),
    ),
    digit_rule(
        "date and time of a machine",
        r"""(?<![\p{L}\p{N}_:-])(?:(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)[T_\ ]|(?=[\d:]{8},\d{3}))
        (?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d(?:[.,]\d+)?))?(?P<zone>Z|[+-]\d\d:?\d\d)?(?![\p{L}\p{N}_]|:\d)""",
        _date_and_time,
        also=":",
    ),
    digit_rule(
        "code in hexadecimal digits",
        r"""(?<![\p{L}\p{N}_.-])(?:0[xX][\da-fA-F]+|[\da-fA-F]{8}-(?:[\da-fA-F]{4}-){3}[\da-fA-F]{12}
        |(?:[\da-fA-F]{2}:){5}[\da-fA-F]{2}|(?!\d+[eE]\d+\b|\p{L}+\b|\d+\p{L}\b)(?=\d+\p{L}+\d|\p{L}+\d+\p{L}+\d)(?:[\da-f]{7,64}|[\dA-F]{8,64}))(?![\p{L}\p{N}_-])""",
        _hexadecimal,
    ),
)
