"""Speech over a WebSocket: tagged frames at the client's pace, and a client that does not keep up is cut."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
import websocket

from kokoro_lab.speech.engine import Engine
from tests.server.conftest import RunningServer, running, wait_until
from tests.server.scripted import SECRET
from tests.server.test_limits import LONG
from tests.server.test_resume import TEXT
from tests.server.test_speech import BROKEN, pcm_of_stream
from tests.server.tiny_server import STALL_S

HEAD = struct.Struct("<BBHIII")
PLENTY = 10_000


class Talk:
    """A client's side of a conversation."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self.connection = connection
        self.frames: list[tuple[int, int, int]] = []
        self.pcm = b""
        self.token: str | None = None

    def say(self, kind: str, **fields: Any) -> None:
        self.connection.send(json.dumps({"type": kind, **fields}))

    def hear(self) -> dict[str, Any] | None:
        """The next message; None for a frame, which is kept."""
        message = self.connection.recv()
        if isinstance(message, str):
            said: dict[str, Any] = json.loads(message)
            self.token = said.get("resume", self.token)
            return said
        assert len(message) <= 16_384
        version, flags, head_bytes, *place = HEAD.unpack_from(message)
        assert (version, flags, head_bytes) == (1, 0, 16)
        self.frames.append((place[0], place[1], place[2]))
        self.pcm += message[head_bytes:]
        return None

    def until(self, *kinds: str) -> dict[str, Any]:
        while True:
            said = self.hear()
            if said is not None and said["type"] in kinds:
                return said

    @property
    def last_id(self) -> str:
        return f"{self.frames[-1][0]}.{self.frames[-1][1]}"


@contextmanager
def talking(server: RunningServer, **options: Any) -> Iterator[Talk]:
    connection = websocket.create_connection(
        f"ws://127.0.0.1:{server.port}/v1/audio/speech/ws", timeout=60, suppress_origin=True, **options
    )
    # Itself, as the library leaves it open where the goodbye fails
    with connection.sock:
        yield Talk(connection)
        connection.close()


def test_frames_are_tagged_with_segment_chunk_and_time_and_hold_the_stream(
    server: RunningServer, engine: Engine
) -> None:
    with talking(server) as talk:
        talk.say("speak", input=TEXT, credit=PLENTY)
        started = talk.until("started")
        done = talk.until("done")
    assert (started["format"], started["sample_rate"]) == ("pcm", 24_000)
    assert talk.pcm == pcm_of_stream(engine, TEXT)
    assert talk.frames == [
        (chunk.segment_id, chunk.chunk_id, round(1000 * chunk.start_s))
        for chunk in engine.stream(TEXT, voice="hum")
    ]
    assert set(done["usage"]) == {"input_tokens", "output_tokens", "total_tokens"}
    assert server.status()["active"] == 0


@pytest.mark.parametrize("fields", [{"response_format": "mp3"}, {"sample_rate": 44_100}])
def test_what_an_encoder_holds_back_is_sent_before_the_end(
    server: RunningServer, fields: dict[str, Any]
) -> None:
    with talking(server) as talk:
        talk.say("speak", input="Hello.", credit=PLENTY, **fields)
        assert talk.until("done", "keepalive")["type"] == "done"
        assert talk.pcm


