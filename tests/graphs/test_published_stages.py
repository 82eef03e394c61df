"""Passes against the published stages that they rewrite; and that no pass of a recipe lacks such a test."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kokoro_lab.config import STAGED
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs import passes, signatures
from kokoro_lab.graphs.making import published_stages
from kokoro_lab.graphs.recipes import Recipes, recipes
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.lab.conversion import exports
from kokoro_lab.metrics.perceptual import signal_to_difference_db
from kokoro_lab.model import static_vocoder
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine

LINE = "The kettle is on."
OUTPUTS = list(signatures.STAGES["prosody"][1])
DURATIONS = OUTPUTS.index(signatures.DURATIONS)


@pytest.fixture(scope="module")
def stages() -> Mapping[str, Model]:
    return published_stages(EngineConfig(variant="fp32"))


@pytest.fixture(scope="module")
def asked(engine: Engine) -> dict[str, np.ndarray]:
    """What prosody is given for a line, but for its speed."""
    segment = next(engine.front_end.segments(LINE, "en-us", lambda _: None))
    style = engine.voice("af_heart").style(len(segment.token_ids))
    return {"input_ids": np.array([[0, *segment.token_ids, 0]], np.int64), "style": style}


@pytest.fixture(scope="module")
def decoded(engine: Engine, asked: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the vocoder is given for it."""
    assert isinstance(engine.decoder, StagedDecoder)
    style = asked["style"]
    found = engine.decoder.prosody.predict(asked["input_ids"][0, 1:-1].tolist(), style, 1.0)
    return {
        signatures.TRUNK: found.trunk,
        signatures.EXCITATION: found.excitation,
        signatures.DECODER_STYLE: style[:, :128],
    }


