"""What the tuner found is used where it was found, for what nobody has set, and nowhere else."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.config import settings
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.sessions.tuned import (
    TunedConfiguration,
    TuningConditions,
    adopt,
    forget,
    read_tuned,
    tuned_path,
    with_tuned,
)
from kokoro_lab.speech.engine import configuration
from kokoro_lab.weights.store import model_sha256

SHA = "5" * 64
FOUND: dict[str, Any] = {"threads": 1, "spinning": True, "window_frames": 90, "chunk_ms": 40}


def config_in(home: Path, **more: Any) -> EngineConfig:
    return EngineConfig(home=home, **more)


def tuned_for(config: EngineConfig, **found: Any) -> TunedConfiguration:
    return TunedConfiguration(
        TuningConditions.of(config, SHA),
        found or FOUND,
        {"rtf_gain_percent": 5.0},
        "2026-01-01T00:00:00+00:00",
    )


def test_what_was_adopted_is_what_is_loaded(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    adopt(tuned_for(config), tmp_path)
    read = with_tuned(config, SHA)
    assert {name: getattr(read, name) for name in FOUND} == FOUND
    assert "threads=1" in read.tuned
    assert replace(read, **{name: getattr(config, name) for name in FOUND}, tuned="no") == config


def test_nothing_changes_where_nothing_was_adopted(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    read = with_tuned(config, SHA)
    assert replace(read, tuned="no") == config
    assert read.tuned.startswith("nothing is adopted for int8; `kokoro-lab tune`")


def test_what_a_person_has_set_stays_and_is_named(tmp_path: Path) -> None:
    config = config_in(tmp_path, threads=2)
    adopt(tuned_for(config), tmp_path)
    read = with_tuned(config, SHA, kept={"threads", "variant"})
    assert (read.threads, read.spinning) == (2, True)
    assert "set otherwise by the user: threads" in read.tuned


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("cpu", "another"),
        ("onnxruntime", "1.0"),
        ("cores", 99),
        ("architecture", "vax"),
        ("native", "off"),
        ("model_sha256", "6" * 64),
    ],
)
def test_what_was_found_elsewhere_is_not_used_and_that_is_recorded(
    tmp_path: Path, field: str, other: Any
) -> None:
    config = config_in(tmp_path)
    found = tuned_for(config)
    adopt(replace(found, made_for=replace(found.made_for, **{field: other})), tmp_path)
    read = with_tuned(config, SHA)
    assert replace(read, tuned="no") == config
    assert read.tuned.startswith(f"no: it was found with {field} {other!r}, here ")


def test_another_variant_has_a_configuration_of_its_own(tmp_path: Path) -> None:
    config, fp32 = config_in(tmp_path), config_in(tmp_path, variant="fp32")
    adopt(tuned_for(config), tmp_path)
    assert with_tuned(fp32, SHA) == replace(fp32, tuned=with_tuned(fp32, SHA).tuned)
    assert "nothing is adopted for fp32, only for int8" in with_tuned(fp32, SHA).tuned
    adopt(tuned_for(fp32, threads=2), tmp_path)
    adopt(tuned_for(config, threads=3), tmp_path)  # in the place of the first
    assert [with_tuned(each, SHA).threads for each in (config, fp32)] == [3, 2]
    assert len(read_tuned(tmp_path)) == 2
    assert forget(TuningConditions.of(config, SHA), tmp_path)
    assert not forget(TuningConditions.of(config, SHA), tmp_path)
    assert [with_tuned(each, SHA).threads for each in (config, fp32)] == [0, 2]


@pytest.mark.parametrize(
    "found",
    [
        {"threads": 1, "chunk_ms": 5},
        {"threads": 1, "spinning": 1},
        {"threads": "1"},
        {"threads": 1, "provider": "abacus"},
        {"threads": 1, "provider": None},
        {"threads": 1, "variant": "fp32"},
        {"threads": 1, "first_window_frames": 8},  # a setting of earlier versions
    ],
)
def test_a_configuration_with_a_wrong_value_is_not_used_at_all(tmp_path: Path, found: dict[str, Any]) -> None:
    config = config_in(tmp_path)
    adopt(tuned_for(config, **found), tmp_path)
    read = with_tuned(config, SHA)
    assert replace(read, tuned="no") == config
    assert read.tuned.startswith("no: ")


@pytest.mark.parametrize(
    "written", ["", "{", "[]", '{"configurations": 3}', '{"configurations": [{"settings": {}}]}']
)
def test_a_damaged_file_is_not_used_and_is_written_anew(tmp_path: Path, written: str) -> None:
    config = config_in(tmp_path)
    tuned_path(tmp_path).write_text(written)
    assert with_tuned(config, SHA).tuned.startswith("no: tuned.json cannot be read")
    assert forget(TuningConditions.of(config, SHA), tmp_path)
    assert with_tuned(config, SHA).tuned.startswith("nothing is adopted")
    tuned_path(tmp_path).write_text(written)
    adopt(tuned_for(config), tmp_path)
    assert with_tuned(config, SHA).threads == 1


def test_the_file_says_what_it_was_made_for(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    path = adopt(tuned_for(config), tmp_path)
    (row,) = json.loads(path.read_text())["configurations"]
    assert row["made_for"] == asdict(TuningConditions.of(config, SHA))
    assert row["settings"] == FOUND


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home in which something was tuned for the default variant."""
    for name in ("KOKORO_THREADS", "KOKORO_TUNED", "KOKORO_VARIANT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KOKORO_HOME", str(tmp_path))
    settings.cache_clear()
    found = tuned_for(config_in(tmp_path))
    adopt(replace(found, made_for=replace(found.made_for, model_sha256=model_sha256("fp32"))))
    yield tmp_path
    monkeypatch.undo()
    settings.cache_clear()


def test_an_engine_is_loaded_with_it(home: Path) -> None:
    assert configuration().threads == 1
    assert configuration(provider="cpu").threads == 1


def test_the_environment_comes_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_THREADS", "2")
    monkeypatch.setenv("KOKORO_BUFFER_PROFILE", "stable")
    settings.cache_clear()
    read = configuration()
    assert (read.threads, read.chunk_ms, read.spinning) == (2, 50, True)
    assert "set otherwise by the user: chunk_ms, threads" in read.tuned


def test_it_can_be_left_out(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_TUNED", "off")
    settings.cache_clear()
    assert configuration() == replace(EngineConfig.from_settings(), tuned="no: KOKORO_TUNED=off")


def test_recordings_are_spoken_without_it(home: Path) -> None:
    assert configuration(tuned=False) == EngineConfig.from_settings()


def test_a_file_that_is_not_used_is_logged(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    tuned_path(home).write_text("{")
    with caplog.at_level(logging.WARNING):
        assert configuration().threads == 0
    assert "cannot be read" in caplog.text
