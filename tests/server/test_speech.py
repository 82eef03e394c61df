"""`POST /v1/audio/speech` to clients that behave: what they ask for is what they hear."""

from __future__ import annotations

import io
import json
import struct
import wave
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import openai
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.containers import FORMATS, Format
from kokoro_lab.containers.pcm import pcm_bytes
from kokoro_lab.datatypes import Fallback
from kokoro_lab.dsp import RATES_HZ, Dither, Resampler
from kokoro_lab.speech.captions import captions_file
from kokoro_lab.speech.engine import Engine
from tests.containers.decoding import decoded
from tests.server.conftest import RunningServer, wait_until
from tests.server.scripted import SECRET, Scripted

TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."
BROKEN = "The first sentence is long enough to stand alone. And then a boom is heard, within the second."
URL = "/v1/audio/speech"
PRIMER_BYTES = 2 * 24_000 // 20
WAV_HEADER_BYTES = 44


def pcm_of_stream(engine: Engine, text: str, **options: Any) -> bytes:
    """What the stream of a request must be, made without a server."""
    dither = Dither(0)
    return b"".join(pcm_bytes(dither.push(c.samples)) for c in engine.stream(text, voice="hum", **options))


def wav_of(data: bytes) -> tuple[int, bytes]:
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getframerate(), file.readframes(file.getnframes())


def spoken(client: FlaskClient, **fields: Any) -> bytes:
    answer = client.post(URL, json={"input": TEXT, **fields})
    assert answer.status_code == 200, answer.json
    return answer.data


# ------------------------------------------------------------------------------- streamed and not


def test_a_stream_is_the_primer_and_then_exactly_what_the_engine_streams(
    client: FlaskClient, engine: Engine
) -> None:
    data = spoken(client, response_format="pcm")
    assert data[:PRIMER_BYTES] == bytes(PRIMER_BYTES)
    assert data[PRIMER_BYTES:] == pcm_of_stream(engine, TEXT)


def test_a_streamed_wav_is_a_header_of_unknown_length_and_the_pcm_stream(client: FlaskClient) -> None:
    data = spoken(client, response_format="wav")
    assert data[:4] == b"RIFF"
    assert data[8:16] == b"WAVEfmt "
    assert struct.unpack_from("<I", data, 4) == struct.unpack_from("<I", data, 40) == (0xFFFFFFFF,)
    assert struct.unpack_from("<HHI", data, 20) == (1, 1, 24_000)
    assert data[WAV_HEADER_BYTES:] == spoken(client, response_format="pcm")


def test_a_file_has_its_sizes_right_and_no_primer(client: FlaskClient, engine: Engine) -> None:
    answer = client.post(URL, json={"input": TEXT, "stream": False, "response_format": "wav"})
    rate_hz, data = wav_of(answer.data)
    assert rate_hz == 24_000
    assert answer.content_length == len(answer.data) == len(data) + WAV_HEADER_BYTES
    clip = engine.synthesize(TEXT, voice="hum")
    assert data == pcm_bytes(Dither(clip.seed).run(clip.samples))


def test_a_pcm_file_is_the_wav_file_without_its_header(client: FlaskClient) -> None:
    wav = spoken(client, stream=False, response_format="wav")
    assert spoken(client, stream=False, response_format="pcm") == wav[WAV_HEADER_BYTES:]


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_the_sample_rate_is_the_one_asked_for(client: FlaskClient, engine: Engine, rate_hz: int) -> None:
    answer = client.post(URL, json={"input": TEXT, "sample_rate": rate_hz, "response_format": "pcm"})
    assert answer.headers["X-Sample-Rate"] == str(rate_hz)
    assert answer.content_type == f"audio/pcm;rate={rate_hz};channels=1"
    primer = 2 * round(0.050 * rate_hz)
    samples = np.concatenate([c.samples for c in engine.stream(TEXT, voice="hum")])
    assert answer.data[primer:] == pcm_bytes(Dither(0).run(Resampler(24_000, rate_hz).run(samples)))
    assert wav_of(spoken(client, sample_rate=rate_hz, stream=False, response_format="wav"))[0] == rate_hz


def test_the_same_request_gives_the_same_bytes(client: FlaskClient) -> None:
    assert spoken(client) == spoken(client)


