"""Reads a request's JSON body and checks it against a pydantic model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic_core
from flask import Request
from pydantic import BaseModel, ConfigDict, ValidationError
from werkzeug.exceptions import ClientDisconnected, RequestTimeout, UnsupportedMediaType

from kokoro_lab.errors import ParameterError

M = TypeVar("M", bound=BaseModel)

_SHOWN_CHARACTERS = 40


class StrictBody(BaseModel):
    """The base of bodies in which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


def json_object(request: Request) -> dict[str, Any]:
    """The body, which must be a JSON object.

    Raises
    ------
    ParameterError
        The body is no JSON object.
    werkzeug.exceptions.UnsupportedMediaType, werkzeug.exceptions.RequestTimeout
        The body is of another type, or does not arrive.
    """
    if not request.is_json:
        raise UnsupportedMediaType("Send JSON, with Content-Type: application/json.")
    try:
        body = request.get_data(cache=False)
    except ClientDisconnected as error:
        raise _too_late() from error
    if len(body) < (request.content_length or 0):
        raise _too_late()  # the bytes so far are passed on
    return object_of(body, "The request body")


def object_of(text: str | bytes, what: str) -> dict[str, Any]:
    """The JSON object in `text`, which errors call `what`.

    Raises
    ------
    ParameterError
        `text` is no JSON object, or has a name twice, so that one value would be ignored unnoticed.
    """
    try:
        payload = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if "hex escape" in str(error):
            raise ParameterError(
                f"{what} has half of a surrogate pair, or an escape that is not whole: {error}.",
                mend="Cut a text between characters, not inside one.",
            ) from None
        raise ParameterError(f"{what} is not JSON in UTF-8: {error}.", allowed="a JSON object") from None
    if not isinstance(payload, dict):
        raise ParameterError(f"{what} is JSON, but not an object.", allowed="a JSON object")
    # Numbers are kept as text: Python refuses to parse very long ones
    json.loads(text, object_pairs_hook=_once_each, parse_int=str, parse_float=str)
    return payload


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            shown = name[:_SHOWN_CHARACTERS]
            raise ParameterError(
                f"{shown!r} stands twice in one object.", field=shown, value=shown, mend="Send it once."
            )
        seen.add(name)


def _too_late() -> RequestTimeout:
    return RequestTimeout("The request body did not arrive in time.")


def optional_model(request: Request, model: type[M]) -> M:
    """The body as `model`; an empty body counts as one without fields.

    Raises
    ------
    ParameterError
        A field is unknown or out of range; the error names it.
    """
    some = request.content_length or "Transfer-Encoding" in request.headers
    payload = json_object(request) if some else {}
    return model_of(payload, model)


def model_of(payload: Mapping[str, Any], model: type[M]) -> M:
    """`payload` as `model`.

    Raises
    ------
    ParameterError
        A field is unknown, missing or out of range; the error names it.
    """
    try:
        return model.model_validate(payload)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][0])[:_SHOWN_CHARACTERS] if first["loc"] else None
        raise ParameterError(
            f"{field} is not valid: {first['msg']}.", field=field, allowed=", ".join(model.model_fields)
        ) from None
