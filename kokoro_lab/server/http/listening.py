"""The listening socket, and the file descriptors that its connections need."""

from __future__ import annotations

import errno
import logging
import resource
import socket
from typing import NoReturn

from kokoro_lab.errors import SettingsError

log = logging.getLogger(__name__)

OTHER_DESCRIPTORS = 256
"""Descriptors besides one for each connection: for files, pipes, libraries and benchmarks."""
_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_REASONS = {
    errno.EADDRINUSE: ("port", "Something else listens there.", "End it, or give another --port."),
    errno.EACCES: ("port", "Ports below 1024 are for administrators.", "Give another --port."),
    errno.EADDRNOTAVAIL: ("host", "No interface of this machine has that address.", "Give another --host."),
}


def listener(host: str, port: int, backlog: int, port_setting: str = "PORT") -> socket.socket:
    """A socket that listens on `host` and `port`; with port 0, on a free port.

    `backlog` is how many connections may wait to be accepted; the system may allow fewer. `port_setting` is
    the name, without `KOKORO_`, of the setting from which the port comes; an error states it.

    Raises
    ------
    SettingsError
        The address cannot be used; the error names `--host` or `--port`.
    """
    if not 0 <= port <= 65535:
        raise SettingsError(
            f"There is no port {port}.", field="port", value=port, allowed="0 to 65535", mend="Mend --port."
        )
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        _refuse(host, port, error, port_setting)
    family, kind, protocol, _, address = sorted(found)[0]  # IPv4 first, if a name has both
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(backlog)  # Linux lets two processes bind, and refuses the second one here
    except OSError as error:
        bound.close()
        _refuse(host, port, error, port_setting)
    return bound


def url_of(host: str, port: int) -> str:
    """The URL for a browser on this machine, of a server that listens on `host` and `port`."""
    host = host.strip("[]")
    host = _EVERY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def room_for(connections: int) -> int:
    """How many connections this process may have open, once its limit of descriptors is raised for them.

    Returns at most `connections`; the log says if fewer fit.
    """
    needed = connections + OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return connections
    limit = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    except (OSError, ValueError):  # macOS may have a lower limit than it reports
        limit = soft
    room = max(limit - OTHER_DESCRIPTORS, limit // 2)
    if room >= connections:
        return connections
    log.warning(
        "Up to %d connections may be open, not %d: the system allows this process %d descriptors. "
        "`ulimit -n %d` allows more.",
        room,
        connections,
        limit,
        needed,
    )
    return room


def _refuse(host: str, port: int, error: OSError | UnicodeError, port_setting: str) -> NoReturn:
    number = error.errno if isinstance(error, OSError) else None
    unknown = ("host", "Nobody knows that address.", "Give another --host.")
    field, reason, mend = _REASONS.get(number or 0, unknown)
    raise SettingsError(
        f"The server cannot listen on {host}, port {port}. {reason}",
        field=field,
        value=port if field == "port" else host,
        mend=f"{mend} KOKORO_{port_setting if field == 'port' else 'HOST'} sets it for good.",
    ) from error
