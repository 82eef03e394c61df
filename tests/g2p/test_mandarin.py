"""Mandarin is what misaki says of it, with a place for every word; nothing is lost, and nothing raises."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.datatypes import Fallback, Word, WordTiming
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.vocab import encode, known
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.speech.captions import captions
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.normalise import normalise
from kokoro_lab.text.sanitise import sanitise
from kokoro_lab.text.segment import LEAST_TOKENS
from kokoro_lab.text.spans import sounds

if find_spec("jieba") is None:
    pytest.skip("Mandarin needs the extra: pip install 'kokoro-lab[zh]'", allow_module_level=True)

from kokoro_lab.g2p.mandarin import MandarinG2P

TEXTS = Path(__file__).parents[2] / "fixtures" / "texts" / "mandarin.txt"
SENTENCES = TEXTS.read_text("utf-8").splitlines()
SHARED = MandarinG2P()


def read(text: str) -> tuple[list[Word], list[Fallback]]:
    fallbacks: list[Fallback] = []
    return SHARED(normalise(sanitise(text).strip(), "zh"), fallbacks.append), fallbacks


def phonemes(words: list[Word]) -> str:
    said = "".join(word.phonemes + " " * word.space_after for word in words)
    return " ".join(said.split())


def test_without_numbers_it_is_what_misaki_says(monkeypatch: pytest.MonkeyPatch) -> None:
    from misaki.zh import ZHG2P

    monkeypatch.setattr(ZHG2P, "py2ipa", staticmethod(cache(ZHG2P.py2ipa)))  # as slow as all the rest
    misaki = ZHG2P()
    assert len(SENTENCES) == 500
    assert not any(c.isdecimal() for c in "".join(SENTENCES))
    for text in SENTENCES:
        words, fallbacks = read(text)
        assert phonemes(words) == " ".join(known(misaki(text)[0])[0].split()), text
        assert not fallbacks
        assert [text[word.start : word.end] for word in words] == [word.text for word in words]
        assert {word.source for word in words} == {"misaki"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("你好，世界。", "ni↓xau↓, ʂɨ↘ʨje↘."),
        ("银行行长", "i↗nxa↗ŋxa↗ŋꭧa↓ŋ"),
        ("他说：「走！」", "tʰa→ ʂwo→: “ʦou↓! ”"),
        ("NBA和T恤", "ˈɛn bˈi ˈA xɤ↗ tˈi ɕy↘"),
        ("…——·好", "…——xau↓"),
        ("NASA和CEO", "nˈæsə xɤ↗ sˈi ˈi ˈO"),
    ],
)
def test_words_letters_and_marks_are_said_so(text: str, said: str) -> None:
    words, fallbacks = read(text)
    assert phonemes(words) == said
    assert {fallback.reason for fallback in fallbacks} <= {"read by espeak"}


@pytest.mark.parametrize("line", load_rows("normalisation_zh")[::3], ids=lambda line: line["written"])
def test_every_word_has_its_place_in_the_original(line: dict[str, str]) -> None:
    text = line["written"]
    words, fallbacks = read(text)
    assert all(0 <= word.start < word.end <= len(text) for word in words)
    starts = [word.start for word in words]
    assert starts == sorted(starts)
    told = {i for item in (*words, *fallbacks) for i in range(item.start or 0, item.end or 0)}
    assert not [text[i] for i in range(len(text)) if sounds(text[i]) and i not in told]


def test_latin_words_are_espeaks_and_said_to_be() -> None:
    words, fallbacks = read("买了iPhone15。")
    assert [(word.text, word.source) for word in words][:3] == [
        ("买", "misaki"),
        ("了", "misaki"),
        ("iPhone", "espeak"),
    ]
    assert [(f.reason, f.start, f.end) for f in fallbacks] == [("read by espeak", 2, 8)]


@pytest.mark.parametrize("text", ["ㄅ", "𪜀", "々", "か"])
def test_what_nobody_can_read_is_said_to_be_left_out(text: str) -> None:
    words, fallbacks = read(f"好{text}好")
    assert [word.text for word in words] == ["好", "好"]
    assert [(f.reason, f.start) for f in fallbacks] == [("not spoken: no sound is known for it", 1)]


def test_english_words_keep_the_marks_that_stand_at_them() -> None:
    front_end = FrontEnd()
    found = front_end.segments_of(front_end.cleaned("他说hello，Google很nice！"), "zh", lambda _: None)
    assert " ".join(segment.phonemes for segment in found) == "tʰa→ ʂwo→ həlˈO, ɡˈuɡᵊl xə↓n nˈIs!"


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("他一边喝茶，一边看报纸。", [44]),
        ("春天来了，花都开了；鸟儿也开始唱歌了。", [74]),
        ("春天来了，公园里的花都开了；树上的小鸟也开始唱歌了，到处都是笑声。", [56, 76]),
        ("我们在山脚下的小旅馆住了两个晚上，第三天早上才坐火车回到了家里。", [69, 63]),
    ],
)
def test_a_first_sentence_is_not_cut_to_a_few_syllables(text: str, counts: list[int]) -> None:
    segments = FrontEnd().segments(text, "zh", lambda _: None)
    assert [len(segment.token_ids) for segment in segments] == counts
    assert len(counts) == 1 or min(counts) >= LEAST_TOKENS["zh"]


def test_what_jieba_logs_goes_to_our_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    import jieba

    assert jieba.default_logger.handlers == []
    with caplog.at_level(logging.DEBUG):
        jieba.default_logger.debug("a line of its own")
    assert caplog.messages == ["a line of its own"]


def test_many_threads_read_what_one_reads() -> None:
    alone = [read(text)[0] for text in SENTENCES[:40]]
    with ThreadPoolExecutor(8) as pool:
        assert [words for words, _ in pool.map(read, SENTENCES[:40])] == alone


def test_captions_need_no_spaces_to_be_cut() -> None:
    text = "".join(SENTENCES[:12])
    words = [word for word in read(text)[0] if not word.is_mark]
    timings = [
        WordTiming(w.text, w.start, w.end, k * 0.3, k * 0.3 + 0.3, w.phonemes, 0) for k, w in enumerate(words)
    ]
    shown = captions(text, timings)
    assert "".join("".join(caption.lines) for caption in shown) == text
    assert max(len(line) for caption in shown for line in caption.lines) <= 21


def test_what_opens_a_quotation_is_shown_with_what_is_in_it() -> None:
    text = "那真是我在那家茶馆里喝过的最好的龙井茶，妈妈也这么说！“你还想再来吗？”妈妈笑着问我（她在喝茶）。"
    words = [word for word in read(text)[0] if not word.is_mark]
    timings = [
        WordTiming(w.text, w.start, w.end, k * 0.3, k * 0.3 + 0.3, w.phonemes, 0) for k, w in enumerate(words)
    ]
    lines = [line for caption in captions(text, timings) for line in caption.lines]
    assert "".join(lines) == text
    assert not [line for line in lines if line.endswith(("“", "（"))]
    assert any(line.startswith("“") for line in lines)


@given(st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_nothing_raises_and_every_symbol_is_known(text: str) -> None:
    for word in SHARED(AlignedText.of(text), lambda _: None):
        encode(word.phonemes)
