"""Numbers, money, percent, dates and clock times where a language has no rules of its own yet.

There are few rules on purpose. num2words gives the numbers, and the table `others.tsv` gives other words and
marks; it has a column for each language. Digits that no rule takes are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.boundaries import initial
from kokoro_lab.text.normalise.other_codes import OtherCodes
from kokoro_lab.text.normalise.other_context import OtherContext
from kokoro_lab.text.normalise.other_dates import OtherDates
from kokoro_lab.text.normalise.other_numbers import MAX_DIGITS, spaced
from kokoro_lab.text.normalise.other_roman import OtherRoman
from kokoro_lab.text.normalise.rules import DIGITS, Rule, digit_rule
from kokoro_lab.text.tables import CountedUnit, Gender, any_of, entries, names, units

_BESIDE = {
    "anywhere": ("", ""),
    "before a name": ("", r"(?=[\s-](?:(?:d[aeou]s?|de[il]l?[aeo]?|l[ae]s?)\s)*\p{Lu}|/\p{Lu})"),
    "before a number": (
        r"(?<!\d\ )",
        r"(?=\s?\d|\s(?:[IVXLC]+|(?![AEOYÀÈÉ]\s\p{Ll})\p{Lu})(?![\p{L}\p{N}'’]|\.\s?\p{Lu}))",
    ),
}
"""Kind of abbreviation → patterns for the text before and after it."""
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4"}
_ONE_OF = {"milhões": "milhão", "bilhões": "bilhão", "milioni": "milione", "miliardi": "miliardo"}
_HALVES = {1: "डेढ़", 2: "ढाई"}


class OtherReader(OtherDates, OtherCodes, OtherRoman, OtherContext):
    """The `Reader` (see `normalise`) of a language that has a column in `others.tsv`. It is made from the
    language's code of two letters, such as `fr`."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._currencies = units(__package__, "other_currencies.tsv", language)
        self._names: dict[str, Mapping[str, str]] = {
            kind: names(__package__, "other_names.tsv").get(f"{language} {kind}", {}) for kind in _BESIDE
        }
        self.RULES = self._rules()

    def _rules(self) -> tuple[Rule, ...]:
        words = self._words
        group, mark = (regex.escape(words[each]) for each in ("marks of thousands", "decimal mark"))
        least = 2 if "लाख" in words["magnitudes"] else 3  # digits of a group
        whole = rf"(?:\d{{1,3}}(?:[{group}]\d{{{least},3}})+(?![\d])|\d+)"
        comma = words["decimal mark"] == ","
        point = r"|\.(?P<part>\d\d?)(?!\d|\.\d)" if comma else ""  # as in English
        decimals = rf"(?:{mark}(?P<part>\d+){point})?"
        number = rf"(?P<sign>(?<!\S)(?:[-+](?=\d)|±\ ?))?(?P<whole>{whole})"
        signs = any_of(self._currencies)
        feminine, ordinal = (
            any_of(entries(words[each])) for each in ("behind a feminine ordinal", "behind an ordinal")
        )
        low = rf"(?:(?P<low>{whole}(?:{mark}\d+)?)\s?[-–]\s?)?"
        scales = any_of((*entries(words["magnitudes"]), *self._pairs("short magnitudes")))
        unit, word = any_of(self._units), r"[\p{L}\p{M}\p{N}²³]"
        spans = any_of({"h", "j", "gg", "d"} & set(self._units))
        return (
            *self._context_rules(),
            *self._code_rules(),
            *(
                Rule(
                    "abbreviation",
                    rf"{before}(?<![\p{{L}}\p{{M}}\p{{N}}.-]){any_of(self._names[kind])}{behind}(?!\p{{L}})",
                    self._named,
                )
                for kind, (before, behind) in _BESIDE.items()
                if self._names[kind]
            ),
            Rule(
                "initial of a name",  # its point is no pause
                r"(?<![\p{L}\p{M}\p{N}.'’-])\p{Lu}\.(?=\ \p{Lu})",
                partial(initial, code=self._language),
                wakes=".",
            ),
            *self._roman_rules(),
            *self._date_rules(),
            *self._time_rules(),
            digit_rule(
                "score",
                r"(?<=\p{Lu}\p{L}+\ )(?P<a>\d{1,2})\ ?x\ ?(?P<b>\d{1,2})(?=\ \p{Lu}\p{Ll})",
                lambda match: f"{self._say(int(match['a']))} {words['to']} {self._say(int(match['b']))}",
            ),
            digit_rule(
                "mark out of a full mark",
                rf"(?<![\w/.,])(?:(?P<part>\d{{1,2}}{mark}\d\d?)"
                rf"|(?<=\b(?i:{any_of(entries(words['before a mark']))})\ ?:?\ )(?P<part>\d{{1,3}})"
                rf"|(?P<part>\d{{1,2}})(?=/{'20|/' if words['locale'] == 'fr' else ''}"
                rf"(?:5|10)\ ?(?i:{any_of(entries(words['stars']))})))"
                r"/(?P<full>5|10|20|100)(?![\w/]|[.,]\d)",
                self._mark,
            ),
            digit_rule(
                "out of the whole day or week",
                rf"(?<![\w.,])(?P<whole>24|7)\ ?(?P<unit>{spans})/(?P=whole)(?![\w/])",
                lambda match: spaced(
                    f"{self._counted(int(match['whole']), self._units[match['unit']])} {words['out of']} "
                    f"{self._say(int(match['whole']))}"
                ),
            ),
            Rule(
                "price of one",
                rf"(?<=(?:{signs})|(?:{signs})\s?[\d.,]*\d)\s?/\s?(?:(?P<unit>{unit})(?!{word})|(?=\p{{L}}[\p{{L}}\p{{M}}]))",
                lambda match: f" {self._per(match['unit'] or '')}{_last_stop(match)}",
                wakes="/",
            ),
            digit_rule("end of a price", rf"(?<=(?:{signs})\s?[\d.,]+)/-", lambda match: ""),
            Rule(
                "so many times",
                r"(?<=(?<![\w.,]|=\ )\d{1,3}(?:[.,]\d)?)x(?![\w.]|\s?[-+=\d])",
                lambda match: words["times"],
                wakes="x",
            ),
            digit_rule(
                "size",
                rf"(?<![\w.,])(?P<sides>\d+(?:{mark}\d+)?(?:\s?[x×]\s?\d+(?:{mark}\d+)?){{1,2}})"
                rf"\s?(?P<unit>{unit})(?!{word})",
                self._size,
            ),
            digit_rule(
                "mixed number",
                rf"(?<![\w/.,])(?P<whole>\d{{1,3}})\ ?(?:(?<=\ )(?P<part>{any_of(self._pairs('fractions'))})"
                rf"|(?P<part>[{''.join(_VULGAR)}]))"
                rf"(?:\ ?(?P<unit>{unit})(?!{word}|/)|\ (?P<next>\p{{Ll}}[\p{{L}}\p{{M}}]+)|(?![\w/]))",
                self._mixed,
            ),
            Rule(
                "fraction",
                rf"(?<![\w/.,])(?P<part>{any_of((*self._pairs('fractions'), *_VULGAR))})\ ?"
                rf"(?:(?P<unit>{unit})(?!{word}|/)|(?=(?P<next>d'|\p{{L}}[\p{{L}}\p{{M}}]+)))",
                self._share,
                wakes=f"{DIGITS}{''.join(_VULGAR)}",
            ),
            digit_rule(
                "unit",
                rf"(?<![\w]){low}{number}{decimals}\s?(?P<unit>{unit})"
                rf"(?:/(?:(?P<per>{unit})(?!{word})|(?P<each>\p{{Ll}}[\p{{Ll}}\p{{M}}]{{2,}})))?(?!{word}|/)",
                self._measure,
            ),
            digit_rule(
                "large amount",
                rf"(?P<unit>{signs})\s?{number}{decimals}\s"
                rf"(?P<scale>{scales})(?![\p{{L}}\p{{M}}])",
                self._large,
            ),
            digit_rule(
                "money, its sign for a decimal mark",
                r"(?<![\w.,])(?P<low>)(?P<sign>)(?P<whole>\d+)\s?(?P<unit>€)\s?(?P<part>\d\d)(?!\w|[.,]\d)",
                self._money,
            ),
            digit_rule(
                "money",
                rf"(?P<unit>{signs})\s?{low}(?:{signs}\s?)?{number}{decimals}(?![\w])",
                self._money,
            ),
            digit_rule("money", rf"(?<![\w]){low}{number}{decimals}\s?(?P<unit>{signs})(?!\w)", self._money),
            digit_rule("percent", rf"(?<![\w]){number}{decimals}\s?%", self._percent),
            digit_rule(
                "dash between quantities",
                rf"(?<=\d\s?(?:[%€]|{unit}))\s?[-–]\s?(?=\d)",
                lambda match: f" {words['to']}",
            ),
            digit_rule(
                "ordinal",
                r"(?<![\w.,])(?P<whole>\d+)(?:\s(?=[ºª°]|ème|व))?"
                rf"(?:(?P<feminine>{feminine})|{ordinal})(?!\w)",
                self._rank,
            ),
            digit_rule(
                "range",
                r"(?<![\w.,-])(?P<a>\d{1,6})\s?[-–]\s?(?!\d{5}\ \p{Lu})(?P<b>\d{1,6})(?![\w-]|[.,]\d)",
                self._range,
            ),
            digit_rule(
                "decimal point",
                rf"{'' if comma else '(?!)'}"
                r"(?<![\w.,])(?!\d{1,3}\.\d{3}(?!\d))(?P<letter>)(?P<parts>\d+\.\d+)(?![\w]|[.,]\d)",
                self._version,
            ),
            digit_rule("number", rf"(?<![\w]){number}(?:{mark}(?P<part>\d+))?(?!\d)", self._number),
            digit_rule("digits", r"\d+", lambda match: self._digits(match.group())),
            *self._sign_rules(),
        )

    def _sign_rules(self) -> Iterator[Rule]:
        """Strokes, raised digits, and units that stand alone."""
        words = self._words
        stroke = words["stroke between numbers"]
        if stroke:
            yield digit_rule(
                "stroke between numbers",
                r"(?<=(?<![\w/.,-])(?!(?:19|20)\d\d/)\d{1,3})/(?=(?!0)\d{1,3}(?![\w/-]|[.,]\d))",
                lambda match: f" {stroke}",
            )
        yield Rule(
            "plus between numbers",
            r"(?<=\d['′]?\ ?)\+(?=\ ?\d)",
            lambda match: self._signs["+"],
            wakes="+",
        )
        yield Rule("stroke", r"(?<=[\p{L}\p{M}\d.])/(?=[\p{L}\d])", lambda match: " ", wakes="/")
        alone = [each for each in self._units if each[-1] in "²³" or each in ("km/h", "kWh")]
        yield Rule(
            "unit alone",
            rf"(?<![\p{{L}}\p{{N}}/.])(?P<unit>{any_of(alone)})(?![\p{{L}}\p{{N}}/²³])",
            lambda match: self._units[match["unit"]].one,
        )
        yield Rule(
            "power",
            r"(?<=[\p{L}\d)])[²³](?!\w)",
            lambda match: (
                (" " if match.string[match.start() - 1] == ")" else "")
                + words["square" if match.group() == "²" else "cube"]
            ),
            wakes="²³",
        )

    def _measure(self, match: Any) -> str | None:
        unit = self._units[match["unit"]]
        whole = self._plain(match["whole"])
        if len(whole) > MAX_DIGITS or (len(whole) > 1 and int(whole[0]) == 0):
            return None
        if match["unit"] in '"″' and match.string[: match.start()].count(match["unit"]) % 2:
            return None  # a quotation ends here
        if self._is_letter(match):
            return None
        if match["part"]:
            said = f"{self._number(match)} {unit.one if int(whole) < 2 and not match['low'] else unit.many}"
        else:
            said = self._sign(match) + self._counted(int(whole), unit)
        if match["per"] or match["each"]:
            said += (
                f" {self._words['per']} {self._units[match['per']].one if match['per'] else match['each']}"
            )
        return self._up_to(match, said) + _last_stop(match)

    def _per(self, unit: str) -> str:
        return spaced(f"{self._words['per']} {self._units[unit].one if unit in self._units else unit}")

    def _size(self, match: Any) -> str:
        by = f" {self._words['times, of a size']} "
        sides = map(self._decimal, regex.split(r"\s?[x×]\s?", match["sides"]))
        return f"{by.join(sides)} {self._units[match['unit']].many}"

    def _gender(self, noun: str, whole: int) -> Gender:
        """The gender of a noun in a recipe, by its ending or by a table. The noun is a plural if `whole` is
        more than 1."""
        locale, listed = self._words["locale"], entries(self._words["feminine nouns"])
        if locale == "it":
            return "f" if noun[-1] == "a" or (whole > 1 and noun[-1] == "e") else "m"
        singular = regex.sub(r"(?<=[rz])es$|s$" if locale == "pt_BR" else "s$", "", noun)
        return "f" if singular in listed or (locale == "pt_BR" and singular[-1] == "a") else "m"

    def _mixed(self, match: Any) -> str:
        """The words for a whole number, a fraction and their noun: "due tazze e mezza", "une heure et
        quart"."""
        part, whole, unit = match["part"], int(match["whole"]), match["unit"]
        part = _VULGAR.get(part, part)
        noun = match["next"] or ""
        if unit:
            noun = self._units[unit].one if whole == 1 else self._units[unit].many
        if self._words["locale"] == "hi":
            return f"{self._hindi_share(whole, part)} {noun}".rstrip()
        linked = noun in entries(self._words["no noun behind a fraction"])
        gender = (self._units[unit].gender if unit else self._gender(noun or "o", whole)) or "m"
        said = regex.sub(r" d[ei]$", "", self._pairs("fractions")[part])
        if part == "1/2":
            said = {"mezzo": "mezza", "meio": "meia", "un demi": "un demie"}[said] if gender == "f" else said
        joint = self._words["and"] or "et"
        head = self._counted(whole, CountedUnit("", "", gender)).strip()
        counted = head if linked or not noun else f"{head} {noun}"
        said = said.removeprefix("un ") if part == "1/2" else said
        return f"{counted} {joint} {said}{f' {noun}' if linked else ''}{_last_stop(match) if unit else ''}"

    def _hindi_share(self, whole: int, part: str) -> str:
        """The words for a whole number and a fraction in Hindi. Quarters are counted from the nearest whole
        number: a quarter more, half more, a quarter less."""
        if part == "1/2":
            return _HALVES.get(whole) or f"साढ़े {self._say(whole)}"
        if part in ("1/4", "3/4"):
            return f"सवा {self._say(whole)}" if part == "1/4" else f"पौने {self._say(whole + 1)}"
        return f"{self._say(whole)} {self._pairs('fractions')[part]}"

    def _share(self, match: Any) -> str:
        """A part of a unit or of what the next word names: "mezzo litro"."""
        part, unit = match["part"], match["unit"]
        said = self._pairs("fractions")[_VULGAR.get(part, part)]
        noun = self._units[unit].one if unit else match["next"]
        gender = self._units[unit].gender if unit else self._gender(noun, 1)
        if gender == "f" and said in ("mezzo", "meio"):
            said = {"mezzo": "mezza", "meio": "meia"}[said]
        if gender == "f" and said == "un demi":
            said = "une demi"
        if noun in entries(self._words["no noun behind a fraction"]):
            said = regex.sub(r" d[ei]$", "", said)
        return f"{said} {noun}{_last_stop(match)}" if unit else said

    def _large(self, match: Any) -> str | None:
        """The words for a large sum such as `R$ 2,5 milhões`. The currency is said after the word for
        millions, with "of" between them, or right after thousands."""
        said, noun = self._number(match), self._currencies[match["unit"]].many
        scale = self._pairs("short magnitudes").get(match["scale"], match["scale"])
        if match["whole"] == "1" and not match["part"]:
            scale = _ONE_OF.get(scale, scale)
        counted = noun if scale == "mil" else self._of_a_million(noun)
        return spaced(f"{said} {scale} {counted}") if said else None

    def _mark(self, match: Any) -> str:
        """The words for a mark out of a full mark, such as "four out of five". Hindi says the full mark
        first."""
        part, full = self._decimal(match["part"]), self._say(int(match["full"]))
        first, last = (full, part) if self._words["locale"] == "hi" else (part, full)
        return f"{first} {self._words['out of']} {last}"

    def _named(self, match: Any) -> str:
        """The words of an abbreviation; at the end of a sentence, its point stays."""
        written = match.group()
        said = next(table[written] for table in self._names.values() if written in table)
        return said + _last_stop(match)

    def _percent(self, match: Any) -> str | None:
        said = self._number(match)
        return f"{said} {self._words['percent']}" if said else None

    def _rank(self, match: Any) -> str | None:
        value = int(match["whole"])
        if not 0 < value <= 10_000:
            return None
        said = self.ordinal(value)
        if match.group().endswith("वें"):  # before a noun with a postposition
            return f"{said.removesuffix('ाँ')}ें"
        return self._feminine(said) if match["feminine"] else said

    def _sign(self, match: Any) -> str:
        sign = (match["sign"] or "").rstrip()
        return f"{self._words['minus'] if sign == '-' else self._signs[sign]} " if sign else ""

    def _up_to(self, match: Any, said: str) -> str:
        """If the group `low` matched: the range from that number to `said`; else `said`."""
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


def _last_stop(match: Any) -> str:
    """The point of an abbreviation that ends a sentence."""
    return "." if match.group()[-1] == "." and match.end() == len(match.string) else ""
