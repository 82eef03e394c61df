"""Memory has a limit, what can be given back is, and no stream is stopped for it."""

from __future__ import annotations

import gc
import mmap
import os
import threading
import time
from functools import partial
from pathlib import Path

import psutil
import pytest
from flask import Flask
from flask.testing import FlaskClient

from kokoro_lab.config import Settings
from kokoro_lab.errors import MemoryLimitError, SettingsError
from kokoro_lab.g2p.speakers import ENGLISH_MB, OTHER_MB, Speakers
from kokoro_lab.serve import create_app
from kokoro_lab.server.health.watchdog import (
    CLEAN_AGAIN_S,
    CLEAN_SELDOM_S,
    ROOM_MB,
    SHARE,
    Watchdog,
    give_back_freed,
    given_back,
    given_mb,
    limit_of,
    resident_mb,
    settle,
)
from kokoro_lab.server.requests.slots import Admission, Slots
from kokoro_lab.speech.engine import Engine
from tests.server.conftest import SETTINGS, state_of, wait_until

URL = "/v1/audio/speech"
TEXT = "The first sentence is long enough to stand alone. And so, I should think, is the second one of them."
LIMIT_MB = 1000.0
WARM_MB = 500.0


class Machine:
    """Memory that is what a test says, and a clock that it turns."""

    def __init__(self, limit_mb: float = LIMIT_MB) -> None:
        self.rss_mb = WARM_MB
        self.reads = 0
        self.now_s = 0.0
        self.freed_by_cleaning_mb = 0.0
        self.freed_by_settling_mb = 0.0
        self.cleaned = self.settled = self.replaced = 0
        self.complete = True
        self.unfit: list[SettingsError] = []
        self.slots = Slots(2)
        self.admission = Admission()
        self.watchdog = Watchdog(
            limit_mb,
            self.slots,
            self.admission,
            {"broken": self._fail, "caches": self._clean},
            settle=self._settle,
            replace=self._replace,
            complete=lambda: self.complete,
            unfit=self.unfit.append,
            read=self._read,
            clock=lambda: self.now_s,
        )
        self.watchdog.note_warm()

    def _read(self) -> float:
        self.reads += 1
        return self.rss_mb

    def _fail(self) -> None:
        raise RuntimeError("it cannot be cleaned")

    def _clean(self) -> None:
        self.cleaned += 1
        self.rss_mb -= self.freed_by_cleaning_mb

    def _settle(self) -> None:
        self.settled += 1
        self.rss_mb -= self.freed_by_settling_mb

    def _replace(self) -> None:
        self.replaced += 1

    def look(self, rss_mb: float, after_s: float = 1.0) -> str:
        self.rss_mb = rss_mb
        self.now_s += after_s
        return self.watchdog.look()


def test_nothing_is_cleaned_while_there_is_room() -> None:
    machine = Machine()
    assert machine.look(0.8 * LIMIT_MB) == "ok"
    assert machine.cleaned == machine.watchdog.figures()["cleanups"] == 0


def test_near_the_limit_everything_is_cleaned_and_counted_whatever_fails() -> None:
    machine = Machine()
    machine.freed_by_cleaning_mb = 300
    assert machine.look(900) == "ok"
    figures = machine.watchdog.figures()
    assert (figures["cleanups"], figures["freed_mb"], figures["peak_mb"]) == (1, 300, 900)
    assert figures["actions"] == {"broken": 0, "caches": 1}
    assert machine.admission.reasons == []


def test_caches_are_not_emptied_again_and_again() -> None:
    machine = Machine()
    for _ in range(5):
        assert machine.look(900) == "cleaning"
    assert machine.cleaned == 1
    machine.look(900, after_s=2 * CLEAN_AGAIN_S)
    assert machine.cleaned == 2


def test_the_less_comes_of_it_the_more_seldom_caches_are_emptied() -> None:
    machine = Machine()
    for _ in range(3600):
        machine.look(900)
    assert machine.cleaned < 3600 / CLEAN_SELDOM_S + 7
    # Unless it is for somebody to be served; and once enough comes of it, it is as at first
    before = machine.cleaned
    machine.freed_by_cleaning_mb = 300
    assert machine.look(1050, after_s=CLEAN_AGAIN_S) == "ok"
    machine.look(900, after_s=CLEAN_AGAIN_S)
    assert machine.cleaned == before + 2


def test_over_the_limit_nothing_new_is_taken_and_what_runs_goes_on() -> None:
    machine = Machine()
    slot = machine.slots.take()
    assert machine.look(1100) == "refusing"
    assert machine.admission.reasons == ["memory_short"]
    assert (machine.settled, machine.replaced, machine.slots.active) == (0, 0, 1)
    # Just under the limit is not enough
    assert machine.look(980) == "refusing"
    assert machine.look(940) == "cleaning"
    assert machine.admission.reasons == []
    slot.release()
    assert machine.replaced == 0


