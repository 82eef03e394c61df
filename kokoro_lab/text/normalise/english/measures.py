"""Quantities with a unit: lengths, weights, temperatures, per cent, sizes of files."""

from __future__ import annotations

from typing import Any

from kokoro_lab.text.normalise.english.numerals import cardinal, fraction, is_one, mixed, number
from kokoro_lab.text.normalise.english.patterns import DECIMAL, END, MAGNITUDE, START, any_of
from kokoro_lab.text.normalise.rules import Rule, rule

UNITS: dict[str, tuple[str, str]] = {}
"""Singular and plural of what is written, with its case."""


def _units(lines: str) -> None:
    for line in lines.strip().splitlines():
        written, names = (part.strip() for part in line.split("="))
        one, many = names.split("|") if "|" in names else (names, f"{names}s")
        for form in written.split(","):
            UNITS[form.strip()] = (one.strip(), many.strip())


_units("""
km, Km = kilometer
m = meter
dm = decimeter
cm = centimeter
mm = millimeter
µm, μm = micrometer
nm = nanometer
mi, mi. = mile
yd, yd., yds, yds. = yard
ft, ft. = foot|feet
in. = inch|inches
nmi = nautical mile
ly = light year
km², km2, sq km, sq. km = square kilometer
m², m2, sq m, sq. m = square meter
cm², cm2, sq cm = square centimeter
mm², mm2 = square millimeter
mi², sq mi, sq. mi = square mile
ft², ft2, sq ft, sq. ft, sq. ft. = square foot|square feet
in², sq in = square inch|square inches
yd², sq yd = square yard
km³, km3 = cubic kilometer
m³, m3, cu m = cubic meter
cm³, cm3, cc = cubic centimeter
mm³, mm3 = cubic millimeter
ft³, ft3, cu ft, cu. ft. = cubic foot|cubic feet
in³, cu in = cubic inch|cubic inches
ha = hectare
kg, Kg, kgs = kilogram
g, gm = gram
mg = milligram
µg, μg, mcg = microgram
lb, lb., lbs, lbs. = pound
oz, oz. = ounce
st = stone|stone
l, L = liter
dl, dL = deciliter
cl, cL = centiliter
ml, mL = milliliter
µl, μl, µL = microliter
gal, gal. = gallon
qt, qt. = quart
pt, pt. = pint
fl oz, fl. oz., fl. oz = fluid ounce
tsp, tsp. = teaspoon
tbsp, tbsp. = tablespoon
km/h, kmh, kph, km/hr = kilometer per hour|kilometers per hour
mph = mile per hour|miles per hour
m/s = meter per second|meters per second
m/s², m/s2, m/s^2 = meter per second squared|meters per second squared
km/s = kilometer per second|kilometers per second
ft/s = foot per second|feet per second
kt, kts, kn = knot
mpg = mile per gallon|miles per gallon
km/l = kilometer per liter|kilometers per liter
rpm, RPM = revolution per minute|revolutions per minute
bpm, BPM = beat per minute|beats per minute
fps, FPS = frame per second|frames per second
dpi, DPI = dot per inch|dots per inch
ppi = pixel per inch|pixels per inch
px = pixel
MP, Mpx = megapixel
Hz = hertz|hertz
kHz, khz = kilohertz|kilohertz
MHz, Mhz, mhz = megahertz|megahertz
GHz, Ghz, ghz = gigahertz|gigahertz
THz = terahertz|terahertz
W = watt
mW = milliwatt
kW = kilowatt
MW = megawatt
GW = gigawatt
TW = terawatt
Wh = watt hour
kWh, kwh = kilowatt hour
MWh = megawatt hour
GWh = gigawatt hour
TWh = terawatt hour
hp, HP = horsepower|horsepower
V = volt
mV = millivolt
kV = kilovolt
A = amp
mA = milliamp
mAh = milliamp hour
Ah = amp hour
Ω, ohm = ohm
kΩ = kiloohm
MΩ = megaohm
µF, μF = microfarad
N = newton
kN = kilonewton
Nm = newton meter
J = joule
kJ = kilojoule
MJ = megajoule
eV = electron volt
cal = calorie
kcal = kilocalorie
Pa = pascal
hPa = hectopascal
kPa = kilopascal
MPa = megapascal
GPa = gigapascal
psi, PSI = pound per square inch|pounds per square inch
bar = bar
mbar = millibar
atm = atmosphere
dB = decibel
dBm = decibel milliwatt
dBTP = decibel true peak|decibels true peak
LUFS = LUFS|LUFS
mol = mole
mmol = millimole
mg/dL, mg/dl = milligram per deciliter|milligrams per deciliter
mmol/L, mmol/l = millimole per liter|millimoles per liter
g/L, g/l = gram per liter|grams per liter
mg/L, mg/l = milligram per liter|milligrams per liter
mg/kg = milligram per kilogram|milligrams per kilogram
µg/m³, μg/m³ = microgram per cubic meter|micrograms per cubic meter
kg/m³, kg/m3 = kilogram per cubic meter|kilograms per cubic meter
g/cm³, g/cm3 = gram per cubic centimeter|grams per cubic centimeter
kg/m² = kilogram per square meter|kilograms per square meter
ppm = part per million|parts per million
ppb = part per billion|parts per billion
bit = bit
Kb, kb, kbit = kilobit
Mb, Mbit = megabit
Gb, Gbit = gigabit
B = byte
KB, kB = kilobyte
MB, mb = megabyte
GB, gb = gigabyte
TB, tb = terabyte
PB = petabyte
KiB = kibibyte
MiB = mebibyte
GiB = gibibyte
TiB = tebibyte
bps = bit per second|bits per second
kbps, Kbps, kbit/s, kb/s = kilobit per second|kilobits per second
Mbps, mbps, Mbit/s, Mb/s = megabit per second|megabits per second
Gbps, gbps, Gbit/s, Gb/s = gigabit per second|gigabits per second
KB/s, kB/s = kilobyte per second|kilobytes per second
MB/s = megabyte per second|megabytes per second
GB/s = gigabyte per second|gigabytes per second
h, hr, hr., hrs, hrs. = hour
min, min., mins, mins. = minute
s, sec, sec., secs, secs. = second
ms, msec = millisecond
µs, μs = microsecond
ns = nanosecond
wk, wks = week
mo, mos, mos. = month
yr, yrs, yrs., yr. = year
°C, ° C, ℃, degC = degree Celsius|degrees Celsius
°F, ° F, ℉, degF = degree Fahrenheit|degrees Fahrenheit
° , ° = degree
K = kelvin|kelvin
F = degree Fahrenheit|degrees Fahrenheit
C = degree Celsius|degrees Celsius
% = percent|percent
percent = percent|percent
‰ = per mille|per mille
pp = percentage point
rad = radian
lm = lumen
lx = lux|lux
Bq = becquerel
Sv = sievert
mSv = millisievert
t = ton
kt CO2 = kiloton of CO2|kilotons of CO2
acre, acres = acre
mile, miles = mile
kilometer, kilometers = kilometer
meter, meters = meter
inch, inches = inch|inches
foot, feet = foot|feet
pound, pounds = pound
kilogram, kilograms = kilogram
gallon, gallons = gallon
liter, liters = liter
hour, hours = hour
minute, minutes = minute
second, seconds = second
day, days = day
week, weeks = week
month, months = month
year, years = year
degree, degrees = degree
cup, cups = cup
teaspoon, teaspoons = teaspoon
tablespoon, tablespoons = tablespoon
ounce, ounces = ounce
""")

