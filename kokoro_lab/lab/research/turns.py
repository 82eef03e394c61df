"""Several ways to the same thing, interleaved: what the machine does meanwhile meets all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from kokoro_lab.lab.compare.comparison import ratio


def take_turns(
    ways: Mapping[str, Callable[[], object]], number: int, rounds: int = 1
) -> list[dict[str, Any]]:
    """Go every way in each round, another one first each time.

    Parameters
    ----------
    ways : mapping of str to callable
        By name.
    number : int
        Of what it is done to, such as a text: what intervals are drawn by.

    Returns
    -------
    list of dict
        Rows as `compare.comparison.ratio` takes them, with wall_s and compute_s, which is of all threads.
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
    """Every way's ratio to one of them: ratio, low, high; a row each."""
    others = [name for name in dict.fromkeys(trials.system) if name != against]
    found = {name: ratio(trials, name, figure, against) for name in others}
    return pd.DataFrame({name: (each.value, each.low, each.high) for name, each in found.items()}).T.set_axis(
        ["ratio", "low", "high"], axis=1
    )
