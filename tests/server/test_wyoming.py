"""Wyoming, with the client of its own package: what Home Assistant hears, and what it is told."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from flask import Flask
from wyoming.client import AsyncTcpClient
from wyoming.event import Event, read_event, write_event
from wyoming.info import Describe, Info
from wyoming.ping import Ping
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice

from kokoro_lab import __version__
from kokoro_lab.server.health.lifecycle import begin_to_stop
from kokoro_lab.server.wyoming import conversation
from kokoro_lab.server.wyoming.conversation import WyomingConversation
from kokoro_lab.speech.engine import Engine
from kokoro_lab.text import growing
from kokoro_lab.weights.voices import reading_voices
from tests.server.conftest import CONCURRENCY, state_of, wait_until
from tests.server.scripted import SECRET, Scripted
from tests.server.test_limits import LONG
from tests.server.test_resume import TEXT
from tests.server.test_speech import BROKEN, pcm_of_stream
from tests.server.wyoming_client import Heard, answer, end, live, talk, whole, write
from tests.speech.test_live import LATIN, cut_at_random

THREE = (
    "The kettle is on, and the window is open, though it is cold. Nobody in the house knows why that is so. "
    "It is late in the evening, and the street has been empty since the shops closed at nine o'clock."
)
Open = Callable[[Flask], int]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Has an application speak Wyoming, as the worker does; says on which port."""
    with ExitStack() as stack:

        def open_for(app: Flask) -> int:
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def converse(connection: socket.socket) -> None:
                with connection, app.app_context():
                    WyomingConversation(connection, state_of(app)).run()

            def accept() -> None:
                while True:
                    try:
                        connection, _ = listener.accept()
                    except OSError:
                        return
                    threading.Thread(target=converse, args=(connection,), daemon=True).start()

            threading.Thread(target=accept, daemon=True).start()
            stack.callback(lambda: listener.shutdown(socket.SHUT_RDWR))
            port: int = listener.getsockname()[1]
            return port

        yield open_for


@pytest.fixture
def port(app: Flask, opened: Open) -> int:
    return opened(app)


# ------------------------------------------------------------------------------------- what it says of itself


def test_it_describes_its_voices_by_language(port: int) -> None:
    said = answer(port, Describe().event())
    assert said is not None
    (program,) = Info.from_event(said).tts
    assert (program.name, program.version, program.installed) == ("kokoro-lab", __version__, True)
    assert program.supports_synthesize_streaming
    assert [voice.name for voice in program.voices] == list(reading_voices())
    by_name = {voice.name: voice for voice in program.voices}
    assert by_name["af_heart"].languages == ["en-US"]
    assert by_name["bf_emma"].languages == ["en-GB"]
    assert by_name["ff_siwis"].languages == ["fr"]
    assert by_name["pf_dora"].languages == ["pt-BR"]
    assert by_name["af_heart"].description == "Heart (en-us, female)"
    assert all(v.attribution.url and v.version and v.installed for v in program.voices)


def test_who_pings_hears_pong_and_other_events_are_left_unanswered(port: int) -> None:
    async def work(client: AsyncTcpClient) -> Event | None:
        await client.write_event(Event("detect", {"names": ["hey"]}, payload=b"\n{"))
        await client.write_event(Ping("there?").event())
        return await client.read_event()

    pong = talk(port, work)
    assert pong is not None
    assert (pong.type, pong.data["text"]) == ("pong", "there?")


# ------------------------------------------------------------------------------------------------- speech


@pytest.mark.parametrize("text", [TEXT, *LATIN])
def test_whole_and_in_strings_of_any_length_a_text_is_the_same_speech(
    port: int, engine: Engine, text: str
) -> None:
    expected = pcm_of_stream(engine, text)
    said = whole(port, text)
    assert said.kinds == ["audio-start", "audio-chunk", "audio-stop"]
    assert said.pcm == expected
    said = live(port, cut_at_random(text, len(text)))
    assert said.kinds == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]
    assert said.pcm == expected


def test_the_first_words_are_heard_before_the_last_ones_are_written(port: int, engine: Engine) -> None:
    async def work(client: AsyncTcpClient) -> Heard:
        await write(client, [THREE[:-1]])
        heard = await Heard().listen(client, "audio-chunk")
        await client.write_event(SynthesizeChunk(THREE[-1:]).event())
        await end(client, THREE)
        return await heard.listen(client, "synthesize-stopped")

    assert talk(port, work).pcm == pcm_of_stream(engine, THREE)