WORDS = frozenset(u for u in UNITS if u.isalpha() and UNITS[u][0] == u or u.rstrip("s") in ("feet",))
LOOSE = frozenset(("st", "B", "K", "A", "F", "C", "N", "J", "pt", "bar"))
"""Units that are taken with a space before them only: 4B is a flat, 2A a seat, 1st an ordinal."""

PER = {
    "h": "hour", "hr": "hour", "hour": "hour", "d": "day", "day": "day", "wk": "week", "week": "week",
    "mo": "month", "month": "month", "yr": "year", "year": "year", "s": "second", "sec": "second",
    "second": "second", "min": "minute", "minute": "minute", "kg": "kilogram", "g": "gram", "lb": "pound",
    "oz": "ounce", "gal": "gallon", "gallon": "gallon", "l": "liter", "L": "liter", "ml": "milliliter",
    "mL": "milliliter", "dL": "deciliter", "km": "kilometer", "mi": "mile", "m": "meter", "m²": "square meter",
    "m2": "square meter", "m³": "cubic meter", "km²": "square kilometer", "cm²": "square centimeter",
    "ft": "foot", "in": "inch", "sq ft": "square foot", "sq. ft": "square foot", "kWh": "kilowatt hour",
    "MWh": "megawatt hour", "GB": "gigabyte", "bbl": "barrel", "ha": "hectare", "acre": "acre",
}  # fmt: skip


