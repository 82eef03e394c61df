"""Paths as clients and proxies write them: behind a prefix, with a slash too many, or one at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def path_within(root_path: str, path: str) -> str:
    """Which of the server's own paths is asked for.

    `root_path` is taken off where it is there: some proxies take it off themselves. Slashes that stand side
    by side are one: a redirect, which is the usual answer to them, loses the body with some clients.
    """
    path = re.sub("//+", "/", path)
    if root_path and (path == root_path or path.startswith(f"{root_path}/")):
        return path[len(root_path) :]
    return path


def placed(app: WsgiApp, root_path: str) -> WsgiApp:
    """`app`, which the outside finds at `root_path`."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = path_within(root_path, environ.get("PATH_INFO", ""))
        if root_path and not path:  # the page's own links begin at its folder
            start_response("308 Permanent Redirect", [("Location", f"{root_path}/"), ("Content-Length", "0")])
            return ()
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = root_path, path
        return app(environ, start_response)

    return answer
