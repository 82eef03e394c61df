"""How a Japanese number sounds with what it counts: 一本 いっぽん, 三本 さんぼん, 四時 よじ, 二十日 はつか.

A number in kanji numerals is cut into its places (二千・三百・四), each place has its reading, and the
last one meets the counter. Which of them change there depends on the counter's first sound, so a counter
has a class; what follows no class stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import regex

DIGITS = "零一二三四五六七八九"
_DIGIT_KANA = {
    "零": "れい", "〇": "ぜろ", "一": "いち", "二": "に", "三": "さん", "四": "よん", "五": "ご",
    "六": "ろく", "七": "なな", "八": "はち", "九": "きゅう",
}  # fmt: skip
_STRING_KANA = _DIGIT_KANA | {"零": "ぜろ", "二": "にい", "五": "ごう"}
"""Read out one by one, digits of one beat are drawn out to two, as in telephone numbers."""
_PLACE_KANA = {
    "十": "じゅう",
    "百": "ひゃく",
    "千": "せん",
    "万": "まん",
    "億": "おく",
    "兆": "ちょう",
    "京": "けい",
}
_SHORT = {"いち": "いっ", "ろく": "ろっ", "はち": "はっ", "じゅう": "じゅっ", "ひゃく": "ひゃっ"}
_P = dict(zip("はひふへほ", "ぱぴぷぺぽ", strict=True))
_B = dict(zip("はひふへほ", "ばびぶべぼ", strict=True))
_VOICED = _B | dict(zip("かきくけこさしすせそわ", "がぎぐげござじずぜぞば", strict=True))


@dataclass(frozen=True, slots=True)
class SoundChange:
    """What numbers and a counter do to each other, by the numeral that stands last.

    `shortened` numerals end in っ, `voiced` ones voice the counter's first sound; `half_voiced` turns
    は to ぱ behind those, as a shortened numeral always does.
    """

    shortened: str = ""
    voiced: str = ""
    half_voiced: str = ""


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter: its kana, its class, and what it alone does.

    Parameters
    ----------
    kana : str
    change : SoundChange
    digits : mapping of str to str
        Readings of a last numeral that this counter wants: 四 is よ in front of 時.
    wholes : mapping of str to str
        Kana of whole numbers with the counter in it: 二十 and 日 are はつか.
    """

    kana: str
    change: SoundChange
    digits: Mapping[str, str] = field(default_factory=dict)
    wholes: Mapping[str, str] = field(default_factory=dict)


PLAIN = SoundChange()
K = SoundChange(shortened="一六八十百")
K_VOICED = SoundChange(shortened="一六八十百", voiced="三何")
S = SoundChange(shortened="一八十")
S_VOICED = SoundChange(shortened="一八十", voiced="三何")
T = S
H = SoundChange(shortened="一六八十百", voiced="三何千万")
F = SoundChange(shortened="一六八十百", half_voiced="三四何千万")
LOAN_K = SoundChange(shortened="六十百")
LOAN_P = SoundChange(shortened="十")

YO = {"四": "よ"}
HOURS = {"四": "よ", "七": "しち", "九": "く"}
_DAYS = {
    "二": "ふつか", "三": "みっか", "四": "よっか", "五": "いつか", "六": "むいか", "七": "なのか",
    "八": "ようか", "九": "ここのか", "十": "とおか", "十四": "じゅうよっか", "二十": "はつか",
    "二十四": "にじゅうよっか",
}  # fmt: skip
_THINGS = dict(
    zip(
        "一二三四五六七八九",
        ["ひとつ", "ふたつ", "みっつ", "よっつ", "いつつ", "むっつ", "ななつ", "やっつ", "ここのつ"],
        strict=True,
    )
)


def _native(kana: str) -> dict[str, str]:
    return {"一": "ひと" + kana, "二": "ふた" + kana}


def _each(kana_of: str, change: SoundChange, digits: Mapping[str, str] | None = None) -> dict[str, Counter]:
    pairs = (pair.split("=") for pair in kana_of.split())
    return {written: Counter(kana, change, digits or {}) for written, kana in pairs}


