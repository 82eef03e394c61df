"""A user's service, and the file that tells systemd or launchd to run it."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import ClassVar, NamedTuple

from kokoro_lab._version import __version__
from kokoro_lab.containers.plain_json import whole_file
from kokoro_lab.errors import ServiceError

NAME = "kokoro-lab"
TITLE = f"kokoro-lab {__version__}: speech over HTTP"
"""Title of the service. It contains the version, so that the file changes with it and `install` of a newer
version restarts the service."""
MARK = "Written by `kokoro-lab service install`"
"""The text by which we recognise our own file."""
STOP_MARGIN_S = 10
"""Seconds beyond the time in which streams may end: for the last messages and for freeing memory."""


@dataclass(frozen=True)
class Service:
    """The program that a supervisor keeps running.

    Parameters
    ----------
    command : tuple of str
        A program by its absolute path, and its arguments.
    environment : mapping
        Variables that it runs with.
    stop_s : int
        Seconds that it may take to end before it is killed.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    stop_s: int


class ServiceState(NamedTuple):
    """Whether a service runs, and its state in its supervisor's words."""

    running: bool
    said: str


class Supervisor(ABC):
    """Starts a user's service, and starts it again when it fails: systemd or launchd."""

    program: ClassVar[str]
    """The supervisor's own program, such as `systemctl`, which controls and queries services."""
    path: Path
    """Path at which the supervisor looks for the file of this service."""
    log: str
    """The command that shows what the service says."""
    note: ClassVar[str]
    """A sentence for users on when the service runs and when not."""

    @abstractmethod
    def text(self, service: Service) -> str:
        """The file that describes `service`."""

    @abstractmethod
    def environment(self, text: str) -> Mapping[str, str]:
        """The variables of a file that `text` made."""

    @abstractmethod
    def state(self) -> ServiceState:
        """Whether the service runs, and its state in words.

        Raises
        ------
        ServiceError
            The supervisor cannot be asked.
        """

    @abstractmethod
    def _reach(self) -> None:
        """Raise ServiceError unless the supervisor can be reached for this user."""

    @abstractmethod
    def _start(self, changed: bool) -> None:
        """Start the service now and at each login; restart it if its file has changed."""

    @abstractmethod
    def _stop(self) -> None:
        """Stop the service after its streams have ended, disable it, and delete its file."""

    @abstractmethod
    def _mend(self, said: str) -> str:
        """How to mend a refusal of the supervisor, by its message."""

    def written(self) -> str | None:
        """The text of our file at `path`; None if there is no file.

        Raises
        ------
        ServiceError
            The file at `path` was not written by kokoro-lab.
        """
        if not os.path.lexists(self.path):
            return None
        text = self.path.read_text("utf-8", errors="replace") if self.path.is_file() else ""
        if MARK not in text:
            raise ServiceError(
                f"kokoro-lab did not write {self.path}, and leaves it alone.",
                mend="Move it away, and ask again.",
            )
        return text

    def install(self, service: Service) -> bool:
        """Write the file and start its service; returns False if the same file was there already.

        Raises
        ------
        ServiceError
            The supervisor is not here or refuses; the file is not ours, or cannot be written.
        """
        text = self.text(service)
        changed = self.written() != text
        self._reach()
        if changed:
            try:
                self._write(text)
            except OSError as error:
                raise ServiceError(
                    f"{self.path} cannot be written: {error.strerror}.",
                    mend="Make its folder one that you may write to.",
                ) from error
        self._start(changed)
        return changed

    def remove(self) -> bool:
        """Stop the service and delete its file; returns False if there is no file.

        Raises
        ------
        ServiceError
            The supervisor is not here or refuses, or the file is not ours.
        """
        if self.written() is None:
            return False
        self._reach()
        self._stop()
        return True

    def _write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path) as making:
            making.touch(mode=0o600)  # an API key may stand in it
            making.write_text(text, "utf-8")

    def _tell(self, *arguments: str, may_fail: bool = False) -> str:
        if shutil.which(self.program) is None:
            raise ServiceError(
                f"{self.program}, which installs services, was not found.",
                mend="Have another supervisor run `kokoro-lab serve`; "
                "`kokoro-lab service install --print` shows with which settings.",
            )
        done = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode and not may_fail:
            said = (done.stderr or done.stdout).strip() or f"it ended with {done.returncode}"
            raise ServiceError(
                f"`{self.program} {' '.join(arguments)}` says: {said.rstrip('.')}.", mend=self._mend(said)
            )
        return done.stdout


def console_script() -> str:
    """The path of the program `kokoro-lab`, from pip's records of the installation.

    Raises
    ------
    ServiceError
        pip's records do not have the program.
    """
    try:
        listed = files(NAME) or ()
    except PackageNotFoundError:
        listed = ()
    for file in listed:
        script = os.path.normpath(str(file.locate()))
        if file.name == NAME and os.access(script, os.X_OK) and not Path(script).is_dir():
            return script
    raise ServiceError("The program kokoro-lab is not installed.", mend="Run `pip install kokoro-lab`.")
