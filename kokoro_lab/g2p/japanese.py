"""Reads Japanese with misaki's Cutlet, fugashi and UniDic. Any thread may call it, and it never raises.

The version of Cutlet is that with which Kokoro's voices were trained. This module adds four things. Numbers
and counters are read as they sound together. Every token has its place in the original text. Marks become the
model's marks. Parts that Cutlet leaves silent or Latin are read by other means and reported.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import regex

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.espeak import EspeakEnglish
from kokoro_lab.g2p.japanese_counters import COUNTED, FIRST_OF_THE_MONTH, NUMERAL, reading
from kokoro_lab.g2p.protocol import OnFallback
from kokoro_lab.g2p.shared_lock import SharedLock
from kokoro_lab.g2p.vocab import known
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.language import lacks_packages
from kokoro_lab.text.normalise.japanese.letters import LETTERS
from kokoro_lab.text.normalise.japanese.numbers import number
from kokoro_lab.text.spans import sounds
from kokoro_lab.text.tables import any_of, entries, names, rows

log = logging.getLogger(__name__)

LANGUAGE = "ja"
MARKS = names(__package__)["Japanese mark"]
"""Punctuation mark → the model's symbol for it. Other punctuation (・ and the like) divides words and has no
sound."""
OPENERS, CLOSERS = frozenset("“("), frozenset('.,?!:;…—”)"')
_TOGETHER = names(__package__)["Japanese words together"]
"""Group of words → its kana, if the group is said otherwise than the analyser reads its words."""
_PHRASE = regex.compile(any_of(_TOGETHER))
_SENSES = {row["written"]: row for row in rows(__package__, "japanese_senses.tsv")}
"""Word with two readings → its row of the table. The second reading is taken if the text has one of the words
in the column `beside`, and none of those in the column `never`."""
VARIANTS = str.maketrans("髙﨑𠮷德濵邊邉齋齊澤櫻國廣嶋槇冨曾靏", "高崎吉徳浜辺辺斎斉沢桜国広島槙富曽鶴")
"""Forms of characters that live on in names and that the dictionary does not have."""

_WORD_TOKENS = 24  # letters of misaki's longest word, and so the most tokens that one word may have
_KANA_OR_WORD = 6  # what Cutlet calls a token whose kana it may read
_KATAKANA = 7
_SYMBOL = 3
_NUMBER_TAG = "数詞"
_COUNTED_TAG = "counted"  # what a token of `_counted` is tagged with
_AS_IS = regex.compile(rf"[{regex.escape(''.join(MARKS))}]")
_HALF_WIDTH_KANA = r"[\uFF66-\uFF9D][\uFF9E\uFF9F]?"
_COMPATIBLE = regex.compile(rf"{_HALF_WIDTH_KANA}|\d+|[ㇰ-ㇿ]|[^\p{{ASCII}}]")
_SMALL_KANA = dict(zip("ㇰㇱㇲㇳㇴㇵㇶㇷㇸㇹㇺㇻㇼㇽㇾㇿ", "クシストヌハヒフヘホムラリルレロ", strict=True))
_NAMES = tuple(LETTERS.values())
_HAN = regex.compile(r"\p{Han}")
_VOWEL = regex.compile(r"[aeiouyàáâäãåèéêëìíîïòóôöõùúûü]", regex.IGNORECASE)
_RUN = regex.compile(
    r"""(?<latin>\p{Latin}[\p{Latin}\p{M}]*) | (?<japanese>[\p{Hiragana}\p{Katakana}\p{Han}ー])
    | [\p{L}--[\p{Latin}\p{Hiragana}\p{Katakana}\p{Han}ー]]\p{M}*
      (?:[\p{L}--[\p{Latin}\p{Hiragana}\p{Katakana}\p{Han}ー]]\p{M}*)* | .""",
    regex.V1 | regex.VERBOSE | regex.DOTALL,
)
_KATAKANA_BEHIND = regex.compile(r"[\p{Katakana}ー]{2}")  # a number, as in 五メートル, and no word by itself
# What follows 十分 when it is ten minutes, not "enough"
_MINUTES_BEHIND = regex.compile(r"間|後|前|ほど|くらい|ぐらい|程|以|おき|ごと|毎|遅|か[かけ]|弱|強|経")
# What follows 一日 when it is the first of the month, not a day
_DATE_BEHIND = regex.compile(r"から|まで|付|現在|以降|以前|午前|午後|早朝|未明|\s?[月火水木金土日]曜")
_MINUTES_BEFORE = regex.compile(r"(?:時|約|あと|後|前|およそ|分と|たった|ほんの|毎|片道|徒歩|で)$")


class KanaToken(NamedTuple):
    """A span of the sentence and its kana; `kana` is None if no reading is known."""

    start: int
    end: int
    kana: str | None
    tag: str = ""
    kind: int = _KANA_OR_WORD


@cache
def _known_words() -> frozenset[str]:
    from misaki.cutlet import JA_WORDS

    words: frozenset[str] = JA_WORDS
    return words


class JapaneseG2P:
    """Words of one Japanese sentence. Thread-safe.

    Raises
    ------
    LanguageError
        The extra `ja` is not installed.
    """

    def __init__(self, language: str = LANGUAGE) -> None:
        self.language = language
        self._lock = SharedLock()  # the analyser holds the state of the sentence that it reads
        try:
            from misaki.cutlet import Cutlet
        except ImportError as error:
            raise lacks_packages("Japanese", LANGUAGE, error) from error
        self._cutlet = Cutlet()
        self._espeak = EspeakEnglish(british=False)

    def __call__(self, sentence: AlignedText, on_fallback: OnFallback) -> list[Word]:
        """Words in order, with offsets into the original text.

        Every letter and sign of `sentence` is spoken, or reported through `on_fallback` with its
        place. Nothing raises.
        """
        prepared = _prepared(sentence)
        try:
            tokens = self._grouped(
                prepared.text, self._counted(prepared, _together(prepared.text, self._tokens(prepared.text)))
            )
        except Exception as error:  # a C library may raise for any string; the letters are then said
            start, end = prepared.span(0, len(prepared))
            log.warning("fugashi raised %s on characters %d:%d", type(error).__name__, start, end)
            on_fallback(Fallback("g2p", "fugashi raised; read character by character", start, end))
            tokens = [KanaToken(i, i + 1, None, kind=0) for i in range(len(prepared))]
        words: list[Word] = []
        for token in tokens:
            for i, j, said, source in self._said(prepared.text, token):
                start, end = prepared.span(i, j)
                if not said and sounds(prepared.text[i:j]):
                    on_fallback(Fallback("g2p", "not spoken: no sound is known for it", start, end))
                elif said and source != "misaki":
                    on_fallback(Fallback("g2p", f"read by {source}", start, end))
                kept, lost = known(said)
                if lost:
                    on_fallback(Fallback("g2p", f"symbols outside the vocabulary: {lost!r}", start, end))
                if not kept:
                    continue
                if words and not _space_between(words[-1].phonemes, kept):
                    words[-1] = replace(words[-1], space_after=False)
                text = prepared.text[i:j]
                words.append(Word(text, start, end, kept, self.language, source, kept not in OPENERS))
        return words

    def _tokens(self, text: str) -> list[KanaToken]:
        """The tokens that fugashi finds in `text`. It skips some characters, which are in no token."""
        with self._lock:
            found = [
                (
                    node.surface,
                    node.feature.pron or node.feature.kana,
                    node.feature.pos2 or "",
                    node.char_type,
                    node.is_unk,
                )
                for node in self._cutlet.tagger(text)
            ]
        tokens: list[KanaToken] = []
        at = 0
        for surface, kana, tag, kind, unknown in found:
            start = text.find(surface, at)
            if start < 0:  # nothing here makes fugashi rewrite a surface
                continue
            at = start + len(surface)
            readable = kind == _KATAKANA or not unknown
            said = _hiragana(kana or surface) if readable else None
            if surface in _NAMES:
                said = _hiragana(surface)  # UniDic has ビイー for ビー
            elif surface == "型" and text[:start].endswith(_NAMES):
                said = "がた"  # as in 血液型
            tokens.append(
                KanaToken(start, at, said, tag, _KANA_OR_WORD if readable and kind != _SYMBOL else kind)
            )
        return tokens

    @staticmethod
    def _counted(sentence: AlignedText, tokens: list[KanaToken]) -> list[KanaToken]:
        """The tokens, in which one token, with the joint reading, stands for each number and its counter."""
        starts = {token.start: n for n, token in enumerate(tokens)}
        ends = {token.end: n for n, token in enumerate(tokens)}
        replaced: list[KanaToken] = []
        done = 0
        for match in COUNTED.finditer(sentence.text):
            for counter in (match["counter"], ""):
                i, j = match.start(), match.end("number") + len(counter)
                first, last = starts.get(i), ends.get(j)
                if first is None or last is None:
                    continue
                of_katakana = not counter and _KATAKANA_BEHIND.match(sentence.text, j)
                if not (of_katakana or _is_number(tokens[first : last + 1], counter)):
                    continue
                parts = _in_context(sentence, i, j, match["number"], counter)
                if parts is None:
                    continue
                replaced += tokens[done:first]
                replaced += parts
                done = last + 1
                break
        return replaced + tokens[done:]

    @staticmethod
    def _grouped(text: str, tokens: list[KanaToken]) -> list[KanaToken]:
        """The tokens. Neighbours that together are a word of misaki's list `JA_WORDS` are joined, as Cutlet
        joins them. Numbers are not joined."""
        grouped: list[KanaToken] = []
        at = 0
        while at < len(tokens):
            stop = at + 1
            while stop < len(tokens) and stop - at < _WORD_TOKENS and _alike(tokens[at], tokens[stop]):
                stop += 1
            while stop > at + 1 and text[tokens[at].start : tokens[stop - 1].end] not in _known_words():
                stop -= 1
            group = tokens[at:stop]
            kana = "".join(token.kana or "" for token in group)
            grouped.append(group[0] if len(group) == 1 else group[0]._replace(end=group[-1].end, kana=kana))
            at = stop
        return grouped

    def _phonemes(self, kana: str) -> str:
        from misaki.cutlet import Word as Morpheme

        said: str = self._cutlet._romaji_word(Morpheme(kana, kana, _KANA_OR_WORD))
        return said

    def _said(self, text: str, token: KanaToken) -> Iterator[tuple[int, int, str, str]]:
        """The parts of a token, as `(i, j, phonemes, source)`: one part, or several if the dictionary does
        not know the token."""
        surface = text[token.start : token.end]
        if token.kind == _KANA_OR_WORD and token.kana and not surface.isascii():
            said = self._phonemes(token.kana).strip()
            if said:
                yield token.start, token.end, said, "misaki"
                return
        for run in _RUN.finditer(surface):
            written = run.group()
            i, j = token.start + run.start(), token.start + run.end()
            if written in MARKS:
                yield i, j, MARKS[written], "misaki"
                continue
            said, source = "", "characters"
            if run["latin"] and (len(written) == 1 or written.isupper() or not _VOWEL.search(written)):
                said = self._spelt(written)
            elif run["japanese"]:
                said = self._by_itself(written)
            if not said and sounds(written):
                said, source = known(self._espeak(written) or "")[0].strip(), "espeak"
            if not said and run["latin"]:
                said, source = self._spelt(written), "characters"
            yield i, j, said.strip(), source

    def _spelt(self, letters: str) -> str:
        """The phonemes of Latin letters, with or without accents, read by their Japanese names."""
        plain = unicodedata.normalize("NFKD", letters).upper()
        names = (LETTERS.get(letter, "") for letter in plain)
        return " ".join(self._phonemes(_hiragana(name)) for name in names if name)

    def _by_itself(self, character: str) -> str:
        """The reading of a character that belongs to no known word: kana as it is, a kanji as it is read
        alone."""
        kana = _hiragana(character)
        if _HAN.match(character):
            with self._lock:
                nodes = [(node.feature.pron, node.is_unk) for node in self._cutlet.tagger(character)]
            kana = "".join(_hiragana(pron) for pron, unknown in nodes if pron and not unknown)
        return self._phonemes(kana).strip()


def _together(text: str, tokens: list[KanaToken]) -> list[KanaToken]:
    """The tokens, with groups of `_TOGETHER` joined, and words of `_SENSES` read by their sense."""
    for match in _PHRASE.finditer(text):
        start, end = match.span()
        first, last = (
            {getattr(t, side): n for n, t in enumerate(tokens)}.get(at)
            for side, at in (("start", start), ("end", end))
        )
        if first is not None and last is not None:
            tokens[first : last + 1] = [KanaToken(start, end, _TOGETHER[match.group()], _COUNTED_TAG)]
    return [_by_sense(text, token) for token in tokens]


def _by_sense(text: str, token: KanaToken) -> KanaToken:
    """The token, with the reading that fits the other words of `text`: 市場 is いちば beside 魚 (fish)."""
    row = _SENSES.get(text[token.start : token.end])
    if row is None or _HAN.match(text[max(0, token.start - 1) : token.start]):  # 株式市場
        return token
    beside, never = (any(each in text for each in entries(row[column])) for column in ("beside", "never"))
    return token._replace(kana=row["kana"]) if beside and not never else token


def _alike(first: KanaToken, other: KanaToken) -> bool:
    """Whether two tokens may form one word: both have kana, and neither is a number."""
    return first.kind == other.kind == _KANA_OR_WORD and _COUNTED_TAG not in (first.tag, other.tag)


def _is_number(tokens: list[KanaToken], counter: str) -> bool:
    """Whether the analyser, too, takes `tokens` for a number. It does not for 一般, 四国 or 八百屋.

    The analyser may give a number with its counter as one token (一日, 三本), and read it as a name: Mimoto
    for 三本. So a single token counts as a number if the counter is 本, 日, 分 or 人.
    """
    if tokens[0].tag == _NUMBER_TAG:
        return True
    return len(tokens) == 1 and counter in ("本", "日", "分", "人") and tokens[0].kind == _KANA_OR_WORD


def _in_context(sentence: AlignedText, i: int, j: int, number: str, counter: str) -> list[KanaToken] | None:
    """Tokens for a number with its counter, whose reading may depend on the text around them. None if the
    analyser's reading stays."""
    before, behind = sentence.text[:i], sentence.text[j:]
    if number == "一" and counter == "日" and (before.endswith("月") or _DATE_BEHIND.match(behind)):
        return [KanaToken(i, j, FIRST_OF_THE_MONTH, _COUNTED_TAG)]
    start, end = sentence.span(i, i + 1)
    in_digits = end - start > 1  # 10分, written in digits, is never "enough"
    if number == "十" and counter == "分" and not (in_digits or _ten_minutes(before, behind)):
        return [KanaToken(i, j, "じゅーぶん", _COUNTED_TAG)]
    if counter == "" and len(number) == 1 and (number in "一二" or not _KATAKANA_BEHIND.match(behind)):
        return None  # the analyser's reading in context stays: 一 is ひと in 一つ星
    is_fraction = counter == "分" and regex.match(rf"の{NUMERAL}", behind)
    parts = reading(number, "分の" if is_fraction else counter)
    if parts is None:
        return None
    if is_fraction:  # the の is a token of its own
        last = parts[-1]
        parts[-1] = last._replace(end=last.end - 1, kana=last.kana.removesuffix("の"))
    return [KanaToken(i + part.start, i + part.end, part.kana, _COUNTED_TAG) for part in parts]


