"""A sentence that was read before is not read again, and is heard in its new place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.guarded import GuardedG2P, SentenceReading
from kokoro_lab.g2p.phoneme_cache import Key, PhonemeCache


def word(text: str) -> Word:
    return Word(text, 0, len(text), text, "en-us", "misaki")


def reading(*words: Word, fallbacks: Sequence[Fallback] = ()) -> SentenceReading:
    return SentenceReading([*words], [*fallbacks], lasting=True)


def test_it_answers_for_the_same_text_language_and_lexicon_alone() -> None:
    cache = PhonemeCache()
    cache.put(Key("en-us", "1", "a"), reading(word("a"), fallbacks=[Fallback("g2p", "why", 0, 1)]))
    found = cache.get(Key("en-us", "1", "a"))
    assert found == reading(word("a"), fallbacks=[Fallback("g2p", "why", 0, 1)])
    for other in (Key("en-gb", "1", "a"), Key("en-us", "2", "a"), Key("en-us", "1", "b")):
        assert cache.get(other) is None
    figures = cache.figures()
    assert (figures["hits"], figures["misses"], figures["hit_rate"]) == (1, 3, 0.25)


def test_it_never_holds_more_than_it_may() -> None:
    cache = PhonemeCache(max_bytes=20_000)
    for i in range(200):
        cache.put(Key("en-us", "", f"{i} " * 40), reading(*[word(str(i))] * 5))
    figures = cache.figures()
    assert 0 < figures["entries"] < 20
    assert 0 < figures["bytes"] <= 20_000
    assert cache.get(Key("en-us", "", "199 " * 40)) is not None
    assert cache.get(Key("en-us", "", "0 " * 40)) is None
    cache.put(Key("en-us", "", "a" * 30_000), reading())
    assert cache.get(Key("en-us", "", "a" * 30_000)) is None


def test_one_call_forgets_everything() -> None:
    cache = PhonemeCache()
    cache.put(Key("en-us", "", "a"), reading(word("a")))
    cache.clear()
    assert cache.get(Key("en-us", "", "a")) is None
    assert (cache.figures()["entries"], cache.figures()["bytes"]) == (0, 0)


def test_without_room_nothing_is_kept() -> None:
    cache = PhonemeCache(max_bytes=0)
    cache.put(Key("en-us", "", "a"), reading(word("a")))
    assert cache.get(Key("en-us", "", "a")) is None
    assert cache.figures()["hit_rate"] == 0


def test_a_hit_has_the_places_and_fallbacks_of_the_new_text(monkeypatch: pytest.MonkeyPatch) -> None:
    front_end = FrontEnd()
    first, again = "I don't know Привет.", "  I\u00a0don’t   know Привет."
    fallbacks: list[Fallback] = []
    list(front_end.segments(first, "en-us", fallbacks.append))
    monkeypatch.setattr(GuardedG2P, "read", lambda *_: pytest.fail("it was read before"))
    repeated: list[Fallback] = []
    (segment,) = front_end.segments(again, "en-us", repeated.append)
    assert [again[w.start : w.end] for w in segment.words] == ["I", "don’t", "know", "Привет", "."]
    assert [again[f.start : f.end] for f in repeated] == ["Привет"]
    assert [f.reason for f in repeated] == [f.reason for f in fallbacks]
    assert front_end.cache.figures()["hits"] == 1
