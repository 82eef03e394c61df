"""Checks of Host and Origin headers, against foreign web pages and DNS rebinding."""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Set

from kokoro_lab.config import Settings

log = logging.getLogger(__name__)

_HOST = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?", re.IGNORECASE)


def listed(setting: str) -> list[str]:
    """The items of a setting that are separated by commas."""
    return [item.strip() for item in setting.split(",") if item.strip()]


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """The hosts that may be asked for: those listed in the setting, and the address of the server."""
    hosts = {host.lower() for host in listed(settings.allowed_hosts)}
    host = settings.host.strip("[]").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return frozenset(hosts | {host})
    if address.is_unspecified:
        # No client asks for 0.0.0.0: the operator lists the names of the machine
        log.warning(
            "Listening on every address, but answering only as %s. List more in KOKORO_ALLOWED_HOSTS.",
            ", ".join(sorted(hosts)),
        )
        return frozenset(hosts)
    return frozenset(hosts | {f"[{host}]" if address.version == 6 else host})


def answers_to(host: str, allowed: Set[str]) -> bool:
    """Whether a Host header, in lower case, names one of `allowed`: a protection against DNS rebinding.

    Werkzeug's `TRUSTED_HOSTS` cuts every entry at its first colon, so it cannot hold `[::1]`.
    """
    match = _HOST.fullmatch(host)
    return match is not None and (match["name"] in allowed or host in allowed)


def same_origin(origin: str, host: str) -> bool:
    """Whether a page of `origin` was served by `host` itself, which is in lower case."""
    return origin.lower() in (f"http://{host}", f"https://{host}")
