"""Words with given phonemes stand among the words of any G2P."""

from __future__ import annotations

from kokoro_lab.datatypes import Fallback, LexiconEntry
from kokoro_lab.g2p.espeak import EspeakG2P
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.protocol import FixedReading, SplicedG2P
from kokoro_lab.text.aligned import AlignedText


def test_a_given_reading_is_one_word_in_its_place() -> None:
    fallbacks: list[Fallback] = []
    text = "Uso Zorp, Zorp y más."
    spliced = SplicedG2P(EspeakG2P("es"), "es")
    words = spliced(
        AlignedText.of(text), fallbacks.append, [FixedReading(4, 8, "zˈu"), FixedReading(10, 14, "zˈa")]
    )
    assert [(w.text, w.source) for w in words] == [
        ("Uso", "espeak"),
        ("Zorp", "lexicon"),
        (",", "espeak"),
        ("Zorp", "lexicon"),
        ("y", "espeak"),
        ("más", "espeak"),
        (".", "espeak"),
    ]
    assert [w.phonemes for w in words if w.source == "lexicon"] == ["zˈu", "zˈa"]
    assert [w.space_after for w in words[:-1]] == [True, False, True, True, True, False]
    assert [text[w.start : w.end] for w in words] == [w.text for w in words]


def test_a_lexicon_is_heeded_in_every_language() -> None:
    front_end = FrontEnd()
    for language, text in (
        ("es", "Uso Zorp hoy."),
        ("ja", "今日はZorpです。"),
        ("zh", "今天Zorp来了。"),
        ("hi", "यह Zorp है।"),
    ):
        lexicon = front_end.lexicons.current().with_request([LexiconEntry("*", "Zorp", "zˈu")])
        cleaned = front_end.cleaned(text)
        segments = list(front_end.segments_of(cleaned, language, lambda _: None, lexicon))
        said = {w.text: (w.phonemes, w.source) for s in segments for w in s.words}
        assert said["Zorp"] == ("zˈu", "lexicon"), language
        again = list(front_end.segments_of(cleaned, language, lambda _: None))
        assert {w.source for s in again for w in s.words if w.text == "Zorp"} != {"lexicon"}


def test_mandarin_has_its_words_apart_although_no_space_is_written() -> None:
    front_end = FrontEnd()
    lexicon = front_end.lexicons.current().with_request([LexiconEntry("zh", "重庆", "ꭧʰʊ↗ŋʨʰi↘ŋ")])
    (segment,) = front_end.segments_of(
        front_end.cleaned("在重庆吃饭，去重庆。"), "zh", lambda _: None, lexicon
    )
    assert segment.phonemes == "ʦai↘ ꭧʰʊ↗ŋʨʰi↘ŋ ꭧʰɨ→fa↘n, ʨʰy↘ ꭧʰʊ↗ŋʨʰi↘ŋ."
