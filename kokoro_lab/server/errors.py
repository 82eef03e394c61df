"""Every error in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`.

Messages go to the client, who sent the text; the log gets status, code and, for what is our fault,
where it happened. Messages of exceptions that are not ours may quote the text, so they are in neither.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import Any

from flask import Flask, Response, g, jsonify
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as WerkzeugResponse

from kokoro_lab.errors import Gone, InputError, Interrupted, KokoroLabError, ProviderError

log = logging.getLogger(__name__)

RETRYABLE = frozenset({408, 429, 503})
"""What may go better the next time. OpenAI's SDKs would send everything from 500 up three times over,
and a text that cannot be spoken once cannot be spoken thrice."""

_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
"""OpenAI's own codes; other HTTP errors are called by their names."""


def register(app: Flask) -> None:
    """Answer every exception of `app` in the one shape."""
    app.register_error_handler(KokoroLabError, _on_ours)
    app.register_error_handler(HTTPException, _on_http)
    app.register_error_handler(Exception, _on_unexpected)


def status_of(error: KokoroLabError) -> int:
    """400 for what the client can mend, 409 and 410 for what was stopped or cannot go on, 503 for a provider
    that may come back, else 500."""
    if isinstance(error, InputError):
        return 400
    if isinstance(error, Interrupted):
        return 409
    if isinstance(error, Gone):
        return 410
    return 503 if isinstance(error, ProviderError) else 500


def where(error: BaseException) -> str:
    """The types and stacks of `error` and of what caused it, without a word of their messages."""
    parts = []
    link: BaseException | None = error
    while link is not None:
        parts.append(f"{type(link).__name__}\n" + "".join(traceback.format_tb(link.__traceback__)))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "caused by ".join(parts)


def log_failure(error: BaseException, what: str, request_id: str) -> None:
    """Log an error of ours: in full if it is a `KokoroLabError`, which never quotes a text."""
    message = f"{error}\n" if isinstance(error, KokoroLabError) else ""
    log.error("%s %s: %s%s", request_id, what, message, where(error))


def body_of(
    error: BaseException, request_id: str, client_names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What a client is told of an exception, whatever the transport: OpenAI's shape.

    The engine says `input`; a client that sent `text` is to be told of `text`, by `client_names`.
    """
    if isinstance(error, KokoroLabError):
        param = error.field and (client_names or {}).get(error.field, error.field)
        return _body(status_of(error), str(error), param=param, code=error.code)
    if isinstance(error, HTTPException):
        return _body(error.code or 500, error.description or error.name, param=None, code=_code_of(error))
    message = f"The server failed; its log says where, under {request_id}."
    return _body(500, message, param=None, code="internal_error")


def _on_ours(error: KokoroLabError) -> Response:
    status = status_of(error)
    if status >= 500:
        log_failure(error, f"failed, {error.code}", g.request_id)
    return _answer(status, body_of(error, g.request_id, g.get("client_names")))


def _on_http(error: HTTPException) -> WerkzeugResponse:
    answer = error.get_response()
    if error.code is None or error.code < 400:  # a redirect
        return answer
    ours = _answer(error.code, body_of(error, g.request_id))
    for name, value in answer.headers:
        if name not in ("Content-Type", "Content-Length"):
            ours.headers.add(name, value)  # Allow, Retry-After, WWW-Authenticate
    return ours


def _on_unexpected(error: Exception) -> Response:
    log_failure(error, "failed unexpectedly", g.request_id)
    return _answer(500, body_of(error, g.request_id))


def _code_of(error: HTTPException) -> str:
    return _CODES.get(error.code or 500, error.name.lower().replace(" ", "_").replace("'", ""))


def _body(status: int, message: str, *, param: str | None, code: str) -> dict[str, Any]:
    kind = (
        "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    )
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def _answer(status: int, body: dict[str, Any]) -> Response:
    log.info("%s answered %d, %s", g.request_id, status, body["error"]["code"])
    answer = jsonify(body)
    answer.status_code = status
    if status not in RETRYABLE:
        answer.headers["x-should-retry"] = "false"
    return answer
