"""The player: every sample once and in order, silence when told, and the truth about its gaps."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError, PlaybackError
from kokoro_lab.lab.bench.playing import CHUNK_S, burst_arrivals, numbered, play_virtually
from kokoro_lab.playback.buffering import STABLE, Hold
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.sinks import BLOCK_S, ClockedSink, VirtualClock
from kokoro_lab.playback.stream import Event, StreamOver

CHUNK = round(CHUNK_S * SAMPLE_RATE_HZ)
PCM = numbered(2 * SAMPLE_RATE_HZ)


class Bench:
    """A deck on a clock that takes no time, and what it tells."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.sink = ClockedSink(self.clock, keep=True)
        self.events: list[Event] = []
        self.deck = Deck(self.sink, self.clock, tell=self.events.append, players=(), **options)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def play_for(self, duration_s: float) -> None:
        self.play_until(self.clock.now_s() + duration_s)

    def play_until(self, at_s: float) -> None:
        while self.clock.now_s() < at_s:
            if not self.deck.step():
                self.clock.sleep(BLOCK_S)

    def play_out(self, stream: int) -> None:
        self.deck.end(stream)
        while not self.deck.over(stream):
            self.deck.step()
        self.deck.step()


def test_ten_minutes_with_bursts_have_one_underrun_at_most_and_every_sample_once() -> None:
    for seed in range(3):
        heard = play_virtually(burst_arrivals(600, seed))
        assert heard.underruns <= 1
        assert heard.silent_s < 1
        assert heard.differing_samples == 0
        assert heard.took_s >= heard.audio_s


def test_a_line_without_bursts_has_none_and_a_sender_slower_than_speech_has_many() -> None:
    assert play_virtually([i * CHUNK_S for i in range(400)]).underruns == 0
    assert play_virtually(burst_arrivals(60, 0, pace=1.3)).underruns > 5


def test_a_pre_buffer_that_learns_nothing_has_more() -> None:
    fixed = Hold()
    fixed.fix(0.1)
    assert play_virtually(burst_arrivals(600, 0), fixed).underruns > 1


def test_two_or_three_chunks_are_held_back_before_the_first_is_heard() -> None:
    bench = Bench()
    stream = bench.deck.begin()
    chunks = 0
    while not len(bench.sink.heard):
        bench.deck.offer(stream, PCM[chunks * CHUNK : (chunks + 1) * CHUNK])
        chunks += 1
        bench.play_for(STABLE.chunk_s)
    assert chunks in (2, 3)


def test_what_waits_alone_is_played_after_a_second() -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM[:100])
    bench.play_for(0.9)
    assert len(bench.sink.heard) == 0
    bench.play_for(0.2)
    assert np.array_equal(bench.sink.heard, PCM[:100])


def test_more_than_a_second_is_held_back_of_a_sender_that_is_never_ahead_if_it_is_to_be() -> None:
    fixed = Hold()
    fixed.fix(1.5)
    bench = Bench(hold=fixed)
    stream = bench.deck.begin()
    for index in range(40):
        bench.play_until(index * CHUNK_S)
        assert len(bench.sink.heard) == 0 or index * CHUNK_S >= 1.4
        bench.deck.offer(stream, PCM[index * CHUNK : (index + 1) * CHUNK])
    bench.play_out(stream)
    assert np.array_equal(bench.sink.heard, PCM)


def test_completed_comes_when_the_last_sample_was_heard() -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM)
    bench.deck.end(stream)
    while "completed" not in bench.kinds():
        bench.deck.step()
    assert np.array_equal(bench.sink.heard, PCM)
    assert bench.clock.now_s() >= len(PCM) / SAMPLE_RATE_HZ
    assert bench.events[-1].data["played_samples"] == len(PCM)
    assert (bench.deck.status().state, bench.deck.status().underruns) == ("idle", 0)


def test_a_stream_of_nothing_is_completed() -> None:
    bench = Bench()
    bench.play_out(bench.deck.begin())
    assert bench.kinds() == ["completed"]


def test_an_end_that_is_told_late_is_no_underrun() -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM)
    bench.play_for(5)
    assert bench.deck.status().state == "buffering"
    bench.play_out(stream)
    assert bench.deck.status().underruns == 0


