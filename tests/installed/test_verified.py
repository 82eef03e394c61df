"""What speaks is what was made: damaged graphs and operators are made anew, damaged exports are refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import kokoro_lab
from kokoro_lab.config import settings
from tests.installed.command import Installed

TEXT = "The river leaves the hills without hurry."


def spoken(installed: Installed, name: str = "spoken.wav", **variables: str) -> tuple[bytes, str]:
    """What `kokoro-lab speak` writes into a file and to standard error."""
    done = installed.run("speak", TEXT, "-o", name, **variables)
    assert done.returncode == 0, done.stderr
    return (installed.folder / name).read_bytes(), done.stderr


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the sound install says."""
    return spoken(Installed(tmp_path_factory.mktemp("sound")))[0]


@pytest.fixture
def home(sound: bytes, tmp_path: Path) -> Path:
    """A home with the weights of the sound one and copies of its graphs and operators, to be damaged."""
    theirs, ours = settings().home, tmp_path / "home"
    (ours / "weights").mkdir(parents=True)
    for name in ("voices", "english-tagger", "kokoro-v1.0.fp32.onnx"):
        (ours / "weights" / name).symlink_to(theirs / "weights" / name)
    (ours / "derived").mkdir()
    for library in (theirs / "derived").glob("native-*"):
        shutil.copy2(library, ours / "derived")
    latest = max((theirs / "derived").glob("*-int8-native-*"), key=lambda folder: folder.stat().st_mtime)
    shutil.copytree(latest, ours / "derived" / latest.name)
    return ours


def graphs(home: Path) -> Path:
    (found,) = (home / "derived").glob("*-int8-native-*")
    return found


def flip(path: Path, at: int, *, keeping_the_time: bool = False) -> None:
    """Turn 64 bytes of a file over."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    content[at : at + 64] = bytes(byte ^ 0xFF for byte in content[at : at + 64])
    path.write_bytes(content)
    if keeping_the_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.test_all
def test_damaged_graphs_and_operators_are_found_made_anew_and_said(
    installed: Installed, home: Path, sound: bytes
) -> None:
    # A damage that neither size nor time gives away
    flip(graphs(home) / "vocoder.onnx", 12_000_000, keeping_the_time=True)
    doctor = installed.run("doctor", "--deep", KOKORO_HOME=str(home))
    assert doctor.returncode == 1
    (failed,) = (line for line in doctor.stdout.splitlines() if line.startswith("FAIL"))
    assert "vocoder.onnx does not hold the bytes" in failed
    assert "weights fp16-upstream: not fetched" in doctor.stdout
    # And further ones that nobody was asked about
    (graphs(home) / "layers.npz").unlink()
    os.truncate(graphs(home) / "prosody.onnx", 1_000_000)
    libraries = list((home / "derived").glob("native-*.so"))  # those of earlier sources may be there, too
    for library in libraries:
        flip(library, 100_000)
    heard, said = spoken(installed, KOKORO_HOME=str(home))
    assert heard == sound
    assert any(f"{library.name} does not hold the bytes" in said for library in libraries)
    assert "prosody.onnx does not hold the bytes" in said
    assert "The graphs are made anew" in said
    (manifest,) = (json.loads(path.read_text()) for path in home.glob("derived/*/manifest.json"))
    assert manifest["damage"].startswith("prosody.onnx")


@pytest.mark.test_all
def test_doctor_passes_a_sound_install_that_lacks_what_is_optional(installed: Installed, home: Path) -> None:
    doctor = installed.run("doctor", "--deep", KOKORO_HOME=str(home))
    assert doctor.returncode == 0, doctor.stdout
    for optional in ("weights fp16-upstream: not fetched", "recogniser: 4 files missing"):
        assert f"ok    {optional}" in doctor.stdout
    assert "whole" in doctor.stdout


@pytest.mark.test_all
@pytest.mark.parametrize("name", ["vocoder.onnx", "layers.npz", "manifest.json"])
def test_each_damage_alone_is_mended(name: str, installed: Installed, home: Path, sound: bytes) -> None:
    if name == "vocoder.onnx":
        flip(graphs(home) / name, 12_000_000)
    else:
        (graphs(home) / name).unlink()
    heard, said = spoken(installed, KOKORO_HOME=str(home))
    assert heard == sound
    assert f"{name} " in said
    assert spoken(installed, KOKORO_HOME=str(home)) == (sound, "")


@pytest.mark.test_all
def test_a_damaged_export_is_refused_with_its_name_and_the_mend(installed: Installed, sound: bytes) -> None:
    done = installed.run(
        "export", "--format", "ort", "--variant", "int8", "--output", "taken", "--texts", "1"
    )
    assert done.returncode == 0, done.stderr
    taken = installed.folder / "taken"
    assert spoken(installed, KOKORO_STAGES="taken")[0] == sound
    flip(taken / "vocoder.ort", 12_000_000)
    refused(installed, "vocoder.ort does not hold the bytes")
    flip(taken / "vocoder.ort", 12_000_000)  # as it was
    (taken / "layers.npz").unlink()
    refused(installed, "layers.npz is missing")


def refused(installed: Installed, damage: str) -> None:
    """Exported graphs are not spoken: the error names the file and the mend, and blames nothing else."""
    done = installed.run("speak", TEXT, "-o", "not.wav", KOKORO_STAGES="taken")
    assert done.returncode != 0
    assert damage in done.stderr
    assert "kokoro-lab export" in done.stderr
    assert "fp16" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (installed.folder / "not.wav").exists()


@pytest.mark.test_all
def test_a_server_says_in_its_log_and_status_that_graphs_were_damaged(
    installed: Installed, home: Path
) -> None:
    (graphs(home) / "layers.npz").unlink()
    with installed.serving(KOKORO_HOME=str(home)) as server:
        (line,) = (line for line in server.written().splitlines() if "layers.npz is missing" in line)
        assert "warning" in line.lower()
        assert "made anew" in line
        assert server.status()["conversion"]["damage"] == "layers.npz is missing"
        assert server.speak(TEXT).status_code == 200


@pytest.mark.test_all
def test_an_edited_exclusion_is_heard(installed: Installed, home: Path, sound: bytes) -> None:
    package = installed.folder / "lab" / "kokoro_lab"
    shutil.copytree(Path(kokoro_lab.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    its = {"PYTHONPATH": str(package.parent), "KOKORO_HOME": str(home)}
    before = graphs(home)
    assert spoken(installed, **its) == (sound, "")  # a package in another place makes nothing anew
    path = package / "graphs" / "exclusions.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "int8": []}))
    heard, said = spoken(installed, **its)
    assert "Making the int8 graphs" in said
    assert heard != sound
    assert before.is_dir()  # the sound install goes on using its own
