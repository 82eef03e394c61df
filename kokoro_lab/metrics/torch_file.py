"""Tensors of a PyTorch checkpoint, without PyTorch.

Before version 1.6 `torch.save` wrote five pickles in a row (a magic number, the protocol, sizes of C types,
the object, the order of its storages) and behind them the storages: a count, then raw values. A pickle can
call whatever it names; this one may name three things, which are replaced by our own.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import WeightsError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


@dataclass(frozen=True, slots=True)
class _Placed:
    """A tensor whose values are further down in the file: contiguous float32, from `start` of a storage."""

    storage: str
    start: int
    shape: tuple[int, ...]


def read_tensors(path: Path, member: str) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors of the dictionary `member` of a checkpoint, by their names.

    Parameters
    ----------
    path : Path
        What `torch.save` of a version before 1.6 wrote: a dictionary of dictionaries.

    Raises
    ------
    WeightsError
        It is no such file, names anything but tensors, or ends too early.
    """
    try:
        with path.open("rb") as file:
            magic, protocol, _ = (_Restricted(file).load() for _ in range(3))
            if (magic, protocol) != (MAGIC, PROTOCOL):
                raise ValueError("another format")
            content, order = (_Restricted(file).load() for _ in range(2))
            storages = {key: _storage(file) for key in order}
        placed = {name: tensor for name, tensor in content[member].items() if isinstance(tensor, _Placed)}
        return {name: _tensor(tensor, storages) for name, tensor in placed.items()}
    except OSError as error:
        raise WeightsError(f"{path} cannot be read: {error.strerror}.", field=path.name) from error
    # A broken pickle fails in as many ways as there are instructions in it
    except (ValueError, pickle.UnpicklingError, EOFError, LookupError, TypeError, AttributeError) as error:
        raise WeightsError(f"{path} is no checkpoint that can be read: {error}.", field=path.name) from error


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

    def persistent_load(self, pid: Any) -> str:
        kind, values, key, *_ = pid
        if (kind, values) != ("storage", "FloatStorage"):
            raise pickle.UnpicklingError(f"a storage of {values} is not allowed")
        return str(key)


def _place(storage: str, start: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> _Placed:
    contiguous = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    if stride != contiguous:
        raise pickle.UnpicklingError(f"a tensor of shape {shape} with strides {stride} is not allowed")
    return _Placed(storage, start, shape)


def _storage(file: BinaryIO) -> npt.NDArray[np.float32]:
    count = int.from_bytes(file.read(8), "little")
    content = file.read(4 * count)
    if len(content) != 4 * count:
        raise EOFError("it ends too early")
    return np.frombuffer(content, "<f4")


def _tensor(placed: _Placed, storages: dict[str, npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    stop = placed.start + int(np.prod(placed.shape))
    return storages[placed.storage][placed.start : stop].reshape(placed.shape)
