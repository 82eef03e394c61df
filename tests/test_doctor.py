"""What `doctor` says of files: which are needed, which are damaged, and who mends them."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.metadata import PackagePath
from pathlib import Path

import pytest

from kokoro_lab import doctor
from kokoro_lab.config import settings
from kokoro_lab.engine_config import EngineConfig


class Installed(PackagePath):
    """A file as an installer has written it down."""

    def read_binary(self) -> bytes:
        return b"print()"


def installed(value: str) -> Installed:
    found = Installed("kokoro_lab/speech/engine.py")
    found.hash = type("FileHash", (), {"mode": "sha256", "value": value})()  # type: ignore[assignment]
    return found


@pytest.mark.parametrize(
    ("recorded", "ok"), [("Ul1RMxNBbPGH9E-ofhdT7m0RVSwiCXU33cMrTtNPpo8", True), ("0" * 43, False)]
)
def test_an_installed_file_that_was_changed_is_named(
    recorded: str, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "files", lambda _: [installed(recorded)])
    found = doctor._package(deep=True)
    assert found.ok == ok, found.detail
    assert ("engine.py is not as it was installed" in found.detail) == (not ok)
    assert doctor._package(deep=False).ok


def test_a_fitted_file_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SHIPPED", {name: Path(name) for name in ("nothing.npz", "nothing.json")})
    found = doctor._package(deep=False)
    assert not found.ok
    assert "nothing.npz" in found.detail
    assert "nothing.json" in found.detail
    assert found.mend == "Install kokoro-lab again."


def test_weights_that_nobody_asked_for_are_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    for name in ("voices", "english-tagger", "kokoro-v1.0.fp32.onnx"):
        (tmp_path / "weights" / name).symlink_to(settings().home / "weights" / name)
    monkeypatch.setattr(doctor, "weights_home", lambda _: tmp_path)
    monkeypatch.setattr("kokoro_lab.weights.store.weights_home", lambda _: tmp_path)
    found = {f.name: f for f in doctor._weights(deep=False)}
    assert all(f.ok for f in found.values())
    assert found["weights fp32"].detail == "complete"
    upstream = found["weights fp16-upstream"]
    assert upstream.detail == "not fetched (1 file missing): needed only for KOKORO_VARIANT=fp16-upstream"
    assert upstream.mend == "Run `kokoro-lab fetch --variant fp16-upstream`."


def test_weights_that_speak_and_are_not_there_are_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "weights_home", lambda _: tmp_path)
    monkeypatch.setattr("kokoro_lab.weights.store.weights_home", lambda _: tmp_path)
    found = {f.name: f for f in doctor._weights(deep=False)}
    assert [name for name, f in found.items() if not f.ok] == ["weights fp32"]


@pytest.mark.usefixtures("without_lab")
def test_the_lab_is_no_failure_where_it_is_not_installed() -> None:
    load = partial(import_module, "kokoro_lab.lab")
    found = doctor._extra("lab", "papermill", "judge the engine", load)
    assert found.ok
    assert "pip install 'kokoro-lab[lab]'" in found.mend


def test_an_instruction_set_that_cannot_be_had_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor.EngineConfig,
        "from_settings",
        lambda: EngineConfig(native="prebuilt", instruction_set="avx2"),
    )
    native, found = doctor._operators()
    assert native.library is None
    assert not found.ok
    assert "KOKORO_INSTRUCTION_SET is avx2" in found.detail
    assert found.mend == "Unset KOKORO_INSTRUCTION_SET."
