"""`/openapi.json` is kept: whatever it offers is answered as it says, whatever it forbids is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from flask import Flask, Response, jsonify
from werkzeug.serving import WSGIRequestHandler, make_server

from tests.server.conftest import ROOT, RunningServer, running

pytestmark = pytest.mark.test_all

CONFIG = Path(__file__).with_name("contract.toml")
KEY = {"Authorization": "Bearer sesame"}
LONGEST = 200
"""Characters of a text: the document says so, and texts of this length and of one more are sent."""
RUN = "20260101T000000Z-abcd"


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with all that there is to ask for: a key, debugging, a benchmark on disk."""
    folder = tmp_path_factory.mktemp("documented")
    checkout = folder / "checkout"
    result = checkout / "results" / "bench" / RUN / "result.json"
    result.parent.mkdir(parents=True)
    result.write_text(
        json.dumps({"conditions": "warm", "asked": {}, "systems": {}, "summary": {}, "trials": []})
    )
    for name in ("notebooks", "fixtures"):
        (checkout / name).symlink_to(ROOT / name)
    settings = {"max_input_chars": LONGEST, "api_key": "sesame", "development_mode": True}
    with running(folder, checkout, skip_benchmarking=True, **settings) as found:
        yield found


def ask(url: str, folder: Path) -> dict[str, Any]:
    """Have schemathesis ask the server at `url`, and report."""
    report, said = folder / "report.json", folder / "said.txt"
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "--no-color"]
    command += ["run", f"{url}/openapi.json", "--report-json-path", str(report)]
    with said.open("wb") as sink:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=sink,
            stderr=sink,
            timeout=600,
            check=False,
        )
    assert report.exists(), said.read_text()
    found: dict[str, Any] = json.loads(report.read_text())
    return {**found, "said": said.read_text(), "exit_code": done.returncode}


def faults(report: dict[str, Any]) -> set[tuple[str, str]]:
    """What is wrong with which operation."""
    return {
        (operation, failure["type"]) for failure in report["failures"] for operation in failure["operations"]
    }


def test_every_operation_keeps_what_is_documented(documented: RunningServer, tmp_path: Path) -> None:
    paths = httpx2.get(f"{documented.url}/openapi.json").json()["paths"]
    report = ask(documented.url, tmp_path)
    assert faults(report) == set(), report["said"]
    assert report["exit_code"] == 0, report["said"]  # nor errors, nor warnings
    asked = sum(
        len(methods) for path, methods in paths.items() if path != "/openapi.json"
    )  # it began with that
    assert report["operations"]["tested"] == asked > 20
    assert {phase["status"] for phase in report["phases"].values()} == {"success"}
    assert report["test_cases"]["generated"] > 500
    spoken = report["valid_rates"]["POST /v1/audio/speech"].values()
    assert sum(phase["accepted"] for phase in spoken) > 20
    assert documented.status()["requests"]["failed"] == 0


def test_the_document_is_openapi_3_1(documented: RunningServer) -> None:
    document = httpx2.get(f"{documented.url}/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(document).validate()
    document["paths"]["/health"]["get"]["responses"]["200"].pop("description")
    with pytest.raises(ValueError, match="description"):
        schemathesis.openapi.from_dict(document).validate()


# --------------------------------------------------------------------------- what must not pass


def answer(fields: dict[str, str], status: str = "200", **more: Any) -> dict[str, Any]:
    """An operation as a document has it, which answers an object with `fields`."""
    schema = {
        "type": "object",
        "required": [*fields],
        "properties": {name: {"type": kind} for name, kind in fields.items()},
    }
    content = {"application/json": {"schema": schema}}
    return {
        "responses": {status: {"description": "Done", "content": content}, "400": {"description": "No"}},
        **more,
    }


TEXT = {
    "type": "object",
    "required": ["input"],
    "properties": {"input": {"type": "string", "pattern": "^[a-z]+$"}},
}
TAKES_TEXT = {"requestBody": {"required": True, "content": {"application/json": {"schema": TEXT}}}}
KEPT = {"said": "string"}
PROMISED: dict[str, dict[str, Any]] = {
    "/fine": {"get": answer(KEPT)},
    "/breaks": {"get": answer(KEPT)},
    "/teapot": {"get": answer(KEPT)},
    "/another-type": {"get": answer(KEPT)},
    "/another-shape": {"get": answer(KEPT)},
    "/open-to-all": {"get": answer(KEPT, security=[{"key": []}])},
    "/takes-anything": {"post": answer(KEPT, **TAKES_TEXT)},
    "/v1/audio/speech": {"post": answer(KEPT, **TAKES_TEXT)},
}
BROKEN = {
    ("GET /breaks", "ServerError"),
    ("GET /breaks", "UndefinedStatusCode"),
    ("GET /teapot", "UndefinedStatusCode"),
    ("GET /teapot", "RejectedPositiveData"),
    ("GET /another-type", "UndefinedContentType"),
    ("GET /another-shape", "JsonSchemaError"),
    ("GET /open-to-all", "IgnoredAuth"),
    ("GET /open-to-all", "MissingHeaderNotRejected"),
    ("POST /takes-anything", "AcceptedNegativeData"),
    ("POST /v1/audio/speech", "RejectedPositiveData"),
}


class Silent(WSGIRequestHandler):
    """Without a line for each request."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def unfaithful() -> Iterator[str]:
    """The URL of a server whose document promises more than it keeps."""
    app = Flask("unfaithful")
    document = {
        "openapi": "3.1.0",
        "info": {"title": "unfaithful", "version": "1"},
        "paths": PROMISED,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }
    kept = {"said": "something"}
    refused = (
        {"error": {"code": "invalid_text", "param": "input"}},
        400,
    )  # which hooks excuse of a text of dots
    views: dict[str, Any] = {
        "/openapi.json": lambda: jsonify(document),
        "/fine": lambda: kept,
        "/breaks": lambda: ("", 500),
        "/teapot": lambda: (kept, 418),
        "/another-type": lambda: Response("something", mimetype="text/plain"),
        "/another-shape": lambda: {"says": "something"},
        "/open-to-all": lambda: kept,
        "/takes-anything": lambda: kept,
        "/v1/audio/speech": lambda: refused,
    }
    for path, view in views.items():
        methods = ["POST"] if "post" in PROMISED.get(path, {}) else ["GET"]
        app.add_url_rule(path, endpoint=path, view_func=view, methods=methods)
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_server_that_does_not_keep_its_document_is_found_out(unfaithful: str, tmp_path: Path) -> None:
    report = ask(unfaithful, tmp_path)
    assert faults(report) == BROKEN, report["said"]
    assert report["exit_code"] == 1
