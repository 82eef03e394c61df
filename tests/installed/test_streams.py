"""Streams of `kokoro-lab serve`, as its clients see them."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx2
import numpy as np
import pytest

from tests.installed.command import READY_S, Served

TEXT = "The kettle is on, and the window is open."


def events(served: Served, **fields: Any) -> tuple[httpx2.Response, list[bytes]]:
    """The answer, and the audio of each of its events."""
    body = {"input": TEXT, "stream_format": "sse", "response_format": "pcm", **fields}
    answer = httpx2.post(f"{served.url}/v1/audio/speech", json=body, timeout=READY_S)
    said = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    return answer, [base64.b64decode(data["audio"]) for data in said if "audio" in data]


@pytest.mark.parametrize("chunk_ms", [30, 75, 120])
def test_chunks_are_as_long_as_asked_and_hold_the_same_samples(served: Served, chunk_ms: int) -> None:
    answer, chunks = events(served, chunk_ms=chunk_ms)
    assert {len(chunk) for chunk in chunks[:-1]} == {chunk_ms * 48}
    assert answer.headers["X-Kokoro-Chunk-Ms"] == str(chunk_ms)
    assert 100 <= int(answer.headers["X-Kokoro-Pre-Buffer-Ms"]) <= 150
    assert b"".join(chunks) == b"".join(events(served)[1])


def test_other_chunks_are_refused_with_the_range(served: Served) -> None:
    refused = served.speak(TEXT, chunk_ms=121)
    assert refused.status_code == 400
    assert "30 to 120" in refused.json()["error"]["message"]


def test_shaped_noise_is_other_noise_of_the_same_speech(served: Served) -> None:
    white, shaped = (served.speak(TEXT, dither=kind, stream=False) for kind in ("tpdf", "shaped"))
    first, second = (np.frombuffer(answer.content[44:], "<i2").astype(int) for answer in (white, shaped))
    assert first.shape == second.shape
    assert 0 < np.abs(first - second).max() < 12
    ignored = served.speak(TEXT, dither="shaped", response_format="mp3")
    assert ignored.headers["X-Kokoro-Ignored"] == "dither"
