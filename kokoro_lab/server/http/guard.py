"""Checks before each request: path, Host, Origin, key, size, and time limits for reads and writes."""

from __future__ import annotations

import hmac
import re
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any
from uuid import uuid4

from flask import Flask, Response, abort, current_app, g, request
from werkzeug.datastructures import WWWAuthenticate
from werkzeug.exceptions import Unauthorized
from werkzeug.routing import BaseConverter

from kokoro_lab.config import Settings
from kokoro_lab.net.origins import allowed_hosts, answers_to, listed, same_origin
from kokoro_lab.server.openapi.document import EXPOSED_HEADERS
from kokoro_lab.server.requests.syntheses import LONGEST_ID
from kokoro_lab.server.state import server_state

JSON_BYTES_A_CHARACTER = 12
"""The most bytes that JSON needs for one character: if it is outside of Unicode's basic plane and escaped, it
is written as two `\\uXXXX`."""
OTHER_FIELDS_BYTES = 65_536
"""Room for the fields beside the text: a lexicon of 8 kB, every character escaped, is the largest."""

STALL_S = 10.0
"""Seconds after which a client that neither receives nor sends loses its connection, and its slot."""
SEND_BUFFER_BYTES = 65_536
"""Send buffer of a stream's socket. Linux would let it grow to some 4 MB, 80 s of speech, before a client
that does not read is noticed."""

REQUEST_ID = re.compile(rf"(?!ws$|realtime$|[.]{{1,2}}$)[A-Za-z0-9._:-]{{1,{LONGEST_ID}}}")
"""The ids that a client may give its request; with any other, the request gets an id of ours. An id is part
of the path that stops a stream, so it may not be the path of a WebSocket, nor `.` or `..`."""
_HEADER_NAMES = re.compile(r"[A-Za-z0-9-]+(?:\s*,\s*[A-Za-z0-9-]+)*")


WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class RequestIds(BaseConverter):
    """Ids in paths: a path with an impossible id is answered 404."""

    regex = REQUEST_ID.pattern.replace("$", "(?:/|$)")


def max_body_bytes(settings: Settings) -> int:
    """The largest request body: the longest text, every character escaped, and the other fields."""
    return settings.max_input_chars * JSON_BYTES_A_CHARACTER + OTHER_FIELDS_BYTES


def register(app: Flask, settings: Settings) -> None:
    """Run the checks before every request of `app`, and add the CORS headers to its answer."""
    app.url_map.converters["stream_id"] = RequestIds
    app.url_map.strict_slashes = False
    app.wsgi_app = placed(app.wsgi_app, settings.root_path)  # type: ignore[method-assign,assignment]
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes(settings)
    app.config["STALL_S"] = STALL_S
    hosts = allowed_hosts(settings)
    origins = frozenset(listed(settings.allowed_origins))

    def check() -> Response | None:
        _accept()
        _check_host(hosts)
        preflight = _check_origin(origins)
        if preflight is None:
            _check_length()
        return preflight

    def add_headers(response: Response) -> Response:
        response.headers["X-Request-Id"] = g.request_id
        origin = request.headers.get("Origin")
        if origins:
            response.vary.add("Origin")
        if origin in origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
        return response

    app.before_request(check)
    app.after_request(add_headers)


def path_within(root_path: str, path: str) -> str:
    """The server's own path for a requested path.

    `root_path` is removed if it is there; some proxies remove it themselves. Adjacent slashes count as one:
    with the usual redirect, some clients lose the body.
    """
    path = re.sub("//+", "/", path)
    if root_path and (path == root_path or path.startswith(f"{root_path}/")):
        return path[len(root_path) :]
    return path


def placed(app: WsgiApp, root_path: str) -> WsgiApp:
    """`app`, mounted at `root_path`."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = path_within(root_path, environ.get("PATH_INFO", ""))
        if root_path and not path:  # the page's own links begin at its folder
            start_response("308 Permanent Redirect", [("Location", f"{root_path}/"), ("Content-Length", "0")])
            return ()
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = root_path, path
        return app(environ, start_response)

    return answer


def require_key() -> None:
    """Refuse a request for speech without the key, where one is set.

    Voices, models and health need no key: OpenWebUI asks for them without its key.
    """
    key = server_state().settings.api_key
    if not key:
        return
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        given = request.headers.get("xi-api-key", "")  # the header of ElevenLabs' clients
    if not hmac.compare_digest(given.strip().encode(), key.encode()):
        raise Unauthorized(
            "The API key is missing or wrong. Send it as `Authorization: Bearer <key>`.",
            www_authenticate=WWWAuthenticate("bearer"),
        )


def caller() -> str:
    """A name for the client of the current request, if it gives none: a hash of its key and address, which
    reveals neither."""
    key = request.headers.get("Authorization") or request.headers.get("xi-api-key", "")
    return f"{hash((key, request.remote_addr)):x}"


def client_socket() -> socket.socket | None:
    """If the WSGI server is gunicorn: the socket of the current request; else None."""
    found = request.environ.get("gunicorn.socket")
    return found if isinstance(found, socket.socket) else None


def _accept() -> None:
    g.accepted_s = time.perf_counter()
    asked = request.headers.get("X-Request-Id", "")
    g.request_id = asked if REQUEST_ID.fullmatch(asked) else uuid4().hex
    connection = client_socket()
    if connection is not None:
        # A limit for each recv and each send, which gunicorn removes before the next request
        connection.settimeout(current_app.config["STALL_S"])


def _check_host(allowed: frozenset[str]) -> None:
    if not answers_to(request.environ.get("HTTP_HOST", "").lower(), allowed):
        abort(400, "This server does not answer to that Host; KOKORO_ALLOWED_HOSTS lists those it does.")


def _check_origin(allowed: frozenset[str]) -> Response | None:
    """Refuse web pages from other origins; answer the preflight request of a listed one."""
    origin = request.headers.get("Origin")
    if origin is None:
        return None
    if origin not in allowed:
        if same_origin(origin, request.environ.get("HTTP_HOST", "").lower()):
            return None
        abort(403, "This web origin may not call the server. KOKORO_ALLOWED_ORIGINS lists those that may.")
    if request.method != "OPTIONS" or "Access-Control-Request-Method" not in request.headers:
        return None
    answer = Response(status=204)
    answer.headers["Access-Control-Allow-Methods"] = "GET, POST, DELETE"
    wanted = request.headers.get("Access-Control-Request-Headers", "")
    if _HEADER_NAMES.fullmatch(wanted):  # SDKs add headers of their own; a listed origin may send any
        answer.headers["Access-Control-Allow-Headers"] = wanted
    answer.headers["Access-Control-Max-Age"] = "600"
    return answer


def _check_length() -> None:
    """Refuse a body that is too long. Our worker has checked it already, and given a chunked body its length;
    other WSGI servers may not."""
    limit = current_app.config["MAX_CONTENT_LENGTH"]
    if request.content_length is not None and request.content_length > limit:
        abort(413, f"The request body is {request.content_length} bytes long. Allowed: up to {limit}.")
