"""Classes of service, cores and the collector: as asked for, and what cannot be had is said."""

from __future__ import annotations

import gc
import io
import os
import platform
import threading
from dataclasses import replace

import pytest
import websocket

from kokoro_lab.config import Settings
from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.pipe import play_pipe
from kokoro_lab.playback.player import Daemon, listening
from kokoro_lab.playback.sinks import ClockedSink
from kokoro_lab.scheduling import priority as scheduling
from kokoro_lab.speech.engine import Engine


def in_a_thread(work: object) -> object:
    """What `work` returns: in a thread of its own, which nobody else computes in afterwards."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()))  # type: ignore[operator]
    thread.start()
    thread.join()
    return found[0]


def test_nothing_is_asked_of_the_system_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "pin", lambda cores: pytest.fail("nobody asked"))
    monkeypatch.setattr(scheduling, "user_interactive", lambda: pytest.fail("nobody asked"))
    assert scheduling.prepare(EngineConfig()) == ()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin threads")
def test_a_thread_stays_on_its_cores_and_so_does_what_it_starts() -> None:
    core = min(os.sched_getaffinity(0))

    def pinned() -> object:
        assert scheduling.prepare(EngineConfig(cores=str(core))) == ()
        return os.sched_getaffinity(0), in_a_thread(lambda: os.sched_getaffinity(0))

    before = os.sched_getaffinity(0)
    assert in_a_thread(pinned) == ({core}, {core})
    assert os.sched_getaffinity(0) == before, "other threads stay as they were"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not pin threads")
def test_cores_that_are_not_there_are_a_fallback_that_is_named() -> None:
    (fallback,) = in_a_thread(lambda: scheduling.prepare(EngineConfig(cores="1000")))  # type: ignore[misc]
    assert fallback.stage == "scheduling"
    assert "1000" in fallback.reason


def test_where_the_system_cannot_pin_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    (fallback,) = scheduling.prepare(EngineConfig(cores="0"))
    assert "does not let a program choose its cores" in fallback.reason


@pytest.mark.parametrize("cores", ["a", "0-3", "0,,1", "-1"])
def test_cores_that_are_no_numbers_are_refused(cores: str) -> None:
    with pytest.raises(SettingsError, match="Cores"):
        EngineConfig(cores=cores)


class Darwin:
    """The C library of a Mac, as far as it is called."""

    def __init__(self, code: int) -> None:
        self.code = code
        self.calls: list[tuple[int, int]] = []

    def pthread_set_qos_class_self_np(self, of_service: object, priority: object) -> int:
        self.calls.append((of_service.value, priority.value))  # type: ignore[attr-defined]
        return self.code


def test_on_a_mac_each_thread_asks_once_for_the_user_interactive_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    system = Darwin(code=0)
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(scheduling.ctypes, "CDLL", lambda name: system)
    assert in_a_thread(lambda: [scheduling.user_interactive() for _ in range(3)]) == [None] * 3
    assert system.calls == [(0x21, 0)]
    assert in_a_thread(scheduling.user_interactive) is None
    assert len(system.calls) == 2, "a thread does not hand its class on"


def test_a_class_that_is_refused_or_not_there_is_a_fallback_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    config = EngineConfig(qos="interactive")
    (missing,) = in_a_thread(lambda: scheduling.prepare(config))  # type: ignore[misc]
    assert "Linux has no classes of service" in missing.reason
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(scheduling.ctypes, "CDLL", lambda name: Darwin(code=1))
    (refused,) = in_a_thread(lambda: scheduling.prepare(config))  # type: ignore[misc]
    assert "refused" in refused.reason


def test_the_thread_that_speaks_asks_where_it_was_asked_for_and_no_other_does(
    hum: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        "kokoro_lab.speech.parts.user_interactive", lambda: asked.append(threading.get_ident())
    )
    for qos, by in (("off", set()), ("interactive", {threading.get_ident()})):
        config = replace(hum.config, qos=qos)  # type: ignore[arg-type]
        engine = Engine(replace(hum.parts, config=config))
        engine.synthesize("Hello.", voice="hum")
        assert set(asked) == by


@pytest.mark.macos
@pytest.mark.skipif(platform.system() != "Darwin", reason="needs a Mac: `make test-macos`")
def test_on_this_mac_the_class_is_had() -> None:
    assert in_a_thread(scheduling.user_interactive) is None


def test_what_stays_loaded_is_kept_from_the_collector() -> None:
    try:
        before = gc.get_freeze_count()
        scheduling.keep_collector_off()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def test_the_collector_rests_while_one_loads_and_leaves_out_what_was_loaded() -> None:
    try:
        before = gc.get_freeze_count()
        with scheduling.loaded_without_collector():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()


def _on_a_mac(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Which threads the system was asked for the class by, by their numbers."""
    asked: list[int | None] = []

    def c_library(name: object) -> Darwin:
        asked.append(threading.current_thread().ident)
        return Darwin(code=0)

    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(scheduling.ctypes, "CDLL", c_library)
    return asked


def test_the_thread_that_plays_asks_itself_before_it_plays_and_so_does_who_fills_the_ring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = _on_a_mac(monkeypatch)
    sink = _Noting(asked)
    with running(Deck(sink, qos="interactive")) as deck:
        (plays,) = [thread.ident for thread in threading.enumerate() if thread.name == "deck"]
        in_a_thread(lambda: play_pipe(deck, io.BytesIO(bytes(4800))))
    assert asked.count(plays) == 1, "the deck's own thread has asked, and once"
    assert len(set(asked)) == 2, "and the one that reads the pipe"
    assert sink.asked_before == {plays}, "before the first block"


def test_the_thread_of_a_players_client_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _on_a_mac(monkeypatch)
    daemon = Daemon(ClockedSink(), Settings(qos="interactive"), players=())
    with listening(daemon, 0) as port:
        connection = websocket.create_connection(f"ws://127.0.0.1:{port}/", suppress_origin=True)
        connection.recv()  # it is served
        connection.close()
    assert len(set(asked)) == 2


def test_a_player_asks_for_nothing_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _on_a_mac(monkeypatch)
    with running(Deck(ClockedSink(), qos="off")) as deck:
        in_a_thread(lambda: play_pipe(deck, io.BytesIO(bytes(480))))
        assert deck.status().fallbacks == ()
    assert asked == []


def test_a_class_that_a_player_cannot_have_is_in_its_status_and_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(scheduling, "_warned", set())
    with running(Deck(ClockedSink(), qos="interactive")) as deck:
        in_a_thread(lambda: play_pipe(deck, io.BytesIO(bytes(480))))
        (missing,) = deck.status().fallbacks
    assert missing.stage == "scheduling"
    assert "Linux has no classes of service" in missing.reason
    assert [r.levelname for r in caplog.records if "classes of service" in r.message] == ["WARNING"]


class _Noting(ClockedSink):
    """Notes who had asked for the class when it is given the first block."""

    def __init__(self, asked: list[int | None]) -> None:
        super().__init__()
        self._asked = asked
        self.asked_before: set[int | None] = set()

    def play(self, pcm: Pcm) -> None:
        self.asked_before = self.asked_before or {threading.get_ident()} & set(self._asked)
        super().play(pcm)
