"""What is said of a stream, whatever the transport."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from kokoro_lab.containers import Encoder
from kokoro_lab.datatypes import AudioChunk
from kokoro_lab.server.requests.speech_events import AudioBytes, SpeechEvents


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


def test_a_chunk_is_booked_with_the_text_that_it_waited_for_though_others_are_ahead() -> None:
    booked: list[float | None] = []
    account = SimpleNamespace(chunk=lambda length_s, *, cached, text_came_s: booked.append(text_came_s))
    synthesis: Any = SimpleNamespace(account=account, stop=threading.Event(), live=None)
    stream: Any = LateStream()
    encoder = Encoder("pcm", 24_000, 0)
    events = SpeechEvents(
        synthesis, stream, encoder, lambda _: None, words=False, after=-1, encode_all=False, stall_s=5,
    )  # fmt: skip
    for number, event in zip(range(12), events, strict=False):
        assert isinstance(event, AudioBytes)
        assert event.chunk_id == number
    events.close()
    assert booked == [float(number) for number in range(12)]
