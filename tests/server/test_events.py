"""Speech as server-sent events: OpenAI's shape, the same bytes as raw audio, errors and stalls told."""

from __future__ import annotations

import threading
from typing import Any

import httpx2
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.speech.engine import Engine
from tests.server.conftest import RunningServer, wait_until
from tests.server.events import ServerEvent, audio_of, read_events
from tests.server.scripted import SECRET, SLOW_S
from tests.server.test_speech import BROKEN, PRIMER_BYTES, TEXT, URL, WAV_HEADER_BYTES, pcm_of_stream, refused

USAGE = {"input_tokens", "output_tokens", "total_tokens"}


def events(client: FlaskClient, **fields: Any) -> list[ServerEvent]:
    answer = client.post(URL, json={"input": TEXT, "stream_format": "sse", **fields})
    assert answer.status_code == 200, answer.json
    assert answer.content_type == "text/event-stream; charset=utf-8"
    return list(read_events(answer.text.split("\n")))


def test_the_deltas_are_the_stream_in_pcm_and_the_last_event_is_done(
    client: FlaskClient, engine: Engine
) -> None:
    *deltas, done = events(client)
    assert {event.kind for event in deltas} == {"speech.audio.delta"}
    assert audio_of(deltas) == pcm_of_stream(engine, TEXT)
    assert done.kind == "speech.audio.done"
    assert set(done.data["usage"]) == USAGE


def test_usage_is_phoneme_ids_read_and_frames_of_25_ms_spoken(client: FlaskClient, engine: Engine) -> None:
    done = events(client)[-1]
    stream = engine.stream(TEXT, voice="hum")
    samples = sum(len(chunk.samples) for chunk in stream)
    read = sum(len(segment.token_ids) for segment in stream.segments)
    spoken = round(samples / 600)
    assert done.data["usage"] == {
        "input_tokens": read,
        "output_tokens": spoken,
        "total_tokens": read + spoken,
    }


