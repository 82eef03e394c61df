"""A web server for a listening test: a page for each listener, and one for the person who runs it.

The server is an application of its own, apart from the speech server. Without a token, a client only gets the
files of the page, which are the same for every test.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Literal

from flask import (
    Blueprint,
    Flask,
    Response,
    abort,
    current_app,
    jsonify,
    redirect,
    render_template,
    request,
    send_from_directory,
)
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError
from werkzeug.exceptions import HTTPException
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Response as WerkzeugResponse

from kokoro_lab.errors import AnswersError, KokoroLabError, ParameterError, SettingsError
from kokoro_lab.lab import listening, report
from kokoro_lab.lab.listening.panel import JOIN, Panel
from kokoro_lab.server.http.listening import listener, url_of

PAGE = Path(listening.__file__).parent / "page"
SHEET = Path(report.__file__).parent / "style.css"
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors http://127.0.0.1:* http://localhost:*"
)
"""Nothing from another host, no script within the HTML; JupyterLab on this machine may show it."""
_PANEL = "kokoro_lab.listening"
PLACE, PLACE_KEPT_S = "place", 90 * 86_400
"""The cookie that brings a listener back to their place from the link for everybody."""
MINUTES_A_TRIAL = 0.75

blueprint = Blueprint("listening", __name__, template_folder=str(PAGE))


class GivenAnswer(BaseModel):
    """An answer as a page sends it."""

    model_config = ConfigDict(extra="forbid")

    trial: int = Field(ge=0, strict=True)
    answer: Literal["A", "B"]
    plays: dict[Literal["A", "B", "X"], int]
    heard_s: dict[Literal["A", "B", "X"], FiniteFloat]

    def noted(self) -> tuple[dict[str, int], dict[str, float]]:
        """How many times each sound (A, B, X) was played, and for how many seconds."""
        return dict(self.model_dump()["plays"]), dict(self.model_dump()["heard_s"])


def create_app(panel: Panel) -> Flask:
    """A WSGI application for a panel."""
    app = Flask("kokoro_lab", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = 4096  # an answer is shorter
    app.extensions[_PANEL] = panel
    app.register_blueprint(blueprint)
    app.register_error_handler(HTTPException, lambda error: _refuse(error.code or 500, error.description))
    app.register_error_handler(KokoroLabError, _explain)
    app.after_request(_guard)
    return app


def bound_to(host: str, port: int) -> socket.socket:
    """A listening socket; with port 0, on a free port.

    Raises
    ------
    SettingsError
        The address cannot be used; the error names `--host` or `--port`.
    """
    try:
        return listener(host, port, backlog=128)
    except SettingsError as error:
        error.mend = (error.mend or "").partition(" KOKORO_")[0]  # settings are those of the speech server
        raise


def make_listening_server(panel: Panel, bound: socket.socket) -> tuple[BaseWSGIServer, str]:
    """A server on a socket of `bound_to`, whose `serve_forever` the caller calls, and the part of its links
    before the token."""
    address, port = bound.getsockname()[:2]
    with bound:  # the server makes a copy of its descriptor
        server = make_server(
            address,
            port,
            create_app(panel),
            threaded=True,
            request_handler=_Silent,
            fd=bound.fileno(),
        )
    return server, url_of(address, port)


class _Silent(WSGIRequestHandler):
    """Logs no request: its path is a secret."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None: ...


@blueprint.get("/<token>/")
def page(token: str) -> WerkzeugResponse | str:
    """The page of a listener, that of the person who runs the test, or the one that gives a new listener a
    place."""
    panel, name = _known(token)
    session = panel.session
    sheet = {"trials": len(session.plan), "minutes": round(len(session.plan) * MINUTES_A_TRIAL)}
    if name == JOIN:
        own = request.cookies.get(PLACE, "")
        if panel.name_of(own) in panel.listeners:  # who opens the link again goes on
            return redirect(f"../{own}/", 303)
        return render_template("join.html", free=len(panel.free_places()), **sheet)
    if name:
        return render_template("listening.html", **sheet)
    result = session.result()._repr_html_()
    return render_template(
        "panel.html",
        name=session.folder.name,
        progress=panel.progress(),
        trials=len(session.plan),
        result=result,
    )


@blueprint.post("/<token>/join")
def join(token: str) -> WerkzeugResponse:
    """Give a listener a place, and send them there. A link that is only looked at takes no place."""
    panel, name = _known(token)
    place = panel.join() if name == JOIN else None
    if place is None:
        abort(404, "There is no place left. Ask the person who runs the test.")
    answer = redirect(f"../{place}/", 303)
    answer.set_cookie(PLACE, place, max_age=PLACE_KEPT_S, httponly=True, samesite="Lax")
    return answer


@blueprint.get("/<token>/state")
def state(token: str) -> Response:
    """What a listener's page shows next."""
    panel, name = _listener(token)
    return jsonify(panel.state(name))


@blueprint.get("/<token>/sounds/<sound>")
def sound(token: str, sound: str) -> Response:
    """A sound of the trial that is next, as a WAV file."""
    panel, name = _listener(token)
    wav = panel.sound(name, sound)
    if wav is None:
        abort(404, "There is no such sound. Load the page again.")
    return Response(wav, mimetype="audio/wav")


@blueprint.post("/<token>/answers")
def answer(token: str) -> Response:
    """Keep an answer, and return what the page shows next."""
    panel, name = _listener(token)
    try:
        given = GivenAnswer.model_validate_json(request.get_data(cache=False))
    except ValidationError:
        abort(400, "That is no answer.")
    return jsonify(panel.answer(name, given.trial, given.answer, *given.noted()))


@blueprint.get("/page/style.css")
def style() -> Response:
    """The colours of all the lab's pages, but for those that tell the two sides of a comparison apart."""
    sheet = re.sub(r"^.*--(reference|candidate):.*\n", "", SHEET.read_text("utf-8"), flags=re.MULTILINE)
    return Response(sheet, mimetype="text/css")


@blueprint.get("/page/<filename>")
def page_file(filename: str) -> Response:
    """A script or sheet of the page."""
    if not filename.endswith((".css", ".js")):
        abort(404)
    return send_from_directory(PAGE, filename)


def _known(token: str) -> tuple[Panel, str]:
    """The panel, and the name of the person to whom the token belongs."""
    panel: Panel = current_app.extensions[_PANEL]
    name = panel.name_of(token)
    if name is None:
        abort(404, "There is no such link. Ask the person who runs the test for yours.")
    return panel, name


def _listener(token: str) -> tuple[Panel, str]:
    panel, name = _known(token)
    if name in ("", JOIN):
        abort(404, "This link is no listener's.")
    return panel, name


def _explain(error: KokoroLabError) -> tuple[Response, int]:
    status = 400 if isinstance(error, ParameterError) else 409 if isinstance(error, AnswersError) else 500
    return _refuse(status, str(error))


def _refuse(status: int, why: str | None) -> tuple[Response, int]:
    return jsonify(error=why or ""), status


def _guard(answer: Response) -> Response:
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    answer.headers["Cache-Control"] = "no-store"
    return answer
