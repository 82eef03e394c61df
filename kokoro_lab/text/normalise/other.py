"""Numbers, money, percent, dates and clock times where a language has no rules of its own yet.

Few rules on purpose: numbers by num2words, other words and marks from `others.tsv`, which has a column a
language. Digits that no rule takes are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, cast

import regex

from kokoro_lab.text.normalise.other_numbers import MAX_DIGITS, OtherNumbers, spaced
from kokoro_lab.text.normalise.roman import valued
from kokoro_lab.text.normalise.rules import DIGITS, Rule, digit_rule, in_calendar
from kokoro_lab.text.tables import CountedUnit, Gender, any_of, entries, names, units

_BEHIND = {
    "anywhere": "",
    "before a name": r"(?=[\s-](?:(?:d[aeou]s?|de[il]l?[aeo]?|l[ae]s?)\s)*\p{Lu})",
    "before a number": r"(?=\s?\d|\s[IVXLC]+(?![\p{L}\p{N}]))",
}
"""Kind of abbreviation → a pattern for the text after it."""
_WHOLE = r"(?<![.,;:!?…\"”')\]])"
_ADDRESSES = (
    (r"(?<![\w.])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+", "@"),
    (rf"(?<!\w)(?:(?:https?|ftp|file)://|www\.)[^\s<>\"“”]+{_WHOLE}", ":w"),
    (rf"(?<![\w/.])~?(?:/[\p{{L}}\d_.-]+){{2,}}/?{_WHOLE}", "/"),
)
"""Addresses of mail, of the web, and of files: the pattern of each, and a character that all of its matches
have."""
_PARTS = regex.compile(r"[\p{L}\p{M}]+|\d+|.")
_SAYABLE = regex.compile(r"(?=\p{L}{3}).*[aeiouyáàâãéèêíóôõúü]", regex.IGNORECASE)
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_QUARTERS = {15: "सवा", 30: "साढ़े", 45: "पौने"}
_HALVES = {1: "डेढ़", 2: "ढाई"}


class OtherReader(OtherNumbers):
    """The `Reader` (see `normalise`) of a language with a column in `others.tsv`, by its two letters."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._currencies = units(__package__, "other_currencies.tsv", language)
        self._units = units(__package__, "other_units.tsv", language)
        self._names: dict[str, Mapping[str, str]] = {
            kind: names(__package__, "other_names.tsv").get(f"{language} {kind}", {}) for kind in _BEHIND
        }
        self._signs = names(__package__, "other_signs.tsv")[language]
        self.RULES = self._rules()

    def date(self, year: int | None, month: int | None, day: int | None) -> str:
        """Words of a date, day first."""
        parts = []
        if day is not None:
            parts.append(self._words["first of a month"] if day == 1 else self._say(day))
        if month is not None:
            parts.append(self._months[month])
        if year is not None:
            parts.append(self.cardinal(year))
        return spaced(f" {self._words['between parts of a date']} ".join(parts))

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
        return spaced(said)

    @cached_property
    def _months(self) -> Mapping[int, str]:
        return dict(enumerate(entries(self._words["months"]), 1))

    def _rules(self) -> tuple[Rule, ...]:
        words = self._words
        group, mark = (regex.escape(words[each]) for each in ("marks of thousands", "decimal mark"))
        whole = rf"(?:\d{{1,3}}(?:[{group}]\d{{2,3}})+(?![\d])|\d+)"
        number = rf"(?P<sign>(?<!\S)[-+])?(?P<whole>{whole})(?:{mark}(?P<part>\d+))?"
        signs = any_of(self._currencies)
        feminine, ordinal = (
            any_of(entries(words[each])) for each in ("behind a feminine ordinal", "behind an ordinal")
        )
        low = rf"(?:(?P<low>{whole}(?:{mark}\d+)?)\s?[-–]\s?)?"
        return (
            *(Rule("address", pattern, self._address, wakes=wakes) for pattern, wakes in _ADDRESSES),
            *(
                Rule(
                    "abbreviation",
                    rf"(?<![\p{{L}}\p{{M}}\p{{N}}.-]){any_of(table)}{behind}(?!\p{{L}})",
                    self._named,
                )
                for table, behind in ((self._names[kind], behind) for kind, behind in _BEHIND.items())
                if table
            ),
            *self._roman_rules(),
            digit_rule(
                "date", r"(?<![\w/.-])(?P<d>\d{1,2})([/.-])(?P<m>\d{1,2})\2(?P<y>\d{4})(?![\w/-])", self._day
            ),
            digit_rule("date", r"(?<![\w/.-])(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})(?![\w-])", self._day),
            digit_rule("time", r"(?<![\w:.,])(?P<h>\d{1,2}):(?P<m>[0-5]\d)\s?बजे", self._quarter),
            *(
                digit_rule(
                    "time",
                    rf"(?<=\b{any_of(before)}:?\ (?:\d{{1,2}}[.:]\d\d\ ?[-–]\ ?)?)"
                    r"(?P<h>\d{1,2})[.:](?P<m>[0-5]\d)(?![\w.,:]\d)",
                    self._pointed,
                )
                for before in [entries(words["before a time with a point"])]
                if before
            ),
            digit_rule(
                "time",
                r"(?<![\w:.,])(?P<h>\d{1,2})(?:\s?h\s?(?P<m>[0-5]\d)|:(?P<m>[0-5]\d)(?:\s?h)?)(?![\w:]|[.,]\d)",
                self._clock,
            ),
            digit_rule(
                "dash between times",
                r"(?<=\d\ ?h(?:\ ?[0-5]\d)?|"
                rf"\b{any_of(entries(words['before a time with a point']) or ['h'])}:?"
                r"\ \d{1,2}[.:]\d\d|\d:\d\d)\ ?[-–](?=\ ?\d{1,2}(?:\ ?h|[.:][0-5]\d))",
                lambda match: f" {words['to']}",
            ),
            digit_rule(
                "telephone number with a country",
                r"(?<![\w+])\+(?P<country>\d{1,3})[ -]?"
                r"(?P<rest>(?:\(\d{1,4}\)[ -]?)?\d{1,5}(?:[ .-]?\d{2,5}){1,5})(?!\w|[.,]\d)",
                self._abroad,
            ),
            digit_rule(
                "telephone number in pairs",
                r"(?<![\w.,])0[1-9](?:[ .]\d\d){4}(?!\w|[.,]\d)",
                lambda match: ", ".join(map(self._pair, regex.findall(r"\d\d", match.group()))),
            ),
            digit_rule(
                "score",
                r"(?<=\p{Lu}\p{L}+\ )(?P<a>\d{1,2})\ ?x\ ?(?P<b>\d{1,2})(?=\ \p{Lu}\p{Ll})",
                lambda match: f"{self._say(int(match['a']))} {words['to']} {self._say(int(match['b']))}",
            ),
            digit_rule(
                "telephone number",
                r"(?<![\w.,])(?:\(\d{2,4}\)\s?|0\d{1,4}[ /-])\d{3,5}[ -]?\d{3,5}(?!\w|[.,]\d)",
                self._dialled,
            ),
            digit_rule(
                "mark out of a full mark",
                rf"(?<![\w/.,])(?P<part>\d{{1,2}}{mark}\d|(?<=\b[NnVv]ot[aeo]\ ?:?\ )\d{{1,2}})"
                r"/(?P<full>5|10|20|100)(?![\w/]|[.,]\d)",
                self._mark,
            ),
            digit_rule("postal code", r"(?<![\w.,-])\d{5}-\d{3}(?![\w-])", self._dialled),
            digit_rule("mobile number", r"(?<![\w.,-])[6-9]\d{4}\ \d{5}(?![\w-]|[.,]\d)", self._dialled),
            Rule(
                "price of one",
                r"(?<=[€$£₹]|R\$\ ?[\d.,]+)/(?=\p{L}{2})",
                lambda match: f" {words['per']}",
                wakes="/",
            ),
            Rule(
                "so many times",
                r"(?<=(?<![\w.,]|=\ )\d{1,3}(?:[.,]\d)?)x(?![\w.]|\s?[-+=\d])",
                lambda match: words["times"],
                wakes="x",
            ),
            Rule(
                "fraction",
                r"(?<![\w/.,])(?:(?P<whole>\d+)\ ?(?=½|(?<=\ )1/2))?"
                rf"(?P<part>{any_of((*self._pairs('fractions'), *_VULGAR))})\ ?"
                rf"(?:(?P<unit>{any_of(self._units)})(?![\p{{L}}\p{{M}}\p{{N}}/])|(?=(?P<next>\p{{L}}[\p{{L}}\p{{M}}]+)))",
                self._share,
                wakes=f"{DIGITS}{''.join(_VULGAR)}",
            ),
            digit_rule(
                "unit",
                rf"(?<![\w]){low}{number}\s?(?P<unit>{any_of(self._units)})(?![\p{{L}}\p{{M}}\p{{N}}²³/])",
                self._measure,
            ),
            digit_rule(
                "large amount",
                rf"(?P<unit>{signs})\s?{number}\s(?P<scale>{any_of(entries(words['magnitudes']))})(?![\p{{L}}\p{{M}}])",
                self._large,
            ),
            digit_rule("money", rf"(?P<unit>{signs})\s?{low}(?:{signs}\s?)?{number}(?![\w])", self._money),
            digit_rule("money", rf"(?<![\w]){low}{number}\s?(?P<unit>{signs})(?!\w)", self._money),
            digit_rule("percent", rf"(?<![\w]){number}\s?%", self._percent),
            digit_rule(
                "ordinal",
                rf"(?<![\w.,])(?P<whole>\d+)\s?(?:(?P<feminine>{feminine})|{ordinal})(?!\w)",
                self._rank,
            ),
            digit_rule(
                "range",
                r"(?<![\w.,-])(?P<a>\d{1,6})\s?[-–]\s?(?!\d{5}\ \p{Lu})(?P<b>\d{1,6})(?![\w-]|[.,]\d)",
                self._range,
            ),
            digit_rule("number", rf"(?<![\w]){number}(?!\d)", self._number),
            digit_rule("digits", r"\d+", lambda match: self._digits(match.group())),
        )

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
            said = self._sign(match) + self._counted(int(whole), unit)
        return self._up_to(match, said)

    def _share(self, match: Any) -> str:
        """A part of a unit or of what the next word names: "mezzo litro", "uma e meia xícara"."""
        part, whole, unit = match["part"], match["whole"], match["unit"]
        said = self._pairs("fractions")[_VULGAR.get(part, part)]
        noun = (self._units[unit].one if unit else match["next"]) or ""
        gender = self._units[unit].gender if unit else "f" if noun[-1] == "a" else "m"
        if gender == "f" and said in ("mezzo", "meio"):
            said = {"mezzo": "mezza", "meio": "meia"}[said]
        if noun in ("de", "di", "do", "da"):
            said = regex.sub(r" d[ei]$", "", said)
        if whole and self._words["locale"] == "hi":
            said = _HALVES.get(int(whole)) or f"{_QUARTERS[30]} {self._say(int(whole))}"
        elif whole:
            head = self._counted(int(whole), CountedUnit("", "", gender)).strip()
            said = f"{head} {self._words['and'] or 'et'} {said.removeprefix('un ')}"
        return f"{said} {noun}" if unit else said

    def _large(self, match: Any) -> str | None:
        """`R$ 2,5 milhões`: the currency stands after the scale, and after a million with "of"."""
        said, noun = self._number(match), self._currencies[match["unit"]].many
        counted = noun if match["scale"] == "mil" else self._of_a_million(noun)
        return spaced(f"{said} {match['scale']} {counted}") if said else None

    def _dialled(self, match: Any) -> str:
        """Groups of digits, each digit by its name, with a pause between the groups."""
        return ", ".join(map(self._digits, regex.findall(r"\d+", match.group())))

    def _abroad(self, match: Any) -> str:
        """A telephone number with the code of its country; the French say the rest in pairs."""
        pairs = self._words["locale"] == "fr"
        groups = regex.findall(r"\d+", match["rest"])
        said = [(self._pair if pairs and len(group) == 2 else self._digits)(group) for group in groups]
        return ", ".join((f"{self._signs['+']} {self._say(int(match['country']))}", *said))

    def _mark(self, match: Any) -> str:
        return f"{self._decimal(match['part'])} {self._words['out of']} {self._say(int(match['full']))}"

    def _named(self, match: Any) -> str:
        """The words of an abbreviation; at the end of a sentence, its point stays."""
        written = match.group()
        said = next(table[written] for table in self._names.values() if written in table)
        return f"{said}." if written[-1] == "." and match.end() == len(match.string) else said

    def _roman_rules(self) -> Iterator[Rule]:
        """Numbers of rulers, chapters and centuries."""
        words = self._words
        endings, before, behind = (
            entries(words[each])
            for each in ("endings of a Roman ordinal", "before a Roman number", "behind a Roman ordinal")
        )
        if endings:
            numeral = rf"(?P<roman>(?=[IVX]|[LCDM]{{2}})[IVXLCDM]+){any_of(endings)}"
            yield Rule("Roman ordinal", rf"(?<!\p{{L}}){numeral}s?(?!\p{{L}})", valued(self._roman_ordinal))
            yield Rule(
                "century",
                r"(?<=\b[IVX]+e\ )s\.",
                lambda match: "siècle" if match.string[match.end() :].strip() else "siècle.",
            )
        if behind:
            numeral = rf"(?<!\p{{L}})(?P<roman>[IVXLC]+)(?=\ {any_of(behind)})"
            yield Rule("Roman ordinal", numeral, valued(self._roman_ordinal))
        if before:
            nouns = rf"(?<!\p{{L}}){any_of(before)}\ (?:[IVXLC]+\ (?:et|e)\ )?"
            numeral = rf"(?<={nouns})(?P<roman>[IVX]+|[IVXLC]{{2,}})(?![\p{{L}}\p{{N}}'-])"
            yield Rule("Roman number", numeral, valued(lambda match, value: self._say(value)))
            ruler = r"(?<=\p{Lu}\p{Ll}+\ )(?P<roman>[IVX]{2,}|V|I(?=\ ?[,.;:!?)]|$))(?![\p{L}\p{N}'-])"
            yield Rule("number of a ruler", ruler, valued(self._ruler))

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

    def _sign(self, match: Any) -> str:
        names_of_signs = {"-": self._words["minus"], "+": self._signs["+"]}
        return f"{names_of_signs[match['sign']]} " if match["sign"] else ""

    def _up_to(self, match: Any, said: str) -> str:
        """A span whose first number is `low`."""
        if not match["low"]:
            return said
        return f"{self._decimal(match['low'])} {self._words['to']} {said}"

    def _range(self, match: Any) -> str | None:
        first, last = int(match["a"]), int(match["b"])
        return f"{self.cardinal(first)} {self._words['to']} {self.cardinal(last)}" if first < last else None

    def _number(self, match: Any) -> str | None:
        whole = self._plain(match["whole"])
        sign = self._sign(match)
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
        sign = self._sign(match)
        part = match["part"]
        if part and not (unit.minor_one and len(part) == 2):
            said = self._number(match)
            return self._up_to(match, f"{said} {unit.many}") if said else None
        said = self._counted(int(whole), unit)
        if part and int(part):
            cents = self._counted(int(part), CountedUnit(unit.minor_one, unit.minor_many, "m"))
            said = spaced(f"{said} {self._words['and']} {cents}") if int(whole) else cents
        return self._up_to(match, sign + said)
