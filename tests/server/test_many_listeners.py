"""Several listeners at once: slow readers add little load, and no one changes what others hear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx2
import pytest
from flask import Flask

from tests.server.conftest import RunningServer, running, state_of, wait_until
from tests.server.scripted import Scripted
from tests.server.test_limits import post

URL = "/v1/audio/speech"
ARTICLE = {"input": "Somebody reads a long article to a friend. " * 400, "response_format": "pcm"}
HELLO = {"input": "Hello, there you are.", "response_format": "pcm"}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running(
        tmp_path_factory.mktemp("crowd"), patient=True, concurrency=8, max_input_chars=50_000
    ) as found:
        yield found


def test_a_paced_reader_and_one_that_stopped_reading_keep_no_new_request_waiting(
    crowded: RunningServer,
) -> None:
    with closing(post(crowded, ARTICLE)) as paced, closing(post(crowded, ARTICLE)) as stopped:
        stopped.recv(1000)
        for _ in range(5):
            paced.recv(4800)
            assert httpx2.post(crowded.speech_url, json=HELLO, timeout=30).status_code == 200
            assert crowded.status()["active"] >= 2, "both articles are still being read"
        wait_until(lambda: crowded.status()["active"] == 2)
        held = crowded.status()["sessions"]

        def chunks() -> list[int]:
            return [each["chunks"] for each in crowded.status()["sessions"]]

        def at_rest() -> bool:
            """Between two windows nothing is computed for a moment, too: so it is looked at twice."""
            before = chunks()
            time.sleep(0.3)
            return chunks() == before

        wait_until(at_rest)
        most = max(chunks())
    assert {each["speaking"] for each in held} == {True}
    assert most < 800, "40 s of an hour: what its socket takes, and no more"
    wait_until(lambda: crowded.status()["active"] == 0)


def test_six_at_once_hear_what_each_of_them_hears_alone(crowded: RunningServer) -> None:
    texts = [f"{name} speaks of a thing that nobody else speaks of. " * 4 for name in "ABCDEF"]

    def ask(text: str) -> bytes:
        return httpx2.post(crowded.speech_url, json={**HELLO, "input": text}, timeout=60).content

    alone = [ask(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, texts)) == alone
    computing = crowded.status()["computing"]
    assert computing["wait_s"]["count"] > 6
    assert computing["costs"]["hum"] > 0


def test_one_client_with_many_requests_keeps_no_other_out(
    make_app: Callable[..., Flask], decoder: Scripted
) -> None:
    app = make_app(concurrency=1, queue=3)
    decoder.gate.clear()
    order: list[str] = []

    def ask(name: str, client: str) -> int:
        answer = app.test_client().post(URL, json=HELLO, headers={"Authorization": f"Bearer {client}"})
        if answer.data and answer.status_code == 200:  # all of it is taken
            order.append(name)
        return answer.status_code

    slots = state_of(app).slots
    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(ask, "a0", "a")
        wait_until(lambda: slots.active == 1)
        many = []
        for number in range(1, 4):
            many.append(pool.submit(ask, f"a{number}", "a"))
            wait_until(lambda waiting=number: slots.waiting == waiting)  # type: ignore[misc]
        other = pool.submit(ask, "b", "b")
        assert many[-1].result() == 429, "the last of who has most waiting"
        decoder.gate.set()
        codes = [each.result() for each in (first, *many[:-1], other)]
    assert codes == [200] * 4
    assert order.index("b") < order.index("a2")


def test_a_file_is_computed_beside_listeners_and_no_third_at_a_time(
    make_app: Callable[..., Flask], decoder: Scripted
) -> None:
    app = make_app(concurrency=8, queue=1)
    decoder.gate.clear()
    file = {**HELLO, "stream": False}

    def ask(body: dict[str, Any]) -> int:
        answer = app.test_client().post(URL, json=body)
        assert answer.data, "all of it is taken"
        return answer.status_code

    slots = state_of(app).slots
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, file) for _ in range(3)]
        wait_until(lambda: (slots.active, slots.waiting) == (2, 1))
        asked.append(pool.submit(ask, HELLO))
        wait_until(lambda: slots.active == 3)
        decoder.gate.set()
        assert [each.result() for each in asked] == [200] * 4


def test_the_first_request_is_admitted_by_what_the_warm_up_cost(make_app: Callable[..., Flask]) -> None:
    assert state_of(make_app()).syntheses.costs.figures()["hum"] > 0
