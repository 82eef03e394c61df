"""The command line: what it prints, where it writes, and how it ends."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import soundfile
from click.testing import CliRunner, Result

from kokoro_lab.__main__ import main
from kokoro_lab.config import settings
from kokoro_lab.containers.coded import CODECS
from kokoro_lab.sessions import provider_registry
from kokoro_lab.speech.engine import Engine
from tests.containers.decoding import decoded
from tests.playback.fake_card import FakeStream, fake_sounddevice


@pytest.fixture
def lab(hum: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The command line on the tiny voice, in an empty folder."""
    monkeypatch.setattr("kokoro_lab.speech.engine.load_engine", lambda *a, **k: hum)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    gc.unfreeze()


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


def test_the_collector_of_garbage_does_not_look_through_what_speak_has_loaded(lab: Path) -> None:
    before = gc.get_freeze_count()
    assert call("speak", "The kettle is on.", "--voice", "hum").exit_code == 0
    assert gc.isenabled()
    assert gc.get_freeze_count() > before


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
def test_speak_resamples(lab: Path, rate: int) -> None:
    assert call("speak", "Ah, the kettle.", "--voice", "hum", "--sample-rate", str(rate)).exit_code == 0
    assert soundfile.info(lab / "speech.wav").samplerate == rate


@pytest.mark.parametrize("name", ["a.mp3", "a.opus", "a.aac", "a.flac", "a.wav", "a.pcm"])
def test_speak_writes_what_the_ending_says(lab: Path, name: str) -> None:
    done = call("speak", "The kettle is on.", "--voice", "hum", "-o", name, "--json")
    assert done.exit_code == 0, done.output
    kind = name.rpartition(".")[2]
    heard = decoded((lab / name).read_bytes(), kind)
    assert heard.rate_hz == (48_000 if kind == "opus" else 24_000)
    # AAC has no place for its lag of 43 ms, nor for how much of its last frame is meant
    assert len(heard.samples) / heard.rate_hz == pytest.approx(json.loads(done.stdout)["audio_s"], abs=0.09)


def test_speak_refuses_an_ending_before_it_loads_a_model(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kokoro_lab.speech.engine.load_engine", lambda *a, **k: pytest.fail("a model was loaded")
    )
    done = call("speak", "Hi.", "--voice", "hum", "-o", "speech.txt")
    assert done.exit_code == 2
    assert "speech.txt" in done.output
    assert ".mp3" in done.output


def test_speak_reads_files_and_pipes(lab: Path) -> None:
    (lab / "in.txt").write_bytes(b"\xef\xbb\xbfThe kettle is on.")
    assert call("speak", "-i", "in.txt", "--voice", "hum").exit_code == 0
    assert call("speak", "--voice", "hum", stdin="The kettle is on.").exit_code == 0


def test_speak_reports_the_first_audio_of_a_stream(lab: Path) -> None:
    done = call("speak", "The kettle is on.", "--voice", "hum", "--stream")
    assert "warm stream" in done.output