def per_unit(text: str) -> str:
    """The unit behind a slash, in the singular."""
    return PER.get(text, text)


_UNIT = any_of(u for u in UNITS if u not in ("percent",) and u.strip() and u not in WORDS)
_WORD_UNIT = any_of(WORDS)
_PER = rf"(?:/(?P<per>{any_of(PER)}|person|unit|user|capita|head)(?![\p{{L}}\p{{N}}]))?"
_UNIT_END = r"(?![\p{L}\p{N}²³])"
_SIGNED = r"(?P<sign>(?<![\p{L}\p{N}.)\]])[-−–+±~≈<>≤≥]\ ?)?"
_SIGNS = {
    "-": "minus ", "−": "minus ", "–": "minus ", "+": "plus ", "±": "plus or minus ", "~": "about ",
    "≈": "about ", "<": "less than ", ">": "more than ", "≤": "at most ", "≥": "at least ",
}  # fmt: skip
_VULGAR = r"[¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]"


def sign(text: str | None) -> str:
    """What is said for a sign before a quantity."""
    return _SIGNS.get(text.strip(), "") if text else ""


def _quantity(match: Any) -> str | None:
    text, unit, per = match["number"], match["unit"], match["per"]
    if unit in LOOSE and not match["gap"]:
        return None
    one, many = UNITS[unit]
    big = match["big"]
    words = number(text) + (f" {big}" if big else "")
    singular = is_one(text) and not big
    named = one if singular else many
    if match["compound"] or match["hyphen"]:
        named = one
    stop = "." if unit.endswith(".") and _ends(match) else ""
    behind = f" per {per_unit(per)}" if per else ""
    return f"{sign(match['sign'])}{words} {named}{behind}{stop}"


def _ends(match: Any) -> bool:
    """Whether the point of an abbreviation is the sentence's too."""
    return not match.string[match.end() :].strip(" \"”')")


def _span(match: Any) -> str:
    first, last, unit, per = match["first"], match["last"], match["unit"], match["per"]
    one, many = UNITS[unit]
    joint = {"x": "by", "×": "by", "X": "by"}.get(match["joint"].strip(), "to")
    lead = match["unit_before"]
    left = f"{number(first)} {UNITS[lead][1]}" if lead and lead.strip() != unit.strip() else number(first)
    named = one if match["compound"] else many
    behind = f" per {per_unit(per)}" if per else ""
    return f"{sign(match['sign'])}{left} {joint} {number(last)} {named}{behind}"


def _box(match: Any) -> str:
    sides = [number(match[name]) for name in ("first", "second", "third") if match[name]]
    unit = match["unit"]
    return " by ".join(sides) + (f" {UNITS[unit][1]}" if unit else "")


def _fractional(match: Any) -> str:
    whole, numerator, denominator = match["whole"], int(match["numerator"]), int(match["denominator"])
    unit = match["unit"]
    one, many = UNITS[unit]
    if whole:
        return f"{mixed(int(whole), numerator, denominator)} {one if match['compound'] else many}"
    words = fraction(numerator, denominator)
    if match["compound"]:
        return f"{words} {one}"
    article = "an" if one[0] in "aeio" or one == "hour" else "a"
    return f"{words} {'of ' + article + ' ' if (numerator, denominator) != (1, 2) else article + ' '}{one}".replace(
        "one half a", "half a"
    )


def _height(match: Any) -> str:
    feet, inches = match["feet"], match["inches"]
    words = f"{cardinal(int(feet))} {'foot' if int(feet) == 1 or inches else 'feet'}"
    if not inches:
        return words
    return f"{words} {number(inches)}"


def _inches(match: Any) -> str:
    text = match["number"]
    return f"{number(text)} {'inch' if is_one(text) or match['compound'] else 'inches'}"


