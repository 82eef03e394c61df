"""Latin letters among Japanese: acronyms and single letters by the names that Japanese gives them.

Words stay as they are written; they are spoken by the G2P of their own language.
"""

from __future__ import annotations

from typing import Any

import regex

from kokoro_lab.text.normalise.japanese.written import (
    LATIN,
    NO_LATIN_AFTER,
    NO_LATIN_BEFORE,
    alternatives,
    either_width,
    table,
)
from kokoro_lab.text.normalise.rules import Rule, rule

NAMES = table(
    """
    A=エー B=ビー C=シー D=ディー E=イー F=エフ G=ジー H=エイチ I=アイ J=ジェー K=ケー L=エル M=エム N=エヌ
    O=オー P=ピー Q=キュー R=アール S=エス T=ティー U=ユー V=ブイ W=ダブリュー X=エックス Y=ワイ Z=ゼット
    """
)
GREEK = table(
    """
    α=アルファ β=ベータ γ=ガンマ δ=デルタ ε=イプシロン ζ=ゼータ η=イータ θ=シータ ι=イオタ κ=カッパ λ=ラムダ
    μ=ミュー ν=ニュー ξ=クサイ ο=オミクロン π=パイ ρ=ロー σ=シグマ ς=シグマ τ=タウ υ=ウプシロン φ=ファイ
    χ=カイ ψ=プサイ ω=オメガ
    """
)

SAID_AS_WORDS = table(
    """
    NASA=ナサ JAXA=ジャクサ NATO=ナトー ASEAN=アセアン OPEC=オペック APEC=エイペック UNESCO=ユネスコ
    UNICEF=ユニセフ JICA=ジャイカ JETRO=ジェトロ FIFA=フィファ JASRAC=ジャスラック TOEIC=トーイック
    TOEFL=トーフル AIDS=エイズ SARS=サーズ LAN=ラン RAM=ラム ROM=ロム SIM=シム GIF=ジフ JPEG=ジェイペグ
    JSON=ジェイソン NISA=ニーサ NEET=ニート PASMO=パスモ LOHAS=ロハス BASIC=ベーシック UFO=ユーフォー
    JAF=ジャフ JAS=ジャス JIS=ジス VAT=バット ON=オン OFF=オフ UP=アップ OUT=アウト IN=イン NEW=ニュー
    TOP=トップ MAX=マックス SET=セット GET=ゲット WEB=ウェブ MAP=マップ BOX=ボックス NO=ノー YES=イエス
    BIG=ビッグ DOS=ドス SAAS=サース IMAX=アイマックス MIDI=ミディ SOHO=ソーホー CAD=キャド SPAM=スパム
    """
)
WITH_DIGITS = table(
    """
    5G=ファイブジー 4G=フォージー 3G=スリージー 3D=スリーディー 2D=ツーディー 4K=四ケー 8K=八ケー
    CO2=シーオーツー H2O=エイチツーオー O2=オーツー A3=エースリー A4=エーフォー B4=ビーフォー
    B5=ビーファイブ G7=ジーセブン G8=ジーエイト F1=エフワン MP3=エムピースリー MP4=エムピーフォー
    PS4=ピーエスフォー PS5=ピーエスファイブ B2B=ビーツービー B2C=ビーツーシー
    COVID-19=コビッドナインティーン C++=シープラスプラス C#=シーシャープ Wi-Fi=ワイファイ WiFi=ワイファイ
    wifi=ワイファイ J1=ジェーワン PM2.5=ピーエム二点五 Y2K=ワイツーケー Web3=ウェブスリー
    U-NEXT=ユーネクスト R18=アール十八 O-157=オー一五七
    """
)
ABBREVIATED = table(
    """
    Mr=ミスター Mrs=ミセス Ms=ミズ Dr=ドクター Prof=プロフェッサー Vol=ボリューム Lv=レベル Fig=図
    Ch=チャンネル Inc=インク etc=エトセトラ
    """
)
"""Said so with a point behind them."""
LONGEST_SPELT = 6
"""Longer runs of capitals are words that somebody shouts."""