def run(model: Model, outputs: list[str], feed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    session = make_session(model.SerializeToString(), EngineConfig(threads=2))
    found: list[np.ndarray] = session.run(outputs, dict(feed))
    return found


@pytest.mark.model
def test_one_speed_for_all_ids_is_the_published_prosody_to_the_last_bit(
    stages: Mapping[str, Model], asked: dict[str, np.ndarray]
) -> None:
    ours = passes.speed_by_token(stages["prosody"])
    assert passes.speed_by_token(ours) == ours
    speed = {"speed": np.array([1.2], np.float32)}
    theirs = run(stages["prosody"], OUTPUTS, asked | speed)
    for_each = {"speed": np.full(asked["input_ids"].shape[1], 1.2, np.float32)}
    for given in (speed, for_each):
        for a, b in zip(theirs, run(ours, OUTPUTS, asked | given), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.model
def test_each_id_has_the_duration_of_its_own_speed(
    stages: Mapping[str, Model], asked: dict[str, np.ndarray]
) -> None:
    ours = passes.speed_by_token(stages["prosody"])
    count = asked["input_ids"].shape[1]
    speeds = np.where(np.arange(count) % 2, np.float32(0.6), np.float32(1.7)).astype(np.float32)
    slow, fast = (
        run(stages["prosody"], OUTPUTS, asked | {"speed": np.array([s], np.float32)})[DURATIONS].reshape(-1)
        for s in (0.6, 1.7)
    )
    assert (slow != fast).any()
    found = run(ours, OUTPUTS, asked | {"speed": speeds})[DURATIONS].reshape(-1)
    np.testing.assert_array_equal(found, np.where(np.arange(count) % 2, slow, fast))


@pytest.mark.model
def test_the_overlap_add_without_its_scatter_is_the_published_one(
    stages: Mapping[str, Model], decoded: dict[str, np.ndarray]
) -> None:
    theirs = passes.fold_constants(stages["vocoder"])
    ours = passes.plain_overlap_add(theirs)
    assert "ScatterND" not in {node.op_type for node in ours.graph.node}
    (published,), (rewritten,) = (run(m, [signatures.WAVEFORM], decoded) for m in (theirs, ours))
    assert signal_to_difference_db(published.reshape(-1), rewritten.reshape(-1)) > 100


@pytest.mark.model
def test_a_second_half_that_is_not_cropped_gives_the_published_samples(
    stages: Mapping[str, Model], decoded: dict[str, np.ndarray]
) -> None:
    theirs = passes.fold_constants(stages["vocoder"])
    ours = passes.crop_before_the_second_half(theirs)
    frames = decoded[signatures.TRUNK].shape[2]
    inner = {signatures.INNER: np.array([0, frames, 0, frames])}
    (published,), (rewritten,) = (
        run(m, [signatures.WAVEFORM], feed) for m, feed in ((theirs, decoded), (ours, decoded | inner))
    )
    assert signal_to_difference_db(published.reshape(-1), rewritten.reshape(-1)) > 100


EVIDENCE = {
    "alike": "test_same_everywhere.py::test_what_stands_between_a_transformers_products",
    "arctangents": "test_same_everywhere.py::test_an_arctangent_is_right_to_its_last_digit_or_two",
    "attention": "test_attention.py::test_an_attention_layer_is_the_same_to_the_last_bit",
    "byte_recurrences": "test_passes.py::test_the_weights_of_an_lstm_are_kept_as_bytes",
    "canonical_shapes": "test_tidy_passes.py::test_not_a_bit_changes",
    "crop_before_the_second_half": (
        "test_published_stages.py::test_a_second_half_that_is_not_cropped_gives_the_published_samples"
    ),
    "divided_beforehand": "test_float_operators.py::test_a_division_is_done_by_the_weights",
    "drop_no_ops": "test_tidy_passes.py::test_not_a_bit_changes",
    "exact_stft": "../native/test_building.py::test_our_stft_is_onnx_runtimes_to_the_last_bit",
    "fast_convolutions": "test_float_operators.py::test_a_norm_is_part_of_the_convolution_behind_it",
    "fold_constants": "test_passes.py::test_the_same_inputs_give_the_same_output",
    "half_weights": "test_passes.py::test_weights_kept_in_half_precision_are_floats_again_when_loaded",
    "known_lengths": "test_tidy_passes.py::test_not_a_bit_changes",
    "known_products": "test_float_operators.py::test_the_models_prosody_is_the_published_one_to_the_last_bit",
    "masked_ids": "test_padding.py::test_what_is_spoken_is_the_same_to_the_last_bit",
    "modulate": "test_passes.py::test_given_its_statistics_the_graph_needs_no_look_at_the_whole",
    "norms": "test_same_everywhere.py::test_a_norm_and_its_style_are_operators_of_ours",
    "norms_in_convolutions": "test_float_operators.py::test_a_norm_is_part_of_the_convolution_behind_it",
    "own_statistics_unless_known": (
        "test_passes.py::test_one_graph_takes_its_own_statistics_or_those_that_it_is_given"
    ),
    "phases": "test_float_operators.py::test_the_models_excitation_is_the_published_one_to_the_last_bit",
    "plain_overlap_add": (
        "test_published_stages.py::test_the_overlap_add_without_its_scatter_is_the_published_one"
    ),
    "quantise_layers": "test_quantise.py::test_within_its_range_little_is_lost",
    "recurrences": "test_float_operators.py::test_the_models_prosody_is_the_published_one_to_the_last_bit",
    "repeated_afterwards": (
        "test_tidy_passes.py::test_columns_are_repeated_behind_what_looks_at_one_at_a_time"
    ),
    "snake_convolutions": "test_passes.py::test_given_its_statistics_the_graph_needs_no_look_at_the_whole",
    "snake_in_the_modulation": (
        "test_passes.py::test_given_its_statistics_the_graph_needs_no_look_at_the_whole"
    ),
    "speed_by_token": (
        "test_published_stages.py::test_one_speed_for_all_ids_is_the_published_prosody_to_the_last_bit"
    ),
    "squares_as_products": "test_passes.py::test_the_same_inputs_give_the_same_output",
    "statistics": "test_passes.py::test_one_graph_takes_its_own_statistics_or_those_that_it_is_given",
    "sums_of_convolutions": "test_sums.py::test_it_is_the_same_sum_to_the_last_bit",
    "told_statistics": (
        "../model/test_windowed_speech.py::test_a_trunk_that_is_told_nothing_has_the_bits_of_the_published_one"
    ),
}
"""Each pass of a recipe, and the test that compares what it makes with what it was given."""
COMPARED_AS_A_WHOLE = {
    "test_context.py::test_a_window_of_which_only_what_is_looked_at_is_worked_out_is_the_same": {
        "only_what_is_looked_at"
    },
    "../model/test_static_vocoder.py::test_each_size_gives_the_samples_of_the_segment_as_a_whole": {
        "spectrum_alone",
        "with_metadata",
        "behind_the_spectrum",
        "modulation_as_products",
        "reflection_as_a_slice",
        "inverse_stft_as_a_convolution",
        "fixed_shapes",
    },
}
"""Tests of graphs that all passes together have made, for the passes that give a graph other inputs."""
COMPARISONS = {"assert_allclose", "assert_array_equal", "array_equal", "signal_to_difference_db"}


def passes_of(made_by: Recipes) -> Iterator[str]:
    rewrite: Any
    for _, recipe in made_by.values():
        for rewrite in recipe:
            while isinstance(rewrite, partial):
                rewrite = rewrite.func
            yield rewrite.__name__


def named_in(nodes: Iterable[ast.AST]) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, (ast.Name, ast.Attribute))
    }


def read_by(test: str) -> set[str]:
    """Every name in a test, in its parameters, and in the functions of its file that it calls."""
    file, _, name = test.partition("::")
    tree = ast.parse((Path(__file__).parent / file).read_text("utf-8"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name in functions, f"there is no test {test}"
    found, waiting = set[str](), [name]
    while waiting:
        function = functions[waiting.pop()]
        arguments = {argument.arg for argument in function.args.args}
        new = (named_in([function]) | arguments) - found
        found |= new
        waiting += [each for each in new if each in functions]
    return found


def test_every_pass_of_every_recipe_is_compared_with_what_it_rewrites() -> None:
    every = {
        name for variant in STAGED for native in (False, True) for name in passes_of(recipes(variant, native))
    }
    every |= {*passes_of(exports.PADDED), *passes_of(static_vocoder.recipes())}
    assert every == set(EVIDENCE).union(*COMPARED_AS_A_WHOLE.values())
    for name, test in EVIDENCE.items():
        assert name in read_by(test), f"{test} does not name {name}"
    for test in (*EVIDENCE.values(), *COMPARED_AS_A_WHOLE):
        assert read_by(test) & COMPARISONS, f"{test} compares nothing"
