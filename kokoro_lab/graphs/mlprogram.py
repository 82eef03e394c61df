"""Writes a vocoder of fixed shapes as an `.mlpackage` with an ML Program, Core ML's own kind of model.

ONNX Runtime's Core ML provider makes such a program when it loads an ONNX graph, but does not give it away.
This module makes the program in advance, with the builder of the package coremltools, so that it can be
opened in Xcode, run by Core ML alone, and stored in half precision or with 8-bit weights. On a machine that
is no Mac, the package can be made, opened and checked (see `mil_reference`), but not run.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, numpy_helper

from kokoro_lab.errors import ParameterError, WeightsError
from kokoro_lab.extras import imported
from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.signatures import SCALE, SHIFT
from kokoro_lab.graphs.static_passes import SAMPLES, SPECTRUM, TRUNK, balanced_columns
from kokoro_lab.typed import require_choice

PRECISIONS = ("float32", "float16", "int8")
"""The precisions of a package. `float32` computes in single and `float16` in half precision. `int8` computes
in half precision, too, but stores the weights in 8 bits, with a step for each output channel."""
ERROR_HIGH = {"float32": 1e-3, "float16": 0.05, "int8": 0.15}
"""Largest allowed difference of a sample from ONNX Runtime's in single precision, divided by the largest
sample. Half precision has eleven significant bits, and weights in 8 bits have seven, so the limits differ."""
QUANTISED_LEAST_VALUES = 4096
"""Constants with fewer values are not stored in 8 bits: they are biases."""

_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "real_div"}
_UNARY = {"Sin": "sin", "Cos": "cos", "Exp": "exp"}


@contextmanager
def quietly() -> Iterator[Any]:
    """Yields the module `coremltools`, whose progress bars and warnings are suppressed within the context. On
    other systems than macOS, it warns about what is missing there."""
    logger = logging.getLogger("coremltools")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it leaves temporary folders to the garbage collector
            yield imported("coremltools", extra="lab")
    finally:
        logger.setLevel(before)


def write(
    model: rewriting.Model, path: Path, precision: str = "float16", about: Mapping[str, str] | None = None
) -> None:
    """Translate a static vocoder and write it as the package `path`. The package gets its name only when all
    of it is written.

    Parameters
    ----------
    model : Model
        As `static_passes.static` makes it.
    path : Path
        A new folder whose name ends in `.mlpackage`.
    precision : {"float32", "float16", "int8"}
        Inputs and output are single precision in any case.
    about : mapping of str to str
        Further entries for the package's metadata.

    Raises
    ------
    ParameterError
        There is no such precision, or `path` exists already or has another suffix.
    WeightsError
        The graph has an operator that has no translation, or the package cannot be written.
    """
    require_precision(precision)
    if path.suffix != ".mlpackage" or path.exists():
        raise ParameterError(
            f"{path} cannot be the new package.",
            field="path",
            value=str(path),
            allowed="a new name that ends in .mlpackage",
        )
    with quietly() as ct:
        package = _converted(ct, model, precision)
        package.short_description = "The vocoder of Kokoro-82M for one window, statistics given."
        package.license = "Apache-2.0"
        package.user_defined_metadata.update(about or {})
        try:
            with TemporaryDirectory(prefix=".making-", dir=path.parent, ignore_cleanup_errors=True) as making:
                made = Path(making, path.name)
                package.save(str(made))
                os.replace(made, path)
        except OSError as error:
            raise WeightsError(f"{path} cannot be written: {error.strerror}.", value=str(path)) from error


def require_precision(precision: str) -> None:
    """Refuse what is not one of `PRECISIONS`.

    Raises
    ------
    ParameterError
    """
    require_choice("precision", precision, PRECISIONS, f"There is no precision {precision!r}.")


def _converted(ct: Any, model: rewriting.Model, precision: str) -> Any:
    if precision == "int8":
        model = balanced_columns(model)
    package = ct.convert(
        _program(ct, model),
        source="milinternal",
        convert_to="mlprogram",
        minimum_deployment_target=ct.target.macOS14,
        compute_precision=ct.precision.FLOAT32 if precision == "float32" else ct.precision.FLOAT16,
        skip_model_load=True,
    )
    if precision != "int8":
        return package
    config = ct.optimize.coreml.OptimizationConfig(
        global_config=ct.optimize.coreml.OpLinearQuantizerConfig(
            mode="linear_symmetric",
            dtype="int8",
            granularity="per_channel",
            weight_threshold=QUANTISED_LEAST_VALUES,
        ),
        op_name_configs=dict.fromkeys(_kept_in_half(ct, package)),
    )
    return ct.optimize.coreml.linear_quantize_weights(package, config)


def _kept_in_half(ct: Any, package: Any) -> Iterator[str]:
    """The names of the weights that stay in half precision: those of the convolutions that read the spectrum
    and of the one that writes it, which are few and matter much."""
    metadata = ct.optimize.coreml.get_weights_metadata(package, weight_threshold=QUANTISED_LEAST_VALUES)
    for name, about in metadata.items():
        if any("conv_post" in op.name or "noise_convs" in op.name for op in about.child_ops):
            yield name


def _program(ct: Any, model: rewriting.Model) -> Any:
    """The graph as a program in MIL, the language of coremltools, translated operator by operator."""
    mb = ct.converters.mil.Builder  # the name in coremltools' guide
    shapes = rewriting.shapes(model.graph.input)
    specs = [mb.TensorSpec(shape=tuple(shapes[name] or ())) for name in (TRUNK, SPECTRUM, SCALE, SHIFT)]

    program = mb.program(input_specs=specs, opset_version=ct.target.macOS14)

    @program  # type: ignore[untyped-decorator]  # coremltools has no types, so neither has its decorator
    def vocoder(trunk: Any, spectrum: Any, scale: Any, shift: Any) -> Any:
        values: dict[str, Any] = {TRUNK: trunk, SPECTRUM: spectrum, SCALE: scale, SHIFT: shift}
        values |= {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        for node in model.graph.node:
            made = _operation(mb, node, [values[name] for name in node.input])
            values.update(zip(node.output, made, strict=True))
        return values[SAMPLES]

    return vocoder


def _operation(mb: Any, node: NodeProto, inputs: Sequence[Any]) -> Sequence[Any]:
    """A node of the graph as operations of an ML Program."""
    a = rewriting.attributes_of(node)
    name = str(node.output[0])
    op = node.op_type
    if op in _BINARY:
        return [getattr(mb, _BINARY[op])(x=_single(inputs[0]), y=_single(inputs[1]), name=name)]
    if op in _UNARY:
        return [getattr(mb, _UNARY[op])(x=inputs[0], name=name)]
    if op in _OTHERS:
        return _OTHERS[op](mb, name, a, inputs)
    raise WeightsError(
        f"The operator {op} has no translation into an ML Program.",
        field=str(node.name),
        value=op,
        allowed=", ".join([*_BINARY, *_UNARY, *_OTHERS]),
    )


def _single(value: Any) -> Any:
    return value.astype(np.float32) if isinstance(value, np.ndarray) else value


def _convolution(kind: str) -> Callable[..., Sequence[Any]]:
    def made(mb: Any, name: str, a: Mapping[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
        x, weight, *bias = inputs
        return [
            getattr(mb, kind)(
                x=x,
                weight=np.ascontiguousarray(weight),
                pad_type="custom",
                pad=a.get("pads", [0, 0]),
                strides=a.get("strides", [1]),
                dilations=a.get("dilations", [1]),
                groups=a.get("group", 1),
                name=name,
                **({"bias": bias[0]} if bias else {}),
            )
        ]

    return made


def _leaky_relu(mb: Any, name: str, a: Mapping[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
    return [mb.leaky_relu(x=inputs[0], alpha=np.float32(a.get("alpha", 0.01)), name=name)]


def _concat(mb: Any, name: str, a: Mapping[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
    return [mb.concat(values=list(inputs), axis=a["axis"], name=name)]


def _split(mb: Any, name: str, a: Mapping[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
    sizes = [int(n) for n in inputs[1]]
    return list(mb.split(x=inputs[0], split_sizes=sizes, axis=a.get("axis", 0), name=name))


def _slice(mb: Any, name: str, a: Mapping[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """A slice of one axis with step 1. A static vocoder has no others."""
    x, start, stop, axis, *_ = inputs
    axis = int(axis[0])
    begin, end = np.zeros(len(x.shape), np.int32), np.array(x.shape, np.int32)
    begin[axis], end[axis] = int(start[0]), min(int(stop[0]), x.shape[axis])
    return [mb.slice_by_index(x=x, begin=begin, end=end, name=name)]


_OTHERS: Mapping[str, Callable[..., Sequence[Any]]] = {
    "Conv": _convolution("conv"),
    "ConvTranspose": _convolution("conv_transpose"),
    "LeakyRelu": _leaky_relu,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
}


def predict(path: Path, feed: Mapping[str, npt.NDArray[np.float32]], times: int = 2) -> list[Any]:
    """Load a package into Core ML, on a Mac, and run it `times` times on the same inputs. Returns the output
    of each time.

    Raises
    ------
    ParameterError
        This is no Mac.
    """
    import platform

    if platform.system() != "Darwin":
        raise ParameterError(
            "Core ML is on a Mac alone: the package can be opened here and not run.",
            field="platform",
            value=platform.system(),
            allowed="Darwin",
            mend="`mil_reference.evaluate` evaluates its operations in NumPy.",
        )
    with quietly() as ct:
        loaded = ct.models.MLModel(str(path))
        return [np.asarray(loaded.predict(dict(feed))[SAMPLES], np.float32) for _ in range(times)]
