"""A segment goes to the provider that costs least for its length, and the report says why."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError
from kokoro_lab.model.choosing import (
    LENGTHS,
    MARGIN,
    PREDICTIONS,
    ByCost,
    PlacedDecoder,
    chosen_by_cost,
    measured_cost,
)
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.sessions.cost_cache import FILE, SegmentCost
from kokoro_lab.sessions.provider_registry import usable_providers
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from tests import tiny_voice
from tests.sessions.fake_provider import FakeProvider

STEADY = SegmentCost(((20, 0.02), (200, 0.2)))
LATE = SegmentCost(((20, 0.05), (200, 0.06)))
"""Slow to begin with, and fast then: as an accelerator is."""
TEXT = (
    "Hello. The river leaves the hills without hurry, turns twice around the mill, and comes to rest at last."
)


@pytest.fixture
def config(tmp_path: Path) -> EngineConfig:
    return EngineConfig(
        variant="fp32", threads=1, first_audio_ttl_s=0, provider_choice="measured", home=tmp_path
    )


@pytest.fixture
def decoder(tmp_path: Path, config: EngineConfig) -> WholeGraph:
    return WholeGraph(tiny_voice.build(tmp_path / "hum.onnx"), config)


def engine_with(decoder: PlacedDecoder, config: EngineConfig, **said: object) -> Engine:
    parts = Parts(decoder, config, tiny_voice.VOICES, "hum", lambda: decoder.placement)
    return Engine(replace(parts, **said))  # type: ignore[arg-type]


def test_each_segment_is_spoken_by_the_provider_that_costs_least_and_the_report_says_why(
    decoder: WholeGraph, config: EngineConfig
) -> None:
    chooser = ByCost({"cpu": decoder, "coreml": decoder}, {"cpu": STEADY, "coreml": LATE})
    clip = engine_with(chooser, config).synthesize(TEXT, voice="hum")
    choices = clip.report.choices
    assert [c.segment_id for c in choices] == [s.segment_id for s in clip.segments]
    assert [c.token_count for c in choices] == [len(s.token_ids) for s in clip.segments]
    by_length = {c.token_count: c for c in choices}
    short, long = by_length[min(by_length)], by_length[max(by_length)]
    assert (short.provider, long.provider) == ("cpu", "coreml")
    assert chooser.choose(20).provider == "cpu"
    assert chooser.choose(200).provider == "coreml"
    assert chooser.choose(200).reason == "costs least for 200 token ids: cpu 200 ms, coreml 60 ms"


@pytest.mark.parametrize(("share", "chosen"), [(1 - MARGIN / 2, "cpu"), (1 - 1.5 * MARGIN, "coreml")])
def test_the_first_provider_wins_ties(decoder: WholeGraph, share: float, chosen: str) -> None:
    other = SegmentCost(tuple((n, share * s) for n, s in STEADY.points))
    chooser = ByCost({"cpu": decoder, "coreml": decoder}, {"cpu": STEADY, "coreml": other})
    assert chooser.choose(100).provider == chosen


def test_with_one_provider_nothing_is_chosen_or_measured_and_the_report_says_so(
    decoder: WholeGraph, config: EngineConfig
) -> None:
    found, fallbacks, reason = chosen_by_cost(config, "hum", _no_voice, lambda _: decoder, ["cpu"])
    assert (found, fallbacks) == (decoder, ())
    report = engine_with(found, config, provider_reason=reason).synthesize(TEXT, voice="hum").report
    assert {(c.provider, c.reason) for c in report.choices} == {
        ("CPUExecutionProvider", "cpu is the only provider here: there is nothing to choose")
    }
    assert not (config.home / FILE).exists()  # type: ignore[operator]


def test_costs_are_measured_once_and_reused_at_the_next_start(
    decoder: WholeGraph, config: EngineConfig
) -> None:
    def chosen() -> PlacedDecoder:
        found, fallbacks, _ = chosen_by_cost(config, "hum", voice, lambda _: decoder, ["cpu", "coreml"])
        assert not fallbacks
        return found

    asked = []

    def voice() -> object:
        asked.append(1)
        return tiny_voice.voice("hum")

    first, second = chosen(), chosen()
    assert len(asked) == 2, "once for each provider"
    assert first.details == second.details


def test_a_damaged_file_of_costs_is_recorded_logged_and_measured_anew(
    decoder: WholeGraph, config: EngineConfig, caplog: pytest.LogCaptureFixture
) -> None:
    path = config.home / FILE  # type: ignore[operator]
    path.write_text("{")
    with caplog.at_level(logging.WARNING):
        found, fallbacks, _ = chosen_by_cost(
            config, "hum", lambda: tiny_voice.voice("hum"), lambda _: decoder, ["cpu", "coreml"]
        )
    assert isinstance(found, ByCost)
    assert "cannot be read" in fallbacks[0].reason
    assert "cannot be read" in caplog.text
    again = chosen_by_cost(config, "hum", _no_voice, lambda _: decoder, ["cpu", "coreml"])
    assert again[1] == ()
    report = engine_with(found, config, fallbacks=fallbacks).synthesize("Hello.", voice="hum").report
    assert fallbacks[0] in report.fallbacks


def test_a_provider_that_cannot_load_is_left_out_and_named(decoder: WholeGraph, config: EngineConfig) -> None:
    def make(of: EngineConfig) -> PlacedDecoder:
        if of.provider == "coreml":
            raise ProviderError("Core ML refuses this model.")
        return decoder

    found, fallbacks, reason = chosen_by_cost(config, "hum", _no_voice, make, ["cpu", "coreml"])
    assert found is decoder
    assert "coreml is left out: Core ML refuses this model." in fallbacks[0].reason
    assert "only provider" in reason
    with pytest.raises(ProviderError, match="refuses"):
        chosen_by_cost(config, "hum", _no_voice, make, ["coreml"])


def test_costs_of_a_provider_that_is_lost_meanwhile_are_not_kept_as_its_own(
    tmp_path: Path, decoder: WholeGraph, config: EngineConfig, coreml: FakeProvider
) -> None:
    coreml.breaks_at = 3
    on_coreml = WholeGraph(tmp_path / "hum.onnx", replace(config, provider="coreml"))
    made = {"cpu": decoder, "coreml": on_coreml}
    _, fallbacks, _ = chosen_by_cost(
        config, "hum", lambda: tiny_voice.voice("hum"), lambda of: made[of.provider], ["cpu", "coreml"]
    )
    assert on_coreml.placement.active_provider == decoder.placement.active_provider
    assert [f.reason for f in fallbacks] == ["not kept: coreml was lost while it was measured"]
    assert not (config.home / FILE).exists()  # type: ignore[operator]


def test_a_broken_stream_does_not_go_on_where_other_choices_are_made(decoder: WholeGraph) -> None:
    pair = {"cpu": decoder, "coreml": decoder}
    one, other = ByCost(pair, {"cpu": STEADY, "coreml": LATE}), ByCost(pair, {"cpu": LATE, "coreml": LATE})
    assert one.details != other.details


def test_a_cost_is_the_median_of_all_predictions_but_the_first(decoder: WholeGraph) -> None:
    lasting = [9.0, *range(1, PREDICTIONS + 1)]  # the first one compiles
    times = iter([t for last in lasting * len(LENGTHS) for t in (0.0, last)])
    cost = measured_cost(decoder, tiny_voice.voice("hum"), clock=lambda: next(times))
    assert cost == SegmentCost(tuple((n, 2.0) for n in LENGTHS))


def test_the_cpu_is_always_to_be_had_and_comes_first() -> None:
    assert usable_providers()[0] == "cpu"


@pytest.mark.model
def test_a_second_prosody_model_for_what_comes_next_changes_no_more_than_rounding(engine: Engine) -> None:
    from kokoro_lab.metrics.perceptual import signal_to_difference_db
    from kokoro_lab.speech.engine import load_engine

    text = "This one is short. And that one comes next."
    plain = engine.stream(text, voice="af_heart", cached=False).joined()
    both = load_engine(config=replace(engine.config, next_threads=1))
    dual = both.stream(text, voice="af_heart", cached=False).joined()
    assert dual.report.session["next_threads"] == "1"
    assert signal_to_difference_db(plain.samples, dual.samples) > 60


def _no_voice() -> tiny_voice.Voice:
    raise AssertionError("nothing was to be measured")
