"""The daemon: speech by WebSocket and by pipe, who may come in, and that nobody holds up who plays."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
import soundfile
import websocket
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from kokoro_lab.config import Settings
from kokoro_lab.containers.pcm import pcm_bytes, wav_header
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.playing import numbered
from kokoro_lab.playback.deck import Deck, running
from kokoro_lab.playback.pipe import make_fifo, play_fifo, play_pipe
from kokoro_lab.playback.player import CLIENTS, Daemon, listening
from kokoro_lab.playback.sinks import ClockedSink, Sink, WavSink

PCM = numbered(SAMPLE_RATE_HZ // 2)
CONTENT = pcm_bytes(PCM)
ORIGIN = "https://reader.example"


class Running:
    """A daemon, and where it listens."""

    def __init__(self, daemon: Daemon, port: int) -> None:
        self.daemon = daemon
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def connect(self, **options: Any) -> websocket.WebSocket:
        options = {"timeout": 30, "suppress_origin": True, **options}
        return websocket.create_connection(f"ws://127.0.0.1:{self.port}/", **options)


@contextmanager
def playing(sink: Sink, **options: Any) -> Iterator[Running]:
    daemon = Daemon(sink, Settings(allowed_origins=ORIGIN), players=(), **options)
    with listening(daemon, 0) as port:
        yield Running(daemon, port)


@pytest.fixture
def sink() -> ClockedSink:
    return ClockedSink(keep=True)


@pytest.fixture
def player(sink: ClockedSink) -> Iterator[Running]:
    with playing(sink) as found:
        yield found


def control(connection: websocket.WebSocket, action: str) -> None:
    connection.send(json.dumps({"type": "control", "timestamp": 0, "data": {"action": action}}))


def until(connection: websocket.WebSocket, kind: str, **wanted: Any) -> dict[str, Any]:
    until_s = time.monotonic() + 20  # heartbeats go on for ever
    while True:
        assert time.monotonic() < until_s, f"no {kind} {wanted}"
        said = json.loads(connection.recv())
        if said["type"] == kind and wanted.items() <= said["data"].items():
            data: dict[str, Any] = said["data"]
            return data


def wait_until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 30
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_a_client_is_greeted_heard_and_told_when_the_last_sample_was_played(
    player: Running, sink: ClockedSink
) -> None:
    connection = player.connect()
    with connection.sock:
        assert until(connection, "status")["state"] == "idle"
        started_s = time.monotonic()
        for at in range(0, len(CONTENT), 4801):
            connection.send_binary(CONTENT[at : at + 4801])
        control(connection, "end_stream")
        done = until(connection, "completed")
        assert time.monotonic() - started_s >= len(PCM) / SAMPLE_RATE_HZ
    assert np.array_equal(sink.heard, PCM)
    assert done["played_samples"] == len(PCM)


def test_it_stays_for_one_client_after_another_and_beats(player: Running, sink: ClockedSink) -> None:
    for _ in range(2):
        connection = player.connect()
        connection.send_binary(CONTENT)
        control(connection, "end_stream")
        until(connection, "completed")
        until(connection, "heartbeat", status="ok")
        connection.close()
    assert np.array_equal(sink.heard, np.concatenate((PCM, PCM)))
    wait_until(lambda: httpx2.get(f"{player.url}/health").json()["clients"] == 0)


def test_a_stop_from_another_client_silences_and_both_are_told(player: Running, sink: ClockedSink) -> None:
    connection, other = player.connect(), player.connect()
    with connection.sock, other.sock:
        connection.send_binary(CONTENT)
        wait_until(lambda: player.daemon.deck.status().state == "playing")
        control(other, "stop")
        until(connection, "status", state="idle", reason="stopped")
    heard = sink.heard
    assert len(heard) < len(PCM)
    assert np.array_equal(heard, PCM[: len(heard)])


def test_who_hangs_up_is_played_to_the_end(player: Running, sink: ClockedSink) -> None:
    connection = player.connect()
    connection.send_binary(CONTENT)
    connection.close()
    wait_until(lambda: np.array_equal(sink.heard, PCM))


def test_more_than_there_is_room_for_waits_in_the_socket_and_all_of_it_is_played(sink: ClockedSink) -> None:
    pcm = numbered(2 * SAMPLE_RATE_HZ)
    with playing(sink, capacity_s=0.2) as player:
        connection = player.connect()
        with connection.sock:
            for at in range(0, len(pcm), 1200):
                connection.send_binary(pcm_bytes(pcm[at : at + 1200]))
            control(connection, "end_stream")
            until(connection, "completed")
    assert np.array_equal(sink.heard, pcm)


def test_a_client_that_does_not_read_holds_nobody_up(player: Running, sink: ClockedSink) -> None:
    deaf = player.connect(sockopt=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)])
    with deaf.sock:
        for _ in range(3000):
            deaf.send('{"type": "status"}')
        connection = player.connect()
        with connection.sock:
            connection.send_binary(CONTENT)
            control(connection, "end_stream")
            until(connection, "completed")
    assert np.array_equal(sink.heard, PCM)


def test_health_tells_how_it_stands(player: Running) -> None:
    answer = httpx2.get(f"{player.url}/health")
    body = answer.json()
    assert (answer.status_code, body["status"], body["clients"]) == (200, "healthy", 0)
    assert body["audioProcessor"]["isPlaying"] is False
    assert body["audioProcessor"]["player"]["sink"] == "null"
    assert httpx2.get(f"{player.url}/other").status_code == 426


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 400),
        ({"origin": ORIGIN}, 101),
    ],
)
def test_foreign_pages_and_hosts_are_turned_away(
    player: Running, headers: dict[str, str], status: int
) -> None:
    options = {"suppress_origin": "origin" not in headers, **headers}
    if status == 101:
        player.connect(**options).close()
        return
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        player.connect(**options)
    assert refused.value.status_code == status


def test_more_clients_than_there_are_seats_are_told_so(player: Running) -> None:
    connections = [player.connect() for _ in range(CLIENTS)]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        player.connect()
    assert refused.value.status_code == 503
    for connection in connections:
        connection.close()
    wait_until(lambda: httpx2.get(f"{player.url}/health").json()["clients"] == 0)


def test_it_listens_on_the_loopback_alone_and_a_port_that_is_taken_is_told(player: Running) -> None:
    with (
        pytest.raises(ParameterError, match="Another player may be running"),
        listening(player.daemon, player.port),
    ):
        pass


@pytest.mark.parametrize("header", [b"", wav_header(SAMPLE_RATE_HZ)], ids=["bare", "WAV"])
def test_a_pipe_is_played_to_its_end(tmp_path: Path, header: bytes) -> None:
    read, write = os.pipe()
    path = tmp_path / "played.wav"

    def fill() -> None:
        with open(write, "wb", buffering=0) as out:  # noqa: PTH123
            for at in range(0, len(header + CONTENT), 777):
                out.write((header + CONTENT)[at : at + 777])

    writer = threading.Thread(target=fill)
    writer.start()
    with open(read, "rb", buffering=0) as source, running(Deck(WavSink(path))) as deck:  # noqa: PTH123
        assert play_pipe(deck, source)
    writer.join()
    assert np.array_equal(soundfile.read(path, dtype="int16")[0], PCM)


def test_a_fifo_is_played_for_one_writer_after_another(tmp_path: Path) -> None:
    fifo, path, over = make_fifo(tmp_path / "fifo"), tmp_path / "played.wav", threading.Event()
    deck = Deck(WavSink(path))
    with running(deck):
        reader = threading.Thread(target=play_fifo, args=(deck, fifo, over))
        reader.start()
        for content in (CONTENT, wav_header(44_100) + CONTENT, wav_header(SAMPLE_RATE_HZ) + CONTENT):
            fifo.write_bytes(content)
            time.sleep(0.3)  # it has no end between two writers who do not leave it alone for a moment
        wait_until(lambda: deck.over(2))
        over.set()
        reader.join(30)
        assert not reader.is_alive()
    assert np.array_equal(soundfile.read(path, dtype="int16")[0], np.concatenate((PCM, PCM)))
    assert (fifo.stat().st_mode & 0o777) == 0o600


def test_what_is_no_fifo_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    with pytest.raises(ParameterError, match="no FIFO"):
        make_fifo(path)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--sink", "file"], "--output"),
        (["--sink", "null", "--device", "1"], "--device"),
        (["--sink", "null", "--output", "x.wav"], "--output"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["player", *arguments])
    assert done.exit_code == 2
    assert says in done.output


def test_the_command_plays_standard_input_and_a_process_that_stays_ends_when_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "kokoro_lab", "player"]
    path = tmp_path / "played.wav"
    piped = [*command, "--sink", "file", "-o", str(path), "--pipe", "-", "--json"]
    done = subprocess.run(piped, input=wav_header(SAMPLE_RATE_HZ) + CONTENT, capture_output=True, check=True)
    assert json.loads(done.stdout)["played_samples"] == len(PCM)
    assert np.array_equal(soundfile.read(path, dtype="int16")[0], PCM)
    with subprocess.Popen(
        [*command, "--sink", "null", "--port", "0"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[-1]
        connection = websocket.create_connection(url, timeout=30, suppress_origin=True)
        with connection.sock:
            until(connection, "status")
            process.terminate()
            assert process.wait(30) == 0
