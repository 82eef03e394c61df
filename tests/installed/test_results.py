"""`kokoro-lab results` as users run it, on planted results: from the list to the sound in two commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.installed.command import Installed
from tests.lab.results.planted import GATE, SECOND, plant

FAILED_RUN = f"{GATE}/{SECOND}"


@pytest.fixture
def planted(installed: Installed) -> Installed:
    """With a player and a browser that keep what they are given."""
    plant(installed.folder / "results")
    programs = installed.folder / "bin"
    programs.mkdir()
    for name, kept, copies in (("aplay", "heard", 'cat -- "$last"'), ("browser", "opened", 'echo "$last"')):
        program = programs / name
        program.write_text(f"#!/bin/sh\nfor last; do :; done\n{copies} > '{installed.folder / kept}'\n")
        program.chmod(0o755)
    path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
    return Installed(installed.folder, {"PATH": path, "BROWSER": str(programs / "browser")})


def answer(planted: Installed, *arguments: str) -> str:
    done = planted.run("results", *arguments, "--results", "results")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_from_the_list_to_hearing_what_made_the_gate_fail_takes_two_commands(planted: Installed) -> None:
    rows = answer(planted, "list", "--verdict", "failed", "--notebook", "30").splitlines()
    short_id = next(row for row in rows if "true peak" in row).split()[0]
    assert f"{FAILED_RUN}/audio/loud.wav" in answer(planted, "open", short_id, "--sound")
    heard, loud = (planted.folder / "heard").read_bytes(), planted.folder / "results" / FAILED_RUN
    assert len(heard) == pytest.approx((loud / "audio/loud.wav").stat().st_size, abs=4_800)


def test_a_report_opens_in_the_browser_and_no_model_is_needed(planted: Installed, tmp_path: Path) -> None:
    away = Installed(planted.folder, {**planted.environment, "KOKORO_HOME": str(tmp_path / "empty")})
    address = answer(away, "open", "30").strip()
    assert address == (planted.folder / "results" / FAILED_RUN / "report.html").as_uri()
    assert (planted.folder / "opened").read_text().strip() == address
    assert not (tmp_path / "empty").exists()


@pytest.mark.test_all
def test_each_command_ends_well(planted: Installed) -> None:
    answer(planted, "show", "latest")
    answer(planted, "note", "aa01", "to be kept")
    answer(planted, "export", "-o", "all.csv")
    answer(planted, "prune", "--older-than", "1", "--yes")
    assert answer(planted, "open").strip() == (planted.folder / "results/index.html").as_uri()
    assert "passed" in answer(planted, "show", "aa01")