def test_what_the_last_listener_held_is_given_back_before_a_worker_is_replaced() -> None:
    machine = Machine()
    slot = machine.slots.take()
    assert machine.look(1100) == "refusing"
    slot.release()
    machine.freed_by_settling_mb = 400
    assert machine.look(1100) == "ok"
    assert (machine.cleaned, machine.settled, machine.replaced) == (2, 1, 0)
    assert machine.admission.reasons == []


def test_a_worker_that_still_does_not_fit_is_replaced_once() -> None:
    machine = Machine()
    assert machine.look(1100) == "refusing"
    assert machine.replaced == 1
    machine.look(1100)
    assert machine.replaced == 1
    assert machine.admission.reasons == ["memory_short"]


def test_a_worker_is_not_replaced_while_languages_are_still_loaded_unasked() -> None:
    machine = Machine()
    machine.complete = False
    assert machine.look(1100) == "refusing"
    assert machine.replaced == 0
    machine.complete = True
    machine.look(1100)
    assert machine.replaced == 1


def test_a_server_that_does_not_fit_into_its_limit_ends_and_says_what_it_needs() -> None:
    machine = Machine(limit_mb=WARM_MB + ROOM_MB - 1)
    (error,) = machine.unfit
    assert (error.field, error.value) == ("KOKORO_MEMORY_LIMIT_MB", WARM_MB + ROOM_MB - 1)
    assert error.allowed is not None
    assert error.allowed.startswith(f"{WARM_MB + ROOM_MB:.0f} or more")


def test_a_limit_is_never_raised() -> None:
    machine = Machine(limit_mb=WARM_MB + ROOM_MB)
    assert machine.unfit == []
    machine.watchdog.make_room("es", 0.0)
    for rss_mb in (WARM_MB, WARM_MB + ROOM_MB - 1):
        assert machine.look(rss_mb) != "refusing"
    assert machine.look(WARM_MB + ROOM_MB + 1) == "refusing"
    assert machine.watchdog.figures()["limit_mb"] == WARM_MB + ROOM_MB


def test_a_language_beyond_the_limit_is_refused_and_the_error_says_what_is_needed() -> None:
    machine = Machine(limit_mb=WARM_MB + ROOM_MB + 100)
    machine.watchdog.make_room("en-gb", 80.0)
    machine.rss_mb = 1.0  # whatever memory happens to be at
    with pytest.raises(MemoryLimitError) as caught:
        machine.watchdog.make_room("ja", 60.0)
    error = caught.value
    assert (error.field, error.value) == ("language", "ja")
    assert error.mend == f"Set KOKORO_MEMORY_LIMIT_MB to {WARM_MB + 80 + 60 + ROOM_MB:.0f} or more."
    machine.watchdog.make_room("es", 20.0)


def test_a_language_that_is_refused_is_none_that_is_missing() -> None:
    speakers = Speakers(room=Machine(limit_mb=WARM_MB + ROOM_MB).watchdog.make_room)
    for _ in range(2):
        with pytest.raises(MemoryLimitError):
            speakers.of("es")
    speakers.room = Machine().watchdog.make_room
    assert speakers.of("es")
    assert speakers.loaded() == ("es",)


