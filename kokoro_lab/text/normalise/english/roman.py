"""Roman numerals, where the words around say that they are numbers."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, ordinal, roman
from kokoro_lab.text.normalise.rules import Rule, rule

PARTS = """
chapter section part volume book act scene appendix article figure table phase type class level stage
grade unit lesson module exhibit schedule title tier plate canto title world\\ war war super\\ bowl
wrestlemania final\\ fantasy rocky apollo saturn mark category cat schedule vatican soyuz gemini rule
form division group series episode vol\\. ch\\. sec\\. fig\\. pt\\. no\\. quadrant amendment
player generation step option
"""
"""Behind these a Roman numeral is a cardinal, I included."""
REGNAL = """
king queen pope emperor empress tsar czar kaiser prince sultan saint henry edward george william charles
james richard louis philip elizabeth mary napoleon john paul pius benedict innocent gregory clement leo
urban alexander nicholas catherine peter frederick wilhelm ferdinand alfonso carlos juan felipe gustav
haakon harald olaf christian ptolemy cleopatra ramses ramesses thutmose amenhotep darius xerxes
artaxerxes antiochus seleucus otto conrad leopold joseph francis maximilian rudolf sigismund ivan
vladimir stephen andrew bela casimir boleslaw john\\ paul robert kenneth david alexander margaret anne
victoria umberto victor\\ emmanuel amadeus hassan abdullah mehmed suleiman selim murad bayezid ahmed
mahmud rama akbar constantine justinian theodosius michael basil leon martin sixtus julius adrian
celestine boniface eugene nicholas callixtus honorius marcellus anastasius valentinian albert baudouin
wenceslaus ladislaus matthias manuel sancho afonso pedro joao jose luis isabella joan philippe
"""

GIVEN = """
aaron adam albert alexander alfred andrew anna anne anthony arthur benjamin bill bob brian charles
christopher daniel david dennis donald douglas edward elizabeth eric frank fred gary george gregory
harold harry henry howard jack jacob james jason jeffrey jerry jim joe john jonathan joseph joshua justin
kenneth kevin larry lawrence louis maria mark martin mary matthew michael nathan nicholas oliver oscar
patrick paul peter philip ralph raymond richard robert roger ronald roy ryan samuel sam scott stephen
steven theodore thomas timothy tom tyler victor vincent walter will william
"""
"""First names: behind one and a family name, a Roman numeral is the person's, `John Smith the third`."""

NUMERAL = r"(?P<roman>[IVX]+|[IVXLCDM]{2,})"


def _cardinal(match: Any) -> str | None:
    value = roman(match["roman"])
    return None if value is None else cardinal(value)


def _span(match: Any) -> str | None:
    first, last = roman(match["first"]), roman(match["last"])
    return None if first is None or last is None else f"{cardinal(first)} to {cardinal(last)}"


def _lower(match: Any) -> str | None:
    value = roman(match["roman"].upper())
    return None if value is None else cardinal(value)


def _regnal(match: Any) -> str | None:
    value = roman(match["roman"])
    return None if value is None or value > 60 else f"the {ordinal(value)}{match['own'] or ''}"


def _century(match: Any) -> str | None:
    value = roman(match["roman"])
    return None if value is None else ordinal(value)


def _alone(match: Any) -> str | None:
    """Two letters or more that are no English word and no common abbreviation."""
    value = roman(match["roman"])
    if value is None or match["roman"] in ABBREVIATIONS:
        return None
    return cardinal(value)


def _capital(text: str) -> str:
    return _words(text.title())


def _words(text: str) -> str:
    return "|".join(sorted(set(text.replace("\\ ", "~").split()), key=len, reverse=True)).replace("~", "\\ ")


ABBREVIATIONS = frozenset(
    (
        "CD",
        "DC",
        "MC",
        "CC",
        "DI",
        "MI",
        "MD",
        "MM",
        "CM",
        "CV",
        "DM",
        "LC",
        "DL",
        "IM",
        "ID",
        "MIX",
        "DIM",
        "MILD",
        "DID",
        "LID",
        "MID",
        "VIM",
        "CIVIC",
        "VIVID",
        "LIVID",
        "DIX",
        "XL",
        "XXL",
        "XX",
        "XXX",
        "LCD",
        "LI",
        "DV",
        "IV",
        "VI",
        "CI",
        "DX",
        "LV",
        "MV",
        "CL",
        "ML",
        "MDM",
        "CIV",
        "XV",
        "LXX",
        "IC",
        "MCC",
        "CCC",
        "CDC",
        "XI",
        "C",
        "D",
        "L",
        "M",
        "I",
        "V",
        "X",
    )
)
"""What stands for something else, or may, when no word before it says that it is a number."""
_END = r"(?![\p{L}\p{N}_]|\.\p{L})"