def test_one_connection_speaks_one_text_after_another(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        for text in ("Hello.", "And again, this is it.", "Hello."):
            talk.pcm = b""
            talk.say("speak", input=text, credit=PLENTY)
            talk.until("done")
            assert talk.pcm == pcm_of_stream(engine, text)


def test_what_is_not_followed_or_substituted_is_told(server: RunningServer) -> None:
    with talking(server) as talk:
        fields = {"lang_code": "es-MX", "instructions": "Whisper.", "credit": PLENTY}
        talk.say("speak", input=":)", **fields)
        started, done = talk.until("started"), talk.until("done")
        assert started["ignored"] == ["instructions"]
        for message in (started, done):
            assert (message["fallbacks"]["text"], message["fallbacks"]["language"]) == (1, 1)
        assert len(talk.pcm) == 2 * 2400
        talk.say("speak", input=" ", credit=PLENTY)
        assert talk.until("error")["error"]["param"] == "input"


def test_words_are_told_on_request(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        talk.say("speak", input="Hello there.", credit=PLENTY, timestamps=True)
        words = talk.until("words")["words"]
    stream = engine.stream("Hello there.", voice="hum")
    for _ in stream:
        pass
    assert [(w["text"], w["start"], w["start_s"]) for w in words] == [
        (t.text, t.start, t.start_s) for t in stream.timings
    ]


def test_no_more_is_sent_than_credit_was_granted_for(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        talk.say("speak", input=TEXT, credit=7)
        while len(talk.frames) < 7:
            talk.hear()
        talk.connection.settimeout(STALL_S / 2)
        with pytest.raises(websocket.WebSocketTimeoutException):
            talk.hear()
        talk.connection.settimeout(60)
        talk.say("credit", frames=PLENTY)
        talk.until("done")
    assert talk.pcm == pcm_of_stream(engine, TEXT)


def test_a_client_that_grants_nothing_for_too_long_is_told_and_cut_and_may_come_back(
    server: RunningServer, engine: Engine
) -> None:
    with talking(server) as talk:
        talk.say("speak", input=TEXT, credit=9)
        error = talk.until("error")["error"]
        assert (error["code"], "resume" in error["message"]) == ("cancelled", True)
        assert talk.connection.recv_data(control_frame=True)[0] == websocket.ABNF.OPCODE_CLOSE
    assert server.status()["active"] == 0
    with talking(server) as again:
        again.say("resume", input=TEXT, resume=talk.token, last_id=talk.last_id, credit=PLENTY)
        again.until("done")
    assert talk.pcm + again.pcm == pcm_of_stream(engine, TEXT)


def test_a_client_that_does_not_read_is_cut_and_the_next_one_is_served(server: RunningServer) -> None:
    small = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)]
    with talking(server, sockopt=small) as talk:
        talk.say("speak", credit=PLENTY, **LONG)
        wait_until(lambda: server.status()["active"] == 1)
        started_s = time.monotonic()
        wait_until(lambda: server.status()["active"] == 0)
        assert time.monotonic() - started_s > STALL_S / 2, "given up before it had its time"
        assert httpx2.post(server.speech_url, json={"input": "Hello."}).status_code == 200
    wait_until(lambda: "was cut off" in server.log.read_text())


def test_a_client_that_leaves_frees_its_slot(server: RunningServer) -> None:
    before = server.status()["requests"]["cancelled"]
    with talking(server) as talk:
        talk.say("speak", credit=PLENTY, **LONG)
        talk.until("started")
    wait_until(lambda: server.status()["active"] == 0)
    assert server.status()["requests"]["cancelled"] == before + 1


def test_cancel_stops_and_the_connection_goes_on(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        talk.say("speak", credit=PLENTY, **LONG)
        talk.until("segment")
        talk.say("cancel")
        assert talk.until("error")["error"]["code"] == "cancelled"
        assert server.status()["active"] == 0
        talk.pcm = b""
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("done")
    assert talk.pcm == pcm_of_stream(engine, "Hello.")


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with one slot, for which one may wait."""
    with running(tmp_path_factory.mktemp("patient"), concurrency=1, queue=2) as found:
        yield found


@contextmanager
def slowly_heard(talk: Talk) -> Iterator[None]:
    """Inside, `talk` holds a slot: it is granted a frame now and then of a text that has many."""
    talk.say("speak", input=TEXT * 5, credit=1)
    talk.until("segment")
    over = threading.Event()

    def grant() -> None:
        while not over.wait(STALL_S / 10):
            talk.say("credit", frames=1)

    granting = threading.Thread(target=grant)
    granting.start()
    try:
        yield
    finally:
        over.set()
        granting.join()


def waiting(server: RunningServer) -> bool:
    return bool(server.status()["waiting"])


@pytest.mark.parametrize("instead", [False, True])
def test_what_waits_for_its_turn_hears_a_cancel_and_makes_way_for_another_text(
    patient: RunningServer, engine: Engine, instead: bool
) -> None:
    with talking(patient) as first, talking(patient) as second, slowly_heard(first):
        second.say("speak", input="Never to be heard.", credit=PLENTY)
        wait_until(lambda: waiting(patient))
        second.say("credit", frames=3)
        second.say(*(["speak"] if instead else ["cancel"]), **({"input": "Hello."} if instead else {}))
        error = second.until("error")["error"]
        assert error["code"] == "cancelled"
        first.say("cancel")
        assert first.until("error")["error"]["code"] == "cancelled"
        if not instead:
            assert not waiting(patient)
            second.say("speak", input="Hello.", credit=PLENTY)
        second.say("credit", frames=PLENTY)
        second.until("done")
    assert second.pcm == pcm_of_stream(engine, "Hello.")


def test_a_second_text_takes_the_place_of_the_first(server: RunningServer, engine: Engine) -> None:
    with talking(server) as talk:
        talk.say("speak", credit=PLENTY, **LONG)
        talk.until("segment")
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("started")
        talk.pcm = b""
        talk.until("done")
    assert talk.pcm == pcm_of_stream(engine, "Hello.")
    assert server.status()["active"] == 0


def test_it_is_stopped_by_its_id_and_by_the_same_client_elsewhere(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", credit=PLENTY, client="two-handed", **LONG)
        stream_id = talk.until("started")["id"]
        assert httpx2.delete(f"{server.speech_url}/{stream_id}").status_code == 200
        assert talk.until("error")["error"]["code"] == "cancelled"
        talk.say("speak", credit=PLENTY, client="two-handed", **LONG)
        talk.until("segment")
        body = {"input": "Hello.", "client": "two-handed"}
        with ThreadPoolExecutor(1) as elsewhere:  # a client that does not read meanwhile is cut off
            answer = elsewhere.submit(httpx2.post, server.speech_url, json=body)
            assert talk.until("error")["error"]["code"] == "cancelled"
            assert answer.result().status_code == 200


def test_a_failure_is_an_error_and_the_connection_goes_on(server: RunningServer) -> None:
    before = server.status()["requests"]["failed"]
    with talking(server) as talk:
        talk.say("speak", input=BROKEN, credit=PLENTY)
        error = talk.until("error")["error"]
        assert (error["type"], error["code"]) == ("server_error", "internal_error")
        assert SECRET not in error["message"]
        assert talk.pcm
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("done")
    assert server.status()["requests"]["failed"] == before + 1


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("nonsense", None),
        ("[]", None),
        (b"\x00\x01", None),
        ('{"type": "sing"}', "type"),
        ("{}", "type"),
        ('{"type": "speak"}', "input"),
        ('{"type": "speak", "input": " "}', "input"),
        ('{"type": "speak", "text": " "}', "text"),
        ('{"type": "speak", "input": "Hello.", "voice": "nobody"}', "voice"),
        ('{"type": "speak", "input": "Hello.", "stream_format": "sse"}', "stream_format"),
        ('{"type": "speak", "input": "Hello.", "credit": 0}', "credit"),
        ('{"type": "speak", "input": "Hello.", "credit": true}', "credit"),
        ('{"type": "credit"}', "frames"),
        ('{"type": "credit", "frames": -1}', "frames"),
        ('{"type": "resume", "input": "Hello."}', "last_id"),
        ('{"type": "resume", "input": "Hello.", "last_id": "x", "resume": "k1"}', "last_id"),
    ],
)
def test_a_wrong_message_is_answered_with_what_is_wrong_and_nothing_else_happens(
    server: RunningServer, message: str | bytes, param: str | None
) -> None:
    with talking(server) as talk:
        if isinstance(message, bytes):
            talk.connection.send_binary(message)
        else:
            talk.connection.send(message)
        error = talk.until("error")["error"]
        assert (error["type"], error["param"]) == ("invalid_request_error", param)
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("done")
    assert server.status()["active"] == 0


def test_a_token_of_another_text_is_gone(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", input="Hello.", credit=PLENTY)
        talk.until("done")
        talk.say("resume", input="Hullo.", resume=talk.token, last_id=talk.last_id)
        assert talk.until("error")["error"]["code"] == "stream_gone"


@pytest.mark.test_all
def test_streams_cut_at_random_go_on_over_another_connection(server: RunningServer, engine: Engine) -> None:
    pcm = pcm_of_stream(engine, TEXT)
    choice = random.Random(11)
    for _ in range(20):
        cut = choice.randrange(1, len(pcm) // 2400)
        with talking(server) as talk:
            talk.say("speak", input=TEXT, credit=cut)
            while len(talk.frames) < cut:
                talk.hear()
        wait_until(lambda: server.status()["active"] == 0)
        with talking(server) as again:
            again.say("resume", input=TEXT, resume=talk.token, last_id=talk.last_id, credit=PLENTY)
            again.until("done")
        assert talk.pcm + again.pcm == pcm
