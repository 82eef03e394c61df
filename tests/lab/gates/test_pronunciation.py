"""The notebook on pronunciation notices what is read otherwise, and refuses what is no entry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kokoro_lab.datatypes import Clip, Fallback, WordTiming
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.pronunciation import controls, entry, measure, same, word_checks
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine


def test_an_entry_is_a_grapheme_and_its_phonemes() -> None:
    (found,) = entry("nginx", " ˈɛnʤɪnˈɛks")
    assert (found.grapheme, found.phoneme) == ("nginx", "ˈɛnʤɪnˈɛks")
    assert entry("", "") == ()
    with pytest.raises(ParameterError, match="has no phonemes"):
        entry("nginx", "")


@pytest.mark.parametrize(
    ("read", "expected", "language", "alike"),
    [
        ("It is five.", "it is five", "en", True),
        ("It is nine.", "it is five", "en", False),
        ("It is five five.", "it is five", "en", False),
        ("三 百", "三百", "ja", True),
        ("三百一", "三百", "ja", False),
        ("三 百。", "三百", "zh", True),
    ],
)
def test_readings_are_compared_word_by_word(read: str, expected: str, language: str, alike: bool) -> None:
    assert same(read, expected, language) is alike


def test_every_corpus_is_read_as_expected_and_a_fault_is_caught() -> None:
    table = measure()
    assert set(table.language) == {"en", "es", "ja", "zh"}
    assert table[~table.right].empty, table[~table.right].to_string()
    assert all(control.caught for control in controls(table))


def without_sound(clip: Clip, word: str) -> Clip:
    """The clip, in which a word lasts 0 s."""

    def cut(timing: WordTiming) -> WordTiming:
        return replace(timing, end_s=timing.start_s) if timing.text == word else timing

    assert word in [timing.text for timing in clip.timings]
    return replace(clip, timings=tuple(map(cut, clip.timings)))


def left_out(clip: Clip) -> Clip:
    """The clip, whose report says that a letter was not spoken."""
    fallback = Fallback("text", "not spoken: no name of it is known")
    return replace(clip, report=replace(clip.report, fallbacks=(fallback,)))


@pytest.mark.parametrize(
    ("fault", "caught"),
    [
        (lambda clip: clip, []),
        (lambda clip: without_sound(clip, "Don't"), ["words_without_sound_count"]),
        (lambda clip: without_sound(clip, "wait"), ["words_without_sound_count"]),
        (lambda clip: replace(clip, timings=()), ["words_count"]),
        (left_out, ["words_not_spoken_count"]),
    ],
)
def test_speech_lacks_a_word_if_it_does_not_last_or_was_left_out(
    fault: Callable[[Clip], Clip], caught: list[str], hum: Engine
) -> None:
    clip = hum.synthesize("Don't wait: it costs $5.", voice="hum")
    assert failed(word_checks(fault(clip))) == caught
