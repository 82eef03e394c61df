"""Requests as clients write them: names, ids, paths, numbers as text; nothing is ignored without a word."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.config import STAGED, VARIANTS
from kokoro_lab.lab.routes import benchmarks
from kokoro_lab.server.health.objectives import ObjectiveWatch, ServedRequest, remedies
from kokoro_lab.server.requests import speech_request
from kokoro_lab.speech.engine import Engine
from kokoro_lab.text import language
from kokoro_lab.weights.voices import unread_voices
from tests.server import scripted
from tests.server.conftest import RunningServer, state_of, wait_until
from tests.server.test_websocket_conversation import PLENTY, talking

URL = "/v1/audio/speech"
HELLO = {"input": "Hello.", "response_format": "pcm", "stream": False}


# ------------------------------------------------------------------------------------------ model


@pytest.mark.parametrize("model", ["int8", "kokoro-int8", "kokoro-fp16-upstream", "Kokoro-INT8", " int8 "])
def test_another_variant_is_refused_with_its_mend(client: FlaskClient, model: str) -> None:
    answer = client.post(URL, json={**HELLO, "model": model})
    assert answer.status_code == 400
    error = answer.json["error"]
    variant = model.strip().lower().removeprefix("kokoro-")
    assert error["param"] == "model"
    assert f"kokoro-lab serve --variant {variant}" in error["message"]


@pytest.mark.parametrize("model", ["fp32", "kokoro-fp32", *speech_request.GENERAL_MODELS, "", None])
def test_a_model_that_is_meant_speaks_and_nothing_is_ignored(client: FlaskClient, model: str | None) -> None:
    answer = client.post(URL, json={**HELLO, "model": model})
    assert answer.status_code == 200
    assert "X-Kokoro-Ignored" not in answer.headers


@pytest.mark.parametrize("model", ["nope", "gpt-4o", "fp33", "kokoro-v1_0"])
def test_any_other_model_speaks_and_is_said_to_be_ignored(client: FlaskClient, model: str) -> None:
    answer = client.post(URL, json={**HELLO, "model": model})
    assert answer.status_code == 200
    assert answer.headers["X-Kokoro-Ignored"] == "model"
    events = client.post(URL, json={"input": "Hello.", "model": model, "stream_format": "sse"})
    assert events.headers["X-Kokoro-Ignored"] == "model"


def test_a_websocket_says_which_fields_are_ignored(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.say("speak", input="Hello.", model="nope", credit=PLENTY)
        assert talk.until("started")["ignored"] == ["model"]
        talk.until("done")
        talk.say("speak", input="Hello.", model="kokoro", credit=PLENTY)
        assert "ignored" not in talk.until("started")
        talk.until("done")


def test_one_model_can_be_asked_for(client: FlaskClient) -> None:
    listed = client.get("/v1/models").json["data"]
    for model in listed:
        assert client.get(f"/v1/models/{model['id']}").json == model
    answer = client.get("/v1/models/nope")
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")


# -------------------------------------------------------------------------------------------- ids


def two_of_one_id(app: Flask, pool: ThreadPoolExecutor, name: str) -> list[Any]:
    """Two requests that have the same id, both held at their first window."""
    syntheses = state_of(app).syntheses
    asked = []
    for number in (1, 2):
        asked.append(
            pool.submit(lambda: app.test_client().post(URL, json=HELLO, headers={"X-Request-Id": name}))
        )
        wait_until(lambda number=number: len(syntheses._entered) == number)
    wait_until(lambda: len(state_of(app).syntheses.under_way()) == 2)
    return asked


def test_two_requests_of_one_id_are_told_apart_and_both_can_be_stopped(
    app: Flask, client: FlaskClient, decoder: scripted.Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    decoder.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        asked = two_of_one_id(app, pool, "dup")
        running = client.get("/session-status").json["running"]
        assert sorted(one["request_id"] for one in running) == ["dup", "dup.2"]
        stopping = pool.submit(lambda: app.test_client().delete(f"{URL}/dup"))
        syntheses = state_of(app).syntheses
        wait_until(lambda: stopping.done() or all(one.stopped for one in syntheses._entered.values()))
        decoder.gate.set()
        assert sorted(stopping.result().json["stopped"]) == ["dup", "dup.2"]
        assert [one.result().headers["X-Request-Id"] for one in asked] == ["dup", "dup.2"]
        assert [one.result().status_code for one in asked] == [409, 409]
    assert client.delete(f"{URL}/dup").status_code == 404
    assert client.get("/session-status").json["running"] == []
    lines = [r.fields["request_id"] for r in caplog.records if getattr(r, "fields", {}).get("event")]
    assert sorted(lines) == ["dup", "dup.2"]


def test_one_of_two_can_be_stopped_alone(app: Flask, client: FlaskClient, decoder: scripted.Scripted) -> None:
    decoder.gate.clear()
    with ThreadPoolExecutor(3) as pool:
        first, second = two_of_one_id(app, pool, "dup")
        stopping = pool.submit(lambda: app.test_client().delete(f"{URL}/dup.2"))
        syntheses = state_of(app).syntheses
        # One that waited for its turn has ended at once, and is no longer among them
        wait_until(lambda: stopping.done() or any(one.stopped for one in syntheses._entered.values()))
        decoder.gate.set()
        assert stopping.result().json["stopped"] == ["dup.2"]
        assert (first.result().status_code, second.result().status_code) == (200, 409)


def test_the_longest_id_is_told_apart_too(app: Flask, decoder: scripted.Scripted) -> None:
    name = "x" * 64
    decoder.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        asked = two_of_one_id(app, pool, name)
        decoder.gate.set()
        assert {one.result().headers["X-Request-Id"] for one in asked} == {name, f"{'x' * 62}.2"}


def test_a_reset_by_id_stops_both(app: Flask, client: FlaskClient, decoder: scripted.Scripted) -> None:
    decoder.gate.clear()
    with ThreadPoolExecutor(2) as pool:
        asked = two_of_one_id(app, pool, "dup")
        stopped = client.post("/session-reset", json={"request_id": "dup"}).json["stopped"]
        assert sorted(stopped) == ["dup", "dup.2"]
        decoder.gate.set()
        assert [one.result().status_code for one in asked] == [409, 409]


# ------------------------------------------------------------------------------------------ paths


@pytest.mark.parametrize("slash", ["/", "//"])
@pytest.mark.parametrize("ending", ["", "/"])
def test_slashes_too_many_lose_nothing(client: FlaskClient, slash: str, ending: str) -> None:
    def written(path: str) -> str:
        return "/" + path[1:].replace("/", slash) + ending

    for path in ("/v1/models", "/v1/models/kokoro", "/v1/audio/voices", "/voices", "/health", "/status"):
        assert client.get(written(path)).status_code == 200, path
        head = client.head(written(path))
        assert (head.status_code, head.data) == (200, b""), path
    assert client.post(written(URL), json=HELLO).status_code == 200
    assert client.post(written("/session-reset"), json={}).status_code == 200
    assert client.delete(written(f"{URL}/nobody")).status_code == 404


def test_behind_a_prefix_everything_is_found_with_it_and_without(make_app: Callable[..., Flask]) -> None:
    client = make_app(root_path="/tts").test_client()
    for prefix in ("/tts", ""):  # a proxy may take it off or not
        for path in ("/", "/page/page.js", "/health", "/openapi.json"):
            with client.get(f"{prefix}{path}") as answer:
                assert answer.status_code == 200, path
        assert client.post(f"{prefix}{URL}", json=HELLO).status_code == 200
        assert client.get(f"{prefix}/openapi.json").json["servers"][0]["url"] == "/tts"
    bare = client.get("/tts")
    assert (bare.status_code, bare.headers["Location"]) == (308, "/tts/")
    assert client.get("/ttsx/health").status_code == 404


@pytest.mark.parametrize("wrong", ["tts", "/tts/", "/a b", "/../x?"])
def test_a_prefix_that_is_none_is_refused(make_app: Callable[..., Flask], wrong: str) -> None:
    with pytest.raises(ValueError, match="root_path"):
        make_app(root_path=wrong)


def test_the_page_asks_for_nothing_from_the_root() -> None:
    """Or it would look beside the prefix behind which it is."""
    page = Path(benchmarks.__file__).parent / "page"
    for file in page.glob("*.*"):
        assert not [
            quote for quote in ('fetch("/', 'src="/', 'href="/', 'url("/') if quote in file.read_text()
        ], file


# ----------------------------------------------------------------------------------------- fields


@pytest.mark.parametrize(
    ("speed", "status"), [("1.0", 200), ("2", 200), ("0.25", 200), ("9", 400), ("x", 400)]
)
def test_numbers_may_come_as_text(client: FlaskClient, speed: str, status: int) -> None:
    answer = client.post(URL, json={**HELLO, "speed": speed, "sample_rate": "48000"})
    assert answer.status_code == status
    if status == 200:
        plain = client.post(URL, json={**HELLO, "speed": float(speed), "sample_rate": 48_000})
        assert answer.data == plain.data
    else:
        assert answer.json["error"]["param"] == "speed"


@pytest.mark.parametrize("field", sorted(set(speech_request.SpeechRequest.model_fields) - {"input"}))
def test_null_is_not_given(client: FlaskClient, field: str) -> None:
    body = {name: value for name, value in HELLO.items() if name != field}
    answer = client.post(URL, json={**body, field: None})
    assert answer.status_code == 200, answer.data
    schema = client.get("/openapi.json").json["components"]["schemas"]["SpeechRequest"]["properties"]
    assert {"type": "null"} in schema[field]["anyOf"]


def test_null_is_no_way_around_an_unknown_field(client: FlaskClient) -> None:
    assert client.post(URL, json={**HELLO, "pitch": None}).status_code == 400
    assert client.post(URL, json={"input": None}).status_code == 400
    assert client.post(URL, json={**HELLO, "text": None}).status_code == 400
    assert client.post(URL, json={**HELLO, "lang": None}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        '{"input": "a", "speed": 1, "speed": 2}',
        '{"input": "a", "input": "b"}',
        '{"input": "a", "lexicon": {"x": "a", "x": "b"}}',
        '{"input": "a", "voice": {"id": "hum", "id": "hum"}}',
    ],
)
def test_a_name_that_stands_twice_is_refused(client: FlaskClient, body: str) -> None:
    answer = client.post(URL, data=body, content_type="application/json")
    assert answer.status_code == 400
    assert "stands twice" in answer.json["error"]["message"]


def test_a_name_may_stand_in_two_objects(client: FlaskClient) -> None:
    body = '{"input": "a", "lexicon": [{"grapheme": "x", "phoneme": "a"}, {"grapheme": "y", "phoneme": "a"}]}'
    assert client.post(URL, data=body, content_type="application/json").status_code == 200


def test_over_a_websocket_too(server: RunningServer) -> None:
    with talking(server) as talk:
        talk.connection.send('{"type": "speak", "input": "a", "input": "b"}')
        assert "stands twice" in talk.until("error")["error"]["message"]


@pytest.mark.parametrize("name", ["response_format", "format"])
def test_ogg_is_opus(client: FlaskClient, name: str) -> None:
    answer = client.post(URL, json={"input": "Hello.", name: "ogg", "stream": False})
    assert (answer.status_code, answer.content_type) == (200, "audio/ogg")
    assert answer.data[:4] == b"OggS"


# ----------------------------------------------------------------------------------------- voices


def test_voices_that_cannot_be_read_are_not_offered(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "find_spec", lambda name: None if name == "jieba" else object())
    unread = client.get("/status").json["voices_not_offered"]
    assert sorted(unread) == [
        "zf_xiaobei", "zf_xiaoni", "zf_xiaoxiao", "zf_xiaoyi",
        "zm_yunjian", "zm_yunxi", "zm_yunxia", "zm_yunyang",
    ]  # fmt: skip
    assert set(unread.values()) == {"zh needs the extra kokoro-lab[zh]: jieba is missing"}
    for path in ("/voices", "/v1/audio/voices"):
        names = {v if isinstance(v, str) else v["id"] for v in client.get(path).json["voices"]}
        assert len(names) == 46
        assert not names & set(unread)
    answer = client.post(URL, json={**HELLO, "voice": "zf_xiaoni", "language": "en-us"})
    assert answer.status_code == 200, "they speak what names another language"


def test_what_is_offered_follows_what_can_be_read(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language, "find_spec", lambda _: object())
    assert unread_voices() == {}
    assert len(client.get("/voices").json["voices"]) == 54
    monkeypatch.setattr(language, "find_spec", lambda _: None)
    assert {name[0] for name in unread_voices()} == {"j", "z"}
    assert "kokoro-lab[ja]" in unread_voices()["jf_alpha"]


# ------------------------------------------------------------------------------------- benchmarks


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("kokoro_lab.lab.results.results_folder", lambda: tmp_path)
    return tmp_path / "bench"


def kept(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "result.json").write_text(text, "utf-8")


GOOD, BAD, OLD, LIST = (f"2026112{i}T000000Z-000{i}" for i in (1, 2, 3, 4))
WHOLE = json.dumps({"conditions": "warm", "asked": {}, "systems": {}, "summary": {}, "trials": []})


def test_a_damaged_result_is_skipped_and_named(
    client: FlaskClient, results: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept(results, GOOD, WHOLE)
    kept(results, BAD, "{")
    kept(results, OLD, '{"conditions": "warm"}')
    kept(results, LIST, "[]")
    listed = client.get("/benchmarks")
    assert listed.status_code == 200
    assert [run["run_id"] for run in listed.json["runs"]] == [GOOD]
    assert [one["run_id"] for one in listed.json["skipped"]] == [LIST, OLD, BAD]
    assert f"bench/{OLD}/result.json cannot be read: asked: field required" in caplog.text
    latest = client.get("/benchmarks/latest").json
    assert (latest["run_id"], len(latest["skipped"])) == (GOOD, 3)
    for name in (BAD, OLD, LIST):
        gone = client.get(f"/benchmarks/{name}")
        assert gone.status_code == 410
        assert name in gone.json["error"]["message"]
    assert client.get(f"/benchmarks/{GOOD}").status_code == 200


def test_where_none_can_be_read_the_latest_is_none_and_why(client: FlaskClient, results: Path) -> None:
    kept(results, BAD, "{")
    answer = client.get("/benchmarks/latest")
    assert answer.status_code == 404
    assert BAD in answer.json["error"]["message"]


# ---------------------------------------------------------------------------------- what is said


def test_what_is_there_at_times_is_described(client: FlaskClient) -> None:
    described = client.get("/openapi.json").json
    headers = described["paths"][URL]["post"]["responses"]["200"]["headers"]
    for name in ("Ignored", "Fallbacks", "Chunk-Ms", "Pre-Buffer-Ms", "RTF", "TTFA-Ms"):
        assert headers[f"X-Kokoro-{name}"]["required"] is False
    assert headers["X-Kokoro-Voice"]["required"] is True
    cleared = described["paths"]["/performance/clear_cache"]["post"]["summary"]
    assert cleared == "Empty the caches of first audio, phonemes and loaded voices."


def advice(app: Flask, **changed: Any) -> Callable[[str, bool], str]:
    state = state_of(app)
    engine = SimpleNamespace(
        config=replace(state.engine.config, **{"variant": "int8", "threads": 0, **changed})
    )
    return remedies(cast("Engine", engine), state.settings)


def test_what_runs_as_one_graph_is_told_so_and_nothing_else(app: Flask) -> None:
    told = {variant: "as one graph" in advice(app, variant=variant)("ttfa_s", False) for variant in VARIANTS}
    assert told == {variant: variant not in STAGED for variant in VARIANTS}


def test_fewer_at_a_time_is_advised_where_there_were_several(app: Flask) -> None:
    """With one at a time it would change nothing."""
    assert "KOKORO_CAPACITY" not in advice(app)("ttfa_s", False)
    assert "KOKORO_CAPACITY" in advice(app)("ttfa_s", True)


def test_an_objective_knows_whether_the_slow_ones_were_served_at_a_time() -> None:
    for slow_beside in (False, True):
        objectives = ObjectiveWatch(0.5, 0.6, lambda name, shared: str(shared))
        for _ in range(20):
            objectives.note(ServedRequest("completed", ttfa_s=0.9, shared=slow_beside))
            objectives.note(ServedRequest("completed", ttfa_s=0.1, shared=True))
        (warned,) = objectives.warnings()
        assert warned.remedy == str(slow_beside)


def test_half_of_a_surrogate_pair_is_named(client: FlaskClient) -> None:
    answer = client.post(URL, data='{"input": "a \\ud83d b"}', content_type="application/json")
    assert answer.status_code == 400
    assert "half of a surrogate pair" in answer.json["error"]["message"]
