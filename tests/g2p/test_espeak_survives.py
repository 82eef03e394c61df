"""No text ends the process in eSpeak, whose C code reads beyond its memory where it is left to itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from kokoro_lab.g2p.espeak import _backend, divided

pytest.importorskip("phonemizer")

MIXED = ["Ꮩj", "ᏜĩᩛX", "ᏉŅᓋ", "ᎠɔⰡ", "ዣᆉɉ", "ᏤzኣЖ"]
"""Each ended the process when the Hindi voice read it whole."""


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("Ꮩj", ["Ꮩ", "j"]),
        ("Δtime", ["Δ", "time"]),
        ("naïve", ["naïve"]),
        ("e\u0301te", ["e\u0301te"]),
        ("aujourd'hui", ["aujourd'hui"]),
        ("1º", ["1º"]),
        ("नमस्ते", ["नमस्ते"]),
        ("λόγος", ["λόγος"]),
        ("x" * 25, ["x" * 20, "x" * 5]),
    ],
)
def test_latin_letters_and_others_are_never_said_as_one(word: str, parts: list[str]) -> None:
    assert divided(word) == parts


def test_words_that_mix_scripts_are_read_and_the_process_goes_on() -> None:
    code = f"""
from kokoro_lab.g2p.espeak import EspeakG2P
from kokoro_lab.text.aligned import AlignedText
speak = EspeakG2P("hi")
for word in {MIXED!r}:
    assert speak(AlignedText.of("नमस्ते " + word + " नमस्ते"), lambda fallback: None)
print("alive")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "alive\n", (ended.returncode, ended.stderr[-500:])


def test_a_search_for_the_next_space_ends_on_the_stack() -> None:
    """A thread that has just begun has little above eSpeak's own frames: a call brings spaces along."""
    api = _backend("es")._espeak._espeak
    given: list[tuple[object, ...]] = []

    class Recorded:
        restype: object = None
        argtypes: tuple[Callable[..., object], ...] = ()

        def __call__(self, *arguments: object) -> bytes:
            given.append(arguments)
            return b""

    recorded = Recorded()
    api._library, library = SimpleNamespace(espeak_TextToPhonemes=recorded), api._library
    try:
        api.text_to_phonemes(None, 1, 2)
    finally:
        api._library = library
    (arguments,) = given
    in_registers, on_the_stack = arguments[3:8], arguments[8:]  # at most eight are in registers: ARM64
    assert len(in_registers) == 5
    assert len(on_the_stack) >= 32
    assert {int(word).to_bytes(8, "big") for word in on_the_stack} == {b" " * 8}  # type: ignore[call-overload]
    assert len(recorded.argtypes) == len(arguments)  # else each would be an int of 4 bytes