@pytest.mark.parametrize("pauses_s", [[0.3], [0.0, 0.21, 0.5, 1.234], [1.99]])
def test_pause_and_resume_lose_and_repeat_no_sample(pauses_s: list[float]) -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM)
    for at_s, next_s in pairwise([0, *pauses_s]):
        bench.play_for(next_s - at_s)
        bench.deck.pause()
        bench.play_for(0.1)
        quiet = len(bench.sink.heard)
        assert bench.deck.status().state == "paused"
        bench.play_for(7)
        assert len(bench.sink.heard) == quiet
        bench.deck.resume()
    bench.play_out(stream)
    assert np.array_equal(bench.sink.heard, PCM)
    assert bench.deck.status().underruns == 0


def test_a_pause_silences_within_50_ms() -> None:
    bench = Bench()
    bench.deck.offer(bench.deck.begin(), PCM)
    bench.play_for(0.5)
    before = len(bench.sink.heard)
    bench.deck.pause()
    bench.play_for(1)
    assert len(bench.sink.heard) - before <= 0.05 * SAMPLE_RATE_HZ


def test_a_sender_that_waits_while_it_is_paused_is_not_late() -> None:
    bench = Bench()
    stream, paused_s = bench.deck.begin(), 0.0
    for index in range(len(PCM) // CHUNK):
        bench.play_until(index * CHUNK_S + paused_s)
        bench.deck.offer(stream, PCM[index * CHUNK : (index + 1) * CHUNK])
        if index == 10:
            bench.deck.pause()
            began_s = bench.clock.now_s()
            bench.play_for(60)
            bench.deck.resume()
            paused_s = bench.clock.now_s() - began_s
    bench.play_out(stream)
    status = bench.deck.status()
    assert (status.underruns, status.pre_buffer_s) == (0, pytest.approx(STABLE.pre_buffer_s, abs=0.01))


@pytest.mark.parametrize("at_s", [0.05, 0.5, 1.0, 1.5])
def test_stop_silences_within_50_ms_and_says_so(at_s: float) -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM)
    bench.play_for(at_s)
    before = len(bench.sink.heard)
    bench.deck.stop()
    bench.play_for(2)
    after = bench.sink.heard
    assert len(after) - before <= 0.05 * SAMPLE_RATE_HZ
    assert np.array_equal(after, PCM[: len(after)])
    assert bench.kinds() == ["stopped"]
    assert bench.events[0].data["silenced_s"] <= 0.05
    with pytest.raises(StreamOver):
        bench.deck.offer(stream, PCM)


def test_the_next_stream_follows_the_stop_and_holds_nothing_of_the_last() -> None:
    bench = Bench()
    bench.deck.offer(bench.deck.begin(), PCM)
    bench.play_for(0.5)
    bench.deck.stop()
    bench.deck.step()
    stopped = len(bench.sink.heard)
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM[::-1])
    bench.play_out(stream)
    assert np.array_equal(bench.sink.heard[stopped:], PCM[::-1])
    assert bench.deck.status().played_samples == len(PCM)


def test_a_new_stream_takes_the_place_of_one_that_plays() -> None:
    bench = Bench()
    first = bench.deck.begin()
    bench.deck.offer(first, PCM)
    bench.play_for(0.5)
    second = bench.deck.begin()
    bench.deck.offer(second, PCM[:CHUNK])
    bench.play_out(second)
    assert [(event.kind, event.stream) for event in bench.events] == [
        ("stopped", first),
        ("completed", second),
    ]
    assert bench.events[0].data["reason"] == "replaced"
    assert np.array_equal(bench.sink.heard[-CHUNK:], PCM[:CHUNK])


def test_more_than_there_is_room_for_is_not_taken_and_not_lost() -> None:
    bench = Bench(capacity_s=0.5)
    stream, rest, most_s = bench.deck.begin(), PCM, 0.0
    while len(rest):
        rest = rest[bench.deck.offer(stream, rest) :]
        most_s = max(most_s, bench.deck.status().buffered_s)
        bench.deck.step()
    bench.play_out(stream)
    assert most_s == 0.5
    assert np.array_equal(bench.sink.heard, PCM)


def test_a_sender_is_told_to_wait_and_to_go_on() -> None:
    bench = Bench(capacity_s=1)
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM[: round(0.6 * SAMPLE_RATE_HZ)])
    assert bench.deck.status().waits
    bench.play_out(stream)
    assert [event.data["pause"] for event in bench.events if event.kind == "flow"] == [True, False]


