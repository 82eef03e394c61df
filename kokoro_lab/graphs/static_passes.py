"""Rewrites after which the vocoder has only fixed shapes and operators that Core ML can compute.

ONNX Runtime's Core ML provider takes a node only if its operator is on the provider's list, its shapes are
known, and no tensor that it reads is longer than `LONGEST_AXIS`. Each pass here removes one reason
to refuse, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import onnx
from onnx import NodeProto, helper

from kokoro_lab.graphs import passes, signatures
from kokoro_lab.graphs.rewriting import (
    Graph,
    Model,
    Pass,
    apply,
    copied,
    in_place_of,
    node_by_node,
    sliced,
)
from kokoro_lab.graphs.signatures import INNER, SCALE, SHIFT

TRUNK, SPECTRUM, SAMPLES = "trunk", "spectrum", "samples"
"""Names of the inputs and the output of a static vocoder, besides scale and shift. Samples are (1, 5, n):
each column of the inverse STFT gives five consecutive samples."""
HOP_SAMPLES = 5
"""Hop of the model's STFT and of its inverse."""
SPECTRUM_CHANNELS = 22
"""Eleven magnitudes, and eleven angles."""
COLUMNS = signatures.TRUNK_FRAME_SAMPLES // HOP_SAMPLES
"""Columns of the STFT in a trunk frame. A window has one column more than all its frames together."""
LONGEST_AXIS = 16_384
"""Core ML's provider refuses a node that reads a tensor with more values along an axis, constants too."""
COARSE = 10
"""Columns in a trunk frame between the first upsampling and the second."""
_CONCATENATED = "/decoder/decoder/generator/Concat_3_output_0"


def static(model: Model, outer: int, inner: tuple[int, int]) -> Model:
    """The vocoder stage for windows of one size.

    Parameters
    ----------
    model : Model
        The stage as it was cut.
    outer : int
        Trunk frames that a window takes, context included.
    inner : tuple of int
        The frames among them that are decoded to samples: the first, and the one after the last.
    """
    return apply(model, recipe(outer, inner))


def recipe(outer: int, inner: tuple[int, int]) -> tuple[Pass, ...]:
    """The passes of `static`, in order."""
    return (
        *passes.GIVEN_STATISTICS,
        behind_the_spectrum,
        modulation_as_products,
        reflection_as_a_slice,
        inverse_stft_as_a_convolution,
        partial(fixed_shapes, outer=outer, inner=inner),
    )


def spectrum_alone(model: Model) -> Model:
    """Keep only the head of the vocoder stage: magnitudes and angles of the excitation's STFT.

    Angles need an arctangent and choices between its branches, which Core ML's provider refuses. They also
    need single precision: half precision may round an angle beyond ±π, so that its sign changes. The head is
    a hundredth of the work.
    """
    g = Graph(passes.fold_constants(model))
    g.set_output(_CONCATENATED)
    g.keep(g.graph.node)
    return _renamed(g, {_CONCATENATED: SPECTRUM})


def behind_the_spectrum(model: Model) -> Model:
    """Remove the head that `spectrum_alone` keeps: the spectrum becomes an input."""
    g = Graph(model)
    if _CONCATENATED not in g.maker:
        return model
    g.add_input(_CONCATENATED, onnx.TensorProto.FLOAT, None)
    return g.keep(n for n in g.graph.node if _CONCATENATED not in n.output)


