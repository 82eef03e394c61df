"""ElevenLabs' two WebSockets: what its clients write is spoken as by our own, and every end is told."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_args

import pytest
import websocket
from flask import Flask

from kokoro_lab.datatypes import WordTiming
from kokoro_lab.server.http.elevenlabs import OutputFormat, alignment_of
from kokoro_lab.speech.engine import Engine
from tests.clients.listening import no_room, samples_of
from tests.server.conftest import RunningServer, wait_until
from tests.server.test_resume import TEXT
from tests.server.test_speech import BROKEN, pcm_of_stream
from tests.server.test_websocket_conversation import PLENTY, talking
from tests.speech.test_live import LATIN, cut_at_random


class Listener:
    """A client's side of either WebSocket."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self.connection = connection
        self.audio: dict[str | None, bytes] = {}
        self.alignments: dict[str | None, list[dict[str, Any]]] = {}

    def say(self, **fields: Any) -> None:
        self.connection.send(json.dumps(fields))

    def hear(self) -> dict[str, Any]:
        code, data = self.connection.recv_data()
        if code == websocket.ABNF.OPCODE_CLOSE:
            return {"closed": int.from_bytes(data[:2], "big"), "reason": data[2:].decode()}
        said: dict[str, Any] = json.loads(data)
        if said.get("audio") is not None:
            context = said.get("contextId")
            self.audio[context] = self.audio.get(context, b"") + base64.b64decode(said["audio"])
            assert said["normalizedAlignment"] == said["alignment"]
            if said["alignment"]:
                self.alignments.setdefault(context, []).append(said["alignment"])
        return said

    def until(self, name: str) -> dict[str, Any]:
        """The next message that says something by this name; before it, nothing ends."""
        while True:
            said = self.hear()
            if said.get(name):
                return said
            assert "closed" not in said, said


@contextmanager
def listening(
    server: RunningServer, kind: str = "stream-input", query: str = "", voice: str = "hum", **options: Any
) -> Iterator[Listener]:
    query = query or "output_format=pcm_24000"
    address = f"ws://127.0.0.1:{server.port}/v1/text-to-speech/{voice}/{kind}?{query}"
    connection = websocket.create_connection(address, timeout=60, suppress_origin=True, **options)
    with connection.sock:
        yield Listener(connection)
        connection.close()


def several(server: RunningServer, **options: Any) -> Any:
    return listening(server, "multi-stream-input", **options)


def spoken(server: RunningServer, *texts: str, query: str = "", **last: Any) -> Listener:
    with listening(server, query=query) as client:
        client.say(text=" ", voice_settings=None, generation_config={"chunk_length_schedule": [50]})
        for text in texts:
            client.say(text=text, try_trigger_generation=True, **last)
        client.say(text="")
        client.until("isFinal")
        assert client.hear()["closed"] == 1000
    return client


@pytest.mark.parametrize("text", [TEXT, LATIN[0], LATIN[1]])
def test_how_it_is_cut_changes_nothing(server: RunningServer, engine: Engine, text: str) -> None:
    assert spoken(server, *cut_at_random(text, 1)).audio[None] == pcm_of_stream(engine, text)
    wait_until(lambda: server.status()["active"] == 0)


