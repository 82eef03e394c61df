"""What speech costs: of the voice, of all, or a guess."""

from __future__ import annotations

import pytest

from kokoro_lab.server.requests.costs import START_COST, MeasuredCosts


def test_costs_are_those_of_the_voice_or_of_all_or_a_guess() -> None:
    costs = MeasuredCosts()
    assert costs.of("a") == START_COST
    costs.note("a", 1.0, 10.0)
    costs.note("b", 3.0, 10.0)
    assert costs.of("a") == pytest.approx(0.1)
    assert 0.1 < costs.of("c") < 0.3
    assert set(costs.figures()) == {"a", "b", ""}
