"""`POST /v1/audio/speech` in every format: each the speech of the request, named as what it is."""

from __future__ import annotations

from typing import get_args

import av
import numpy as np
import pytest
from flask.testing import FlaskClient

from kokoro_lab.containers import Format, content_type, decoded_hz
from kokoro_lab.speech.engine import Engine
from tests.containers.decoding import at_rate, correlation, decoded, lag_of, level_db
from tests.server.conftest import RunningServer
from tests.server.scripted import Scripted

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."
KINDS: tuple[Format, ...] = get_args(Format)
PRIMER_S = 0.050


def compare(data: bytes, kind: Format, engine: Engine, *, streamed: bool) -> None:
    """Whether `data` is `TEXT`, as the engine speaks it, after no more silence than the format has."""
    heard = decoded(data, kind)
    spoken = (
        np.concatenate([c.samples for c in engine.stream(TEXT, voice="hum")])
        if streamed
        else engine.synthesize(TEXT, voice="hum").samples
    )
    reference = at_rate(spoken, heard.rate_hz)
    lag = lag_of(heard.samples, reference)
    assert (PRIMER_S if streamed else 0) <= lag / heard.rate_hz < PRIMER_S * streamed + 0.05
    candidate = heard.samples[lag : lag + len(reference)]
    assert len(candidate) == len(reference)
    assert correlation(candidate, reference) > 0.98
    assert level_db(candidate, reference) == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "file"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_format_is_the_speech_of_the_request(
    client: FlaskClient, engine: Engine, kind: Format, streamed: bool
) -> None:
    answer = client.post(
        URL, json={"input": TEXT, "voice": "hum", "response_format": kind, "stream": streamed}
    )
    rate_hz = decoded_hz(kind, 24_000)
    assert answer.content_type == content_type(kind, rate_hz)
    assert answer.headers["X-Sample-Rate"] == str(rate_hz)
    assert "X-Kokoro-Ignored" not in answer.headers
    assert streamed or answer.content_length == len(answer.data)
    compare(answer.data, kind, engine, streamed=streamed)


@pytest.mark.parametrize(("sample_rate", "ignored"), [(44_100, "sample_rate"), (48_000, None)])
def test_opus_has_one_rate_and_says_so(client: FlaskClient, sample_rate: int, ignored: str | None) -> None:
    answer = client.post(URL, json={"input": "Hello.", "response_format": "opus", "sample_rate": sample_rate})
    assert answer.headers["X-Sample-Rate"] == "48000"
    assert answer.headers.get("X-Kokoro-Ignored") == ignored


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_begins_before_anything_is_computed(
    client: FlaskClient, decoder: Scripted, kind: Format
) -> None:
    decoder.gate.clear()
    try:
        answer = client.post(URL, json={"input": TEXT, "response_format": kind}, buffered=False)
        assert answer.status_code == 200
        head = next(iter(answer.response))
    finally:
        decoder.gate.set()
    assert bool(head) == (kind != "aac")  # two frames, of which the primer is not yet one and a half
    answer.close()


@pytest.mark.parametrize("stream", [True, False])
def test_a_format_that_is_not_installed_is_said_before_anything_is_computed(
    client: FlaskClient, decoder: Scripted, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    def unknown(name: str, mode: str) -> None:
        raise av.codec.codec.UnknownCodecError(name)

    monkeypatch.setattr(av, "Codec", unknown)
    before = decoder.decoded
    answer = client.post(URL, json={"input": TEXT, "response_format": "mp3", "stream": stream})
    assert answer.status_code == 500
    assert answer.json["error"]["code"] == "format_unavailable"
    assert answer.json["error"]["param"] == "response_format"
    assert answer.headers["x-should-retry"] == "false"
    assert decoder.decoded == before
    assert client.get("/status").json["active"] == 0


def test_the_openai_sdk_gets_every_format(server: RunningServer, engine: Engine) -> None:
    with server.openai() as sdk:
        for kind in KINDS:
            with sdk.audio.speech.with_streaming_response.create(
                model="tts-1", input=TEXT, voice="hum", response_format=kind
            ) as answer:
                assert answer.headers["content-type"] == content_type(kind, 24_000)
                compare(b"".join(answer.iter_bytes()), kind, engine, streamed=True)
        answer_without = sdk.audio.speech.create(model="tts-1", input=TEXT, voice="hum")
    compare(answer_without.content, "mp3", engine, streamed=True)