def test_a_flush_is_that_of_our_own_words(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", live=True, credit=PLENTY)
        for text in ("The kettle is on, and ", "the window is open. "):
            talk.say("append", text=text)
            talk.say("flush")
        talk.say("end")
        talk.until("done")
    texts = ("The kettle is on, and ", "the window is open. ")
    assert spoken(server, *texts, flush=True).audio[None] == talk.pcm
    assert spoken(server, *texts, query="output_format=pcm_24000&auto_mode=true").audio[None] == talk.pcm


def test_the_speed_is_heeded_and_what_is_not_is_named(server: RunningServer, engine: Engine) -> None:
    with listening(server, query="output_format=pcm_24000&model_id=eleven_flash_v2_5&seed=7") as client:
        client.say(text=" ", voice_settings={"speed": 2.0, "stability": 0.5, "style": None})
        client.say(text="Hello there. ", voice_settings={"speed": 2.0})
        client.say(text="")
        assert client.until("isFinal")["ignored"] == ["model", "seed", "stability"]
    assert client.audio[None] == pcm_of_stream(engine, "Hello there.", speed=2.0)


def test_it_is_heard_before_its_end_is_written(server: RunningServer) -> None:
    with listening(server) as client:
        client.say(text="The kettle is on.\n\nThe window is")
        client.until("audio")
        client.say(text=" open. ")
        client.say(text="")
        client.until("isFinal")


@pytest.mark.parametrize("name", get_args(OutputFormat))
def test_a_format_that_is_named_is_sent(server: RunningServer, name: str) -> None:
    kind, rate, *_ = name.split("_")
    audio = spoken(server, "Hello there. ", query=f"output_format={name}").audio[None]
    if kind == "pcm":
        assert len(audio) / 2 / int(rate) == pytest.approx(
            len(spoken(server, "Hello there. ").audio[None]) / 2 / 24_000, abs=0.01
        )
    else:
        assert len(samples_of(kind, audio)) > 12_000
        assert audio[:3] in (b"Ogg", b"ID3", b"\xff\xfb\x90") or audio[:2] == b"\xff\xfb"


def test_without_a_format_it_is_elevenlabs_own(server: RunningServer) -> None:
    named = spoken(server, "Hello there. ", query="output_format=mp3_44100_128").audio
    assert spoken(server, "Hello there. ", query="model_id=kokoro").audio == named


# ------------------------------------------------------------------------------------------ alignment


def test_every_character_is_aligned_and_times_follow_one_another(
    server: RunningServer, engine: Engine
) -> None:
    client = spoken(server, *cut_at_random(TEXT, 2))
    alignments = client.alignments[None]
    written = " " + TEXT
    assert "".join(char for each in alignments for char in each["chars"]) == written
    assert len(alignments) > 3
    at_ms, starts_s = 0, []
    for each in alignments:
        starts, spans = each["charStartTimesMs"], each["charDurationsMs"]
        assert len(starts) == len(spans) == len(each["chars"])
        assert [start + span for start, span in zip(starts, spans, strict=True)][:-1] == starts[1:]
        starts_s += [(at_ms + start) / 1000 for start in starts]
        at_ms += starts[-1] + spans[-1]
    stream = engine.stream(TEXT, voice="hum")
    list(stream)
    for word in stream.timings:
        assert starts_s[word.start + 1] == pytest.approx(word.start_s, abs=0.002)


def test_alignment_begins_anew_with_each_context(server: RunningServer) -> None:
    with several(server) as client:
        for context in "ab":
            client.say(text="Hello there. ", context_id=context, flush=True)
            client.say(context_id=context, close_context=True)
            client.until("isFinal")
    assert client.alignments["a"] == client.alignments["b"]


def word(text: str, start: int, start_s: float, end_s: float, end: int | None = None) -> WordTiming:
    return WordTiming(text, start, start + len(text) if end is None else end, start_s, end_s, "", 0)


def test_inside_a_word_time_is_shared_evenly() -> None:
    found = alignment_of(
        "ab, cd. Next", [word("ab", 10, 1.1, 1.3), word("cd", 14, 1.4, 1.6)], first_char=10, start_s=1.0
    )
    assert "".join(found["chars"]) == "ab, cd. "
    assert found["charStartTimesMs"] == [100, 200, 300, 350, 400, 500, 600, 600]
    assert found["charDurationsMs"] == [100, 100, 50, 50, 100, 100, 0, 0]


def test_what_is_said_as_several_words_is_one_span_of_characters() -> None:
    words = [word("one", 0, 0.0, 0.2, 4), word("hundred", 0, 0.2, 0.3, 4), word("dollars", 0, 0.3, 0.4, 4)]
    assert alignment_of("$100", words, first_char=0, start_s=0.0)["charDurationsMs"] == [100] * 4


# ------------------------------------------------------------------------------------------- contexts


def test_contexts_are_spoken_one_behind_another_each_with_its_end(
    server: RunningServer, engine: Engine
) -> None:
    with several(server) as client:
        client.say(text=" ", context_id="a")
        client.say(text="The kettle is on. ", context_id="a")
        client.say(text="The window is open. ", context_id="b", voice_settings={"speed": 2.0})
        client.say(text="", context_id="b")  # it only says that one is still there
        client.say(context_id="b", flush=True)
        client.say(context_id="b", close_context=True)
        client.say(text="", flush=True, context_id="a")
        client.say(context_id="a", close_context=True)
        assert [client.until("isFinal")["contextId"] for _ in range(2)] == ["a", "b"]
        client.say(context_id="a", close_context=True)
        client.say(text="Once more. ", context_id="a", flush=True)
        client.say(close_socket=True)
        assert client.until("isFinal")["contextId"] == "a"
        assert client.hear()["closed"] == 1000
    assert client.audio["b"] == pcm_of_stream(engine, "The window is open.", speed=2.0)
    first, again = (pcm_of_stream(engine, text) for text in ("The kettle is on.", "Once more."))
    assert client.audio["a"] == first + again


def test_what_was_flushed_and_closed_is_spoken_before_the_connection_ends(
    server: RunningServer, engine: Engine
) -> None:
    texts = {"a": "The kettle is on. " * 3, "b": "The window is open."}
    with several(server) as client:
        for context, text in texts.items():
            client.say(text=text, context_id=context, flush=True)
            client.say(context_id=context, close_context=True)
        client.say(text="Nobody wants this.", context_id="c")
        client.say(close_socket=True)
        assert {client.until("isFinal")["contextId"] for _ in range(3)} == {"a", "b", "c"}
        assert client.hear()["closed"] == 1000
    assert client.audio == {context: pcm_of_stream(engine, text) for context, text in texts.items()}


def test_a_context_without_words_yet_lets_others_be_spoken(server: RunningServer) -> None:
    with several(server) as client:
        client.say(text=" ", context_id="a")
        for context in "bc":
            client.say(text="The window is open.", context_id=context, flush=True)
            client.say(context_id=context, close_context=True)
        assert [client.until("isFinal")["contextId"] for _ in range(2)] == ["b", "c"]
        client.say(text="The kettle is on.", context_id="a", flush=True)
        client.say(close_socket=True)
        assert client.until("isFinal")["contextId"] == "a"
    assert client.audio.keys() == {"a", "b", "c"}


def test_text_behind_the_end_is_refused_at_once(server: RunningServer) -> None:
    with listening(server) as client:
        client.say(text="And this is a slow one. " * 40)
        client.say(text="")
        client.say(text="")  # once more is no harm
        client.say(text="More. ")
        assert "Nothing is spoken after" in client.until("message")["message"]
        assert client.hear()["closed"] == 1008


def test_an_end_that_is_said_twice_is_one(server: RunningServer) -> None:
    with listening(server) as client:
        client.say(text="The kettle is on. " * 5)
        client.say(text="")
        client.say(text=" ")
        client.say(text="")
        client.until("isFinal")
        assert client.hear()["closed"] == 1000


def test_who_interrupts_closes_the_context_and_computing_ends(server: RunningServer) -> None:
    before = server.status()["requests"]["cancelled"]
    slow = "And this is a slow one. " * 12
    with several(server) as client:
        for context, flushed in (("unfinished", False), ("flushed", True)):
            client.say(text=slow, context_id=context, flush=flushed)
            client.until("audio")
            client.say(context_id=context, close_context=True)
            if flushed:  # it speaks on what was flushed, until it is closed once more
                client.until("audio")
                client.say(context_id=context, close_context=True)
            assert client.until("isFinal")["contextId"] == context
            wait_until(lambda: server.status()["active"] == 0, timeout_s=5)
        assert server.status()["requests"]["cancelled"] == before + 2


def test_a_context_that_waits_is_taken_back_and_disturbs_no_other(
    server: RunningServer, engine: Engine
) -> None:
    with several(server) as client:
        client.say(text="Here is a slow one, and then the end. ", context_id="a", flush=True)
        client.say(text="Never mind. ", context_id="b")
        client.say(context_id="b", close_context=True)
        assert client.until("isFinal")["contextId"] == "b"
        client.say(context_id="a", close_context=True)
        assert client.until("isFinal")["contextId"] == "a"
    assert client.audio == {"a": pcm_of_stream(engine, "Here is a slow one, and then the end.")}
    chars = "".join(char for each in client.alignments["a"] for char in each["chars"])
    assert chars == "Here is a slow one, and then the end. "


def test_who_leaves_in_the_midst_frees_the_slot(server: RunningServer) -> None:
    with listening(server) as client:
        client.say(text="And this is a slow one. " * 40)
        client.until("audio")
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)