@pytest.mark.parametrize("stream", [False, True])
def test_speak_plays_what_the_file_holds(lab: Path, monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    cards = fake_sounddevice(monkeypatch)
    options = ["--stream"] if stream else []
    assert call("speak", "The kettle is on.", "--voice", "hum", "--play", *options).exit_code == 0
    assert cards[0].written == (lab / "speech.wav").read_bytes()[44:]


@pytest.fixture
def afplay(lab: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the system's player has played."""
    player = lab / "afplay"
    player.write_text('#!/bin/sh\ncp "$1" played.wav\n')
    player.chmod(0o755)
    monkeypatch.setattr("kokoro_lab.playback.system_player.PATHS", (str(lab),))
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    return lab / "played.wav"


@pytest.mark.parametrize("kind", ["wav", "pcm", "mp3"])
def test_speak_plays_a_wav_file_where_there_is_no_sound_card_and_says_so(
    lab: Path, afplay: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    assert call("speak", "The kettle is on.", "--voice", "hum").exit_code == 0
    done = call("speak", "The kettle is on.", "--voice", "hum", "--play", "--json", "-o", f"speech.{kind}")
    assert done.exit_code == 0, done.output
    assert afplay.read_bytes() == (lab / "speech.wav").read_bytes()
    fallbacks = json.loads(done.stdout)["fallbacks"]
    assert {each["stage"] for each in fallbacks} == {"playback"}
    assert "kokoro-lab[play]" in fallbacks[0]["reason"]


def test_speak_says_when_the_sound_card_dies_in_the_midst_of_it(
    lab: Path, afplay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = fake_sounddevice(monkeypatch)
    monkeypatch.setattr(FakeStream, "dies", True)
    done = call("speak", "The kettle is on.", "--voice", "hum", "--play", "--json")
    assert done.exit_code == 0, done.output
    assert cards
    assert afplay.read_bytes() == (lab / "speech.wav").read_bytes()
    (fallback,) = json.loads(done.stdout)["fallbacks"]
    assert "device unplugged" in fallback["reason"]


def test_speak_says_what_to_install_before_it_speaks_to_nobody(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    monkeypatch.setattr("kokoro_lab.playback.system_player.PATHS", ())
    monkeypatch.setenv("PATH", str(lab))
    done = call("speak", "The kettle is on.", "--voice", "hum", "--play")
    assert done.exit_code == 3
    assert "afplay, aplay, ffplay, play" in done.stderr
    assert not (lab / "speech.wav").exists()


def test_text_and_speak_take_a_lexicon(lab: Path) -> None:
    (lab / "ours.csv").write_text("lang,grapheme,phoneme\nen,zorp,zˈu\n")
    done = call("text", "--lexicon", "ours.csv", stdin="The zorp.\n")
    (word,) = [w for w in json.loads(done.stdout)["words"] if w["text"] == "zorp"]
    assert (word["phonemes"], word["source"], word["start"]) == ("zˈu", "lexicon", 4)
    lengths = []
    for options in ([], ["--lexicon", "ours.csv"]):
        done = call("speak", "A zorp in the flarbizunk.", "--voice", "hum", "--json", *options)
        lengths.append(json.loads(done.stdout)["report"]["token_count"])
    assert lengths[0] != lengths[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["speak", "Hi.", "--voice", "hum", "--lexicon", "none.tsv"], "none.tsv: cannot be read"),
        (["text", "--lexicon", "ours.txt"], ".tsv, .csv, .json"),
        (["speak", "Hi.", "--voice", "nobody"], "no voice 'nobody'"),
        (["speak", "Hi.", "--voice", "hum", "--speed", "9"], "0.25 to 4.0"),
        (["speak", "  ", "--voice", "hum"], "nothing to speak"),
        (["speak", "Hi.", "--voice", "hum", "--sample-rate", "8000"], "22050"),
        (["speak", "-i", "nowhere.txt"], "cannot be read"),
        (["speak", "Hi.", "--voice", "hum", "-o", "."], "The ending of . names no format."),
        (["speak", "Hi.", "-i", "nowhere.txt"], "Give the text or -i, not both; -i takes one file."),
        (["speak", "-i", "one.txt", "two.txt"], "Give the text or -i, not both; -i takes one file."),
        (["speak", "Hi.", "-i", "-"], "Give the text or -i, not both; -i takes one file."),
        (["speak", "-", "-i", "one.txt"], "Give the text or -i, not both; -i takes one file."),
        (["run", "99_nothing"], "no notebook"),
        (["run", "00_quickstart", "-p", "colour=red"], "no parameter 'colour'"),
        (["run", "00_quickstart", "-p", "colour"], "NAME=VALUE"),
        (["run", "00_quickstart", "-p", "fast=true", "-p", "fast=false"], "given twice for fast"),
        (["run", "00_quickstart", "--sweep", "a=1", "--sweep", "a=2"], "given twice for a"),
        (["text", "--language", "tlh"], "en-us, en-gb"),
        (["fetch", "--variant", "fp33"], "fp33"),
        (["fetch", "--source", "hub", "--from", "."], "name one"),
        (["fetch", "--from", "nowhere"], "nowhere"),
        (["export", "--variant", "int8-upstream", "-o", "x"], "int8-upstream"),
        (["export", "--format", "tflite", "-o", "x"], "tflite"),
        (["export", "--format", "static", "--variant", "int8", "-o", "x"], "fp32"),
        (["export"], "--output"),
        (["golden", "nothing"], "greeting"),
        (["golden", "greeting", "--all"], "--all takes no CASE"),
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


@pytest.mark.parametrize("command", ["serve", "wyoming"])
def test_a_server_whose_own_voice_there_is_not_ends_as_for_any_wrong_setting(command: str) -> None:
    """A supervisor starts a server again that ends with another code than 2."""
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", command, "--port", "0"],
        env={**os.environ, "KOKORO_VOICE": "bob"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: KOKORO_VOICE: There is no voice 'bob'.")
    assert "Traceback" not in done.stderr


def test_binary_input_is_refused(lab: Path) -> None:
    done = call("speak", "-", "--voice", "hum", stdin=b"\xff\xfe\x00\x01" * 50)
    assert done.exit_code == 2
    assert "UTF-8" in done.output


@pytest.mark.parametrize("command", ["speak", "text"])
@pytest.mark.parametrize("given", ["argument", "pipe"])
def test_a_text_in_another_encoding_is_refused_and_not_read_without_its_letters(
    lab: Path, command: str, given: str
) -> None:
    latin = "Zo\u00e9.\nCaf\u00e9.\n".encode("latin-1")
    arguments = [command, latin.decode("utf-8", "surrogateescape")] if given == "argument" else [command, "-"]
    done = call(*arguments, stdin=latin if given == "pipe" else None)
    assert done.exit_code == 2, done.output
    assert "The input is not UTF-8: byte 2 cannot be read. Convert it, for example with iconv." in done.output
    assert "Traceback" not in done.output


def test_text_counts_the_byte_that_it_cannot_read_from_the_beginning_of_all_lines() -> None:
    done = call("text", stdin=b"Tea.\nCaf\xe9.\n")
    assert done.exit_code == 2
    assert json.loads(done.stdout.splitlines()[0])["text"] == "Tea."
    assert "byte 8 cannot be read" in done.output


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


def test_text_takes_its_text_as_an_argument_as_speak_does() -> None:
    given, piped, dash = (
        call("text", "Dr. Lee\n3 km"),
        call("text", stdin="Dr. Lee\n3 km"),
        call("text", "-", stdin="Dr. Lee\n3 km"),
    )
    assert given.stdout == piped.stdout == dash.stdout
    assert [json.loads(line)["normalized"] for line in given.stdout.splitlines()] == [
        "Doctor Lee",
        "three kilometers",
    ]


def test_text_leaves_the_languages_of_words_alone_if_it_is_asked_to() -> None:
    def languages(*options: str) -> set[str]:
        done = call("text", *options, stdin="We met at the café, ¿no es verdad?\n")
        return {word["language"] for word in json.loads(done.stdout)["words"]}

    assert languages() == {"en-us", "es"}
    assert languages("--detect-languages", "off") == {"en-us"}


def test_text_reads_ssml_that_may_take_several_lines() -> None:
    done = call(
        "text", "--input-format", "ssml", stdin="<speak>One <break/>\ntwo.</speak>\n<speak>3</speak>\n"
    )
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert [segment.get("break_before_s") for segment in first["segments"]] == [None, 0.75]
    assert second["text"] == "<speak>3</speak>"
    wrong = call("text", "--input-format", "ssml", stdin="<speak>\n<audio/></speak>\n")
    assert wrong.exit_code == 2
    assert "Line 2, column 1: There is no element <audio>" in wrong.output


def test_speak_reads_ssml(lab: Path) -> None:
    document = "<speak>Zoo <break time='2s'/> ah.</speak>"
    done = call("speak", document, "--input-format", "ssml", "--voice", "hum", "--json")
    assert 2 < json.loads(done.stdout)["audio_s"] < 4
    plain = call("speak", document, "--voice", "hum", "--json")
    assert json.loads(plain.stdout)["report"]["words"] > json.loads(done.stdout)["report"]["words"]


def test_text_and_speak_read_markdown(lab: Path) -> None:
    document = "# Zoo\n\n- *ah* 🎉\n\n```py\nx = 1\n```\n"
    found = json.loads(call("text", "--input-format", "markdown", stdin=document).stdout)
    assert (found["text"], found["normalized"]) == (document, "Zoo ah party popper")
    options = ("--input-format", "markdown", "--code", "name", "--emoji", "skip")
    assert json.loads(call("text", *options, stdin=document).stdout)["normalized"] == "Zoo ah Code in Python"
    done = call("speak", document, *options, "--voice", "hum", "--json")
    assert json.loads(done.stdout)["report"]["words"] == 5


def test_doctor_looks_at_everything() -> None:
    done = call("doctor", "--json")
    found = {f["name"]: f for f in json.loads(done.stdout)}
    assert {"python", "onnxruntime", "English G2P", "encoders", "weights fp32", "npm", "disk"} <= set(found)
    assert found["encoders"]["detail"] == "mp3, opus, aac, flac, wav, pcm"
    providers = ("cpu", "coreml", "cuda", "mlx", "openvino", "webgpu")
    assert all(found[f"provider {name}"]["detail"].startswith(("here: ", "not here: ")) for name in providers)
    assert done.exit_code == (0 if all(f["ok"] for f in found.values()) else 1)


def test_doctor_names_a_tuned_file_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tuned.json").write_text("{")
    monkeypatch.setattr("kokoro_lab.sessions.tuned.weights_home", lambda home: tmp_path)
    monkeypatch.setattr("kokoro_lab.doctor._weights", lambda deep: [])
    found = {f["name"]: f for f in json.loads(call("doctor", "--json").stdout)}
    assert not found["tuned"]["ok"]
    assert "tune --forget" in found["tuned"]["mend"]


def test_doctor_names_a_lexicon_that_cannot_be_read(lab: Path) -> None:
    (lab / "lexicon.tsv").write_text("lang\tgrapheme\n")
    found = {f["name"]: f for f in json.loads(call("doctor", "--json").stdout)}
    assert not found["lexicons"]["ok"]
    assert "lexicon.tsv, line 1: the column 'phoneme' is missing" in found["lexicons"]["detail"]


def test_doctor_names_a_format_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CODECS, "mp3", replace(CODECS["mp3"], encoder="libnothing"))
    found = {f["name"]: f for f in json.loads(call("doctor", "--json").stdout)}
    assert not found["encoders"]["ok"]
    written, lacking = found["encoders"]["detail"].split("; not ")
    assert written == "opus, aac, flac, wav, pcm"
    assert lacking.startswith("mp3: The encoder libnothing cannot be used")


def test_doctor_fails_for_a_provider_that_is_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_PROVIDER", "openvino")
    monkeypatch.setattr(provider_registry, "find_spec", lambda name: None)
    settings.cache_clear()
    try:
        done = call("doctor")
    finally:
        settings.cache_clear()
    assert done.exit_code == 1
    assert "FAIL  provider: The provider 'openvino' is not available" in done.stdout


@pytest.mark.test_all
def test_doctor_says_how_to_mend_missing_weights(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kokoro_lab", "doctor"],
        env={"KOKORO_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "kokoro-lab fetch --variant fp32" in done.stdout


def test_a_bad_setting_names_its_variable() -> None:
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


@pytest.mark.parametrize(
    "command",
    ["fetch", "speak", "text", "run", "bench", "export", "golden", "player", "serve", "wyoming", "doctor"],
)
def test_every_command_explains_itself(command: str) -> None:
    done = call(command, "-h")
    assert done.exit_code == 0
    assert "Usage" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            "speak Yes. --voice af_hart",
            "Did you mean one of af_heart, af_sarah, if_sara? `kokoro-lab fetch --list` lists all of them.",
        ),
        ("run quickstrat", "There is no notebook 'quickstrat'. Did you mean '00_quickstart'?"),
        ("run 40 -p texts=two", "The parameter 'texts' takes an int. Allowed: an int such as 12."),
        ("run 40 --sweep voice", "--sweep 'voice' is not NAME=A,B. Write --sweep voice=A,B"),
        ("run 40 -p voice", "-p 'voice' is not NAME=VALUE. Write -p voice=VALUE"),
        ("speak -h", "[default: speech.wav]"),
        ("fetch --list", "bm_george en-gb male bm_lewis"),
        ("serve --port 99999", "There is no port 99999. Allowed: 0 to 65535."),
        ("wyoming --port 99999", "There is no port 99999. Allowed: 0 to 65535."),
    ],
)
def test_what_is_said_is_plain_english_and_says_what_to_do(arguments: str, said: str) -> None:
    output = call(*arguments.split()).output
    assert said in " ".join(output.split())


def test_one_segment_is_no_segments(lab: Path) -> None:
    assert ", 1 segment\n" in call("speak", "Ah, the kettle.", "--voice", "hum").output


def test_importing_does_no_work() -> None:
    code = (
        "import sys, kokoro_lab; "
        "heavy = {'onnxruntime', 'flask', 'papermill', 'matplotlib', 'numpy'} & set(sys.modules); "
        "sys.exit(', '.join(heavy) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


NOT_FOR_SPEAKING = {
    *("onnx", "scipy", "pandas", "matplotlib", "coremltools", "flask", "gunicorn", "av"),
    "markdown_it",
    *("kokoro_lab.lab", "kokoro_lab.graphs.making", "kokoro_lab.graphs.recipes"),
}
"""What takes long to import, and what a WAV file of English is not made with."""


@pytest.mark.model
def test_nothing_is_imported_that_a_first_word_does_not_need(tmp_path: Path, engine: Engine) -> None:
    """`engine` has made the graphs: where there are some, no pass that makes them is imported either."""
    arguments = [
        "speak",
        "Hello there.",
        "--variant",
        engine.config.variant,
        "-o",
        str(tmp_path / "hello.wav"),
    ]
    code = (
        "import sys; from kokoro_lab.__main__ import main; "
        f"main({arguments!r}, standalone_mode=False); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not NOT_FOR_SPEAKING & set(done.stdout.split())


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
