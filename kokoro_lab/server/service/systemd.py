"""systemd: runs the server as a unit of the user's own manager.

Source: the manual's pages systemd.unit, systemd.service, systemd.exec and systemd.syntax.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template

from platformdirs import user_config_path

from kokoro_lab.server.service.supervisor import MARK, NAME, TITLE, Service, ServiceState, Supervisor

UNIT = f"{NAME}.service"
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "%": "%%"}


class Systemd(Supervisor):
    """The manager of this user's units."""

    program = "systemctl"
    log = f"journalctl --user -u {NAME} -f"
    note = (
        "It runs while you are logged in. `loginctl enable-linger` keeps it running, and starts it at boot."
    )

    def __init__(self) -> None:
        self.path = user_config_path().expanduser() / "systemd" / "user" / UNIT

    def text(self, service: Service) -> str:
        variables = (
            f"Environment={_quoted(f'{name}={value}')}" for name, value in service.environment.items()
        )
        unit = Template(Path(__file__).with_suffix(".service").read_text("utf-8"))
        return unit.substitute(
            mark=MARK,
            name=NAME,
            title=TITLE,
            command=_command(service.command),
            variables="\n".join(variables),
            stop_s=service.stop_s,
        )

    def environment(self, text: str) -> Mapping[str, str]:
        quoted = re.findall(r'^Environment="(.*=.*)"$', text, re.MULTILINE)
        return dict(_unquoted(pair).split("=", 1) for pair in quoted)

    def state(self) -> ServiceState:
        asked = "ActiveState,SubState,MainPID,Result"
        said = self._tell("--user", "show", UNIT, f"--property={asked}")
        found = dict(line.split("=", 1) for line in said.splitlines())
        active, process, result = (found.get(name, "") for name in ("ActiveState", "MainPID", "Result"))
        words = [
            found.get("SubState", ""),
            f"process {process}" if process.strip("0") else "",
            result if result != "success" else "",
        ]
        return ServiceState(active == "active", f"{active} ({', '.join(filter(None, words))})")

    def _reach(self) -> None:
        self._tell("--user", "show-environment")

    def _start(self, changed: bool) -> None:
        self._tell("--user", "daemon-reload")
        self._tell("--user", "enable", "--quiet", UNIT)
        self._tell("--user", "restart" if changed else "start", UNIT)

    def _stop(self) -> None:
        self._tell("--user", "disable", "--quiet", "--now", UNIT)
        self.path.unlink()
        self._tell("--user", "daemon-reload")
        # Else a failed service would be listed as failed until the session ends
        self._tell("--user", "reset-failed", UNIT, may_fail=True)

    def _mend(self, said: str) -> str:
        if not re.search(r"connect to .*bus", said):
            return f"`{self.log.removesuffix(' -f')}` has what the server said."
        user = os.getuid()
        return (
            "Log in as this user, and not by su or sudo, which begin no session of its own. Or run "
            f"`sudo loginctl enable-linger {user}`, then `export XDG_RUNTIME_DIR=/run/user/{user}`."
        )


def _command(words: tuple[str, ...]) -> str:
    if re.search(r"""["'\\]""", words[0]):  # systemd takes these in arguments alone
        words = ("/bin/sh", "-c", 'exec "$0" "$@"', *words)
    program, *arguments = map(_quoted, words)
    return " ".join([program, *(argument.replace("$", "$$") for argument in arguments)])


def _quoted(word: str) -> str:
    return '"' + "".join(_ESCAPES.get(character, character) for character in word) + '"'


def _unquoted(inside: str) -> str:
    whole = {escape: character for character, escape in _ESCAPES.items()}
    return re.sub(r"\\.|%%", lambda found: whole.get(found[0], found[0]), inside)