RULES: tuple[Rule, ...] = (
    rule(
        "Roman ruler with his title",
        rf"""(?<=\b(?:King|Queen|Pope|Emperor|Empress|Tsar|Czar|Kaiser|Sultan|Prince|Duke|Archduke
        |Saint)\ \p{{Lu}}\p{{Ll}}+\ (?:\p{{Lu}}\p{{Ll}}+\ )?)(?P<roman>[IVX]+)(?P<own>'s)?{_END}""",
        _regnal,
    ),
    rule(
        "Roman century",
        r"""(?<![\p{L}\p{N}_])(?P<roman>[IVX]+)(?:th|st|nd|rd)?(?=\ (?:century|centuries|dynasty
        |Olympiad
        |Corps|Army\ Corps)\b)""",
        _century,
    ),
    rule(
        "span of Roman parts",
        rf"(?<=\b(?i:{_words(PARTS)})s?\ )(?P<first>[IVXLCDM]+)\ ?[-–]\ ?(?P<last>[IVXLCDM]+){_END}",
        _span,
        wakes="-–",
    ),
    rule("Roman part", rf"(?<=\b(?i:{_words(PARTS)})s?\ ){NUMERAL}{_END}", _cardinal),
    rule(
        "Roman parts",
        rf"(?<=\b(?i:{_words(PARTS)})s\ [IVX]+(?:\ and\ |\ ?[-–]\ ?|\ to\ |,\ )){NUMERAL}{_END}",
        _cardinal,
    ),
    rule(
        "Roman ruler",
        rf"""(?<=\b(?i:{_words(REGNAL)})\ )(?!I\ (?:\p{{Ll}}+|'))(?P<roman>[IVX]+)(?P<own>'s)?
        (?![\p{{L}}\p{{N}}_])""",
        _regnal,
    ),
    rule(
        "Roman ruler with his number",
        r"""(?<=\b\p{Lu}\p{Ll}+\ (?:the\ )?)(?P<roman>II|III|IV|VI|VII|VIII|IX|XI|XII|XIII|XIV|XV|XVI)
        (?P<own>'s)?(?![\p{L}\p{N}_])(?=,?\ (?:of\ (?:\p{Lu}|the)|died|reigned|ruled|was\ (?:born|crowned
        |king|queen)|succeeded|became))""",
        _regnal,
    ),
    rule(
        "lower-case Roman part",
        rf"""(?<=\b(?i:{_words(PARTS)}|page|pages|p\.|pp\.)s?\ )(?P<roman>[ivxlc]+)(?![\p{{L}}\p{{N}}_]
        |\.\p{{L}})""",
        _lower,
    ),
    rule(
        "lower-case Roman number",
        r"(?<![\p{L}\p{N}_.&-])(?P<roman>ii|iii|vii|viii|xii|xiii|xvii|xviii)(?![\p{L}\p{N}_&-]|\.\p{L}|')",
        _lower,
    ),
    rule(
        "Roman number of a person",
        rf"""(?<=\b(?:{_capital(GIVEN)})\ (?:\p{{Lu}}\.\ )?\p{{Lu}}\p{{Ll}}+\ )(?P<roman>II|III|IV|V)
        (?P<own>'s)?
        (?![\p{{L}}\p{{N}}_]|\.\p{{L}})""",
        _regnal,
    ),
    rule(
        "Roman number of a name",
        r"""(?<=\b\p{Lu}\p{Ll}+\ (?:\p{Lu}\p{Ll}+\ )?)(?P<roman>II|III|IV|VI|VII|VIII|IX)(?![\p{L}\p{N}_]
        |\.\p{L})""",
        _cardinal,
    ),
    rule(
        "Roman number", r"(?<![\p{L}\p{N}_.&-])(?P<roman>[IVXLCDM]{2,})(?![\p{L}\p{N}_&-]|\.\p{L}|')", _alone
    ),
)
