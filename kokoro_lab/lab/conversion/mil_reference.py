"""Reads an ML Program from its package, and evaluates it operation by operation in NumPy.

This module does not depend on how `mlprogram` wrote the program: coremltools reads it from the disk, and
every operation follows Apple's description (coremltools, MIL operations of iOS 15 to 17). Each result is
rounded to the type that the program states for it; sums within an operation are in single precision, which is
what Core ML promises at least on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import WeightsError
from kokoro_lab.extras import imported
from kokoro_lab.graphs.mlprogram import quietly

Array = npt.NDArray[Any]
_CONSTANT = "constexpr_"
"""Beginning of the names of operations that only unpack a weight."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An ML Program.

    Parameters
    ----------
    function : coremltools Function
        The program's only function.
    metadata : mapping of str to str
    """

    function: Any
    metadata: Mapping[str, str]

    @property
    def inputs(self) -> dict[str, tuple[int, ...]]:
        """Name of each input → its shape."""
        return {name: tuple(var.shape) for name, var in self.function.inputs.items()}

    @property
    def operations(self) -> list[Any]:
        """The operations in order, without constants."""
        return [op for op in self.function.operations if op.op_type != "const"]

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(var.name for var in self.function.outputs)


def read(path: Path) -> Program:
    """Open an `.mlpackage` without loading it into Core ML.

    Raises
    ------
    WeightsError
        The package holds no ML Program with fixed shapes, or its weights are not where the program says.
    """
    with quietly() as ct:
        loader = imported("coremltools.converters.mil.frontend.milproto.load", extra="lab")
        try:
            package = ct.models.MLModel(str(path), skip_model_load=True)
            spec = package.get_spec()
            program = loader.load(spec, spec.specificationVersion, package.weights_dir)
        except (OSError, ValueError, RuntimeError) as error:
            raise WeightsError(
                f"{path} is no package that can be opened: {error}", value=str(path)
            ) from error
    return Program(program.functions["main"], dict(spec.description.metadata.userDefined))


def evaluate(program: Program, feed: Mapping[str, Array]) -> dict[str, Array]:
    """The program's outputs for the inputs in `feed`.

    Raises
    ------
    WeightsError
        The program has an operation that this module does not know, or an input has another shape.
    """
    for name, shape in program.inputs.items():
        if feed[name].shape != shape:
            raise WeightsError(f"The input {name} is {shape}, not {feed[name].shape}.", field=name)
    known: dict[str, Array] = dict(feed)
    for op in program.operations:
        for var, value in zip(op.outputs, _made(op, known), strict=True):
            known[var.name] = np.asarray(value).astype(_dtype(var), copy=False)
        for var in _variables(op):
            if var.child_ops[-1] is op and var.name not in program.outputs:
                known.pop(var.name, None)
    return {name: known[name] for name in program.outputs}


def _made(op: Any, known: Mapping[str, Array]) -> Sequence[Array]:
    if op.op_type.startswith(_CONSTANT):
        return [op.materialized_val_inference()]
    if op.op_type not in _EVALUATED:
        raise WeightsError(f"The operation {op.op_type} is not known here.", value=op.op_type)
    return _EVALUATED[op.op_type]({name: _resolved(value, known) for name, value in op.inputs.items()})


def _dtype(var: Any) -> np.dtype[Any]:
    types = imported("coremltools.converters.mil.mil.types", extra="lab")
    found: np.dtype[Any] = np.dtype(types.nptype_from_builtin(var.dtype))
    return found


def _variables(op: Any) -> Iterator[Any]:
    for value in op.inputs.values():
        yield from value if isinstance(value, list | tuple) else [value]


def _resolved(value: Any, known: Mapping[str, Array]) -> Any:
    if isinstance(value, list | tuple):
        return [_resolved(each, known) for each in value]
    return known.get(value.name, value.val)


Inputs = Mapping[str, Any]


def _wide(value: Array) -> Array:
    """The value in single precision, in which operations are computed."""
    return np.asarray(value, np.float32)


def _elementwise(function: Callable[..., Array]) -> Callable[[Inputs], Sequence[Array]]:
    return lambda i: [function(*(_wide(i[name]) for name in ("x", "y") if name in i))]


def _conv(i: Inputs) -> Sequence[Array]:
    """`conv` of one spatial axis: y[o, t] = b[o] + Σ_c,k w[o, c, k] · x[c, s·t + d·k − p], with stride s,
    dilation d and padding p."""
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
    """`conv_transpose` of one spatial axis: each value of x adds its taps to y, one stride after those of the
    value before it."""
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


def _slice_by_index(i: Inputs) -> Sequence[Array]:
    x = i["x"]
    rank = range(x.ndim)
    begins = [None if _flag(i, "begin_mask", k) else int(i["begin"][k]) for k in rank]
    ends = [None if _flag(i, "end_mask", k) else int(i["end"][k]) for k in rank]
    return [x[tuple(slice(b, e) for b, e in zip(begins, ends, strict=True))]]


def _flag(i: Inputs, name: str, k: int) -> bool:
    return name in i and bool(np.reshape(i[name], -1)[k])


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
    "split": lambda i: np.split(i["x"], np.cumsum(i["split_sizes"])[:-1], axis=int(i["axis"])),
    "concat": lambda i: [np.concatenate(i["values"], axis=int(i["axis"]))],
    "slice_by_index": _slice_by_index,
}
