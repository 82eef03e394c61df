"""Installed below spaces and all kinds of letters; where nothing may be written; by users without a home."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kokoro_lab.config import settings
from kokoro_lab.weights.store import weights_home
from tests.installed.command import READY_S, clean_environment
from tests.installed.elsewhere import installed_into, run_by_a_stranger

PLACE = "Zoë's Proben (100%)/Sprech Übung"
SPOKEN = "Hello there."
pytestmark = [pytest.mark.test_all, pytest.mark.model]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    return installed_into(folder / PLACE, folder)


def empty_cache(folder: Path) -> Path:
    """A cache with the weights, in which everything else is still to be made."""
    folder.mkdir(parents=True)
    (folder / "weights").symlink_to(weights_home() / "weights")
    return folder


def kinds_made(cache: Path) -> set[str]:
    return {path.suffix or "graphs" for path in (cache / "derived").iterdir() if path.name[0] != "."}


def test_a_path_may_have_spaces_and_any_letters(program: Path, tmp_path: Path) -> None:
    cache = empty_cache(tmp_path / "Gewichte für Zoë" / '50% "neu"')
    done = subprocess.run(
        [str(program), "speak", SPOKEN, "-o", "Grüße an alle.mp3"],
        cwd=cache.parent,
        env=clean_environment(KOKORO_HOME=str(cache)),
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (cache.parent / "Grüße an alle.mp3").stat().st_size > 1_000
    assert "graphs" in kinds_made(cache)


def test_a_stranger_to_whom_all_is_read_only_speaks(program: Path, tmp_path: Path) -> None:
    seen = [program.parents[1], weights_home() / "weights"]
    cache = empty_cache(tmp_path / "kokoro")
    cache.chmod(0o777)
    variables = {"PATH": os.defpath, "KOKORO_HOME": "/mine/kokoro"}
    done = run_by_a_stranger(
        [str(program), "speak", SPOKEN, "-o", "/mine/hello.wav"], tmp_path, seen, variables
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hello.wav").stat().st_size > 10_000
    assert "graphs" in kinds_made(cache)
    assert {path.name for path in tmp_path.iterdir()} == {"kokoro", "hello.wav"}, "nothing is left elsewhere"
    assert done.stderr.count("\n") <= 3, done.stderr


@pytest.mark.parametrize(
    ("home", "said"),
    [
        ({}, "This user has no home folder, in which weights would be kept. Set KOKORO_HOME"),
        ({"HOME": "/nonexistent"}, "Cannot write below /nonexistent/.cache/kokoro-lab"),
        ({"KOKORO_HOME": "/usr/kokoro"}, "Cannot write below /usr/kokoro"),
    ],
)
def test_what_a_stranger_lacks_is_said(
    program: Path, tmp_path: Path, home: dict[str, str], said: str
) -> None:
    done = run_by_a_stranger(
        [str(program), "speak", SPOKEN, "-o", "/mine/hello.wav"],
        tmp_path,
        [program.parents[1]],
        {"PATH": os.defpath, **home},
    )
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "KOKORO_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_the_home_folder_but_our_cache(program: Path, tmp_path: Path) -> None:
    """ONNX Runtime would keep an id of the machine there, and events for its maker."""
    done = subprocess.run(
        [str(program), "speak", SPOKEN, "-o", str(tmp_path / "hello.wav")],
        cwd=tmp_path,
        env=clean_environment(HOME=str(tmp_path), KOKORO_HOME=str(settings().home)),
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["hello.wav"]
