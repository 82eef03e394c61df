"""A prosody graph that takes token ids filled up with pads, for providers that need a fixed number of ids.

Without a mask, the pads at the end would be spoken. They would also influence every id before them, through
attention, backward LSTMs, and the text encoder's convolutions. A mask removes each of these influences, so
durations, features, F0 and energy equal those of the ids alone, to the last bit. But ONNX Runtime fuses other
nodes in the graph with a mask: this moves F0 by up to 0.002 Hz, with or without pads, and with it the phase
of the voice (PESQ 4.54).

Core ML cannot compute an LSTM, so with it, prosody stays on the CPU, which needs no pads. The steps after the
durations need no mask: masked pads have a duration of 0, so the number of frames is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from kokoro_lab.g2p.vocab import PAD_ID
from kokoro_lab.graphs.rewriting import Graph, Model, Swaps, copied

MASK = "mask"
"""Name of an input of the padded prosody graph, float32 (1, n). It is 1 for the ids that are spoken and for
the usual pad at each end, and 0 for the ids that fill the input up."""
TOKEN_LENGTHS = (32, 64, 128, 256, 512)
"""Numbers of input ids, pads included, to which a padded graph's inputs would be filled up."""

_ATTENTION = "/encoder/bert/Where_2_output_0"
_CLIPPED = "/encoder/Clip_output_0"
_BY_FRAME = "/encoder/shared/"
_CLOSED = np.float32(-1e9)


def masked_ids(model: Model) -> Model:
    """Add the input `MASK` to the prosody stage, by which masked ids do not change durations, F0 and energy
    of the others."""
    g = Graph(model)
    if g.has_input(MASK):
        return model
    g.add_input(MASK, TensorProto.FLOAT, [1, "sequence_length"])
    one = g.constant("mask_one", np.float32(1))
    closed = g.constant("mask_closed", _CLOSED)
    head = [
        helper.make_node("Unsqueeze", [MASK, g.integers(1, 2)], ["mask/heads"], name="mask/heads"),
        helper.make_node("Unsqueeze", [MASK, g.integers(1)], ["mask/channels"], name="mask/channels"),
        helper.make_node("Sub", [one, "mask/heads"], ["mask/left_out"], name="mask/left_out"),
        helper.make_node("Mul", ["mask/left_out", closed], ["mask/bias"], name="mask/bias"),
        helper.make_node("ReduceSum", [MASK, g.integers(1)], ["mask/count"], name="mask/count", keepdims=0),
        helper.make_node("Cast", ["mask/count"], ["mask/ids"], name="mask/ids", to=TensorProto.INT32),
    ]
    swaps: Swaps = {}
    for node in g.graph.node:
        name = node.output[0]
        if name == _ATTENTION:
            swaps[name] = _behind(node, "Add", "mask/bias")
        elif name == _CLIPPED:
            swaps[name] = _behind(node, "Mul", MASK)
        elif node.op_type == "LSTM" and not node.name.startswith(_BY_FRAME):
            swaps[name] = (copied(node, [*node.input[:4], "mask/ids", *node.input[5:]]),)
        elif node.op_type == "Conv" and "/text_encoder/cnn." in node.name:
            masked = f"{node.name}/masked"
            swaps[name] = (
                helper.make_node("Mul", [node.input[0], "mask/channels"], [masked], name=masked),
                copied(node, [masked, *node.input[1:]]),
            )
    return g.rewritten(swaps, head)


def padded(
    token_ids: Sequence[int], lengths: Sequence[int] = TOKEN_LENGTHS
) -> dict[str, npt.NDArray[np.generic]]:
    """The inputs of the padded graph for `token_ids`, which are given without pads: `input_ids`, int64 (1,
    n), and the mask, float32 (1, n). n is the first of `lengths` that holds the ids and a pad at each end."""
    spoken = [PAD_ID, *token_ids, PAD_ID]
    n = next(length for length in lengths if length >= len(spoken))
    ids = np.full((1, n), PAD_ID, np.int64)
    ids[0, : len(spoken)] = spoken
    return {"input_ids": ids, MASK: (np.arange(n) < len(spoken)).astype(np.float32)[None]}


def _behind(node: NodeProto, op: str, other: str) -> Sequence[NodeProto]:
    """A copy of the node, and a node with the operator `op` that combines the copy's output with `other`. The
    latter takes the node's place."""
    copy = copied(node, output=f"{node.name}/unmasked")
    return copy, helper.make_node(op, [copy.output[0], other], [node.output[0]], name=f"{node.name}/masked")
