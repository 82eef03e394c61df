"""launchd: runs the server as an agent of the user who is logged in on a Mac.

Source: the manual's pages launchd.plist and launchctl.
"""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from kokoro_lab.errors import ServiceError
from kokoro_lab.server.service.supervisor import (
    MARK,
    NAME,
    TITLE,
    Service,
    ServiceState,
    Supervisor,
)

LABEL = "io.github.kokoro-lab"
POLL_S = 0.2
FORGETTING_S = 5
"""Seconds that launchd may take to forget a service after it has ended."""


class Launchd(Supervisor):
    """The launchd of this user's session."""

    program = "launchctl"
    note = "It runs while you are logged in."

    def __init__(self) -> None:
        library = Path.home() / "Library"
        self.path = library / "LaunchAgents" / f"{LABEL}.plist"
        self.log_file = library / "Logs" / f"{NAME}.log"
        self.log = f"tail -F {shlex.quote(str(self.log_file))}"
        self._domain = f"gui/{os.getuid()}"
        self._target = f"{self._domain}/{LABEL}"

    def text(self, service: Service) -> str:
        described = {
            "Label": LABEL,
            "ProgramArguments": list(service.command),
            "EnvironmentVariables": dict(service.environment),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            # Somebody waits for speech: processor and disk must not be throttled
            "ProcessType": "Interactive",
            "ExitTimeOut": service.stop_s,
            "Umask": 0o077,
            "StandardOutPath": str(self.log_file),
            "StandardErrorPath": str(self.log_file),
        }
        xml = plistlib.dumps(described, sort_keys=False).decode()
        return xml.replace("<plist ", f"<!-- {TITLE}. {MARK}, which would write it anew. -->\n<plist ", 1)

    def environment(self, text: str) -> Mapping[str, str]:
        variables: dict[str, str] = plistlib.loads(text.encode())["EnvironmentVariables"]
        return variables

    def state(self) -> ServiceState:
        said = self._tell("print", self._target, may_fail=True)
        found = re.findall(r"^\s+(state|pid|last exit code) = (.+)$", said, re.MULTILINE)
        words = ", ".join(value if name == "state" else f"{name} {value}" for name, value in found)
        return ServiceState(("state", "running") in found, words or "not loaded")

    def _reach(self) -> None:
        self._tell("print", self._domain)

    def _start(self, changed: bool) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        if changed:
            self._unload()
        self._tell("enable", self._target)
        if changed or not self._loaded():
            self._tell("bootstrap", self._domain, str(self.path))
        else:
            self._tell("kickstart", self._target)  # this leaves a running one alone

    def _stop(self) -> None:
        self._unload()
        self.path.unlink()

    def _mend(self, said: str) -> str:
        if "domain" in said.lower():
            return "Log in at this Mac's screen first: launchd has a session for those who did."
        return f"`{self.log.replace('-F', '-n 20')}` has what the server said."

    def _loaded(self) -> bool:
        return bool(self._tell("print", self._target, may_fail=True))

    def _unload(self) -> None:
        """Unload the service and wait until it has ended: `bootout` may return before that, and a `bootstrap`
        would then be refused."""
        if not self._loaded():
            return
        self._tell("bootout", self._target, may_fail=True)
        stop_s = plistlib.loads(self.path.read_bytes()).get("ExitTimeOut", 0)
        deadline = time.monotonic() + stop_s + FORGETTING_S
        while self._loaded():
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"{LABEL} does not end.", mend=f"`launchctl kill KILL {self._target}` ends it at once."
                )
            time.sleep(POLL_S)
