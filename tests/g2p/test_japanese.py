"""Japanese is read as its numbers, counters and marks sound, nothing is lost, and nothing raises."""

from __future__ import annotations

import builtins
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.errors import LanguageError
from kokoro_lab.g2p.japanese import JapaneseG2P
from kokoro_lab.g2p.japanese_counters import COUNTERS, reading
from kokoro_lab.g2p.vocab import known
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.normalise.pasted import left_out
from kokoro_lab.text.sanitise import sanitise

pytest.importorskip("fugashi", reason="Japanese needs the extra: pip install 'kokoro-lab[ja]'")
pytest.importorskip("unidic_lite", reason="Japanese needs the extra: pip install 'kokoro-lab[ja]'")


@pytest.fixture(scope="module")
def g2p() -> JapaneseG2P:
    return JapaneseG2P()


def read(g2p: JapaneseG2P, text: str) -> tuple[list[Word], list[Fallback]]:
    fallbacks: list[Fallback] = []
    return g2p(normalise(sanitise(text).strip(), "ja"), fallbacks.append), fallbacks


def phonemes(g2p: JapaneseG2P, text: str) -> str:
    words, _ = read(g2p, text)
    return "".join(word.phonemes + " " * word.space_after for word in words).strip()


def kana(number: str, counter: str) -> str:
    return "".join(part.kana for part in reading(number, counter) or ())


NUMBERS = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "二十", "百", "何"]
SOUNDS = """
本 いっぽん にほん さんぼん よんほん ごほん ろっぽん ななほん はっぽん きゅーほん じゅっぽん にじゅっぽん ひゃっぽん なんぼん
匹 いっぴき にひき さんびき よんひき ごひき ろっぴき ななひき はっぴき きゅーひき じゅっぴき にじゅっぴき ひゃっぴき なんびき
杯 いっぱい にはい さんばい よんはい ごはい ろっぱい ななはい はっぱい きゅーはい じゅっぱい にじゅっぱい ひゃっぱい なんばい
分 いっぷん にふん さんぷん よんぷん ごふん ろっぷん ななふん はっぷん きゅーふん じゅっぷん にじゅっぷん ひゃっぷん なんぷん
泊 いっぱく にはく さんぱく よんぱく ごはく ろっぱく ななはく はっぱく きゅーはく じゅっぱく にじゅっぱく ひゃっぱく なんぱく
回 いっかい にかい さんかい よんかい ごかい ろっかい ななかい はっかい きゅーかい じゅっかい にじゅっかい ひゃっかい なんかい
個 いっこ にこ さんこ よんこ ごこ ろっこ ななこ はっこ きゅーこ じゅっこ にじゅっこ ひゃっこ なんこ
件 いっけん にけん さんけん よんけん ごけん ろっけん ななけん はっけん きゅーけん じゅっけん にじゅっけん ひゃっけん なんけん
階 いっかい にかい さんがい よんかい ごかい ろっかい ななかい はっかい きゅーかい じゅっかい にじゅっかい ひゃっかい なんがい
軒 いっけん にけん さんげん よんけん ごけん ろっけん ななけん はっけん きゅーけん じゅっけん にじゅっけん ひゃっけん なんげん
冊 いっさつ にさつ さんさつ よんさつ ごさつ ろくさつ ななさつ はっさつ きゅーさつ じゅっさつ にじゅっさつ ひゃくさつ なんさつ
歳 いっさい にさい さんさい よんさい ごさい ろくさい ななさい はっさい きゅーさい じゅっさい はたち ひゃくさい なんさい
足 いっそく にそく さんぞく よんそく ごそく ろくそく ななそく はっそく きゅーそく じゅっそく にじゅっそく ひゃくそく なんぞく
週間 いっしゅーかん にしゅーかん さんしゅーかん よんしゅーかん ごしゅーかん ろくしゅーかん ななしゅーかん はっしゅーかん きゅーしゅーかん じゅっしゅーかん にじゅっしゅーかん ひゃくしゅーかん なんしゅーかん
頭 いっとー にとー さんとー よんとー ごとー ろくとー ななとー はっとー きゅーとー じゅっとー にじゅっとー ひゃくとー なんとー
着 いっちゃく にちゃく さんちゃく よんちゃく ごちゃく ろくちゃく ななちゃく はっちゃく きゅーちゃく じゅっちゃく にじゅっちゃく ひゃくちゃく なんちゃく
か月 いっかげつ にかげつ さんかげつ よんかげつ ごかげつ ろっかげつ ななかげつ はっかげつ きゅーかげつ じゅっかげつ にじゅっかげつ ひゃっかげつ なんかげつ
枚 いちまい にまい さんまい よんまい ごまい ろくまい ななまい はちまい きゅーまい じゅーまい にじゅーまい ひゃくまい なんまい
台 いちだい にだい さんだい よんだい ごだい ろくだい ななだい はちだい きゅーだい じゅーだい にじゅーだい ひゃくだい なんだい
番 いちばん にばん さんばん よんばん ごばん ろくばん ななばん はちばん きゅーばん じゅーばん にじゅーばん ひゃくばん なんばん
人 ひとり ふたり さんにん よにん ごにん ろくにん ななにん はちにん きゅーにん じゅーにん にじゅーにん ひゃくにん なんにん
日 いちにち ふつか みっか よっか いつか むいか なのか よーか ここのか とーか はつか ひゃくにち なんにち
時 いちじ にじ さんじ よじ ごじ ろくじ しちじ はちじ くじ じゅーじ にじゅーじ ひゃくじ なんじ
月 いちがつ にがつ さんがつ しがつ ごがつ ろくがつ しちがつ はちがつ くがつ じゅーがつ にじゅーがつ ひゃくがつ なんがつ
年 いちねん にねん さんねん よねん ごねん ろくねん ななねん はちねん きゅーねん じゅーねん にじゅーねん ひゃくねん なんねん
円 いちえん にえん さんえん よえん ごえん ろくえん ななえん はちえん きゅーえん じゅーえん にじゅーえん ひゃくえん なんえん
羽 いちわ にわ さんば よんわ ごわ ろくわ ななわ はちわ きゅーわ じゅーわ にじゅーわ ひゃくわ なんば
パーセント いっぱーせんと にぱーせんと さんぱーせんと よんぱーせんと ごぱーせんと ろくぱーせんと ななぱーせんと はっぱーせんと きゅーぱーせんと じゅっぱーせんと にじゅっぱーせんと ひゃくぱーせんと なんぱーせんと
"""  # noqa: E501 - a table
PAIRS = [
    (number, counter, sound)
    for counter, *sounds in (line.split() for line in SOUNDS.strip().splitlines())
    for number, sound in zip(NUMBERS, sounds, strict=True)
]


