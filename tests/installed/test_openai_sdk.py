"""OpenAI's SDK against `kokoro-lab serve`: every parameter of its speech API, and every example of the page
for those who come from there."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import subprocess
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import openai
import pytest
from openai.types.audio import SpeechModel, speech_create_params

from tests.browser import require
from tests.installed.command import Served, clean_environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/from-openai.md").read_text("utf-8")
URL = "http://127.0.0.1:8880"
TEXT = "The kettle is on."
MAGIC = {"mp3": b"\xff", "opus": b"OggS", "aac": b"\xff", "flac": b"fLaC", "wav": b"RIFF", "pcm": b""}
PRIMER_BYTES = 2400
"""50 ms of silence in front of a stream."""


@pytest.fixture
def sdk(served: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="unused", max_retries=0) as client:
        yield client


def asked(sdk: openai.OpenAI, **fields: Any) -> Any:
    """The answer, with its headers."""
    return sdk.audio.speech.with_raw_response.create(
        **{"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm", **fields}
    )


def test_the_sdk_has_no_parameter_that_is_not_tested_here() -> None:
    assert set(speech_create_params.SpeechCreateParams.__annotations__) == {
        *("input", "model", "voice", "instructions", "response_format", "speed", "stream_format")
    }
    assert set(MAGIC) == {"mp3", "opus", "aac", "flac", "wav", "pcm"}


@pytest.mark.parametrize("kind", MAGIC)
def test_response_format(sdk: openai.OpenAI, kind: str) -> None:
    data = asked(sdk, response_format=kind).content
    assert data.startswith(MAGIC[kind])
    assert len(data) > 5000


def test_the_default_format_is_mp3(sdk: openai.OpenAI) -> None:
    answer = sdk.audio.speech.with_raw_response.create(model="tts-1", voice="alloy", input=TEXT)
    assert answer.headers["Content-Type"] == "audio/mpeg"


@pytest.mark.parametrize("model", [*get_args(SpeechModel)[:3], "kokoro"])
def test_model(sdk: openai.OpenAI, model: str) -> None:
    answer = asked(sdk, model=model)
    assert answer.content
    assert "X-Kokoro-Ignored" not in answer.headers


def test_the_models_are_listed(sdk: openai.OpenAI) -> None:
    assert {"tts-1", "tts-1-hd", "gpt-4o-mini-tts", "kokoro"} <= {model.id for model in sdk.models.list()}


VOICES = dict(re.findall(r"\| `([a-z]+)` \| `([ab][fm]_[a-z]+)` ", PAGE))


def test_the_page_has_all_voices() -> None:
    (_, names, _) = get_args(speech_create_params.Voice)
    assert set(VOICES) == set(get_args(names))


@pytest.mark.parametrize("voice", VOICES)
def test_voice(sdk: openai.OpenAI, voice: str) -> None:
    answer = asked(sdk, voice=voice, input="Hi.")
    assert answer.headers["X-Kokoro-Voice"] == VOICES[voice]
    assert len(answer.content) > PRIMER_BYTES + 5000


def test_a_voice_may_be_an_object(sdk: openai.OpenAI) -> None:
    assert asked(sdk, voice={"id": "alloy"}).content == asked(sdk, voice="alloy").content


def test_instructions_are_not_followed_and_that_is_said(sdk: openai.OpenAI) -> None:
    answer = asked(sdk, instructions="Whisper.")
    assert answer.headers["X-Kokoro-Ignored"] == "instructions"
    assert answer.content == asked(sdk).content


@pytest.mark.parametrize("text", [TEXT, "When he came back, the house was quiet. Nobody had lit the fire."])
def test_speed(sdk: openai.OpenAI, text: str) -> None:
    def length(speed: float) -> int:
        return len(asked(sdk, input=text, voice="af_heart", speed=speed).content) - PRIMER_BYTES

    plain = length(1.0)
    for speed in (0.25, 0.5, 1.5, 2.0, 4.0):
        assert length(speed) * speed / plain == pytest.approx(1.0, abs=0.1), speed


@pytest.mark.parametrize("model", ["tts-1", "gpt-4o-mini-tts"])
def test_stream_format_sse(sdk: openai.OpenAI, model: str) -> None:
    with sdk.audio.speech.with_streaming_response.create(
        model=model, voice="alloy", input=TEXT, stream_format="sse"
    ) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")]
    *deltas, done = map(json.loads, lines)
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["total_tokens"] == done["usage"]["input_tokens"] + done["usage"]["output_tokens"] > 0


def test_stream_format_audio_and_the_helpers_for_streams(sdk: openai.OpenAI, tmp_path: Path) -> None:
    fields: Any = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm"}
    with sdk.audio.speech.with_streaming_response.create(**fields, stream_format="audio") as answer:
        parts = [*answer.iter_bytes(4800)]
    with sdk.audio.speech.with_streaming_response.create(**fields) as answer:
        answer.stream_to_file(tmp_path / "speech.pcm")
    sdk.audio.speech.create(**fields).write_to_file(tmp_path / "whole.pcm")
    assert {len(part) for part in parts[:-1]} == {4800}
    assert b"".join(parts) == (tmp_path / "speech.pcm").read_bytes() == (tmp_path / "whole.pcm").read_bytes()


def test_the_asynchronous_client(served: Served, sdk: openai.OpenAI) -> None:
    async def spoken() -> bytes:
        async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="unused") as client:
            answer = await client.audio.speech.create(
                model="tts-1", voice="alloy", input=TEXT, response_format="pcm"
            )
            return await answer.aread()

    assert asyncio.run(spoken()) == asked(sdk).content


def test_more_than_4096_characters_are_taken(sdk: openai.OpenAI) -> None:
    text = TEXT + " " * 4096 + "So."
    assert asked(sdk, input=text).content == asked(sdk, input=f"{TEXT} So.").content


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": ""}, "input"),
        ({"input": " \n"}, "input"),
        ({"input": "a " * 30_000}, "input"),
        ({"voice": "nobody"}, "voice"),
        ({"voice": {"id": "voice_1234"}}, "voice"),
        ({"speed": 0.2}, "speed"),
        ({"speed": 4.1}, "speed"),
        ({"response_format": "m4a"}, "response_format"),
        ({"stream_format": "websocket"}, "stream_format"),
        ({"extra_body": {"temperature": 1}}, "temperature"),
        ({"extra_body": {"lang_code": "ko-Kore"}}, "lang_code"),
    ],
)
def test_what_is_wrong_is_a_bad_request_that_names_the_parameter(
    sdk: openai.OpenAI, fields: dict[str, Any], param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        asked(sdk, **fields)
    assert (caught.value.param, caught.value.type) == (param, "invalid_request_error")


def test_what_is_not_offered_is_not_found(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.create(model="tts-1", messages=[{"role": "user", "content": "Hello."}])
    with pytest.raises(openai.NotFoundError):
        sdk.audio.transcriptions.create(model="whisper-1", file=("a.wav", b"RIFF"))


@pytest.mark.parametrize("text", ["...", "—", ":)", "*"])
def test_marks_alone_are_a_short_silence_that_is_said(sdk: openai.OpenAI, text: str) -> None:
    answer = asked(sdk, input=text, response_format="wav", extra_body={"stream": False})
    assert answer.headers["X-Kokoro-Fallbacks"] == "text=1"
    with wave.open(io.BytesIO(answer.content)) as file:
        assert file.getnframes() == 2400


def test_a_region_is_read_as_its_language_and_that_is_said(sdk: openai.OpenAI) -> None:
    def spanish(**language: str) -> Any:
        return asked(sdk, input="¿Qué tal?", voice="ef_dora", extra_body=language)

    region = spanish(lang_code="es-MX")
    assert region.headers["X-Kokoro-Fallbacks"] == "language=1"
    assert region.content == spanish(lang_code="e").content == spanish(language="es").content
    assert "X-Kokoro-Fallbacks" not in spanish(lang_code="e").headers


# ------------------------------------------------------------------------------------------------ the page

BLOCKS: list[tuple[str, str]] = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def ran(served: Served, folder: Path, *command: str, stdin: str = "", **variables: str) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_environment(**variables),
        input=stdin.replace(URL, served.url),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_of_the_page_is_run_by_one_of_these_tests() -> None:
    assert [kind for kind, _ in BLOCKS] == ["", "sh", "sh", "python", "python", "python", "js"]
    assert blocks("") == ["kokoro-lab serve\n"], "as the server of these tests is started"
    assert len(PAGE.splitlines()) <= 150
    assert "(docs/from-openai.md)" in (ROOT / "README.md").read_text("utf-8")


def test_two_variables_are_enough(served: Served, tmp_path: Path) -> None:
    variables = dict(re.findall(r"export (\w+)=(\S+)", blocks("sh")[0].replace(URL, served.url)))
    program = """
