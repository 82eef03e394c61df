"""Symbols of units and their names."""

from __future__ import annotations

from typing import NamedTuple

from kokoro_lab.text.normalise.spanish.words import Gender


class SpanishUnit(NamedTuple):
    """Names of a unit: `kilómetro por hora`, `kilómetros por hora`."""

    singular: str
    plural: str
    gender: Gender


_IRREGULAR = {"revolución": "revoluciones", "galón": "galones", "lumen": "lúmenes", "lux": "lux"}
_FOREIGN = ("bit", "newton", "sievert", "kelvin")


def _unit(singular: str, gender: Gender = "m") -> SpanishUnit:
    head, *rest = singular.split(" ", 1)
    plural = _IRREGULAR.get(head) or head + ("s" if head[-1] in "aeiou" or head.endswith(_FOREIGN) else "es")
    return SpanishUnit(singular, " ".join((plural, *rest)), gender)


def _power(name: str, gender: Gender = "m") -> tuple[SpanishUnit, SpanishUnit]:
    """The square and the cube of a unit of length: its adjective agrees too."""
    plural = _unit(name).plural
    end = "a" if gender == "f" else "o"
    return (
        SpanishUnit(f"{name} cuadrad{end}", f"{plural} cuadrad{end}s", gender),
        SpanishUnit(f"{name} cúbic{end}", f"{plural} cúbic{end}s", gender),
    )


