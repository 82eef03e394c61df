"""Ways that take turns: each goes first as often, and what differs between them is their ratio."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from kokoro_lab.lab.research.turns import ratios, take_turns


def test_each_way_goes_first_in_turn() -> None:
    gone: list[str] = []
    ways = {name: lambda name=name: gone.append(name) for name in "abc"}
    rows = take_turns(ways, 1, rounds=3)
    assert gone == [*"bca", *"cab", *"abc"]
    assert [(row["system"], row["round"]) for row in rows[:4]] == [("b", 0), ("c", 0), ("a", 0), ("c", 1)]


def test_what_takes_twice_as_long_has_a_ratio_of_two() -> None:
    ways = {"once": lambda: time.sleep(0.01), "twice": lambda: time.sleep(0.02)}
    trials = pd.DataFrame([row for number in range(4) for row in take_turns(ways, number)])
    found = ratios(trials, "once", "wall_s").loc["twice"]
    assert found.ratio == pytest.approx(2, rel=0.3)
    assert found.low <= found.ratio <= found.high
