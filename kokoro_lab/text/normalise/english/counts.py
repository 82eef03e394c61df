"""Fractions, scores, ratios, ordinals and ranges in English, and all numbers that no other rule has taken."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import regex

from kokoro_lab.text.normalise.english.identifiers import serial
from kokoro_lab.text.normalise.english.numerals import (
    cardinal,
    counted,
    digits,
    fraction,
    in_pairs,
    mixed,
    number,
    ordinal,
    vulgar,
)
from kokoro_lab.text.normalise.english.patterns import (
    DECIMAL,
    END,
    LOOSE_END,
    LOOSE_START,
    MAGNITUDES,
    NAMES,
    SPAN,
    START,
    VULGAR,
    VULGAR_SIGNS,
    WHOLE,
    any_word,
    optional,
    scaled,
    sign,
)
from kokoro_lab.text.normalise.rules import Rule, digit_rule
from kokoro_lab.text.tables import any_of

_COMPARED = {"≈": "approximately ", ">": "greater than "}  # of a number alone
_COURSES = {"d": ("day", "days"), "w": ("week", "weeks"), "m": ("month", "months")}
"""First letter of a unit of time in a prescription → the unit's name in the singular and in the plural."""
_PICTURE = "(?i:aspect|widescreen|screens?|displays?|monitors?|videos?|pictures?|images?|footage|tv|frame)"
_CRICKET = r"(?:overs|wickets?|wkts?|declared|lbw|not\ out|stumps|bowled)\b"
_OTHER_SET = regex.compile(r"\d[-–]\d(?:\(\d+\))?,?\ \d[-–]\d")
SHARED = regex.compile(r"\ (?:split|mix|deal|partnership|chance|ratio|rule|vote)\b")


def _fraction(match: Any) -> str | None:
    numerator, denominator = (int(match[n].replace(",", "")) for n in ("numerator", "denominator"))
    if match["whole"]:
        return mixed(int(match["whole"]), numerator, denominator)
    if (numerator, denominator) in ((24, 7), (9, 11), (50, 50), (20, 20)):
        return f"{cardinal(numerator)} {cardinal(denominator)}" if denominator != 11 else "nine eleven"
    if (denominator > 100 and denominator % 100) or numerator > denominator > 20:
        return f"{sign(match)}{cardinal(numerator)} over {cardinal(denominator)}"
    return sign(match) + fraction(numerator, denominator)


def _first_fraction(match: Any) -> str:
    if match["part"]:
        return f"{vulgar(match['whole'], match['part'])} to"
    whole, parts = match["whole"], (int(match["numerator"]), int(match["denominator"]))
    return f"{mixed(int(whole), *parts) if whole else fraction(*parts)} to"


def _range(match: Any) -> str:
    first, last = match["first"], match["last"]
    shares = first.isdecimal() and last.isdecimal() and int(first) + int(last) == 100
    if shares and not optional(match, "big") and (first == last or SHARED.match(match.string, match.end())):
        return f"{number(first)} {number(last)}"  # a fifty fifty chance
    return f"{number(first)} to {scaled(last, optional(match, 'big'))}"


def _score(match: Any, *, british: bool = False) -> str:
    """The words for a score. The British call no goal nil: `2-0` is "two nil". In tennis, where one score
    follows another, they do not."""
    first, last = match["first"], match["last"]
    if british and last == "0" and len(first) == 1 and not _OTHER_SET.search(match.string):
        return f"{'nil' if first == '0' else number(first)} nil"
    return f"{number(first)} to {number(last)}"


def _ordinal(match: Any) -> str:
    numbers = filter(None, (optional(match, "first"), match["last"]))
    return " to ".join(ordinal(int(each.replace(",", ""))) for each in numbers)


def _number(match: Any) -> str:
    more = " plus" if match["more"] else ""
    return f"{sign(match)}{scaled(match['number'], optional(match, 'big'))}{more}"


