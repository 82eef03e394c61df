"""Web and mail addresses, file names and hashtags in Japanese.

A word of two letters and more stays Latin, so that it is spoken as a word; the signs and endings of an
address (ドットコム, アットマーク, スラッシュ), and parts that cannot be said as a word, are put into
Japanese.
"""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.letters import spelt
from kokoro_lab.text.normalise.japanese.numbers import cardinal, digits
from kokoro_lab.text.normalise.japanese.written import (
    LATIN,
    NAMES,
    WORDS,
    either_width,
    with_point,
    with_slash,
)
from kokoro_lab.text.normalise.rules import Rule
from kokoro_lab.text.tables import any_of

SIGNS = NAMES["sign in an address"]
PARTS = NAMES["ending of an address"]
"""Last part of an address, such as `com`, that is not spelt → its words."""
_FILES = NAMES["ending of a file"]
_EXTENSION = any_of(_FILES.keys() | WORDS["ending of a file"])
_TOP = rf"{any_of(WORDS['top-level domain'])}(?![A-Za-z0-9-])"
_HOST = rf"(?:[A-Za-z0-9-]+\.)+{_TOP}"
_PATH = r"(?::\d+)?(?:[/?\#][A-Za-z0-9\-._~:/?\#\[\]@!$&'()*+,;=%]*)?(?<![.,:;!?')])"


def spoken(written: str) -> str:
    """The words for an address: for its runs of letters, its runs of digits, and its signs."""
    return "".join(_run(run) for run in regex.findall(r"[A-Za-z]+|\d+|.", written))


def _run(run: str) -> str:
    if run.isdigit():
        return cardinal(int(run)) if len(run) <= 4 and run[0] != "0" else digits(run)
    if run in SIGNS:
        return SIGNS[run]
    vowels = regex.search("[aeiouyAEIOUY]", run)
    short = len(run) == 1 or not vowels or (run.isupper() and len(run) <= 4)
    return spelt(run) if short and run.isascii() else run


def host(written: str) -> str:
    """Return a domain as spoken.

    The last part is read by the table `PARTS`; if it is not in the table, it is spelt if it has at most three
    letters. In a domain of three parts and more, a part of two letters before a country's two letters is
    spelt, too: `example.co.jp` ends in シーオードットジェーピー. All other parts are words.
    """
    names = written.split(".")
    said = [spoken(name) for name in names]
    last = names[-1].lower()
    said[-1] = PARTS.get(last) or (spelt(last) if len(last) <= 3 else spoken(last))
    if len(names) > 2 and len(last) == 2 and len(names[-2]) <= 2:
        said[-2] = spelt(names[-2])
    return SIGNS["."].join(said)


def _address(match: Any) -> str:
    path = match["path"] or ""
    port = path.removesuffix("/") if path == "/" else path
    return host(match["host"]) + spoken(port)


def _mail(match: Any) -> str:
    return spoken(match["user"]) + SIGNS["@"] + host(match["host"])


def _file(match: Any) -> str:
    ending = match["ending"].lower()
    return spoken(match["name"]) + SIGNS["."] + (_FILES.get(ending) or spelt(ending))


RULES: tuple[Rule, ...] = (
    either_width("mail", rf"(?<![A-Za-z0-9._%+-])(?<user>[A-Za-z0-9._%+-]+)@(?<host>{_HOST})", _mail),
    with_slash(
        "page",
        rf"(?<![A-Za-z0-9@._-])(?:https?|ftp)://(?<host>[A-Za-z0-9.-]*[A-Za-z0-9])(?<path>{_PATH})",
        _address,
        ignore_case=True,
    ),
    with_point(
        "page without its scheme",
        rf"(?<![A-Za-z0-9@._/-])(?<host>{_HOST})(?<path>{_PATH})",
        _address,
    ),
    with_point(
        "file",
        rf"(?<![A-Za-z0-9]|[A-Za-z0-9_][-./\\:~])(?<name>[A-Za-z0-9_][A-Za-z0-9_\-./\\:~]*)\.(?<ending>{_EXTENSION})(?![A-Za-z0-9])",
        _file,
        ignore_case=True,
    ),
    either_width(
        "path",
        r"(?<![A-Za-z0-9.~/])(?:[A-Za-z]:\\[\w.\\-]*|(?:~|[~.]?/[A-Za-z0-9_.-]+)(?:/[A-Za-z0-9_.-]+)+/?)",
        lambda m: spoken(m.group()),
    ),
    with_point("point in a name", rf"(?<={LATIN}{{2}})\.(?={LATIN}{{2}})", lambda _: SIGNS["."]),
    either_width(
        "handle", rf"(?<![A-Za-z0-9])@(?<name>{LATIN}[A-Za-z0-9_]*)", lambda match: spoken(match.group())
    ),
    either_width("tag", r"(?<![A-Za-z0-9&])\#(?=[\p{L}_])", lambda _: "ハッシュタグ", wakes="#"),
)
