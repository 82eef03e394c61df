"""Tensors of a PyTorch checkpoint, read without PyTorch.

Before version 1.6 `torch.save` wrote five pickles in a row (a magic number, the protocol, sizes of C types,
the object, the order of its storages) and after them the storages: a count, then raw values. Since then it
writes a ZIP archive with the object's pickle and a file for each storage. A pickle can call whatever it
names; this one may name four things, which are replaced by our own.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile, is_zipfile

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import WeightsError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
Values = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _TensorPlace:
    """A tensor whose values are further down in the file: contiguous float32, from `start` of a storage."""

    storage: str
    start: int
    shape: tuple[int, ...]


def read_tensors(path: Path, member: str) -> dict[str, Values]:
    """The float32 tensors of the dictionary `member` of a checkpoint, by their names.

    Parameters
    ----------
    path : Path
        What `torch.save` wrote: a dictionary of dictionaries. In an archive, tensors of int64 are left out.

    Raises
    ------
    WeightsError
        The file is no such checkpoint, names anything but tensors, or ends too early.
    """
    try:
        content, storages = _zipped(path) if is_zipfile(path) else _in_a_row(path)
        placed = {
            name: tensor for name, tensor in content[member].items() if isinstance(tensor, _TensorPlace)
        }
        return {name: _tensor(tensor, storages) for name, tensor in placed.items()}
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}.", field=path.name) from error
    # A broken pickle fails in as many ways as there are instructions in it
    except (
        *(ValueError, pickle.UnpicklingError, EOFError, LookupError, TypeError, AttributeError),
        BadZipFile,
    ) as error:
        raise WeightsError(f"{path} is no checkpoint that can be read: {error}.", field=path.name) from error


def _in_a_row(path: Path) -> tuple[Any, dict[str, Values]]:
    with path.open("rb") as file:
        magic, protocol, _ = (_Restricted(file).load() for _ in range(3))
        if (magic, protocol) != (MAGIC, PROTOCOL):
            raise ValueError("another format")
        content, order = (_Restricted(file).load() for _ in range(2))
        return content, {key: _storage(file) for key in order}


def _zipped(path: Path) -> tuple[Any, dict[str, Values]]:
    with ZipFile(path) as archive:
        root = archive.namelist()[0].partition("/")[0]
        if archive.read(f"{root}/byteorder") != b"little":
            raise ValueError("another order of bytes")
        content = _PastCounters(io.BytesIO(archive.read(f"{root}/data.pkl"))).load()
        names = [name for name in archive.namelist() if name.startswith(f"{root}/data/")]
        return content, {name.rpartition("/")[2]: np.frombuffer(archive.read(name), "<f4") for name in names}


class _Restricted(pickle.Unpickler):
    """Loads dictionaries, numbers and places of tensors, and refuses everything else."""

    def find_class(self, module: str, name: str) -> Callable[..., Any] | str:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _place
        if (module, name) == ("torch", "FloatStorage"):
            return name
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")

    def persistent_load(self, pid: Any) -> str | None:
        kind, values, key, *_ = pid
        if (kind, values) != ("storage", "FloatStorage"):
            raise pickle.UnpicklingError(f"a storage of {values} is not allowed")
        return str(key)


class _PastCounters(_Restricted):
    """Passes over tensors of int64, in which normalisations count their batches."""

    def find_class(self, module: str, name: str) -> Callable[..., Any] | str:
        return name if (module, name) == ("torch", "LongStorage") else super().find_class(module, name)

    def persistent_load(self, pid: Any) -> str | None:
        return None if pid[1] == "LongStorage" else super().persistent_load(pid)


def _place(
    storage: str | None, start: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any
) -> _TensorPlace | None:
    if storage is None:
        return None
    contiguous = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    if stride != contiguous:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} with strides {stride} is not allowed")
    return _TensorPlace(storage, start, shape)


def _storage(file: BinaryIO) -> Values:
    count = int.from_bytes(file.read(8), "little")
    content = file.read(4 * count)
    if len(content) != 4 * count:
        raise EOFError("it ends too early")
    return np.frombuffer(content, "<f4")


def _tensor(placed: _TensorPlace, storages: Mapping[str, Values]) -> Values:
    stop = placed.start + int(np.prod(placed.shape))
    return storages[placed.storage][placed.start : stop].reshape(placed.shape)
