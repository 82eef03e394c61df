"""What is answered where no application was asked: a request is malformed, too long, or not whole in time.

In the one shape of errors, and the last answer on its connection: where the next request would begin is not
known any more.
"""

from __future__ import annotations

import json
import logging
from uuid import uuid4

from gunicorn.http.errors import (
    ExpectationFailed,
    LimitRequestHeaders,
    LimitRequestLine,
    ParseException,
    UnsupportedTransferCoding,
)
from werkzeug import exceptions

from kokoro_lab.server.errors import RETRY_AFTER_S, RETRYABLE, body_of, code_of, log_failure
from kokoro_lab.server.framing import BodyTooLong

log = logging.getLogger(__name__)

_KINDS: dict[type[ParseException], type[exceptions.HTTPException]] = {
    BodyTooLong: exceptions.RequestEntityTooLarge,
    ExpectationFailed: exceptions.ExpectationFailed,
    LimitRequestHeaders: exceptions.RequestHeaderFieldsTooLarge,
    LimitRequestLine: exceptions.RequestURITooLarge,
    UnsupportedTransferCoding: exceptions.NotImplemented,
}
_MOST_CHARACTERS = 200
"""Of what is quoted to the client from its own bytes."""


def refusal(error: BaseException) -> bytes:
    """The whole answer to a request that was none; it ends its connection."""
    request_id = uuid4().hex
    if isinstance(error, ParseException):
        kind = _KINDS.get(type(error), exceptions.BadRequest)
        said = str(error)[:_MOST_CHARACTERS]
        error = kind(said if kind is exceptions.RequestEntityTooLarge else f"This is no HTTP request: {said}")
    if not isinstance(error, exceptions.HTTPException):
        log_failure(error, "failed outside of the application", request_id)
    status = (error.code or 500) if isinstance(error, exceptions.HTTPException) else 500
    name = error.name if isinstance(error, exceptions.HTTPException) else "Internal Server Error"
    log.info("%s answered %d, %s", request_id, status, code_of(error))
    body = json.dumps(body_of(error, request_id)).encode()
    lines = [
        f"HTTP/1.1 {status} {name}",
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
