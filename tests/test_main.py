"""The command line: what it prints, where it writes, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import soundfile
from click.testing import CliRunner, Result

from kokoro_lab.__main__ import main
from kokoro_lab.engine import Engine


@pytest.fixture
def lab(hum: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The command line on the tiny voice, in an empty folder."""
    monkeypatch.setattr("kokoro_lab.engine.load_engine", lambda *a, **k: hum)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=stdin)


def test_speak_writes_what_it_says(lab: Path) -> None:
    done = call(
        "speak", "The kettle is on, and the window is open.", "--voice", "hum", "-o", "out/a.wav", "--json"
    )
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    found = soundfile.info(lab / "out/a.wav")
    assert (found.samplerate, found.channels, found.subtype) == (24_000, 1, "PCM_16")
    assert found.frames / 24_000 == pytest.approx(said["audio_s"], abs=0.001)
    assert said["integrated_lufs"] == pytest.approx(-16, abs=1)


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
def test_speak_resamples(lab: Path, rate: int) -> None:
    assert call("speak", "Ah, the kettle.", "--voice", "hum", "--sample-rate", str(rate)).exit_code == 0
    assert soundfile.info(lab / "speech.wav").samplerate == rate


def test_speak_reads_files_and_pipes(lab: Path) -> None:
    (lab / "in.txt").write_bytes(b"\xef\xbb\xbfThe kettle is on.")
    assert call("speak", "-i", "in.txt", "--voice", "hum").exit_code == 0
    assert call("speak", "--voice", "hum", stdin="The kettle is on.").exit_code == 0


def test_speak_reports_the_first_audio_of_a_stream(lab: Path) -> None:
    done = call("speak", "The kettle is on.", "--voice", "hum", "--stream")
    assert "warm stream" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speak", "Hi.", "--voice", "nobody"], "no voice 'nobody'"),
        (["speak", "Hi.", "--voice", "hum", "--speed", "9"], "0.25 to 4.0"),
        (["speak", "  ", "--voice", "hum"], "nothing to speak"),
        (["speak", "Hi.", "--voice", "hum", "--sample-rate", "8000"], "22050"),
        (["speak", "-i", "nowhere.txt"], "cannot be read"),
        (["run", "99_nothing"], "no notebook"),
        (["run", "00_quickstart", "-p", "colour=red"], "no parameter 'colour'"),
        (["run", "00_quickstart", "-p", "colour"], "NAME=VALUE"),
        (["text", "--language", "tlh"], "en-us, en-gb"),
        (["fetch", "--variant", "fp33"], "fp33"),
        (["export", "--variant", "int8-upstream", "-o", "x"], "int8-upstream"),
        (["export", "--format", "tflite", "-o", "x"], "tflite"),
        (["export"], "--output"),
    ],
)
def test_a_wrong_request_is_one_paragraph_and_exit_code_2(
    lab: Path, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    if arguments[0] == "run":
        monkeypatch.chdir(repository)
    done = call(*arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


def test_binary_input_is_refused(lab: Path) -> None:
    done = call("speak", "-", "--voice", "hum", stdin=b"\xff\xfe\x00\x01" * 50)
    assert done.exit_code == 2
    assert "UTF-8" in done.output


def test_text_shows_one_json_object_a_line() -> None:
    original = "I don’t know."
    done = call("text", stdin=f"{original}\n\nParty 🎉!\n")
    first, empty, party = (json.loads(line) for line in done.stdout.splitlines())
    assert first["text"] == original
    assert first["normalized"] == "I don't know."
    assert [w["text"] for w in first["words"]] == ["I", "don't", "know", "."]
    word = first["words"][1]
    assert original[word["start"] : word["end"]] == "don’t"
    assert set(word) == {"text", "start", "end", "phonemes", "language", "source"}
    assert first["segments"][0]["phonemes"] == first["phonemes"]
    assert empty["words"] == []
    assert party["normalized"] == "Party party popper!"


def test_doctor_looks_at_everything() -> None:
    done = call("doctor", "--json")
    found = {f["name"]: f for f in json.loads(done.stdout)}
    assert {"python", "onnxruntime", "English G2P", "weights fp32", "npm", "disk"} <= set(found)
    assert done.exit_code == (0 if all(f["ok"] for f in found.values()) else 1)


def test_doctor_says_how_to_mend_missing_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", "doctor"],
        env={"KOKORO_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "kokoro-lab fetch --variant fp32" in done.stdout


def test_a_bad_setting_names_its_variable(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", "fetch", "--list"],
        env={"KOKORO_PORT": "http", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "KOKORO_PORT" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["fetch", "speak", "text", "run", "bench", "export", "serve", "doctor"])
def test_every_command_explains_itself(command: str) -> None:
    done = call(command, "-h")
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_importing_does_no_work() -> None:
    code = (
        "import sys, kokoro_lab; "
        "heavy = {'onnxruntime', 'spacy', 'flask', 'papermill', 'matplotlib', 'numpy'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.model
def test_the_promised_call(tmp_path: Path) -> None:
    path = tmp_path / "hello.wav"
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", "speak", "Hello there.", "-o", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "RTF" in done.stdout
    assert 0.4 < soundfile.info(path).duration < 2
