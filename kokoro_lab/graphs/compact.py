"""Weights kept in fewer bits: smaller files, and floats again as soon as the graph is loaded."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.graphs import rewriting

LEAST_VALUES = 4096
"""Smaller constants are left alone: they hold sizes, biases and steps, and weigh nothing."""


def half_weights(model: rewriting.Model) -> rewriting.Model:
    """Store large float constants as float16, each with a cast behind it.

    ONNX Runtime works out the casts when it loads the graph, so nothing runs slower. Must come last: behind
    a cast, other passes do not see the constant.

    Raises
    ------
    ValueError
        A weight is too large for float16.
    """
    g = rewriting.Graph(model)
    casts = []
    for tensor in list(g.graph.initializer):
        if tensor.data_type != TensorProto.FLOAT or np.prod(tensor.dims) < LEAST_VALUES:
            continue
        values = numpy_helper.to_array(tensor)
        if np.abs(values).max() > np.finfo(np.float16).max:
            raise ValueError(f"{tensor.name} has values beyond float16's range")
        name = tensor.name
        tensor.CopyFrom(numpy_helper.from_array(values.astype(np.float16), f"{name}/half"))
        casts.append(
            helper.make_node("Cast", [f"{name}/half"], [name], name=f"{name}/cast", to=TensorProto.FLOAT)
        )
    nodes = [*casts, *g.graph.node]
    del g.graph.node[:]
    g.graph.node.extend(nodes)
    return g.model


def byte_recurrences(model: rewriting.Model) -> rewriting.Model:
    """Store the weights of LSTMs as int8, each row with a step of its own; they are floats when they run.

    ONNX Runtime's LSTMs cannot run on integers with the accuracy that durations ask for, but they weigh
    40 MB, a third of what comes before the vocoder.
    """
    g = rewriting.Graph(model)
    made = []
    # In both, a step's inputs are the third axis of its weights
    recurrences = [n for n in g.graph.node if n.op_type in ("LSTM", "BiLstm")]
    for name in dict.fromkeys(w for n in recurrences for w in n.input[1:3]):
        tensor = g.constants[name]
        values = numpy_helper.to_array(tensor)
        step = np.maximum(np.abs(values).max(axis=2, keepdims=True), np.finfo(np.float32).tiny) / 127
        tensor.CopyFrom(numpy_helper.from_array(np.round(values / step).astype(np.int8), f"{name}/bytes"))
        g.graph.initializer.append(numpy_helper.from_array(step.astype(np.float32), f"{name}/step"))
        made += [
            helper.make_node("Cast", [f"{name}/bytes"], [f"{name}/levels"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}/levels", f"{name}/step"], [name]),
        ]
    nodes = [*made, *g.graph.node]
    del g.graph.node[:]
    g.graph.node.extend(nodes)
    return g.model