COUNTERS: dict[str, Counter] = {
    **_each("本=ほん 匹=ひき 杯=はい 票=ひょう 遍=へん 百=ひゃく", H),
    **_each("分=ふん 分間=ふんかん 泊=はく 発=はつ 歩=ほ 版=はん 拍=はく 班=はん 品=ひん 編=へん", F),
    **_each(
        """
        回=かい 回目=かいめ 個=こ 箇所=かしょ か所=かしょ ヶ所=かしょ カ所=かしょ か月=かげつ ヶ月=かげつ
        ケ月=かげつ ヵ月=かげつ カ月=かげつ 箇月=かげつ か月間=かげつかん ヶ月間=かげつかん か国=かこく
        ヶ国=かこく カ国=かこく か国語=かこくご ヶ国語=かこくご 件=けん 曲=きょく 巻=かん 課=か 期=き 機=き
        級=きゅう 球=きゅう 区=く 画=かく 校=こう 缶=かん 基=き 脚=きゃく 句=く 径=けい 系統=けいとう
        """,
        K,
    ),
    **_each("階=かい 軒=けん", K_VOICED),
    **_each(
        """
        冊=さつ 才=さい 週=しゅう 週間=しゅうかん 週目=しゅうめ 種=しゅ 種類=しゅるい 周=しゅう
        周年=しゅうねん 社=しゃ 章=しょう 色=しょく 席=せき 隻=せき 世帯=せたい 世紀=せいき 節=せつ 戦=せん
        勝=しょう 世=せい 石=せき 審=しん 数=すう セット=せっと センチ=せんち センチメートル=せんちめーとる
        シーズン=しーずん
        """,
        S,
    ),
    **_each("足=そく", S_VOICED),
    **_each(
        """
        頭=とう 点=てん 通=つう 着=ちゃく 丁目=ちょうめ 丁=ちょう 等=とう 店=てん 滴=てき 体=たい 対=たい
        艇=てい 通り=とおり トン=とん 回転=かいてん 調=ちょう 兆=ちょう
        """,
        T,
    ),
    **_each("パーセント=ぱーせんと ポイント=ぽいんと パック=ぱっく パスカル=ぱすかる", T),
    **_each("ページ=ぺーじ ピクセル=ぴくせる ポンド=ぽんど", LOAN_P),
    **_each(
        """
        キロ=きろ キロメートル=きろめーとる キログラム=きろぐらむ キロワット=きろわっと カロリー=かろりー
        キロカロリー=きろかろりー
        """,
        LOAN_K,
    ),
    **_each(
        """
        枚=まい 台=だい 番=ばん 番目=ばんめ 度=ど 度目=どめ 倍=ばい 名=めい 名様=めいさま 問=もん 号=ごう
        号室=ごうしつ 部=ぶ 代=だい 秒=びょう 秒間=びょうかん 両=りょう 行=ぎょう 膳=ぜん 錠=じょう 位=い
        話=わ 割=わり 条=じょう 次=じ 限=げん 字=じ 文字=もじ 番地=ばんち 題=だい 段=だん 段階=だんかい
        打=だ 打席=だせき 議席=ぎせき 万人=まんにん 敗=はい 分の=ぶんの 乗=じょう 元=げん 巡=じゅん 列=れつ
        連勝=れんしょう 年代=ねんだい
        """,
        PLAIN,
    ),
    **_each(
        """
        年=ねん 年間=ねんかん 年生=ねんせい 年度=ねんど 年前=ねんまえ 年後=ねんご 円=えん 円玉=えんだま
        畳=じょう
        """,
        PLAIN,
        YO,
    ),
    **_each("時=じ 時間=じかん 時間目=じかんめ 時半=じはん", PLAIN, HOURS),
    **_each("月=がつ", PLAIN, {"四": "し", "七": "しち", "九": "く"}),
    "人": Counter("にん", PLAIN, YO, {"一": "ひとり", "二": "ふたり"}),
    "人目": Counter("にんめ", PLAIN, YO, {"一": "ひとりめ", "二": "ふたりめ"}),
    "人前": Counter("にんまえ", PLAIN, YO),
    "人組": Counter("にんぐみ", PLAIN, YO, {"一": "ひとりぐみ", "二": "ふたりぐみ"}),
    "日": Counter("にち", PLAIN, {"七": "しち", "九": "く"}, _DAYS),
    "日間": Counter(
        "にちかん", PLAIN, {"七": "しち", "九": "く"}, {n: day + "かん" for n, day in _DAYS.items()}
    ),
    "日目": Counter("にちめ", PLAIN, {"七": "しち", "九": "く"}, {n: day + "め" for n, day in _DAYS.items()}),
    "つ": Counter("つ", PLAIN, {}, _THINGS),
    "つ目": Counter("つめ", PLAIN, {}, {n: things + "め" for n, things in _THINGS.items()}),
    "歳": Counter("さい", S, {}, {"二十": "はたち"}),
    "羽": Counter("わ", SoundChange(voiced="三何千万")),
    "組": Counter("くみ", PLAIN, {}, _native("くみ")),
    "箱": Counter("はこ", F, {}, _native("はこ")),
    "袋": Counter("ふくろ", SoundChange(voiced="三何", shortened="十"), {}, _native("ふくろ")),
    "皿": Counter("さら", SoundChange(shortened="十"), {}, _native("さら")),
    "桁": Counter("けた", SoundChange(shortened="六十百"), {}, _native("けた")),
    "株": Counter("かぶ", SoundChange(shortened="六十百"), {}, _native("かぶ")),
    "切れ": Counter("きれ", SoundChange(shortened="十"), {}, _native("きれ")),
    "晩": Counter("ばん", PLAIN, {}, _native("ばん")),
    "通り": Counter("とおり", SoundChange(shortened="十"), {}, _native("とおり")),
}
FIRST_OF_THE_MONTH = "ついたち"

