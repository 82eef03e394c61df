"""npm and pip, as they are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kokoro_lab.weights import clients


def test_a_client_has_a_home_even_if_the_user_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["/bin/sh", "-c", 'echo "$HOME" >&2']
    monkeypatch.setenv("HOME", "/home/zoe")
    assert clients.run(command, tmp_path / "log") == (0, "/home/zoe\n"), "with its mirrors and tokens"
    monkeypatch.delenv("HOME")
    assert clients.run(command, tmp_path / "log") == (0, f"{tmp_path}\n")