def test_speed_and_voice_reach_the_engine(client: FlaskClient, engine: Engine) -> None:
    fast = spoken(client, speed=2, response_format="pcm")
    assert fast[PRIMER_BYTES:] == pcm_of_stream(engine, TEXT, speed=2.0)
    high = spoken(client, voice="hum_high", response_format="pcm")
    assert len({fast, high, spoken(client, response_format="pcm")}) == 3
    assert high == spoken(client, voice={"id": "hum_high"}, response_format="pcm")


def test_language_reaches_the_engine(client: FlaskClient, engine: Engine) -> None:
    text = "I can't take a bath after half past."
    british = spoken(client, input=text, language="en-gb", response_format="pcm")
    assert british[PRIMER_BYTES:] == pcm_of_stream(engine, text, language="en-gb")
    assert british != spoken(client, input=text, response_format="pcm")


def test_ssml_is_spoken_and_what_is_wrong_in_it_is_said(client: FlaskClient, engine: Engine) -> None:
    document = "<speak>Zoo <break time='1s'/> ah.</speak>"
    data = spoken(client, input=document, input_format="ssml", response_format="pcm")
    assert data[PRIMER_BYTES:] == pcm_of_stream(engine, document, input_format="ssml")
    answer = client.post(URL, json={"input": "<speak>\n<audio/></speak>", "input_format": "ssml"})
    assert answer.status_code == 400
    assert answer.json["error"]["code"] == "invalid_ssml"
    assert answer.json["error"]["param"] == "input"
    assert answer.json["error"]["message"].startswith("Line 2, column 1: There is no element <audio>")
    assert client.post(URL, json={"input": "a", "input_format": "html"}).status_code == 400


def test_markdown_is_spoken_and_code_and_emoji_as_it_is_asked(client: FlaskClient, engine: Engine) -> None:
    document = "# Zoo\n\n- *ah* 🎉\n\n```py\nx\n```\n"
    for options in ({}, {"code": "name", "emoji": "skip"}):
        data = spoken(client, input=document, input_format="markdown", response_format="pcm", **options)
        asked = {"input_format": "markdown", **options}
        assert data[PRIMER_BYTES:] == pcm_of_stream(engine, document, **asked)
    answer = client.post(URL, json={"input": document, "input_format": "markdown", "response_format": "pcm"})
    assert "text=1" in answer.headers["X-Kokoro-Fallbacks"]  # the code
    answer = client.post(URL, json={"input": "Zoo.", "code": "read"})
    assert "code" in answer.headers["X-Kokoro-Ignored"]
    for wrong in ({"code": "say"}, {"emoji": True}):
        assert client.post(URL, json={"input": "Zoo.", **wrong}).status_code == 400


@pytest.mark.parametrize(
    "lexicon", [{"sentence": "zˈu"}, [{"grapheme": "Sentence", "phoneme": "zˈu", "lang": "en", "flags": []}]]
)
def test_a_lexicon_reaches_the_engine(
    client: FlaskClient, engine: Engine, lexicon: dict[str, str] | list[dict[str, Any]]
) -> None:
    data = spoken(client, response_format="pcm", lexicon=lexicon)
    assert data[PRIMER_BYTES:] == pcm_of_stream(engine, TEXT, lexicon=lexicon)
    assert data != spoken(client, response_format="pcm")
    whole = {"stream": False, "response_format": "pcm"}
    assert spoken(client, **whole, lexicon=lexicon) != spoken(client, **whole)


def test_an_empty_lexicon_is_none(client: FlaskClient) -> None:
    plain = spoken(client, response_format="pcm")
    assert all(spoken(client, response_format="pcm", lexicon=empty) == plain for empty in (None, {}, []))


@pytest.mark.parametrize(
    ("lexicon", "said"),
    [
        ("nginx", "lexicon"),
        ({"nginx": "❓"}, "not in the vocabulary"),
        ({"nginx": 5}, "must be a text"),
        ([{"grapheme": "x", "phoneme": "a", "ipa": "b"}], "no field 'ipa'"),
        ({f"x{i}": "a" for i in range(101)}, "up to 100 entries"),
        ({"x": "a" * 9000}, "up to 8000 bytes"),
    ],
)
def test_a_wrong_lexicon_is_answered_with_what_is_wrong(
    client: FlaskClient, lexicon: object, said: str
) -> None:
    answer = client.post(URL, json={"input": TEXT, "lexicon": lexicon})
    assert answer.status_code == 400
    assert answer.json["error"]["param"].startswith("lexicon")
    assert said in answer.json["error"]["message"]


