"""Any length of chunks that the row allows, by every transport: the same samples, cut as was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from tests.server.conftest import RunningServer
from tests.server.events import ServerEvent, audio_of
from tests.server.test_resume import BODY, came_back, events_of, ids, rest, whole
from tests.server.test_speech import URL
from tests.server.test_websocket_conversation import PLENTY, talking

LENGTHS_MS = (30, 47, 50, 80, 120)


def lengths_ms(events: list[ServerEvent]) -> set[float]:
    """Of all chunks but the last."""
    deltas = [audio_of([event]) for event in events if event.kind == "speech.audio.delta"]
    return {1000 * len(delta) / 2 / SAMPLE_RATE_HZ for delta in deltas[:-1]}


@pytest.mark.parametrize("chunk_ms", LENGTHS_MS)
def test_events_hold_chunks_of_that_length_and_the_same_samples(client: FlaskClient, chunk_ms: int) -> None:
    plain = audio_of(whole(client))
    answer = client.post(URL, json={**BODY, "chunk_ms": chunk_ms})
    events = events_of(answer.text)
    assert lengths_ms(events) == {chunk_ms}
    assert audio_of(events) == plain
    assert answer.headers["X-Kokoro-Chunk-Ms"] == str(chunk_ms)
    assert chunk_ms < int(answer.headers["X-Kokoro-Pre-Buffer-Ms"]) <= 150


def test_a_stream_of_bytes_is_sent_in_them(client: FlaskClient) -> None:
    asked = {"input": BODY["input"], "response_format": "pcm", "chunk_ms": 120}
    answer = client.post(URL, json=asked, buffered=False)
    sizes = [len(data) for data in answer.response if data][1:-1]  # behind the primer
    assert set(sizes) == {120 * SAMPLE_RATE_HZ // 1000 * 2}
    assert answer.headers["X-Kokoro-Chunk-Ms"] == "120"


@pytest.mark.parametrize("mode", ["reduce-ttfa", "avoid-underrun"])
def test_no_mode_and_no_profile_changes_what_was_asked(make_app: Callable[..., Flask], mode: str) -> None:
    for settings in ({"degrade": mode}, {"buffer_profile": "safe"}):
        client = make_app(**settings).test_client()
        assert lengths_ms(whole(client, chunk_ms=60)) == {60}
    assert client.get("/status").json["degrade"]["pre_buffer_ms"] == 150, "what `safe` advises"


@pytest.mark.parametrize("wrong", [29, 121, 0, -50, 50.5, "fifty", True, [50]])
def test_any_other_is_refused_with_what_would_have_been_right(client: FlaskClient, wrong: Any) -> None:
    answer = client.post(URL, json={**BODY, "chunk_ms": wrong})
    assert answer.status_code == 400
    error = answer.json["error"]
    assert error["param"] == "chunk_ms"
    if isinstance(wrong, int) and not isinstance(wrong, bool):
        assert "30 to 120" in error["message"]


@pytest.mark.parametrize("wrong", [0.1, 5])
def test_both_ends_of_a_speed_are_named_too(client: FlaskClient, wrong: float) -> None:
    assert "0.25 to 4" in client.post(URL, json={**BODY, "speed": wrong}).json["error"]["message"]


def test_a_number_with_a_point_will_do(client: FlaskClient) -> None:
    assert lengths_ms(whole(client, chunk_ms=80.0)) == {80}


def test_a_file_has_no_chunks_and_says_that_the_field_was_not_heeded(client: FlaskClient) -> None:
    for more in ({"stream": False}, {"stream": False, "timestamps": True}):
        answer = client.post(URL, json={"input": "Hello.", "chunk_ms": 60, **more})
        assert answer.headers["X-Kokoro-Ignored"] == "chunk_ms"


def test_a_stream_is_resumed_in_the_chunks_that_it_began_with(client: FlaskClient) -> None:
    deltas = [event for event in whole(client, chunk_ms=80) if event.id]
    for cut in (1, len(deltas) // 2, len(deltas) - 1):
        for fields in ({"chunk_ms": 80}, {}):
            again = rest(client, deltas[:cut], **fields)
            assert ids(deltas[:cut]) + ids(again) == ids(deltas)
            assert audio_of(deltas[:cut]) + audio_of(again) == audio_of(deltas)
    other = client.post(URL, json={**BODY, "chunk_ms": 50, **came_back(deltas[:3])})
    assert other.status_code == 400
    assert other.json["error"]["param"] == "chunk_ms"
    assert "Allowed: 80." in other.json["error"]["message"]


def test_without_a_token_ids_count_chunks_of_the_length_that_is_asked_for(client: FlaskClient) -> None:
    deltas = [event for event in whole(client, chunk_ms=120) if event.id]
    answer = client.post(URL, json={**BODY, "chunk_ms": 120}, headers={"Last-Event-ID": str(deltas[9].id)})
    assert audio_of(events_of(answer.text)) == audio_of(deltas[10:])


def test_a_websocket_has_them_too_and_says_so(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", input="The kettle is on, and the window is open.", chunk_ms=40, credit=PLENTY)
        started = talk.until("started")
        assert (started["chunk_ms"], started["pre_buffer_ms"]) == (40, 120)
        talk.until("done")
        assert {b[2] - a[2] for a, b in zip(talk.frames[:-1], talk.frames[1:], strict=True)} == {40}
        talk.say("speak", input="Hello.", chunk_ms=20)
        refused = talk.until("error")["error"]
        assert refused["param"] == "chunk_ms"
        assert "30 to 120" in refused["message"]


def test_the_schema_says_what_is_allowed(client: FlaskClient) -> None:
    schemas = client.get("/openapi.json").json["components"]["schemas"]
    field = schemas["SpeechRequest"]["properties"]["chunk_ms"]
    assert field["anyOf"][0] == {"type": "integer", "minimum": 30, "maximum": 120}
