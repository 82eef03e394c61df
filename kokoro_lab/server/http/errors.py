"""Every error in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

Messages go to the client, who sent the text; the log gets status, code and, for errors of the server, where
they happened. Messages of other libraries' exceptions may quote the text, so they are neither sent nor
logged.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from typing import Any, Literal
from uuid import uuid4

from flask import Flask, Response, current_app, g, jsonify, request
from gunicorn.http import errors as gunicorn_errors
from werkzeug import exceptions
from werkzeug.exceptions import HTTPException
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.wrappers import Response as WerkzeugResponse

from kokoro_lab.errors import (
    DeadlineExceeded,
    Gone,
    InputError,
    Interrupted,
    KokoroLabError,
    MemoryLimitError,
    MissingExtra,
    OutOfMemory,
    ProviderError,
    Unavailable,
)
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.http.framing import BodyTooLong
from kokoro_lab.server.openapi.schemas import ErrorBody, ErrorDetail

log = logging.getLogger(__name__)

RETRYABLE = frozenset({408, 429, 503})
"""Statuses for which a retry may help. OpenAI's SDKs retry every status from 500 on, although a text that
cannot be spoken once cannot be spoken the next time."""

RETRY_AFTER_S = 1
"""`Retry-After` of a 503 without a time of its own."""
NO_MEMORY = (
    "There was not enough memory to speak this. Go on behind what you have, or ask again; if it comes back, "
    "lower KOKORO_CONCURRENCY or end other programs."
)

_STATUS: dict[type[Exception], int] = {
    InputError: 400,
    MissingExtra: 404,
    Interrupted: 409,
    Gone: 410,
    OutOfMemory: 503,
    ProviderError: 503,
    Unavailable: 503,
    DeadlineExceeded: 504,
    MemoryLimitError: 507,
    MemoryError: 503,
}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
"""OpenAI's own codes; other HTTP errors are called by their names."""
_KINDS: dict[type[gunicorn_errors.ParseException], type[HTTPException]] = {
    BodyTooLong: exceptions.RequestEntityTooLarge,
    gunicorn_errors.ExpectationFailed: exceptions.ExpectationFailed,
    gunicorn_errors.LimitRequestHeaders: exceptions.RequestHeaderFieldsTooLarge,
    gunicorn_errors.LimitRequestLine: exceptions.RequestURITooLarge,
    gunicorn_errors.UnsupportedTransferCoding: exceptions.NotImplemented,
}
_VERSION = "/v1"
"""What the paths of most routes begin with."""
_QUOTED_CHARACTERS = 200
"""How many characters of a client's bytes an error quotes."""
_OUTCOMES: Mapping[int, Outcome] = {409: "cancelled", 429: "rejected", 499: "cancelled"}


def register(app: Flask) -> None:
    """Answer every exception of `app` in OpenAI's shape."""
    app.register_error_handler(KokoroLabError, _on_ours)
    app.register_error_handler(HTTPException, _on_http)
    app.register_error_handler(Exception, _on_unexpected)


def status_of(error: BaseException) -> int:
    """The HTTP status of an error: 400 if the client can mend it, 404 for a part that is not installed, 409
    for a stopped request, 410 for a stream that cannot be resumed, 503 for a provider or a server that may
    come back, 504 for a request that took too long, 507 for too little memory, else 500."""
    if isinstance(error, HTTPException):
        return error.code or 500
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)


def code_of(error: BaseException) -> str:
    """The `code` by which a client and the log know this error."""
    if isinstance(error, HTTPException):
        return _CODES.get(error.code or 500, error.name.lower().replace(" ", "_").replace("'", ""))
    if isinstance(error, MemoryError):
        return "out_of_memory"
    return error.code if isinstance(error, KokoroLabError) else "internal_error"


def outcome_of(error: BaseException) -> Outcome:
    """The outcome, for the figures, of a request that ends with this error."""
    if isinstance(error, DeadlineExceeded):
        return "expired"
    if isinstance(error, Unavailable):
        return "rejected"
    status = status_of(error)
    return "failed" if status >= 500 else _OUTCOMES.get(status, "invalid")


def where(error: BaseException) -> str:
    """The types and stacks of `error` and of what caused it, without a word of their messages."""
    parts = []
    link: BaseException | None = error
    while link is not None:
        parts.append(f"{type(link).__name__}\n" + "".join(traceback.format_tb(link.__traceback__)))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "caused by ".join(parts)


