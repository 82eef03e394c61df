"""French, the main things."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import CountedUnit, Numerals, OtherReader, by_num2words

_CENT = CountedUnit("centime", "centimes")
_DOLLAR = (CountedUnit("dollar", "dollars"), CountedUnit("cent", "cents"))
_say, _rank = by_num2words("fr")
_READER = OtherReader(
    Numerals(
        name="fr",
        say=_say,
        rank=_rank,
        minus="moins",
        point="virgule",
        percent="pour cent",
        to="à",
        hour=CountedUnit("heure", "heures", feminine=True),
        and_="",
        decimal=",",
        grouping=". ",
        ordinal="er|nd|e|ème|ᵉ|ᵉʳ",
        feminine="re|ère|nde",
        inflect=lambda rank: rank.replace("premier", "première"),
        money={
            "€": (CountedUnit("euro", "euros"), _CENT),
            "EUR": (CountedUnit("euro", "euros"), _CENT),
            "$": _DOLLAR,
            "USD": _DOLLAR,
            "£": (CountedUnit("livre", "livres", feminine=True), CountedUnit("penny", "pence")),
            "¥": (CountedUnit("yen", "yens"), None),
        },
        agree={"feminine": {"un": "une"}},
        of=lambda noun: f" d'{noun}" if noun[0] in "aeiouéè" else f" de {noun}",
        first="premier",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