@pytest.mark.parametrize("pieces", [[], [" "]])
def test_a_text_that_comes_in_no_chunk_is_spoken_as_a_whole(
    port: int, engine: Engine, pieces: list[str]
) -> None:
    async def work(client: AsyncTcpClient) -> Heard:
        await write(client, pieces)
        await end(client, THREE)
        return await Heard().listen(client, "synthesize-stopped")

    assert talk(port, work).pcm == pcm_of_stream(engine, THREE)


def test_one_connection_speaks_one_text_after_another(port: int, engine: Engine) -> None:
    async def work(client: AsyncTcpClient) -> list[Heard]:
        await client.write_event(Synthesize("One.").event())  # each waits for the one before it
        await write(client, ["Two", " and a half."])
        await end(client, "Two and a half.")
        await client.write_event(Synthesize("Three.").event())
        untils = ("audio-stop", "synthesize-stopped", "audio-stop")
        return [await Heard().listen(client, until) for until in untils]

    said = [heard.pcm for heard in talk(port, work)]
    assert said == [pcm_of_stream(engine, text) for text in ("One.", "Two and a half.", "Three.")]


def test_more_is_written_than_may_wait_to_be_spoken(
    make_app: Callable[..., Flask], opened: Open, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "LEAST_ROOM_CHARS", 300)
    text = "This sentence is one of many. " * 30
    said = live(opened(make_app(max_input_chars=300)), cut_at_random(text, 5))
    assert said.error is None
    assert said.pcm == pcm_of_stream(engine, text)


def test_ssml_is_read_as_such(port: int, engine: Engine) -> None:
    document = '<speak>One. <break time="300ms"/> Two.</speak>'
    assert whole(port, document, text_format="ssml").pcm == pcm_of_stream(
        engine, document, input_format="ssml"
    )
    assert whole(port, "# One", text_format="markdown").pcm == pcm_of_stream(
        engine, "# One", input_format="markdown"
    )


@pytest.mark.parametrize(
    ("asked", "voice"),
    [
        ({"name": "hum_high"}, "hum_high"),
        ({"name": "kokoro", "speaker": "hum_high"}, "hum_high"),
        ({"name": "af_alloy"}, "af_alloy"),
        ({"name": "hum_high", "language": "es"}, "hum_high"),
        ({"language": "en-US"}, "hum"),
        ({"language": "en_GB"}, "bf_alice"),
        ({"language": "es-MX"}, "ef_dora"),
        ({}, "hum"),
    ],
)
def test_a_voice_is_found_by_name_speaker_or_language(
    port: int, caplog: pytest.LogCaptureFixture, asked: dict[str, str], voice: str
) -> None:
    with caplog.at_level(logging.INFO, "kokoro_lab.server.requests.account"):
        event = Event("synthesize", {"text": "Hello.", "voice": asked})
        first = answer(port, event)
        assert first is not None
        assert first.type == "audio-start"
        wait_until(lambda: bool(caplog.records))
    (fields,) = (record.fields for record in caplog.records)  # type: ignore[attr-defined]
    assert (fields["transport"], fields["voice"].split("(")[0]) == ("wyoming", voice)


# ---------------------------------------------------------------------------------------------- what is wrong


