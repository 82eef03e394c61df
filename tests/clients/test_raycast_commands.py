"""The two script commands for Raycast, with a pasteboard and a player that are stand-ins."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.browser import require
from tests.clients.listening import SLOW, TEXT, reference, samples_of
from tests.server.conftest import RunningServer, wait_until

pytestmark = pytest.mark.test_all

COMMANDS = Path(__file__).parents[2] / "scripts/raycast"
PLAYER = '#!/bin/sh\necho "$0 $*" >>"$STAND_INS/calls"\ncat >>"$STAND_INS/played"\n'
TEXT_OF = '#!/bin/sh\ncat "$STAND_INS/{name}"\n'


@dataclass(frozen=True)
class Mac:
    """As much of a Mac as the commands see."""

    folder: Path
    environment: dict[str, str]

    def select(self, text: str) -> None:
        (self.folder / "selected").write_text(text)

    def copy(self, text: str) -> None:
        (self.folder / "copied").write_text(text)

    def program(self, name: str, script: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(script)
        path.chmod(0o755)

    def run(self, command: str, **environment: str) -> tuple[int, str]:
        """Its exit code, and the line that Raycast would show."""
        done = subprocess.run(
            [self.folder / "commands" / command],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, (done.stdout.splitlines() or [done.stderr])[-1]

    @property
    def played(self) -> bytes:
        path = self.folder / "played"
        return path.read_bytes() if path.exists() else b""


@pytest.fixture
def mac(tmp_path: Path, server: RunningServer) -> Iterator[Mac]:
    require({"curl (Debian: apt-get install curl)": shutil.which("curl")})
    (tmp_path / "bin").mkdir()
    shutil.copytree(COMMANDS, tmp_path / "commands")
    found = Mac(
        tmp_path,
        {
            # Only what a Mac has as well, and no real player
            "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
            "TMPDIR": str(tmp_path),
            "STAND_INS": str(tmp_path),
            "KOKORO_URL": server.url,
            "HOME": os.environ.get("HOME", "/"),
        },
    )
    found.program("play", PLAYER)
    found.program("osascript", TEXT_OF.format(name="selected"))
    found.program("pbpaste", TEXT_OF.format(name="copied"))
    found.select("")
    found.copy("")
    yield found
    found.run("stop.sh")
    wait_until(lambda: server.status()["active"] == 0)


def wait_for_speech(mac: Mac, server: RunningServer, text: str, **fields: object) -> None:
    """The whole of `text`, and nothing else, reaches the player."""
    said = reference(server, text, **fields)
    wait_until(lambda: len(mac.played) > 2 * len(said))
    np.testing.assert_array_equal(samples_of("wav", mac.played)[-len(said) :], said)


def test_shellcheck_has_nothing_to_say() -> None:
    require({"shellcheck (Debian: apt-get install shellcheck)": shutil.which("shellcheck")})
    subprocess.run(["shellcheck", *COMMANDS.glob("*.sh")], check=True)


def test_raycast_finds_what_it_needs_in_each_command() -> None:
    for path in COMMANDS.glob("*.sh"):
        text = path.read_text()
        assert text.startswith("#!/")
        assert os.access(path, os.X_OK)
        for name in ("schemaVersion 1", "title ", "mode silent", "packageName kokoro-lab"):
            assert f"# @raycast.{name}" in text


def test_the_selection_is_spoken(mac: Mac, server: RunningServer) -> None:
    mac.select(TEXT)
    mac.copy("Something else.")
    assert mac.run("speak-selection.sh") == (0, "Speaking the selection")
    wait_for_speech(mac, server, TEXT)
    assert "-t wav -" in (mac.folder / "calls").read_text()


def test_where_nothing_is_selected_the_clipboard_is_spoken_and_that_is_said(
    mac: Mac, server: RunningServer
) -> None:
    mac.copy("Something else.")
    assert mac.run("speak-selection.sh") == (0, "Speaking the clipboard (no selection was found)")
    wait_for_speech(mac, server, "Something else.")


@pytest.mark.parametrize(
    "text", ['He said "no" and \\ "yes".', "One line,\nand\tanother.\r\nAnd more…", "Café, naïve – ‘so’ 🎉."]
)
def test_a_text_arrives_as_it_is(mac: Mac, text: str, server: RunningServer) -> None:
    mac.select(text)
    assert mac.run("speak-selection.sh")[0] == 0
    wait_for_speech(mac, server, text.replace("\r\n", "\n"))


def test_stop_is_silence_and_frees_the_slot(mac: Mac, server: RunningServer) -> None:
    mac.select(SLOW)
    assert mac.run("speak-selection.sh")[0] == 0
    wait_until(lambda: len(mac.played) > 10_000)
    assert server.status()["active"] == 1
    assert mac.run("stop.sh") == (0, "Stopped")
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)
    assert mac.run("stop.sh") == (0, "Nothing is being spoken")


def test_a_second_press_begins_anew(mac: Mac, server: RunningServer) -> None:
    mac.select(SLOW)
    assert mac.run("speak-selection.sh")[0] == 0
    wait_until(lambda: len(mac.played) > 10_000)
    mac.program("play", PLAYER.replace("cat >>", "cat >"))
    mac.select(TEXT)
    assert mac.run("speak-selection.sh")[0] == 0
    wait_for_speech(mac, server, TEXT)
    wait_until(lambda: server.status()["active"] == 0, timeout_s=5)


def test_a_program_that_has_the_number_of_a_finished_speech_is_left_alone(mac: Mac) -> None:
    folder = mac.folder / f"kokoro-lab-{os.getuid()}"
    folder.mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        (folder / "group").write_text(f"{other.pid}\n")
        assert mac.run("stop.sh") == (0, "Nothing is being spoken")
        assert other.poll() is None
        other.terminate()


def test_voice_and_speed_are_the_users(mac: Mac, server: RunningServer) -> None:
    mac.select(TEXT)
    assert mac.run("speak-selection.sh", KOKORO_VOICE="hum_high", KOKORO_SPEED="2")[0] == 0
    wait_for_speech(mac, server, TEXT, voice="hum_high", speed=2.0)


def test_the_key_is_sent(mac: Mac, locked: RunningServer) -> None:
    mac.select(TEXT)
    code, said = mac.run("speak-selection.sh", KOKORO_URL=locked.url)
    assert (code, "API key is missing or wrong" in said) == (1, True)
    assert mac.run("speak-selection.sh", KOKORO_URL=locked.url, KOKORO_API_KEY="sesame")[0] == 0
    wait_until(lambda: len(mac.played) > 10_000)


@pytest.mark.parametrize(
    ("breaks", "environment", "said"),
    [
        (lambda mac: None, {"KOKORO_VOICE": 'no"body'}, "hum, hum_high"),
        (lambda mac: None, {"KOKORO_URL": "http://127.0.0.1:9"}, "cannot be reached at http://127.0.0.1:9"),
        (lambda mac: mac.select(" \n"), {}, "no selection, and the clipboard holds no text"),
        (lambda mac: (mac.folder / "bin/play").unlink(), {}, "install one: brew install sox"),
        (lambda mac: (mac.folder / "commands/stop.sh").unlink(), {}, "stop.sh is not beside this script"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_played(
    mac: Mac, breaks: Callable[[Mac], object], environment: dict[str, str], said: str
) -> None:
    mac.select(TEXT)
    breaks(mac)
    code, line = mac.run("speak-selection.sh", **environment)
    assert code == 1
    assert said in line
    assert "{" not in line
    assert mac.played == b""
    shutil.copy(COMMANDS / "stop.sh", mac.folder / "commands")


def test_afplay_which_plays_files_alone_is_given_one(mac: Mac, server: RunningServer) -> None:
    (mac.folder / "bin/play").unlink()
    mac.program("afplay", '#!/bin/sh\ncat "$1" >"$STAND_INS/played"\n')
    mac.select(TEXT)
    assert "once all of it has been made" in mac.run("speak-selection.sh")[1]
    wait_for_speech(mac, server, TEXT)
