"""Italian, the main things."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import CountedUnit, Numerals, OtherReader, by_num2words

_EURO = (CountedUnit("euro", "euro"), CountedUnit("centesimo", "centesimi"))
_DOLLAR = (CountedUnit("dollaro", "dollari"), CountedUnit("centesimo", "centesimi"))
_say, _rank = by_num2words("it")
_READER = OtherReader(
    Numerals(
        name="it",
        say=_say,
        rank=_rank,
        minus="meno",
        point="virgola",
        percent="per cento",
        to="a",
        hour=CountedUnit("ora", "ore", feminine=True),
        and_="e",
        decimal=",",
        grouping=".",
        ordinal="º|°",
        feminine="ª",
        inflect=lambda rank: rank.removesuffix("o") + "a",
        money={
            "€": _EURO,
            "EUR": _EURO,
            "$": _DOLLAR,
            "USD": _DOLLAR,
            "£": (CountedUnit("sterlina", "sterline", feminine=True), CountedUnit("penny", "pence")),
            "¥": (CountedUnit("yen", "yen"), None),
        },
        agree={"feminine": {"uno": "una"}, "masculine": {"uno": "un"}},
        of=lambda noun: f" di {noun}",
        first="primo",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