_PREFIXES = {
    "p": "pico", "n": "nano", "µ": "micro", "μ": "micro", "m": "mili", "c": "centi", "d": "deci",
    "da": "deca",
    "h": "hecto", "k": "kilo", "M": "mega", "G": "giga", "T": "tera",
}  # fmt: skip
_METRIC: tuple[tuple[str, str, Gender, str], ...] = (
    ("g", "gramo", "m", "nµμmcdhk"), ("l", "litro", "m", "µμmcdhk"), ("L", "litro", "m", "µμmcdhk"),
    ("s", "segundo", "m", "nµμm"), ("W", "vatio", "m", "mkMGT"), ("V", "voltio", "m", "mk"),
    ("A", "amperio", "m", "µμm"), ("Hz", "hercio", "m", "kMGT"), ("Pa", "pascal", "m", "hkM"),
    ("J", "julio", "m", "kM"), ("N", "newton", "m", "k"), ("B", "byte", "m", "kKMGT"),
    ("eV", "electronvoltio", "m", "kMG"), ("cal", "caloría", "f", "k"), ("F", "faradio", "m", "pnµμ"),
    ("Ω", "ohmio", "m", "kM"), ("Wh", "vatio hora", "m", "kMGT"), ("Ah", "amperio hora", "m", "m"),
    ("bps", "bit por segundo", "m", "kKMG"), ("b/s", "bit por segundo", "m", "kKMG"),
    ("B/s", "byte por segundo", "m", "kKMG"), ("bit", "bit", "m", "kMG"), ("mol", "mol", "m", "m"),
    ("Sv", "sievert", "m", "µμm"), ("px", "píxel", "m", "M"), ("t", "tonelada", "f", ""),
    ("K", "kelvin", "m", ""), ("lm", "lumen", "m", ""), ("lx", "lux", "m", ""), ("cd", "candela", "f", ""),
)  # fmt: skip
_LENGTHS: dict[str, tuple[str, Gender]] = {
    "m": ("metro", "m"), "km": ("kilómetro", "m"), "hm": ("hectómetro", "m"), "dam": ("decámetro", "m"),
    "dm": ("decímetro", "m"), "cm": ("centímetro", "m"), "mm": ("milímetro", "m"), "µm": ("micrómetro", "m"),
    "μm": ("micrómetro", "m"), "nm": ("nanómetro", "m"), "mi": ("milla", "f"), "ft": ("pie", "m"),
    "in": ("pulgada", "f"), "yd": ("yarda", "f"),
}  # fmt: skip
_OTHERS: dict[str, tuple[str, Gender]] = {
    "h": ("hora", "f"), "hr": ("hora", "f"), "hrs": ("hora", "f"), "hs": ("hora", "f"),
    "kb": ("kilobit", "m"), "Mb": ("megabit", "m"),
    "Gb": ("gigabit", "m"), "min": ("minuto", "m"),
    "seg": ("segundo", "m"), "sg": ("segundo", "m"), "ha": ("hectárea", "f"), "gr": ("gramo", "m"),
    "Kg": ("kilogramo", "m"), "KG": ("kilogramo", "m"), "Km": ("kilómetro", "m"), "KM": ("kilómetro", "m"),
    "mts": ("metro", "m"), "mt": ("metro", "m"), "lts": ("litro", "m"), "lt": ("litro", "m"),

    "kph": ("kilómetro por hora", "m"), "km/h": ("kilómetro por hora", "m"),
    "Km/h": ("kilómetro por hora", "m"),
    "km/s": ("kilómetro por segundo", "m"), "m/s": ("metro por segundo", "m"),
    "m/s²": ("metro por segundo al cuadrado", "m"), "m/s2": ("metro por segundo al cuadrado", "m"),
    "mph": ("milla por hora", "f"), "mi/h": ("milla por hora", "f"), "rpm": ("revolución por minuto", "f"),
    "lpm": ("latido por minuto", "m"), "ppm": ("parte por millón", "f"),
    "fps": ("fotograma por segundo", "m"),
    "g/cm³": ("gramo por centímetro cúbico", "m"), "kg/m³": ("kilogramo por metro cúbico", "m"),
    "g/l": ("gramo por litro", "m"), "mg/dl": ("miligramo por decilitro", "m"),
    "mg/dL": ("miligramo por decilitro", "m"),
    "l/100 km": ("litro cada cien kilómetros", "m"), "l/100km": ("litro cada cien kilómetros", "m"),
    "kg/m²": ("kilogramo por metro cuadrado", "m"),
    "hab/km²": ("habitante por kilómetro cuadrado", "m"),
    "hab./km²": ("habitante por kilómetro cuadrado", "m"),
    "lb": ("libra", "f"), "lbs": ("libra", "f"), "oz": ("onza", "f"), "gal": ("galón", "m"),
    "ac": ("acre", "m"),
    "CV": ("caballo de vapor", "m"), "HP": ("caballo de fuerza", "m"), "hp": ("caballo de fuerza", "m"),
    "dB": ("decibelio", "m"), "atm": ("atmósfera", "f"), "bar": ("bar", "m"), "mbar": ("milibar", "m"),
    "mmHg": ("milímetro de mercurio", "m"), "pulg": ("pulgada", "f"), '"': ("pulgada", "f"),
    "″": ("pulgada", "f"),
    "MP": ("megapíxel", "m"), "dpi": ("punto por pulgada", "m"), "ud": ("unidad", "f"),
    "uds": ("unidad", "f"),
    "°C": ("grado Celsius", "m"), "ºC": ("grado Celsius", "m"), "℃": ("grado Celsius", "m"),
    "°F": ("grado Fahrenheit", "m"), "ºF": ("grado Fahrenheit", "m"), "℉": ("grado Fahrenheit", "m"),
    "°": ("grado", "m"), "° C": ("grado Celsius", "m"), "° F": ("grado Fahrenheit", "m"),
    "°K": ("kelvin", "m"), "Ω": ("ohmio", "m"),
}  # fmt: skip


def _units() -> dict[str, SpanishUnit]:
    units: dict[str, SpanishUnit] = {}
    for symbol, name, gender, prefixes in _METRIC:
        units[symbol] = _unit(name, gender)
        for prefix in prefixes:
            units[prefix + symbol] = _unit(_PREFIXES[prefix.replace("K", "k")] + name, gender)
    for symbol, (name, gender) in _LENGTHS.items():
        square, cube = _power(name, gender)
        units[symbol] = _unit(name, gender)
        units |= {f"{symbol}²": square, f"{symbol}2": square, f"{symbol}³": cube, f"{symbol}3": cube}
    return units | {symbol: _unit(*name) for symbol, name in _OTHERS.items()} | {"cc": units["cm³"]}


UNITS = _units()


def unit_name(symbol: str) -> str:
    """What is behind a stroke, in the singular: `/kg` is `por kilogramo`; a word stays as it is."""
    return UNITS[symbol].singular if symbol in UNITS else symbol
