"""Numbers, money, percent, dates and clock times where a language has no rules of its own yet.

Few rules on purpose (`other_rules.tsv`): numbers by num2words, other words and marks from `others.tsv`, which
has a column a language. Digits that no rule takes are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, cast

import regex

from kokoro_lab.text.normalise.roman import valued
from kokoro_lab.text.normalise.rules import in_calendar, read_rules
from kokoro_lab.text.tables import CountedUnit, Gender, any_of, entries, names, rows, units

MAX_DIGITS = 15
"""A longer row of digits is no quantity: it is read digit by digit."""


_NUMBERS, _SCALES, _ORDINALS = (
    {int(written): said for written, said in names(__package__, "hindi.tsv")[kind].items()}
    for kind in ("number", "scale", "ordinal")
)
"""Number words of Hindi, which num2words lacks: all below a hundred are words of their own."""


_WHOLE = r"(?<![.,;:!?…\"”')\]])"
_KINDS = ("anywhere", "before a name", "before a number")
"""Kinds of abbreviations."""
_RULER = r"(?<=\p{Lu}\p{Ll}+\ )(?P<roman>[IVX]{2,}|V|I(?=\ ?[,.;:!?)]|$))(?![\p{L}\p{N}'-])"
_PARTS = regex.compile(r"[\p{L}\p{M}]+|\d+|.")
_SAYABLE = regex.compile(r"(?=\p{L}{3}).*[aeiouyáàâãéèêíóôõúü]", regex.IGNORECASE)
_QUARTERS = {15: "सवा", 30: "साढ़े", 45: "पौने"}
_HALVES = {1: "डेढ़", 2: "ढाई"}


class OtherReader:
    """The `Reader` (see `normalise`) of a language with a column in `others.tsv`, by its two letters."""

    def __init__(self, language: str) -> None:
        self._words = {row["word"]: row[language] for row in rows(__package__, "others.tsv")}
        self._currencies = units(__package__, "other_currencies.tsv", language)
        self._units = units(__package__, "other_units.tsv", language)
        own_names = names(__package__, "other_names.tsv")
        self._names = {kind: own_names.get(f"{language} {kind}", {}) for kind in _KINDS}
        self._signs = names(__package__, "other_signs.tsv")[language]
        num2words = partial(_by_num2words, self._words["locale"])
        self._say: Callable[[int], str] = _hindi if language == "hi" else partial(num2words, "cardinal")
        self.ordinal: Callable[[int], str] = (
            _hindi_ordinal if language == "hi" else partial(num2words, "ordinal")
        )
        self.RULES = read_rules(__package__, name="other_rules.tsv", own=self._named_in_rules())

    def _pairs(self, word: str) -> Mapping[str, str]:
        """The table in a cell: `un=une`."""
        pairs = (pair.partition("=") for pair in entries(self._words[word]))
        return {written: said for written, _, said in pairs}

    def cardinal(self, value: int) -> str:
        """Words of a whole number."""
        return f"{self._words['minus']} {self._say(-value)}" if value < 0 else self._say(value)

    def date(self, year: int | None, month: int | None, day: int | None) -> str:
        """Words of a date, day first."""
        parts = []
        if day is not None:
            parts.append(self._words["first of a month"] if day == 1 else self._say(day))
        if month is not None:
            parts.append(self._months[month])
        if year is not None:
            parts.append(self.cardinal(year))
        return _spaced(f" {self._words['between parts of a date']} ".join(parts))

    def time(self, hour: int, minute: int | None, second: int | None, half: str | None) -> str:
        """Words of a clock time; a time with AM or PM is changed to the 24-hour clock."""
        if half is not None:
            hour = hour % 12 + (12 if half == "pm" else 0)
        words = self._words
        hours = words["hours and minutes"] if minute else ""
        unit = CountedUnit(
            hours or words["hour"], hours or words["hours"], cast(Gender, words["gender of hours"])
        )
        said = self._counted(hour, unit)
        for part, name in ((minute, "minutes"), (second, "seconds")):
            if part:
                said += f" {words['and']} {self._say(part)} {words[name]}"
        return _spaced(said)

    @cached_property
    def _months(self) -> Mapping[int, str]:
        return dict(enumerate(entries(self._words["months"]), 1))

    def _named_in_rules(self) -> Mapping[str, Any]:
        """What `other_rules.tsv` calls by name: functions, lists of this language, and patterns."""
        words, known = self._words, {name: getattr(self, name) for name in vars(OtherReader)}
        group, mark = (regex.escape(words[each]) for each in ("marks of thousands", "decimal mark"))
        whole = rf"(?:\d{{1,3}}(?:[{group}]\d{{2,3}})+(?![\d])|\d+)"
        return known | {
            **{name: entries(cell) for name, cell in words.items()},
            **self._names,
            "DECIMALS": rf"(?:{mark}\d+)?",
            "NUMBER": rf"(?P<sign>(?<!\S)-)?(?P<whole>{whole})(?:{mark}(?P<part>\d+))?",
            "CURRENCY": self._currencies,
            "UNIT": self._units,
            "RULER": _RULER if words["before a Roman number"] else None,
            **{name: valued(known[name]) for name in ("_roman_number", "_roman_ordinal", "_ruler")},
        }

    def _address(self, match: Any) -> str:
        """An address sign by sign, without `https://`. Parts that are no words are spelt: `jo@exemple.fr`, "J
        O arobase exemple point F R"."""
        said = []
        for part in _PARTS.findall(regex.sub(r"^\w+://", "", match.group())):
            if part.isdecimal():
                said.append(self._digits(part))
            elif part.isalpha() and not _SAYABLE.match(part):
                said += part.upper()
            else:
                said.append(self._signs.get(part, part))
        return " ".join(said)

    def _day(self, match: Any) -> str | None:
        year, month, day = (int(match[part]) for part in "ymd")
        return self.date(year, month, day) if in_calendar(year, month, day) else None

    def _clock(self, match: Any) -> str | None:
        hour, minute = int(match["h"]), int(match["m"])
        return self.time(hour, minute, None, None) if hour < 24 else None

    def _pointed(self, match: Any) -> str | None:
        hour, minute = int(match["h"]), int(match["m"])
        if hour > 23:
            return None
        return " ".join([self._say(hour), *([self._words["and"], self._say(minute)] if minute else [])])

    def _quarter(self, match: Any) -> str | None:
        """Hindi counts quarters of hours: a quarter past, half past, a quarter to the next."""
        hour, minute = int(match["h"]), int(match["m"])
        if hour > 23 or minute not in _QUARTERS:
            return self._clock(match)
        if minute == 30 and hour in _HALVES:
            return f"{_HALVES[hour]} {self._words['hours']}"
        hour = hour % 12 + 1 if minute == 45 else hour
        return f"{_QUARTERS[minute]} {self._say(hour)} {self._words['hours']}"

    def _measure(self, match: Any) -> str | None:
        unit = self._units[match["unit"]]
        whole = self._plain(match["whole"])
        if len(whole) > MAX_DIGITS or (len(whole) > 1 and int(whole[0]) == 0):
            return None
        if match["part"]:
            said = f"{self._number(match)} {unit.one if int(whole) < 2 and not match['low'] else unit.many}"
        else:
            said = f"{self._words['minus']} " if match["sign"] else ""
            said += self._counted(int(whole), unit)
        if match["low"]:
            low, _, part = match["low"].partition(self._words["decimal mark"])
            first = self._say(int(low)) + (
                f" {self._words['decimal mark, said']} {self._fraction(part)}" if part else ""
            )
            said = f"{first} {self._words['to']} {said}"
        return said

    def _named(self, match: Any) -> str:
        """The words of an abbreviation; at the end of a sentence, its point stays."""
        written = match.group()
        said = next(table[written] for table in self._names.values() if written in table)
        return f"{said}." if written[-1] == "." and match.end() == len(match.string) else said

    def _roman_number(self, match: Any, value: int) -> str:
        return self._say(value)

    def _roman_ordinal(self, match: Any, value: int) -> str:
        said = self.ordinal(value)
        feminine = match.string[match.end("roman") : match.end()].startswith("re") or match.string.startswith(
            (" edizione", " giornata", " Olimpiade"), match.end()
        )
        return self._feminine(said) if feminine else said

    def _ruler(self, match: Any, value: int) -> str:
        if value > int(self._words["highest ordinal of a ruler"]):
            return self._say(value)
        said = self.ordinal(value)
        return self._feminine(said) if match.string[match.start() - 2] == "a" else said

    def _percent(self, match: Any) -> str | None:
        said = self._number(match)
        return f"{said} {self._words['percent']}" if said else None

    def _rank(self, match: Any) -> str | None:
        value = int(match["whole"])
        if not 0 < value <= 10_000:
            return None
        return self._feminine(self.ordinal(value)) if match["feminine"] else self.ordinal(value)

    def _score(self, match: Any) -> str:
        return f"{self._say(int(match['a']))} {self._words['to']} {self._say(int(match['b']))}"

    def _pairs_of_digits(self, match: Any) -> str:
        return ", ".join(map(self._pair, regex.findall(r"\d\d", match.group())))

    def _groups(self, match: Any) -> str:
        return ", ".join(map(self._digits, regex.findall(r"\d+", match.group())))

    def _range(self, match: Any) -> str | None:
        first, last = int(match["a"]), int(match["b"])
        return f"{self.cardinal(first)} {self._words['to']} {self.cardinal(last)}" if first < last else None

    def _number(self, match: Any) -> str | None:
        whole = self._plain(match["whole"])
        sign = f"{self._words['minus']} " if match["sign"] else ""
        if len(whole) > MAX_DIGITS or (len(whole) > 1 and int(whole[0]) == 0):
            return f"{sign}{self._digits(whole)}"
        said = self._say(int(whole))
        if match["part"]:
            said += f" {self._words['decimal mark, said']} {self._fraction(match['part'])}"
        return sign + said

    def _money(self, match: Any) -> str | None:
        unit = self._currencies[match["unit"]]
        whole = self._plain(match["whole"])
        if len(whole) > MAX_DIGITS:
            return None
        sign = f"{self._words['minus']} " if match["sign"] else ""
        part = match["part"]
        if part and not (unit.minor_one and len(part) == 2):
            said = self._number(match)
            return f"{said} {unit.many}" if said else None
        said = self._counted(int(whole), unit)
        if part and int(part):
            cents = self._counted(int(part), CountedUnit(unit.minor_one, unit.minor_many, "m"))
            said = _spaced(f"{said} {self._words['and']} {cents}") if int(whole) else cents
        return sign + said

    def _feminine(self, ordinal: str) -> str:
        """Each word of an ordinal with its feminine ending."""
        endings = self._pairs("feminine of an ordinal")
        ending = regex.compile(rf"{any_of(endings)}(?!\S)")
        return str(ending.sub(lambda match: endings[match.group()], ordinal))

    def _counted(self, value: int, unit: CountedUnit) -> str:
        head, _, last = self._say(value).rpartition(" ")
        said = f"{head} {self._pairs(f'{unit.gender}, before a noun').get(last, last)}".strip()
        noun = unit.one if value == 1 else unit.many
        if value and value % 1_000_000 == 0:
            elided = self._words["of a million, before a vowel"]
            of = elided if elided and noun[0] in "aeiouéè" else f"{self._words['of a million']} "
            return _spaced(f"{said} {of}{noun}")
        return f"{said} {noun}"

    def _fraction(self, digits: str) -> str:
        """The digits after the decimal mark: a few are said as a number, leading zeros first; many digit by
        digit."""
        if len(digits) > 2:
            return self._digits(digits)
        zeros = len(digits) - len(digits.lstrip("0०"))
        rest = [self._say(int(digits[zeros:]))] if digits[zeros:] else []
        return " ".join([self._say(0)] * zeros + rest)

    def _pair(self, digits: str) -> str:
        return self._digits(digits) if digits[0] == "0" else self._say(int(digits))

    def _digits(self, digits: str) -> str:
        return " ".join(self._say(int(digit)) for digit in digits)

    def _plain(self, digits: str) -> str:
        return "".join(c for c in digits if c.isdecimal())


def _by_num2words(locale: str, to: str, value: int) -> str:
    """num2words' cardinals and ordinals without the commas, at which the voice would pause."""
    from num2words import num2words

    return str(num2words(value, lang=locale, to=to)).replace(",", "")


def _spaced(words: str) -> str:
    """Words joined with single spaces, where an empty word of the table would leave two."""
    return " ".join(words.split())


def _hindi(value: int) -> str:
    """A number in lakhs and crores, as is usual where Hindi is spoken."""
    for scale, name in _SCALES.items():
        if value >= scale:
            head = f"{_hindi(value // scale)} {name}"
            return f"{head} {_hindi(value % scale)}" if value % scale else head
    return _NUMBERS[value]


def _hindi_ordinal(value: int) -> str:
    return _ORDINALS.get(value) or f"{_hindi(value)}वाँ"