def test_what_has_no_words_ends_without_speech(server: RunningServer) -> None:
    assert spoken(server, "  ").audio == {}
    with several(server) as client:
        client.say(text=" ", context_id="a")
        client.say(context_id="a", close_context=True)
        assert client.until("isFinal")["contextId"] == "a"
        client.say(close_socket=True)
        assert client.hear()["closed"] == 1000


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("query", "voice", "named"),
    [
        ("output_format=ulaw_8000", "hum", "'pcm_22050', 'pcm_24000'"),
        ("output_format=pcm_24000&inactivity_timeout=181", "hum", "inactivity_timeout"),
        ("output_format=pcm_24000&inactivity_timeout=soon", "hum", "inactivity_timeout"),
        ("output_format=pcm_24000&auto_mode=perhaps", "hum", "auto_mode"),
        ("output_format=pcm_24000&apply_text_normalization=off", "hum", "apply_text_normalization"),
        ("output_format=pcm_24000&sing=true", "hum", "sing"),
        ("output_format=pcm_24000", "21m00Tcm4TlvDq8ikWAM", "21m00Tcm4TlvDq8ikWAM"),
    ],
)
def test_what_the_address_must_not_say_is_told_and_the_connection_closed(
    server: RunningServer, query: str, voice: str, named: str
) -> None:
    with listening(server, query=query, voice=voice) as client:
        error = client.until("message")
        assert named in error["message"]
        assert error["error"]
        assert error["code"] == client.hear()["closed"] == 1008