def log_failure(error: BaseException, what: str, request_id: str) -> None:
    """Log an error of the server. A `KokoroLabError` is logged in full, since it never quotes a text."""
    message = f"{error}\n" if isinstance(error, KokoroLabError) else ""
    log.error("%s %s: %s%s", request_id, what, message, where(error))


def body_of(
    error: BaseException, request_id: str, client_names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The body that tells a client of an exception over any transport, in OpenAI's shape.

    The engine calls the field `input`; `client_names` gives the name that the client used, such as `text`.
    """
    param, message = None, f"The server failed; its log says where, under {request_id}."
    if isinstance(error, KokoroLabError):
        param, message = error.field and (client_names or {}).get(error.field, error.field), str(error)
    elif isinstance(error, HTTPException):
        message = error.description or error.name
    elif isinstance(error, MemoryError):
        message = NO_MEMORY
    status, code = status_of(error), code_of(error)
    kind: Literal["server_error", "rate_limit_error", "invalid_request_error"] = (
        "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    )
    return ErrorBody(error=ErrorDetail(message=message, type=kind, param=param, code=code)).model_dump()


def refusal(error: BaseException) -> bytes:
    """A whole answer, for a request that is refused before any application sees it: malformed, too long, or
    late.

    It closes the connection, because the start of the next request cannot be known any more.
    """
    request_id = uuid4().hex
    if isinstance(error, gunicorn_errors.ParseException):
        kind = _KINDS.get(type(error), exceptions.BadRequest)
        said = str(error)[:_QUOTED_CHARACTERS]
        error = kind(said if kind is exceptions.RequestEntityTooLarge else f"This is no HTTP request: {said}")
    if not isinstance(error, HTTPException):
        log_failure(error, "failed outside of the application", request_id)
    status = status_of(error)
    log.info("%s answered %d, %s", request_id, status, code_of(error))
    body = json.dumps(body_of(error, request_id)).encode()
    lines = [
        f"HTTP/1.1 {status} {HTTP_STATUS_CODES[status]}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        f"X-Request-Id: {request_id}",
    ]
    if status not in RETRYABLE:
        lines.append("x-should-retry: false")
    if status == exceptions.ServiceUnavailable.code:
        lines.append(f"Retry-After: {RETRY_AFTER_S}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def _on_ours(error: KokoroLabError) -> Response:
    status = status_of(error)
    if status >= 500 and not isinstance(error, Unavailable):
        log_failure(error, f"failed, {error.code}", g.request_id)
    answer = _answer(error)
    if status == 503:
        answer.headers["Retry-After"] = str(getattr(error, "retry_after_s", RETRY_AFTER_S))
    return answer


def _on_http(error: HTTPException) -> WerkzeugResponse:
    answer = error.get_response()
    if error.code is None or error.code < 400:  # a redirect
        return answer
    if isinstance(error, exceptions.NotFound) and request.url_rule is None:
        error = exceptions.NotFound(_no_such_path(request.path))
    ours = _answer(error)
    for name, value in answer.headers:
        if name not in ("Content-Type", "Content-Length"):
            ours.headers.add(name, value)  # Allow, Retry-After, WWW-Authenticate
    return ours


def _no_such_path(path: str) -> str:
    """What to say of a path that there is not. Base URLs of clients often lack `/v1`, or have it twice."""
    paths = current_app.create_url_adapter(request)
    near = (f"{_VERSION}{path}", path.removeprefix(_VERSION))
    found = next((each for each in near if paths and paths.allowed_methods(each)), None)
    hint = f" There is {found}: look at the client's base URL." if found else ""
    return f"There is no {path[:_QUOTED_CHARACTERS]} on this server.{hint}"


def _on_unexpected(error: Exception) -> Response:
    log_failure(error, "failed unexpectedly", g.request_id)
    return _answer(error)


def _answer(error: Exception) -> Response:
    status = status_of(error)
    g.outcome, g.error_code = outcome_of(error), code_of(error)
    log.info("%s answered %d, %s", g.request_id, status, g.error_code)
    answer = jsonify(body_of(error, g.request_id, g.get("client_names")))
    answer.status_code = status
    if status not in RETRYABLE:
        answer.headers["x-should-retry"] = "false"
    return answer
