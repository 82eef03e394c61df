"""Where the sink fails, the rest is played from a file by another player, sample for sample."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import PlaybackError
from kokoro_lab.lab.bench.playing import CHUNK_S, numbered
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.sinks import ClockedSink, VirtualClock
from kokoro_lab.playback.stream import Event
from kokoro_lab.playback.system_player import PLAYERS, FilePlayback, system_player

CHUNK = round(CHUNK_S * SAMPLE_RATE_HZ)
PCM = numbered(SAMPLE_RATE_HZ)


class Unplugged(ClockedSink):
    """Dies when it has taken so many samples; what is on its way to the loudspeaker then is not heard."""

    def __init__(self, clock: VirtualClock, dies_at: int) -> None:
        super().__init__(clock, keep=True)
        self._left = dies_at

    def play(self, pcm: Pcm) -> None:
        if self._left <= 0:
            raise PlaybackError("The sound card has gone.")
        self._left -= len(pcm)
        super().play(pcm)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def program(tmp_path: Path, does: str) -> tuple[str]:
    """A player that does this with its file, which is `$1`."""
    path = tmp_path / "player"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return (str(path),)


def recorder(tmp_path: Path) -> tuple[str]:
    """A player that plays into a file: `tmp_path / "played.wav"`."""
    return program(tmp_path, f'cp "$1" {tmp_path}/played.wav')


def played(tmp_path: Path) -> Pcm:
    content = (tmp_path / "played.wav").read_bytes()
    return np.frombuffer(content[44:], "<i2")


def play(deck: Deck, clock: VirtualClock, pcm: Pcm = PCM, *, chunk_every_s: float = 0.0) -> int:
    """Send it and play it out; the number of the stream."""
    stream = deck.begin()
    for first in range(0, len(pcm), CHUNK):
        due_s = clock.now_s() + chunk_every_s
        deck.offer(stream, pcm[first : first + CHUNK])
        while clock.now_s() < due_s:
            deck.step()
    deck.end(stream)
    deadline_s = time.monotonic() + 30
    while not deck.over(stream) and time.monotonic() < deadline_s:
        deck.step()
    deck.step()
    return stream


@pytest.mark.parametrize("dies_at", [0, 240, 12_000, SAMPLE_RATE_HZ - 240])
def test_where_the_sink_dies_the_rest_is_played_from_a_file_sample_for_sample(
    tmp_path: Path, folder: Path, dies_at: int
) -> None:
    clock, events = VirtualClock(), list[Event]()
    sink = Unplugged(clock, dies_at)
    deck = Deck(sink, clock, tell=events.append, players=recorder(tmp_path))
    play(deck, clock)
    assert np.array_equal(np.concatenate((sink.heard, played(tmp_path))), PCM)
    assert [event.kind for event in events] == ["fallback", "completed"]
    assert events[1].data["played_samples"] == len(PCM)
    assert "The sound card has gone" in events[0].data["reason"]
    assert [fallback.stage for fallback in deck.status().fallbacks] == ["playback"]
    assert not list(folder.iterdir())


def test_the_file_is_as_loud_as_what_was_heard_before_it(tmp_path: Path, folder: Path) -> None:
    clock = VirtualClock()
    sink = Unplugged(clock, 12_000)
    deck = Deck(sink, clock, players=recorder(tmp_path))
    deck.set_volume(0.25)
    play(deck, clock)
    heard = np.concatenate((sink.heard, played(tmp_path)))
    assert np.array_equal(heard, np.rint(PCM * 0.25).astype(np.int16))


def test_a_pause_that_comes_while_the_other_player_starts_is_kept(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    deck = Deck(Unplugged(clock, 0), clock, players=program(tmp_path, "exec sleep 60"))
    start = FilePlayback.start

    def start_slowly(file: FilePlayback) -> None:
        deck.pause()
        start(file)

    monkeypatch.setattr(FilePlayback, "start", start_slowly)
    signals = list[tuple[bool, int]]()
    monkeypatch.setattr(FilePlayback, "_signal", lambda file, number: signals.append((file.started, number)))
    stream = deck.begin()
    deck.offer(stream, PCM)
    deck.end(stream)
    for _ in range(3):
        deck.step()
    assert (True, signal.SIGSTOP) in signals
    deck.close()


def test_what_comes_after_it_died_is_in_the_file_too(tmp_path: Path, folder: Path) -> None:
    clock = VirtualClock()
    sink = Unplugged(clock, 2400)
    deck = Deck(sink, clock, players=recorder(tmp_path))
    play(deck, clock, chunk_every_s=CHUNK_S)
    assert np.array_equal(np.concatenate((sink.heard, played(tmp_path))), PCM)


def test_a_sender_slower_than_speech_is_collected_and_then_played_without_a_gap(
    tmp_path: Path, folder: Path
) -> None:
    clock, events = VirtualClock(), list[Event]()
    sink = ClockedSink(clock, keep=True)
    deck = Deck(sink, clock, tell=events.append, players=recorder(tmp_path))
    pcm = numbered(20 * SAMPLE_RATE_HZ)
    play(deck, clock, pcm, chunk_every_s=2 * CHUNK_S)
    assert 0 < len(sink.heard) < len(pcm) / 2
    assert np.array_equal(np.concatenate((sink.heard, played(tmp_path))), pcm)
    assert "slower" in deck.status().fallbacks[0].reason
    assert not list(folder.iterdir())


def test_without_another_player_a_slow_stream_is_played_with_gaps_and_whole() -> None:
    clock = VirtualClock()
    sink = ClockedSink(clock, keep=True)
    deck = Deck(sink, clock, players=())
    pcm = numbered(20 * SAMPLE_RATE_HZ)
    play(deck, clock, pcm, chunk_every_s=2 * CHUNK_S)
    assert np.array_equal(sink.heard, pcm)
    assert deck.status().underruns > 5


def test_without_another_player_a_dead_sink_is_an_error_and_the_next_stream_tries_again() -> None:
    clock, events = VirtualClock(), list[Event]()
    sink = Unplugged(clock, 2400)
    deck = Deck(sink, clock, tell=events.append, players=("no-such-player",))
    stream = play(deck, clock)
    assert [event.kind for event in events] == ["error", "stopped"]
    with pytest.raises(PlaybackError, match="has gone") as failed:
        deck.require_played(stream)
    assert "Install one of them" in str(failed.value)
    sink._left = len(PCM)
    assert deck.require_played(play(deck, clock))


def test_a_player_that_fails_is_an_error_and_its_file_is_removed(tmp_path: Path, folder: Path) -> None:
    clock, events = VirtualClock(), list[Event]()
    deck = Deck(Unplugged(clock, 0), clock, tell=events.append, players=program(tmp_path, "exit 3"))
    with pytest.raises(PlaybackError, match="exit code 3"):
        deck.require_played(play(deck, clock))
    assert not list(folder.iterdir())


def test_stop_ends_the_other_player_and_removes_its_file(tmp_path: Path, folder: Path) -> None:
    pid = tmp_path / "pid"
    sleeper = program(tmp_path, f"echo $$ > {pid}.part; mv {pid}.part {pid}; exec sleep 60")
    events = list[Event]()
    with running(Deck(Unplugged(VirtualClock(), 0), tell=events.append, players=sleeper)) as deck:
        stream = deck.begin()
        deck.offer(stream, PCM)
        deck.end(stream)
        until_s = time.monotonic() + 30
        while not pid.exists() and time.monotonic() < until_s:
            time.sleep(0.01)
        deck.pause()
        deck.stop()  # of one that is paused, too
        assert deck.wait_over(stream, 30)
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
    assert [event.kind for event in events] == ["fallback", "stopped"]
    assert not list(folder.iterdir())


def test_a_pause_holds_the_other_player_back(tmp_path: Path, folder: Path) -> None:
    clock = VirtualClock()
    deck = Deck(Unplugged(clock, 0), clock, players=recorder(tmp_path))
    stream = deck.begin()
    deck.offer(stream, PCM)
    deck.step()
    deck.end(stream)
    deck.pause()
    for _ in range(20):
        deck.step()
    assert not (tmp_path / "played.wav").exists()
    deck.resume()
    until_s = time.monotonic() + 30
    while not deck.over(stream) and time.monotonic() < until_s:
        deck.step()
    assert np.array_equal(played(tmp_path), PCM)


class NoCard(ClockedSink):
    """A sound card that is not there, until it is."""

    def __init__(self, clock: VirtualClock, *, device: str | None = None) -> None:
        super().__init__(clock, keep=True)
        self.device = device
        self.plugged = False

    def open(self) -> None:
        if not self.plugged:
            raise PlaybackError("There is no card.", field="device", value=self.device, mend="Plug one in.")


def test_a_player_without_a_card_starts_says_so_and_plays_each_stream_from_a_file(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, events = VirtualClock(), list[Event]()
    card = NoCard(clock)
    deck = Deck(card, clock, tell=events.append, players=recorder(tmp_path))
    deck.open()
    (lacking,) = deck.status().fallbacks
    assert "There is no card. Plug one in. Speech is played from files by" in lacking.reason
    assert lacking.reason in caplog.text
    for _ in range(2):
        events.clear()
        assert deck.require_played(play(deck, clock))
        assert [event.kind for event in events] == ["fallback", "completed"]
        assert np.array_equal(played(tmp_path), PCM)
    card.plugged = True
    assert deck.require_played(play(deck, clock))
    assert np.array_equal(card.heard, PCM)
    assert deck.status().fallbacks == (), "a card that came is used, and nothing is lacking any more"


def test_a_player_with_neither_card_nor_other_player_does_not_start_and_names_both_mends() -> None:
    clock = VirtualClock()
    with pytest.raises(PlaybackError, match="There is no card") as refused:
        Deck(NoCard(clock), clock, players=("no-such-player",)).open()
    assert "Plug one in. Or install a player of files: one of no-such-player." in str(refused.value)


def test_a_device_that_was_named_is_not_replaced_by_another(tmp_path: Path) -> None:
    clock = VirtualClock()
    with pytest.raises(PlaybackError, match="There is no card") as refused:
        Deck(NoCard(clock, device="Headphones"), clock, players=recorder(tmp_path)).open()
    assert refused.value.value == "Headphones"


def test_players_are_looked_for_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.playback.system_player.PATHS", (str(tmp_path),))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(PlaybackError, match="afplay, aplay, ffplay, play") as none:
        system_player()
    assert "Install" in str(none.value)
    for name in ("play", "ffplay"):
        program(tmp_path, "exit 0")
        (tmp_path / "player").rename(tmp_path / name)
    command = system_player()
    assert Path(command[0]).name == "ffplay"
    assert " ".join(command[1:]) in PLAYERS[2]