@pytest.mark.parametrize(("number", "counter", "sound"), PAIRS)
def test_a_counter_sounds_as_its_number_makes_it(number: str, counter: str, sound: str) -> None:
    assert kana(number, counter) == sound


def test_things_have_the_old_numbers() -> None:
    said = [kana(number, "つ") for number in NUMBERS[:9]]
    assert said == [
        "ひとつ",
        "ふたつ",
        "みっつ",
        "よっつ",
        "いつつ",
        "むっつ",
        "ななつ",
        "やっつ",
        "ここのつ",
    ]


@pytest.mark.parametrize(
    ("number", "counter", "sound"),
    [
        ("三百", "", "さんびゃく"),
        ("六百", "", "ろっぴゃく"),
        ("八百", "", "はっぴゃく"),
        ("三千", "", "さんぜん"),
        ("八千", "", "はっせん"),
        ("一千万", "", "いっせんまん"),
        ("一兆", "", "いっちょー"),
        ("十兆", "", "じゅっちょー"),
        ("三百三十三", "", "さんびゃくさんじゅーさん"),
        ("二千二十四", "年", "にせんにじゅーよねん"),
        ("十四", "日", "じゅーよっか"),
        ("二十四", "日", "にじゅーよっか"),
        ("十七", "日", "じゅーしちにち"),
        ("十九", "時", "じゅーくじ"),
        ("三点一四", "", "さんてんいちよん"),
        ("十点五", "", "じゅってんご"),
        ("一点五", "倍", "いってんごばい"),
        ("零点五", "", "れーてんご"),
        ("零三", "", "ぜろさん"),
        ("二五", "", "にーごー"),
        ("千", "本", "せんぼん"),
        ("数百", "本", "すーひゃっぽん"),
        ("数十", "人", "すーじゅーにん"),
        ("一万", "匹", "いちまんびき"),
        ("三十六", "階", "さんじゅーろっかい"),
    ],
)
def test_longer_numbers_sound_as_they_are_said(number: str, counter: str, sound: str) -> None:
    assert kana(number, counter) == sound


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_reading_covers_what_it_reads(counter: str) -> None:
    for number in (*NUMBERS, "二千二十四", "三点一四", "一億二千万"):
        parts = reading(number, counter)
        assert parts
        assert parts[0].start == 0
        assert parts[-1].end == len(number + counter)
        assert all(before.end == after.start for before, after in pairwise(parts))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("今日は良い天気です。", "kʲoː βa joi teŋkʲi desɨ."),
        ("333", "sambʲakɯ saɲʥɨː saɴ"),
        ("鉛筆1本", "empʲiʦɨ iʔpoɴ"),
        ("三本ください", "samboɴ kɯdasai"),
        ("30分", "saɲʥɨʔpɯɴ"),
        ("3月1日", "saŋɡaʦɨ ʦɨitaʨi"),
        ("1日に3回", "iʨiɲiʨi ɲi saŋkai"),
        ("10分間", "ʥɨʔpɯŋkaɴ"),
        ("10分です", "ʥɨʔpɯɴ desɨ"),
        ("十分な時間", "ʥɨːbɯɴ na ʥikaɴ"),
        ("十分休んだ", "ʥɨːbɯɴ jasɨɴ da"),
        ("1日から5日まで", "ʦɨitaʨi kaɾa iʦɨka made"),
        ("B型", "bʲiː ɡata"),
        ("3/4", "jombɯnno saɴ"),
        ("1人と2人", "çitoɾʲi to ɸɯtaɾʲi"),
        ("20歳", "hataʨi"),
        ("午後7時", "ɡoɡo ɕiʨiʥi"),
        ("4月9日", "ɕiɡaʦɨ kokonoka"),
        ("50%", "ɡoʥɨʔpaːsento"),
        ("NHK", "enɯeiʨikeː"),
    ],
)
def test_a_sentence_is_said_so(g2p: JapaneseG2P, text: str, said: str) -> None:
    assert phonemes(g2p, text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("一緒に", "iʔɕo"),
        ("一般的", "iʔpaɴ"),
        ("四国", "ɕikokɯ"),
        ("八百屋", "jaoja"),
        ("千葉", "ʨiba"),
        ("六本木", "ɾoʔpoŋɡʲi"),
        ("万が一", "maŋɡaiʨi"),
        ("二本松さん", "ɲihommaʦɨ"),
    ],
)
def test_numerals_inside_words_are_left_to_the_dictionary(g2p: JapaneseG2P, text: str, said: str) -> None:
    assert said in phonemes(g2p, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("はい。", "."),
        ("はい、そう", ","),
        ("はい！", "!"),
        ("はい？", "?"),
        ("「はい」", "“hai”"),
        ("『はい』", "“hai”"),
        ("«はい»", "“hai”"),
        ("（はい）", "(hai)"),
        ("【はい】", "(hai)"),
        ("はい…", "…"),
        ("はい：", ":"),
        ("はい—", "—"),
    ],
)
def test_marks_are_the_models(g2p: JapaneseG2P, text: str, said: str) -> None:
    words, fallbacks = read(g2p, text)
    assert said in phonemes(g2p, text)
    assert not known("".join(word.phonemes for word in words))[1]
    assert not fallbacks