@pytest.mark.parametrize(
    "message",
    [
        "nonsense",
        "[]",
        "{}",
        '{"text": 5}',
        '{"text": "a", "flush": 1}',
        '{"text": "a", "sing": true}',
        '{"text": "a", "voice_settings": {"warmth": 1}}',
        '{"text": "a", "voice_settings": {"speed": "fast"}}',
        '{"text": "a", "voice_settings": {"speed": 99}}',
        '{"text": "a", "generation_config": {"chunk_length_schedule": "soon"}}',
        '{"text": "a", "pronunciation_dictionary_locators": [{}]}',
        '{"text": "a", "context_id": "a"}',
        '{"close_socket": true}',
    ],
)
def test_a_wrong_message_is_told_and_the_connection_closed(server: RunningServer, message: str) -> None:
    with listening(server) as client:
        client.connection.send(message)
        assert client.until("message")["code"] == client.hear()["closed"] == 1008
    wait_until(lambda: server.status()["active"] == 0)


@pytest.mark.parametrize("kind", ["stream-input", "multi-stream-input"])
def test_a_wrong_message_within_speech_counts_as_what_it_is(server: RunningServer, kind: str) -> None:
    before = server.status()["requests"]
    with listening(server, kind) as client:
        client.say(text="And this is a slow one. " * 40, flush=True)
        client.until("audio")
        client.say(sing=1)
        assert client.until("message")["code"] == client.hear()["closed"] == 1008
    after = server.status()["requests"]
    assert (after["invalid"] - before["invalid"], after["cancelled"] - before["cancelled"]) == (1, 0)
    assert server.status()["active"] == 0


def test_the_settings_of_a_voice_do_not_change(server: RunningServer) -> None:
    with listening(server) as client:
        client.say(text=" ", voice_settings={"speed": 1.5})
        client.say(text="a ", voice_settings={"speed": 1.25})
        assert "first message alone" in client.until("message")["message"]


def test_ssml_is_not_read_as_text(server: RunningServer) -> None:
    with listening(server, query="output_format=pcm_24000&enable_ssml_parsing=true") as client:
        assert "Leave it out" in client.until("message")["message"]


@pytest.mark.parametrize("kind", ["stream-input", "multi-stream-input"])
def test_a_failure_in_the_midst_is_told(server: RunningServer, kind: str) -> None:
    with listening(server, kind) as client:
        client.say(text=BROKEN, flush=True)
        error = client.until("message")
        assert (error["error"], error["code"]) == ("internal_error", 1011)
        assert client.hear()["closed"] == 1011
        assert client.audio


def test_a_writer_who_says_nothing_for_too_long_is_told(server: RunningServer) -> None:
    for text in (" ", "The kettle is on. The"):
        with several(server, query="output_format=pcm_24000&inactivity_timeout=3") as client:
            client.say(text=text, context_id="a")
            for _ in range(8):  # in all, longer than the timeout
                time.sleep(0.4)
                client.say(text="", context_id="a")
            written_s = time.monotonic()
            error = client.until("message")
            assert (error["contextId"], error["code"]) == ("a", 1008)
            assert time.monotonic() - written_s > 1  # and not before: the last words count as well
    wait_until(lambda: server.status()["active"] == 0)


def test_a_server_without_room_says_so(server: RunningServer) -> None:
    with no_room(server), listening(server) as client:
        client.say(text="Hello. ")
        assert client.until("message")["code"] == client.hear()["closed"] == 1013


def test_the_key_comes_in_elevenlabs_header(make_app: Callable[..., Flask]) -> None:
    client = make_app(api_key="sesame").test_client()
    for headers, status in (
        ({"xi-api-key": "sesame"}, 426),
        ({"Authorization": "Bearer sesame", "xi-api-key": "theirs"}, 426),
        ({"xi-api-key": "theirs"}, 401),
        ({}, 401),
    ):
        answer = client.get("/v1/text-to-speech/hum/stream-input", headers=headers)
        assert answer.status_code == status


def test_no_more_than_five_contexts_wait(server: RunningServer) -> None:
    with several(server) as client:
        for context in "abcdef":
            client.say(text=" ", context_id=context)
        assert client.until("message")["message"].startswith("5 texts")


def test_more_than_can_wait_is_refused(server: RunningServer) -> None:
    with several(server) as client:
        client.say(text="The", context_id="a")
        for _ in range(5):
            client.say(text="word " * 1000, context_id="b")
        assert "characters wait" in client.until("message")["message"]
