"""How a Japanese number sounds with what it counts: 一本 いっぽん, 三本 さんぼん, 四時 よじ, 二十日 はつか.

A number in kanji numerals is cut into its places (二千・三百・四), each place has its reading, and the last
one is joined with the counter. Whether numeral or counter then change their sound depends on the counter's
first sound; the table lists the changes for each counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import regex

from kokoro_lab.text.normalise.japanese.numbers import DIGITS
from kokoro_lab.text.tables import any_of, entries, names, rows

_DIGIT_KANA = names(__package__)["Japanese numeral"]
_STRING_KANA = _DIGIT_KANA | {"零": "ぜろ", "二": "にい", "五": "ごう"}
"""Kana of digits that are read one by one, as in telephone numbers: a digit that is one beat long is drawn
out to two beats."""
_SHORT = names(__package__)["Japanese numeral shortened"]
_P = dict(zip("はひふへほ", "ぱぴぷぺぽ", strict=True))
_B = dict(zip("はひふへほ", "ばびぶべぼ", strict=True))
_VOICED = _B | dict(zip("かきくけこさしすせそわ", "がぎぐげござじずぜぞば", strict=True))


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter: its kana, and how the sounds of the counter and of the last numeral before it change each
    other.

    Parameters
    ----------
    kana : str
    shortened, voiced, half_voiced : str
        Three lists of numerals. Those of `shortened` end in っ before this counter. After those of `voiced`,
        the counter's first sound is voiced. After those of `half_voiced` and of `shortened`, a first は
        becomes ぱ.
    digits : mapping of str to str
        Last numeral → its reading before this counter, if that is unusual: 四 is よ before 時.
    wholes : mapping of str to str
        Whole number → its kana together with the counter, if that is irregular: 二十 with 日 is はつか.
    """

    kana: str
    shortened: str = ""
    voiced: str = ""
    half_voiced: str = ""
    digits: Mapping[str, str] = field(default_factory=dict)
    wholes: Mapping[str, str] = field(default_factory=dict)


def _counters(table: str) -> Iterator[tuple[str, Counter]]:
    for row in rows(__package__, table):
        digits, wholes = (
            dict(each.split("=") for each in entries(row[name])) for name in ("digits", "wholes")
        )
        counter = Counter(row["kana"], row["shortened"], row["voiced"], row["half_voiced"], digits, wholes)
        for written in entries(row["written"]):
            yield written, counter


COUNTERS = dict(_counters("japanese_counters.tsv"))
_PLACES = dict(_counters("japanese_places.tsv"))
"""Word for a place (ten, hundred, thousand and so on) → how it is said after a digit."""
FIRST_OF_THE_MONTH = "ついたち"

NUMERAL = "[零〇一二三四五六七八九十百千万億兆京]"
_PLACE = regex.compile(rf"(?:[{DIGITS}]?[十百千]|[{DIGITS}〇])?[万億兆京]?")
COUNTED = regex.compile(
    rf"(?<number>何|数[十百千万億兆]+|{NUMERAL}+(?:点[{DIGITS}〇]+(?![十百])[万億兆京]?)?)"
    rf"(?<counter>{any_of(COUNTERS)}|)"
)
"""A number and the counter after it. The group `counter` is empty if the table does not have the counter."""


class BreathGroup(NamedTuple):
    """A part of a number that is said in one breath: its range of the text and its kana as pronounced."""

    start: int
    end: int
    kana: str


def reading(number: str, counter: str = "") -> list[BreathGroup] | None:
    """Kana of a number with its counter, place by place; the counter goes with the last place.

    Parameters
    ----------
    number : str
        何, or kanji numerals, with 点 and decimals or without; 数 may stand for the first of them.
    counter : str
        One of `COUNTERS`, or nothing.

    Returns
    -------
    list of BreathGroup, or None
        None if `number` is no well-formed number.
    """
    known = COUNTERS.get(counter)
    whole = known.wholes.get(number) if known else None
    if whole is not None:
        return [BreathGroup(0, len(number) + len(counter), pronounced(whole))]
    parts = _parts(number)
    if parts is None:
        return None
    if known:
        last = parts[-1]
        kana = _met(last.kana, number[-1], known)
        parts[-1] = BreathGroup(last.start, last.end + len(counter), kana)
    return [BreathGroup(i, j, pronounced(kana)) for i, j, kana in parts]


