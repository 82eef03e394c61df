"""What a figure was measured with: one machine is told from another."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kokoro_lab import provenance
from kokoro_lab.provenance import git_state, machine


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    provenance._cpu_name.cache_clear()
    yield
    provenance._cpu_name.cache_clear()


@pytest.fixture
def mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "processor", lambda: "arm")


def test_one_apple_processor_is_told_from_another(mac: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def sysctl(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert words[-1] == "machdep.cpu.brand_string"
        return subprocess.CompletedProcess(words, 0, stdout="Apple M2 Pro\n")

    _asked_by(monkeypatch, sysctl)
    assert machine()["cpu"] == "Apple M2 Pro"


def test_a_mac_that_does_not_tell_still_has_a_name(mac: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_sysctl(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        raise FileNotFoundError(words[0])

    _asked_by(monkeypatch, no_sysctl)
    assert machine()["cpu"]


def _asked_by(monkeypatch: pytest.MonkeyPatch, run: Callable[..., Any]) -> None:
    """Ours alone: `platform` asks programs too."""
    theirs = SimpleNamespace(run=run, SubprocessError=subprocess.SubprocessError)
    monkeypatch.setattr(provenance, "subprocess", theirs)


def test_what_a_filter_of_git_takes_away_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    monkeypatch.chdir(tmp_path)
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    git("init", "--quiet")
    git("config", "filter.notebook.clean", "tr -d o")
    (tmp_path / ".gitattributes").write_text("*.ipynb filter=notebook\n")
    notebook = tmp_path / "notebooks/a.ipynb"
    notebook.write_text("cells")
    git("add", "--all")
    git("commit", "--quiet", "-m", "x")
    notebook.write_text("cells" + "o" * 9)  # `git status` does not ask the filter, as the size is another one
    assert git_state()["dirty"] is False
    notebook.write_text("bells")
    assert git_state()["dirty"] is True


def test_what_is_not_installed_is_said_and_fails_nothing() -> None:
    assert provenance._version_of("no-such-package") == "not installed"
