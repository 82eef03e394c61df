"""A configuration is adopted if it is shown to be better in one cost and not to be worse in any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.lab.compare.comparison import Start
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineTrial
from kokoro_lab.lab.tuning.adoption import (
    DefaultsComparison,
    compared_with_defaults,
    made_up_controls,
    ratios_of,
)
from kokoro_lab.lab.tuning.candidate import CANDIDATE, COSTS, DEFAULTS

SPEECH = np.sin(np.arange(24_000) / 20).astype(np.float32)


class Toy:
    """Speaks as it was told to: how soon, how fast, with how much memory, and how much it crackles."""

    made = ended = 0

    def __init__(
        self, ttfa_s: float = 0.1, rtf: float = 0.2, memory_mb: float = 300, noise: float = 0
    ) -> None:
        self.figures = {"ttfa_s": ttfa_s, "rtf": rtf, "rss_peak_mb": memory_mb}
        self.noise = noise
        Toy.made += 1
        self.draw = np.random.default_rng(Toy.made)

    def __enter__(self) -> Toy:
        return self

    def __exit__(self, *how: object) -> None:
        Toy.ended += 1

    loaded: ClassVar[dict[str, float]] = {"process_s": 1.0, "load_s": 0.5, "loaded_mb": 100.0}
    facts: ClassVar[dict[str, Any]] = {}

    def warm(self, text: str | None = None) -> None:
        pass

    def close(self) -> None:
        pass

    def speak(self, number: int, text: str) -> EngineTrial:
        scatter = {name: value * (1 + 0.01 * self.draw.random()) for name, value in self.figures.items()}
        other: dict[str, Any] = {"ttfb_s": 0.0, "audio_s": 1.0, "wall_s": 1.0, "underruns": 0, "late_s": 0.0}
        trial = Trial("toy", number, len(text), True, longest_gap_s=0.0, **scatter, **other)
        return EngineTrial(
            trial, SPEECH + np.float32(self.noise) * self.draw.standard_normal(24_000).astype(np.float32)
        )


class Mute(Toy):
    def speak(self, number: int, text: str) -> EngineTrial:
        raise EngineFailed("It is mute.")


def compared(
    rounds: int = 3, texts: int = 6, kind: Callable[..., Toy] = Toy, **candidate: float
) -> DefaultsComparison:
    def start(asked: Configuration) -> Toy:
        return kind(**candidate) if asked.name == CANDIDATE else Toy()

    both = [Configuration(name, EngineConfig()) for name in (DEFAULTS, CANDIDATE)]
    spoken = [f"Text {i}." for i in range(texts)]
    return compared_with_defaults(both, spoken, rounds, cast("Start", start))


def test_sooner_at_the_same_cost_is_adopted_and_the_gain_is_stated() -> None:
    found = compared(ttfa_s=0.08)
    assert found.adopted
    assert found.gains["ttfa_gain_percent"] == pytest.approx(20, abs=1)
    assert 18 < found.gains["ttfa_gain_least_percent"] < found.gains["ttfa_gain_percent"]
    assert found.ratios["memory"].units == 3
    assert found.ratios["ttfa"].units == 6


def test_every_round_has_fresh_processes() -> None:
    before = Toy.ended
    compared(rounds=4)
    assert Toy.ended - before == 8


@pytest.mark.parametrize("cost", [{"rtf": 0.21}, {"memory_mb": 330}, {"ttfa_s": 0.105}])
def test_what_is_worse_in_one_cost_is_not_adopted(cost: dict[str, float]) -> None:
    better = {"ttfa_s": 0.08, "rtf": 0.16, "memory_mb": 240}
    found = compared(**better | cost)
    assert not found.adopted
    assert found.worst > 1


def test_no_gain_is_no_reason() -> None:
    assert not compared().adopted


def test_what_sounds_otherwise_is_not_adopted() -> None:
    assert compared(ttfa_s=0.08, noise=1e-4).adopted
    assert not compared(ttfa_s=0.08, noise=0.5).adopted


def test_a_candidate_that_does_not_speak_ends_it() -> None:
    with pytest.raises(EngineFailed, match="mute"):
        compared(kind=Mute)


def test_an_interval_that_is_too_wide_excludes_nothing() -> None:
    draw = np.random.default_rng(1)
    places = [(name, r, t) for name in (DEFAULTS, CANDIDATE) for r in range(3) for t in range(4)]
    table = pd.DataFrame(places, columns=["system", "repetition", "text_number"]).assign(round=0)
    for cost in COSTS.values():
        candidate = 0.95 * np.exp(0.2 * draw.standard_normal(len(table)))
        table[cost] = np.where(table.system == CANDIDATE, candidate, 1.0)
    assert not DefaultsComparison(ratios_of(table), 0.0).adopted


def test_too_few_rounds_or_texts_say_nothing() -> None:
    with pytest.raises(ParameterError):
        compared(rounds=2)
    with pytest.raises(ParameterError):
        compared(texts=2)


def test_the_controls_are_caught() -> None:
    assert [control.name for control in made_up_controls() if not control.caught] == []
    assert len(made_up_controls()) == 6
