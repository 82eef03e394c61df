"""What one request may take: seconds of a file, silence, memory."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.server.conftest import ROOT
from tests.server.memory_of_requests import FILE_MB_A_SECOND, REQUEST_MB, REQUESTS, WAYS

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."


@pytest.mark.parametrize("extra", [{}, {"timestamps": True}])
def test_a_file_has_a_longest_duration_and_a_stream_has_none(
    make_app: Callable[..., Flask], extra: dict[str, Any]
) -> None:
    client = make_app(max_file_s=2.0).test_client()
    answer = client.post(URL, json={"input": TEXT, "stream": False, **extra})
    error = answer.json["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_text", "input")
    assert "longer than 2 s. Allowed: up to 2 s in one file. Have it streamed" in error["message"]
    assert client.post(URL, json={"input": "The kettle.", "stream": False, **extra}).status_code == 200
    answer = client.post(URL, json={"input": TEXT, "response_format": "pcm"})
    assert len(answer.data) > 2 * 48_000


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3"])
def test_json_that_holds_a_file_holds_the_file(client: FlaskClient, kind: str) -> None:
    body = {"input": TEXT, "stream": False, "response_format": kind}
    answer = client.post(URL, json={**body, "timestamps": True})
    assert int(answer.headers["Content-Length"]) == len(answer.data)
    described = json.loads(answer.data)
    assert base64.b64decode(described["audio"], validate=True) == client.post(URL, json=body).data
    assert len(described["words"]) > 10


def test_breaks_beyond_the_bound_are_refused_with_their_place(client: FlaskClient) -> None:
    breaks = "\n".join(["<break time='10s'/>"] * 600)
    answer = client.post(URL, json={"input": f"<speak>a{breaks}b</speak>", "input_format": "ssml"})
    error = answer.json["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_ssml", "input")
    assert "Line 7, column 1" in error["message"]
    assert "up to 60s of breaks in a row, and up to 600s in a document" in error["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from Linux' /proc")
@pytest.mark.parametrize(
    ("request_name", "way"),
    [
        pytest.param(name, way, marks=() if (name, way) == ("breaks", "stream") else pytest.mark.test_all)
        for name in REQUESTS
        for way in WAYS
    ],
)
def test_the_memory_of_a_request_is_bounded(request_name: str, way: str, tmp_path: Path) -> None:
    """Beside what the model itself takes for a segment: here it hums."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.server.memory_of_requests", str(tmp_path), request_name, way],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["status"] == 200
    bound_mb = REQUEST_MB + (0.0 if way == "stream" else FILE_MB_A_SECOND * found["audio_s"])
    assert found["grown_mb"] < bound_mb
