"""The request log of the `kokoro-lab serve` that users start: a JSON object a line, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from simple_websocket import Client

from tests.installed.command import Installed, Served

SECRET = "quincunx"
TEXT = f"The {SECRET} of apple trees stands behind the house."
FIELDS = {
    "request_id", "outcome", "code", "characters", "sha256", "queue_s", "ttfa_s", "ttfb_s", "rtf", "text_s",
    "gc_s", "cpu_s", "provider_path", "chunk_ms", "pre_buffer_ms", "held_back_ms", "underruns", "total_s",
    "shared",
}  # fmt: skip


def url(served: Served) -> str:
    return f"{served.url}/v1/audio/speech"


def line_of(served: Served, request_id: str) -> dict[str, Any]:
    """The one line of that request. It is written when the request ends, so it may come in a moment."""
    served.awaited(rf'"event": "request", "request_id": "{request_id}"', 30)
    (found,) = [entry for entry in served.lines() if entry.get("request_id") == request_id]
    assert found.keys() >= FIELDS
    assert found["event"] == "request"
    return found


def test_a_stream_leaves_a_line_with_its_figures(served: Served) -> None:
    request_id = uuid4().hex
    answer = served.speak(TEXT, headers={"X-Request-Id": request_id})
    found = line_of(served, request_id)
    assert answer.headers["X-Request-Id"] == request_id
    assert (found["outcome"], found["transport"], found["streamed"]) == ("completed", "stream", True)
    assert found["characters"] == len(TEXT)
    assert found["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()[:16]
    assert found["provider_path"].endswith("CPUExecutionProvider")
    assert str(found["chunk_ms"]) == answer.headers["X-Kokoro-Chunk-Ms"]
    assert str(found["pre_buffer_ms"]) == answer.headers["X-Kokoro-Pre-Buffer-Ms"]
    assert found["total_s"] >= found["ttfa_s"] > 0
    for figure in ("rtf", "text_s", "cpu_s"):
        assert found[figure] > 0, figure
    for figure in ("gc_s", "queue_s", "underruns"):
        assert found[figure] >= 0, figure


def test_a_file_leaves_a_line(served: Served) -> None:
    request_id = uuid4().hex
    served.speak(TEXT, stream=False, headers={"X-Request-Id": request_id})
    found = line_of(served, request_id)
    assert (found["outcome"], found["transport"], found["chunk_ms"]) == ("completed", "file", None)
    assert found["rtf"] > 0


def test_events_leave_a_line(served: Served) -> None:
    request_id = uuid4().hex
    served.speak(TEXT, stream_format="sse", response_format="pcm", headers={"X-Request-Id": request_id})
    assert line_of(served, request_id)["transport"] == "events"


def test_what_is_spoken_over_a_websocket_leaves_a_line(served: Served) -> None:
    request_id = uuid4().hex
    address = url(served).replace("http:", "ws:") + "/ws"
    client = Client.connect(address, headers={"X-Request-Id": request_id})
    client.send(json.dumps({"type": "speak", "input": TEXT, "credit": 10_000}))
    while True:
        message = client.receive(timeout=60)
        assert message is not None
        if isinstance(message, str) and json.loads(message)["type"] == "done":
            break
    client.close()
    found = line_of(served, request_id)
    assert (found["outcome"], found["transport"]) == ("completed", "websocket")
    assert found["rtf"] > 0


def test_a_refused_one_leaves_a_line_with_the_same_fields(served: Served) -> None:
    request_id = uuid4().hex
    answer = served.speak(TEXT, speed=9, headers={"X-Request-Id": request_id})
    found = line_of(served, request_id)
    assert answer.status_code == 400
    assert (found["outcome"], found["code"], found["ttfa_s"]) == ("invalid", "invalid_parameter", None)


def test_one_that_is_stopped_leaves_a_line(served: Served) -> None:
    request_id = uuid4().hex
    with httpx2.stream(
        "POST",
        url(served),
        json={"input": f"{TEXT} " * 100, "response_format": "wav"},
        headers={"X-Request-Id": request_id},
        timeout=60,
    ) as answer:
        body = answer.iter_raw()
        next(body)
        assert httpx2.delete(f"{url(served)}/{request_id}", timeout=60).status_code == 200
        with pytest.raises(httpx2.RemoteProtocolError):
            list(body)
    found = line_of(served, request_id)
    assert (found["outcome"], found["code"], found["characters"]) == ("cancelled", "cancelled", 5300)


def test_nothing_but_json_is_written_and_never_a_text(served: Served) -> None:
    request_id = uuid4().hex
    served.speak(f"<speak>{SECRET}<break time='{SECRET}'/></speak>", input_format="ssml")
    for field in ("voice", "model", "language", "client", "response_format", SECRET):
        served.speak(TEXT, **{field: SECRET})
    served.speak(TEXT, headers={"X-Request-Id": request_id})
    line_of(served, request_id)
    assert "gunicorn.error" in {line["logger"] for line in served.lines()}, "the start, too"
    assert SECRET not in served.written()


@pytest.fixture(scope="module")
def told_as_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("text")
    with Installed(folder).serving(KOKORO_LOG_FORMAT="text", KOKORO_VERBOSE_LOGS="1") as server:
        yield server


def test_as_text_every_line_is_for_people(told_as_text: Served) -> None:
    told_as_text.speak(TEXT, headers={"X-Request-Id": "for-people"})
    told_as_text.awaited(r"INFO [a-z_.]+\.account: for-people completed event=request", 30)
    written = told_as_text.written()
    line = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: .+\n"
    told_as_text.awaited(rf"\A({line})+\Z", 5)
    assert " ttfa_s=0." in written
    assert SECRET not in written