def _plural(words: str) -> str:
    """The plural of a number's words: "fifty twos" for `fifty two`, "sixties" for `sixty`."""
    if words.endswith("y"):
        return f"{words[:-1]}ies"
    return f"{words}es" if words.endswith("x") else f"{words}s"


def _left_over(match: Any) -> str:
    """Digits that no rule takes: a short run as a number, a long one digit by digit."""
    text = match.group()
    return number(text) if len(text) <= 4 and text.isascii() else digits(text)


BEFORE_UNITS: tuple[Rule, ...] = (
    Rule(
        "first of two fractions",
        rf"""(?<![\p{{L}}\p{{N}}.,:/-])(?:(?:(?P<whole>\d{{1,2}})[\ -])?(?P<numerator>\d{{1,2}})
        /(?P<denominator>\d{{1,2}})|(?:(?P<whole>\d{{1,2}})\ ?)?(?P<part>{VULGAR}))\ ?[-–]\ ?
        (?=(?:\d{{1,2}}[-\ ])?\d{{1,2}}/\d{{1,2}}(?![/\d])|\d{{0,2}}\ ?{VULGAR}
        |\d{{1,2}}\ {any_word("noun behind a fraction")}\b)""",
        _first_fraction,
        wakes=f"/{VULGAR_SIGNS}",
    ),
    digit_rule(
        "days of a dose",
        r"""(?<=\p{L}\ )x\ ?(?P<number>\d+)\ ?(?:(?P<unit>d|wks?|mo)(?![\p{L}\p{N}])
        |(?=\ (?:day|week|month)s?\b))""",
        lambda m: (
            f"for {counted(m['number'], *_COURSES[m['unit'][0]])}"
            if m["unit"]
            else f"for {number(m['number'])}"
        ),
    ),
    digit_rule(
        "millions of people",  # `7.6m people`, which are no meters
        rf"""{START}(?<![.,])(?P<number>{DECIMAL})m
        (?=\ (?:\p{{Ll}}+\ )?{any_word("counted in millions")}\b)""",
        lambda match: f"{number(match['number'])} million",
    ),
    digit_rule(
        "plan of pension",
        rf"{LOOSE_START}(?P<number>401|403|457|529)\((?P<letter>[a-k])\)",
        lambda match: f"{in_pairs(match['number'])} {match['letter'].upper()}",
    ),
    digit_rule(
        "tens, hundreds and thousands",
        rf"{START}(?P<number>10|100|1,?000|10,?000|100,?000|1,?000,?000)s(?=\ of\b)",
        lambda match: NAMES["round number"][match["number"].replace(",", "")],
    ),
    digit_rule(
        "several boards",  # `2x4s`
        r"(?<![\p{L}\p{N}_.,/])(?P<first>[1-6])[x×](?P<second>[23468]|1[02])s(?![\p{L}\p{N}_])",
        lambda match: f"{number(match['first'])} by {_plural(number(match['second']))}",
    ),
    digit_rule(
        "group by its age",  # `under-12s`
        r"""(?:(?<=\b(?i:under|over)-)|(?<=\b(?i:the|for|our)\ (?i:under|over)\ ))(?P<number>\d{1,2})s
        (?!'?[\p{L}\p{N}_])""",
        lambda match: _plural(number(match["number"])),
        also="s",
    ),
    digit_rule(
        "several parts by an ordinal",  # `32nds`
        rf"{START}(?P<number>\d{{1,3}})(?:st|nd|rd|th)s(?![\p{{L}}\p{{N}}_'])",
        lambda match: f"{ordinal(int(match['number']))}s",
        also="s",
    ),
    digit_rule(
        "several of a number",
        r"""(?:(?<=\b(?i:the|these|those|two|three|new|old|boeing)\ )(?P<number>\d{3})|(?<![\p{L}\p{N}-])
        (?P<code>\p{Lu}{1,3}-?\d{1,3}))s(?![\p{L}\p{N}'])""",
        lambda match: _plural(in_pairs(match["number"]) if match["number"] else serial(match["code"])),
    ),
)
RULES: tuple[Rule, ...] = (
    digit_rule(
        "short scale before what is counted",
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?P<number>{DECIMAL})(?P<big>[MB]|bn|(?<=\d\d)[Kk])
        (?P<more>\+)?(?=\ (?!race\b|run\b|resolution\b|video\b|gold\b)\p{{Ll}}{{3,}})""",
        _number,
    ),
    Rule(
        "number sign",
        rf"(?<![\p{{L}}\p{{N}}&])(?:\#|№)\ ?(?P<number>\d+(?:,\d{{3}})*){LOOSE_END}",
        lambda match: f"number {number(match['number'])}",
        wakes="#№",
    ),
    Rule(
        "vulgar fraction",
        rf"(?<![\p{{L}}\p{{N}}.,/])(?:(?P<whole>\d+)\ ?)?(?P<part>{VULGAR})",
        lambda match: vulgar(match["whole"], match["part"]),
        wakes=VULGAR_SIGNS,
    ),
    Rule(
        "score of cricket",
        rf"""{START}(?<![.,/])(?P<runs>\d{{1,3}})/(?P<wickets>\d|10)(?=\ (?:\([\d.]+\ ?ov(?:ers)?\b
        |(?:in|after|off)\ [\d.]+\ overs\b))""",
        lambda match: f"{number(match['runs'])} for {number(match['wickets'])}",
        wakes="/",
    ),
    digit_rule(
        "score of cricket with a dash",
        rf"""{START}(?<![.,/-])(?P<runs>\d{{2,3}})[-–](?P<wickets>\d)(?!\d|[.,-]\d|\p{{L}})
        (?:(?<=\b{_CRICKET}[^!?]{{0,80}}\d|\(\d{{1,3}}b\)[^!?]{{0,80}}\d)|(?=[^!?]{{0,80}}\b{_CRICKET}))""",
        lambda match: f"{number(match['runs'])} for {number(match['wickets'])}",
        also="-–",
    ),
    Rule(
        "odds",  # `the 11/4 favourite`
        rf"""{START}(?<![.,/])(?P<first>\d{{1,3}})/(?P<last>\d{{1,2}}){END}(?![/.]\d)
        (?:(?=\ (?:(?:joint|jt|second|2nd)[\ -])?{any_word("behind odds")}\b)
        |(?<=\b(?i:{any_word("before odds")})\ \d+/\d+))""",
        lambda match: f"{number(match['first'])} to {number(match['last'])}",
        wakes="/",
    ),
    Rule(
        "part of a whole",
        rf"""{START}(?:(?<=\b(?i:{any_word("before a mark")})\ )(?P<numerator>{DECIMAL})/
        (?P<denominator>5|10|100|20)
        |(?<![.,/])(?P<numerator>\d+\.\d+)/(?P<denominator>5|10|100|20)
        |(?<![.,/])(?P<numerator>\d)/(?P<denominator>5)(?=\ (?:stars?|rating|points)\b|\ ?[★⭐])
        |(?<![.,/])(?P<numerator>5)/(?P<denominator>5)(?!\ of\b)
        |(?<![.,/])(?P<numerator>(?!1/)\d+)
        /(?P<denominator>10|100)(?!\ (?:of|an?|miles?|inch|seconds?|cups?|hours?)\b)){END}(?!/)""",
        lambda match: f"{number(match['numerator'])} out of {number(match['denominator'])}",
        wakes="/",
    ),
    Rule(
        "count of all",
        rf"""{START}(?:(?<=\b(?i:{any_word("before a count of all")}):?\ )(?P<part>\d+)/(?P<whole>\d+){END}
        |(?<=[(\[])(?P<part>\d+)/(?P<whole>\d{{2,}})(?=[)\]]))(?!/|\ (?:of|an?|cups?)\b)""",
        lambda m: (
            f"{number(m['part'])} of {number(m['whole'])}" if int(m["part"]) <= int(m["whole"]) else None
        ),
        wakes="/",
    ),
    Rule(
        "beat or versions",
        rf"""{START}(?<![.,/])(?P<first>\d+)/(?P<last>\d+)(?:(?=\ (?:time|beat|meter|signature|rhythm)\b)
        |(?<=\b{any_word("program with versions")}\ \d+/\d+)){END}(?![/.]\d)""",
        lambda match: f"{number(match['first'])} {number(match['last'])}",
        wakes="/",
    ),
    Rule(
        "every day of the year",
        rf"{START}24/7/365{END}",
        lambda match: "twenty four seven three sixty five",
        wakes="/",
    ),
    Rule(
        "fraction",
        rf"""(?<![\p{{L}}\p{{N}}_.,:/])(?P<sign>[-−](?=\d)|[~≈]\ ?)?(?:(?P<whole>\d+)(?:\ |\ ?-\ ?|\ and\ ))?
        (?P<numerator>{WHOLE})\ ?[/⁄]\ ?(?P<denominator>{WHOLE})(?:ths?|rds?|nds?)?{END}(?![/.]\d)""",
        _fraction,
        wakes="/⁄",
    ),
    digit_rule(
        "score",
        rf"""(?<=\b(?i:{any_word("before a score")})\ (?:[\p{{L}}'.]+\ ){{0,3}})
        (?P<first>\d{{1,3}})[-–](?P<last>\d{{1,3}})(?![\p{{L}}\p{{N}}-]|[.,]\d)""",
        _score,
        also="-–",
    ),
    digit_rule(
        "volume, issue and pages",
        rf"{START}(?P<volume>\d+)\((?P<issue>\d+)\):(?P<first>\d+)(?:[-–](?P<last>\d+))?{END}",
        lambda m: (
            ", ".join(map(number, m.group("volume", "issue")))
            + f", {_range(m) if m['last'] else number(m['first'])}"
        ),
    ),
    digit_rule(
        "ratio of a picture's sides",
        rf"""{START}(?<![\d:.])(?P<wide>16|21|9|4|3)(?P<by>:)(?P<high>9|10|16|3|2|4){END}(?!:|[.,]\d)
        (?:(?=\ (?:{_PICTURE})\b)|(?<=\b(?:16|21|9):\d+)(?=\ (?:ratio|format|mode|crop)\b)
        |(?<=\b(?:{_PICTURE})\b[^.,;!?]{{0,24}}\ \d\d?:\d\d?))""",
        lambda match: f"{number(match['wide'])} by {number(match['high'])}",
        wakes=":",
    ),
    digit_rule(
        "ratio",
        rf"{START}(?<![\d:.])\d+(?:\.\d+)?(?:\ ?:\ ?\d+(?:\.\d+)?)+{END}(?!:)",
        lambda match: " to ".join(map(number, match.group().split(":"))),
    ),
    digit_rule(
        "span of ordinals",
        rf"{START}(?P<first>{WHOLE})(?:st|nd|rd|th)?\ ?[-–]\ ?(?P<last>{WHOLE})(?:st|nd|rd|th){END}",
        _ordinal,
        ignore_case=True,
        also="-–",
    ),
    digit_rule(
        "ordinal",
        rf"{START}(?P<last>{WHOLE})\ ?(?:st|nd|rd|th|ᵗʰ|ˢᵗ|ⁿᵈ|ʳᵈ|[ºª]){END}",
        _ordinal,
        ignore_case=True,
    ),
    digit_rule(
        "room or flight",
        rf"""(?<=\b(?i:{any_word("before a room")})\ |\b[Ff]light\ \p{{Lu}}[\p{{Lu}}\d]\ )
        (?P<number>\d{{3,4}})
        (?![\p{{L}}\p{{N}}-]|[.,]\d)""",
        lambda match: in_pairs(match["number"]),
    ),
    digit_rule(
        "times in a day",
        rf"""{LOOSE_START}(?<![.,])(?P<last>\d+)x
        (?:/(?P<per>{any_of(NAMES["per"])})(?![\p{{L}}\p{{N}}])
        |(?=\ {any_word("behind a number of times")}\b))""",
        lambda m: (
            f"{number(m['last'])} {'time' if m['last'] == '1' else 'times'}"
            + (f" per {NAMES['per'][m['per']]}" if m["per"] else "")
        ),
    ),
    digit_rule(
        "times",
        rf"{LOOSE_START}(?<![.,])(?:(?P<first>\d+(?:\.\d+)?)x?[-–])?(?P<last>\d+(?:\.\d+)?)(?=x(?![\p{{L}}\p{{N}}]))",
        lambda m: f"{number(m['first'])} to {number(m['last'])}" if m["first"] else number(m["last"]),
        also="x",
    ),
    digit_rule(
        "range",
        rf"""(?<![\p{{L}}\p{{N}}_.,/$€£-])(?P<first>{DECIMAL})(?:{SPAN}|\ ?(?:[—~]|\.\.)\ ?)
        (?P<last>{DECIMAL})
        (?:(?P<big>{any_of(MAGNITUDES)}))?(?![\p{{L}}\p{{N}}_/-]|[.,]\d)""",
        _range,
    ),
)
PLAIN: tuple[Rule, ...] = (
    digit_rule(
        "number in groups",
        r"(?<![\p{L}\p{N}_.,]|\p{N}\ )(?P<number>\d{1,3}(?:\ \d{3})+)(?![\p{L}\p{N}_]|[.,]\d|\ \d)",
        lambda match: number(match["number"]),
    ),
    digit_rule(
        "long number",
        rf"(?<![\p{{L}}\p{{N}}_.,$€£])(?P<number>0\d+|\d{{11,}}){END}(?![.,]\d)",
        lambda match: digits(match["number"]),
    ),
    digit_rule(
        "sign apart from its number",
        r"^[-−]\ (?P<number>\d[\d,.]*)$",
        lambda match: f"minus {number(match['number'])}",
    ),
    digit_rule(
        "short scale",
        rf"""(?<![\p{{L}}\p{{N}}_.,])(?P<sign>[-−+±])?(?P<number>{DECIMAL})
        (?P<big>{any_of(m for m in MAGNITUDES if m not in ("m", "t", "mm", "MM", "T", "b"))}|
        (?<=\d\.\d)[mb])(?P<more>\+)?{END}""",
        _number,
    ),
    digit_rule(
        "decimal before letters",
        r"(?<![\p{L}\p{N}_]|\d[.,])\d+\.\d+(?=\p{L})",
        lambda match: number(match.group()),
    ),
    Rule(
        "about a number",
        rf"{LOOSE_START}(?P<sign>[~≈<>≤≥])\ ?(?P<number>{DECIMAL}){END}",
        lambda m: f"{_COMPARED.get(m['sign']) or sign(m)}{number(m['number'])}",
        wakes="<>~≈≤≥",
    ),
    digit_rule(
        "number",
        rf"""(?<![\p{{L}}\p{{N}}_]|\d[.,])(?P<sign>(?<![\p{{L}}\p{{N}})\]])[-−+±](?=[\d.]))?
        (?P<number>{DECIMAL})(?P<more>\+{LOOSE_END})?{END}""",
        _number,
    ),
    digit_rule("whatever digits are left", r"\p{Nd}+", _left_over),
    digit_rule("whatever digit is left beside another rule's", r"\p{Nd}", _left_over),
)
BRITISH = {
    each.name: replace(each, say=partial(_score, british=True)) for each in RULES if each.say is _score
}
"""The rules for what the British say in other words."""
