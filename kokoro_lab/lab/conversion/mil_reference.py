"""ML Programs read back from their package, and evaluated operation by operation in NumPy.

Nothing here knows how `mlprogram` wrote them: the program is read as it lies on the disk, weights by their
offsets, and every operation is worked out from Apple's description of it (coremltools, MIL operations of
iOS 15 to 17). Each result is rounded to the type that the program states for it; sums within an operation
are in single precision, which is what Core ML promises at least on the CPU.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import WeightsError
from kokoro_lab.graphs.mlprogram import quietly

Array = npt.NDArray[Any]

_BLOB_MAGIC = 0xDEADBEEF
_BLOB_ENTRY = struct.Struct("<IIQQ")
"""Of a weight in `weight.bin`: magic, type, size in bytes, and where its values begin."""


@dataclass(frozen=True, slots=True, eq=False)
class MilOperation:
    """One operation: what it is, its inputs by their names (tensors, or values that stand there), outputs."""

    kind: str
    inputs: Mapping[str, Any]
    outputs: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An ML Program.

    Parameters
    ----------
    inputs : mapping of str to tuple of int
        Shapes.
    operations : tuple of MilOperation
        In order, constants left out.
    constants : mapping of str to numpy.ndarray
    outputs : tuple of str
    metadata : mapping of str to str
    """

    inputs: Mapping[str, tuple[int, ...]]
    operations: tuple[MilOperation, ...]
    constants: Mapping[str, Array]
    outputs: tuple[str, ...]
    metadata: Mapping[str, str]


class Name(str):
    """A tensor's name where a value could stand."""


def read(path: Path) -> Program:
    """Open an `.mlpackage` without loading it into Core ML.

    Raises
    ------
    WeightsError
        It holds no ML Program with fixed shapes, or weights that are not where it says.
    """
    with quietly() as ct:
        try:
            package = ct.models.MLModel(str(path), skip_model_load=True)
        except (OSError, ValueError, RuntimeError) as error:
            raise WeightsError(
                f"{path} is no package that can be opened: {error}", value=str(path)
            ) from error
        spec = package.get_spec()
        weights = Path(package.weights_dir) / "weight.bin"
        blob = np.memmap(weights, np.uint8, "r") if weights.exists() else np.zeros(0, np.uint8)
    if spec.WhichOneof("Type") != "mlProgram":
        raise WeightsError(f"{path} holds a {spec.WhichOneof('Type')}, not an ML Program.", value=str(path))
    function = spec.mlProgram.functions["main"]
    block = function.block_specializations[function.opset]
    operations, constants = [], {}
    for raw in block.operations:
        op = _operation(raw, blob)
        if op.kind == "const":
            constants[op.outputs[0]] = op.inputs["val"]
        else:
            operations.append(op)
    return Program(
        inputs={i.name: tuple(i.type.multiArrayType.shape) for i in spec.description.input},
        operations=tuple(operations),
        constants=constants,
        outputs=tuple(o.name for o in spec.description.output),
        metadata=dict(spec.description.metadata.userDefined),
    )


def _operation(raw: Any, blob: Array) -> MilOperation:
    inputs: dict[str, Any] = {}
    for name, argument in raw.inputs.items():
        bound = [
            Name(a.name) if a.WhichOneof("binding") == "name" else _value(a.value, blob)
            for a in argument.arguments
        ]
        inputs[name] = bound if len(bound) > 1 or name == "values" else bound[0]
    inputs |= {n: _value(v, blob) for n, v in raw.attributes.items()}
    return MilOperation(
        kind=raw.type,
        inputs=inputs,
        outputs=tuple(o.name for o in raw.outputs),
        dtypes=tuple(_dtype(o.type.tensorType.dataType) for o in raw.outputs),
    )


_DTYPES = {10: "f2", 11: "f4", 12: "f8", 21: "i1", 22: "i2", 23: "i4", 24: "i8", 31: "u1", 1: "?", 2: "O"}
"""The program's type numbers (`MIL.proto`, DataType)."""


def _dtype(number: int) -> np.dtype[Any]:
    return np.dtype(_DTYPES[number])


def _value(value: Any, blob: Array) -> Any:
    dtype = _dtype(value.type.tensorType.dataType)
    shape = tuple(d.constant.size for d in value.type.tensorType.dimensions)
    if value.WhichOneof("value") == "blobFileValue":
        at = value.blobFileValue.offset
        magic, _, size, begin = _BLOB_ENTRY.unpack(blob[at : at + _BLOB_ENTRY.size].tobytes())
        if magic != _BLOB_MAGIC or size != np.prod(shape) * dtype.itemsize:
            raise WeightsError(f"There is no weight of {shape} values at byte {at}.", value=str(at))
        return np.frombuffer(blob[begin : begin + size].tobytes(), dtype).reshape(shape)
    tensor = value.immediateValue.tensor
    kind = tensor.WhichOneof("value")
    held = getattr(tensor, kind).values
    if isinstance(held, bytes):
        return np.frombuffer(held, dtype).reshape(shape)
    if kind == "strings":
        return str(held[0])
    return np.array(list(held), dtype).reshape(shape)


