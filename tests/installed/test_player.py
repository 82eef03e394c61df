"""`kokoro-lab player` on a machine without a sound card, as it is started by users."""

from __future__ import annotations

import json
import os
import shutil
import struct
import wave
from pathlib import Path
from typing import Any

import pytest
import websocket

from kokoro_lab.errors import PlaybackError
from kokoro_lab.playback.sinks import portaudio
from kokoro_lab.playback.system_player import PATHS, PLAYERS
from tests.installed.command import Installed


def _card_library() -> bool:
    try:
        portaudio()
    except PlaybackError:
        return False
    return True


pytestmark = pytest.mark.skipif(_card_library(), reason="this machine has PortAudio: it plays aloud")

CONTENT = struct.pack("<4800h", *range(4800))


def with_aplay(folder: Path) -> str:
    """A PATH on which an `aplay` is found first that copies its file to `played.wav`."""
    programs = folder / "bin"
    programs.mkdir()
    aplay = programs / "aplay"
    aplay.write_text(f'#!/bin/sh\nfor file; do :; done\ncp "$file" {folder}/played.wav\n')
    aplay.chmod(0o755)
    return os.pathsep.join((str(programs), os.environ["PATH"]))


def samples(path: Path) -> bytes:
    with wave.open(str(path)) as played:
        return played.readframes(played.getnframes())


def said(connection: websocket.WebSocket, kind: str) -> dict[str, Any]:
    while True:
        message = json.loads(connection.recv())
        assert message["type"] != "error", message
        if message["type"] == kind:
            data: dict[str, Any] = message["data"]
            return data


def test_without_a_card_it_plays_from_files_and_tells_its_client(installed: Installed) -> None:
    path = with_aplay(installed.folder)
    with installed.started("player", "--port", "0", PATH=path) as running:
        port = running.awaited(r"Listening at: ws://127\.0\.0\.1:(\d+)")[1]
        assert "Speech is played from files by" in running.written()
        connection = websocket.create_connection(f"ws://127.0.0.1:{port}/", suppress_origin=True, timeout=60)
        (lacking,) = said(connection, "status")["fallbacks"]
        assert "PortAudio" in lacking["reason"]
        connection.send_binary(CONTENT)
        connection.send(json.dumps({"type": "control", "timestamp": 0, "data": {"action": "end_stream"}}))
        assert "The rest is played from a file" in said(connection, "fallback")["reason"]
        assert said(connection, "completed")["played_samples"] == len(CONTENT) // 2
        connection.close()
    assert samples(installed.folder / "played.wav") == CONTENT


def test_a_pipe_is_played_from_a_file_too(installed: Installed) -> None:
    done = installed.run("player", "--pipe", "-", stdin="ab" * 2400, PATH=with_aplay(installed.folder))
    assert done.returncode == 0, done.stderr
    assert "Speech is played from files by" in done.stderr
    assert samples(installed.folder / "played.wav") == b"ab" * 2400


def test_input_that_cannot_be_played_leaves_the_file_as_it_was(installed: Installed) -> None:
    """Neither an earlier recording is lost, nor does an empty one appear."""
    (installed.folder / "kept.wav").write_bytes(CONTENT)
    for name in ("kept.wav", "new.wav"):
        done = installed.run("player", "--pipe", "-", "--sink", "file", "-o", name, stdin="ID3" + "a" * 4800)
        assert done.returncode == 2, done.stderr
    assert (installed.folder / "kept.wav").read_bytes() == CONTENT
    assert not (installed.folder / "new.wav").exists()


def test_a_class_of_service_that_cannot_be_had_is_warned_of_once(installed: Installed) -> None:
    done = installed.run(
        "player", "--sink", "null", "--pipe", "-", stdin="ab" * 240, KOKORO_QOS="interactive"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("classes of service") == (1 if os.uname().sysname == "Linux" else 0)


@pytest.mark.skipif(
    any(shutil.which(player.split()[0], path=os.pathsep.join(PATHS)) for player in PLAYERS),
    reason="this machine has a player of files, which is found wherever PATH points",
)
def test_with_neither_card_nor_player_it_says_how_to_mend_that(installed: Installed) -> None:
    done = installed.run("player", "--port", "0", PATH=str(installed.folder))
    assert done.returncode == 3
    assert "libportaudio2" in done.stderr
    assert "Or install a player of files: one of afplay, aplay, ffplay, play." in done.stderr