def _degrees(match: Any) -> str:
    words = f"{number(match['degrees'])} degree{'' if is_one(match['degrees']) else 's'}"
    for name in ("minutes", "seconds"):
        if match[name]:
            words += f" {number(match[name])} {name if not is_one(match[name]) else name[:-1]}"
    direction = match["direction"]
    return words + (f" {dict(N='north', S='south', E='east', W='west')[direction]}" if direction else "")


def _per_alone(match: Any) -> str:
    return f"{match['noun']} per {per_unit(match['per'])}"


_COMPOUND = r"(?P<compound>-(?=\p{Ll}))?"
_LEFT = r"(?<![\p{L}\p{N}_.,/:]|\p{N}[.,])"

RULES: tuple[Rule, ...] = (
    rule(
        "degrees, minutes and seconds",
        rf"""{_LEFT}(?P<degrees>\d+(?:\.\d+)?)\ ?°\ ?(?:(?P<minutes>\d+(?:\.\d+)?)\ ?['′]\ ?(?:(?P<seconds>\d+(?:\.\d+)?)\ ?["″]\ ?)?)?
        (?P<direction>[NSEW]){END}""",
        _degrees,
    ),
    rule(
        "feet and inches",
        r"""(?<![\p{L}\p{N}_.,'"])(?P<feet>\d+)\ ?['′]\ ?-?(?:(?P<inches>\d{1,2}(?:\.\d+)?)\ ?(?:["″”]|''|(?=\ |$|[,.;)]))|(?=\ (?:tall|high|long|wide|deep)))""",
        _height,
    ),
    rule(
        "inches",
        rf"""{_LEFT}(?P<number>{DECIMAL})\ ?(?:″|"(?=\ (?:x|by|×|screen|monitor|display|tv|TV|pipe|pizza|nail|disk|wide|tall|long)|\ ?[x×])|[-\ ]in(?:\.|(?=[-\ ](?:diameter|screen|wide|tall|long)))){_COMPOUND}""",
        _inches,
    ),
    rule(
        "box",
        rf"""{_LEFT}(?P<first>{DECIMAL})\ ?[x×]\ ?(?P<second>{DECIMAL})(?:\ ?[x×]\ ?(?P<third>{DECIMAL}))?
        (?:\ ?(?P<unit>{_UNIT}){_UNIT_END}|(?![\p{{L}}\p{{N}}^⁰¹²³⁴-⁹⁻]|[.,]\d))(?!\ ?=)""",
        _box,
    ),
    rule(
        "fraction of a unit",
        rf"""{_LEFT}(?:(?P<whole>\d+)(?:\ |-))?(?P<numerator>\d+)/(?P<denominator>\d+)[\ -](?P<unit>{_UNIT}|{_WORD_UNIT}){_UNIT_END}{_COMPOUND}""",
        _fractional,
    ),
    rule(
        "span of quantities",
        rf"""{_SIGNED}{_LEFT}(?P<first>{DECIMAL})(?:\ ?(?P<unit_before>{_UNIT}))?(?P<joint>\ ?[-–]\ ?)(?P<last>{DECIMAL})
        (?P<gap>\ ?)-?(?P<unit>{_UNIT}){_UNIT_END}{_PER}{_COMPOUND}""",
        _span,
    ),
    rule(
        "quantity",
        rf"""{_SIGNED}{_LEFT}(?P<number>{DECIMAL})(?:\ (?P<big>{MAGNITUDE}))?(?:(?P<gap>\ )|(?P<hyphen>-))?(?P<unit>{_UNIT}){_UNIT_END}{_PER}{_COMPOUND}""",
        _quantity,
    ),
    rule(
        "inches behind feet",
        r"(?<=(?:\bft\.?|\bfeet|\bfoot)\ )(?P<number>\d{1,2}(?:\.\d+)?)\ in(?![\p{L}\p{N}])\.?",
        lambda match: f"{number(match['number'])} {'inch' if is_one(match['number']) else 'inches'}",
    ),
    rule(
        "unit per unit",
        rf"""(?<=\d\ )(?P<noun>\p{{Ll}}{{3,}})/(?P<per>{any_of(PER)}|person|unit|user|capita){_UNIT_END}""",
        _per_alone,
    ),
)