def told(port: int, data: bytes) -> Event:
    """The error that these bytes are answered with, behind which the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        reader = connection.makefile("rb")
        connection.sendall(data)
        said = read_event(reader)
        assert said is not None
        assert said.type == "error"
        assert reader.read() == b""
        return said


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "is not JSON in UTF-8"),
        (b"\xff\xfe\n", "is not JSON in UTF-8"),
        (b"[1]\n", "JSON, but not an object"),
        (b"{}\n", "This is no event of Wyoming"),
        (b'{"type": 3}\n', "This is no event of Wyoming"),
        (b'{"type": "describe", "data": [1]}\n', "This is no event of Wyoming"),
        (b'{"type": "describe", "data_length": -1}\n', "a line of JSON: type"),
        (b'{"type": "describe", "data_length": true}\n', "a line of JSON: type"),
        (b'{"type": "describe", "payload_length": 99999999999}\n', "or it is too long"),
        (b'{"type": "describe", "data_length": 3}\n[1]', "data of an event is JSON, but not an object"),
        (b"x" * 400_000, "or it is too long"),
    ],
)
def test_what_is_no_event_is_refused_with_words(port: int, data: bytes, words: str) -> None:
    error = told(port, data)
    assert error.data["code"] == "invalid_parameter"
    assert words in error.data["text"]
    assert "Allowed: " in error.data["text"]


@pytest.mark.parametrize(
    ("events", "code", "words"),
    [
        ([Synthesize("Hello.", SynthesizeVoice("af_hart"))], "unknown_voice", "Allowed: hum, hum_high"),
        ([Synthesize("Hello.", SynthesizeVoice(language="tlh"))], "unsupported_language", "Allowed: en-us"),
        ([Synthesize(" \n")], "invalid_text", "at least one letter"),
        ([Synthesize("word " * 5000)], "invalid_text", "Send it in parts."),
        ([Synthesize("Hello.", text_format="html")], "invalid_parameter", "text, ssml, markdown"),
        ([Event("synthesize")], "invalid_parameter", "Allowed: a string"),
        ([Event("synthesize", {"text": "Hello.", "voice": "hum"})], "invalid_parameter", "name, language"),
        ([SynthesizeStart(text_format="ssml")], "invalid_parameter", "plain text"),
        ([SynthesizeChunk("Hello.")], "invalid_parameter", "synthesize-start, synthesize-chunk"),
        ([SynthesizeStop()], "invalid_parameter", "synthesize-start, synthesize-chunk"),
        ([SynthesizeStart(), SynthesizeStart()], "invalid_parameter", "in this order"),
        ([SynthesizeStart(), Event("synthesize-chunk", {"text": 3})], "invalid_parameter", "a string"),
        ([SynthesizeStart(), SynthesizeStop()], "invalid_text", "nothing to speak"),
    ],
)
def test_what_cannot_be_spoken_is_said_with_how_to_mend_it(
    app: Flask, port: int, events: list[Any], code: str, words: str
) -> None:
    async def work(client: AsyncTcpClient) -> Heard:
        for each in events:
            await client.write_event(each if isinstance(each, Event) else each.event())
        return await Heard().listen(client, "nothing")

    heard = talk(port, work)
    assert heard.kinds == ["error", "left"], "who waits for sound is not left waiting"
    assert heard.error is not None
    assert heard.error.code == code
    assert words in heard.error.text
    wait_until(lambda: state_of(app).slots.active == 0)


def test_what_breaks_is_said_behind_what_was_heard_and_quotes_no_text(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    heard = whole(port, BROKEN)
    assert heard.kinds == ["audio-start", "audio-chunk", "error", "left"]
    assert heard.error is not None
    assert heard.error.code == "internal_error"
    assert SECRET not in heard.error.text
    wait_until(lambda: "failed" in caplog.text)
    assert SECRET not in caplog.text


def test_a_language_that_cannot_be_read_here_says_what_is_missing(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "reading_voices", lambda: ("af_heart",))
    heard = whole(port, "Hello.", voice=SynthesizeVoice(language="hi"))
    assert heard.error is not None
    assert heard.error.code == "unsupported_language"
    assert "No voice reads hi here" in heard.error.text


# ------------------------------------------------------------------------- who leaves, lingers, or waits


def test_a_client_that_leaves_ends_the_computing(app: Flask, port: int, decoder: Scripted) -> None:
    async def work(client: AsyncTcpClient) -> None:
        await client.write_event(Synthesize(LONG["input"]).event())
        await Heard().listen(client, "audio-chunk")

    before = decoder.decoded
    talk(port, work)
    wait_until(lambda: state_of(app).slots.active == 0, 10)
    after = decoder.decoded
    time.sleep(0.3)
    assert decoder.decoded == after < before + 50


def test_a_client_that_leaves_before_its_text_has_ended_gives_its_slot_back(app: Flask, port: int) -> None:
    async def work(client: AsyncTcpClient) -> None:
        await write(client, ["The kettle is on.\n\nThe"])
        await Heard().listen(client, "audio-chunk")
        with suppress(TimeoutError):  # until nothing more is sent, whose sending could fail
            while True:
                await asyncio.wait_for(client.read_event(), 0.7)

    talk(port, work)
    wait_until(lambda: state_of(app).slots.active == 0, 10)


def test_a_client_that_leaves_while_it_waits_for_its_turn_waits_no_more(
    make_app: Callable[..., Flask], opened: Open, decoder: Scripted
) -> None:
    app = make_app(concurrency=1, queue=1)
    port, slots = opened(app), state_of(app).slots
    decoder.gate.clear()
    with ExitStack() as stack:
        for _ in range(2):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            write_event(Synthesize("Hello.").event(), connection.makefile("wb"))
        wait_until(lambda: slots.waiting == 1)
    wait_until(lambda: slots.waiting == 0, 10)
    decoder.gate.set()
    wait_until(lambda: slots.active == 0, 10)


@pytest.mark.test_all
def test_computing_waits_for_a_client_that_reads_slowly(port: int, engine: Engine, decoder: Scripted) -> None:
    text = LONG["input"][:1500]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(60)
        before = decoder.decoded
        write_event(Synthesize(text).event(), connection.makefile("wb"))
        last = -1
        while last < decoder.decoded:  # until nothing more is computed
            last = decoder.decoded
            time.sleep(0.3)
        held = decoder.decoded - before
        reader, pcm = connection.makefile("rb"), b""
        while (event := read_event(reader)) is not None and event.type != "audio-stop":
            pcm += event.payload or b""
        assert held < (decoder.decoded - before) / 2
    assert pcm == pcm_of_stream(engine, text)


def test_a_client_that_reads_nothing_loses_its_slot(app: Flask, opened: Open) -> None:
    app.config["STALL_S"] = 0.5
    with socket.create_connection(("127.0.0.1", opened(app))) as connection:
        write_event(Synthesize(LONG["input"]).event(), connection.makefile("wb"))
        wait_until(lambda: state_of(app).slots.active == 1)
        wait_until(lambda: state_of(app).slots.active == 0, 20)


def test_two_speak_at_once_and_a_third_is_told_to_come_back(
    app: Flask, port: int, engine: Engine, decoder: Scripted
) -> None:
    decoder.gate.clear()
    heard: list[Heard] = []
    listening = [
        threading.Thread(target=lambda: heard.append(whole(port, TEXT)), daemon=True)
        for _ in range(CONCURRENCY)
    ]
    for each in listening:
        each.start()
    wait_until(lambda: state_of(app).slots.active == CONCURRENCY)
    refused = whole(port, TEXT).error
    assert refused is not None
    assert (refused.code, "no more can be served in time" in refused.text) == (
        "rate_limit_exceeded",
        True,
    )
    decoder.gate.set()
    for each in listening:
        each.join(60)
    assert [each.pcm for each in heard] == [pcm_of_stream(engine, TEXT)] * CONCURRENCY


def test_a_writer_who_writes_no_more_is_not_waited_for(
    app: Flask, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "IDLE_S", 0.3)

    async def work(client: AsyncTcpClient) -> Heard:
        await write(client, ["The kettle is on.\n\nThe"])
        return await Heard().listen(client, "nothing")

    heard = talk(port, work)
    assert heard.kinds == ["audio-start", "audio-chunk", "error", "left"]
    assert heard.error is not None
    assert "Send synthesize-stop" in heard.error.text
    assert state_of(app).slots.active == 0


def test_a_connection_over_which_nothing_is_said_is_closed(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "IDLE_S", 0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        assert connection.recv(1) == b""


def test_who_speaks_when_the_server_stops_is_told_and_who_is_silent_is_let_go(app: Flask, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as idle:

        async def work(client: AsyncTcpClient) -> Heard:
            await write(client, ["The kettle is on.\n\nThe"])
            heard = await Heard().listen(client, "audio-chunk")
            begin_to_stop(state_of(app), 0.5)
            return await heard.listen(client, "nothing")

        heard = talk(port, work)
        assert heard.error is not None
        assert heard.error.code == "server_stopping"
        assert idle.recv(1) == b""


def test_the_log_holds_a_line_for_each_speech_and_no_text(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        whole(port, f"The word is {SECRET}.")
        live(port, [f"The word is {SECRET}.", " It is."])
        told(port, f"{SECRET}\n".encode())
        wait_until(lambda: caplog.text.count("completed") == 2 and "invalid" in caplog.text)
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps([str(record.__dict__) for record in caplog.records])
