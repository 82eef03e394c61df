"""Money, per cent and units: the sign goes, its name follows the number."""

from __future__ import annotations

import unicodedata
from typing import Any

from kokoro_lab.text.normalise.japanese.numbers import cardinal, number
from kokoro_lab.text.normalise.japanese.written import (
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    NUMBER,
    SIGN,
    SIGNS,
    START,
    alternatives,
    either_width,
    table,
)
from kokoro_lab.text.normalise.rules import Rule

CURRENCY_SIGNS = table(
    """
    ¥=円 $=ドル US$=米ドル A$=豪ドル AU$=豪ドル C$=カナダドル CA$=カナダドル HK$=香港ドル NT$=台湾ドル
    S$=シンガポールドル NZ$=ニュージーランドドル R$=レアル €=ユーロ £=ポンド ₩=ウォン ₹=ルピー ₽=ルーブル
    ฿=バーツ ₫=ドン ₱=ペソ ₺=リラ ₪=シェケル ₴=フリヴニャ ₿=ビットコイン ¢=セント
    """
)
CURRENCY_CODES = table(
    """
    JPY=円 USD=米ドル EUR=ユーロ GBP=ポンド AUD=豪ドル CAD=カナダドル NZD=ニュージーランドドル HKD=香港ドル
    SGD=シンガポールドル TWD=台湾ドル CHF=スイスフラン CNY=人民元 RMB=人民元 KRW=ウォン INR=ルピー
    THB=バーツ RUB=ルーブル BRL=レアル MXN=メキシコペソ PHP=フィリピンペソ VND=ドン BTC=ビットコイン
    """
)
_ENGLISH_SIZES = {
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "K": 10**3, "k": 10**3, "M": 10**6, "m": 10**6, "B": 10**9, "bn": 10**9,
}  # fmt: skip

_PREFIXES = table(
    """
    Y=ヨタ Z=ゼタ E=エクサ P=ペタ T=テラ G=ギガ M=メガ k=キロ K=キロ m=ミリ μ=マイクロ µ=マイクロ n=ナノ
    p=ピコ
    """
)
_PREFIXED = {
    # unit: its name, and the prefixes that it is met with
    "m": ("メートル", "kmμµnp"), "g": ("グラム", "kmμµn"), "Hz": ("ヘルツ", "kMGT"),
    "W": ("ワット", "mkMGT"), "V": ("ボルト", "mkμµ"), "A": ("アンペア", "mkμµ"), "Wh": ("ワット時", "kMG"),
    "Ah": ("アンペア時", "m"), "Pa": ("パスカル", "kMG"), "N": ("ニュートン", "k"),
    "J": ("ジュール", "kMG"), "cal": ("カロリー", "k"), "B": ("バイト", "KkMGTPEZ"),
    "bps": ("ビット毎秒", "kKMGT"), "bit": ("ビット", "kKMGT"), "L": ("リットル", "mkμµ"),
    "l": ("リットル", "mkμµ"), "ℓ": ("リットル", "mk"), "Ω": ("オーム", "kMm"), "F": ("ファラド", "mμµnp"),
    "Sv": ("シーベルト", "mμµ"), "Bq": ("ベクレル", "kMGT"), "mol": ("モル", "mk"),
    "eV": ("電子ボルト", "kMGT"), "T": ("テスラ", "mμµ"), "s": ("秒", "mμµnp"), "sec": ("秒", "mμµn"),
    "t": ("トン", "kM"),
}  # fmt: skip
_UNPREFIXED = frozenset("FT") | {"s", "sec"}
"""Bare, these are floors, tesla that nobody writes, and seconds, which have a rule of their own."""
UNITS = {
    **{prefix + unit: _PREFIXES[prefix] + name for unit, (name, met) in _PREFIXED.items() for prefix in met},
    **{unit: name for unit, (name, _) in _PREFIXED.items() if unit not in _UNPREFIXED},
    **table(
        """
        cm=センチメートル dm=デシメートル dL=デシリットル dl=デシリットル cL=センチリットル
        hPa=ヘクトパスカル dB=デシベル ha=ヘクタール cc=シーシー KiB=キビバイト MiB=メビバイト
        GiB=ギビバイト TiB=テビバイト fps=フレーム毎秒 rpm=回転毎分 ppm=ピーピーエム dpi=ディーピーアイ
        px=ピクセル pt=ポイント ft=フィート inch=インチ yd=ヤード mi=マイル mile=マイル
        miles=マイル mph=マイル毎時 kph=キロメートル毎時 lb=ポンド lbs=ポンド oz=オンス gal=ガロン kt=ノット
        lx=ルクス lm=ルーメン cd=カンデラ rad=ラジアン mmHg=ミリメートル水銀柱
        Å=オングストローム h=時間 °C=度 ℃=度 °=度 deg=度 Gy=グレイ atm=気圧
        """
    ),
}
"""Of each unit's sign its name. Degrees are Celsius unless they say otherwise: nobody says 摂氏."""

_POWERS = {"²": "平方", "2": "平方", "^2": "平方", "³": "立方", "3": "立方", "^3": "立方"}
_LENGTHS = ("km", "cm", "mm", "μm", "nm", "dm", "m")
_PER = table(
    """
    h=毎時 hr=毎時 s=毎秒 sec=毎秒 min=毎分 s²=毎秒毎秒 s2=毎秒毎秒 s^2=毎秒毎秒
    """
)

