"""Noise shaping over HTTP: what is asked for is what is sent, and where it has no effect that is said."""

from __future__ import annotations

import pytest
from flask.testing import FlaskClient

from kokoro_lab.containers.pcm import pcm_bytes
from kokoro_lab.dsp import Resampler, ShapedDither
from kokoro_lab.speech.engine import Engine
from tests.server.test_resume import BODY, came_back, whole
from tests.server.test_speech import URL

TEXT = "The kettle is on, and the window is open."


@pytest.mark.parametrize("rate_hz", [24_000, 48_000])
@pytest.mark.parametrize("stream", [True, False])
def test_pcm_is_shaped_if_it_is_asked_for(
    client: FlaskClient, engine: Engine, stream: bool, rate_hz: int
) -> None:
    asked = {"input": TEXT, "response_format": "pcm", "sample_rate": rate_hz, "stream": stream}
    answer = client.post(URL, json={**asked, "dither": "shaped"})
    samples = engine.stream(TEXT, streamed=stream).joined().samples
    expected = pcm_bytes(ShapedDither(0, rate_hz).run(Resampler(24_000, rate_hz).run(samples)))
    assert answer.data.endswith(expected)  # a stream has its primer before it
    assert "X-Kokoro-Ignored" not in answer.headers
    white = client.post(URL, json=asked).data
    assert white == client.post(URL, json={**asked, "dither": "tpdf"}).data != answer.data


def test_a_format_that_is_not_of_16_bit_says_that_it_was_not_heeded(client: FlaskClient) -> None:
    for kind, ignored in (("mp3", "dither"), ("opus", "dither"), ("flac", None), ("wav", None)):
        answer = client.post(URL, json={"input": TEXT, "response_format": kind, "dither": "shaped"})
        assert answer.headers.get("X-Kokoro-Ignored") == ignored


def test_any_other_is_refused(client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": TEXT, "dither": "none"})
    assert answer.status_code == 400
    assert "tpdf, shaped" in answer.json["error"]["message"]


def test_white_and_shaped_are_two_streams(client: FlaskClient) -> None:
    deltas = [event for event in whole(client, dither="shaped") if event.id]
    answer = client.post(URL, json={**BODY, "dither": "tpdf", **came_back(deltas[:9])})
    assert answer.status_code == 410
