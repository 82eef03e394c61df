"""Calls in other processes: what one leaves to the next, and what becomes of the others when one dies."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool
from functools import partial

import pytest

from kokoro_lab.scheduling.processes import apart


def who(place: int) -> tuple[int, int]:
    return place, os.getpid()


def dies(place: int) -> None:
    os._exit(9)


def fails(message: str, place: int) -> None:
    raise ValueError(message)


def test_a_place_has_one_process_and_it_is_not_this_one() -> None:
    found = [done.result() for _, done in apart([who] * 5, 2)]
    processes = dict(found)
    assert set(processes) <= {0, 1}
    assert set(found) == set(processes.items()), "a place had two processes"
    assert os.getpid() not in processes.values()


def test_a_process_that_dies_takes_no_other_call_along() -> None:
    ended = dict(apart([who, dies, who], 1))
    with pytest.raises(BrokenProcessPool):
        ended[1].result()
    assert ended[0].result()[1] != ended[2].result()[1]


def test_a_call_that_fails_says_why_and_its_process_stays() -> None:
    ended = dict(apart([who, partial(fails, "no kettle"), who], 1))
    with pytest.raises(ValueError, match="no kettle"):
        ended[1].result()
    assert ended[0].result() == ended[2].result()


def test_each_call_is_told_of_before_it_is_run() -> None:
    told: list[int] = []
    assert sorted(number for number, _ in apart([who] * 3, 1, told.append)) == told == [0, 1, 2]