_BASE = rf"(?:{alternatives(_LENGTHS)}(?:\^?[23](?!\d)|[²³])|{alternatives(UNITS)})"
_COMPOUND = rf"{_BASE}(?:/(?:{alternatives(_PER)}|{_BASE}))?"
_ALONE = frozenset(
    [
        "km",
        "kg",
        "cm",
        "mm",
        "mg",
        "ml",
        "mL",
        "kHz",
        "MHz",
        "GHz",
        "Hz",
        "kW",
        "kWh",
        "kcal",
        "dB",
        "GB",
        "MB",
        "TB",
        "km/h",
        "m/s",
        "hPa",
    ]
)
"""Units that no word is written like: their signs are read without a number, too."""
_COMPATIBLE = "㎜㎝㎞㎟㎠㎡㎢㎣㎤㎥㎦㎎㎏㎍㎖㎗㎘㎐㎑㎒㎓㎾㎿㎉㎈㏄㎅㎆㎇㎳㎲㎱㏈㎩㎪㎫㏊㎧㎨"
_PERCENT = {"%": "パーセント", "‰": "パーミル"}


def _unit(written: str) -> str:
    """The name of a unit, a power of one, or one per another."""
    base, _, per = written.partition("/")
    for power, name in _POWERS.items():
        if base.endswith(power) and base.removesuffix(power) in _LENGTHS:
            said = name + UNITS[base.removesuffix(power)]
            break
    else:
        said = UNITS[base]
    if not per:
        return said
    return said + (_PER.get(per) or "毎" + _unit(per))


def _measure(match: Any) -> str:
    return SIGNS[match["sign"]] + number(match["n"]) + _unit(match["unit"])


def _compatible(match: Any) -> str:
    """A unit that is one character, alone or behind a number: its letters are read as such."""
    plain = unicodedata.normalize("NFKC", match["unit"]).replace("∕", "/")
    return SIGNS[match["sign"]] + (number(match["n"]) if match["n"] else "") + _unit(plain)


def _money(match: Any) -> str:
    """`$3 million` is 三百万ドル; the sign of a debt may stand on either side of the currency's."""
    amount, name = match["n"], CURRENCY_SIGNS.get(match["currency"]) or CURRENCY_CODES[match["currency"]]
    sign = match["sign"] or match["inner"]
    said = _multiplied(amount, _ENGLISH_SIZES[match["size"]]) if match["size"] else number(amount)
    return SIGNS[sign or ""] + said + name


def _multiplied(amount: str, size: int) -> str:
    whole, _, decimals = amount.replace(",", "").partition(".")
    return cardinal(int(whole + decimals) * size // 10 ** len(decimals))


_SIZE = rf"(?:\s?(?<size>{alternatives(_ENGLISH_SIZES)}){NO_LATIN_AFTER})?"
RULES: tuple[Rule, ...] = (
    either_width(
        "money, the sign first",
        rf"""(?<sign>{SIGN}){NO_LATIN_BEFORE}(?<currency>{alternatives(CURRENCY_SIGNS)}|{alternatives(CURRENCY_CODES)})
            \s?(?<inner>[-▲△]?)(?<n>{NUMBER}){_SIZE}円?""",
        _money,
    ),
    either_width(
        "money, the currency last",
        rf"""(?<sign>{SIGN})(?<inner>){START}(?<n>{NUMBER})(?<size>)\s?
            (?<currency>{alternatives(CURRENCY_SIGNS)}|{alternatives(CURRENCY_CODES)}{NO_LATIN_AFTER})""",
        _money,
    ),
    either_width(
        "per cent",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?<unit>[%‰])(?<point>pt{NO_LATIN_AFTER})?",
        lambda m: (
            SIGNS[m["sign"]] + number(m["n"]) + _PERCENT[m["unit"]] + ("ポイント" if m["point"] else "")
        ),
    ),
    either_width(
        "per cent, the sign alone",
        r"[%‰](?=\s|\P{L}|[\p{Han}\p{Hiragana}\p{Katakana}]|$)",
        lambda m: _PERCENT[m.group()],
    ),
    either_width(
        "degrees Fahrenheit",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?:°F|℉)",
        lambda match: "華氏" + SIGNS[match["sign"]] + number(match["n"]) + "度",
    ),
    either_width(
        "angle",
        rf"{START}(?<d>{NUMBER})°\s?(?<m>\d+)[′'](?:\s?(?<s>{NUMBER})[″\"])?",
        lambda m: f"{number(m['d'])}度{number(m['m'])}分" + (f"{number(m['s'])}秒" if m["s"] else ""),
    ),
    either_width(
        "measure",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})\s?(?<unit>{_COMPOUND})(?![A-Za-z²³]|\d(?!\d*(?:\.\d+)?{_BASE}))",
        _measure,
    ),
    either_width(
        "measure in one sign",
        rf"(?<sign>{SIGN}){START}(?<n>{NUMBER})?(?<unit>[{_COMPATIBLE}](?:/{alternatives(_PER)})?)",
        _compatible,
    ),
    either_width(
        "unit alone",
        rf"(?<![A-Za-z0-9/])(?:(?:{alternatives(_LENGTHS)})[²³]|{alternatives(_ALONE)})(?![A-Za-z0-9'./])",
        lambda match: _unit(match.group()),
    ),
    either_width(
        "a time", r"(?<=\d\p{Han}{1,2})/(?=(?:時間?|[分秒日月年週人個回])(?!\p{Han}))", lambda _: "毎"
    ),
)
