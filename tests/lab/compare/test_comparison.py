"""Configurations are measured apart and in turn; who cannot be measured is a row that says why."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.compare import comparison as ab
from kokoro_lab.lab.compare.comparison import COLD_TEXT, Comparison, compare, in_processes, pooled, repeat
from kokoro_lab.lab.compare.configurations import parse
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest, WholeGraph
from kokoro_lab.sessions.provider_registry import registry
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.weights.voices import VoiceCache
from tests import tiny_voice

pytestmark = pytest.mark.test_all  # engines in processes of their own

BASE = EngineConfig(variant="fp32", threads=1)
TEXTS = ["The kettle is on.", "She reads the letter twice.", "Rain again."]
COLD_AND_WARM = 3
"""Segments that are spoken before the texts: two of `COLD_TEXT`, and the longest text."""


class Later:
    """The tiny voice, which does something else from some segment on."""

    def __init__(self, decoder: WholeGraph, config: EngineConfig) -> None:
        self._decoder = decoder
        self._config = config
        self._segments = 0
        self.details = decoder.details
        self.predicts = decoder.predicts

    def decode(self, asked: SegmentRequest) -> DecodedSegment:
        decoded = self._decoder.decode(asked)
        self._segments += 1
        if self._segments > COLD_AND_WARM + len(TEXTS):  # the second prediction
            if self._config.optimisation == "none":
                raise RuntimeError("the provider gave up")
            if self._config.optimisation == "basic":
                os._exit(7)
            if self._config.optimisation == "extended":
                blocks = iter([0.5 * block for block in decoded.blocks])
                return DecodedSegment(decoded.durations, blocks, decoded.fallbacks)
        return decoded


def hum(config: EngineConfig) -> Engine:
    """An engine that hums, for another process; its optimisation says what goes wrong."""
    path = Path(tempfile.mkdtemp()) / "hum.onnx"
    decoder = WholeGraph(tiny_voice.build(path), config)
    voices = VoiceCache(lambda spec: replace(tiny_voice.voice(spec), language="es"))
    later = Later(decoder, config)
    return Engine(Parts(later, config, voices, "hum", lambda: decoder.placement))  # type: ignore[arg-type]


START = in_processes("hum", hum)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    written = "optimisation=extended; optimisation=none; optimisation=basic"
    return compare(parse(written, BASE), TEXTS, START, rounds=2)


def test_every_text_is_spoken_in_each_round_by_each_that_can_and_by_turns(comparison: Comparison) -> None:
    assert [c.name for c in comparison.configurations] == ["default", "optimisation=extended"]
    counted = Counter(
        zip(comparison.trials.system, comparison.trials.text_number, comparison.trials["round"], strict=True)
    )
    assert counted == {
        (c.name, number, round_): 1
        for c in comparison.configurations
        for number in range(len(TEXTS))
        for round_ in range(2)
    }
    assert set(comparison.trials.characters) == {len(text) for text in TEXTS}


def test_who_cannot_be_measured_is_a_row_that_says_why(comparison: Comparison) -> None:
    why = ab.starts_table(comparison)["why not"]
    assert "text 0, prediction 2: RuntimeError: the provider gave up" in why["optimisation=none"]
    assert "ended with code 7" in why["optimisation=basic"]
    assert why[["default", "optimisation=extended"]].isna().all()


def test_a_process_that_ends_between_two_texts_is_unavailable_too() -> None:
    with EngineProcess("hum", BASE, "hum", hum) as speaker:
        speaker._process.kill()  # as a system that has run out of memory does
        speaker._process.join()
        with pytest.raises(EngineFailed, match="ended with code -9"):
            speaker.speak(0, TEXTS[0])


def test_a_cold_start_is_apart_from_what_is_spoken_warm(comparison: Comparison) -> None:
    starts = ab.starts_table(comparison).loc[["default", "optimisation=extended"]]
    assert (starts.process_s > starts.load_s).all()
    assert (starts.first_ttfa_s > 0).all()
    assert COLD_TEXT not in TEXTS
    warm = ab.warm_table(comparison)
    assert (warm.predictions == 2 * len(TEXTS)).all()
    assert (warm.rss_peak_mb >= starts.loaded_mb).all()
    assert comparison.facts["default"]["active_provider"] == "CPUExecutionProvider"


def test_a_second_prediction_that_is_another_one_is_noticed(comparison: Comparison) -> None:
    sound = ab.sound_table(comparison)
    assert sound.unlike_again.to_dict() == {"default": 0, "optimisation=extended": len(TEXTS)}
    assert sound.snr_min_db["default"] == np.inf
    assert sound.snr_min_db["optimisation=extended"] < 20


def test_comparisons_are_pooled_without_mixing_their_texts(comparison: Comparison) -> None:
    both = pooled([comparison, comparison_as(comparison, repetition=1)])
    assert len(both.trials) == 2 * len(comparison.trials)
    assert ab.ratio(both.trials, "optimisation=extended", "wall_s", "default").units == 2 * len(TEXTS)


def comparison_as(comparison: Comparison, repetition: int) -> Comparison:
    trials = comparison.trials.assign(repetition=repetition)
    return Comparison(comparison.configurations, comparison.starts, trials, comparison.unavailable)


def test_without_the_first_configuration_there_is_nothing_to_compare_with() -> None:
    missing = next(line.provider.name for line in registry() if not line.available)
    base = EngineConfig(variant="fp32", threads=1, provider=missing)
    with pytest.raises(EngineFailed, match=missing):
        compare(parse("threads=2", base), TEXTS, START, rounds=2)


def test_one_configuration_one_round_and_no_text_are_no_comparison() -> None:
    both = parse("threads=2", BASE)
    for wrong in (
        {"configurations": both[:1], "texts": [TEXTS]},
        {"configurations": both, "texts": []},
        {"configurations": both, "texts": [[]]},
        {"configurations": both, "texts": [TEXTS], "rounds": 1},
    ):
        with pytest.raises(ParameterError):
            repeat(**wrong, start=START)  # type: ignore[arg-type]


def test_texts_are_distinct_and_about_as_long_as_asked_for() -> None:
    lengths = [len(text) for text in ab.texts_by_length([60, 300], 3)]
    assert len(lengths) == 6
    assert all(0.7 * 60 <= n <= 1.2 * 60 for n in lengths[:3])
    assert all(0.7 * 300 <= n <= 1.2 * 300 for n in lengths[3:])
