"""Files hold what was played; the sound card is asked for what it needs, and says what it lacks."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from kokoro_lab.containers.pcm import pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import PlaybackError
from kokoro_lab.lab.bench.playing import numbered
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.sinks import BLOCK_SAMPLES, SoundCard, WavSink
from tests.playback.fake_card import FakeError, FakeStream

PCM = numbered(SAMPLE_RATE_HZ)


def play(deck: Deck) -> bool:
    with running(deck):
        stream = deck.begin()
        deck.feed(stream, PCM)
        deck.end(stream)
        return deck.require_played(stream)


def test_a_file_holds_every_sample_and_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "played.wav"
    deck = Deck(WavSink(path))
    assert play(deck)
    samples, rate_hz = soundfile.read(path, dtype="int16")
    assert (rate_hz, deck.status().underruns) == (SAMPLE_RATE_HZ, 0)
    assert np.array_equal(samples, PCM)


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with pytest.raises(PlaybackError, match="cannot be written"):
        WavSink(tmp_path / "none" / "played.wav").open()


@pytest.mark.parametrize("held", [b"kept", None])
def test_a_file_is_replaced_by_speech_and_not_by_the_opening_of_the_sink(
    tmp_path: Path, held: bytes | None
) -> None:
    path = tmp_path / "played.wav"
    if held is not None:
        path.write_bytes(held)
    sink = WavSink(path)
    sink.open()
    sink.close()
    assert (path.read_bytes() if path.exists() else None) == held
    sink.open()
    sink.play(PCM[:BLOCK_SAMPLES])
    sink.close()
    assert np.array_equal(soundfile.read(path, dtype="int16")[0], PCM[:BLOCK_SAMPLES])


def test_the_sound_card_gets_every_sample_in_small_blocks(cards: list[FakeStream]) -> None:
    assert play(Deck(SoundCard()))
    (card,) = cards
    assert card.written == pcm_bytes(PCM)
    wanted = {"samplerate": SAMPLE_RATE_HZ, "channels": 1, "dtype": "int16", "blocksize": BLOCK_SAMPLES}
    assert wanted.items() <= card.options.items()
    assert card.calls == ["start", "abort", "close"]


def test_a_stop_throws_away_what_the_card_has_not_played(cards: list[FakeStream]) -> None:
    card = SoundCard()
    card.open()
    card.play(PCM[:BLOCK_SAMPLES])
    assert 0 < card.unheard_samples <= 0.012 * SAMPLE_RATE_HZ
    card.drop()
    assert card.unheard_samples == 0
    assert cards[0].calls == ["start", "abort", "start"]


def test_a_card_that_goes_is_told_and_opened_anew(cards: list[FakeStream]) -> None:
    card = SoundCard()
    card.open()
    cards[0].dies = True
    with pytest.raises(PlaybackError, match="device unplugged"):
        card.play(PCM[:BLOCK_SAMPLES])
    card.close()
    card.open()
    card.play(PCM[:BLOCK_SAMPLES])
    assert cards[1].written == pcm_bytes(PCM[:BLOCK_SAMPLES])


def test_a_card_that_there_is_not_is_told(cards: list[FakeStream]) -> None:
    with pytest.raises(PlaybackError, match="No output device matching") as wrong:
        SoundCard("none").open()
    assert "python -m sounddevice" in str(wrong.value)


def test_a_card_that_opens_and_does_not_start_is_told_and_let_go(
    cards: list[FakeStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(card: FakeStream) -> None:
        raise FakeError("device busy")

    monkeypatch.setattr(FakeStream, "start", start, raising=False)
    with pytest.raises(PlaybackError, match="device busy"):
        SoundCard().open()
    assert cards[0].calls == ["close"]


@pytest.mark.parametrize("missing", ["sounddevice", "PortAudio"])
def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    class Absent:
        def find_spec(self, name: str, *_: Any) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found") if missing == "PortAudio" else ImportError(name)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(PlaybackError, match="kokoro-lab\\[play\\]"):
        SoundCard().open()


def test_a_card_that_is_not_used_for_long_is_let_go(
    cards: list[FakeStream], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.playback.deck.KEEP_OPEN_S", 1)
    with running(Deck(SoundCard())) as deck:
        for count in (1, 2):
            stream = deck.begin()
            deck.feed(stream, PCM[:2400])
            deck.end(stream)
            assert deck.require_played(stream)
            until_s = time.monotonic() + 30
            while "close" not in cards[-1].calls and time.monotonic() < until_s:
                time.sleep(0.02)
            assert len(cards) == count
