"""What the environment says where it says little."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from kokoro_lab.config import handed_on, settings
from kokoro_lab.errors import SettingsError


@pytest.fixture(autouse=True)
def read_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def test_a_user_without_a_home_is_told_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(uid: int) -> NoReturn:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    for name in ("HOME", "XDG_CACHE_HOME", "KOKORO_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SettingsError, match="Set KOKORO_HOME"):
        settings()
    monkeypatch.setenv("KOKORO_HOME", "/srv/kokoro")
    assert str(settings().home) == "/srv/kokoro"


def test_what_is_handed_on_sets_the_same_in_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("KOKORO_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("kokoro_threads", "2")
    monkeypatch.setenv("KOKORO_USER_LEXICON", "words.tsv")
    monkeypatch.setenv("KOKORO_URL", "http://127.0.0.1:8880")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert handed_on() == {
        "KOKORO_THREADS": "2",
        "KOKORO_USER_LEXICON": str(Path("words.tsv").absolute()),
        "PATH": "/usr/bin",
    }
