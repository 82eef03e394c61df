"""Numbers, money, percent, dates and clock times where a language has no rules of its own yet.

There are few rules on purpose. num2words gives the numbers, and the table `others.tsv` gives other words and
marks; it has a column for each language. Digits that no rule takes are read one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.boundaries import initial
from kokoro_lab.text.normalise.other_agreement import VULGAR, OtherAgreement
from kokoro_lab.text.normalise.other_codes import OtherCodes
from kokoro_lab.text.normalise.other_context import OtherContext
from kokoro_lab.text.normalise.other_dates import OtherDates
from kokoro_lab.text.normalise.other_numbers import MAX_DIGITS, last_stop, spaced, western
from kokoro_lab.text.normalise.other_roman import OtherRoman
from kokoro_lab.text.normalise.other_sizes import OtherSizes
from kokoro_lab.text.normalise.rules import DIGITS, Rule, digit_rule
from kokoro_lab.text.tables import CountedUnit, any_of, entries, names, units

_APART = r"(?<![\p{L}\p{M}\p{N}.-])"
_BESIDE = {
    "behind an ordinal": (r"(?<=\d\ ?(?:e|er|ère|re|ème|nde?|[ºª°oa])\ )", ""),
    "behind a number": (r"(?<=(?<![$€£]\ ?[\d.,]*)\d\ ?)", r"(?!\s?[€$£])"),
    "glued to a number": (r"(?<=(?<![\p{L}\d])[\d.,]*\d)", r"(?=\ \p{L}[\p{L}\p{M}]{2})"),
    "behind a scale": (r"(?<=(?:लाख|करोड़|हज़ार|हजार|अरब)\ )", ""),
    "anywhere": (_APART, ""),
    "before a name": (_APART, r"(?=[\s-](?:(?:d[aeou]s?|de[il]l?[aeo]?|l[ae]s?)\s)*\p{Lu}|/\p{Lu})"),
    "before a year": (rf"{_APART}(?<!\d\ )", r"(?=\ ?1\d{3}(?!\w|[.,]\d))"),
    "before a number": (
        rf"{_APART}(?<!\d\ )",
        r"(?=\s?\d|\s(?:[IVXLC]+|(?![AEOYÀÈÉ]\s\p{Ll})\p{Lu})(?![\p{L}\p{N}'’]|\.\s?\p{Lu}))",
    ),
}
"""Kind of abbreviation → patterns for the text before and after it."""
_BEHIND_DIGITS = ("behind an ordinal", "behind a number", "glued to a number")
_ABBREVIATED = regex.compile(r"\p{Ll}{2}.*\.$")
_ALONE = ("kg", "km", "cm", "mg", "ml", "mL", "km/h", "kWh")
"""Units that no word looks like, so that they may stand without a number."""
_THOUSANDS_BY_SPACES = (
    r"\d{1,3}(?<!\d\ \d{1,3})(?:(?:\ \d{3})*\ 000(?!\d|[\ .,]\d)|(?:\ \d{3})+(?=\ ?(?:€|euro)(?!\w)))|"
)
"""A pattern for `10 000`. Other groups of digits may be a telephone number, unless a currency follows."""
_SEVERAL = regex.compile(
    r"(?:\b(?:[ei][nm]|mill?e|mila?)|\b(?:milli(?:on|ard)s|mili(?:oni|ardi)|[mb]ilhões)\ d[ei])\ $"
)
"""What stands before a unit that is in the plural: `em km²`, `70 mil km²`, `2 milioni di km²`."""
_ONE_OF = {"milhões": "milhão", "bilhões": "bilhão", "milioni": "milione", "miliardi": "miliardo"}


class OtherReader(OtherAgreement, OtherDates, OtherCodes, OtherRoman, OtherSizes, OtherContext):
    """The `Reader` (see `normalise`) of a language that has a column in `others.tsv`. It is made from the
    language's code of two letters, such as `fr`."""

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self._currencies = units(__package__, "other_currencies.tsv", language)
        self._currencies_written = {
            name: unit
            for unit in dict.fromkeys(self._currencies.values())
            for name in (unit.one, unit.many)
            if name in entries(self._words["currencies with cents"])
        }
        self._names: dict[str, Mapping[str, str]] = {
            kind: _with_capitals(names(__package__, "other_names.tsv").get(f"{language} {kind}", {}))
            for kind in _BESIDE
        }
        self._each = self._pairs("in each")
        rules = self._rules()
        self.RULES = rules if language != "hi" else tuple(replace(each, seen=western) for each in rules)

    def _rules(self) -> tuple[Rule, ...]:
        words = self._words
        group, mark = (regex.escape(words[each]) for each in ("marks of thousands", "decimal mark"))
        least = 2 if "लाख" in words["magnitudes"] else 3  # digits of a group
        unmarked = _THOUSANDS_BY_SPACES if " " not in words["marks of thousands"] and least == 3 else ""
        whole = rf"(?:{unmarked}\d{{1,3}}(?:[{group}]\d{{{least},3}})+(?![\d])|\d+)"
        comma = words["decimal mark"] == ","
        point = r"|\.(?P<part>\d\d?)(?!\d|\.\d)" if comma else ""  # as in English
        decimals = rf"(?:{mark}(?P<part>\d+){point})?"
        number = rf"(?P<sign>(?<![^\s(])(?:[-+](?=\d)|±\ ?))?(?P<whole>{whole})"
        signs = any_of(self._currencies)
        feminine, ordinal = (
            any_of(entries(words[each])) for each in ("behind a feminine ordinal", "behind an ordinal")
        )
        low = rf"(?:(?P<low>{whole}(?:{mark}\d+)?)\s?[-–]\s?)?"
        scales = any_of((*entries(words["magnitudes"]), *self._pairs("short magnitudes")))
        unit, word = any_of(self._units), r"[\p{L}\p{M}\p{N}²³]"
        spans = any_of({"h", "j", "gg", "d"} & set(self._units))
        spells = r"(?:[2-9]|[1-7]\d)(?=\ ?(?:h|ore|horas)\b)"  # in hours
        return (
            *self._context_rules(),
            *self._code_rules(),
            *(
                Rule(
                    "abbreviation",
                    rf"{before}{any_of(self._names[kind])}{behind}(?!\p{{L}})",
                    partial(_named, self._names[kind]),
                    wakes=DIGITS if kind in _BEHIND_DIGITS else "",
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
                "mark out of a full mark",
                rf"(?<![\w/.,])(?:(?P<part>\d{{1,2}}{mark}\d\d?)"
                rf"|(?<=\b(?i:{any_of(entries(words['before a mark']))})\ ?:?\ )(?P<part>\d{{1,3}})"
                rf"|(?P<part>\d{{1,2}})(?=/{'20|/' if words['locale'] == 'fr' else ''}"
                rf"(?:5|10)\ ?(?i:{any_of(entries(words['stars']))})))"
                r"/(?P<full>5|10|20|100)(?![\w/]|[.,]\d)",
                self._mark,
                wakes="/",
            ),
            digit_rule(
                "out of the whole day or week",
                rf"(?<![\w.,])(?P<whole>24|7)\ ?(?P<unit>{spans})/(?P=whole)(?![\w/])",
                lambda match: spaced(
                    f"{self._counted(int(match['whole']), self._units[match['unit']])} {words['out of']} "
                    f"{self._say(int(match['whole']))}"
                ),
                wakes="/",
            ),
            Rule(
                "price of one",
                rf"(?<=(?:{signs})|(?:{signs})\s?[\d.,]*\d)\s?/\s?"
                rf"(?:(?P<many>10{{1,3}}(?=\ ?(?:g|ml|mL|cl|kg|km|pz)\b)\ ?)?"
                rf"(?P<unit>{any_of((*self._units, *self._each))})(?!{word})|(?=\p{{L}}[\p{{L}}\p{{M}}]))",
                lambda match: f" {self._per(match['unit'] or '', match['many'])}{last_stop(match)}",
                wakes="/",
            ),
            digit_rule("end of a price", rf"(?<=(?:{signs})\s?[\d.,]+)/-", lambda match: ""),
            *self._size_rules(),
            digit_rule(
                "mixed number",
                rf"(?<![\w/.,])(?P<whole>\d{{1,3}})\ ?(?:(?<=\ )(?P<part>{any_of(self._pairs('fractions'))})"
                rf"|(?P<part>[{''.join(VULGAR)}]))"
                rf"(?:\ ?(?P<unit>{unit})(?!{word}|/)|\ (?P<next>\p{{Ll}}[\p{{L}}\p{{M}}]+)|(?![\w/]))",
                self._mixed,
            ),
            digit_rule(
                "half behind what it is of",
                r"(?<=\d\ ?(?P<noun>\p{L}+)\ (?P<linked>et?\ )?)1/2(?![\w/]|\ \p{L})",
                self._half,
                wakes="/",
            ),
            Rule(
                "fraction",
                rf"(?<![\w/.,])(?P<part>{any_of((*self._pairs('fractions'), *VULGAR))})\ ?"
                rf"(?:(?P<unit>{unit})(?!{word}|/)|(?=(?P<next>d'|\p{{L}}[\p{{L}}\p{{M}}]+)))",
                self._share,
                wakes=f"{DIGITS}{''.join(VULGAR)}",
            ),
            digit_rule(
                "unit",
                rf"(?<![\w]){low}{number}{decimals}\s?(?P<unit>{unit})"
                rf"(?:/(?:(?P<per>{unit})(?!{word})"
                rf"|(?<!\d\ ?h/)(?P<many>{spells}|100{{1,2}})\ ?(?P<per>{unit})(?!{word})"
                rf"|(?P<each>{any_of(self._each)}(?!{word})|\p{{Ll}}[\p{{Ll}}\p{{M}}]{{2,}})))?"
                rf"(?:(?<=/\S+)/(?P<then>{any_of((*self._each, *self._units))})(?!{word}))?"  # `mg/kg/h`
                rf"(?!{word}|/(?!\d)|\.\p{{L}})",
                self._measure,
            ),
            digit_rule(
                "large amount",
                rf"(?P<unit>{signs})\s?(?:(?P<low>{whole}(?:{mark}\d+)?)(?:\s?[-–]\s?|\ {words['to']}\ "
                rf"(?=[\d.,]+\ {scales}(?!\p{{L}}|\ \p{{Ll}}{{3,}}s\b))))?{number}{decimals}\s"
                rf"(?P<scale>{scales}(?:\ {scales})?)(?![\p{{L}}\p{{M}}])",
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
            digit_rule(
                "money in words with cents",
                rf"(?<![\w])(?P<low>){number}{mark}(?P<part>\d\d)\s(?P<unit>{any_of(self._currencies_written)})(?!\w)",
                self._money,
            ),
            digit_rule("percent", rf"(?<![\w]){number}{decimals}\s?%", self._percent),
            digit_rule(
                "dash between quantities",
                rf"(?<=\d\s?(?:[%€]|{unit})|(?<![\w.,])\d+{mark}\d+)\s?[-–]\s?(?=\d)",
                lambda match: f" {words['to']}",
                wakes="-–",
            ),
            digit_rule(
                "degrees of heat",
                rf"(?:(?<=\b(?i:{any_of(entries(words['near degrees']))})\p{{L}}*\.?[^\d.!?]{{0,20}}"
                r"(?:\d+\s?[º°][^\d.!?]{1,12})?)|(?<![^\s(])(?=-))(?<!\b(?:[iad]l|d[ae]l|[adn]?o)\ )"
                r"(?P<sign>(?<![^\s(])-)?(?P<whole>\d+)\s?[º°](?![\p{L}\d]|\ \p{Ll}{4})",
                lambda match: f"{self._sign(match)}{self._say(int(match['whole']))} {words['degrees']}",
                wakes="º°",
            ),
            digit_rule(
                "ordinal",
                r"(?<![\w.,])(?P<whole>\d+)(?:\.(?=[ºª])|\s(?=[ºª°]|ème|व))?"
                rf"(?:(?P<feminine>{feminine})|{ordinal})(?P<many>s?)(?!\w)",
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
            digit_rule("number", rf"(?<![\w]){number}(?:{mark}(?P<part>\d+))?(?!\d)", self._counting),
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
            rf"(?<=\d(?:['′]|{any_of(entries(words['behind an ordinal']))})?\ ?)\+(?=\ ?\d)"
            r"|(?<=\w\ )\+(?=\ \w)",
            lambda match: self._signs["+"],
            wakes="+",
        )
        yield Rule(
            "so many in each",
            rf"(?<=\d\ ?(?:{any_of(self._currencies)}\ )?\p{{L}}[\p{{L}}\p{{M}}]*\.?\ ?)/\ ?"
            rf"(?P<each>{any_of((*self._each, *self._units))})(?![\p{{L}}\p{{M}}\p{{N}}²³])",
            lambda match: f" {self._per(match['each'])}{last_stop(match)}",
            wakes="/",
        )
        yield Rule("stroke", r"(?<=[\p{L}\p{M}\d.])/(?=[\p{L}\d])", lambda match: " ", wakes="/")
        alone = [each for each in self._units if each[-1] in "²³" or each in _ALONE]
        yield Rule(
            "unit alone",
            rf"(?<![\p{{L}}\p{{N}}/.])(?P<unit>{any_of(alone)})(?![\p{{L}}\p{{N}}/_²³])",
            self._alone,
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
            singular = int(whole) < 2 and not match["low"] and self._words["locale"] != "it"
            said = f"{self._number(match)} {unit.one if singular else unit.many}"
        else:
            said = self._sign(match) + self._counted(int(whole), unit)
        if match["per"] or match["each"]:
            said += f" {self._per(match['per'] or match['each'], match['many'])}"
        if match["then"]:
            said += f" {self._per(match['then'])}"
        return self._up_to(match, said) + last_stop(match)

    def _per(self, unit: str, many: str | None = None) -> str:
        """The words for one unit (after a slash), or for `many` of it: `3 g/24 h`."""
        if many:
            return f"{self._words['per']} {self._counted(int(many), self._units[unit])}"
        said = self._units[unit].one if unit in self._units else unit
        return self._each.get(unit) or spaced(f"{self._words['per']} {said}")

    def _alone(self, match: Any) -> str:
        unit = self._units[match["unit"]]
        return unit.many if _SEVERAL.search(match.string, 0, match.start()) else unit.one

    def _counting(self, match: Any) -> str | None:
        said = self._number(match)
        if said and said.endswith("tré") and match.string.startswith(" mila", match.end()):
            return f"{said[:-1]}e"  # the stress is on `mila`
        return self._agreeing(said, match) if said and not match["part"] else said

    def _large(self, match: Any) -> str | None:
        """The words for a large sum such as `R$ 2,5 milhões`. The currency is said after the word for
        millions, with "of" between them, or right after thousands."""
        said, noun = self._number(match), self._currencies[match["unit"]].many
        scale = self._pairs("short magnitudes").get(match["scale"], match["scale"])
        if match["whole"] == "1" and not match["part"]:
            scale = _ONE_OF.get(scale, scale)
        if scale == "mil" and said == "um":
            said = ""
        counted = noun if scale == "mil" else self._of_a_million(noun)
        return None if said is None else self._up_to(match, spaced(f"{said} {scale} {counted}"))

    def _mark(self, match: Any) -> str:
        """The words for a mark out of a full mark, such as "four out of five". Hindi says the full mark
        first."""
        part, full = self._decimal(match["part"]), self._say(int(match["full"]))
        first, last = (full, part) if self._words["locale"] == "hi" else (part, full)
        return f"{first} {self._words['out of']} {last}"

    def _percent(self, match: Any) -> str | None:
        said = self._number(match)
        return f"{said} {self._words['percent']}" if said else None

    def _rank(self, match: Any) -> str | None:
        value = int(match["whole"])
        if not 0 < value <= 10_000:
            return None
        said = "second" if self._words["locale"] == "fr" and "nd" in match.group() else self.ordinal(value)
        if match.group().endswith("वें"):  # before a noun with a postposition
            return f"{said.removesuffix('ाँ')}ें"
        if match.group().endswith("े"):
            return f"{said.removesuffix('ा')}े"
        return f"{self._feminine(said) if match['feminine'] else said}{match['many']}"

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
        if first >= last:
            return None
        said = (self._agreeing(self.cardinal(each), match) for each in (first, last))
        return f" {self._words['to']} ".join(said)

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
        unit = self._currencies.get(match["unit"]) or self._currencies_written[match["unit"]]
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


def _named(table: Mapping[str, str], match: Any) -> str:
    """The words of an abbreviation; at the end of a sentence, its point stays."""
    return table[match.group()] + last_stop(match)


def _with_capitals(table: Mapping[str, str]) -> Mapping[str, str]:
    """Abbreviations, and those of two small letters or more as they stand at the start of a sentence."""
    return {key[0].upper() + key[1:]: said for key, said in table.items() if _ABBREVIATED.match(key)} | dict(
        table
    )
