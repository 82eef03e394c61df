"""Portuguese as in Brazil, the main things."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import CountedUnit, Numerals, OtherReader, by_num2words

_CENT = CountedUnit("centavo", "centavos")
_REAL = (CountedUnit("real", "reais"), _CENT)
_DOLLAR = (CountedUnit("dólar", "dólares"), _CENT)
_EURO = (CountedUnit("euro", "euros"), CountedUnit("cêntimo", "cêntimos"))
_say, _rank = by_num2words("pt_BR")
_READER = OtherReader(
    Numerals(
        name="pt_BR",
        say=_say,
        rank=_rank,
        minus="menos",
        point="vírgula",
        percent="por cento",
        to="a",
        hour=CountedUnit("hora", "horas", feminine=True),
        and_="e",
        decimal=",",
        grouping=".",
        ordinal="º|°",
        feminine="ª",
        inflect=lambda rank: " ".join(word.removesuffix("o") + "a" for word in rank.split()),
        money={
            "R$": _REAL,
            "BRL": _REAL,
            "US$": _DOLLAR,
            "$": _DOLLAR,
            "USD": _DOLLAR,
            "€": _EURO,
            "EUR": _EURO,
            "£": (CountedUnit("libra", "libras", feminine=True), CountedUnit("pêni", "pence")),
            "¥": (CountedUnit("iene", "ienes"), None),
        },
        agree={"feminine": {"um": "uma", "dois": "duas"}},
        of=lambda noun: f" de {noun}",
        first="primeiro",
        date_of=" de ",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
