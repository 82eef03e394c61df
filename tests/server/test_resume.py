"""A stream that broke goes on behind the last frame that its listener has, sample for sample."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx2
import numpy as np
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.server.requests.syntheses import Synthesis
from kokoro_lab.speech.engine import Engine
from tests.server.conftest import RunningServer, running, state_of
from tests.server.events import ServerEvent, audio_of, read_events
from tests.server.scripted import Scripted
from tests.server.test_speech import URL, pcm_of_stream

TEXT = (
    "The first sentence is long enough to stand alone, and has a part behind its comma. And so, I should "
    "think, is the second one of them. Short? Yes. No!\n\n- one\n- two\n\n... *** ...\n\nA paragraph of its "
    "own, with 3 numbers and Dr. Smith. This is the last of all the sentences that there are in here."
)
SPEED = 4.0
"""The tiny voice drawls."""
BODY = {"input": TEXT, "stream_format": "sse", "speed": SPEED}
CUTS = 40


def events_of(text: str) -> list[ServerEvent]:
    return list(read_events(text.split("\n")))


def whole(client: FlaskClient, **fields: Any) -> list[ServerEvent]:
    return events_of(client.post(URL, json={**BODY, **fields}).text)


def came_back(events: list[ServerEvent]) -> dict[str, str]:
    """What a client that got `events` sends to hear the rest."""
    tokens = [event.data["resume"] for event in events if "resume" in event.data]
    ids = [event.id for event in events if event.id]
    return {"resume": tokens[-1], "last_id": ids[-1]}


def rest(client: FlaskClient, heard: list[ServerEvent], **fields: Any) -> list[ServerEvent]:
    answer = client.post(URL, json={**BODY, **fields, **came_back(heard)})
    assert answer.status_code == 200, answer.json
    return events_of(answer.text)


def ids(events: list[ServerEvent]) -> list[str]:
    return [event.id for event in events if event.id]


def test_every_frame_can_be_gone_on_behind(client: FlaskClient, engine: Engine) -> None:
    uncut = whole(client)
    deltas = [event for event in uncut if event.kind == "speech.audio.delta"]
    assert audio_of(uncut) == pcm_of_stream(engine, TEXT, speed=SPEED)
    for cut in random.Random(1).sample(range(1, len(deltas) + 1), 12):
        again = rest(client, deltas[:cut])
        assert ids(deltas[:cut]) + ids(again) == ids(deltas)
        assert audio_of(deltas[:cut]) + audio_of(again) == audio_of(uncut)
        assert again[-1].kind == "speech.audio.done"


def test_what_has_been_heard_is_not_computed_again(client: FlaskClient, engine: Engine) -> None:
    deltas = [event for event in whole(client) if event.id]
    segments = len({str(event.id).split(".")[0] for event in deltas})
    assert segments > 4
    before = engine.decoder.decoded  # type: ignore[attr-defined]
    rest(client, deltas[:-1])
    assert engine.decoder.decoded - before == 1  # type: ignore[attr-defined]


def test_what_is_computed_again_to_go_on_says_nothing_of_the_pace(client: FlaskClient) -> None:
    """Seconds of computing over those of the rest are too many, and no number where nothing was left."""
    deltas = [event for event in whole(client) if event.id]
    before = client.get("/status").json["rtf"]
    for heard in (deltas[:-1], deltas):
        assert audio_of(rest(client, heard)) == audio_of(deltas[len(heard) :])
    answer = client.get("/status")
    assert answer.json["rtf"] == before
    assert "NaN" not in answer.text
    assert "NaN" not in client.get("/metrics").text


@pytest.mark.parametrize("token", [True, False])
def test_what_is_computed_again_says_nothing_of_what_speech_costs(app: Flask, token: bool) -> None:
    client = app.test_client()
    deltas = [event for event in whole(client) if event.id]
    before = state_of(app).syntheses.costs.figures()
    back = came_back(deltas[:-1])
    if not token:
        del back["resume"]
    assert client.post(URL, json={**BODY, **back}).status_code == 200
    assert state_of(app).syntheses.costs.figures() == before


def test_the_header_will_do_for_the_last_id(client: FlaskClient) -> None:
    deltas = [event for event in whole(client) if event.id]
    back = came_back(deltas[:9])
    answer = client.post(
        URL, json={**BODY, "resume": back["resume"]}, headers={"Last-Event-ID": back["last_id"]}
    )
    assert ids(events_of(answer.text)) == ids(deltas[9:])


def test_without_a_token_the_beginning_is_computed_again_but_not_sent(client: FlaskClient) -> None:
    deltas = [event for event in whole(client) if event.id]
    answer = client.post(URL, json=BODY, headers={"Last-Event-ID": str(deltas[20].id)})
    again = events_of(answer.text)
    assert ids(again) == ids(deltas[21:])
    assert audio_of(again) == audio_of(deltas[21:])


@pytest.mark.parametrize(
    "fields", [{"sample_rate": 44_100}, {"response_format": "wav"}, {"speed": 1.3}, {"dither": "shaped"}]
)
def test_other_rates_formats_and_speeds_go_on_as_exactly(client: FlaskClient, fields: dict[str, Any]) -> None:
    deltas = [event for event in whole(client, **fields) if event.id]
    for cut in (1, len(deltas) // 3, len(deltas) - 1):
        again = rest(client, deltas[:cut], **fields)
        assert audio_of(deltas[:cut]) + audio_of(again) == audio_of(deltas)


def test_words_behind_the_cut_have_their_times_in_the_whole(client: FlaskClient) -> None:
    uncut = whole(client, timestamps=True)
    deltas = [event for event in uncut if event.id]
    cut = len(deltas) // 2
    segment = int(str(deltas[cut - 1].id).split(".")[0])
    later = [e.data for e in uncut if e.kind == "speech.audio.words" and e.data["segment_id"] >= segment]
    again = [e.data for e in rest(client, deltas[:cut], timestamps=True) if e.kind == "speech.audio.words"]
    assert again == later


@pytest.mark.parametrize(
    "changed", [{"degrade": "reduce-ttfa"}, {"degrade": "avoid-underrun"}, {"buffer_profile": "safe"}]
)
def test_it_goes_on_in_the_frames_that_it_began_with_whatever_the_mode_is_now(
    make_app: Callable[..., Flask], changed: dict[str, Any]
) -> None:
    deltas = [event for event in whole(make_app().test_client()) if event.id]
    for cut in (1, len(deltas) // 2, len(deltas) - 1):
        again = rest(make_app(**changed).test_client(), deltas[:cut])
        assert ids(deltas[:cut]) + ids(again) == ids(deltas)
        assert audio_of(deltas[:cut]) + audio_of(again) == audio_of(deltas)


@pytest.mark.parametrize("ephemeral", [True, False])
@pytest.mark.parametrize("now", ["off", "reduce-ttfa", "avoid-underrun", "stability-first"])
def test_without_a_token_too_whatever_the_mode_is_now(
    make_app: Callable[..., Flask], now: str, ephemeral: bool
) -> None:
    deltas = [event for event in whole(make_app().test_client(), ephemeral=ephemeral) if event.id]
    cut = len(deltas) // 4
    body = {**BODY, "ephemeral": ephemeral, "last_id": deltas[cut - 1].id}
    again = events_of(make_app(degrade=now).test_client().post(URL, json=body).text)
    assert ids(again) == ids(deltas[cut:])
    assert audio_of(again) == audio_of(deltas[cut:])


@pytest.mark.parametrize("fields", [{}, {"chunk_ms": 80}])
@pytest.mark.parametrize("changed", [{}, {"buffer_profile": "safe"}])
def test_a_stream_without_tokens_has_chunks_of_the_same_length_in_every_mode(
    make_app: Callable[..., Flask], changed: dict[str, Any], fields: dict[str, Any]
) -> None:
    begun = make_app(degrade="avoid-underrun", **changed).test_client()
    deltas = [event for event in whole(begun, ephemeral=True, **fields) if event.id]
    cut = len(deltas) // 4
    body = {**BODY, **fields, "ephemeral": True, "last_id": deltas[cut - 1].id}
    again = events_of(make_app(**changed).test_client().post(URL, json=body).text)
    assert ids(again) == ids(deltas[cut:])
    assert audio_of(again) == audio_of(deltas[cut:])


@pytest.mark.parametrize(
    "asked",
    [
        {"input": "A speech that is asked for twice. It has two sentences."},
        {"input": '<speak><break time="500ms"/>So is this one.</speak>', "input_format": "ssml"},
    ],
)
def test_a_repeated_stream_has_the_same_tokens_at_the_same_chunks(
    make_app: Callable[..., Flask], engine: Engine, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> None:
    parts = replace(engine.parts, config=replace(engine.config, first_audio_ttl_s=300))
    monkeypatch.setattr(engine, "parts", parts)
    client = make_app().test_client()

    def told() -> tuple[str, list[tuple[str | None, str]]]:
        answer = client.post(URL, json={**BODY, **asked})
        tokens = [(each.id, each.data["resume"]) for each in events_of(answer.text) if "resume" in each.data]
        # Without the time at which the stream began
        places = [(last, token.partition(".")[2].partition(".")[2]) for last, token in tokens]
        for last, token in tokens:
            again = client.post(URL, json={**BODY, **asked, "resume": token, "last_id": last})
            assert again.status_code == 200
            assert audio_of(events_of(again.text))
        return answer.headers["X-Kokoro-First-Audio"], places

    (before, first), (after, second) = told(), told()
    assert (before, after) == ("computed", "cache")
    assert first == second
    assert first


def test_a_stream_that_goes_on_is_no_time_to_first_audio(client: FlaskClient) -> None:
    deltas = [event for event in whole(client) if event.id]
    rest(client, deltas[:9])
    status = client.get("/status").json
    assert (status["requests"]["completed"], status["ttfa_s"]["count"]) == (2, 1)


def test_an_ephemeral_stream_has_no_token(make_app: Callable[..., Flask]) -> None:
    for settings, fields in (({}, {"ephemeral": True}), ({"ephemeral": True}, {})):
        events = whole(make_app(**settings).test_client(), **fields)
        assert events[-1].kind == "speech.audio.done"
        assert not any("resume" in event.data for event in events)


def test_a_token_holds_no_text(client: FlaskClient) -> None:
    token = came_back(whole(client))["resume"]
    version, issued_s, digest, frame_ms, *numbers = token.split(".")
    assert (version, len(digest), frame_ms, len(numbers)) == ("k2", 32, "50", 6)
    assert abs(int(issued_s) - time.time()) < 60
    assert int(digest, 16)
    assert all(number.isdecimal() for number in numbers)


@pytest.mark.parametrize("begun", [True, False])
@pytest.mark.parametrize("fields", [{"response_format": "mp3"}, {"dither": "shaped"}, {"ephemeral": True}])
def test_what_is_computed_again_may_take_longer_than_a_first_sound(
    client: FlaskClient,
    decoder: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    fields: dict[str, Any],
    begun: bool,
) -> None:
    """The first deadline is over before any chunk has come, or once chunks of the first segment have."""
    deltas = [event for event in whole(client, **fields) if event.id]
    due: list[Callable[[], None]] = []
    decode = decoder.decode

    def late(asked: Any) -> Any:
        if due and (not begun or len(segments) > 1):
            due.pop()()
        segments.append(asked)
        return decode(asked)

    def keep(_: Synthesis, seconds: float, work: Callable[[], None]) -> None:
        if 10 < seconds < 60:  # the others are those of the end, and of a client that is told
            due.append(work)

    segments: list[Any] = []
    monkeypatch.setattr(decoder, "decode", late)
    monkeypatch.setattr(Synthesis, "_after", keep)
    body = {**BODY, **fields, "last_id": deltas[-2].id}
    again = events_of(client.post(URL, json=body).text)
    assert not due
    if begun:
        assert (ids(again), again[-1].kind) == ([deltas[-1].id], "speech.audio.done")
    else:
        assert again[-1].data["error"]["code"] == "deadline_exceeded"
    completed, expired = (client.get("/status").json["requests"][name] for name in ("completed", "expired"))
    assert (completed, expired) == ((2, 0) if begun else (1, 1))


# ------------------------------------------------------------------------------------------ gone


def gone(answer: Any, says: str) -> None:
    assert answer.status_code == 410
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json["error"]
    assert error["code"] == "stream_gone"
    assert says in error["message"]
    assert "anew" in error["message"], "what to do now"


def test_an_expired_token_is_gone(make_app: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_app(resume_ttl_s=600).test_client()
    back = came_back(whole(client)[:5])
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 300)
    assert client.post(URL, json={**BODY, **back}).status_code == 200
    monkeypatch.setattr(time, "time", lambda: now() + 601)
    gone(client.post(URL, json={**BODY, **back}), "more than 600 s ago")
    monkeypatch.setattr(time, "time", lambda: now() - 3600)
    gone(client.post(URL, json={**BODY, **back}), "ago")


@pytest.mark.parametrize(
    "fields", [{"input": TEXT + " "}, {"voice": "hum_high"}, {"speed": 1.1}, {"lexicon": {"last": "zˈu"}}]
)
def test_the_token_of_another_request_is_gone(client: FlaskClient, fields: dict[str, Any]) -> None:
    back = came_back(whole(client)[:5])
    gone(client.post(URL, json={**BODY, **back, **fields}), "another request")


def test_a_token_that_says_its_frames_are_of_another_length_is_gone(client: FlaskClient) -> None:
    back = came_back(whole(client)[:5])
    parts = back["resume"].split(".")
    for frame_ms in ("40", "100", "999"):
        forged = ".".join([*parts[:3], frame_ms, *parts[4:]])
        gone(client.post(URL, json={**BODY, **back, "resume": forged}), "the server has changed")


@pytest.mark.parametrize("token", ["", "k2", "k1.1.2.3", "x" * 5000, "k2.9.ab.1.1.1.1", "k2..\n"])
def test_a_token_that_is_none_is_gone(client: FlaskClient, token: str) -> None:
    gone(client.post(URL, json={**BODY, "resume": token, "last_id": "0.1"}), "no resume token")


def test_a_place_or_frame_that_is_not_there_is_gone(client: FlaskClient) -> None:
    events = whole(client)
    back = came_back(events)
    parts = back["resume"].split(".")
    nowhere = ".".join([*parts[:4], "999", "999", "999", *parts[7:]])
    gone(client.post(URL, json={**BODY, "resume": nowhere, "last_id": "999.9999"}), "no such place")
    gone(client.post(URL, json={**BODY, "resume": back["resume"], "last_id": "0.3"}), "later chunk")
    last = events_of(client.post(URL, json={**BODY, **back, "last_id": "7.99999"}).text)[-1]
    assert (last.name, last.data["error"]["code"]) == ("error", "stream_gone")
    assert client.get("/status").json["active"] == 0


# -------------------------------------------------------------------------------- a running server


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RunningServer]]:
    """One that streams break on, and one started after it that knows nothing of them."""
    with (
        running(tmp_path_factory.mktemp("first")) as first,
        running(tmp_path_factory.mktemp("second")) as second,
    ):
        yield [first, second]


@pytest.mark.test_all
def test_streams_cut_at_random_go_on_here_or_on_a_server_that_was_started_since(
    servers: list[RunningServer], engine: Engine
) -> None:
    pcm = pcm_of_stream(engine, TEXT, speed=SPEED)
    choice = random.Random(7)
    waits_s = []
    with httpx2.Client() as client:
        for round_ in range(CUTS):
            heard: list[ServerEvent] = []
            cut = choice.randrange(1, len(pcm) // 2400)
            with client.stream("POST", servers[0].speech_url, json=BODY) as answer:
                for event in read_events(answer.iter_lines()):
                    heard.append(event)
                    if len(heard) == cut:
                        break
            server = servers[round_ % 2]
            started_s = time.perf_counter()
            body = {**BODY, **came_back(heard)}
            again: list[ServerEvent] = []
            while True:  # the slot of the one that was left may take a window to be free
                with client.stream("POST", server.speech_url, json=body) as answer:
                    if answer.status_code == 429:
                        continue
                    assert answer.status_code == 200
                    for event in read_events(answer.iter_lines()):
                        if not again:
                            waits_s.append(time.perf_counter() - started_s)
                        again.append(event)
                    break
            assert audio_of(heard) + audio_of(again) == pcm, f"cut behind {cut} frames"
    print(f"resumed: p50 {np.percentile(waits_s, 50):.3f} s, p95 {np.percentile(waits_s, 95):.3f} s")
