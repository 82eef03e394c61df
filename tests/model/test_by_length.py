"""A text is spoken by the configuration that is set for its length, and the report says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.model.choosing import ByLength
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.speech.engine import load_engine

SHORT = "The kettle is on."
LONG = "The river leaves the hills without hurry, turns twice around the mill, and rests."


def test_two_configurations_and_a_threshold_are_read() -> None:
    written = "  provider=cpu   threads=1 <200 ;coreml.ModelFormat=NeuralNetwork threads=2 "
    config = EngineConfig(by_length=written)
    below, above = config.sides() or (None, None)
    assert below == replace(EngineConfig(), provider="cpu", threads=1)
    assert above == replace(EngineConfig(), threads=2, coreml={"ModelFormat": "NeuralNetwork"})
    assert str(config.by_length_setting()) == (
        "provider=cpu threads=1 < 200; coreml.ModelFormat=NeuralNetwork threads=2"
    )
    assert EngineConfig().sides() is None


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("threads=1", "two configurations and a number"),
        ("threads=1 < 200", "two configurations and a number"),
        ("threads=1 < 200;", "two configurations and a number"),
        ("threads=1 < many; default", "two configurations and a number"),
        ("threads=1 < 0; default", "two configurations and a number"),
        ("threads=1 < -5; default", "two configurations and a number"),
        ("threads=1 > 200; default", "two configurations and a number"),
        ("thread=1 < 200; default", "no field 'thread'"),
        ("threads=many < 200; default", "threads=many cannot be"),
        ("threads < 200; default", "has no value"),
        ("variant=fp32 < 200; default", "cannot differ in variant"),
        ("default < 200; memory_arena_size_mb=512", "cannot differ in memory_arena_size_mb"),
    ],
)
def test_what_is_none_is_refused_with_its_mend(written: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as refused:
        EngineConfig(by_length=written)
    assert refused.value.field == "KOKORO_BY_LENGTH"
    assert "10_provider_ab" in str(refused.value)


def test_by_length_and_by_cost_are_two_choices() -> None:
    with pytest.raises(SettingsError, match="two choices"):
        EngineConfig(by_length="threads=1 < 200; default", provider_choice="measured")


@pytest.mark.model
def test_short_and_long_texts_are_spoken_by_sessions_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = replace(EngineConfig.from_settings(), by_length="optimisation=basic < 40; threads=1")
    engine = load_engine(config=replace(config, first_audio_ttl_s=0))
    decoder = engine.decoder
    assert isinstance(decoder, ByLength)
    used: list[str] = []
    run = StagedDecoder.decode

    def recorded(self: StagedDecoder, *arguments: Any, **how: Any) -> Any:
        used.append("below" if self is decoder.below else "above")
        return run(self, *arguments, **how)

    monkeypatch.setattr(StagedDecoder, "decode", recorded)
    spoken = {}
    for text in (SHORT, LONG):
        report = engine.synthesize(text).report
        spoken[text] = (set(used), {choice.reason for choice in report.choices})
        used.clear()
    assert spoken[SHORT] == ({"below"}, {"KOKORO_BY_LENGTH: 17 characters are under 40: optimisation=basic"})
    assert spoken[LONG] == ({"above"}, {"KOKORO_BY_LENGTH: 81 characters are not under 40: threads=1"})
    assert engine.decoder.details["by_length"] == "optimisation=basic < 40; threads=1"
