"""English sizes: feet, inches, trousers, voltage with current, and cups and spoons in recipes."""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.english.numerals import counted, fraction, mixed, number, vulgar
from kokoro_lab.text.normalise.english.patterns import DECIMAL, VULGAR, VULGAR_SIGNS, any_word
from kokoro_lab.text.normalise.rules import POINT_WITHIN, Rule, digit_rule

_LEFT = r"(?<![\p{L}\p{N}_.,/:'])"
_SPOONS = {"c": "cup", "C": "cup", "t": "teaspoon", "T": "tablespoon"}
_FOOT = r"['′’]"
_SIDE = rf"\d+(?:\.\d+)?\ ?{_FOOT}(?:\ ?-?\d{{1,2}}(?:\.\d+)?\ ?[\"″”])?"
_UNQUOTED = r"(?<!(?:^|[\s(])[\"“](?=\S)[^\"”]*)"
"""A pattern for a place where no quotation is open. In a quotation, the mark for inches would be its end."""
_NOUN = rf"""\ (?:(?:[48]K|U?HD|QHD|FHD|LCD|O?LED|IPS|TV)\ )*
(?!(?:{any_word("dimension")}|{any_word("no noun behind an amount")}
|said|says|asked|replied)\b)
\p{{Ll}}{{3,}}"""


def _feet_by_feet(match: Any) -> str:
    sides = (regex.findall(r"[\d.]+", side) for side in regex.split("[x×]", match.group()))
    return " by ".join(
        f"{number(feet)} foot {number(*inches)}" if inches else counted(feet, "foot", "feet")
        for feet, *inches in sides
    )


def _inches(match: Any) -> str:
    compound = match["noun"] is not None
    if match["number"]:
        return counted(match["number"], "inch", "inch" if compound else "inches")
    whole, numerator, denominator = match["whole"], int(match["numerator"]), int(match["denominator"])
    if whole:
        return f"{mixed(int(whole), numerator, denominator)} {'inch' if compound else 'inches'}"
    said = fraction(numerator, denominator)
    return f"{said.replace('one half', 'half')} inch" if compound else f"{said} of an inch"


def _inches_and_part(match: Any) -> str:
    whole, compound = match["whole"], match["noun"] is not None
    part = vulgar(whole, match["part"])
    if whole:
        return f"{part} {'inch' if compound else 'inches'}"
    return f"{part.replace('one ', 'a ', 1)} inch" if compound else f"{part} of an inch"


RULES: tuple[Rule, ...] = (
    Rule(
        "x beside a vulgar fraction",
        rf"(?<={VULGAR}[\"″]?\ ?)[x×](?=\ ?(?:\d|{VULGAR}))|(?<=\d[\"″]?\ ?)[x×](?=\ ?\d*{VULGAR})",
        lambda match: "by",
        wakes=VULGAR_SIGNS,
    ),
    digit_rule(
        "waist and length of trousers",
        r"(?<![\p{L}\p{N}_.,/])(?P<waist>\d\d)W\ ?[x×/]?\ ?(?P<length>\d\d)L(?![\p{L}\p{N}_])",
        lambda match: f"{number(match['waist'])} waist by {number(match['length'])} length",
    ),
    digit_rule(
        "feet by feet",
        rf"{_LEFT}{_SIDE}(?:\ ?[x×]\ ?{_SIDE}){{1,2}}(?![\p{{L}}\p{{N}}_])",
        _feet_by_feet,
        also="x×",
    ),
    Rule(
        "inches with a fraction in one sign",  # `5⅝″ board`
        rf"""(?<![\p{{L}}\p{{N}}.,/])(?:(?P<whole>\d+)\ ?)?(?P<part>{VULGAR})(?:{_UNQUOTED}\ ?["″]
        |-in(?:ch)?(?![\p{{L}}\p{{N}}])\.?|\ ?in\.)(?P<noun>(?={_NOUN}))?""",
        _inches_and_part,
        wakes=VULGAR_SIGNS,
    ),
    digit_rule(
        "span of inches",  # `2-4" of snow`
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?[-–]\ ?(?P<last>{DECIMAL}){_UNQUOTED}\ ?["″](?![\p{{L}}\p{{N}}])
        (?P<noun>(?={_NOUN}))?""",
        lambda m: (
            f"{number(m['first'])} to {number(m['last'])} {'inch' if m['noun'] is not None else 'inches'}"
        ),
        also='"″”',
    ),
    digit_rule(
        "inches with a mark",
        rf"""{_LEFT}(?=[\d.,/\ -]{{1,20}}["″”]){_UNQUOTED}(?:(?:(?P<whole>\d+)[-\ ])?(?P<numerator>\d{{1,2}})
        /(?P<denominator>2|4|8|16|32|64)
        \ ?["″”](?:(?=(?P<noun>{_NOUN}))|(?![\p{{L}}\p{{N}}]))
        |(?<![x×]\ ?)(?P<number>{DECIMAL})\ ?["″](?:(?=(?P<noun>{_NOUN}|\ \p{{Lu}}{{2}}))
        |(?=\ (?:for|and|or|with|on|in|to|by|of|off|apart|above|below|{any_word("dimension")})\b|,\ \d)))""",
        _inches,
        also='"″”',
    ),
    digit_rule(
        "voltage and current",
        rf"""{_LEFT}(?P<volts>{DECIMAL})\ ?V(?:\ ?/\ ?|,?\ )(?P<amps>{DECIMAL})\ ?A
        (?![\p{{L}}\p{{N}}])(?P<noun>(?={_NOUN}))?""",
        lambda m: " ".join(
            counted(m[each], each[:-1], each[:-1] if m["noun"] is not None else each)
            for each in ("volts", "amps")
        ),
    ),
    Rule(
        "cups and spoons by a letter",
        rf"""(?<=(?<one>(?<![\d.,/\p{{L}}]|\d\ )1|(?<!\d\ )(?<!\d)\d/\d|(?<!\d\ ?)[¼-¾⅐-⅞])
        |(?<![\d.,/])\d{{1,2}}|\d\ \d/\d|\d\ ?[¼-¾⅐-⅞])
        \ (?P<letter>[cCtT])\.(?=\ (?:[\p{{Ll}}-]+,?\ ){{0,3}}{any_word("food")})""",
        lambda match: f" {_SPOONS[match['letter']]}{'' if match['one'] else 's'}",
        wakes=POINT_WITHIN,
    ),
)