def evaluate(program: Program, feed: Mapping[str, Array]) -> dict[str, Array]:
    """What the program gives for these inputs.

    Raises
    ------
    WeightsError
        It holds an operation that is not known here, or an input has another shape.
    """
    for name, shape in program.inputs.items():
        if feed[name].shape != shape:
            raise WeightsError(f"The input {name} is {shape}, not {feed[name].shape}.", field=name)
    known: dict[str, Array] = {**program.constants, **feed}
    last_read = {
        name: k
        for k, op in enumerate(program.operations)
        for value in op.inputs.values()
        for name in (value if isinstance(value, list) else [value])
        if isinstance(name, Name)
    }
    for k, op in enumerate(program.operations):
        if op.kind not in _EVALUATED:
            raise WeightsError(f"The operation {op.kind} is not known here.", value=op.kind)
        inputs = {name: _resolved(value, known) for name, value in op.inputs.items()}
        made = _EVALUATED[op.kind](inputs)
        for name, value, dtype in zip(op.outputs, made, op.dtypes, strict=True):
            known[name] = np.asarray(value).astype(dtype, copy=False)
        for name in [n for n, last in last_read.items() if last == k and n not in program.outputs]:
            known.pop(name, None)
    return {name: known[name] for name in program.outputs}


def _resolved(value: Any, known: Mapping[str, Array]) -> Any:
    if isinstance(value, list):
        return [_resolved(v, known) for v in value]
    return known[value] if isinstance(value, Name) else value


Inputs = Mapping[str, Any]


def _wide(value: Array) -> Array:
    """As single precision, in which an operation works."""
    return np.asarray(value, np.float32)


def _elementwise(function: Callable[..., Array]) -> Callable[[Inputs], Sequence[Array]]:
    return lambda i: [function(*(_wide(i[name]) for name in ("x", "y") if name in i))]


def _conv(i: Inputs) -> Sequence[Array]:
    """`conv` of one spatial axis: y[o, t] = b[o] + Σ_c,k w[o, c, k] · x[c, s·t + d·k − p]."""
    x, weight = _wide(i["x"])[0], _wide(i["weight"])
    before, after, stride, dilation = _spatial(i)
    x = np.pad(x, ((0, 0), (before, after)))
    taps = weight.shape[2]
    length = (x.shape[1] - dilation * (taps - 1) - 1) // stride + 1
    out = np.zeros((weight.shape[0], length), np.float32)
    for k in range(taps):
        out += weight[:, :, k] @ x[:, k * dilation : k * dilation + stride * (length - 1) + 1 : stride]
    return [(out + _bias(i, len(out)))[None]]


def _conv_transpose(i: Inputs) -> Sequence[Array]:
    """`conv_transpose` of one spatial axis: each value of x adds its taps to y, `s` values apart."""
    x, weight = _wide(i["x"])[0], _wide(i["weight"])  # weight: inputs, outputs, taps
    before, after, stride, dilation = _spatial(i)
    taps = weight.shape[2]
    out = np.zeros((weight.shape[1], stride * (x.shape[1] - 1) + dilation * (taps - 1) + 1), np.float32)
    for k in range(taps):
        out[:, k * dilation : k * dilation + stride * (x.shape[1] - 1) + 1 : stride] += weight[:, :, k].T @ x
    out = out[:, before : out.shape[1] - after]
    return [(out + _bias(i, len(out)))[None]]


def _spatial(i: Inputs) -> tuple[int, int, int, int]:
    if int(i.get("groups", 1)) != 1 or i.get("pad_type") not in ("custom", "valid"):
        raise WeightsError("Convolutions in groups, or padded by a rule, are not known here.")
    before, after = (int(p) for p in i["pad"]) if i["pad_type"] == "custom" else (0, 0)
    return before, after, int(i["strides"][0]), int(i["dilations"][0])


def _bias(i: Inputs, channels: int) -> Array:
    return _wide(i["bias"] if "bias" in i else np.zeros(channels))[:, None]


def _leaky_relu(i: Inputs) -> Sequence[Array]:
    x = _wide(i["x"])
    return [np.where(x >= 0, x, np.float32(i["alpha"]) * x)]


def _split(i: Inputs) -> Sequence[Array]:
    return np.split(i["x"], np.cumsum(i["split_sizes"])[:-1], axis=int(i["axis"]))


def _concat(i: Inputs) -> Sequence[Array]:
    return [np.concatenate(i["values"], axis=int(i["axis"]))]


def _slice_by_index(i: Inputs) -> Sequence[Array]:
    x = i["x"]
    rank = range(x.ndim)
    begins = [None if _flag(i, "begin_mask", k) else int(i["begin"][k]) for k in rank]
    ends = [None if _flag(i, "end_mask", k) else int(i["end"][k]) for k in rank]
    return [x[tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))]]


def _flag(i: Inputs, name: str, k: int) -> bool:
    return name in i and bool(np.reshape(i[name], -1)[k])


def _dequantised(i: Inputs) -> Sequence[Array]:
    """`constexpr_affine_dequantize`: scale · (q − zero point), one of each along an axis."""
    q, axis = i["quantized_data"], int(i["axis"])
    along = [-1 if k == axis else 1 for k in range(q.ndim)]
    scale, zero = (
        np.reshape(_wide(i[n]), along if np.size(i[n]) > 1 else ()) for n in ("scale", "zero_point")
    )
    return [scale * (_wide(q) - zero)]


_EVALUATED: Mapping[str, Callable[[Inputs], Sequence[Array]]] = {
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "mul": _elementwise(np.multiply),
    "real_div": _elementwise(np.divide),
    "sin": _elementwise(np.sin),
    "cos": _elementwise(np.cos),
    "exp": _elementwise(np.exp),
    "cast": lambda i: [i["x"]],  # to the type that the output states
    "identity": lambda i: [i["x"]],
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "leaky_relu": _leaky_relu,
    "split": _split,
    "concat": _concat,
    "slice_by_index": _slice_by_index,
    "constexpr_affine_dequantize": _dequantised,
}
