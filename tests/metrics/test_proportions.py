"""Limits of proportions are those of the tables, and what is no proportion is refused."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.intervals import proportion_interval, share_of, upper_limit


def test_the_interval_is_clopper_and_pearsons() -> None:
    assert proportion_interval(12, 16) == pytest.approx((0.4762, 0.9273), abs=1e-4)
    assert proportion_interval(0, 10) == pytest.approx((0, 0.3085), abs=1e-4)
    assert proportion_interval(10, 10)[1] == 1


def test_none_of_n_is_still_three_of_n_at_most() -> None:
    assert upper_limit(0, 299) < 0.01 < upper_limit(0, 298)


@pytest.mark.parametrize(("count", "trials"), [(0, 0), (-1, 4), (5, 4)])
def test_counts_that_cannot_be_are_refused(count: int, trials: int) -> None:
    for function in (proportion_interval, upper_limit):
        with pytest.raises(ParameterError, match="cannot be"):
            function(count, trials)


def test_hits_in_one_voice_say_less_than_hits_in_all() -> None:
    clips = [(voice, text) for voice in range(9) for text in range(24)]
    voices, texts = ([clip[which] for clip in clips] for which in range(2))
    alone = share_of([voice == 0 for voice in voices], voices, texts)
    even = share_of([text % 9 == voice for voice, text in clips], voices, texts)
    assert alone.value == even.value == pytest.approx(1 / 9)
    independent = proportion_interval(24, len(clips))
    assert (even.low, even.high) == independent
    assert alone.low < independent[0]
    assert alone.high > 2 * independent[1]


def test_no_hit_has_the_interval_of_independent_clips() -> None:
    none = share_of([False] * 40, list(range(40)), [0] * 40, confidence=0.9)
    assert (none.low, none.high) == (0, pytest.approx(upper_limit(0, 40)))
    with pytest.raises(ParameterError, match="trial"):
        share_of([], [], [])