@pytest.mark.parametrize(
    "text",
    [
        "東京特許許可局の局長が、昨日「はい」と言った！",
        "すごーい、やっぱり行ってみたいなあ。",
        "学校へ行きます。コーヒーとケーキ",
        "あっ、待って。えっ？",
        "ちゃんと食べなさいよ。",
    ],
)
def test_without_numbers_it_is_what_cutlet_says(g2p: JapaneseG2P, text: str) -> None:
    from misaki.cutlet import Cutlet

    assert phonemes(g2p, text) == Cutlet()(text)[0]


def test_offsets_point_into_the_original(g2p: JapaneseG2P) -> None:
    text = "会議は14:30から、ﾋﾞﾙの3階で髙橋さんと。"
    words, _ = read(g2p, text)
    assert [word.start for word in words] == sorted(word.start for word in words)
    found = {word.text: text[word.start : word.end] for word in words}
    assert found["会議"] == "会議"
    assert found["四時"] == found["三十分"] == "14:30"
    assert found["ビル"] == "ﾋﾞﾙ"
    assert found["三階"] == "3階"
    assert found["高橋"] == "髙橋"


@pytest.mark.parametrize(
    ("text", "span", "source"),
    [
        ("これはwindowです", (3, 9), "espeak"),
        ("これはприветです", (3, 9), "espeak"),
        ("これは한국です", (3, 5), "espeak"),
        ("これは龘です", (3, 4), "espeak"),
        ("これはßです", (3, 4), "characters"),
    ],
)
def test_what_the_dictionary_does_not_know_is_said_and_reported(
    g2p: JapaneseG2P, text: str, span: tuple[int, int], source: str
) -> None:
    words, fallbacks = read(g2p, text)
    assert [(f.start, f.end) for f in fallbacks] == [span]
    assert [(w.start, w.end, w.source) for w in words if w.source != "misaki"] == [(*span, source)]