def test_emoji_are_spoken_by_name(client: FlaskClient) -> None:
    assert len(spoken(client, input="🎉", response_format="pcm")) > 24_000


def test_http_1_0_which_has_no_chunks_gets_a_file(client: FlaskClient) -> None:
    answer = client.post(
        URL,
        json={"input": TEXT, "response_format": "wav"},
        environ_overrides={"SERVER_PROTOCOL": "HTTP/1.0"},
    )
    assert answer.headers["X-Kokoro-Streamed"] == "false"
    assert wav_of(answer.data)[0] == 24_000


# --------------------------------------------------------------------------- formats, names, headers


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("audio/pcm", "audio/pcm;rate=24000;channels=1"),
        ("audio/wav", "audio/wav"),
        ("audio/pcm;rate=24000;channels=1", "audio/pcm;rate=24000;channels=1"),
        ("audio/x-wav, */*;q=0.5", "audio/wav"),
        ("audio/mpeg", "audio/mpeg"),
        ("audio/ogg", "audio/ogg"),
        ("audio/opus", "audio/ogg"),
        ("audio/flac", "audio/flac"),
        ("audio/aac", "audio/aac"),
        ("audio/aac;q=0.4, audio/flac;q=0.6", "audio/flac"),
        ("application/octet-stream", "audio/mpeg"),  # OpenAI's SDK
        ("*/*", "audio/mpeg"),
        ("audio/*", "audio/mpeg"),
        ("audio/mpeg;q=0, audio/*", "audio/ogg"),
        ("audio/*;q=0, audio/wav;q=0.1", "audio/wav"),
        ("audio/mpeg;q=0.5, audio/*", "audio/ogg"),
        ("audio/wav, */*", "audio/wav"),
        ("*/*;q=0", "audio/mpeg"),
        ("text/html", "audio/mpeg"),
        (None, "audio/mpeg"),
    ],
)
def test_accept_chooses_the_format_where_none_is_named(
    client: FlaskClient, accept: str | None, content_type: str
) -> None:
    headers = {"Accept": accept} if accept else {}
    assert client.post(URL, json={"input": "Hello."}, headers=headers).content_type == content_type


def test_a_named_format_comes_before_accept(client: FlaskClient) -> None:
    answer = client.post(
        URL, json={"input": "Hello.", "response_format": "wav"}, headers={"Accept": "audio/pcm"}
    )
    assert answer.content_type == "audio/wav"


def test_the_raycast_client_is_understood(client: FlaskClient, engine: Engine) -> None:
    answer = client.post(
        URL,
        json={"text": TEXT, "voice": "hum", "speed": 1.25, "lang": "en-us", "stream": True, "format": "pcm"},
        headers={"Accept": "audio/pcm"},
    )
    assert answer.data[PRIMER_BYTES:] == pcm_of_stream(engine, TEXT, speed=1.25)


def test_openwebui_is_understood(client: FlaskClient) -> None:
    answer = client.post(
        URL,
        json={"model": "tts-1", "input": "Hello.", "voice": "hum"},
        headers={"Authorization": "Bearer sk-none"},
    )
    assert answer.status_code == 200
    assert answer.content_type == "audio/mpeg"
    assert decoded(answer.data, "mp3").rate_hz == 24_000  # which it stores as .mp3, without a look


@pytest.mark.parametrize("model", ["tts-1", "tts-1-hd", "gpt-4o-mini-tts", "kokoro", "fp32", "whatever-else"])
def test_model_names_that_leave_the_choice_open_are_answered_with_what_is_served(
    client: FlaskClient, model: str
) -> None:
    answer = client.post(URL, json={"input": "Hello.", "model": model})
    assert (answer.status_code, answer.headers["X-Kokoro-Variant"]) == (200, "fp32")


