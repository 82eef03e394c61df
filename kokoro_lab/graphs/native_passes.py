"""Rewrites that put operators of our own (`native/`) in the place of ONNX Runtime's.

Like those of `passes`: each takes a model, returns a new one, and keeps the numbers up to rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper, numpy_helper

from kokoro_lab.graphs import rewriting
from kokoro_lab.graphs.fast_fir import TILE, FastFir, packed
from kokoro_lab.graphs.passes import KNOWN

NATIVE_DOMAIN = "kokoro_lab"


def phases_for(taps: int) -> int:
    """How many phases a convolution is fastest in, measured with AVX-512.

    Four, which take 0.70 of ONNX Runtime's time with seven and eleven taps, but two for three taps. Four
    multiply less there too, but on the few channels of the vocoder their sums and differences cost more than
    that saves, and on the many of the trunk they read half as much again of weights: of 60 or 90 frames it
    then took 1.3 times as long, of 120 to 150 as long.
    """
    return 4 if taps >= 7 else 2 if taps > 1 else 1


def snake_convolutions(model: rewriting.Model) -> rewriting.Model:
    """Modulation, Snake and the convolution behind them as one operator of ours, `native/fast_conv.cpp`.

    It multiplies less (see `fast_fir`), and never makes a column matrix.
    """
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for conv in g.graph.node:
        modulation = modulation_of(g, conv)
        if modulation is not None:
            inputs = [modulation.input[0], *_taken_apart(g, conv), *modulation.input[1:3]]
            swaps[conv.output[0]] = (native_node("SnakeConv", inputs, conv, reach=reach_of(g, conv)),)
    return with_native(g, swaps)


BY_PLACE = {"SnakeConv": 8, "QuantSnakeConv": 10}
"""Operators of ours that add a tensor to what comes out of them, and which input that is."""


def sums_of_convolutions(model: rewriting.Model) -> rewriting.Model:
    """A sum of a convolution of ours and what comes by it, taken where the convolution puts its outputs."""
    g = rewriting.Graph(model)
    readers = Counter(name for node in g.graph.node for name in node.input)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for node in g.graph.node:
        for name, by in (tuple(node.input), tuple(node.input[::-1])) if node.op_type == "Add" else ():
            conv = g.maker.get(name)
            place = BY_PLACE.get(conv.op_type) if conv is not None else None
            if conv is None or place is None or by in g.constants:  # what is known may be one value a channel
                continue
            if readers[name] == 1 and len(conv.input) <= place:
                made = rewriting.renamed(conv, node.output[0])
                made.input.extend(["" for _ in range(place - len(conv.input))] + [by])
                swaps[node.output[0]] = (made,)
                break
    g.replace(swaps)
    return g.model


def exact_stft(model: rewriting.Model) -> rewriting.Model:
    """The STFT of the excitation as an operator of ours, equal to ONNX Runtime's to the last bit."""
    g = rewriting.Graph(model)
    stft = next((n for n in g.graph.node if n.op_type == "STFT"), None)
    if stft is None:
        return model
    signal, hop, window, size = stft.input
    turned = next(n for n in g.graph.node if stft.output[0] in n.input)
    parts = {int(g.value(n.input[1])): n.output[0] for n in g.graph.node if turned.output[0] in n.input}
    inputs = [signal, window, g.constant("stft/hop", g.value(hop).reshape(1))]
    halves = g.constant("stft/halves", np.full(2, int(g.value(size)) // 2 + 1, np.int64))
    both = helper.make_node("ExactStft", inputs, ["stft/both"], name=stft.name, domain=NATIVE_DOMAIN)
    split = helper.make_node("Split", ["stft/both", halves], ["stft/real", "stft/imaginary"], axis=1)
    real = helper.make_node("Identity", ["stft/real"], [parts[0]])
    imaginary = helper.make_node("Identity", ["stft/imaginary"], [parts[1]])
    return with_native(g, {parts[0]: (both, split, real), parts[1]: (imaginary,)})


def phases(model: rewriting.Model) -> rewriting.Model:
    """The phases of the excitation's overtones as an operator of ours; the sound is equal to the last bit.

    ONNX Runtime interpolates them on one core, and takes the sines of frames without a voice as well, to
    multiply them by 0. Ours are 0 there. Sines stay ONNX Runtime's own: from one that is rounded otherwise,
    angles in the spectrum of the source turn around.
    """
    g = rewriting.Graph(model)
    for sine in (n for n in g.graph.node if n.op_type == "Sin"):
        turned = g.maker[sine.input[0]]
        between = g.maker.get(turned.input[0])
        if turned.op_type == "Transpose" and between is not None and between.op_type == "Resize":
            break
    else:
        return model
    softer, voiced = islice(_line(g, sine), 2)
    threshold = g.value(g.maker[g.maker[voiced.input[1]].input[0]].input[1]).item()
    rest = np.array([threshold, g.value(between.input[2])[-1]], np.float32)
    inputs = [between.input[0], g.graph.input[0].name, g.constant("phases/rest", rest)]
    swaps: dict[str, Sequence[NodeProto]] = {
        turned.output[0]: (native_node("Phases", inputs, turned),),
        voiced.output[0]: (helper.make_node("Identity", list(softer.output), list(voiced.output)),),
    }
    return with_native(g, swaps)


def statistics(model: rewriting.Model) -> rewriting.Model:
    """Each choice of `own_statistics_unless_known` as an operator of ours: the branches took longer to begin
    than to carry out, and ONNX Runtime's sums are rounded otherwise on another processor."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for choice in g.graph.node:
        if choice.op_type == "If" and choice.input[0] == KNOWN:
            given, own = (
                next(a.g for a in choice.attribute if a.name == branch)
                for branch in ("then_branch", "else_branch")
            )
            inputs = [own.node[0].input[0], *(node.input[0] for node in given.node), KNOWN]
            swaps[choice.output[0]] = (native_node("Statistics", inputs, choice),)
    return with_native(g, swaps)


def _line(g: rewriting.Graph, node: NodeProto) -> Iterator[NodeProto]:
    """The nodes behind `node`, each the only one that reads the one before."""
    while True:
        (node,) = (other for other in g.graph.node if node.output[0] in other.input)
        yield node


WIDE_CHANNELS = 256
"""Convolutions with fewer input channels are not worth a pass over their input."""


def fast_convolutions(model: rewriting.Model) -> rewriting.Model:
    """Wide convolutions over time as an operator of ours that multiplies less."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {
        conv.output[0]: (native_node("FastConv", [conv.input[0], *_taken_apart(g, conv)], conv),)
        for conv in g.graph.node
        if _keeps_length(g, conv)
    }
    return with_native(g, swaps)


PANEL = 32
"""Outputs that `native/product.cpp` keeps together."""


def known_products(model: rewriting.Model) -> rewriting.Model:
    """Products with a matrix that is known beforehand as an operator of ours, equal to the last bit."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for node in g.graph.node:
        if node.op_type == "MatMul" and node.input[1] in g.constants:
            weight = g.value(node.input[1])
            if weight.ndim == 2 and not weight.shape[1] % PANEL:
                # One matrix may be a dozen layers'
                weights = g.constant(f"{node.input[1]}/panels", in_panels(weight))
                swaps[node.output[0]] = (native_node("Product", [node.input[0], weights], node),)
    if not swaps:
        return model
    made = with_shapes(with_native(g, swaps), model)
    # For the same reason it must find a bias in the second place
    for node in made.graph.node:
        if node.op_type == "Add" and node.input[1] in swaps:
            node.input[:] = reversed(node.input)
    return made


def in_panels(weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[K, M] as [M / PANEL, K, PANEL]."""
    return np.ascontiguousarray(weight.reshape(len(weight), -1, PANEL).transpose(1, 0, 2))


def with_shapes(made: rewriting.Model, model: rewriting.Model) -> rewriting.Model:
    """Behind an operator of ours, ONNX Runtime fuses what it does behind its own if it is told the shapes; so
    sums are rounded alike."""
    made.graph.value_info.extend(rewriting.inferred(model))
    return made


HIDDEN = 64
"""Of a recurrence, `native/bi_lstm.cpp` takes so many units at a time."""


def recurrences(model: rewriting.Model) -> rewriting.Model:
    """LSTMs in both directions, from a state of zeros, as an operator of ours, equal to the last bit."""
    g = rewriting.Graph(model)
    swaps: dict[str, Sequence[NodeProto]] = {}
    for node in g.graph.node:
        if node.op_type == "LSTM" and _fits(g, node):
            x, *weights, bias = node.input[:4]
            inputs = [x, *(g.constant(f"{name}/panels", _both_in_panels(g.value(name))) for name in weights)]
            inputs.append(g.constant(f"{bias}/both", g.value(bias).reshape(2, 2, -1)))
            made = helper.make_node("BiLstm", inputs, node.output[:1], name=node.name, domain=NATIVE_DOMAIN)
            swaps[node.output[0]] = (made,)
    return with_shapes(with_native(g, swaps), model) if swaps else model


def _both_in_panels(weight: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[2, M, K] as [2, M / PANEL, K, PANEL]."""
    directions, outputs, inputs = weight.shape
    panels = weight.reshape(directions, outputs // PANEL, PANEL, inputs)
    return np.ascontiguousarray(panels.swapaxes(2, 3))


def _fits(g: rewriting.Graph, lstm: NodeProto) -> bool:
    """Whether an LSTM is a plain one: both directions, one sentence, no state but zeros, none handed on."""
    said = {a.name: helper.get_attribute_value(a) for a in lstm.attribute}
    lengths, hidden, cell, peepholes = [*lstm.input[4:], "", "", "", ""][:4]
    read = {name for other in g.graph.node for name in other.input} | {o.name for o in g.graph.output}
    return (
        said.keys() <= {"direction", "hidden_size"}
        and said.get("direction") == b"bidirectional"
        and said["hidden_size"] % HIDDEN == 0
        and all(name in g.constants for name in lstm.input[1:4])
        and not lengths
        and not peepholes
        and all(_is_zero(g, state) for state in (hidden, cell) if state)
        and not any(name in read for name in lstm.output[1:] if name)
    )


def _is_zero(g: rewriting.Graph, name: str) -> bool:
    """Whether a tensor is known to hold zeros alone."""
    if name in g.constants:
        return not g.value(name).any()
    maker = g.maker.get(name)
    if maker is None or maker.op_type != "ConstantOfShape":
        return False
    return not any(numpy_helper.to_array(a.t).any() for a in maker.attribute)


def _keeps_length(g: rewriting.Graph, conv: NodeProto) -> bool:
    """Whether a node is a wide convolution with zero padding and no stride."""
    if conv.op_type != "Conv" or conv.input[1] not in g.constants:
        return False
    shape = tuple(g.constants[conv.input[1]].dims)
    if len(shape) != 3 or shape[0] % TILE or shape[1] < WIDE_CHANNELS or not shape[2] % 2:
        return False
    with_lists = {a.name: tuple(a.ints) for a in conv.attribute if a.ints}
    group = next((a.i for a in conv.attribute if a.name == "group"), 1)
    reach = reach_of(g, conv)
    return (
        group == 1
        and dilation_of(conv) % 2 == 1
        and with_lists.get("strides", (1,)) == (1,)
        and with_lists.get("pads", (0, 0)) == (reach, reach)
    )


def dilation_of(conv: NodeProto) -> int:
    return next((int(a.ints[0]) for a in conv.attribute if a.name == "dilations"), 1)


def reach_of(g: rewriting.Graph, conv: NodeProto) -> int:
    """How many columns on either side of one a convolution of an odd number of taps looks at."""
    return int(g.constants[conv.input[1]].dims[2]) // 2 * dilation_of(conv)


def _taken_apart(g: rewriting.Graph, conv: NodeProto) -> list[str]:
    """Constants for a convolution of ours: plan, weights, bias."""
    weight = g.value(conv.input[1])
    dilation = dilation_of(conv)
    plan, weights = packed(FastFir.of(weight, dilation, phases_for(weight.shape[2])))
    bias = g.value(conv.input[2]) if len(conv.input) > 2 else np.zeros(weight.shape[0], np.float32)
    named: dict[str, npt.NDArray[Any]] = {"plan": plan, "weights": weights, "bias": bias}
    return [g.constant(f"{conv.name}/{name}", value) for name, value in named.items()]


def native_node(operator: str, inputs: Sequence[str], replaced: NodeProto, **attributes: Any) -> NodeProto:
    node: NodeProto = helper.make_node(
        operator, inputs, list(replaced.output), name=replaced.name, domain=NATIVE_DOMAIN, **attributes
    )
    return node


def with_native(g: rewriting.Graph, swaps: dict[str, Sequence[NodeProto]]) -> rewriting.Model:
    if swaps:
        g.model.opset_import.append(helper.make_opsetid(NATIVE_DOMAIN, 1))
        g.replace(swaps)
    return g.model


def modulation_of(g: rewriting.Graph, conv: NodeProto) -> NodeProto | None:
    """The batch normalisation of `modulate` that feeds a convolution through a Snake without factors."""
    if conv.op_type != "Conv" or g.value(conv.input[1]).shape[0] % TILE:
        return None
    snake = g.maker.get(conv.input[0])
    less = g.maker.get(snake.input[0]) if snake is not None and snake.op_type == "Add" else None
    if less is None or less.op_type != "Sub":
        return None
    modulation, cosine = (g.maker.get(name) for name in less.input)
    fits = modulation is not None and modulation.op_type == "BatchNormalization"
    return modulation if fits and cosine is not None and cosine.op_type == "Cos" else None
