"""What a client of the player says, in the Raycast client's words and in ours, and what it is told."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import numpy as np
import pytest

from kokoro_lab.containers.pcm import pcm_bytes, wav_header
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.bench.playing import numbered
from kokoro_lab.playback.conversation import PlayerConversation
from kokoro_lab.playback.deck import Deck
from kokoro_lab.playback.sinks import ClockedSink, VirtualClock
from kokoro_lab.playback.stream import Event

PCM = numbered(SAMPLE_RATE_HZ // 2)
CONTENT = pcm_bytes(PCM)
RAYCAST_FORMAT = {
    "format": "pcm",
    "sampleRate": 24000,
    "channels": 1,
    "bitDepth": 16,
    "bytesPerSample": 2,
    "bytesPerSecond": 48000,
}


class Room:
    """A player on a clock that takes no time, and its clients."""

    def __init__(self, **options: Any) -> None:
        self.clock = VirtualClock()
        self.sink = ClockedSink(self.clock, keep=True)
        self.clients: list[Client] = []
        self.deck = Deck(self.sink, self.clock, tell=self._tell, players=(), **options)

    def _tell(self, event: Event) -> None:
        for client in self.clients:
            client.side.tell(event)

    def play_for(self, duration_s: float) -> None:
        until_s = self.clock.now_s() + duration_s
        while self.clock.now_s() < until_s:
            for client in self.clients:
                client.side.work()
            if not self.deck.step():
                self.clock.sleep(0.01)


class Client:
    """One of them."""

    def __init__(self, room: Room) -> None:
        self.told: list[dict[str, Any]] = []
        self.side = PlayerConversation(room.deck, lambda message: self.told.append(json.loads(message)))
        room.clients.append(self)

    def says(self, kind: str, **data: Any) -> None:
        self.side.hear(json.dumps({"type": kind, "timestamp": 1_763_000_000_000, "data": data}))

    def controls(self, action: str, **params: Any) -> None:
        self.says("control", action=action, **({"params": params} if params else {}))

    def sends(self, content: bytes = CONTENT, first: int = 0) -> None:
        """As the Raycast client does: a Uint8Array through JSON.stringify, in fragments that tear samples."""
        for sequence, at in enumerate(range(0, len(content), 4801), first):
            chunk = {str(i): byte for i, byte in enumerate(content[at : at + 4801])}
            self.says("audio_chunk", chunk=chunk, format=RAYCAST_FORMAT, sequence=sequence)

    def kinds(self) -> list[str]:
        return [message["type"] for message in self.told]

    def last(self, kind: str) -> dict[str, Any]:
        data: dict[str, Any] = next(m["data"] for m in reversed(self.told) if m["type"] == kind)
        return data


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def client(room: Room) -> Client:
    return Client(room)


def test_what_the_raycast_client_says_is_played_sample_for_sample(room: Room, client: Client) -> None:
    client.controls("configure", bufferSize=524_288)
    client.controls("play")
    client.sends()
    client.controls("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard, PCM)
    assert client.kinds()[-1] == "completed"
    done = client.last("completed")
    assert (done["state"], done["bufferUtilization"], done["audioPosition"]) == ("completed", 0, len(CONTENT))
    assert abs(client.told[-1]["timestamp"] / 1000 - time.time()) < 60


def test_nobody_who_waits_for_the_end_is_told_idle_before_it(room: Room, client: Client) -> None:
    """The Raycast client takes that for `completed`."""
    client.sends()
    client.controls("end_stream")
    while "completed" not in client.kinds():
        client.says("status")
        client.side.beat()
        room.play_for(0.03)
    states = [m["data"]["state"] for m in client.told if m["type"] == "status"]
    assert set(states) <= {"buffering", "playing"}
    assert len(room.sink.heard) == len(PCM)


@pytest.mark.parametrize(
    "chunk",
    [
        base64.b64encode(CONTENT).decode(),
        {"type": "Buffer", "data": list(CONTENT)},
        list(CONTENT),
        {str(i): byte for i, byte in enumerate(CONTENT)},
    ],
    ids=["base64", "Buffer", "list", "Uint8Array"],
)
def test_bytes_are_understood_however_javascript_writes_them(room: Room, client: Client, chunk: Any) -> None:
    client.says("audio_chunk", chunk=chunk)
    client.says("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard, PCM)


def test_a_binary_message_is_pcm_or_wav(room: Room, client: Client) -> None:
    for content in (CONTENT, wav_header(SAMPLE_RATE_HZ) + CONTENT):
        for at in range(0, len(content), 999):
            client.side.hear(content[at : at + 999])
        client.says("end_stream")
    room.play_for(3)
    assert np.array_equal(room.sink.heard, np.concatenate((PCM, PCM)))
    assert client.kinds().count("completed") == 2


def test_the_next_stream_of_a_client_waits_for_its_last_one(room: Room, client: Client) -> None:
    for _ in range(3):
        client.sends()
        client.controls("end_stream")
    room.play_for(5)
    assert np.array_equal(room.sink.heard, np.tile(PCM, 3))
    assert client.kinds().count("completed") == 3
    assert "stopped" not in client.kinds()


def test_stop_is_obeyed_before_the_audio_that_waits(room: Room) -> None:
    room.deck = Deck(room.sink, room.clock, capacity_s=0.1, tell=room._tell, players=())
    client = Client(room)
    client.sends()
    room.play_for(0.2)
    assert client.side.waiting_bytes > 0
    client.controls("stop")
    before = len(room.sink.heard)
    room.play_for(2)
    assert len(room.sink.heard) - before <= 0.05 * SAMPLE_RATE_HZ
    assert client.last("status")["state"] == "idle"
    assert client.last("status")["silenced_s"] <= 0.05


def test_what_was_under_way_at_a_stop_is_ignored_and_the_next_text_is_heard(
    room: Room, client: Client
) -> None:
    client.sends()
    room.play_for(0.2)
    client.controls("stop")
    room.play_for(0.1)
    before = len(room.sink.heard)
    client.sends(first=11)
    room.play_for(1)
    assert len(room.sink.heard) == before
    client.says("status")
    assert client.last("status")["ignored_chunks"] > 0
    client.sends()
    client.controls("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard[before:], PCM)


def test_pause_and_resume_come_from_any_client_and_lose_nothing(room: Room, client: Client) -> None:
    other = Client(room)
    client.sends()
    client.controls("end_stream")
    room.play_for(0.2)
    other.controls("pause")
    assert other.last("status")["state"] == "paused"
    assert other.last("status")["performance"]["isPaused"]
    room.play_for(5)
    assert len(room.sink.heard) < len(PCM)
    other.controls("resume")
    room.play_for(2)
    assert np.array_equal(room.sink.heard, PCM)


def test_a_new_client_takes_the_place_and_the_old_one_is_told(room: Room, client: Client) -> None:
    client.sends()
    room.play_for(0.2)
    other = Client(room)
    other.sends(CONTENT[::-1])
    room.play_for(0.1)
    assert client.last("status")["reason"] == "replaced"
    assert client.last("status")["state"] == "idle"
    client.sends(first=11)  # which it sent before it heard of it
    other.controls("end_stream")
    room.play_for(2)
    assert "completed" in other.kinds()
    reversed_pcm = np.frombuffer(CONTENT[::-1], "<i2")
    assert np.array_equal(room.sink.heard[-len(PCM) :], reversed_pcm)
    client.sends()
    client.controls("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard[-len(PCM) :], PCM)


def test_what_a_client_that_leaves_has_sent_is_played(room: Room, client: Client) -> None:
    client.sends()
    client.side.leave()
    room.play_for(2)
    assert np.array_equal(room.sink.heard, PCM)
    assert room.deck.status().state == "idle"


def test_a_sender_is_asked_to_wait_and_to_go_on() -> None:
    room = Room(capacity_s=0.8)
    client = Client(room)
    client.sends()
    client.controls("end_stream")
    room.play_for(2)
    assert [m["data"]["pause"] for m in client.told if m["type"] == "flow_control"] == [True, False]
    assert np.array_equal(room.sink.heard, PCM)


def test_an_end_without_audio_is_completed_and_cuts_nobody_off(room: Room, client: Client) -> None:
    client.sends()
    other = Client(room)
    other.controls("end_stream")
    assert "completed" in other.kinds()
    client.controls("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard, PCM)


def test_an_end_that_is_said_twice_is_one_and_is_told_when_the_last_sample_was_heard(
    room: Room, client: Client
) -> None:
    for _ in range(2):
        client.sends()
        for _ in range(2):
            client.says("end_stream")
            client.controls("end_stream")
    assert "completed" not in client.kinds()
    room.play_for(3)
    assert client.kinds().count("completed") == 2
    assert np.array_equal(room.sink.heard, np.tile(PCM, 2))


def test_who_leaves_while_a_whole_stream_waits_cuts_nobody_off(room: Room, client: Client) -> None:
    for _ in range(2):
        client.sends()
        client.controls("end_stream")
    client.side.leave()
    room.play_for(0.7)  # its second stream is heard
    other = Client(room)
    other.sends()
    other.controls("end_stream")
    room.play_for(2)
    assert "completed" in other.kinds()
    assert np.array_equal(room.sink.heard[-len(PCM) :], PCM)


def test_a_stop_from_another_client_is_of_what_waits_too_and_not_of_what_comes_then(
    room: Room, client: Client
) -> None:
    for _ in range(3):
        client.sends()
        client.controls("end_stream")
    room.play_for(0.2)
    Client(room).controls("stop")
    room.play_for(0.1)
    before = len(room.sink.heard)
    room.play_for(3)
    assert len(room.sink.heard) == before
    client.side.hear(CONTENT)
    client.controls("end_stream")
    room.play_for(2)
    assert np.array_equal(room.sink.heard[before:], PCM)


def test_what_waits_of_a_client_that_was_replaced_cuts_nobody_off(room: Room, client: Client) -> None:
    for _ in range(2):
        client.sends()
        client.controls("end_stream")
    room.play_for(0.2)
    other = Client(room)
    other.sends(CONTENT[::-1])
    other.controls("end_stream")
    room.play_for(2)
    assert "completed" in other.kinds()
    assert np.array_equal(room.sink.heard[-len(PCM) :], np.frombuffer(CONTENT[::-1], "<i2"))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("own", [True, False])
def test_what_comes_behind_a_stop_is_heard(room: Room, client: Client, own: bool, at_once: bool) -> None:
    client.sends()
    client.controls("end_stream")
    room.play_for(0.2)
    (client if own else Client(room)).controls("stop")
    if not at_once:
        room.play_for(0.1)
    client.sends()
    client.controls("end_stream")
    room.play_for(2)
    assert "completed" in client.kinds()
    assert np.array_equal(room.sink.heard[-len(PCM) :], PCM)


def test_what_cannot_be_played_takes_nothing_from_the_streams_before_it(room: Room, client: Client) -> None:
    for _ in range(2):
        client.sends()
        client.controls("end_stream")
    client.side.hear(wav_header(44_100) + CONTENT)
    assert client.last("error")["field"] == "format"
    room.play_for(3)
    assert np.array_equal(room.sink.heard, np.tile(PCM, 2))


def test_a_heartbeat_is_answered(client: Client) -> None:
    client.says("heartbeat")
    assert (client.kinds()[-1], client.last("heartbeat")) == ("heartbeat", {"status": "ok"})


def test_it_is_configured(room: Room, client: Client) -> None:
    client.controls("configure", pre_buffer_ms=250, volume=0.5, format=RAYCAST_FORMAT)
    assert (client.last("status")["pre_buffer_s"], client.last("status")["volume"]) == (0.25, 0.5)
    client.controls("configure", pre_buffer_ms="auto")
    assert client.last("status")["pre_buffer_s"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("nonsense", None),
        ("[]", None),
        ('{"type": "sing"}', "type"),
        ('{"type": "control"}', "action"),
        ('{"type": "control", "data": {"action": "rewind"}}', "action"),
        ('{"type": "control", "data": {"action": "configure", "params": {"bass": 1}}}', "params"),
        ('{"type": "control", "data": {"action": "configure", "params": {"volume": 2}}}', "volume"),
        ('{"type": "control", "data": {"action": "configure", "params": {"volume": "x"}}}', "volume"),
        (
            '{"type": "control", "data": {"action": "configure", "params": {"pre_buffer_ms": -1}}}',
            "pre_buffer_ms",
        ),
        ('{"type": "audio_chunk", "data": {}}', "chunk"),
        ('{"type": "audio_chunk", "data": {"chunk": "*"}}', "chunk"),
        ('{"type": "audio_chunk", "data": {"chunk": {"0": 1, "2": 2}}}', "chunk"),
        ('{"type": "audio_chunk", "data": {"chunk": [256]}}', "chunk"),
        ('{"type": "audio_chunk", "data": {"chunk": "AAAA", "format": {"sampleRate": 48000}}}', "format"),
        (wav_header(44_100) + bytes(400), "format"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_played(
    room: Room, client: Client, message: str | bytes, field: str | None
) -> None:
    client.side.hear(message)
    error = client.last("error")
    assert error["field"] == field
    assert error["message"]
    client.side.hear(bytes(400) if isinstance(message, bytes) else "{}")
    room.play_for(2)
    assert len(room.sink.heard) == 0


def test_half_a_sample_at_the_end_is_told_and_the_rest_is_played(room: Room, client: Client) -> None:
    client.side.hear(CONTENT + b"\x01")
    client.controls("end_stream")
    room.play_for(2)
    assert "within a sample" in client.last("error")["message"]
    assert np.array_equal(room.sink.heard, PCM)
