"""The server as a service: what is written, what the supervisor is told, and what stays untouched.

`systemctl` and `launchctl` are stand-ins on the path. What systemd makes of it: `installed/test_service.py`.
"""

from __future__ import annotations

import json
import os
import platform
import plistlib
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kokoro_lab import __version__
from kokoro_lab.__main__ import main
from kokoro_lab.config import settings
from kokoro_lab.errors import ServiceError
from kokoro_lab.server.service import launchd, supervisor
from kokoro_lab.server.service.launchd import LABEL, Launchd
from kokoro_lab.server.service.supervisor import Service, console_script
from kokoro_lab.server.service.systemd import Systemd

AWKWARD = "a b\tö \"quoted\" 100% %h $HOME \\n \\ and 'more'\nsecond"
NO_BUS = "Failed to connect to bus: No medium found"

SYSTEMCTL = """#!/bin/sh
echo "$*" >>told
if [ -s refuses ] && { [ ! -s refuses_what ] || [ "$2" = "$(cat refuses_what)" ]; }; then
  cat refuses >&2; exit 1
fi
case "$2" in show) cat shows ;; esac
"""
# It ends slowly: asked about twice more, it is still there; and nobody may be started meanwhile
LAUNCHCTL = """#!/bin/sh
echo "$*" >>told
if [ -s refuses ]; then cat refuses >&2; exit 113; fi
there() { [ -e running ] || [ -s ending ]; }
case "$1 $2" in
"print gui/"*/*)
  there || exit 113
  if [ -s ending ]; then tail -c +2 ending >less; mv less ending; fi
  printf '\\tstate = running\\n\\tpid = 42\\n' ;;
"bootout "*) rm running; printf xx >ending; exit 36 ;;
"bootstrap "*) if there; then echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; fi; touch running ;;
esac
"""


@dataclass(frozen=True)
class Home:
    """A user's home, in which a stand-in notes what it is told and does what files there say."""

    folder: Path
    unit: Path

    def told(self) -> list[str]:
        """What it was told since it was asked this last."""
        log = self.folder / "told"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def says(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def make_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str, str, str], Home]]:
    def made(system: str, program: str, script: str) -> Home:
        folder = tmp_path / "home of Zoë"
        bin_ = folder / "bin"
        bin_.mkdir(parents=True)
        (bin_ / program).write_text(script)
        (bin_ / program).chmod(0o755)
        for name in [name for name in os.environ if name.startswith(("KOKORO_", "XDG_"))]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(folder))
        monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
        monkeypatch.chdir(folder)
        monkeypatch.setattr(platform, "system", lambda: system)
        settings.cache_clear()
        return Home(folder, (Systemd() if system == "Linux" else Launchd()).path)

    yield made
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def linux(make_home: Callable[[str, str, str], Home]) -> Home:
    return make_home("Linux", "systemctl", SYSTEMCTL)