def _ten_minutes(before: str, behind: str) -> bool:
    return bool(_MINUTES_BEFORE.search(before) or _MINUTES_BEHIND.match(behind))


def _prepared(sentence: AlignedText) -> AlignedText:
    """The sentence with half-width kana, ligatures and digits in the dictionary's forms; offsets are kept."""

    def edits() -> Iterator[tuple[int, int, str]]:
        for match in _COMPATIBLE.finditer(sentence.text):
            written = match.group()
            if written[0].isdecimal():
                plain = number(unicodedata.normalize("NFKC", written))
            elif _AS_IS.match(written):
                continue
            else:
                plain = _SMALL_KANA.get(written) or unicodedata.normalize("NFKC", written).translate(VARIANTS)
            if plain != written:
                yield match.start(), match.end(), plain

    return sentence.rewrite(edits())


def _hiragana(kana: str) -> str:
    """Katakana as hiragana where it exists; ー and the rest stay."""
    return "".join(chr(ord(c) - 0x60) if "ァ" <= c <= "ヶ" else c for c in kana)


def _space_between(before: str, after: str) -> bool:
    """Whether a space stands between two words: not before a closing mark, nor after a word that ends in a
    stopped breath."""
    if after[0] in CLOSERS or before[-1] in OPENERS:
        return False
    if after[0] == "ʔ":
        return before[-1] in CLOSERS
    return before[-1] != "ʔ" or after[0] in OPENERS
