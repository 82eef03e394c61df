"""A request's JSON body, checked by a model."""

from __future__ import annotations

from typing import Any, TypeVar

import pydantic_core
from flask import Request
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import ClientDisconnected, RequestTimeout, UnsupportedMediaType

from kokoro_lab.errors import ParameterError

M = TypeVar("M", bound=BaseModel)

_SHOWN_CHARACTERS = 40


def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object.

    Raises
    ------
    ParameterError
        It is not.
    werkzeug.exceptions.UnsupportedMediaType, werkzeug.exceptions.RequestTimeout
        It is of another type, or does not arrive.
    """
    if not request.is_json:
        raise UnsupportedMediaType("Send JSON, with Content-Type: application/json.")
    try:
        body = request.get_data(cache=False)
    except ClientDisconnected as error:
        raise _too_late() from error
    if len(body) < (request.content_length or 0):
        raise _too_late()  # what had come until then is handed on
    try:
        payload = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ParameterError(
            f"The request body is not JSON in UTF-8: {error}.", allowed="a JSON object"
        ) from None
    if not isinstance(payload, dict):
        raise ParameterError("The request body is JSON, but not an object.", allowed="a JSON object")
    return payload


def _too_late() -> RequestTimeout:
    return RequestTimeout("The request body did not arrive in time.")


def optional_model(request: Request, model: type[M]) -> M:
    """The body as `model`; no body at all is one without fields.

    Raises
    ------
    ParameterError
        A field is unknown or out of range; names it.
    """
    some = request.content_length or "Transfer-Encoding" in request.headers
    payload = json_object(request) if some else {}
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])[:_SHOWN_CHARACTERS] if first["loc"] else None
        raise ParameterError(
            f"{field} is not valid: {first['msg']}.", field=field, allowed=", ".join(model.model_fields)
        ) from None
