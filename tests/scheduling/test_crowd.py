"""Several listeners at once hear no gap and begin soon, by a simulation on a clock that is only counted."""

from __future__ import annotations

import pytest

from tests.scheduling.crowd import Crowd, Heard

SECONDS = 600


def alone(slowness: float) -> Heard:
    return Crowd(1, 60, brakes=True, slowness=slowness).run()


def test_one_listener_alone_waits_for_nobody() -> None:
    heard = alone(1.0)
    assert heard.gaps_s == []
    assert max(heard.ttfa_s) == pytest.approx(min(heard.ttfa_s))


@pytest.mark.parametrize(("slowness", "listeners"), [(1.0, 6), (0.5, 12)])
def test_a_crowd_that_needs_three_quarters_of_the_cores_is_served_in_time(
    slowness: float, listeners: int
) -> None:
    crowd = Crowd(listeners, SECONDS, brakes=True, slowness=slowness).run()
    assert 0.7 < crowd.computed_s / SECONDS < 0.8
    assert crowd.gaps_in_ten_minutes <= 1
    assert crowd.to(alone(slowness)) <= 4


@pytest.mark.parametrize(("slowness", "listeners"), [(1.0, 6), (0.5, 12)])
def test_without_brakes_there_are_no_more_gaps(slowness: float, listeners: int) -> None:
    crowd = Crowd(listeners, SECONDS, brakes=False, slowness=slowness).run()
    assert crowd.gaps_in_ten_minutes <= 1
    assert crowd.to(alone(slowness)) <= 5


@pytest.mark.parametrize(("slowness", "listeners"), [(1.0, 3), (0.5, 6)])
def test_half_of_the_crowd_hears_its_first_sound_nearly_as_if_alone(slowness: float, listeners: int) -> None:
    crowd = Crowd(listeners, SECONDS, brakes=True, slowness=slowness).run()
    assert crowd.gaps_in_ten_minutes <= 1
    assert crowd.to(alone(slowness)) <= 2


def test_a_crowd_that_needs_more_than_there_is_hears_gaps() -> None:
    assert Crowd(9, 200, brakes=True).run().gaps_in_ten_minutes > 10
