"""Portuguese as in Brazil, the main things."""

from __future__ import annotations

from kokoro_lab.text.normalise.other import Numerals, OtherReader, Unit, by_num2words

_CENT = Unit("centavo", "centavos")
_REAL = (Unit("real", "reais"), _CENT)
_DOLLAR = (Unit("dólar", "dólares"), _CENT)
_EURO = (Unit("euro", "euros"), Unit("cêntimo", "cêntimos"))
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
        hour=Unit("hora", "horas", feminine=True),
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
            "£": (Unit("libra", "libras", feminine=True), Unit("pêni", "pence")),
            "¥": (Unit("iene", "ienes"), None),
        },
        agree={"feminine": {"um": "uma", "dois": "duas"}},
        of=lambda noun: f" de {noun}",
        first="primeiro",
        date_of=" de ",
    )
)
RULES = _READER.rules()
cardinal, ordinal, date, time = _READER.cardinal, _READER.ordinal, _READER.date, _READER.time
