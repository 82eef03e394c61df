"""Italian, the main things."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import Numerals, OtherReader, Unit, by_num2words

_EURO = (Unit("euro", "euro"), Unit("centesimo", "centesimi"))
_DOLLAR = (Unit("dollaro", "dollari"), Unit("centesimo", "centesimi"))
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
        hour=Unit("ora", "ore", feminine=True),
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
            "£": (Unit("sterlina", "sterline", feminine=True), Unit("penny", "pence")),
            "¥": (Unit("yen", "yen"), None),
        },
        agree={"feminine": {"uno": "una"}, "masculine": {"uno": "un"}},
        of=lambda noun: f" di {noun}",
        first="primo",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
