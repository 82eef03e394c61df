"""Times several ways to compute one thing, interleaved, so that other work slows all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from kokoro_lab.lab.compare.comparison import ratio


def take_turns(
    ways: Mapping[str, Callable[[], object]], number: int, rounds: int = 1
) -> list[dict[str, Any]]:
    """Run and time every way once in each round; the way that runs first changes from round to round.

    Parameters
    ----------
    ways : mapping of str to callable
        Name of a way → a function that runs it.
    number : int
        Number of the input, such as a text. Intervals are computed over inputs, which these numbers tell
        apart.

    Returns
    -------
    list of dict
        Rows for `compare.comparison.ratio`, with wall_s (elapsed) and compute_s (CPU time of all threads).
    """
    names, rows = list(ways), []
    for turn in range(rounds):
        first = (number + turn) % len(names)
        for name in names[first:] + names[:first]:
            began = time.perf_counter(), time.process_time()
            ways[name]()
            took = time.perf_counter() - began[0], time.process_time() - began[1]
            place = {"system": name, "text_number": number, "round": turn, "repetition": 0}
            rows.append(place | {"wall_s": took[0], "compute_s": took[1]})
    return rows


def ratios(trials: pd.DataFrame, against: str, figure: str = "compute_s") -> pd.DataFrame:
    """The ratio of every way to the way `against`: ratio, low, high; a row for each way."""
    others = [name for name in dict.fromkeys(trials.system) if name != against]
    found = {name: ratio(trials, name, figure, against) for name in others}
    return pd.DataFrame({name: (each.value, each.low, each.high) for name, each in found.items()}).T.set_axis(
        ["ratio", "low", "high"], axis=1
    )