_VOWEL = "AEIOUY"


def spelt(letters: str) -> str:
    """Letters by their names: NHK is エヌエイチケー."""
    return "".join(NAMES.get(letter, letter) for letter in letters.upper())


def acronym(letters: str) -> str | None:
    """How capitals are said, or None if they look like a word that is only written so (SONY)."""
    if letters in SAID_AS_WORDS:
        return SAID_AS_WORDS[letters]
    vowels = [letter in _VOWEL for letter in letters]
    pronounceable = any(vowels[1:]) and not all(vowels) and not regex.search(f"[^{_VOWEL}]{{3}}", letters)
    if len(letters) > LONGEST_SPELT or (len(letters) >= 4 and pronounceable):
        return None
    return spelt(letters)


_IN_A_PHRASE = r"(?<![a-z]['.]?\s)"
_PHRASE_AHEAD = r"(?!\s[A-Za-z]*[a-z])"
WHOLE_NAMES: tuple[Rule, ...] = (
    either_width(
        "name with a digit",
        rf"(?<![A-Za-z0-9]){alternatives(WITH_DIGITS)}(?![A-Za-z0-9])",
        lambda match: WITH_DIGITS[match.group()],
    ),
    either_width(
        "abbreviation",
        rf"{NO_LATIN_BEFORE}(?<word>{alternatives(ABBREVIATED)})\.\s?(?!\s*{LATIN})",
        lambda match: ABBREVIATED[match["word"].capitalize() if match["word"].lower() != "etc" else "etc"],
        ignore_case=True,
    ),
    either_width(
        "against",
        rf"""{NO_LATIN_BEFORE}{_IN_A_PHRASE}(?:(?<one>[A-Z])\s)?[Vv][Ss]\.?(?:\s(?<other>[A-Z]){NO_LATIN_AFTER})?
            {NO_LATIN_AFTER}{_PHRASE_AHEAD}""",
        lambda match: f"{spelt(match['one'] or '')}対{spelt(match['other'] or '')}",
    ),
    either_width("pH", rf"{NO_LATIN_BEFORE}pH{NO_LATIN_AFTER}", lambda _: "ピーエイチ"),
    either_width("e-mail", rf"{NO_LATIN_BEFORE}[Ee]-?mail{NO_LATIN_AFTER}", lambda _: "イーメール"),
    either_width("OK", rf"{NO_LATIN_BEFORE}(?:OK|O\.K\.){NO_LATIN_AFTER}", lambda _: "オーケー"),
)
"""What no number rule may take apart."""

RULES: tuple[Rule, ...] = (
    either_width(
        "acronym",
        rf"{NO_LATIN_BEFORE}{_IN_A_PHRASE}(?<letters>[A-Z]{{2,}}){NO_LATIN_AFTER}(?!'[a-z]){_PHRASE_AHEAD}",
        lambda match: acronym(match["letters"]),
    ),
    either_width(
        "acronym with points",
        rf"{NO_LATIN_BEFORE}(?:[A-Z]\.){{2,}}[A-Z]?{NO_LATIN_AFTER}",
        lambda match: spelt(match.group().replace(".", "")),
    ),
    either_width(
        "single letter",
        rf"(?<!{LATIN}['.]?\s?|[@_]){LATIN}(?!['.]?\s?{LATIN}|[@_'])",
        lambda match: spelt(match.group()),
    ),
    either_width("Greek letter", r"(?<!\p{Greek})\p{Greek}(?!\p{Greek})", lambda match: _greek(match)),
    rule("wide Latin word", r"[Ａ-Ｚａ-ｚ]+", lambda match: _narrowed(match)),
)


def _greek(match: Any) -> str | None:
    return GREEK.get(match.group().lower())


def _narrowed(match: Any) -> str:
    return "".join(chr(ord(letter) - 0xFEE0) for letter in match.group())