NUMERAL = "[零〇一二三四五六七八九十百千万億兆京]"
_PLACE = regex.compile(rf"(?:[{DIGITS}]?[十百千]|[{DIGITS}〇])?[万億兆京]?")
COUNTED = regex.compile(
    rf"(?<number>何|数[十百千万億兆]+|{NUMERAL}+(?:点[{DIGITS}〇]+(?![十百])[万億兆京]?)?)"
    rf"(?<counter>{'|'.join(sorted(map(regex.escape, COUNTERS), key=len, reverse=True))}|)"
)
"""A number and what it counts, if that is known here."""


class BreathGroup(NamedTuple):
    """A piece of a number as one breathes it: the range of the text and its kana as pronounced."""

    start: int
    end: int
    kana: str


def reading(number: str, counter: str = "") -> list[BreathGroup] | None:
    """Kana of a number with its counter, place by place; the counter goes with the last place.

    Parameters
    ----------
    number : str
        何, or kanji numerals, with 点 and decimals or without; 数 may stand for the first of them.
    counter : str
        One of `COUNTERS`, or nothing.

    Returns
    -------
    list of Part, or None
        None if `number` is not made as numbers are.
    """
    known = COUNTERS.get(counter)
    whole = known.wholes.get(number) if known else None
    if whole is not None:
        return [BreathGroup(0, len(number) + len(counter), pronounced(whole))]
    parts = _parts(number)
    if parts is None:
        return None
    if known:
        last = parts[-1]
        kana = _met(last.kana, number[-1], known)
        parts[-1] = BreathGroup(last.start, last.end + len(counter), kana)
    return [BreathGroup(i, j, pronounced(kana)) for i, j, kana in parts]


def kana(number: str, counter: str = "") -> str:
    """All of `reading` in one string; empty if there is none."""
    return "".join(part.kana for part in reading(number, counter) or ())