def test_one_stream_after_another_is_computed_by_the_thread_that_has_the_memory(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, seen = engine.decoder.decode, []

    def noted(*given: Any, **named: Any) -> Any:
        seen.append(threading.get_native_id())  # another kind of number is given again
        return decode(*given, **named)

    monkeypatch.setattr(engine.decoder, "decode", noted)
    for number in ("One", "Two", "Three"):
        events(client, input=f"{number} is a number.")
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert threading.get_native_id() not in seen


def test_ids_are_segment_and_chunk_and_chunks_count_up_by_one(client: FlaskClient, engine: Engine) -> None:
    ids = [event.id for event in events(client) if event.id is not None]
    assert ids == [f"{chunk.segment_id}.{chunk.chunk_id}" for chunk in engine.stream(TEXT, voice="hum")]


@pytest.mark.parametrize("rate_hz", [22_050, 48_000])
def test_events_hold_the_same_bytes_as_raw_audio(client: FlaskClient, rate_hz: int) -> None:
    raw = client.post(URL, json={"input": TEXT, "response_format": "pcm", "sample_rate": rate_hz}).data
    primer = 2 * round(0.050 * rate_hz)
    assert audio_of(events(client, sample_rate=rate_hz)) == raw[primer:]


def test_wav_in_events_is_a_header_and_the_pcm(client: FlaskClient) -> None:
    wav = audio_of(events(client, response_format="wav"))
    raw = client.post(URL, json={"input": TEXT, "response_format": "wav"}).data
    assert wav == raw[:WAV_HEADER_BYTES] + raw[WAV_HEADER_BYTES + PRIMER_BYTES :]


def test_an_error_behind_the_first_byte_is_an_event_in_the_shape_of_openai(client: FlaskClient) -> None:
    *heard, last = events(client, input=BROKEN)
    assert audio_of(heard)
    assert (last.name, set(last.data)) == ("error", {"error"})
    assert set(last.data["error"]) == {"message", "type", "param", "code"}
    assert (last.data["error"]["type"], last.data["error"]["code"]) == ("server_error", "internal_error")
    assert SECRET not in last.data["error"]["message"]
    status = client.get("/status").json
    assert (status["active"], status["requests"]["failed"]) == (0, 1)


def test_a_wrong_request_has_a_status_and_no_events(client: FlaskClient) -> None:
    assert refused(client, {"input": " ", "stream_format": "sse"})["param"] == "input"


def test_marks_alone_are_events_of_100_ms(client: FlaskClient) -> None:
    *heard, done = events(client, input="...", timestamps=True)
    assert len(audio_of(heard)) == 2 * 2400
    assert {event.data["type"] for event in heard} == {"speech.audio.delta"}
    assert done.data["usage"] == {"input_tokens": 0, "output_tokens": 4, "total_tokens": 4}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"stream_format": "sse", "stream": False}, "stream"),
        ({"timestamps": True, "stream": True}, "timestamps"),
        ({"timestamps": "yes"}, "timestamps"),
        ({"last_id": "0.1"}, "last_id"),
        ({"resume": "k1"}, "resume"),
        ({"stream_format": "sse", "resume": "k1"}, "last_id"),
        ({"stream_format": "sse", "last_id": "0-1"}, "last_id"),
        ({"stream_format": "sse", "last_id": "latest"}, "last_id"),
        ({"stream_format": "sse", "last_id": "-1.4"}, "last_id"),
        ({"client": ""}, "client"),
        ({"client": "two words"}, "client"),
        ({"client": "x" * 65}, "client"),
        ({"client": 7}, "client"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(
    client: FlaskClient, fields: dict[str, Any], param: str
) -> None:
    assert refused(client, {"input": TEXT, **fields})["param"] == param
    assert client.get("/status").json["active"] == 0


# ------------------------------------------------------------------------------------- timestamps


def test_words_come_with_offsets_into_the_text_and_the_times_of_the_clip(
    client: FlaskClient, engine: Engine
) -> None:
    told = [event.data for event in events(client, timestamps=True) if event.kind == "speech.audio.words"]
    stream = engine.stream(TEXT, voice="hum")
    for _ in stream:
        pass
    assert [event["segment_id"] for event in told] == [segment.segment_id for segment in stream.segments]
    words = [word for event in told for word in event["words"]]
    assert [(w["start"], w["end"], w["start_s"], w["end_s"]) for w in words] == [
        (t.start, t.end, t.start_s, t.end_s) for t in stream.timings
    ]
    assert TEXT[words[1]["start"] : words[1]["end"]] == "first"


def test_words_are_told_on_request_only(client: FlaskClient) -> None:
    assert "speech.audio.words" not in {event.kind for event in events(client)}


def test_a_file_with_timestamps_is_json_that_holds_both(client: FlaskClient, engine: Engine) -> None:
    body = {"input": TEXT, "response_format": "wav"}
    for fields in ({"timestamps": True}, {"timestamps": True, "stream": False}):
        answer = client.post(URL, json={**body, **fields})
        assert answer.content_type == "application/json"
        said = ServerEvent(None, None, answer.json)
        assert said.audio == client.post(URL, json={**body, "stream": False}).data
        assert [word["text"] for word in answer.json["words"]] == [
            timing.text for timing in engine.synthesize(TEXT, voice="hum").timings
        ]
        assert answer.json["words"][-1]["end_s"] <= answer.json["duration_s"]
        assert set(answer.json["usage"]) == USAGE


def test_marks_of_ssml_come_with_the_words(client: FlaskClient) -> None:
    document = "<speak>One <mark name='here'/>two.<break/><mark name='end'/></speak>"
    fields = {"input": document, "input_format": "ssml", "timestamps": True}
    words = [e.data for e in events(client, **fields) if e.kind == "speech.audio.words"]
    marks = [mark for event in words for mark in event.get("marks", ())]
    whole = client.post(URL, json={**fields, "stream": False, "response_format": "wav"}).json
    assert [(mark["name"], mark["start"]) for mark in marks] == [("here", 11), ("end", 42)]
    assert marks == whole["marks"]
    assert marks[0]["start_s"] == whole["words"][1]["start_s"]
    assert "marks" not in client.post(URL, json={"input": TEXT, "timestamps": True}).json


# ------------------------------------------------------------------------------- a running server


def sse(server: RunningServer, **fields: Any) -> list[ServerEvent]:
    with httpx2.stream("POST", server.speech_url, json={"stream_format": "sse", **fields}) as answer:
        assert answer.status_code == 200
        return list(read_events(answer.iter_lines()))


@pytest.mark.test_all
def test_an_error_event_ends_an_answer_that_is_whole_as_http(server: RunningServer) -> None:
    assert sse(server, input=BROKEN)[-1].name == "error"
    assert sse(server, input="Hello.")[-1].kind == "speech.audio.done"
    wait_until(lambda: server.status()["active"] == 0)


def test_while_computing_stalls_the_connection_is_kept_alive_and_that_is_counted(
    app: Flask, client: FlaskClient, engine: Engine
) -> None:
    app.config["KEEPALIVE_S"] = SLOW_S / 4
    text = f"{TEXT} This is a slow one, which takes its time."
    speech = pcm_of_stream(engine, text)
    before = client.get("/status").json["stalls"]
    lines = client.post(URL, json={"input": text, "stream_format": "sse"}).text.split("\n")
    assert ": still computing" in lines
    assert audio_of(read_events(lines)) == speech
    after = client.get("/status").json["stalls"]
    assert after > before
    raw = client.post(URL, json={"input": text, "response_format": "pcm"}).data
    silence = len(raw) - len(speech) - PRIMER_BYTES
    assert silence > 0
    assert silence % PRIMER_BYTES == 0
    assert client.get("/status").json["stalls"] - after == silence // PRIMER_BYTES
