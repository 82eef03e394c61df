"""Tensors of a checkpoint, read without the library that wrote it, in both of its formats."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from kokoro_lab.errors import WeightsError
from kokoro_lab.metrics import checkpoint
from kokoro_lab.metrics.checkpoint import read_tensors
from kokoro_lab.metrics.distilled import DistillMos
from kokoro_lab.metrics.speaker import VoiceEncoder


class Told:
    """Something that is pickled as a call of a name."""

    def __init__(self, module: str, name: str, *arguments: Any) -> None:
        self.call = (module, name, arguments)


class Old(pickle._Pickler):  # type: ignore[name-defined]
    """Pickles `Told` as what it names, and storages by their persistent id, as old PyTorch did."""

    def persistent_id(self, value: Any) -> Any:
        return value if isinstance(value, tuple) and value[:1] == ("storage",) else None

    def save(self, value: Any, save_persistent_id: bool = True) -> None:
        if not isinstance(value, Told):
            super().save(value, save_persistent_id)
            return
        module, name, arguments = value.call
        self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        if arguments:
            super().save(arguments)
            self.write(pickle.REDUCE)


def in_a_row(
    path: Path, content: Any, storages: dict[str, np.ndarray], magic: int = checkpoint.MAGIC
) -> Path:
    file = io.BytesIO()
    for value in (magic, checkpoint.PROTOCOL, {}, content, list(storages)):
        Old(file, 2).dump(value)
    for values in storages.values():
        file.write(len(values).to_bytes(8, "little") + values.astype("<f4").tobytes())
    path.write_bytes(file.getvalue())
    return path


def zipped(path: Path, content: Any, storages: dict[str, np.ndarray], order: bytes = b"little") -> Path:
    file = io.BytesIO()
    Old(file, 2).dump(content)
    with ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", file.getvalue())
        archive.writestr("x/byteorder", order)
        for key, values in storages.items():
            archive.writestr(f"x/data/{key}", values.astype("<f4").tobytes())
    return path


WAYS = pytest.mark.parametrize("written", [in_a_row, zipped])


def tensor(start: int, shape: tuple[int, ...], stride: tuple[int, ...], kind: str = "FloatStorage") -> Told:
    storage = ("storage", Told("torch", kind), "7", "cuda:0", 6, None)
    return Told("torch._utils", "_rebuild_tensor_v2", storage, start, shape, stride, False, OrderedDict())


VALUES = {"7": np.arange(6.0)}


@WAYS
def test_tensors_are_read_from_where_they_lie(written: Callable[..., Path], tmp_path: Path) -> None:
    content = {"step": 3, "state": {"a": tensor(1, (2, 2), (2, 1)), "b": tensor(5, (1,), (1,)), "n": 4}}
    found = read_tensors(written(tmp_path / "x.pt", content, VALUES), "state")
    assert set(found) == {"a", "b"}
    np.testing.assert_array_equal(found["a"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(found["b"], [5])


def test_counters_are_passed_over_in_an_archive_and_nowhere_else(tmp_path: Path) -> None:
    """Before the archives, what lies behind a storage is found by its length alone."""
    content = {"state": {"n": tensor(0, (), (), "LongStorage"), "b": tensor(5, (1,), (1,))}}
    assert set(read_tensors(zipped(tmp_path / "x.pt", content, VALUES), "state")) == {"b"}
    with pytest.raises(WeightsError, match="LongStorage is not allowed"):
        read_tensors(in_a_row(tmp_path / "x.pt", content, VALUES), "state")


@WAYS
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"state": {"a": Told("os", "system", "true")}}, "os.system is not allowed"),
        ({"state": {"a": Told("builtins", "eval", "1")}}, "builtins.eval is not allowed"),
        ({"state": {"a": tensor(0, (2, 2), (1, 2))}}, "strides"),
        ({"state": {"a": tensor(0, (2,), (1,), "HalfStorage")}}, "HalfStorage is not allowed"),
        ({"state": {"a": tensor(4, (3,), (1,))}}, "cannot reshape"),
        ({"other": {}}, "state"),
        ([1], "no checkpoint"),
    ],
)
def test_a_checkpoint_that_holds_anything_else_is_refused(
    written: Callable[..., Path], content: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(WeightsError, match=said):
        read_tensors(written(tmp_path / "x.pt", content, VALUES), "state")


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    content = {"state": {"a": tensor(0, (6,), (1,))}}
    good = in_a_row(tmp_path / "good.pt", content, VALUES).read_bytes()
    broken = {"short": good[:-1], "empty": b"", "text": b"<html>log in to the hotel network</html>"}
    for name, written in broken.items():
        (tmp_path / name).write_bytes(written)
        with pytest.raises(WeightsError, match="no checkpoint"):
            read_tensors(tmp_path / name, "state")
    with pytest.raises(WeightsError, match="another format"):
        read_tensors(in_a_row(tmp_path / "new.pt", content, VALUES, magic=1), "state")
    with pytest.raises(WeightsError, match="cannot be read"):
        read_tensors(tmp_path / "nowhere.pt", "state")
    with pytest.raises(WeightsError, match=r"has no tensor .lstm\."):
        VoiceEncoder(in_a_row(tmp_path / "x.pt", {"model_state": content["state"]}, VALUES))


def test_an_archive_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    content = {"model": {"a": tensor(0, (6,), (1,))}}
    whole = zipped(tmp_path / "whole.pt", content, VALUES).read_bytes()
    at = whole.index(VALUES["7"].astype("<f4").tobytes())
    (tmp_path / "damaged.pt").write_bytes(whole[:at] + b"\x01" + whole[at + 1 :])
    with ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("x/byteorder", "little")
    zipped(tmp_path / "lacking.pt", content, {})
    zipped(tmp_path / "big.pt", content, VALUES, b"big")
    for name, said in {
        "damaged": "CRC",
        "other": "data.pkl",
        "lacking": "'7'",
        "big": "another order of bytes",
    }.items():
        with pytest.raises(WeightsError, match=said):
            read_tensors(tmp_path / f"{name}.pt", "model")
    with pytest.raises(WeightsError, match=r"has no tensor .cnn\."):
        DistillMos(tmp_path / "whole.pt")
