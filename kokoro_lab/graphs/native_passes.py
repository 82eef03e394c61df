"""Passes that replace ONNX Runtime's operators by our own, whose C++ sources are in `native/`.

Like those of `passes`, each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper, numpy_helper

from kokoro_lab.graphs.fast_fir import TILE, FastFir, packed
from kokoro_lab.graphs.rewriting import (
    Graph,
    Model,
    Swaps,
    attributes_of,
    copied,
    either_way,
    in_place_of,
    inferred,
    node_by_node,
)
from kokoro_lab.graphs.signatures import KNOWN

NATIVE_DOMAIN = "kokoro_lab"


def phases_for(taps: int) -> int:
    """The number of phases at which a convolution is fastest, measured with AVX-512.

    `fast_fir` splits the samples into this number of phases: phase 1 of 4 has samples 1, 5, 9 and so on.

    With seven and eleven taps, four phases are fastest: the convolution takes 0.70 of ONNX Runtime's time.
    With three taps, two phases are fastest. Four would need fewer multiplications there, too. But on the few
    channels of the vocoder, the additional sums of four phases cost more than the saved multiplications. On
    the many channels of the trunk, four phases read 1.5 times as many weights as two: a convolution over 60
    or 90 frames took 1.3 times as long as with two phases, and one over 120 to 150 frames took the same time.
    """
    return 4 if taps >= 7 else 2 if taps > 1 else 1


@node_by_node
def snake_convolutions(g: Graph, conv: NodeProto) -> Sequence[NodeProto] | None:
    """Replace modulation, Snake and the following convolution by one operator, `native/fast_conv.cpp`.

    Our operator needs fewer multiplications (see `fast_fir`), and does not copy its input into a matrix of
    shifted columns.
    """
    modulation = modulation_of(g, conv)
    if modulation is None:
        return None
    inputs = [modulation.input[0], *_taken_apart(g, conv), *modulation.input[1:3]]
    return [native_node("SnakeConv", inputs, conv, reach=reach_of(g, conv))]


BY_PLACE = {"SnakeConv": 8, "QuantSnakeConv": 10}
"""Operators of ours that can add a tensor to their output → the position of that tensor among their
inputs."""


@node_by_node
def sums_of_convolutions(g: Graph, node: NodeProto) -> Sequence[NodeProto] | None:
    """If a tensor is added to the output of our convolution, have the convolution add it while it writes,
    instead of a node for the sum."""
    for name, by in either_way(node, "Add"):
        conv = g.maker.get(name)
        place = BY_PLACE.get(conv.op_type) if conv is not None else None
        if conv is None or place is None or by in g.constants:  # the constant may be one value a channel
            continue
        if len(g.readers[name]) == 1 and len(conv.input) <= place:
            left_out = [""] * (place - len(conv.input))
            return [copied(conv, [*conv.input, *left_out, by], node.output[0])]
    return None


def exact_stft(model: Model) -> Model:
    """Compute the STFT of the excitation by an operator of ours, equal to ONNX Runtime's to the last bit."""
    g = Graph(model)
    stft = next((n for n in g.graph.node if n.op_type == "STFT"), None)
    if stft is None:
        return model
    signal, hop, window, size = stft.input
    (turned,) = g.readers[stft.output[0]]
    real, imaginary = sorted(g.readers[turned.output[0]], key=lambda part: int(g.value(part.input[1])))
    inputs = [signal, window, g.constant("stft/hop", g.value(hop).reshape(1))]
    halves = g.integers(*[int(g.value(size)) // 2 + 1] * 2)
    both = helper.make_node("ExactStft", inputs, ["stft/both"], name=stft.name, domain=NATIVE_DOMAIN)
    split = helper.make_node("Split", ["stft/both", halves], [*real.output, *imaginary.output], axis=1)
    return g.rewritten({real.output[0]: (both, split), imaginary.output[0]: ()})


def phases(model: Model) -> Model:
    """Compute the phases of the excitation's overtones by an operator of ours; samples are equal to the last
    bit.

    ONNX Runtime interpolates the phases on one core. It also computes them for unvoiced frames, whose sines
    are then multiplied by 0; our operator gives 0 there. The sines are still computed by ONNX Runtime: a sine
    that is rounded differently can flip angles in the spectrum of the excitation.
    """
    g = Graph(model)
    for sine in (n for n in g.graph.node if n.op_type == "Sin"):
        if found := g.chain(sine.input[0], "Transpose", "Resize"):
            break
    else:
        return model
    turned, between = found
    (softer,) = g.readers[sine.output[0]]
    (voiced,) = g.readers[softer.output[0]]
    threshold = g.value(g.maker[g.maker[voiced.input[1]].input[0]].input[1]).item()
    rest = np.array([threshold, g.value(between.input[2])[-1]], np.float32)
    inputs = [between.input[0], g.graph.input[0].name, g.constant("phases/rest", rest)]
    return g.rewritten(
        {
            turned.output[0]: (native_node("Phases", inputs, turned),),
            voiced.output[0]: (helper.make_node("Identity", list(softer.output), list(voiced.output)),),
        }
    )


@node_by_node
def statistics(_: Graph, choice: NodeProto) -> Sequence[NodeProto] | None:
    """Replace each If node of `passes.own_statistics_unless_known` by an operator of ours, which takes the
    given statistics, or computes those of its input if none are known. Starting a branch of an If took longer
    than computing it, and ONNX Runtime's sums round differently on another processor."""
    if choice.op_type != "If" or choice.input[0] != KNOWN:
        return None
    branches = attributes_of(choice)
    given, own = branches["then_branch"], branches["else_branch"]
    inputs = [own.node[0].input[0], *(node.input[0] for node in given.node), KNOWN]
    return [native_node("Statistics", inputs, choice)]


WIDE_CHANNELS = 256
"""A convolution with fewer input channels is not replaced by `fast_convolutions`: the operator goes over its
input once more, which would cost more time than its fewer multiplications save."""


@node_by_node
def fast_convolutions(g: Graph, conv: NodeProto) -> Sequence[NodeProto] | None:
    """Replace convolutions over time that have at least `WIDE_CHANNELS` input channels by an operator of
    ours, which needs fewer multiplications."""
    if not keeps_length(g, conv) or g.lengths(conv.input[1])[1] < WIDE_CHANNELS or dilation_of(conv) % 2 == 0:
        return None
    return [native_node("FastConv", [conv.input[0], *_taken_apart(g, conv)], conv)]


PANEL = 32
"""Columns of a matrix that `native/product.cpp` stores and computes together."""


def known_products(model: Model) -> Model:
    """Compute products with a constant matrix by an operator of ours. Its results equal ONNX Runtime's to the
    last bit."""
    g = Graph(model)
    swaps: Swaps = {}
    for node in g.graph.node:
        lengths = g.lengths(node.input[1]) if node.op_type == "MatMul" else ()
        if len(lengths) == 2 and not lengths[1] % PANEL:
            # One matrix may be a dozen layers'
            weights = g.constant(f"{node.input[1]}/panels", in_panels(g.value(node.input[1])))
            swaps[node.output[0]] = (native_node("Product", [node.input[0], weights], node),)
    made = with_shapes(g.rewritten(swaps), model) if swaps else model
    # ONNX Runtime must find a bias in the second place, too, to fuse as it does after its own operators
    for node in made.graph.node:
        if node.op_type == "Add" and node.input[1] in swaps:
            node.input[:] = reversed(node.input)
    return made


def in_panels(weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A matrix [K, M] as panels of `PANEL` neighbouring columns: [M / PANEL, K, PANEL]."""
    return np.ascontiguousarray(weight.reshape(len(weight), -1, PANEL).transpose(1, 0, 2))


def with_shapes(made: Model, model: Model) -> Model:
    """State the shapes of our operators' outputs. Without them, ONNX Runtime would fuse other nodes after our
    operators than after its own, and sums would be rounded differently."""
    made.graph.value_info.extend(inferred(model))
    return made


HIDDEN = 64
"""Hidden units of an LSTM that `native/bi_lstm.cpp` computes at a time."""


def recurrences(model: Model) -> Model:
    """Replace LSTMs that read in both directions and begin with a state of zeros by an operator of ours. Its
    results equal ONNX Runtime's to the last bit."""
    g = Graph(model)
    swaps: Swaps = {}
    for node in g.graph.node:
        if node.op_type == "LSTM" and _fits(g, node):
            x, *weights, bias = node.input[:4]
            inputs = [x, *(g.constant(f"{name}/panels", _both_in_panels(g.value(name))) for name in weights)]
            inputs.append(g.constant(f"{bias}/both", g.value(bias).reshape(2, 2, -1)))
            made = helper.make_node("BiLstm", inputs, node.output[:1], name=node.name, domain=NATIVE_DOMAIN)
            swaps[node.output[0]] = (made,)
    return with_shapes(g.rewritten(swaps), model) if swaps else model


def _both_in_panels(weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The matrices of both directions, [2, M, K], as panels of `PANEL` neighbouring outputs: [2, M / PANEL,
    K, PANEL]."""
    directions, outputs, inputs = weight.shape
    panels = weight.reshape(directions, outputs // PANEL, PANEL, inputs)
    return np.ascontiguousarray(panels.swapaxes(2, 3))


def _fits(g: Graph, lstm: NodeProto) -> bool:
    """Whether an LSTM is a plain one: both directions, one sentence, a first state of zeros, and no node
    reads its last state."""
    given = attributes_of(lstm)
    lengths, hidden, cell, peepholes = [*lstm.input[4:], "", "", "", ""][:4]
    read = g.readers.keys() | {o.name for o in g.graph.output}
    return (
        given.keys() <= {"direction", "hidden_size"}
        and given.get("direction") == b"bidirectional"
        and given["hidden_size"] % HIDDEN == 0
        and all(name in g.constants for name in lstm.input[1:4])
        and not lengths
        and not peepholes
        and all(_is_zero(g, state) for state in (hidden, cell) if state)
        and not any(name in read for name in lstm.output[1:] if name)
    )


def _is_zero(g: Graph, name: str) -> bool:
    """Whether a tensor is known to have only zeros."""
    if name in g.constants:
        return not g.value(name).any()
    maker = g.made_by(name, "ConstantOfShape")
    filling = attributes_of(maker).values() if maker is not None else ()
    return maker is not None and not any(numpy_helper.to_array(value).any() for value in filling)


def convolution_over_time(g: Graph, node: NodeProto) -> tuple[int, ...]:
    """If `node` is a convolution over one axis with constant weights: its numbers of output channels, input
    channels and taps; else empty."""
    lengths = g.lengths(node.input[1]) if node.op_type == "Conv" else ()
    return lengths if len(lengths) == 3 else ()


def keeps_length(g: Graph, node: NodeProto) -> bool:
    """Whether a node is a convolution that one of ours can replace. Its output must be as long as its input
    (zero padding, no stride), it must have no groups, an odd number of taps, and a multiple of `TILE` output
    channels."""
    lengths = convolution_over_time(g, node)
    if not lengths or lengths[0] % TILE or not lengths[2] % 2:
        return False
    given, reach = attributes_of(node), reach_of(g, node)
    asked = (given.get("group", 1), given.get("strides", [1]), given.get("pads", [0, 0]))
    return asked == (1, [1], [reach, reach])


def dilation_of(conv: NodeProto) -> int:
    return int(attributes_of(conv).get("dilations", [1])[0])


def reach_of(g: Graph, conv: NodeProto) -> int:
    """How many columns on either side of the present one a convolution with an odd number of taps reads."""
    return g.lengths(conv.input[1])[2] // 2 * dilation_of(conv)


def bias_of(g: Graph, conv: NodeProto) -> npt.NDArray[np.float32]:
    if len(conv.input) == 2:
        return np.zeros(g.lengths(conv.input[1])[0], np.float32)
    bias: npt.NDArray[np.float32] = g.value(conv.input[2])
    return bias


def _taken_apart(g: Graph, conv: NodeProto) -> list[str]:
    """Add to `g` the constants of a convolution of ours: plan and weights (see `fast_fir.packed`), and bias.
    Returns their names."""
    weight = g.value(conv.input[1])
    plan, weights = packed(FastFir.of(weight, dilation_of(conv), phases_for(weight.shape[2])))
    named: dict[str, npt.NDArray[Any]] = {"plan": plan, "weights": weights, "bias": bias_of(g, conv)}
    return [g.constant(f"{conv.name}/{name}", value) for name, value in named.items()]


def native_node(operator: str, inputs: Sequence[str], replaced: NodeProto, **attributes: Any) -> NodeProto:
    return in_place_of(replaced, operator, inputs, domain=NATIVE_DOMAIN, **attributes)


def modulation_of(g: Graph, conv: NodeProto) -> NodeProto | None:
    """The batch normalisation (made by `modulate`) whose output a convolution reads through a Snake, if the
    Snake is written as `snake_in_the_modulation` writes it; else None."""
    if conv.op_type != "Conv" or g.lengths(conv.input[1])[0] % TILE:
        return None
    found = g.chain(conv.input[0], "Add", "Sub", "BatchNormalization")
    return found[2] if found and g.made_by(found[1].input[1], "Cos") is not None else None