_LONG = regex.compile(
    "(?<=[おこごそぞとどのほぼぽもよょろうくぐすずつゅゆぬふぶぷむる])う"
    "|(?<=[えけげせぜてでねへべぺめれ])い|(?<=に)い|(?<=と)お"
)


def pronounced(written: str) -> str:
    """Kana with their long vowels marked: じゅう is じゅー. Only for numbers and counters."""
    said: str = _LONG.sub("ー", written)
    return said


def _parts(number: str) -> list[BreathGroup] | None:
    if number == "何":
        return [BreathGroup(0, 1, "なん")]
    if number[0] == "数":
        some = _places(number[1:]) or []
        return [BreathGroup(0, 1, "すう"), *(BreathGroup(i + 1, j + 1, kana) for i, j, kana in some)]
    whole, point, decimals = number.partition("点")
    parts = (
        _places(whole) if len(whole) == 1 or regex.search("[十百千万億兆京]", whole) else _string(whole, 0)
    )
    if parts is None:
        return None
    if point:
        last = parts[-1]
        parts[-1] = BreathGroup(last.start, last.end + 1, _met(last.kana, whole[-1], COUNTERS["点"]))
        bare = decimals.rstrip("万億兆京")
        at = len(whole) + 1
        parts += _string(bare, at) if len(bare) > 1 else [BreathGroup(at, at + 1, _DIGIT_KANA[bare])]
        if bare != decimals:
            i, _, said = parts[-1]
            parts[-1] = BreathGroup(i, len(number), _met(said, bare[-1], _PLACES[decimals[-1]]))
    return parts


def _string(numerals: str, at: int) -> list[BreathGroup]:
    return [BreathGroup(at + n, at + n + 1, _STRING_KANA[c]) for n, c in enumerate(numerals)]


def _places(number: str) -> list[BreathGroup] | None:
    parts: list[BreathGroup] = []
    at = 0
    while at < len(number):
        place = _PLACE.match(number, at)
        if not place or place.end() == at:
            return None
        parts.append(BreathGroup(at, place.end(), _place(place.group())))
        at = place.end()
    return parts


def _place(written: str) -> str:
    """The reading of one place: 三百 さんびゃく, 一兆 いっちょう."""
    myriad = written[-1] if written[-1] in "万億兆京" else ""
    bare = written.removesuffix(myriad)
    if not bare:
        return _PLACES[myriad].kana
    if bare[-1] not in _PLACES:
        said = _DIGIT_KANA[bare]
    elif len(bare) == 1:
        said = _PLACES[bare].kana
    else:
        said = _met(_DIGIT_KANA[bare[0]], bare[0], _PLACES[bare[-1]])
    return _met(said, bare[-1], _PLACES[myriad]) if myriad else said


def _met(said: str, last: str, counter: Counter) -> str:
    """The kana of a number and its counter together. `said` are the kana of the number, which ends with the
    numeral `last`; numeral and counter change each other's sound."""
    first, rest = counter.kana[0], counter.kana[1:]
    if last in counter.digits:
        said = said.removesuffix(_DIGIT_KANA[last]) + counter.digits[last]
    if last in counter.shortened:
        for full, short in _SHORT.items():
            if said.endswith(full):
                return said.removesuffix(full) + short + _P.get(first, first) + rest
    if last in counter.voiced:
        return said + _VOICED.get(first, first) + rest
    if last in counter.half_voiced:
        return said + _P.get(first, first) + rest
    return said + counter.kana
