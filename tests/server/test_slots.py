"""Who has a place, who waits for one, who is sent away; and that background work makes way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from werkzeug.exceptions import TooManyRequests

from kokoro_lab.server.health.background import wait_until_idle
from kokoro_lab.server.requests.slots import ClientLeft, Slots
from tests.server.conftest import wait_until


def waiting(
    slots: Slots, name: str, order: list[str], fits: Callable[[Sequence[Any]], bool] = lambda held: True
) -> threading.Thread:
    """A request that waits for its turn, notes its name and goes; its client is its first letter."""

    def run() -> None:
        try:
            slot = slots.take(30, client=name[0], fits=fits)
        except TooManyRequests:
            order.append(f"not {name}")
        else:
            order.append(name)
            slot.release()

    before = slots.waiting
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: slots.waiting == before + 1)
    return thread


def test_without_a_queue_the_next_one_is_told_at_once_to_come_back() -> None:
    slots = Slots(1)
    slot = slots.take(30)
    started = time.monotonic()
    with pytest.raises(TooManyRequests) as refused:
        slots.take(30)
    assert time.monotonic() - started < 5
    assert refused.value.retry_after == 1
    slot.release()
    slots.take().release()


def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    slots = Slots(1, queue=3)
    slot = slots.take()
    order: list[str] = []
    threads = [waiting(slots, name, order) for name in ("one", "one more", "one at last")]
    with pytest.raises(TooManyRequests, match="3 wait"):
        slots.take(30, client="o")
    slot.release()
    for thread in threads:
        thread.join(30)
    assert order == ["one", "one more", "one at last"]
    assert (slots.active, slots.waiting) == (0, 0)


def test_clients_come_by_turns_and_one_with_many_requests_keeps_no_other_out_of_the_queue() -> None:
    slots = Slots(1, queue=3)
    slot = slots.take()
    order: list[str] = []
    threads = [waiting(slots, name, order) for name in ("a1", "a2", "a3")]

    def take() -> None:
        slots.take(30, client="b").release()
        order.append("b")

    other = threading.Thread(target=take)
    other.start()
    threads[2].join(30)
    assert order == ["not a3"], "the one that would have come last"
    slot.release()
    for thread in (*threads, other):
        thread.join(30)
    assert order.index("b") < order.index("a2")


def test_one_that_does_not_fit_waits_and_lets_those_go_first_that_do() -> None:
    slots, order = Slots(2, queue=2), list[str]()
    held = slots.take(holder="large")
    large = waiting(slots, "large", order, lambda held: "large" not in held)
    slots.take(30, fits=lambda held: len(held) < 2).release()
    assert (order, slots.waiting) == ([], 1)
    held.release()
    large.join(30)
    assert order == ["large"]


def test_who_is_sent_away_is_told_when_to_come_back() -> None:
    slots = Slots(1)
    slot = slots.take()
    with pytest.raises(TooManyRequests) as refused:
        slots.take(come_back_s=lambda before: 16.2 + before)
    assert refused.value.retry_after == 17
    slot.release()


def test_waiting_has_an_end() -> None:
    slots = Slots(1, queue=1)
    slot = slots.take()
    with pytest.raises(TooManyRequests):
        slots.take(0.05)
    assert slots.waiting == 0
    slot.release()


def test_who_left_while_waiting_is_no_longer_in_the_queue() -> None:
    slots = Slots(1, queue=1)
    slot = slots.take()
    with pytest.raises(ClientLeft):
        slots.take(30, lambda: True)
    assert slots.waiting == 0
    slot.release()


def test_a_restriction_holds_for_those_who_come_and_lets_those_who_are_there_go_on() -> None:
    slots = Slots(4)
    held = [slots.take() for _ in range(4)]
    slots.restrict(2)
    assert (slots.active, slots.limit) == (4, 2)
    for slot in held[:2]:
        slot.release()
    with pytest.raises(TooManyRequests):
        slots.take()
    held[2].release()
    slots.take().release()
    slots.restrict(0)
    assert slots.limit == 1
    slots.restrict(9)
    assert slots.limit == 4


def test_a_slot_that_is_released_twice_gives_back_one() -> None:
    slots = Slots(2)
    first, _second = slots.take(), slots.take()
    first.release()
    first.release()
    assert slots.active == 1


def test_background_work_waits_until_nobody_is_served_and_for_a_while_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kokoro_lab.server.health.background.QUIET_S", 0.2)
    slots = Slots(1)
    slot = slots.take()
    assert not slots.idle()
    thread = threading.Thread(target=wait_until_idle, args=(slots,))
    started_s = time.monotonic()
    thread.start()
    time.sleep(0.3)
    assert thread.is_alive()
    slot.release()
    thread.join(30)
    assert time.monotonic() - started_s >= 0.5
