"""Variables of the environment, as the installed command takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.installed.command import Installed


def test_a_misspelt_variable_is_named_with_the_nearest_by_every_command(installed: Installed) -> None:
    ran = installed.run("text", "--language", "en", stdin="Tea.\n", KOKORO_THREDS="1", KOKORO_URL="http://x")
    assert ran.returncode == 0
    assert "KOKORO_THREDS sets nothing" in ran.stderr
    assert "KOKORO_THREADS" in ran.stderr
    assert "KOKORO_URL" not in ran.stderr, "the Raycast commands read it"
    assert json.loads(ran.stdout)["text"] == "Tea.", "what programs read stays as it was"


def test_the_servers_log_names_it(installed: Installed) -> None:
    with installed.started("serve", "--port", "0", KOKORO_FIRST_WINDOW_FRAMES="40") as running:
        running.awaited("KOKORO_FIRST_WINDOW_FRAMES sets nothing.*KOKORO_WINDOW_FRAMES")
        running.awaited("Listening at")
    assert running.written().count("KOKORO_FIRST_WINDOW_FRAMES sets nothing") == 1


@pytest.mark.parametrize(
    ("variable", "named"),
    [("KOKORO_COREML_COMPUTE_UNIT", "KOKORO_COREML_COMPUTE_UNITS"), ("KOKORO_THREADS", "KOKORO_THREADS")],
)
def test_what_would_be_measured_as_if_it_were_set_is_an_error(
    installed: Installed, variable: str, named: str
) -> None:
    ran = installed.run("text", stdin="Tea.\n", **{variable: "many"})
    assert ran.returncode == 2
    assert named in ran.stderr
    assert not ran.stdout


def test_tune_says_why_nothing_that_was_tuned_is_used(installed: Installed, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shown = installed.run("tune", "--show", KOKORO_HOME=str(home))
    assert shown.stdout.startswith("int8: nothing is adopted for int8; `kokoro-lab tune`")
    off = installed.run("tune", "--show", KOKORO_HOME=str(home), KOKORO_TUNED="off")
    assert off.stdout == "int8: no: KOKORO_TUNED=off\n"
    elsewhere = dict.fromkeys(
        ("model_sha256", "native", "onnxruntime", "cpu", "architecture", "system"), "another"
    )
    found = {
        "made_for": {**elsewhere, "variant": "int8", "cores": 3},
        "settings": {"threads": 1},
        "gains": {},
        "found_at": "2026-01-01T00:00:00+00:00",
    }
    (home / "tuned.json").write_text(json.dumps({"configurations": [found]}))
    other = installed.run("tune", "--show", KOKORO_HOME=str(home))
    assert "it was found with model_sha256 'another', here" in other.stdout
    assert "cpu 'another', here" in other.stdout


def test_the_server_listens_and_logs_as_the_variables_say(installed: Installed) -> None:
    with installed.started("serve", KOKORO_PORT="0", KOKORO_LOG_FORMAT="text") as running:
        port = running.awaited(r"Listening at: http://127\.0\.0\.1:(\d+)")[1]
    assert port != "8880"
    assert not any(line.startswith("{") for line in running.written().splitlines())