def test_headers_say_what_is_sent_and_what_was_not_heeded(client: FlaskClient) -> None:
    answer = client.post(
        URL,
        json={"input": "Hello.", "voice": "hum_high", "instructions": "Cheerfully."},
        headers={"X-Request-Id": "mine-1"},
    )
    assert {name: answer.headers[name] for name in dict(answer.headers) if name.startswith("X-")} == {
        "X-Request-Id": "mine-1",
        "X-Kokoro-Stream-Id": "mine-1",
        "X-Kokoro-Voice": "hum_high",
        "X-Kokoro-Variant": "fp32",
        "X-Kokoro-Provider": "CPUExecutionProvider",
        "X-Kokoro-Streamed": "true",
        "X-Kokoro-First-Audio": "computed",
        "X-Kokoro-Statistics": "exact",
        "X-Kokoro-Fallbacks": "statistics=1",  # the tiny voice has no predictor
        "X-Kokoro-Ignored": "instructions",
        "X-Kokoro-Mode": "normal",
        "X-Kokoro-Chunk-Ms": "50",
        "X-Kokoro-Pre-Buffer-Ms": "100",
        "X-Sample-Rate": "24000",
        "X-Accel-Buffering": "no",
    }
    assert "X-Kokoro-Ignored" not in client.post(URL, json={"input": "Hello."}).headers


