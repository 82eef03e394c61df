"""`service`: has systemd or launchd keep the server running for the current user."""

from __future__ import annotations

import platform
import sys
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import click

from kokoro_lab.commands.console import DONE, FAILED, say, show
from kokoro_lab.commands.options import host_option, json_option, port_option, variant_option
from kokoro_lab.config import PREFIX, handed_on, settings
from kokoro_lab.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kokoro_lab.server.service.supervisor import Supervisor

HEALTH_S = 10.0
"""How long `status` waits for an answer."""


@click.group()
def service() -> None:
    """Have systemd or launchd run `serve`: from your login on, and again when it fails."""


@service.command()
@host_option
@port_option("port", "8880", click.IntRange(1, 65535))
@variant_option
@click.option("--print", "only_print", is_flag=True, help="Print the file that would be written, and stop.")
def install(host: str, port: int, variant: str | None, only_print: bool) -> None:
    """Write the unit (the file that says what to run), start it, and have it started at each login.

    All KOKORO_ variables that are set now go into the unit. If it is called again with other settings, it
    replaces the unit and restarts the service.
    """
    from kokoro_lab.server.service.supervisor import STOP_MARGIN_S, Service, console_script
    from kokoro_lab.weights.store import weights_home

    asked = {"HOME": str(weights_home()), "HOST": host, "PORT": str(port)}
    if variant is not None:
        asked["VARIANT"] = variant
    environment = handed_on() | {PREFIX + name: value for name, value in asked.items()}
    described = Service((console_script(), "serve"), environment, settings().shutdown_s + STOP_MARGIN_S)
    supervisor = _supervisor()
    if only_print:
        click.echo(supervisor.text(described), nl=False)
        return
    changed = supervisor.install(described)
    click.echo(f"{'wrote' if changed else 'kept':9}{supervisor.path}")
    click.echo(f"runs     {' '.join(described.command)}, with {', '.join(sorted(environment))}")
    click.echo(f"address  {_address(environment)}")
    click.echo(f"log      {supervisor.log}")
    click.echo(f"note     {supervisor.note}")


@service.command()
@json_option
def status(as_json: bool) -> NoReturn:
    """Say whether the service is installed, whether it runs, at which address, and what /health answers."""
    supervisor = _supervisor()
    text = supervisor.written()
    if text is None:
        show(["It is not installed: `kokoro-lab service install` does that."], {"file": None}, as_json)
        sys.exit(FAILED)
    state = supervisor.state()
    address = _address(supervisor.environment(text))
    code, answer = _health(address)
    record = {
        "file": str(supervisor.path),
        "running": state.running,
        "state": state.said,
        "address": address,
        "health": code,
        "answer": answer,
        "log": supervisor.log,
    }
    lines = [
        f"{name:9}{value}" for name, value in record.items() if name not in ("running", "health", "answer")
    ]
    show([*lines, f"health   {code or 'none'}: {answer}"], record, as_json)
    sys.exit(DONE if state.running and code == 200 else FAILED)


@service.command()
def remove() -> None:
    """Stop the service after its streams have ended, and delete the file that `install` wrote."""
    supervisor = _supervisor()
    there = supervisor.remove()
    say(f"{supervisor.path} is removed." if there else "There is no service to remove.")


def _supervisor() -> Supervisor:
    """The supervisor of this system.

    Raises
    ------
    ServiceError
        There is no known supervisor.
    """
    from kokoro_lab.server.service.launchd import Launchd
    from kokoro_lab.server.service.systemd import Systemd

    known: dict[str, Callable[[], Supervisor]] = {"Darwin": Launchd, "Linux": Systemd}
    system = platform.system()
    try:
        return known[system]()
    except KeyError:
        raise ServiceError(
            f"There is no known supervisor for {system}.", mend="Run `kokoro-lab serve`."
        ) from None
    except RuntimeError as error:
        raise ServiceError(
            "This user has no home folder, in which units stand.", mend="Set HOME to one."
        ) from error


def _address(environment: Mapping[str, str]) -> str:
    from kokoro_lab.server.http.listening import url_of

    host = environment.get(f"{PREFIX}HOST", settings().host)  # somebody may have edited the file
    port = str(environment.get(f"{PREFIX}PORT", settings().port))
    if not port.isdecimal():
        raise ServiceError(
            f"The unit's {PREFIX}PORT is {port!r}, which is no number.", mend="Install it again."
        )
    return url_of(host, int(port)) + environment.get(f"{PREFIX}ROOT_PATH", "").lstrip("/")


def _health(address: str) -> tuple[int | None, str]:
    """The status and the body of `/health`; None for the status if no server answers."""
    url = urlsplit(address)
    assert url.hostname is not None
    connection = HTTPConnection(url.hostname, url.port, timeout=HEALTH_S)  # never through a proxy
    try:
        connection.request("GET", f"{url.path.rstrip('/')}/health")
        answer = connection.getresponse()
        return answer.status, " ".join(answer.read().decode("utf-8", "replace").split())
    except (OSError, HTTPException) as error:
        return None, f"nobody answers ({error})"
    finally:
        connection.close()
