"""The soak of the player finds what it should, in a process of its own, and catches what is put in."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from simple_websocket import ConnectionClosed

from kokoro_lab.errors import GateFailed
from kokoro_lab.lab.bench import playing
from kokoro_lab.lab.bench.own_server import ServerFailed
from kokoro_lab.lab.bench.playing import (
    BURST_S,
    CHUNK_S,
    PlayerFigures,
    burst_arrivals,
    conclude,
    measure_player,
    own_player,
    play_virtually,
)
from kokoro_lab.lab.results import open_run

FINE = PlayerFigures(
    audio_s=60.0,
    underruns=1,
    silent_s=0.7,
    late_blocks=0,
    unplayed_samples=0,
    took_beyond_audio_s=0.8,
    unplayed_after_pauses_samples=0,
    silenced_s=(0.01,) * playing.STOPS,
    stop_told_s=(0.02,) * playing.STOPS,
    virtual=play_virtually(burst_arrivals(10, 0)),
)


def test_bursts_come_when_the_seed_says_and_hold_up_for_as_long_as_they_are_said_to() -> None:
    arrivals_s = burst_arrivals(120, 7)
    assert arrivals_s == burst_arrivals(120, 7) != burst_arrivals(120, 8)
    late_s = [at_s - i * CHUNK_S for i, at_s in enumerate(arrivals_s)]
    assert min(late_s) == pytest.approx(0, abs=1e-9)
    assert BURST_S[0] < max(late_s) <= BURST_S[1]
    assert arrivals_s == sorted(arrivals_s)


def test_a_lost_chunk_is_seen() -> None:
    assert play_virtually(burst_arrivals(10, 0)).differing_samples == 0
    assert play_virtually(burst_arrivals(10, 0), lost_chunk=100).differing_samples > 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"underruns": 2},
        {"unplayed_samples": 1},
        {"took_beyond_audio_s": -0.1},
        {"unplayed_after_pauses_samples": -5},
        {"silenced_s": (0.06,) * playing.STOPS},
        {"silenced_s": ()},
    ],
)
def test_it_fails_where_a_listener_would_notice(tmp_path: Path, wrong: dict[str, object]) -> None:
    assert conclude(open_run("bench-player", tmp_path), FINE, 0)["verdict"] == "passed"
    with pytest.raises(GateFailed):
        conclude(open_run("bench-player", tmp_path), replace(FINE, **wrong), 0)


class Beating:
    """A player whose heart goes on, and that plays nothing; or one that is gone."""

    def __init__(self, *, gone: bool) -> None:
        self._gone = gone
        self._beats = 0

    def send(self, message: bytes | str) -> None:
        pass

    def close(self) -> None:
        if self._gone:
            raise ConnectionClosed

    def receive(self, timeout: float) -> str | None:
        self.close()
        assert self._beats < 1000
        self._beats += 1
        time.sleep(0.001)
        return '{"type": "heartbeat", "data": {"status": "ok"}}' if timeout > 0 else None


@pytest.mark.parametrize(("gone", "said"), [(False, "did not say completed"), (True, "broke off")])
def test_a_player_that_never_completes_is_told(
    monkeypatch: pytest.MonkeyPatch, gone: bool, said: str
) -> None:
    monkeypatch.setattr(playing, "ANSWER_S", 0.1)
    monkeypatch.setattr(playing.Client, "connect", lambda url: Beating(gone=gone))
    with pytest.raises(ServerFailed, match=said):
        measure_player("ws://nowhere/", 0.1, 0)


def test_a_daemon_is_measured_as_its_client_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "STOPS", 2)
    monkeypatch.setattr(playing, "PAUSES", 1)
    with own_player() as url:
        found = measure_player(url, 1.0, 0)
    assert (found.unplayed_samples, found.unplayed_after_pauses_samples) == (0, 0)
    assert len(found.silenced_s) == len(found.stop_told_s) == 2
    assert found.took_beyond_audio_s > 0