def test_fallbacks_are_counted_in_the_header_of_a_file(
    client: FlaskClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = engine.synthesize(TEXT, voice="hum")
    fallbacks = (
        Fallback("g2p", "read by espeak"),
        Fallback("g2p", "not spoken"),
        Fallback("model", "slow"),
    )
    report = replace(clip.report, fallbacks=fallbacks)
    monkeypatch.setattr("kokoro_lab.speech.stream.SpeechStream._make_report", lambda _: report)
    answer = client.post(URL, json={"input": TEXT, "stream": False})
    assert answer.headers["X-Kokoro-Fallbacks"] == "g2p=2, model=1"


# ------------------------------------------------------------------------------ errors before sound


def refused(client: FlaskClient, body: Any, **options: Any) -> dict[str, Any]:
    """The error of a body that must be answered with 400."""
    if isinstance(body, bytes):
        answer = client.post(URL, data=body, content_type="application/json", **options)
    else:
        answer = client.post(URL, json=body, **options)
    assert answer.status_code == 400, answer.data[:200]
    assert answer.headers["x-should-retry"] == "false"
    assert set(answer.json) == {"error"}
    error: dict[str, Any] = answer.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert isinstance(error["message"], str)
    return error


@pytest.mark.parametrize(
    ("fields", "param", "says"),
    [
        ({"voice": "nobody"}, "voice", "hum, hum_high"),
        ({"voice": {"name": "hum"}}, "voice", '{"id": "af_heart"}'),
        ({"voice": 3}, "voice", "af_heart"),
        ({"speed": 0.2}, "speed", "0.25"),
        ({"speed": 4.1}, "speed", "4"),
        ({"speed": "fast"}, "speed", "'fast'"),
        ({"speed": True}, "speed", "number"),
        ({"response_format": "m4a"}, "response_format", "mp3, opus, aac, flac, wav, pcm"),
        ({"format": "MP3"}, "format", "mp3, opus, aac, flac, wav, pcm"),
        ({"stream_format": "ogg"}, "stream_format", "audio, sse"),
        ({"stream": "yes"}, "stream", "boolean"),
        ({"sample_rate": 8000}, "sample_rate", "22050, 24000, 44100, 48000"),
        ({"language": "tlh"}, "language", "en-us, en-gb"),
        ({"lang": "tlh"}, "lang", "en-us, en-gb"),
        ({"model": "fp16"}, "model", "fp32"),
        ({"model": 1}, "model", "string"),
        ({"speech_rate": 2}, "speech_rate", "no field"),
        ({"lang": "en-us", "language": "en-us"}, "lang", "same field"),
        ({"input": 5}, "input", "string"),
        ({"input": ""}, "input", "nothing to speak"),
        ({"input": " \n\t "}, "input", "nothing to speak"),
        ({"input": "\0"}, "input", "nothing to speak"),
        ({"input": "\0\1\2\3\4\5\6\7\x0e\x0f" * 9}, "input", "binary"),
        ({"input": "a" * 20_001}, "input", "up to 20000"),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(
    client: FlaskClient, fields: dict[str, Any], param: str, says: str
) -> None:
    error = refused(client, {"input": "Hello.", **fields})
    assert error["param"] == param
    assert says in error["message"]


def test_a_wrong_text_is_called_what_the_client_called_it(client: FlaskClient) -> None:
    assert refused(client, {"text": "   "})["param"] == "text"
    assert refused(client, {"text": 7})["param"] == "text"
    assert refused(client, {"voice": "hum"})["param"] == "input"


def test_the_longest_text_is_spoken_even_if_every_character_is_escaped(
    make_app: Callable[..., Flask],
) -> None:
    client = make_app(max_input_chars=2000).test_client()
    body = '{"input": "%s", "response_format": "pcm"}' % ("\\ud83c\\udf89\\u0020" * 1000)
    assert client.post(URL, data=body, content_type="application/json").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b" ",
        b"{",
        b"nonsense",
        b"[]",
        b'"Hello."',
        b'{"input": "\xff\xfe"}',
        b'{"input": "raw \0 byte"}',
        b'{"input": "\\ud800 alone"}',
        b'{"input": "Hello.", "speed": NaN}',
        b'{"input": "Hello.", "speed": 1e999}',
        b'{"input": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_a_body_that_is_not_a_json_object_is_refused(client: FlaskClient, body: bytes) -> None:
    refused(client, body)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_of_another_type_is_refused(client: FlaskClient, content_type: str | None) -> None:
    answer = client.post(URL, data=b'{"input": "Hello."}', content_type=content_type)
    assert answer.status_code == 415
    assert answer.json["error"]["code"] == "unsupported_media_type"


@pytest.mark.parametrize(("method", "path", "status"), [("get", URL, 405), ("post", "/v1/audio/song", 404)])
def test_wrong_methods_and_paths_are_answered_in_the_same_shape(
    client: FlaskClient, method: str, path: str, status: int
) -> None:
    answer = client.open(path, method=method.upper(), json={})
    assert answer.status_code == status
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}
    assert status != 405 or "POST" in answer.headers["Allow"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/audio/speech", "There is /v1/audio/speech:"),
        ("/models", "There is /v1/models:"),
        ("/v1/v1/audio/speech", "There is /v1/audio/speech:"),
        ("/song", None),
        ("/v1/audio/song", None),
    ],
)
def test_a_base_url_without_its_version_is_named(client: FlaskClient, path: str, meant: str | None) -> None:
    answer = client.post(path, json={"input": "Hello."})
    assert answer.status_code == 404
    message = answer.json["error"]["message"]
    assert message.startswith(f"There is no {path} on this server.")
    assert meant in message if meant else message.endswith("server.")


def test_a_failure_before_the_first_byte_has_a_status_and_no_slot(client: FlaskClient) -> None:
    for text, code in (("Bang.", "synthesis_failed"), ("Boom.", "internal_error")):
        answer = client.post(URL, json={"input": text, "stream": False})
        assert answer.status_code == 500
        assert answer.json["error"]["type"] == "server_error"
        assert answer.json["error"]["code"] == code
        assert answer.headers["x-should-retry"] == "false"
        assert answer.headers["X-Kokoro-Provider"] == "CPUExecutionProvider"
        assert SECRET not in answer.text
    assert client.get("/status").json["active"] == 0


def test_the_head_is_sent_before_anything_is_computed(client: FlaskClient, decoder: Scripted) -> None:
    decoder.gate.clear()
    try:
        answer = client.post(URL, json={"input": TEXT, "response_format": "wav"}, buffered=False)
        head = next(iter(answer.response))
    finally:
        decoder.gate.set()
    assert head[:4] == b"RIFF"
    assert len(head) == 44 + 2 * 1200  # and 50 ms of silence
    answer.close()


@pytest.mark.parametrize(
    ("fields", "like", "said"),
    [
        ({"lang_code": "b"}, "en-gb", None),
        ({"lang_code": "en-us"}, "en-us", None),
        ({"lang_code": None}, None, None),
        ({"lang": "EN_GB"}, "en-gb", None),
        ({"language": "e"}, "es", None),
        ({"language": "es-MX"}, "es", "language=1"),
        ({"lang_code": "es-419"}, "es", "language=1"),
        ({"lang": "en-AU"}, "en-gb", "language=1"),
    ],
)
def test_a_language_has_the_names_that_clients_send(
    client: FlaskClient, fields: dict[str, Any], like: str | None, said: str | None
) -> None:
    answer = client.post(URL, json={"input": TEXT, "response_format": "pcm", **fields})
    assert answer.status_code == 200
    assert answer.data == spoken(client, response_format="pcm", language=like)
    substituted = answer.headers["X-Kokoro-Fallbacks"].split(", ")
    assert [each for each in substituted if each.startswith("language")] == ([said] if said else [])


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"lang_code": "qaa-Kore"}, "lang_code"),
        ({"lang_code": "qaa"}, "lang_code"),
        ({"lang": "e", "lang_code": "e"}, "lang"),
        ({"language": "es", "lang_code": "e"}, "lang_code"),
    ],
)
def test_a_language_that_cannot_be_read_or_is_asked_twice_is_refused_by_the_clients_own_name(
    client: FlaskClient, fields: dict[str, Any], field: str
) -> None:
    answer = client.post(URL, json={"input": TEXT, **fields})
    assert (answer.status_code, answer.json["error"]["param"]) == (400, field)


