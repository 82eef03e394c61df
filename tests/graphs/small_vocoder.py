"""A graph with inputs, output and every operator of a static vocoder, small enough to work out at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.graphs.signatures import SCALE, SHIFT
from kokoro_lab.graphs.static_passes import HOP_SAMPLES, SAMPLES, SPECTRUM, TRUNK

CHANNELS, FRAMES, WIDE = 8, 6, 70
SHAPES = {TRUNK: (1, CHANNELS, FRAMES), SPECTRUM: (1, 4, 2 * FRAMES), SCALE: (1, 16, 1), SHIFT: (1, 16, 1)}


def small_vocoder(seed: int = 3) -> Model:
    """Upsampling, a residual step with Snake, a crop, magnitudes and angles, five samples to a column."""
    rng = np.random.default_rng(seed)
    n = helper.make_node
    weights = {
        "up": rng.normal(size=(CHANNELS, WIDE, 4)) * 0.3,
        "source": rng.normal(size=(WIDE, 4, 3)) * 0.3,
        "mix": rng.normal(size=(CHANNELS, WIDE, 11)) * 0.1,
        "mix_bias": rng.normal(size=CHANNELS),
        "snaked": rng.normal(size=(CHANNELS, CHANNELS, 3))
        * 10.0 ** rng.uniform(-2, 1, size=(1, CHANNELS, 1)),
        "post": rng.normal(size=(6, CHANNELS, 3)) * 0.1,
        "out": rng.normal(size=(HOP_SAMPLES, 6, 4)) * 0.3,
        "one": np.array(1.0),
        "three": np.array(3.0),
    }
    constants: dict[str, npt.NDArray[Any]] = {k: v.astype(np.float32) for k, v in weights.items()}
    constants |= {f"k{k}": np.array([k], np.int64) for k in (0, 1, 2, 3, 6, 11)}
    constants |= {"halves": np.array([8, 8], np.int64)}
    nodes = [
        n("Split", [SCALE, "halves"], ["scale_0", "scale_1"], axis=1),
        n("Split", [SHIFT, "halves"], ["shift_0", "shift_1"], axis=1),
        n("LeakyRelu", [TRUNK], ["leaky"], alpha=0.1),
        n("ConvTranspose", ["leaky", "up"], ["upsampled"], strides=[2], pads=[1, 1]),
        n("Conv", [SPECTRUM, "source"], ["sourced"], pads=[1, 1]),
        n("Add", ["upsampled", "sourced"], ["summed"]),
        n("Conv", ["summed", "mix", "mix_bias"], ["mixed"], pads=[10, 10], dilations=[2]),
        n("Mul", ["mixed", "scale_0"], ["scaled"]),
        n("Add", ["scaled", "shift_0"], ["y"]),
        n("Cos", ["y"], ["cosine"]),
        n("Sub", ["y", "cosine"], ["less"]),
        n("Add", ["less", "one"], ["step/snake"]),
        n("Conv", ["step/snake", "snaked"], ["turned"], pads=[1, 1], name="step"),
        n("Div", ["turned", "three"], ["third"]),
        n("Slice", ["third", "k1", "k11", "k2"], ["cropped"]),
        n("Slice", ["cropped", "k1", "k2", "k2"], ["column"]),
        n("Concat", ["column", "cropped"], ["reflected"], axis=2),
        n("Conv", ["reflected", "post"], ["posted"], pads=[1, 1], name="conv_post"),
        n("Slice", ["posted", "k0", "k3", "k1"], ["logs"]),
        n("Slice", ["posted", "k3", "k6", "k1"], ["angles"]),
        n("Exp", ["logs"], ["magnitudes"]),
        n("Sin", ["angles"], ["sines"]),
        n("Concat", ["magnitudes", "sines"], ["both"], axis=1),
        n("Conv", ["both", "out"], [SAMPLES], pads=[1, 1]),
    ]
    graph = helper.make_graph(
        nodes,
        "small vocoder",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES.items()],
        [helper.make_tensor_value_info(SAMPLES, TensorProto.FLOAT, (1, HOP_SAMPLES, 10))],
        [numpy_helper.from_array(v, name) for name, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def small_feed(seed: int = 5) -> dict[str, npt.NDArray[np.float32]]:
    """Something to decode."""
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