@pytest.fixture
def mac(make_home: Callable[[str, str, str], Home], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(launchd, "POLL_S", 0.01)
    return make_home("Darwin", "launchctl", LAUNCHCTL)


@pytest.fixture(params=["linux", "mac"])
def either(request: pytest.FixtureRequest) -> Home:
    home: Home = request.getfixturevalue(request.param)
    return home


@pytest.fixture
def health() -> Iterator[int]:
    """The port of a server that is healthy."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/tts/health" else 404)
            self.end_headers()
            self.wfile.write(b'{"status":\n"ready"}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def call(*arguments: str) -> Result:
    settings.cache_clear()
    return CliRunner().invoke(main, ["service", *arguments])


def installed(*arguments: str) -> Result:
    done = call("install", *arguments)
    assert done.exit_code == 0, done.output
    return done


# ------------------------------------------------------------------------------------------ what is written


def test_a_unit_starts_the_installed_program_and_says_the_settings(
    linux: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKORO_THREADS", "2")
    monkeypatch.setenv("KOKORO_STAGES", "my graphs")
    monkeypatch.setenv("KOKORO_SHUTDOWN_S", "50")
    monkeypatch.setenv("KOKORO_TREADS", "3")
    monkeypatch.setenv("UNRELATED", "secret")
    installed("--port", "8890", "--variant", "fp32")
    text = linux.unit.read_text("utf-8")
    assert linux.unit == linux.folder / ".config/systemd/user/kokoro-lab.service"
    assert f'\nExecStart="{console_script()}" "serve"\n' in text
    assert "\nTimeoutStopSec=60\n" in text, "streams may end before it is killed"
    assert Systemd().environment(text) == {
        "PATH": os.environ["PATH"],
        "KOKORO_HOME": str(linux.folder / ".cache/kokoro-lab"),
        "KOKORO_HOST": "127.0.0.1",
        "KOKORO_PORT": "8890",
        "KOKORO_SHUTDOWN_S": "50",
        "KOKORO_STAGES": str(linux.folder / "my graphs"),
        "KOKORO_THREADS": "2",
        "KOKORO_VARIANT": "fp32",
    }


def test_an_agent_says_the_same(mac: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_SHUTDOWN_S", "50")
    installed("--host", "::1")
    assert mac.unit == mac.folder / "Library/LaunchAgents" / f"{LABEL}.plist"
    described = plistlib.loads(mac.unit.read_bytes())
    assert described["Label"] == LABEL
    assert described["ProgramArguments"] == [console_script(), "serve"]
    assert described["EnvironmentVariables"]["KOKORO_HOST"] == "::1"
    assert (described["RunAtLoad"], described["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert described["ExitTimeOut"] == 60
    assert described["StandardErrorPath"] == str(mac.folder / "Library/Logs/kokoro-lab.log")
    assert (mac.folder / "Library/Logs").is_dir()


@pytest.mark.parametrize("made_by", [Systemd, Launchd])
def test_any_value_comes_back_as_it_was(made_by: type[Systemd | Launchd]) -> None:
    service = Service(("/opt/a b/kokoro-lab", "serve"), {"KOKORO_API_KEY": AWKWARD, "PATH": "/bin"}, 40)
    assert made_by().environment(made_by().text(service)) == service.environment


def test_a_file_that_may_hold_a_key_is_read_by_its_owner_alone(either: Home) -> None:
    installed()
    assert stat.S_IMODE(either.unit.stat().st_mode) == 0o600
    assert [path.name for path in either.unit.parent.iterdir()] == [either.unit.name]


def test_the_program_is_found_by_the_records_of_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Path(console_script())
    assert (found.is_absolute(), found.name, os.access(found, os.X_OK)) == (True, "kokoro-lab", True)
    monkeypatch.setattr(supervisor, "files", lambda _: None)
    with pytest.raises(ServiceError, match="pip install"):
        console_script()


def test_print_writes_nothing_and_tells_nobody(either: Home) -> None:
    printed = installed("--print", "--port", "8890").stdout
    assert not either.unit.exists()
    assert either.told() == []
    installed("--port", "8890")
    assert either.unit.read_text("utf-8") == printed


@pytest.mark.parametrize("port", ["0", "65536"])
def test_a_service_has_a_port_that_stays(either: Home, port: str) -> None:
    assert call("install", "--port", port).exit_code == 2
    assert not either.unit.exists()


# --------------------------------------------------------------------------------------- install, again


def test_install_says_what_it_wrote_and_where_the_log_is(either: Home) -> None:
    said = installed("--port", "8890").output
    for expected in (
        str(either.unit),
        console_script(),
        "KOKORO_PORT",
        "http://127.0.0.1:8890/",
        "logged in",
    ):
        assert expected in said
    assert ("journalctl --user -u kokoro-lab" in said) or ("Library/Logs/kokoro-lab.log" in said)


def test_systemd_is_told_to_start_it_now_and_at_each_login(linux: Home) -> None:
    installed()
    assert linux.told() == [
        "--user show-environment",
        "--user daemon-reload",
        "--user enable --quiet kokoro-lab.service",
        "--user restart kokoro-lab.service",
    ]


def test_what_runs_unchanged_speaks_on_and_what_has_changed_is_started_anew(linux: Home) -> None:
    installed()
    linux.told()
    assert installed().output.startswith("kept")
    assert linux.told()[-1] == "--user start kokoro-lab.service"
    assert installed("--port", "8890").output.startswith("wrote")
    assert linux.told()[-1] == "--user restart kokoro-lab.service"


def test_a_newer_version_is_started_anew(either: Home) -> None:
    installed()
    either.unit.write_text(either.unit.read_text().replace(f"kokoro-lab {__version__}", "kokoro-lab 0.0.1"))
    assert installed().output.startswith("wrote")


def test_launchd_starts_what_has_changed_once_the_old_one_has_ended(mac: Home) -> None:
    installed()
    assert (mac.folder / "running").exists()
    mac.told()
    assert installed().output.startswith("kept")
    assert not any(line.startswith("boot") for line in mac.told()), "it speaks on"
    installed("--port", "8890")
    told = mac.told()
    assert [line.split()[0] for line in told if not line.startswith("print")] == [
        "bootout",
        "enable",
        "bootstrap",
    ]
    assert (mac.folder / "running").exists()


def test_a_service_that_does_not_end_is_said(mac: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    installed()
    monkeypatch.setattr(launchd, "FORGETTING_S", -1_000)
    failed = call("remove")
    assert failed.exit_code == 3
    assert "launchctl kill" in failed.output
    assert mac.unit.exists()


# ---------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("command", ["install", "status", "remove"])
def test_a_file_that_somebody_else_wrote_is_left_alone(either: Home, command: str) -> None:
    either.unit.parent.mkdir(parents=True)
    either.unit.write_bytes(b"[Service]\nExecStart=/bin/theirs \xff\n")
    failed = call(command)
    assert failed.exit_code == 3
    assert f"did not write {either.unit}" in failed.output
    assert either.unit.read_bytes().startswith(b"[Service]\nExecStart=/bin/theirs")
    assert either.told() == []


def test_a_unit_that_was_masked_stays_so(linux: Home) -> None:
    linux.unit.parent.mkdir(parents=True)
    linux.unit.symlink_to("/dev/null")
    assert "did not write" in call("install").output
    assert linux.unit.is_symlink()


def test_without_systemctl_nothing_is_written(linux: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(linux.folder))
    failed = call("install")
    assert failed.exit_code == 3
    assert "systemctl, which installs services, was not found" in failed.output
    assert "service install --print" in failed.output
    assert not linux.unit.exists()


def test_without_a_bus_of_the_user_nothing_is_written_and_the_mend_is_said(linux: Home) -> None:
    linux.says("refuses", NO_BUS)
    failed = call("install")
    assert failed.exit_code == 3
    assert NO_BUS in failed.output
    assert f"loginctl enable-linger {os.getuid()}" in failed.output
    assert not linux.unit.exists()


def test_without_a_bus_nothing_is_removed(linux: Home) -> None:
    installed()
    linux.says("refuses", NO_BUS)
    assert call("remove").exit_code == 3
    assert linux.unit.exists()


def test_without_a_session_of_the_mac_nothing_is_written(mac: Home) -> None:
    mac.says("refuses", "Could not find domain for port")
    failed = call("install")
    assert "Log in at this Mac's screen" in failed.output
    assert not mac.unit.exists()


def test_a_start_that_fails_leads_to_the_log(linux: Home) -> None:
    linux.says("refuses", "Job for kokoro-lab.service failed.")
    linux.says("refuses_what", "restart")
    failed = call("install")
    assert failed.exit_code == 3
    assert "Job for kokoro-lab.service failed" in failed.output
    assert "journalctl --user -u kokoro-lab" in failed.output


def test_a_folder_that_may_not_be_written_to_is_named(linux: Home) -> None:
    (linux.folder / ".config").write_text("a file")
    failed = call("install")
    assert failed.exit_code == 3
    assert f"{linux.unit} cannot be written" in failed.output


def test_another_system_is_told_that_it_is_not_known(linux: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "FreeBSD")
    failed = call("install")
    assert failed.exit_code == 3
    assert "FreeBSD" in failed.output
    assert "kokoro-lab serve" in failed.output


# ------------------------------------------------------------------------------------------------- status


def test_status_of_what_is_not_installed(either: Home) -> None:
    asked = call("status")
    assert asked.exit_code == 1
    assert "service install" in asked.output
    assert json.loads(call("status", "--json").stdout) == {"file": None}


def test_status_tells_file_state_address_and_health(
    linux: Home, health: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOKORO_ROOT_PATH", "/tts")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    installed("--port", str(health), "--host", "0.0.0.0")
    monkeypatch.delenv("KOKORO_ROOT_PATH")
    linux.says("shows", "Result=success\nMainPID=42\nActiveState=active\nSubState=running\n")
    asked = call("status", "--json")
    assert asked.exit_code == 0, asked.output
    assert json.loads(asked.stdout) == {
        "file": str(linux.unit),
        "running": True,
        "state": "active (running, process 42)",
        "address": f"http://127.0.0.1:{health}/tts",
        "health": 200,
        "answer": '{"status": "ready"}',
        "log": "journalctl --user -u kokoro-lab -f",
    }
    lines = call("status").output.splitlines()
    assert lines[0] == f"file     {linux.unit}"
    assert lines[-1] == 'health   200: {"status": "ready"}'


def test_status_of_an_agent(mac: Home, health: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_ROOT_PATH", "/tts")
    installed("--port", str(health))
    asked = call("status")
    assert asked.exit_code == 0, asked.output
    assert "running, pid 42" in asked.output
    (mac.folder / "running").unlink()
    asked = call("status")
    assert asked.exit_code == 1, "another server answers there"
    assert "not loaded" in asked.output


def test_status_of_a_unit_that_somebody_edited(linux: Home) -> None:
    installed("--port", "8890")
    text = linux.unit.read_text()
    linux.unit.write_text(
        text.replace('Environment="KOKORO_HOST=127.0.0.1"', 'Environment="A=\\t"\nEnvironment=B=c')
    )
    linux.says("shows", "Result=success\nMainPID=0\nActiveState=inactive\nSubState=dead\n")
    asked = call("status")
    assert asked.exit_code == 1, asked.exception
    assert "inactive (dead)" in asked.output
    assert "http://127.0.0.1:8890/" in asked.output


def test_status_of_a_service_that_failed_and_does_not_answer(linux: Home, health: int) -> None:
    installed("--port", str(health))
    linux.says("shows", "Result=exit-code\nMainPID=0\nActiveState=failed\nSubState=failed\n")
    asked = call("status", "--json")
    assert asked.exit_code == 1
    assert json.loads(asked.stdout)["state"] == "failed (failed, exit-code)"
    assert json.loads(asked.stdout)["health"] == 404
    installed("--port", "1")
    asked = call("status")
    assert asked.exit_code == 1
    assert "health   none: nobody answers" in asked.output


# ------------------------------------------------------------------------------------------------- remove


def test_remove_stops_it_and_deletes_its_file(linux: Home) -> None:
    installed()
    linux.told()
    assert call("remove").exit_code == 0
    assert not linux.unit.exists()
    assert linux.told() == [
        "--user show-environment",
        "--user disable --quiet --now kokoro-lab.service",
        "--user daemon-reload",
        "--user reset-failed kokoro-lab.service",
    ]
    again = call("remove")
    assert again.exit_code == 0
    assert "no service" in again.output


def test_remove_waits_until_an_agent_has_ended(mac: Home) -> None:
    installed()
    mac.told()
    assert call("remove").exit_code == 0
    assert not mac.unit.exists()
    assert not (mac.folder / "ending").read_text()
    assert any(line.startswith("bootout") for line in mac.told())