def test_without_espeak_letters_are_spelt_and_the_rest_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.g2p.espeak.EspeakEnglish.__call__", lambda self, word: None)
    words, fallbacks = read(JapaneseG2P(), "これはdogと龘です")
    assert next(w.phonemes for w in words if w.text == "dog") == "dʲiː oː ʥiː"
    assert [(f.start, f.end) for f in fallbacks if "not spoken" in f.reason] == [(7, 8)]


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cs", "Co", "Cn")), max_size=60))
@settings(deadline=None, max_examples=150)
def test_any_letter_is_spoken_or_reported(text: str) -> None:
    cleaned = sanitise(text).strip()
    fallbacks: list[Fallback] = []
    said = normalise(cleaned, "ja")
    words = SHARED(said, fallbacks.append)
    heard = [(w.start, w.end) for w in words] + [(f.start, f.end) for f in fallbacks]
    plain = AlignedText.of(cleaned.text)
    heard += [cleaned.span(*span) for span in left_out(plain.text, normalise(plain, "ja"))]
    assert not known("".join(w.phonemes for w in words))[1]
    assert [w.start for w in words] == sorted(w.start for w in words)
    for character, start in zip(cleaned.text, cleaned.starts, strict=True):
        if character.isalpha() or character.isdigit():
            assert any(i is not None and j is not None and i <= start < j for i, j in heard), character


SHARED = JapaneseG2P()


def test_when_the_analyser_raises_every_letter_is_still_said(
    g2p: JapaneseG2P, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(text: str) -> list[Any]:
        if len(text) > 1:
            raise RuntimeError("a C library's bad day")
        return []

    monkeypatch.setattr(g2p._cutlet, "tagger", broken)
    words, fallbacks = read(g2p, "これは、そう。")
    assert "".join(word.text for word in words) == "これは、そう。"
    assert fallbacks[0].reason.startswith("fugashi raised")


def test_many_threads_read_what_one_reads(g2p: JapaneseG2P) -> None:
    lines = [f"第{n}回は{n}人で{n}本、{n}月に{n}回だ。" for n in range(1, 41)]
    alone = [phonemes(g2p, line) for line in lines]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda line: phonemes(g2p, line), lines)) == alone


def test_without_the_extra_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith(("fugashi", "misaki.cutlet")):
            raise ImportError("No module named 'fugashi'", name="fugashi")
        return real(name, *rest, **named)

    monkeypatch.delitem(sys.modules, "misaki.cutlet", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(LanguageError, match=r"kokoro-lab\[ja\]") as caught:
        JapaneseG2P()
    assert caught.value.field == "language"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("世界中", "sekaiʥɨː"),
        ("今何時", "ima naɲʥi"),
        ("あの方", "anokata"),
        ("金と銀", "kʲintoɡʲiɴ"),
        ("300本、800本", "sambʲaʔpoɴ, haʔpʲaʔpoɴ"),
        ("一ヵ国、1セント", "iʔkakokɯ, iʔsento"),
        ("風速5m/s", "ɸɯːsokɯ ɡo meːtoɾɯmaibʲoː"),
        ("一・二度", "iʔteɴ ɲido"),
        # and what only looks so
        ("中に", "naka ɲi"),
        ("方", "hoː"),
        ("一・二年生", "iʨi ɲineɴseː"),
        ("一つ", "çitoʦɨ"),
    ],
)
def test_words_beside_one_another_are_said_so(g2p: JapaneseG2P, text: str, said: str) -> None:
    assert phonemes(g2p, text) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("市場で魚を買う。", "iʨiba"),
        ("市場が拡大する。", "ɕiʥoː"),
        ("魚の市場規模。", "ɕiʥoː"),
        ("株式市場。", "ɕiʥoː"),
        ("このカレーは辛い。", "kaɾai"),
        ("別れが辛い。", "ʦɨɾai"),
        ("空の箱。", "kaɾa"),
        ("空が青い。", "soɾa"),
        ("米を食べる。", "kome"),
        ("米国。", "beːkokɯ"),
    ],
)
def test_a_word_is_read_by_what_it_stands_beside(g2p: JapaneseG2P, text: str, said: str) -> None:
    words, _ = read(g2p, text)
    assert said in "".join(word.phonemes for word in words)