import openai
openai.OpenAI().audio.speech.create(model="tts-1", voice="alloy", input="Hello there.").write_to_file("a.mp3")
"""
    ran(served, tmp_path, sys.executable, "-", stdin=program, **variables)
    assert (tmp_path / "a.mp3").stat().st_size > 5000


def test_curl(served: Served, tmp_path: Path) -> None:
    require({"curl (Debian: apt-get install curl)": shutil.which("curl")})
    ran(served, tmp_path, "bash", stdin=blocks("sh")[1])
    assert (tmp_path / "hello.wav").read_bytes().startswith(b"RIFF")


def test_python(served: Served, tmp_path: Path) -> None:
    file, stream, events = blocks("python")
    ran(served, tmp_path, sys.executable, "-", stdin=file)
    assert (tmp_path / "hello.mp3").stat().st_size > 5000
    assert ran(served, tmp_path, sys.executable, "-", stdin=stream).splitlines()[:2] == ["4800", "4800"]
    assert "total_tokens" in ran(served, tmp_path, sys.executable, "-", stdin=events)
    assert (tmp_path / "events.mp3").stat().st_size > 5000


@pytest.mark.test_all  # wants `make clients`
def test_node(served: Served, tmp_path: Path) -> None:
    modules = ROOT / "tests/clients/node_modules"
    there = {"Node.js (Debian: apt-get install nodejs npm)": shutil.which("node")}
    require({**there, "openai (make clients)": (modules / "openai").exists()})
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "speak.mjs").write_text(blocks("js")[0].replace(URL, served.url))
    ran(served, tmp_path, "node", "speak.mjs")
    assert (tmp_path / "node.mp3").stat().st_size > 5000
