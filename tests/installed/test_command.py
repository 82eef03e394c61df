"""The command that is tested is the one that users have, and its environment is theirs."""

from __future__ import annotations

import pytest

from tests.installed.command import MUTATED_COPY, Installed, clean_environment


def test_nothing_of_the_tests_own_environment_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.delenv(MUTATED_COPY, raising=False)
    assert clean_environment().keys() <= {"PATH", "HOME", "TMPDIR", "LANG", "KOKORO_HOME"}


def test_a_package_that_was_broken_on_purpose_takes_the_place_of_the_installed_one(
    installed: Installed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a mutation would survive every test that runs the command."""
    package = installed.folder / "broken" / "kokoro_lab"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('broken on purpose')")
    monkeypatch.setenv(MUTATED_COPY, str(package.parent))
    assert "broken on purpose" in installed.run("--help").stderr
    monkeypatch.delenv(MUTATED_COPY)
    assert installed.run("--help").returncode == 0
