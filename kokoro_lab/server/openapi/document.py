"""Makes `/openapi.json` from the application's routes and the models that validate requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getdoc
from typing import Any, TypeVar

from flask import Flask
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from werkzeug.routing import Rule

from kokoro_lab._version import __version__
from kokoro_lab.server.openapi.schemas import ErrorBody
from kokoro_lab.server.state import ServerState, state_of
from kokoro_lab.text.tables import rows

View = TypeVar("View", bound=Callable[..., Any])
Refine = Callable[[dict[str, Any], ServerState], None]
"""Adds to a body's JSON Schema the rules that depend on the running server."""

_ATTRIBUTE = "_documented"
_JSON = "application/json"
_EVENTS = "text/event-stream"
_EVERYWHERE = (400, 403)
"""Statuses that any request may get: 400 and 403, for a wrong Host or Origin."""
_WRITING = (413,)
_WITH_BODY = (408, 415)
_KEY = "key"
_STATUSES = {int(row["status"]): row for row in rows(__package__, "statuses.tsv")}
"""The description of each status, and the header that it has besides those of every answer."""
_HEADERS = tuple(rows(__package__, "headers.tsv"))
EXPOSED_HEADERS = ", ".join(row["header"] for row in _HEADERS)
"""The headers of answers that the pages of a listed origin may read."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a request outside its body.

    Parameters
    ----------
    name : str
    schema : mapping
        JSON Schema of the parameter.
    place : str
        `path` or `header`.
    """

    name: str
    schema: Mapping[str, Any]
    place: str = "path"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewDescription:
    """Describes a view, which it decorates: what it takes and returns. The summary is the first sentence of
    the view's docstring.

    Parameters
    ----------
    body, answer : pydantic model, optional
        The models of the JSON that the view takes and returns.
    media : tuple of str
        Types in which it answers, where that is not JSON.
    status : int
        HTTP status of success.
    errors : tuple of int
        Statuses with an error body, besides those that any request may have.
    also : tuple of int
        Other statuses with the same answer as success.
    parameters : tuple of Parameter
        Headers, and parameters of the path that are more than a string.
    optional_body : bool
        Whether the body may be left out.
    events : pydantic model, optional
        The model of one server-sent event, if the view may answer with such events.
    headers : mapping of str to str
        Headers that a successful answer always has, and their meaning.
    at_times : mapping of str to str
        Headers that a successful answer may have, and their meaning.
    links : mapping of str to mapping
        OpenAPI links: requests that use a value of the answer.
    refine : callable, optional
        Adds to the body's schema what depends on the server's settings.
    """

    body: type[BaseModel] | None = None
    answer: type[BaseModel] | None = None
    media: tuple[str, ...] = ()
    status: int = 200
    errors: tuple[int, ...] = ()
    also: tuple[int, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    optional_body: bool = False
    events: type[BaseModel] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    at_times: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refine: Refine | None = None

    def __call__(self, view: View) -> View:
        setattr(view, _ATTRIBUTE, self)
        return view


documented = ViewDescription
"""The decorator's name above a view: `@documented(answer=Health)`."""


def document(app: Flask) -> dict[str, Any]:
    """The OpenAPI 3.1 description of every route of `app`, as it is set up.

    A route without a description has its docstring alone. A WebSocket, which OpenAPI cannot describe, appears
    as the plain request that opens it.
    """
    operations = [
        (rule, method.lower(), app.view_functions[rule.endpoint])
        for rule in app.url_map.iter_rules()
        if not rule.websocket
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]
    models: list[type[BaseModel]] = [ErrorBody]
    refinements: list[tuple[type[BaseModel], Refine]] = []
    paths: dict[str, dict[str, Any]] = {}
    state = state_of(app)
    locked = bool(state.settings.api_key)
    for rule, method, view in sorted(operations, key=lambda o: (o[0].rule, o[1])):
        about: ViewDescription = getattr(view, _ATTRIBUTE, ViewDescription())
        models += [model for model in (about.body, about.answer, about.events) if model is not None]
        if about.body is not None and about.refine is not None:
            refinements.append((about.body, about.refine))
        paths.setdefault(_path(rule), {})[method] = _operation(rule, method, view, about, locked)
    _, schemas = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        ref_template="#/components/schemas/{model}",
    )
    components: dict[str, Any] = {"schemas": schemas.get("$defs", {})}
    for model, refine in refinements:
        refine(components["schemas"][model.__name__], state)
    if locked:
        components["securitySchemes"] = {_KEY: {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "kokoro-lab",
            "version": __version__,
            "description": "Text to speech with Kokoro-82M; `/v1` is OpenAI's contract.",
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": state.settings.root_path or "/", "description": "This one"}],
        "paths": paths,
        "components": components,
    }


def operation_id(method: str, endpoint: str) -> str:
    """The OpenAPI operation id of a Flask endpoint such as `speech.stop`, for links."""
    return f"{method}_{endpoint.replace('.', '_')}"


def described_headers(there: str) -> dict[str, str]:
    """The meanings of headers by their names: of the headers of `every` answer, or of those that answers with
    `speech` always have, or have only `at times`."""
    return {row["header"]: row["says"] for row in _HEADERS if row["there"] == there}


def _path(rule: Rule) -> str:
    return re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)


