"""Requests to the server that users start: ids, names, paths behind a proxy, results that are damaged."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx2
import openai
import pytest

from tests.installed.command import Installed, Served

TEXT = "The kettle is on, and the window is open."
DAMAGED, OLD = "20261125T000000Z-aaaa", "20261124T000000Z-bbbb"


@contextmanager
def speaking(served: Served, request_id: str) -> Iterator[httpx2.Response]:
    """A long stream that has begun, and is read: one that nobody reads is cut off."""
    body = {"input": f"{TEXT} " * 100, "response_format": "pcm", "voice": "af_heart"}
    headers = {"X-Request-Id": request_id}
    address = f"{served.url}/v1/audio/speech"
    with httpx2.stream("POST", address, json=body, headers=headers, timeout=60) as answer:
        assert answer.status_code == 200
        reader = threading.Thread(target=read_to_its_end, args=(answer,))
        reader.start()
        try:
            yield answer
        finally:
            reader.join(60)


def read_to_its_end(answer: httpx2.Response) -> None:
    with suppress(httpx2.HTTPError):  # it is stopped
        for _ in answer.iter_raw():
            pass


def test_two_streams_of_one_id_are_told_apart_and_none_goes_on(served: Served) -> None:
    address = f"{served.url}/v1/audio/speech/dup-2"
    with speaking(served, "dup-2") as first, speaking(served, "dup-2") as second:
        said = [answer.headers["X-Request-Id"] for answer in (first, second)]
        assert said == ["dup-2", "dup-2.2"]
        running = httpx2.get(f"{served.url}/session-status").json()["running"]
        assert [one["request_id"] for one in running] == said
        stopped = httpx2.delete(address, timeout=60)
        assert stopped.json()["stopped"] == said
        assert [httpx2.delete(address).status_code for _ in range(2)] == [404, 404]
        assert httpx2.get(f"{served.url}/session-status").json()["running"] == []
    for request_id in said:
        line = f'"request_id": "{request_id}", "outcome": "cancelled"'
        served.awaited(line, 30)


def test_a_model_of_another_variant_is_refused_and_any_name_speaks(served: Served) -> None:
    refused = served.speak(TEXT, model="kokoro-fp32")
    assert refused.status_code == 400
    assert "kokoro-lab serve --variant fp32" in refused.json()["error"]["message"]
    assert served.speak("Yes.", model="nope").headers["X-Kokoro-Ignored"] == "model"
    assert "X-Kokoro-Ignored" not in served.speak("Yes.", model="kokoro-int8").headers


def test_openais_sdk_finds_a_model(served: Served) -> None:
    client = openai.OpenAI(base_url=f"{served.url}/v1/", api_key="any")
    assert client.models.retrieve("kokoro").id == "kokoro"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nope")


def test_every_voice_that_is_offered_reads_its_own_language(served: Served) -> None:
    offered = httpx2.get(f"{served.url}/v1/audio/voices/").json()["voices"]
    languages = {voice["language"]: voice["id"] for voice in offered}
    assert "zh" in languages
    for voice in languages.values():
        assert served.speak("1", voice=voice).status_code == 200, voice
    assert served.speak(TEXT, voice="zf_xiaoni", language="en-us").status_code == 200


def test_slashes_nulls_and_numbers_as_text_are_taken(served: Served) -> None:
    body = {"input": "Yes.", "speed": "1.0", "instructions": None, "stream_format": None, "voice": "af_heart"}
    for path in ("/v1/audio/speech", "/v1/audio/speech/", "//v1/audio/speech"):
        answer = httpx2.post(served.url + path, json={**body, "response_format": "ogg"}, timeout=60)
        assert (answer.status_code, answer.content[:4]) == (200, b"OggS"), path
    for path in ("/health", "/v1/models/", "/", "/openapi.json"):
        assert httpx2.head(served.url + path).status_code == 200


class Proxy(BaseHTTPRequestHandler):
    """Hands on what is asked for under `/tts`, as it came or with that taken off."""

    port = 0
    takes_off = False

    def handle_any(self) -> None:
        if not self.path.startswith("/tts"):
            self.send_error(404)
            return
        path = self.path.removeprefix("/tts") if self.takes_off else self.path
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        onward = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        onward.request(self.command, path, body, dict(self.headers.items()))
        answer = onward.getresponse()
        content = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "server", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        onward.close()

    do_GET = do_POST = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def proxied(port: int, *, takes_off: bool) -> Iterator[str]:
    handler = type("Handler", (Proxy,), {"port": port, "takes_off": takes_off})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tts"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """At `/tts`, with a lexicon, in a folder with a result that is damaged and one that is old."""
    folder = tmp_path_factory.mktemp("behind")
    for name in ("notebooks", "fixtures"):  # by which a repository is known
        (folder / name).mkdir()
    for name, text in ((DAMAGED, "{"), (OLD, '{"conditions": "warm"}')):
        (folder / "results" / "bench" / name).mkdir(parents=True)
        (folder / "results" / "bench" / name / "result.json").write_text(text)
    words = folder / "words.tsv"
    words.write_text("lang\tgrapheme\tphoneme\tflags\nen\tzorp\tzˈɔɹp\t\n", "utf-8")
    with Installed(folder).serving(KOKORO_ROOT_PATH="/tts", KOKORO_PROJECT_LEXICON=str(words)) as server:
        yield server


@pytest.mark.parametrize("takes_off", [False, True])
def test_behind_a_proxy_all_is_found_under_its_path(behind: Served, takes_off: bool) -> None:
    with proxied(behind.port, takes_off=takes_off) as url:
        page = httpx2.get(f"{url}/")
        assert page.status_code == 200
        for part in ("page/page.js", "page/page.css", "v1/audio/voices", "health"):
            assert httpx2.get(f"{url}/{part}").status_code == 200, part
        assert httpx2.get(f"{url}/openapi.json").json()["servers"][0]["url"] == "/tts"
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any")
        spoken = client.audio.speech.create(model="tts-1", voice="alloy", input="Yes.", response_format="wav")
        assert spoken.content[:4] == b"RIFF"
        bare = httpx2.get(url)
        if not takes_off:
            assert (bare.status_code, bare.headers["Location"]) == (308, "/tts/")


def test_no_client_can_move_the_server(served: Served) -> None:
    """gunicorn would take its place in the path from these headers, and fail where they do not fit."""
    for name in ("SCRIPT_NAME", "Script-Name", "X-Forwarded-Prefix", "PATH_INFO"):
        answer = httpx2.get(f"{served.url}/openapi.json", headers={name: "/elsewhere"})
        assert answer.status_code == 200, name
        assert answer.json()["servers"][0]["url"] == "/", name


def test_damaged_results_are_named_and_nothing_fails(behind: Served) -> None:
    listed = httpx2.get(f"{behind.url}/benchmarks")
    assert listed.status_code == 200
    assert [one["run_id"] for one in listed.json()["skipped"]] == [DAMAGED, OLD]
    latest = httpx2.get(f"{behind.url}/benchmarks/latest")
    assert latest.status_code == 404
    assert DAMAGED in latest.json()["error"]["message"]
    for name in (DAMAGED, OLD):
        answer = httpx2.get(f"{behind.url}/benchmarks/{name}")
        assert answer.status_code == 410
        assert f"bench/{name}/result.json cannot be read" in answer.json()["error"]["message"]
    said = [
        line["message"] for line in behind.lines() if line["logger"] == "kokoro_lab.lab.routes.benchmarks"
    ]
    assert any(DAMAGED in message for message in said)


def test_a_lexicon_that_is_taken_away_is_said_once(behind: Served) -> None:
    behind.log.with_name("words.tsv").unlink()
    problem = "there is no such file"
    while problem not in json.dumps(behind.status()["lexicon"]):
        pass  # it looks at its files twice a second
    answers = [behind.speak("Yes.") for _ in range(3)]
    assert not [answer for answer in answers if "X-Kokoro-Fallbacks" in answer.headers]
    assert len([line for line in behind.lines() if problem in line["message"]]) == 1