def test_an_empty_text_has_a_status_although_it_is_streamed(client: FlaskClient) -> None:
    answer = client.post(URL, json={"input": " \u200b", "stream": True})
    assert answer.status_code == 400


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", FORMATS)
def test_marks_alone_are_100_ms_of_silence_in_every_format(
    client: FlaskClient, kind: Format, stream: bool
) -> None:
    before = client.get("/status").json
    answer = client.post(URL, json={"input": "... !", "stream": stream, "response_format": kind})
    samples, rate_hz, _ = decoded(answer.data, kind)
    assert (answer.status_code, answer.headers["X-Kokoro-Fallbacks"].split(", ")[-1]) == (200, "text=1")
    primer_s = 0.05 if stream and kind in ("pcm", "wav", "flac") else 0.0
    padded_s = 0.0 if kind in ("pcm", "wav", "flac") else 0.12  # a codec's whole frames
    assert -1e-9 <= len(samples) / rate_hz - 0.1 - primer_s <= padded_s + 1e-9
    assert np.abs(samples).max() <= 2 / 32768, "but for dither"
    status = client.get("/status").json
    assert status["requests"]["completed"] == before["requests"]["completed"] + 1
    assert status["ttfa_s"] == before["ttfa_s"], "silence is no speech"
    assert status["ttfa_file_s"] == before["ttfa_file_s"]
    assert status["rtf"] == before["rtf"]


# ---------------------------------------------------------------------------- a running server


def test_the_openai_sdk_streams_wav_and_pcm(server: RunningServer, engine: Engine, tmp_path: Path) -> None:
    with server.openai() as sdk:
        with sdk.audio.speech.with_streaming_response.create(
            model="tts-1", input=TEXT, voice="hum", response_format="pcm"
        ) as answer:
            assert answer.headers["transfer-encoding"] == "chunked"
            pcm = b"".join(answer.iter_bytes(4096))
        with sdk.audio.speech.with_streaming_response.create(
            model="tts-1", input=TEXT, voice="hum", response_format="wav"
        ) as answer:
            answer.stream_to_file(tmp_path / "speech.wav")
    assert pcm[PRIMER_BYTES:] == pcm_of_stream(engine, TEXT)
    wav = (tmp_path / "speech.wav").read_bytes()
    assert wav[WAV_HEADER_BYTES:] == pcm


def test_the_openai_sdk_reads_a_whole_answer(server: RunningServer, engine: Engine) -> None:
    with server.openai() as sdk:
        answer = sdk.audio.speech.create(
            model="gpt-4o-mini-tts",
            input=TEXT,
            voice={"id": "hum"},
            speed=1.5,
            response_format="wav",
            instructions="Softly.",
            extra_body={"stream": False},
        )
    rate_hz, data = wav_of(answer.content)
    assert rate_hz == 24_000
    assert len(data) == 2 * len(engine.synthesize(TEXT, voice="hum", speed=1.5).samples)


def test_the_openai_sdk_sends_a_wrong_request_once(server: RunningServer) -> None:
    before = server.status()["requests"]
    with server.openai(max_retries=2) as sdk, pytest.raises(openai.BadRequestError) as caught:
        sdk.audio.speech.create(model="tts-1", input="Hello.", voice="nobody")
    assert (caught.value.param, caught.value.code) == ("voice", "unknown_voice")
    assert "hum, hum_high" in caught.value.message
    after = server.status()["requests"]
    assert (after["total"], after["invalid"]) == (before["total"] + 1, before["invalid"] + 1)


def test_the_openai_sdk_sends_a_text_that_cannot_be_spoken_once(server: RunningServer) -> None:
    before = server.status()["requests"]["failed"]
    with server.openai(max_retries=2) as sdk, pytest.raises(openai.InternalServerError) as caught:
        sdk.audio.speech.create(model="tts-1", input="Bang.", voice="hum", extra_body={"stream": False})
    assert caught.value.code == "synthesis_failed"
    assert server.status()["requests"]["failed"] == before + 1


