"""A wheel with compiled operators needs no compiler for them, and speaks without them if they are damaged."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from kokoro_lab.config import settings
from tests.native import wheels

TEXT = "The river leaves the hills without hurry."
pytestmark = [
    pytest.mark.test_long,
    pytest.mark.skipif(not wheels.zig_is_here(), reason="Zig is missing: `make wheels` installs it"),
    pytest.mark.skipif(platform.system() != "Linux", reason="the wheel is one for Linux"),
]


@dataclass(frozen=True)
class Wheel:
    """What is installed from the wheel, in an environment that borrows the other packages from this one."""

    folder: Path
    home: Path

    @property
    def operators(self) -> Path:
        (found,) = self.folder.glob("lib/*/site-packages/kokoro_lab/native/prebuilt/operators.so")
        return found

    def run(self, *words: str, **variables: str) -> tuple[str, str]:
        """Standard output and standard error of `kokoro-lab`, with no other program on the path."""
        command = self.folder / "bin" / "kokoro-lab"
        done = subprocess.run(
            [str(command), *words],
            capture_output=True,
            text=True,
            env={
                "HOME": str(self.home),
                "KOKORO_HOME": str(self.home),
                "PATH": str(command.parent),
                **variables,
            },
            cwd=self.home,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    def spoken(self, **variables: str) -> tuple[bytes, str]:
        """The file that `speak` writes, and what it says."""
        said = self.run("speak", TEXT, "-o", "spoken.wav", **variables)[1]
        return (self.home / "spoken.wav").read_bytes(), said


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    folder, home = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("home")
    made = wheels.script().wheel(f"linux-{platform.machine()}", tmp_path_factory.mktemp("wheel"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", "--no-cache-dir", str(made)], check=True)
    (packages,) = folder.glob("lib/*/site-packages")
    (packages / "borrowed.pth").write_text(f"{Path(click.__file__).parents[1]}\n")
    (home / "weights").symlink_to(settings().home / "weights")
    return Wheel(folder, home)


def test_it_speaks_at_full_speed_without_a_compiler(wheel: Wheel) -> None:
    heard, said = wheel.spoken()
    assert "native" not in said
    assert "(prebuilt by zig" in wheel.run("doctor")[0]
    assert not list(wheel.home.glob("derived/native-*")), "nothing was built"
    if platform.machine() == "x86_64":
        assert wheel.spoken(KOKORO_INSTRUCTION_SET="avx2")[0] == heard


def test_bits_that_are_flipped_are_noticed_and_said_and_it_speaks_without(wheel: Wheel) -> None:
    whole = wheel.operators.read_bytes()
    wheel.operators.write_bytes(whole[:300_000] + bytes([whole[300_000] ^ 1]) + whole[300_001:])
    try:
        heard, said = wheel.spoken(
            KOKORO_NATIVE="prebuilt"
        )  # Zig may be among what is borrowed, and would build
        assert len(heard) > 10_000
        assert "operators.so does not hold the bytes that its SHA-256 promises" in said
        assert (
            "native operators: none: prebuilt operators are not used"
            in wheel.run("doctor", KOKORO_NATIVE="prebuilt")[0]
        )
    finally:
        wheel.operators.write_bytes(whole)
