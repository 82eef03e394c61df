"""Weights kept in half precision: half the file, and floats again as soon as the graph is loaded."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.model import passes

LEAST_VALUES = 4096
"""Smaller constants are left alone: they hold sizes, biases and steps, and weigh nothing."""


def half_weights(model: passes.Model) -> passes.Model:
    """Store large float constants as float16, each with a cast behind it.

    ONNX Runtime works out the casts when it loads the graph, so nothing runs slower. Must come last: behind
    a cast, other passes do not see the constant.

    Raises
    ------
    ValueError
        A weight is too large for float16.
    """
    g = passes.Graph(model)
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