def test_a_connection_is_used_again(server: RunningServer) -> None:
    with httpx2.Client() as client:
        opened = set()
        for stream in (True, False, True):
            answer = client.post(server.speech_url, json={"input": "Hello.", "stream": stream})
            assert answer.status_code == 200
            opened.add(answer.extensions["network_stream"].get_extra_info("client_addr"))
    assert len(opened) == 1


def test_a_stream_begins_before_the_text_has_been_spoken(server: RunningServer) -> None:
    text = TEXT + " And this is a slow one, which takes its time." * 6
    with httpx2.stream("POST", server.speech_url, json={"input": text}) as answer:
        body = answer.iter_raw()
        next(body)
        assert server.status()["active"] == 1
        assert sum(map(len, body)) > 24_000
    wait_until(lambda: server.status()["active"] == 0)


def test_a_failure_after_the_first_byte_breaks_the_stream_and_no_other(server: RunningServer) -> None:
    before = server.status()["requests"]["failed"]
    with httpx2.stream("POST", server.speech_url, json={"input": BROKEN}) as answer:
        assert answer.status_code == 200
        body = answer.iter_raw()
        assert next(body)
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete"):
            list(body)
    wait_until(lambda: server.status()["active"] == 0)
    assert server.status()["requests"]["failed"] == before + 1
    assert httpx2.post(server.speech_url, json={"input": "Hello."}).status_code == 200
    log = server.log.read_text()
    assert "failed after the first byte" in log
    assert SECRET not in log


def test_a_broken_stream_is_not_a_short_answer_to_the_openai_sdk(server: RunningServer) -> None:
    with server.openai(max_retries=0) as sdk, pytest.raises((openai.APIConnectionError, httpx2.HTTPError)):
        sdk.audio.speech.create(model="tts-1", input=BROKEN, voice="hum", response_format="pcm")


def test_the_log_holds_lengths_and_never_a_text(server: RunningServer) -> None:
    text = "Quizzical zebras vex my jolly fop."
    bodies: list[dict[str, Any]] = [
        {"input": text},
        {"input": text, "stream": False},
        {"input": text, "instructions": text},
        {"input": text, text: text},
        {"input": [text]},
        {"input": text, "speed": text},
        {"input": f"{text} Boom.", "stream": False},
    ]
    for body in bodies:
        httpx2.post(server.speech_url, json=body, headers={"X-Request-Id": "find-me"})
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.post(server.speech_url, json={"input": f"{text} Boom."})
    log = server.log.read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{") and "find-me" in line]
    assert any(line.get("characters") == len(text) for line in lines)
    assert any("invalid_parameter" in line.values() for line in lines)
    for word in ("Quizzical", "zebras", "vex", "jolly", "fop"):
        assert word not in log


@pytest.mark.parametrize(("kind", "media"), [("srt", "application/x-subrip"), ("vtt", "text/vtt")])
def test_captions_are_those_of_the_speech(client: FlaskClient, engine: Engine, kind: Any, media: str) -> None:
    answer = client.post(URL, json={"input": TEXT, "response_format": kind})
    assert answer.content_type == f"{media}; charset=utf-8"
    timings = engine.synthesize(TEXT, voice="hum").timings
    assert answer.text == captions_file(kind, TEXT, "text", timings)
    assert answer.headers["X-Kokoro-Streamed"] == "false"


def test_captions_name_code_as_the_speech_does(client: FlaskClient) -> None:
    asked = {"input": "Look:\n\n```py\nx = 1\n```", "input_format": "markdown", "code": "name"}
    answer = client.post(URL, json={**asked, "response_format": "srt"})
    assert "\nCode in Python\n" in answer.text
    assert "x = 1" not in answer.text


@pytest.mark.parametrize("fields", [{"stream_format": "sse"}, {"timestamps": True, "stream": False}])
def test_captions_have_no_events(client: FlaskClient, fields: dict[str, Any]) -> None:
    answer = client.post(URL, json={"input": TEXT, "response_format": "srt", **fields})
    assert answer.status_code == 400
    assert answer.json is not None
    assert answer.json["error"]["param"] == "response_format"
