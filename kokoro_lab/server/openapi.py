"""`/openapi.json`: the routes that there are, described by the models that validate."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import getdoc
from typing import Any, TypeVar

from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from werkzeug.routing import Rule

from kokoro_lab import __version__
from kokoro_lab.server.schemas import ErrorBody

View = TypeVar("View", bound=Callable[..., Any])

_ATTRIBUTE = "_documented"
_JSON = "application/json"
_EVERYWHERE = (400, 403)
"""A Host that is not answered to, an Origin that may not call."""
_WITH_BODY = (408, 411, 413, 415)
_REASONS = {
    101: "From here on it is a WebSocket",
    200: "Done",
    202: "Begun",
    400: "The request is wrong, or the Host is not answered to",
    401: "The key is missing or wrong",
    403: "Not from this web origin, or switched off",
    404: "There is none",
    408: "The body did not arrive",
    409: "Not now, or it was stopped",
    410: "The stream cannot be gone on with; the message says why",
    411: "The body's length is not given",
    413: "The body is too long",
    415: "The body is not JSON",
    429: "All are busy; `Retry-After` says when to come back",
    499: "The client left",
    500: "The server failed",
    503: "Not ready, or the provider failed",
    504: "The deadline is over",
}


@dataclass(frozen=True, slots=True)
class Operation:
    """What a view takes and gives."""

    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    media: tuple[str, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    patterns: tuple[tuple[str, str], ...] = ()


def documented(
    *,
    body: type[BaseModel] | None = None,
    answer: type[BaseModel] | None = None,
    media: tuple[str, ...] = (),
    status: int = 200,
    errors: tuple[int, ...] = (),
    also: tuple[int, ...] = (),
    patterns: tuple[tuple[str, str], ...] = (),
) -> Callable[[View], View]:
    """Describe a view for `/openapi.json`; its docstring's first sentence is the summary.

    Parameters
    ----------
    body, answer : pydantic model, optional
        What it takes and gives as JSON.
    media : tuple of str
        Types in which it answers, where that is not JSON.
    status : int
        Of success.
    errors : tuple of int
        Statuses with an error body, beside those that any request may have.
    also : tuple of int
        Other statuses with the same answer as success.
    patterns : tuple of (name, pattern)
        Of path parameters.
    """

    def describe(view: View) -> View:
        setattr(view, _ATTRIBUTE, Operation(body, answer, media, status, errors, also, patterns))
        return view

    return describe


def document(app: Flask) -> dict[str, Any]:
    """The OpenAPI 3.1 description of every route of `app`.

    A route without `documented` is there too, with no more than its docstring.
    """
    operations = [
        (rule, method.lower(), app.view_functions[rule.endpoint])
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]
    models: list[type[BaseModel]] = [ErrorBody]
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, view in sorted(operations, key=lambda o: (o[0].rule, o[1])):
        about: Operation = getattr(view, _ATTRIBUTE, Operation())
        models += [model for model in (about.body, about.answer) if model is not None]
        paths.setdefault(_path(rule), {})[method] = _operation(rule, method, view, about)
    _, schemas = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        ref_template="#/components/schemas/{model}",
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kokoro-lab",
            "version": __version__,
            "description": "Text to speech with Kokoro-82M; `/v1` is OpenAI's contract.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas.get("$defs", {}),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)


def _operation(rule: Rule, method: str, view: Callable[..., Any], about: Operation) -> dict[str, Any]:
    summary = (getdoc(view) or rule.endpoint).split("\n\n")[0].replace("\n", " ")
    statuses = {*_EVERYWHERE, *about.errors, *(_WITH_BODY if method in ("post", "put", "patch") else ())}
    responses = {str(status): _error(status) for status in sorted(statuses)}
    for status in (about.status, *about.also):
        responses[str(status)] = _success(status, about)
    operation: dict[str, Any] = {
        "operationId": f"{method}_{rule.endpoint.replace('.', '_')}",
        "summary": summary,
        "responses": dict(sorted(responses.items())),
    }
    patterns = dict(about.patterns)
    if rule.arguments:
        operation["parameters"] = [
            {
                "name": name,
                "in": "path",
                "required": True,
                "schema": {"type": "string"} | ({"pattern": patterns[name]} if name in patterns else {}),
            }
            for name in sorted(rule.arguments)
        ]
    if about.body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": _ref(about.body)}}}
    if 401 in about.errors:
        operation["security"] = [{}, {"key": []}]  # none, unless the server is set up with a key
    return operation


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _error(status: int) -> dict[str, Any]:
    return {"description": _REASONS[status], "content": {_JSON: {"schema": _ref(ErrorBody)}}}


def _success(status: int, about: Operation) -> dict[str, Any]:
    content: dict[str, Any] = {kind: {} for kind in about.media}
    if about.answer is not None:
        content[_JSON] = {"schema": _ref(about.answer)}
    return {"description": _REASONS[status], **({"content": content} if content else {})}
