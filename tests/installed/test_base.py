"""`pip install kokoro-lab`, without an extra, a compiler, make or Node: what it takes, and that it speaks.

Packages come through pip's own configuration, in the versions that a newcomer gets today.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import httpx2
import pytest

from kokoro_lab.config import settings
from kokoro_lab.containers import Format
from kokoro_lab.extras import MISAKI
from tests.clients.test_contract import KEY, ask, faults
from tests.containers.decoding import decoded
from tests.documentation import ROOT
from tests.installed.command import Installed, clean_environment

pytestmark = pytest.mark.test_all

MOST_MB = 600
VERSIONS = ("3.11", "3.12", "3.13")
HERE = "{}.{}".format(*sys.version_info)
LAB = (
    "babel",
    "coremltools",
    "IPython",
    "jupyterlab",
    "librosa",
    "matplotlib",
    "pandas",
    "pesq",
    "scipy",
    "sympy",
)
TEXT = "Hello there. This is what a newcomer hears."


def python_of(version: str) -> Path:
    """A Python of that version that can make environments; a shim of pyenv's may only complain."""
    found = [Path(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for python in [Path(sys.executable)] if version == HERE else found:
        try:
            subprocess.run([python, "-c", "import ensurepip, venv"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip(f"Python {version} is not installed")


def misaki_is_installed(base: Installed) -> bool:
    """Its metadata refuses Python 3.13."""
    return not (base.script.parent / "python3.13").exists()


@pytest.fixture(
    scope="module",
    params=[pytest.param(v, marks=[pytest.mark.test_long] if v != HERE else []) for v in VERSIONS],
)
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout in an environment of its own. Of what was before, the weights are kept."""
    folder = tmp_path_factory.mktemp("base")
    for name in ("nothing", "away", "home"):
        (folder / name).mkdir()
    path = {"PATH": str(folder / "nothing")}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv = folder / "venv"
    subprocess.run([python_of(request.param), "-m", "venv", venv], check=True)
    install = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", next(folder.glob("*.whl"))]
    subprocess.run(install, env=clean_environment(**path), check=True, timeout=900)
    (folder / "home" / "weights").symlink_to(settings().home / "weights")
    environment = {**path, "KOKORO_HOME": str(folder / "home")}
    return Installed(folder / "away", environment, venv / "bin" / "kokoro-lab")


def test_it_is_small_and_has_nothing_of_the_lab(base: Installed) -> None:
    (packages,) = base.script.parents[1].glob("lib/python3.*/site-packages")
    files = (path for path in packages.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) / 1e6 <= MOST_MB
    assert [name for name in LAB if (packages / name).exists()] == []


def test_it_speaks_in_every_format(base: Installed) -> None:
    for kind in get_args(Format):
        done = base.run("speak", TEXT, "-o", f"hello.{kind}", "--json", timeout_s=300)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        heard = decoded((base.folder / f"hello.{kind}").read_bytes(), kind)
        assert len(heard.samples) / heard.rate_hz == pytest.approx(said["audio_s"], abs=0.1)


def test_it_says_what_the_lab_would_need(base: Installed) -> None:
    for command in (["bench"], ["run", "30_loudness_gate"], ["tune"]):
        done = base.run(*command)
        assert done.returncode == 2
        assert "pip install 'kokoro-lab[lab]'" in done.stderr


def test_english_is_misakis_or_it_is_said_how_that_is_had(base: Installed) -> None:
    done = base.run("text", stdin="Hello there.\n")
    sources = {word["source"] for word in json.loads(done.stdout)["words"]}
    if misaki_is_installed(base):
        assert sources == {"misaki"}
    else:
        assert sources == {"espeak"}
        assert f"since misaki is not installed: {MISAKI}" in done.stderr


@pytest.mark.parametrize("language", ["en-us", "en-gb", "es", "fr", "it", "pt-br", "hi"])
def test_its_readings_are_those_of_a_whole_installation(
    base: Installed, installed: Installed, language: str
) -> None:
    """But for what has an extra of its own: Japanese, and Latin words of another language."""
    if language in ("en-us", "en-gb", "hi") and not misaki_is_installed(base):
        pytest.skip("eSpeak reads English here, and so the Latin words of Hindi")
    path = ROOT / "fixtures" / "texts" / f"normalisation_{language[:2]}.jsonl"
    lines = (
        [json.loads(line)["written"] for line in path.read_text("utf-8").splitlines()]
        if path.exists()
        else []
    )
    text = (
        "\n".join([*lines[:200], "12,50 €, 3/4/2024, 14:30, 1 234 km, 5 %", "Kokoro xqzzyk, 100 USD."]) + "\n"
    )
    asked = ("text", "--language", language, "--detect-languages", "scripts")
    assert base.run(*asked, stdin=text).stdout == installed.run(*asked, stdin=text).stdout != ""


def test_it_says_which_voices_cannot_be_read(base: Installed) -> None:
    listed = base.run("fetch", "--list").stdout.splitlines()
    for letter, language, count in (("z", "zh", 8), ("j", "ja", 5)):
        marked = [line for line in listed if f"the extra kokoro-lab[{language}]" in line]
        assert len(marked) == count
        assert all(line.startswith(letter) for line in marked)
    assert len(json.loads(base.run("fetch", "--list", "--json").stdout)) == 54
    doctor = {found["name"]: found for found in json.loads(base.run("doctor", "--json").stdout)}
    assert doctor["voices"]["ok"]
    assert "41 of 54" in doctor["voices"]["detail"]


def test_its_server_keeps_what_is_documented(base: Installed, tmp_path: Path) -> None:
    asked = {"KOKORO_API_KEY": "sesame", "KOKORO_DEVELOPMENT_MODE": "1", "KOKORO_MAX_INPUT_CHARS": "40"}
    with base.serving(**asked) as served:
        assert served.speak(TEXT[:12], KEY).status_code == 200
        report = ask(served.url, tmp_path)
        assert faults(report) == set(), report["said"]
        assert report["operations"]["tested"] > 20
        missing = httpx2.get(f"{served.url}/benchmarks", headers=KEY)
        assert missing.status_code == 404
        assert "kokoro-lab[lab]" in missing.text
