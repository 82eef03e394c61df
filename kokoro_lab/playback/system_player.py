"""Plays speech, or the rest of a stream, from a file by the system's own player, if ours cannot play it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import wave
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE, Pcm, pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import PlaybackError

PLAYERS = ("afplay", "aplay -q", "ffplay -autoexit -nodisp -loglevel error", "play -q")
"""The players of macOS, ALSA, FFmpeg and SoX. The first one that is installed is used."""
PATHS = ("/opt/homebrew/bin", "/usr/local/bin", "/usr/bin")
"""Folders to search besides PATH, which is nearly empty in a program that Raycast starts."""
STOP_S = 2.0
"""Seconds after which a player that was told to end, and still runs, is killed."""


def system_player(players: Sequence[str] = PLAYERS) -> tuple[str, ...]:
    """The command of a player that is installed; the name of a file is appended to it.

    Raises
    ------
    PlaybackError
        No player is installed.
    """
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *PATHS))
    for player in players:
        program, *arguments = player.split()
        found = shutil.which(program, path=path)
        if found:
            return (found, *arguments)
    names = ", ".join(player.split()[0] for player in players)
    raise PlaybackError(
        "No player was found.", field="player", allowed=f"one of {names}", mend="Install one of them."
    )


class FilePlayback:
    """A temporary file that is first filled, then played, and removed whatever happens.

    Every player takes WAV. `afplay` takes no Opus and no bare PCM, and `aplay` plays unknown formats as
    samples: MP3 would be noise.

    Parameters
    ----------
    command : sequence of str
        From `system_player`.

    Raises
    ------
    PlaybackError
        No temporary file can be made.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self.samples = 0
        try:
            handle, name = tempfile.mkstemp(prefix="kokoro-lab-", suffix=".wav")  # for its owner alone
        except OSError as error:
            raise _unwritable(error) from error
        self.path = Path(name)
        self._raw = os.fdopen(handle, "wb")
        self._file = wave.open(self._raw, "wb")  # noqa: SIM115  # it is filled as samples come
        self._file.setparams((1, BYTES_A_SAMPLE, SAMPLE_RATE_HZ, 0, "NONE", ""))

    @property
    def started(self) -> bool:
        return self._process is not None

    def write(self, pcm: Pcm) -> None:
        """Add samples.

        Raises
        ------
        PlaybackError
            The disk is full.
        """
        if not len(pcm):
            return
        try:
            self._file.writeframes(pcm_bytes(pcm))
        except OSError as error:
            raise _unwritable(error) from error
        self.samples += len(pcm)

    def start(self) -> None:
        """Close the file and play it.

        Raises
        ------
        PlaybackError
            The player does not start.
        """
        self._close_file()
        try:
            self._process = subprocess.Popen(
                [*self._command, str(self.path)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        except OSError as error:
            raise PlaybackError(f"{self._command[0]} does not start: {error.strerror or error}.") from error

    def over(self) -> bool:
        """Whether the file was played to its end.

        Raises
        ------
        PlaybackError
            The player failed.
        """
        code = None if self._process is None else self._process.poll()
        if code:
            raise PlaybackError(f"{Path(self._command[0]).name} ended with exit code {code}.", field="player")
        return code == 0

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop the player, and remove the file."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._signal(signal.SIGCONT)  # a player that is stopped by a signal would not get another one
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close_file()
        self.path.unlink(missing_ok=True)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def _close_file(self) -> None:
        with suppress(OSError):
            self._file.close()
            self._raw.close()


def _unwritable(error: OSError) -> PlaybackError:
    return PlaybackError(
        f"The temporary file cannot be written: {error.strerror or error}.",
        field="TMPDIR",
        mend=f"Make room in {tempfile.gettempdir()}.",
    )
