"""Addresses, file names, hashtags, telephone numbers, postal codes, versions and codes in Japanese.

A word of two letters and more stays Latin, so that it is spoken as a word; the signs and endings of an
address (ドットコム, アットマーク, スラッシュ), and parts that cannot be said as a word, are put into
Japanese.
"""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.letters import spelt
from kokoro_lab.text.normalise.japanese.numbers import NAMES, POINT, WORDS, cardinal, digits, number
from kokoro_lab.text.tables import any_of

SIGNS = NAMES["sign in an address"]
PARTS = NAMES["ending of an address"]
"""Last parts of addresses that are not spelt."""
_FILES = NAMES["ending of a file"]
_EXTENSION = any_of(_FILES.keys() | WORDS["ending of a file"])
_TOP = rf"{any_of(WORDS['top-level domain'])}(?![A-Za-z0-9-])"
_HOST = rf"(?:[A-Za-z0-9-]+\.)+{_TOP}"
_PATH = r"(?::\d+)?(?:[/?\#][A-Za-z0-9\-._~:/?\#\[\]@!$&'()*+,;=%]*)?(?<![.,:;!?')])"


def spoken(written: str) -> str:
    """An address, run by run: letters, digits, signs."""
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
    """A domain: its last parts as they are known, the others as words. co.jp is シーオードットジェーピー."""
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


_DASH = "[-ー—]"
_ALONE = rf"(?!\d|{_DASH}\d)"
_UNDER_WAY = rf"(?<!\d|\d{_DASH}|[.,/]|\d:|{_DASH})"
# What is read out digit by digit, perhaps with は or a colon behind it
_CODES = r"""(?:内線|番号|パスワード|暗証|PIN|ID|コード|シリアル|型番|ナンバー)(?:は|が|、|:|\s)*"""
_COUNTED = r"(?!\d|\s?[番件個回人つ年月日時分%桁]|円)"


def in_groups(written: str) -> str:
    """Digits one by one, with の for a hyphen, a bracket or a space between them."""
    return "の".join(digits(group) for group in regex.findall(r"\d+", written))


def version(written: str) -> str:
    """`2.10` is 二点十: the tenth after the ninth, not a decimal."""
    return POINT.join(number(part) for part in written.split("."))


def _dotted(match: Any) -> str:
    parts = match.group().split(".")
    if len(parts) == 4 and all(int(part) < 256 for part in parts):  # an address on a network
        return POINT.join(digits(part) for part in parts)
    return version(match.group())


def _block(match: Any) -> str:
    return "の".join(cardinal(int(part)) for part in regex.findall(r"\d+", match.group()))
