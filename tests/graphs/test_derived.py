"""Folders of graphs: used if they are whole, made anew if they are not, removed if nobody uses them."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs import derived
from kokoro_lab.graphs.derived import UNUSED_S, damage_in, kept_folders, whole_folder
from kokoro_lab.weights import verified
from kokoro_lab.weights.joining import sha256_of

KEY = "0123456789abcdef"
FILES = {"vocoder.onnx": b"vocoder" * 100, "prosody.onnx": b"prosody", "layers.npz": b"layers"}


class Maker:
    """Makes a folder of `FILES`, and remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, folder: Path, damage: str) -> None:
        self.told.append(damage)
        folder.mkdir(exist_ok=True)
        for name, content in FILES.items():
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_bytes(content)
        about = {
            name: {"bytes": len(content), "sha256": sha256_of(folder / name)}
            for name, content in FILES.items()
        }
        layers = about.pop("layers.npz")
        graphs = {name.partition(".")[0]: entry for name, entry in about.items()}
        manifest = {"graphs": graphs, "files": {"layers.npz": layers}}
        (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def made() -> Maker:
    return Maker()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are hashed from here on."""
    found: list[str] = []

    def counted(path: Path) -> str:
        found.append(path.name)
        return sha256_of(path)

    monkeypatch.setattr(verified, "sha256_of", counted)
    return found


def test_a_folder_is_made_once_and_its_files_are_hashed_once(
    made: Maker, hashed: list[str], tmp_path: Path
) -> None:
    folder = whole_folder(tmp_path, "int8", KEY, made)
    assert folder == tmp_path / "derived" / f"int8-{KEY[:12]}"
    assert sorted(hashed) == sorted(FILES)
    assert whole_folder(tmp_path, "int8", KEY, made) == folder
    assert sorted(hashed) == sorted(FILES)
    assert made.told == [""]


def test_a_file_with_another_time_is_hashed_again(made: Maker, hashed: list[str], tmp_path: Path) -> None:
    folder = whole_folder(tmp_path, "int8", KEY, made)
    os.utime(folder / "vocoder.onnx")
    hashed.clear()
    for _ in range(2):
        whole_folder(tmp_path, "int8", KEY, made)
    assert hashed == ["vocoder.onnx"]
    assert made.told == [""]


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[3] ^= 1
    path.write_bytes(content)


def named_otherwise(path: Path) -> None:
    path.write_text(path.read_text().replace("graphs", "graphz"))


@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("vocoder.onnx", flipped, "vocoder.onnx does not hold the bytes that its SHA-256 promises"),
        ("layers.npz", flipped, "layers.npz does not hold"),
        ("layers.npz", Path.unlink, "layers.npz is missing"),
        ("prosody.onnx", lambda path: os.truncate(path, 3), "prosody.onnx does not hold"),
        ("prosody.onnx", lambda path: path.write_bytes(b""), "prosody.onnx does not hold"),
        ("manifest.json", Path.unlink, "manifest.json is missing"),
        ("manifest.json", lambda path: os.truncate(path, 30), "manifest.json cannot be read"),
        ("manifest.json", named_otherwise, "manifest.json cannot be read (KeyError"),
        ("manifest.json", lambda path: path.write_text("[]"), "manifest.json cannot be read (TypeError"),
    ],
)
def test_what_is_damaged_is_made_anew_and_said(
    name: str,
    damage: Callable[[Path], object],
    said: str,
    made: Maker,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = whole_folder(tmp_path, "int8", KEY, made)
    damage(folder / name)
    with caplog.at_level(logging.WARNING):
        assert whole_folder(tmp_path, "int8", KEY, made) == folder
    assert len(made.told) == 2
    assert made.told[1].startswith(said)
    assert f"{folder}: {said}" in caplog.text
    assert "made anew" in caplog.text
    assert {path: (folder / path).read_bytes() for path in FILES} == FILES
    whole_folder(tmp_path, "int8", KEY, made)
    assert len(made.told) == 2


def test_what_cannot_be_made_whole_is_not_used(tmp_path: Path) -> None:
    def half(folder: Path, _: str) -> None:
        Maker()(folder, "")
        flipped(folder / "vocoder.onnx")

    with pytest.raises(WeightsError, match=r"vocoder\.onnx does not hold .* made just now"):
        whole_folder(tmp_path, "int8", KEY, half)


def test_a_cache_that_may_only_be_read_is_verified_too(
    made: Maker, hashed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = whole_folder(tmp_path, "int8", KEY, made)
    (tmp_path / "derived" / "verified.json").unlink()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for written in ("utime", "replace"):
        monkeypatch.setattr(os, written, refused)
    hashed.clear()
    assert whole_folder(tmp_path, "int8", KEY, made) == folder
    assert sorted(hashed) == sorted(FILES)


def test_looking_again_finds_what_has_the_size_and_time_on_record(made: Maker, tmp_path: Path) -> None:
    folder = whole_folder(tmp_path, "int8", KEY, made)
    path = folder / "vocoder.onnx"
    before = path.stat()
    flipped(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    home = folder.parent
    assert damage_in(folder, home) is None  # as a start sees it, which hashes nothing twice
    (kept,) = kept_folders(tmp_path, again=True)
    assert kept.damage.startswith("vocoder.onnx does not hold")
    assert damage_in(folder, home) == kept.damage  # it is struck off the record, so the next start sees it


def test_graphs_of_another_key_stay_while_somebody_uses_them(made: Maker, tmp_path: Path) -> None:
    old = whole_folder(tmp_path, "int8", "a" * 12, made)
    long_ago = time.time() - UNUSED_S - 60
    os.utime(old, (long_ago, long_ago))
    whole_folder(tmp_path, "int8", "a" * 12, made)  # somebody has used it
    whole_folder(tmp_path, "int8", KEY, made)
    assert old.is_dir()


def test_graphs_of_another_key_that_nobody_uses_are_removed_and_it_is_said(
    made: Maker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long_ago = time.time() - UNUSED_S - 60
    removed = [whole_folder(tmp_path, "int8", "a" * 12, made), tmp_path / "derived" / "int8-v35"]
    kept = [
        whole_folder(tmp_path, "int8-native", KEY, made),
        whole_folder(tmp_path, "fp32", KEY, made),
        tmp_path / "derived" / "int8-of-mine",
    ]
    removed.append(tmp_path / "derived" / ".making-abc")
    for folder in (*removed, *kept):
        folder.mkdir(exist_ok=True)
        os.utime(folder, (long_ago, long_ago))
    with caplog.at_level(logging.WARNING):
        whole_folder(tmp_path, "int8", KEY, made)
    assert [folder for folder in (*removed, *kept) if folder.is_dir()] == kept
    assert all(folder.name in caplog.text for folder in removed)
    records = json.loads((tmp_path / "derived" / "verified.json").read_text())
    assert not [name for name in records if removed[0].name in name]


def test_nothing_is_removed_at_a_start_that_makes_nothing(made: Maker, tmp_path: Path) -> None:
    whole_folder(tmp_path, "int8", KEY, made)
    old = whole_folder(tmp_path, "int8", "a" * 12, made)
    os.utime(old, (0, 0))
    whole_folder(tmp_path, "int8", KEY, made)
    assert old.is_dir()
    assert derived.UNUSED_S == 7 * 86_400
