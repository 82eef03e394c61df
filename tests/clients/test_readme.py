"""What README.md and docs/ tell a new user to type works as it stands there, but for port and voice."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from kokoro_lab.serve import create_app
from kokoro_lab.server.health.background import WarmUp
from kokoro_lab.server.requests.speech_request import ALIASES, SpeechRequest
from kokoro_lab.text.language import resolve_language
from tests.browser import require
from tests.clients.listening import assert_speech
from tests.documentation import ROOT, page
from tests.server import scripted
from tests.server.conftest import RunningServer

README, SERVE, CLIENTS = page("README.md"), page("docs/serve.md"), page("docs/clients.md")
TEXT = "Hello there."


def snippet(text: str, language: str, holds: str, server: RunningServer) -> str:
    """The only block of code of `language` on a page that `holds` this."""
    blocks = [code for kind, code in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL) if kind == language]
    (found,) = [block for block in blocks if holds in block]
    assert "http://127.0.0.1:8880" in found
    return found.replace("http://127.0.0.1:8880", server.url).replace("af_heart", "hum")


def run(*command: str, cwd: Path, path: str = "") -> str:
    environment = {"PATH": f"{path}:/usr/local/bin:/usr/bin:/bin", "HOME": str(cwd)}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("text", [README, SERVE], ids=["README.md", "docs/serve.md"])
def test_curl_writes_a_file(server: RunningServer, tmp_path: Path, text: str) -> None:
    require({"curl (Debian: apt-get install curl)": shutil.which("curl")})
    commands = snippet(text, "", "curl http", server)
    run("bash", "-c", commands[commands.index("curl ") :], cwd=tmp_path)
    assert_speech("wav", (tmp_path / "hello.wav").read_bytes(), server, TEXT)


def test_curl_hands_a_stream_to_a_player(server: RunningServer, tmp_path: Path) -> None:
    require({"curl (Debian: apt-get install curl)": shutil.which("curl")})
    player = tmp_path / "ffplay"
    player.write_text("#!/bin/sh\ncat >played\n")
    player.chmod(0o755)
    run("bash", "-c", snippet(CLIENTS, "", "| ffplay", server), cwd=tmp_path, path=str(tmp_path))
    assert_speech("wav", (tmp_path / "played").read_bytes(), server, TEXT)


def test_python_hears_it_as_it_is_spoken(server: RunningServer, tmp_path: Path) -> None:
    program = snippet(SERVE, "python", "OpenAI(", server)
    assert program.count("        ...") == 1
    program = program.replace("        ...", "        sys.stdout.buffer.write(pcm)")
    (tmp_path / "listen.py").write_text("import sys\n" + program)
    done = subprocess.run(
        [sys.executable, "listen.py"], cwd=tmp_path, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert_speech("pcm", done.stdout, server, TEXT)


@pytest.mark.test_all
def test_node_writes_a_file(server: RunningServer, tmp_path: Path) -> None:
    modules = ROOT / "tests/clients/node_modules"
    require(
        {
            "Node.js (Debian: apt-get install nodejs npm)": shutil.which("node"),
            "openai (make clients)": (modules / "openai").exists(),
        }
    )
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "speak.mjs").write_text(snippet(CLIENTS, "js", "new OpenAI(", server))
    run("node", "speak.mjs", cwd=tmp_path)
    assert_speech("wav", (tmp_path / "hello.wav").read_bytes(), server, TEXT)


def test_every_path_of_v1_is_in_the_documentation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(WarmUp, "start", lambda *_, **__: None)  # its paths are there before it can speak
    app = create_app(scripted.engine(tmp_path / "hum.onnx"))
    paths = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule) for rule in app.url_map.iter_rules()}
    assert "/v1/audio/speech" in paths
    assert [path for path in sorted(paths) if path.startswith("/v1/") and path not in SERVE] == []


@pytest.mark.parametrize("field", ["text", "format", "lang"])
def test_the_spellings_that_are_promised_are_taken(field: str) -> None:
    assert f"`{field}`" in CLIENTS
    assert ALIASES[field] in SpeechRequest.model_fields


FASTAPI = page("docs/from-kokoro-fastapi.md")


@pytest.mark.parametrize(
    "field",
    [
        "volume_multiplier",
        "normalization_options",
        "voice_aliases",
        "allow_voice_tags",
        "return_timing",
        "return_download_link",
        "ssml",
    ],
)
def test_a_field_of_kokoro_fastapi_that_is_said_to_be_refused_is(field: str) -> None:
    assert f"`{field}`" in FASTAPI
    with pytest.raises(ValidationError, match=field):
        SpeechRequest.model_validate({"input": "Hello.", field: True})


def test_the_letters_for_languages_that_kokoro_fastapi_has_are_taken() -> None:
    (letters,) = re.findall(r"letters for languages: ([^.]+)\.", FASTAPI)
    named = re.findall(r"`(\w)`", letters)
    assert len({resolve_language(letter) for letter in named}) == 9
