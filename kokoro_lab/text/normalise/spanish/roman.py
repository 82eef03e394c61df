"""Roman numerals in Spanish, where the words beside them show that they are numbers.

Kings, popes, centuries and the parts of books are ordinals up to ten and cardinals from eleven on (`Felipe
sexto`, `Juan veintitrés`, `siglo quinto`, `siglo veintiuno`); other numbered things have cardinals (`fase
dos`); before its noun, a numeral of any size is an ordinal (`vigésimo aniversario`).
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from kokoro_lab.text.normalise.roman import roman, valued
from kokoro_lab.text.normalise.rules import Rule, roman_rule
from kokoro_lab.text.normalise.spanish.agreement import gender_of, plural_gender
from kokoro_lab.text.normalise.spanish.numerals import cardinal, ordinal
from kokoro_lab.text.tables import Gender, any_of, names, words

ORDINALS_TO = 10
_LARGE = frozenset("CDLM")
"""Letters that are no numerals if they are alone, because a number as large as theirs is unlikely there."""
_ROMAN = r"(?P<roman>[IVXLCDM]+)(?![\p{L}\d'’]|-\p{L}|\.\p{L})"

_WORDS = words(__package__)


def value_of(numeral: str) -> int | None:
    """The value of a numeral up to 3999: larger ones need a line above, and are not written in letters."""
    return None if numeral.startswith("MMMM") else roman(numeral)


def _rank(value: int, gender: Gender) -> str:
    return ordinal(value, gender=gender) if value <= ORDINALS_TO else cardinal(value)


_valued = partial(valued, value_of=value_of)


@_valued
def _ruler(match: Any, value: int) -> str | None:
    """`Juan XXIII`; in `Juan C. Pérez`, the letter is an initial, and in `Luis D. Costa`, it is no `don`."""
    name = match["name"]
    if match["roman"] in _LARGE:
        return match.group() if match["roman"] == "D" else None
    female = name in {"Isabel", "Beatriz"} or name.endswith("a")
    return f"{match['lead']}{_rank(value, 'f' if female else 'm')}"


@_valued
def _division(match: Any, value: int) -> str | None:
    noun = match["noun"]
    gender: Gender = "f" if noun.casefold() in _WORDS["feminine, of Roman ordinals"] else "m"
    said = names(__package__)["division"].get(noun.casefold(), noun)
    rest = re.findall(r"[IVXLCDM]+", match["more"] or "")
    spoken = f"{said} {_rank(value, gender)}"
    for joint, other in zip(re.findall(r"[^IVXLCDM]+", match["more"] or ""), rest, strict=True):
        next_value = value_of(other)
        if next_value is None:
            return None
        spoken += (" a " if joint.strip() in {"-", "–"} else joint) + _rank(next_value, gender)
    return spoken


@_valued
def _event(match: Any, value: int) -> str:
    noun = match["noun"].casefold()
    plural = noun.endswith("s")
    gender = plural_gender(noun) if plural else gender_of(noun)
    return ordinal(value, gender=gender, short=not plural) + ("s" if plural else "")


@_valued
def _numbered(match: Any, value: int) -> str | None:
    """`fase II`, but `grupo D`: a single letter is a numeral only if its number is small."""
    return match["lead"] + cardinal(value) if match["roman"] not in _LARGE else None


_alone = _valued(lambda _, value: cardinal(value))


def _any(name: str) -> str:
    return any_of(_WORDS[name])


_NOUNS = any_of(_WORDS["masculine, of Roman ordinals"] | _WORDS["feminine, of Roman ordinals"])

RULES: tuple[Rule, ...] = (
    roman_rule(
        "century, chapter, act",
        rf"""(?<!\w)(?P<noun>(?i:{_NOUNS})|ss?\.|S\.(?=[ ][IVX]{{2}}))[ ](?P<roman>[IVXLCDM]+)
             (?P<more>(?:(?:,[ ]|[ ](?:y|al|a|o)[ ]|[-–])[IVXLCDM]+)*)(?![\p{{L}}\d'’])""",
        _division,
    ),
    roman_rule(
        "ruler",
        rf"(?<!\w)(?P<lead>(?P<name>{_any('ruler')})[ ]){_ROMAN}",
        _ruler,
    ),
    roman_rule(
        "ruler with a title",
        rf"(?<!\w)(?P<lead>(?i:{_any('title of a ruler')})[ ](?:\p{{Lu}}\p{{Ll}}+[ ])?"
        rf"(?P<name>\p{{Lu}}\p{{Ll}}+)[ ]){_ROMAN}",
        _ruler,
    ),
    roman_rule(
        "numbered thing", rf"(?<!\w)(?P<lead>(?i:{_any('before a Roman cardinal')})[ ]){_ROMAN}", _numbered
    ),
    roman_rule(
        "numbered event",
        rf"(?<![\w.]){_ROMAN}(?=[ ](?P<noun>(?i:{_any('behind a Roman ordinal')}))(?!\w))",
        _event,
    ),
    roman_rule("name and number", r"(?<=\p{Lu}\p{Ll}+[ ])(?P<roman>[IVX]{2,})(?![\p{L}\d'’])", _alone),
    roman_rule(
        "Roman numeral alone", r"(?<![\p{L}\d.&-])(?P<roman>[IVX]{2,}|[MDCLXVI]{4,})(?![\p{L}\d'’&-])", _alone
    ),
)