_LONG = regex.compile(
    "(?<=[おこごそぞとどのほぼぽもよょろうくぐすずつゅゆぬふぶぷむる])う"
    "|(?<=[えけげせぜてでねへべぺめれ])い|(?<=に)い|(?<=と)お"
)


def pronounced(written: str) -> str:
    """Kana with their long vowels marked: じゅう is じゅー. For numbers and counters alone."""
    said: str = _LONG.sub("ー", written)
    return said


def _parts(number: str) -> list[BreathGroup] | None:
    if number == "何":
        return [BreathGroup(0, 1, "なん")]
    if number[0] == "数":
        some = _places(number[1:]) or []
        return [BreathGroup(0, 1, "すう"), *(BreathGroup(i + 1, j + 1, kana) for i, j, kana in some)]
    whole, point, decimals = number.partition("点")
    if not regex.search("[十百千万億兆京]", whole) and (len(whole) > 1):
        parts = _string(whole, 0)
    else:
        found = _places(whole)
        if found is None:
            return None
        parts = found
    if point:
        last = parts[-1]
        parts[-1] = BreathGroup(last.start, last.end + 1, _met(last.kana, whole[-1], COUNTERS["点"]))
        bare = decimals.rstrip("万億兆京")
        at = len(whole) + 1
        parts += _string(bare, at) if len(bare) > 1 else [BreathGroup(at, at + 1, _DIGIT_KANA[bare])]
        if bare != decimals:
            i, _, said = parts[-1]
            parts[-1] = BreathGroup(i, len(number), _with_myriad(said, bare[-1], decimals[-1]))
    return parts


def _string(numerals: str, at: int) -> list[BreathGroup]:
    return [BreathGroup(at + n, at + n + 1, _STRING_KANA[c]) for n, c in enumerate(numerals)]


def _places(number: str) -> list[BreathGroup] | None:
    parts: list[BreathGroup] = []
    at = 0
    while at < len(number):
        place = _PLACE.match(number, at)
        if not place or place.end() == at:
            return None
        parts.append(BreathGroup(at, place.end(), _place(place.group())))
        at = place.end()
    return parts


def _place(written: str) -> str:
    """The reading of one place: 三百 さんびゃく, 一兆 いっちょう."""
    myriad = written[-1] if written[-1] in "万億兆京" else ""
    bare = written.removesuffix(myriad)
    if not bare:
        return _PLACE_KANA[myriad]
    if bare[-1] in _PLACE_KANA:
        said = _PLACE_KANA[bare[-1]]
        if len(bare) > 1:
            said = _multiplied(bare[0], bare[-1])
    else:
        said = _DIGIT_KANA[bare]
    return _with_myriad(said, bare[-1], myriad)


_HUNDRED, _THOUSAND = (
    Counter("ひゃく", SoundChange(shortened="六八", voiced="三")),
    Counter("せん", SoundChange(shortened="一八", voiced="三")),
)


def _multiplied(digit: str, place: str) -> str:
    if place == "十":
        return _DIGIT_KANA[digit] + "じゅう"
    return _met(_DIGIT_KANA[digit], digit, _HUNDRED if place == "百" else _THOUSAND)


def _with_myriad(said: str, last: str, myriad: str) -> str:
    if not myriad:
        return said
    change = {"兆": T, "京": K}.get(myriad, PLAIN)
    return _met(said, last, Counter(_PLACE_KANA[myriad], change))


def _met(said: str, last: str, counter: Counter) -> str:
    """`said`, which ends with the numeral `last`, and the counter, each changed by the other."""
    change, first, rest = counter.change, counter.kana[0], counter.kana[1:]
    if last in counter.digits:
        said = said.removesuffix(_DIGIT_KANA[last]) + counter.digits[last]
    if last in change.shortened:
        for full, short in _SHORT.items():
            if said.endswith(full):
                return said.removesuffix(full) + short + _P.get(first, first) + rest
    if last in change.voiced:
        return said + _VOICED.get(first, first) + rest
    if last in change.half_voiced:
        return said + _P.get(first, first) + rest
    return said + counter.kana