@node_by_node
def modulation_as_products(_: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Compute `x * scale + shift` as a product and a sum: ML Programs have no batch normalisation with
    inputs.

    Scale and shift then have the shape (1, C, 1), in which they are multiplied.
    """
    if node.op_type == "Split" and node.input[0] in (SCALE, SHIFT):
        return [in_place_of(node, "Split", node.input, axis=1)]
    if node.op_type != "BatchNormalization":
        return None
    x, scale, shift = node.input[:3]
    scaled = f"{node.name}/scaled"
    return [
        helper.make_node("Mul", [x, scale], [scaled], name=scaled),
        in_place_of(node, "Add", [scaled, shift]),
    ]


@node_by_node
def reflection_as_a_slice(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Replace the padding by reflection before the second upsampling: put a copy of the second column in
    front."""
    if node.op_type != "Pad":
        return None
    column = f"{node.name}/column"
    return [
        sliced(g, node.input[0], column, 1, 2),
        in_place_of(node, "Concat", [column, node.input[0]], axis=2),
    ]


def inverse_stft_as_a_convolution(model: Model) -> Model:
    """Replace the overlap-add by a convolution that makes five samples from four columns.

    The overlap-add is a transposed convolution of stride 5, whose output has 300 values for each trunk frame.
    For more than 54 frames (0.68 s), it would be longer than `LONGEST_AXIS`. Sample 5i + r is the sum over j
    of column i + 2 - j times tap 5j + r.
    """
    g = Graph(model)
    node = next((n for n in g.graph.node if n.op_type == "ConvTranspose" and "istft" in n.name), None)
    if node is None:
        return model
    # (columns' channels, 1, 20) → (5, channels, 4), latest column last
    taps = g.value(node.input[1])[:, 0].reshape(SPECTRUM_CHANNELS, 4, HOP_SAMPLES)
    gain = next(g.value(n.input[1]) for n in g.graph.node if n.name.endswith("istft/stft/Mul_4"))
    weight = g.constant("inverse_stft", (taps * gain).transpose(2, 0, 1)[:, :, ::-1].astype(np.float32))
    made = helper.make_node("Conv", [node.input[0], weight], [SAMPLES], name="inverse_stft", pads=[1, 1])
    nodes = [*g.graph.node, made]
    g.set_output(SAMPLES)
    return g.keep(nodes)


def fixed_shapes(model: Model, outer: int, inner: tuple[int, int]) -> Model:
    """State the lengths of all inputs and of the output, so that each shape in the graph is known. The places
    at which the window is cropped become constants."""
    g = Graph(model)
    bounds = {
        "crop_start_coarse": COARSE * inner[0],
        "crop_stop_coarse": COARSE * inner[1],
        "crop_start_fine": COLUMNS * inner[0],
        "crop_stop_fine": COLUMNS * inner[1] + 1,
    }
    for name, frame in bounds.items():
        g.constant(name, np.array([frame], np.int64))
    g.keep(n for n in g.graph.node if not set(n.output) & set(bounds) and INNER not in n.input)
    channels = sum(int(n) for n in g.value("adain_sizes"))
    lengths = {
        signatures.TRUNK: (1, 512, outer),
        _CONCATENATED: (1, SPECTRUM_CHANNELS, COLUMNS * outer + 1),
        SCALE: (1, channels, 1),
        SHIFT: (1, channels, 1),
    }
    del g.graph.input[:]
    for name, shape in lengths.items():
        g.add_input(name, onnx.TensorProto.FLOAT, shape)
    g.set_output(SAMPLES, (1, HOP_SAMPLES, COLUMNS * (inner[1] - inner[0])))
    return _renamed(g, {signatures.TRUNK: TRUNK, _CONCATENATED: SPECTRUM})


@node_by_node
def balanced_columns(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """Scale a convolution's weights so that those of all input channels are equally large, for weights in 8
    bits.

    Snake's factor 1 / 2α is part of the weights. So the weights of one channel are up to ten thousand times
    as large as those of another, and with steps that suit the largest, the others would be rounded to 0. The
    pass adds a multiplication of the inputs.
    """
    if node.op_type != "Conv" or not node.input[0].endswith("/snake"):
        return None
    weight, p = g.value(node.input[1]), node.name
    largest = np.maximum(np.abs(weight).max((0, 2)), np.finfo(np.float32).tiny).reshape(1, -1, 1)
    factor = g.constant(f"{p}/factor", largest)
    level = g.constant(f"{p}/level_weight", weight / largest)
    return [
        helper.make_node("Mul", [node.input[0], factor], [f"{p}/level"], name=f"{p}/level"),
        copied(node, [f"{p}/level", level, *node.input[2:]]),
    ]


def _renamed(g: Graph, names: dict[str, str]) -> Model:
    for node in g.graph.node:
        for tensors in (node.input, node.output):
            for k, name in enumerate(tensors):
                tensors[k] = names.get(name, name)
    for value in (*g.graph.input, *g.graph.output):
        value.name = names.get(value.name, value.name)
    return g.model


def joined(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The output of a static vocoder, (1, 5, n), as one row of samples in their order in time, (5n,)."""
    row: npt.NDArray[np.float32] = np.ascontiguousarray(samples[0].T).reshape(-1)
    return row