def test_who_asks_for_a_language_beyond_the_limit_gets_507_and_a_word_in_passing_is_read_otherwise(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    speakers = Speakers(room=Machine(limit_mb=WARM_MB + ENGLISH_MB + ROOM_MB).watchdog.make_room)
    monkeypatch.setattr(state_of(app).engine.front_end, "speakers", speakers)
    speakers.of("en-us")
    answer = client.post(URL, json={"input": "नमस्ते।", "language": "hi", "stream": False})
    assert answer.status_code == 507
    error = answer.json["error"]
    assert (error["code"], error["param"]) == ("memory_limit", "language")
    assert (
        f"Set KOKORO_MEMORY_LIMIT_MB to {WARM_MB + ENGLISH_MB + OTHER_MB + ROOM_MB:.0f} or more."
        in error["message"]
    )
    assert answer.headers["x-should-retry"] == "false"
    answer = client.post(URL, json={"input": "The word नमस्ते is a greeting.", "stream": False})
    assert answer.status_code == 200
    assert "language=1" in answer.headers["X-Kokoro-Fallbacks"]
    assert speakers.loaded() == ("en-us",)


def test_the_server_itself_ends_and_refuses(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[SettingsError] = []
    monkeypatch.setattr("kokoro_lab.serve.end_with", ended.append)
    monkeypatch.setattr(engine.front_end.speakers, "room", engine.front_end.speakers.room)
    try:
        app = create_app(engine, Settings(**{**SETTINGS, "memory_limit_mb": 1}), own_process=True)
        wait_until(lambda: bool(ended))
        assert ended[0].field == "KOKORO_MEMORY_LIMIT_MB"
        assert engine.front_end.speakers.room == state_of(app).watchdog.make_room
    finally:
        gc.unfreeze()


def test_once_it_is_warm_it_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.server.health.watchdog.LOOK_S", 0.005)
    machine, warm = Machine(), threading.Event()
    machine.complete = False
    machine.rss_mb, before = 2 * LIMIT_MB, machine.reads  # loading has its own peak
    machine.watchdog.start(warm.is_set)
    time.sleep(0.05)
    assert machine.reads == before
    machine.rss_mb = WARM_MB
    warm.set()
    wait_until(lambda: machine.reads > before + 2)
    machine.rss_mb = WARM_MB + 100  # the languages that came later are no growth
    machine.complete = True
    wait_until(lambda: machine.watchdog.figures()["warm_mb"] == WARM_MB + 100)
    machine.rss_mb = 1.1 * LIMIT_MB
    wait_until(lambda: machine.replaced == 1)


def test_without_a_limit_nothing_is_watched() -> None:
    machine = Machine(limit_mb=0)
    assert machine.look(1e6) == "off"
    assert (machine.cleaned, machine.replaced) == (0, 0)


# ------------------------------------------------------------------------------------- the server


def test_short_of_memory_a_server_refuses_with_retry_after_and_finishes_what_it_speaks(
    app: Flask, client: FlaskClient
) -> None:
    state = state_of(app)
    whole = client.post(URL, json={"input": TEXT, "response_format": "pcm"}).data
    reading = [500.0]
    state.watchdog = Watchdog(1000.0, state.slots, state.admission, {}, read=lambda: reading[0])
    answer = client.post(URL, json={"input": TEXT, "response_format": "pcm"}, buffered=False)
    body = iter(answer.response)
    heard = [next(body) for _ in range(3)]
    reading[0] = 2000.0
    assert state.watchdog.look() == "refusing"
    refused = client.post(URL, json={"input": "Hello."})
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert refused.json["error"]["code"] == "memory_short"
    assert "x-should-retry" not in refused.headers
    status = client.get("/status").json
    assert status["refuses"] == ["memory_short"]
    assert status["memory"]["watchdog"]["state"] == "refusing"
    assert status["requests"]["rejected"] == 1
    assert b"kokoro_refusing 1.0" in client.get("/metrics").data
    assert b"".join([*heard, *body]) == whole, "the stream that was under way is whole"
    reading[0] = 500.0
    state.watchdog.look()
    assert client.post(URL, json={"input": "Hello."}).status_code == 200


def test_cleaning_up_stops_no_stream_and_changes_no_sample(app: Flask, client: FlaskClient) -> None:
    state = state_of(app)
    body = {"input": f"{TEXT} Here is a third.", "response_format": "pcm"}
    whole = client.post(URL, json=body).data
    watchdog = Watchdog(
        1.0,
        state.slots,
        state.admission,
        given_back(state.engine),
        settle=partial(settle, state.engine, "hum"),
    )
    answer = client.post(URL, json=body, buffered=False)
    answered = iter(answer.response)
    heard = [next(answered)]
    watchdog.look()  # any process is over a limit of 1 MB
    assert b"".join([*heard, *answered]) == whole
    actions = watchdog.figures()["actions"]
    assert actions == {"caches": 1, "garbage": 1, "arenas": 1, "heap": 1}
    state.admission.admit("memory_short")


def test_a_process_that_is_not_the_servers_own_has_no_limit(client: FlaskClient) -> None:
    assert client.get("/status").json["memory"]["watchdog"]["state"] == "off"


# ----------------------------------------------------------------------------------- what there is


def test_an_arena_gives_back_what_a_long_segment_took(hum: Engine) -> None:
    hum.synthesize("word " * 120, voice="hum")
    long_mb = resident_mb()
    assert hum.shrink() >= 1
    short = hum.synthesize("No.", voice="hum")
    give_back_freed()
    assert resident_mb() < long_mb - 10
    assert (hum.synthesize("No.", voice="hum").samples == short.samples).all()


def test_the_limit_is_the_setting_or_a_share_of_what_machine_and_container_have(tmp_path: Path) -> None:
    machine_mb = psutil.virtual_memory().total / 2**20
    (tmp_path / "some").write_text(f"{512 * 2**20}\n")
    (tmp_path / "max").write_text("max\n")
    assert given_mb((tmp_path / "max", tmp_path / "none")) == machine_mb
    assert given_mb((tmp_path / "some", tmp_path / "max")) == 512
    assert limit_of(700) == 700
    assert 0 < limit_of(0) <= SHARE * machine_mb + 0.1


def test_what_is_resident_is_what_the_system_says() -> None:
    assert resident_mb() == pytest.approx(psutil.Process(os.getpid()).memory_info().rss / 2**20, rel=0.2)
    with mmap.mmap(-1, 64 * 2**20) as held:  # from the system itself, not from a list of what was freed
        held.write(b"\1" * len(held))
        with_it_mb = resident_mb()
    assert with_it_mb - resident_mb() > 32
