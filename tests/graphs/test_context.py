"""Layers leave out the context that nobody looks at, and nothing that somebody does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import context_passes, native_passes, passes, rewriting, signatures
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.quant_passes import quantise_layers
from kokoro_lab.graphs.recipes import recipes
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.model.prosody import Prosody
from kokoro_lab.model.vocoder import CONTEXT_FRAMES, INNER_CONTEXT_FRAMES, Vocoder
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine
from tests.graphs.test_passes import CHANNELS, folded
from tests.graphs.test_quantise import a_range, conv

CONFIG = EngineConfig(threads=2)
Values = npt.NDArray[np.float32]


def operator(kind: str) -> Model:
    """A convolution of ours of eleven taps, alone; of a modulation and Snake in front of it too."""
    rng = np.random.default_rng(2)
    if kind == "QuantConv":
        weight = rng.normal(size=(72, CHANNELS, 11)).astype(np.float32)
        model = conv(weight, np.zeros(72, np.float32), 3)
    else:
        model = rewriting.apply(folded(), (passes.modulate, passes.snake_in_the_modulation))
    if kind == "SnakeConv":
        return native_passes.snake_convolutions(model)
    channels = rewriting.Graph(model).value(convolution_of(model).input[1]).shape[1]
    return quantise_layers(model, {convolution_of(model).name: a_range(channels)}, native=True)


def convolution_of(model: Model) -> onnx.NodeProto:
    return next(n for n in model.graph.node if "Conv" in n.op_type)


def told(model: Model, asked: tuple[int, int], rate: int, around: int) -> Model:
    """The same model, its convolution told what is asked for."""
    g = rewriting.Graph(model)
    convolution_of(g.model).input.extend(
        [
            g.constant("asked", np.array(asked, np.int64)),
            g.constant("around", np.array([rate, around], np.int64)),
        ]
    )
    return g.model


def feed_of(model: Model, length: int) -> dict[str, Values]:
    """Noise for each input of a model."""
    rng = np.random.default_rng(length)
    shapes = {i.name: i.type.tensor_type.shape.dim for i in model.graph.input}
    return {
        name: (rng.normal(size=[1 if d.dim_value == 1 else d.dim_value or length for d in dims]) * 2).astype(
            np.float32
        )
        for name, dims in shapes.items()
    }


@pytest.mark.parametrize("kind", ["SnakeConv", "QuantConv", "QuantSnakeConv"])
@pytest.mark.parametrize("length", [7, 96, 230, 600])
def test_the_columns_that_are_asked_for_have_the_bits_that_they_have_among_all(
    library: Path, kind: str, length: int
) -> None:
    model = operator(kind)
    assert convolution_of(model).op_type == kind
    feed = feed_of(model, length)
    (whole,) = make_session(model.SerializeToString(), CONFIG, library=library).run(None, feed)
    for first, last, rate, around in (
        (0, 1, 1, 0),
        (1, 3, 2, 1),
        (2, 9, 10, 13),
        (0, 60, 10, 5),
        (11, 14, 6, 70),
    ):
        partly = told(model, (first, last), rate, around)
        for threads in (1, 2):
            config = replace(CONFIG, threads=threads)
            (found,) = make_session(partly.SerializeToString(), config, library=library).run(None, feed)
            columns = slice(max(0, first * rate - around), min(length, last * rate + around))
            np.testing.assert_array_equal(found[..., columns], whole[..., columns])
            assert np.isfinite(found).all()


def test_what_is_far_from_what_is_asked_for_is_not_even_read(library: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(1, CHANNELS, 900)).astype(np.float32)
    x[..., :200] = x[..., 600:] = np.nan
    feed = {"x": x, "scale": np.ones(CHANNELS, np.float32), "shift": np.zeros(CHANNELS, np.float32)}
    model = told(operator("SnakeConv"), (40, 50), 10, 0)
    (found,) = make_session(model.SerializeToString(), CONFIG, library=library).run(None, feed)
    assert np.isfinite(found).all()
    assert found[..., 400:500].any()
    assert not found[..., :300].any()
    assert not found[..., 600:].any()


@pytest.fixture(scope="module", params=["fp32", "int8"])
def vocoder(request: pytest.FixtureRequest) -> tuple[Vocoder, Model, EngineConfig, Path | None]:
    config = EngineConfig(variant=request.param)
    native = native_operators(config)
    folder = stages_folder(config, native)
    graph = onnx.load(signatures.graph_path(folder, "vocoder"))
    return Vocoder(folder, config, native), graph, config, native.library


def window(
    model: Model,
    vocoder: tuple[Vocoder, Model, EngineConfig, Path | None],
    prosody: Prosody,
    span: tuple[int, int],
    asked: tuple[int, int],
) -> Values:
    """The samples of trunk frames `span`, where those of `asked` are asked for."""
    known, _, config, library = vocoder
    scale, shift = known.layers.scale_and_shift(*StatisticsPredictor.load().predict(prosody), prosody.style)
    a, b = span[0] - CONTEXT_FRAMES, span[1] + CONTEXT_FRAMES
    inner = np.array([span[0] - INNER_CONTEXT_FRAMES, span[1] + INNER_CONTEXT_FRAMES, *asked]) - a
    size = signatures.TRUNK_FRAME_SAMPLES
    feed = {
        signatures.TRUNK: np.ascontiguousarray(prosody.trunk[:, :, a:b]),
        signatures.EXCITATION: prosody.excitation[:, a * size : b * size + signatures.STFT_SIZE_SAMPLES],
        signatures.SCALE: scale,
        signatures.SHIFT: shift,
        signatures.INNER: inner,
        signatures.KNOWN: np.array(True),
    }
    (samples,) = make_session(model.SerializeToString(), config, library=library).run(None, feed)
    margin = INNER_CONTEXT_FRAMES * size
    return np.asarray(samples, np.float32).reshape(-1)[margin:-margin]


def looking_less_far(model: Model, columns: int, rate: int) -> Model:
    """Every layer of a half works out so many columns less on either side."""
    g = rewriting.Graph(model)
    for name in list(g.constants):
        if name.endswith("/around") and g.value(name)[0] == rate:
            g.constant(name, g.value(name) - np.array([0, columns]))
    return g.model


@pytest.fixture(scope="module")
def prosody(engine: Engine) -> Prosody:
    line = "He said that the ships, with all the fishers, have left the harbour for the open sea."
    segment = next(engine.front_end.segments(line, "en-us", lambda _: None))
    return engine.decoder.prosody.predict(  # type: ignore[attr-defined]  # the decoder of stages, not the protocol's
        segment.token_ids, engine.voice("af_heart").style(len(segment.token_ids)), 1.0
    )


@pytest.mark.model
@pytest.mark.parametrize("span", [(60, 71), (80, 96), (100, 130)])
def test_a_window_of_which_only_what_is_looked_at_is_worked_out_is_the_same(
    vocoder: tuple[Vocoder, Model, EngineConfig, Path | None], prosody: Prosody, span: tuple[int, int]
) -> None:
    model = vocoder[1]
    everything = (span[0] - CONTEXT_FRAMES, span[1] + CONTEXT_FRAMES)
    whole = window(model, vocoder, prosody, span, everything)
    # A fast convolution adds up neighbours that cancel, so what is left out moves the last bits
    assert signal_to_difference_db(whole, window(model, vocoder, prosody, span, span)) > 108


@pytest.mark.model
@pytest.mark.parametrize(("rate", "columns"), [(60, 1), (10, 8)])
def test_a_layer_that_looks_less_far_is_noticed(
    vocoder: tuple[Vocoder, Model, EngineConfig, Path | None], prosody: Prosody, rate: int, columns: int
) -> None:
    model, span = vocoder[1], (60, 71)
    whole = window(model, vocoder, prosody, span, (span[0] - CONTEXT_FRAMES, span[1] + CONTEXT_FRAMES))
    less = window(looking_less_far(model, columns, rate), vocoder, prosody, span, span)
    assert signal_to_difference_db(whole, less) < 100


@pytest.mark.model
def test_every_convolution_between_the_upsamplings_and_the_end_is_told(library: Path) -> None:
    config = EngineConfig(variant="fp32")
    stage, recipe = recipes("fp32", native=True)["vocoder"]
    model = rewriting.apply(published_stages(config)[stage], recipe)
    told_of = [n.input[6:8] for n in model.graph.node if n.op_type == "SnakeConv"]
    assert all(len(inputs) == 2 and all(inputs) for inputs in told_of)
    assert context_passes.only_what_is_looked_at(model) is model


def test_a_graph_that_is_not_cropped_is_left_alone() -> None:
    model = folded()
    assert context_passes.only_what_is_looked_at(model) is model