def test_a_sender_that_can_be_made_to_wait_never_fills_the_ring() -> None:
    sink = ClockedSink(keep=True)
    deck = Deck(sink, capacity_s=0.2)
    most_s = 0.0
    with running(deck):
        stream = deck.begin()
        sender = threading.Thread(target=deck.feed, args=(stream, PCM[: SAMPLE_RATE_HZ // 2]))
        sender.start()
        while sender.is_alive():
            most_s = max(most_s, deck.status().buffered_s)
            sender.join(0.005)
        deck.end(stream)
        assert deck.wait_over(stream, 30)
    assert most_s <= 0.2
    assert np.array_equal(sink.heard, PCM[: SAMPLE_RATE_HZ // 2])


@pytest.mark.parametrize("volume", [0.0, 0.5, 1.0])
def test_the_volume_scales_samples(volume: float) -> None:
    bench = Bench()
    bench.deck.set_volume(volume)
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM)
    bench.play_out(stream)
    expected: Pcm = np.rint(PCM * volume).astype(np.int16)
    assert np.array_equal(bench.sink.heard, expected)


def test_what_is_held_back_can_be_set_and_is_learnt_again() -> None:
    bench = Bench()
    bench.deck.hold_back(1.5)
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM[:SAMPLE_RATE_HZ])
    bench.play_for(0.5)
    assert len(bench.sink.heard) == 0
    bench.deck.hold_back(None)
    bench.play_for(0.5)
    assert len(bench.sink.heard) > 0


@pytest.mark.parametrize("wrong", [-0.1, float("nan"), float("inf")])
def test_what_cannot_be_is_refused(wrong: float) -> None:
    bench = Bench()
    with pytest.raises(ParameterError):
        bench.deck.hold_back(wrong)
    with pytest.raises(ParameterError):
        bench.deck.set_volume(wrong)
    assert bench.deck.status().volume == 1


def test_a_sink_that_breaks_in_an_unforeseen_way_fails_one_stream_and_not_the_player(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = ClockedSink(keep=True)
    events: list[Event] = []
    with running(Deck(sink, tell=events.append)) as deck:
        with monkeypatch.context() as broken:
            broken.setattr(sink, "play", lambda pcm: 1 / 0)
            stream = deck.begin()
            deck.feed(stream, PCM)
            with pytest.raises(PlaybackError, match="ZeroDivisionError"):
                deck.require_played(stream)
        stream = deck.begin()
        deck.feed(stream, PCM[:CHUNK])
        deck.end(stream)
        assert deck.require_played(stream)
    assert [event.kind for event in events] == ["error", "stopped", "completed"]
    assert np.array_equal(sink.heard, PCM[:CHUNK])


def test_a_sink_that_cannot_even_be_silenced_leaves_nobody_waiting_for_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink = ClockedSink()
    with running(Deck(sink)) as deck:
        with monkeypatch.context() as broken:
            for name in ("play", "drop", "close"):
                broken.setattr(sink, name, lambda *_: 1 / 0)
            stream = deck.begin()
            deck.feed(stream, PCM)
            assert deck.wait_over(stream, 30)
        stream = deck.begin()
        deck.feed(stream, PCM[:CHUNK])
        deck.end(stream)
        assert deck.wait_over(stream, 30)
        assert deck.require_played(stream)


def test_a_stream_that_begins_while_another_is_silenced_loses_no_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    bench.deck.offer(bench.deck.begin(), PCM)
    bench.play_for(0.5)
    bench.deck.stop()
    begun = list[int]()
    drop = bench.sink.drop

    def drop_while_senders_come() -> None:
        drop()
        if not begun:
            bench.deck.begin()
            begun.append(bench.deck.begin())
            bench.deck.offer(begun[0], PCM[::-1])

    monkeypatch.setattr(bench.sink, "drop", drop_while_senders_come)
    before = len(bench.sink.heard)
    bench.deck.step()
    bench.play_out(begun[0])
    assert np.array_equal(bench.sink.heard[before:], PCM[::-1])


def test_blocks_that_a_busy_machine_plays_too_late_are_counted_and_pauses_and_gaps_are_not() -> None:
    bench = Bench()
    stream = bench.deck.begin()
    bench.deck.offer(stream, PCM[: 12 * CHUNK])
    bench.play_for(0.3)
    bench.deck.pause()
    bench.play_for(0.3)
    bench.deck.resume()
    bench.play_for(1)
    bench.deck.offer(stream, PCM[12 * CHUNK :])
    bench.play_for(0.3)
    assert (bench.deck.status().late_blocks, bench.deck.status().underruns) == (0, 1)
    for _ in range(3):
        bench.clock.sleep(0.2)
        bench.play_for(0.1)
    bench.play_out(stream)
    assert (bench.deck.status().late_blocks, bench.deck.status().underruns) == (3, 1)
    assert np.array_equal(bench.sink.heard, PCM)
