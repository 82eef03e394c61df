"""Golden clips are recorded as the plan names them, and the command that lists them changes nothing."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.golden_files import GoldenFolder, load_golden
from kokoro_lab.lab.gates.golden_speaking import chosen, names_of, record_anew
from kokoro_lab.speech.engine import Engine


def test_recording_anew_touches_what_is_named_and_shows_it(recorded: GoldenFolder, hum: Engine) -> None:
    before = {path.name: path.read_bytes() for path in recorded.folder.glob("*.flac")}
    evidence = recorded.folder / "again"
    (change,) = record_anew(recorded, ["low-fp32"], evidence, lambda _: hum)
    assert "+0.00% long" in change
    assert {path.name for path in evidence.iterdir()} == {
        *("low-fp32-before.flac", "low-fp32-after.flac", "low-fp32.png", "difference.json")
    }
    assert {path.name: path.read_bytes() for path in recorded.folder.glob("*.flac")} == before
    assert load_golden(recorded.folder).faults() == []


def test_names_are_cases_or_recordings(clips: GoldenFolder) -> None:
    assert names_of(clips, ["greeting"]) == ["greeting-int8", "greeting-fp32", "greeting-int8fp16mix"]
    assert names_of(clips, ["numbers-fp32"]) == ["numbers-fp32"]
    assert chosen(clips, 2, "int8") == ["greeting-int8", "question-int8"]
    for wrong in (lambda: names_of(clips, ["greetings"]), lambda: chosen(clips, 0, "int9")):
        with pytest.raises(ParameterError, match=r"greeting|int8"):
            wrong()


def test_the_command_lists_and_changes_nothing(clips: GoldenFolder) -> None:
    before = {path: path.read_bytes() for path in clips.folder.iterdir()}
    done = CliRunner().invoke(main, ["golden", "--json"])
    assert done.exit_code == 0
    assert {row["name"] for row in json.loads(done.stdout)["clips"]} == set(clips.planned)
    assert {path: path.read_bytes() for path in clips.folder.iterdir()} == before
