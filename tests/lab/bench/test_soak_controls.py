"""What is put into a soak on purpose is caught, and what is harmless is not."""

from __future__ import annotations

import pytest

from kokoro_lab.lab.bench.memory import growth_of
from kokoro_lab.lab.bench.soak_controls import NOTHING, THREADS, leaking, made_up_controls
from kokoro_lab.lab.bench.soak_verdict import judge_growth
from kokoro_lab.lab.results import NegativeControl


@pytest.mark.parametrize("control", made_up_controls(), ids=lambda one: one.name)
def test_a_fault_is_caught_and_what_is_harmless_is_not(control: NegativeControl) -> None:
    assert control.caught


def test_a_server_that_leaks_is_caught_and_one_that_does_not_is_not() -> None:
    for kind in (NOTHING, THREADS):
        checks = judge_growth(growth_of(leaking(kind, 24)))
        assert all(check.passed for check in checks) == (kind == NOTHING)
