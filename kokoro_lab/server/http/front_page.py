"""The page at `/`, for a person without a client: plain files from `page/`, sent as they are."""

from __future__ import annotations

from pathlib import Path

from flask import Blueprint, Response, send_from_directory

from kokoro_lab.server.openapi.document import Parameter, documented

blueprint = Blueprint("front_page", __name__)

FOLDER = Path(__file__).parent / "page"
FILE = {"type": "string", "pattern": r"^[a-z]+\.(css|html|js|svg)$", "examples": ["page.css", "page.js"]}

POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The Content Security Policy: nothing from another host, no script or style within the HTML, and no other
page around this one."""


@blueprint.get("/")
@documented(media=("text/html",))
def front_page() -> Response:
    """The page on which a person types a text, chooses a voice and listens."""
    return send_from_directory(FOLDER, "index.html")


@blueprint.get("/page/<filename>")
@documented(
    media=("image/svg+xml", "text/css", "text/html", "text/javascript"),
    errors=(404,),
    parameters=(Parameter("filename", FILE),),
)
def page_file(filename: str) -> Response:
    """A file that the front page uses: script, style sheet, picture or another page."""
    return send_from_directory(FOLDER, filename)


@blueprint.after_request
def _guard_the_page(answer: Response) -> Response:
    answer.headers["Content-Security-Policy"] = POLICY
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Referrer-Policy"] = "no-referrer"
    # Validated at each load (304), so that an old version's page never meets a newer server
    answer.headers["Cache-Control"] = "no-cache"
    return answer
