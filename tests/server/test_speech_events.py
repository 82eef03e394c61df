"""What is said of a stream, whatever the transport."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import AudioChunk
from kokoro_lab.errors import SynthesisError
from kokoro_lab.server.requests import speech_events
from kokoro_lab.server.requests.speech_events import AudioBytes, KeepAlive, SpeechEvents
from tests.server.conftest import RunningServer
from tests.server.test_websocket_conversation import PLENTY, talking


class LateStream(Iterator[AudioChunk]):
    """Each chunk waits for a text of its own."""

    primed = wordless = False
    places: dict[int, Any] = {}  # noqa: RUF012
    timings: tuple[Any, ...] = ()
    marks: tuple[Any, ...] = ()
    text_came_s = -1.0

    def __init__(self) -> None:
        self._ids = iter(range(12))

    def __next__(self) -> AudioChunk:
        number = next(self._ids)
        self.text_came_s = float(number)
        return AudioChunk(np.zeros(1200, np.float32), 24_000, 0, number, 0.05 * number)

    @property
    def report(self) -> Any:
        raise RuntimeError("not made here")

    def close(self) -> None:
        pass


class Ledger:
    """Stands for an account: the chunks that are booked, and how long the first one was held back."""

    def __init__(self) -> None:
        self.booked: list[dict[str, Any]] = []
        self.held_back_s: float | None = None
        self.passed = self.stalls = 0

    def passed_over(self) -> None:
        self.passed += 1

    def stalled(self) -> None:
        self.stalls += 1

    def chunk(self, length_s: float, **how: Any) -> None:
        self.booked.append(how)

    def holds_back(self, held_back_s: float) -> None:
        self.held_back_s = held_back_s


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def events_of(ledger: Ledger) -> Iterator[Callable[..., SpeechEvents]]:
    opened: list[SpeechEvents] = []

    def events(stream: Any = None, held_back_s: float = 0.0, after: int = -1) -> SpeechEvents:
        synthesis: Any = SimpleNamespace(account=ledger, stop=threading.Event(), live=None)
        encoder = Encoder("pcm", 24_000, 0)
        opened.append(
            SpeechEvents(
                synthesis, stream or LateStream(), encoder, lambda _: None, words=False, after=after,
                encode_all=after >= 0, stall_s=5, held_back_s=held_back_s,
            )
        )  # fmt: skip
        return opened[-1]

    yield events
    for one in opened:
        one.close()


def test_a_chunk_is_booked_with_the_text_that_it_waited_for_though_others_are_ahead(
    ledger: Ledger, events_of: Callable[..., SpeechEvents]
) -> None:
    for number, event in zip(range(12), events_of(), strict=False):
        assert isinstance(event, AudioBytes)
        assert event.chunk_id == number
    assert [how["text_came_s"] for how in ledger.booked] == [float(number) for number in range(12)]


def test_the_first_chunk_is_held_back_from_when_it_was_made_and_the_others_are_not(
    ledger: Ledger, events_of: Callable[..., SpeechEvents]
) -> None:
    events = events_of(held_back_s=0.2)
    next(events)
    sent_s = time.perf_counter()
    assert ledger.held_back_s == 0.2
    assert sent_s - ledger.booked[0]["made_s"] >= 0.2
    next(events)
    assert ledger.booked[1]["made_s"] < sent_s, "meanwhile, it was computed"


def test_a_thread_that_listens_to_its_client_does_not_wait_for_a_chunk_that_is_held_back(
    events_of: Callable[..., SpeechEvents],
) -> None:
    assert events_of().ready(timeout_s=60)
    assert not events_of(held_back_s=3600).ready(timeout_s=0.1)


def test_who_stops_a_stream_does_not_wait_until_it_is_no_longer_held_back(
    events_of: Callable[..., SpeechEvents],
) -> None:
    events = events_of(held_back_s=3600)
    events.ready(timeout_s=0.1)
    events.synthesis.stop.set()
    next(events)  # at once


def test_speech_whose_beginning_was_in_the_cache_is_not_held_back(
    ledger: Ledger, events_of: Callable[..., SpeechEvents]
) -> None:
    stream = LateStream()
    stream.primed = True
    next(events_of(stream, held_back_s=3600))
    assert ledger.held_back_s is None


class Gated(LateStream):
    """Waits before chunk 6 until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def __next__(self) -> AudioChunk:
        chunk = super().__next__()
        assert chunk.chunk_id != 6 or self.gate.wait(60)
        return chunk


def test_chunks_that_the_client_has_are_no_reason_not_to_listen_to_it(
    ledger: Ledger, events_of: Callable[..., SpeechEvents]
) -> None:
    stream = Gated()
    events = events_of(stream, after=8)
    while ledger.passed < 6:
        assert not events.ready(timeout_s=0)
    assert not events.ready(timeout_s=0)
    stream.gate.set()
    assert events.ready(timeout_s=60)
    first = next(events)
    assert isinstance(first, AudioBytes)
    assert (first.chunk_id, ledger.passed) == (9, 9)


def test_while_chunks_are_passed_over_the_client_hears_that_the_stream_is_alive(
    ledger: Ledger, events_of: Callable[..., SpeechEvents], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seconds pass each time that somebody looks at the clock, and 5 s without an event are a stall."""
    now_s = count(0.0, 2.0)
    clock = SimpleNamespace(monotonic=lambda: next(now_s), perf_counter=time.perf_counter, sleep=time.sleep)
    monkeypatch.setattr(speech_events, "time", clock)
    told = list(islice(events_of(after=8), 4))
    alive = [event for event in told if isinstance(event, KeepAlive)]
    assert len(alive) == ledger.stalls >= 3


def test_a_chunk_that_is_lost_while_others_are_passed_over_is_an_error_of_the_stream(
    events_of: Callable[..., SpeechEvents],
) -> None:
    stream = LateStream()
    next(stream)
    events = events_of(stream, after=8)
    assert events.ready(timeout_s=60), "it is told by `next`"
    with pytest.raises(SynthesisError, match="Chunk 0 was lost"):
        next(events)


def test_a_cancel_is_heeded_while_all_that_the_client_has_is_computed_again(server: RunningServer) -> None:
    text = "This is a slow one.\n\n" * 20
    with talking(server) as talk:
        talk.say("speak", input=text, ephemeral=True, last_id="99.99999", credit=PLENTY)
        talk.until("started")
        talk.say("cancel")
        assert talk.until("error")["error"]["code"] == "cancelled", "and not that there is no such chunk"
