"""Our own int8 on the real weights: it sounds like the float model, in a third of the bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import quant_passes, rewriting
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.making import make_stages, published_stages
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer, Range
from kokoro_lab.graphs.recipes import recipes
from kokoro_lab.lab.tuning.comparison import distances, heard_part
from kokoro_lab.lab.tuning.precision import checks_of, compare
from kokoro_lab.lab.tuning.reporter import ActivationReporter
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.native.operators import Native, native_operators
from kokoro_lab.speech.engine import Engine, load_engine

pytestmark = pytest.mark.model
LINES = ["The committee met again on Tuesday.", "She had never seen the sea so still, nor so bright."]
VOICES = ["af_heart", "bm_lewis"]
INT8 = replace(EngineConfig.from_settings(), variant="int8")


@pytest.fixture(scope="module")
def int8() -> StagedDecoder:
    return StagedDecoder(INT8)


@pytest.fixture(scope="module")
def stock() -> StagedDecoder:
    return StagedDecoder(replace(INT8, native="off"))


@pytest.fixture(scope="module")
def published() -> Mapping[str, rewriting.Model]:
    return published_stages(INT8)


@pytest.fixture(scope="module")
def fp32() -> StagedDecoder:
    return StagedDecoder(replace(INT8, variant="fp32"))


@pytest.mark.test_all
def test_with_the_same_prosody_it_sounds_like_the_float_model(
    fp32: StagedDecoder, int8: StagedDecoder
) -> None:
    table = compare(fp32, int8, LINES, VOICES)
    assert len(table) == 4
    assert all(check.passed for check in checks_of(table)), [str(c) for c in checks_of(table)]
    # Of some 150 durations a few change, by one frame of 25 ms; they do not add up
    assert table.changed_durations_count.sum() <= 12
    assert table.duration_change_s.abs().max() <= 0.1


@pytest.mark.test_all
def test_stock_operators_speak_the_same(int8: StagedDecoder, stock: StagedDecoder, engine: Engine) -> None:
    pesq = []
    for line, name in product(LINES, ("af_heart", "am_michael")):
        segment = next(engine.front_end.segments(line, "en-us", lambda _: None))
        style = engine.voice(name).style(len(segment.token_ids))
        contours = int8.prosody.contours(segment.token_ids, style, 1.0)
        ours, theirs = (d.vocoder.whole(d.prosody.behind(contours, style)) for d in (int8, stock))
        # The last bit of a cosine rounds to another byte now and then, and that byte to others further on:
        # the two differ by as little as either differs from floats
        assert signal_to_difference_db(ours, theirs) > 20
        heard = heard_part(ours)
        pesq.append(distances(ours[heard], theirs[heard])["pesq"])
    assert min(pesq) > 4.55


def test_its_files_are_small(int8: StagedDecoder) -> None:
    folder = stages_folder(INT8, native_operators(INT8))
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 100e6


@pytest.mark.test_all
def test_the_calibration_covers_every_layer_and_what_the_model_does(engine: Engine) -> None:
    segment = next(engine.front_end.segments(LINES[1], "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    calibration = Calibration.load()
    for layer, values in ActivationReporter(INT8)(segment.token_ids, style, 1.0):
        low, high = calibration[layer]
        outside = (values < low[:, None] * 1.01) | (values > high[:, None] * 1.01)
        assert outside.mean() < 0.003, layer


def wider(factor: float) -> Callable[[rewriting.Graph, NodeProto, Range], QuantisedLayer]:
    def quantised(g: rewriting.Graph, conv: NodeProto, inputs: Range) -> QuantisedLayer:
        return RIGHT(g, conv, Range(inputs.low * factor, inputs.high * factor))

    return quantised


def flipped(g: rewriting.Graph, conv: NodeProto, inputs: Range) -> QuantisedLayer:
    right = RIGHT(g, conv, inputs)
    return replace(right, scale=-right.scale)


RIGHT = quant_passes._quantised


@pytest.mark.test_all
@pytest.mark.parametrize(
    ("damage", "where"),
    [
        pytest.param(flipped, "resblocks.3/convs1.0", id="one scale is flipped"),
        pytest.param(wider(10), "resblocks.4", id="ranges of a block are too wide"),
        pytest.param(wider(0.3), "resblocks.4", id="ranges of a block are too narrow"),
    ],
)
def test_layers_that_are_quantised_wrong_are_caught(
    damage: Callable[[rewriting.Graph, NodeProto, Range], QuantisedLayer],
    where: str,
    published: Mapping[str, rewriting.Model],
    fp32: StagedDecoder,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def quantised(g: rewriting.Graph, conv: NodeProto, inputs: Range) -> QuantisedLayer:
        return (damage if where in conv.name else RIGHT)(g, conv, inputs)

    monkeypatch.setattr(quant_passes, "_quantised", quantised)
    native = native_operators(INT8).library is not None
    make_stages(tmp_path / "stages", INT8, recipes("int8", native), published)
    candidate = StagedDecoder(INT8, folder=tmp_path / "stages")
    table = compare(fp32, candidate, LINES[:1], ["af_heart"])
    assert not all(check.passed for check in checks_of(table))


def test_without_our_operators_nothing_of_ours_is_asked_for(stock: StagedDecoder) -> None:
    folder = stages_folder(INT8, Native(None, "off"))
    assert folder.name.split("-")[1] == "int8"
    assert "native" not in folder.name
    assert stock.details["native_operators"].startswith("none")


def test_the_whole_engine_speaks_it(engine: Engine) -> None:
    spoken = load_engine(config=replace(INT8, first_audio_ttl_s=0))
    clip = spoken.synthesize(LINES[0])
    streamed = spoken.stream(LINES[0])
    chunks = np.concatenate([chunk.samples for chunk in streamed])
    assert clip.report.variant == streamed.report.variant == "int8"
    assert abs(clip.report.audio_s - engine.synthesize(LINES[0]).report.audio_s) < 0.15
    assert abs(len(chunks) / 24_000 - clip.report.audio_s) < 0.05
