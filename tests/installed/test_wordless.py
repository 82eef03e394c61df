"""`speak` and `text`, of what has no word, of a few sounds, of a language by another name."""

from __future__ import annotations

import json
import wave

import pytest

from tests.installed.command import Installed


def test_marks_alone_are_a_file_of_silence_and_that_is_said(installed: Installed) -> None:
    done = installed.run("speak", ":)", "-o", "marks.wav", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout, parse_constant=pytest.fail)  # NaN is no JSON
    with wave.open(str(installed.folder / "marks.wav")) as file:
        assert file.getnframes() == 2400
    assert [each["stage"] for each in found["fallbacks"]] == ["text"]
    assert found["ttfa_s"] is found["integrated_lufs"] is found["true_peak_dbtp"] is None
    empty = installed.run("speak", "  ", "-o", "empty.wav")
    assert empty.returncode == 2
    assert "nothing to speak" in empty.stderr


def test_a_sound_too_short_to_be_measured_is_spoken_and_its_stretch_said(installed: Installed) -> None:
    done = installed.run("speak", "Hi.", "--speed", "4", "--language", "en-AU", "-o", "hi.wav")
    assert done.returncode == 0, done.stderr
    assert "speed  4: 1.43 by the model, and a time stretch to 0.36 of its length" in done.stdout
    assert "too short or soft to measure" in done.stdout
    assert "note   language: en-AU is read as en-gb" in done.stderr


def test_text_knows_the_same_languages_and_no_error_in_marks(installed: Installed) -> None:
    done = installed.run("text", "--language", "es-MX", stdin="...\n¿Qué tal?\n")
    marks, words = map(json.loads, done.stdout.splitlines())
    assert (marks["normalized"], words["words"][0]["language"]) == ("…", "es")
    assert words["fallbacks"][0]["reason"].startswith("es-MX is read as es")
    refused = installed.run("text", "--language", "ko-Kore", stdin="...\n")
    assert refused.returncode == 2
    assert "en-us" in refused.stderr