def _operation(
    rule: Rule, method: str, view: Callable[..., Any], about: ViewDescription, locked: bool
) -> dict[str, Any]:
    summary, _, more = (getdoc(view) or rule.endpoint).partition("\n\n")
    statuses = {*_EVERYWHERE, *about.errors, *(_WRITING if method in ("post", "put", "patch") else ())}
    statuses |= set(_WITH_BODY if about.body is not None else ())
    responses = {str(status): _error(status) for status in sorted(statuses)}
    for status in (about.status, *about.also):
        responses[str(status)] = _success(status, about)
    operation: dict[str, Any] = {
        "operationId": operation_id(method, rule.endpoint),
        "summary": summary.replace("\n", " "),
        **({"description": more.replace("\n", " ")} if more else {}),
        "tags": [rule.endpoint.partition(".")[0].replace("_", " ")],
        "responses": dict(sorted(responses.items())),
    }
    parameters = _parameters(rule, about)
    if parameters:
        operation["parameters"] = parameters
    if about.body is not None:
        operation["requestBody"] = {
            "required": not about.optional_body,
            "content": {_JSON: {"schema": _ref(about.body)}},
        }
    if locked and 401 in about.errors:
        operation["security"] = [{_KEY: []}]
    return operation


def _parameters(rule: Rule, about: ViewDescription) -> list[dict[str, Any]]:
    said = {parameter.name: parameter for parameter in about.parameters}
    of_path = [said.pop(name, Parameter(name, {"type": "string"})) for name in sorted(rule.arguments)]
    return [
        {"name": p.name, "in": p.place, "required": p.place == "path", "schema": dict(p.schema)}
        for p in (*of_path, *said.values())
    ]


def _ref(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def _headers(found: Mapping[str, str], at_times: Mapping[str, str] | None = None) -> dict[str, Any]:
    at_times = at_times or {}
    every = {**described_headers("every"), **found, **at_times}
    return {
        name: {"description": about, "required": name not in at_times, "schema": {"type": "string"}}
        for name, about in every.items()
    }


def _error(status: int) -> dict[str, Any]:
    row = _STATUSES[status]
    return {
        "description": row["meaning"],
        "headers": _headers({row["header"]: row["says"]} if row["header"] else {}),
        "content": {_JSON: {"schema": _ref(ErrorBody)}},
    }


def _success(status: int, about: ViewDescription) -> dict[str, Any]:
    content: dict[str, Any] = {kind: {} for kind in about.media}
    if about.answer is not None:
        content[_JSON] = {"schema": _ref(about.answer)}
    if about.events is not None:
        content[_EVENTS] = {"schema": _ref(about.events)}
    return {
        "description": _STATUSES[status]["meaning"],
        "headers": _headers(about.headers, about.at_times),
        **({"content": content} if content else {}),
        **({"links": {name: dict(link) for name, link in about.links.items()}} if about.links else {}),
    }
