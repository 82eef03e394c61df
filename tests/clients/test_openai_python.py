"""OpenAI's Python SDK, as its users call it. What a stream holds, byte by byte, is in tests/server."""

from __future__ import annotations

import asyncio

import httpx2
import openai
import pytest

from tests.clients.listening import FORMATS, SLOW, TEXT, assert_speech, no_room
from tests.server.conftest import RunningServer, wait_until


@pytest.mark.parametrize("kind", FORMATS)
def test_create_returns_the_whole_speech(server: RunningServer, kind: str) -> None:
    with server.openai() as sdk:
        answer = sdk.audio.speech.create(model="tts-1", input=TEXT, voice="hum", response_format=kind)
    assert_speech(kind, answer.content, server, TEXT)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_streaming_response_is_the_whole_speech(server: RunningServer, kind: str) -> None:
    with (
        server.openai() as sdk,
        sdk.audio.speech.with_streaming_response.create(
            model="tts-1", input=TEXT, voice="hum", speed=1.25, response_format=kind
        ) as answer,
    ):
        data = b"".join(answer.iter_bytes(1024))
    assert_speech(kind, data, server, TEXT, speed=1.25)


def test_the_asynchronous_client_hears_the_beginning_before_the_end(server: RunningServer) -> None:
    async def first_bytes() -> int:
        async with (
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any") as sdk,
            sdk.audio.speech.with_streaming_response.create(
                model="tts-1", input=SLOW, voice="hum", response_format="pcm"
            ) as answer,
        ):
            async for fragment in answer.iter_bytes(4800):
                assert server.status()["active"] == 1
                return len(fragment)
        return 0

    assert asyncio.run(first_bytes()) == 4800
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)


def test_leaving_the_block_stops_the_speech(server: RunningServer) -> None:
    before = server.status()["requests"]["cancelled"]
    with (
        server.openai() as sdk,
        sdk.audio.speech.with_streaming_response.create(
            model="tts-1", input=SLOW, voice="hum", response_format="pcm"
        ) as answer,
    ):
        next(answer.iter_bytes(4800))
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)
    assert server.status()["requests"]["cancelled"] == before + 1


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"voice": "nobody"}, "voice"),
        ({"speed": 9.0}, "speed"),
        ({"response_format": "midi"}, "response_format"),
        ({"extra_body": {"volume": 11}}, "volume"),
    ],
)
def test_what_is_wrong_with_a_request_is_named_and_it_is_sent_once(
    server: RunningServer, fields: dict[str, object], param: str
) -> None:
    before = server.status()["requests"]["total"]
    with server.openai(max_retries=2) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.audio.speech.create(**{"model": "tts-1", "input": TEXT, "voice": "hum", **fields})
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"
    assert server.status()["requests"]["total"] == before + 1


@pytest.mark.test_all
def test_a_busy_server_is_asked_again_as_often_as_the_client_likes(server: RunningServer) -> None:
    before = server.status()["requests"]["rejected"]
    with no_room(server), server.openai(max_retries=1) as sdk, pytest.raises(openai.RateLimitError):
        sdk.audio.speech.create(model="tts-1", input="Hello.", voice="hum")
    assert server.status()["requests"]["rejected"] == before + 2


@pytest.mark.test_all
def test_a_wrong_key_is_an_authentication_error_and_is_sent_once(locked: RunningServer) -> None:
    before = locked.status()["requests"]["invalid"]
    with locked.openai(max_retries=2) as sdk, pytest.raises(openai.AuthenticationError) as caught:
        sdk.audio.speech.create(model="tts-1", input=TEXT, voice="hum")
    assert caught.value.code == "invalid_api_key"
    assert locked.status()["requests"]["invalid"] == before + 1
    with openai.OpenAI(base_url=f"{locked.url}/v1", api_key="sesame") as sdk:
        assert sdk.audio.speech.create(model="tts-1", input="Hello.", voice="hum").content


def test_a_server_that_is_not_there_is_a_connection_error() -> None:
    with (
        openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="any", max_retries=0) as sdk,
        pytest.raises((openai.APIConnectionError, httpx2.HTTPError)),
    ):
        sdk.audio.speech.create(model="tts-1", input=TEXT, voice="hum")
