"""The next item is made while the last one is in use, one ahead and no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kokoro_lab.scheduling.kept_threads import Lookahead


def test_items_come_in_order_whether_or_not_they_were_begun() -> None:
    ahead = Lookahead(iter(range(6)))
    found = []
    for item in ahead:
        found.append(item)
        if item % 2:
            ahead.begin()
            ahead.begin()
    assert found == list(range(6))
    ahead.close()


def test_what_was_begun_is_made_without_being_asked_for() -> None:
    made = threading.Event()

    def items() -> Iterator[str]:
        yield "first"
        made.set()
        yield "second"

    ahead = Lookahead(items())
    assert next(ahead) == "first"
    assert not made.is_set()
    ahead.begin()
    assert made.wait(5)
    assert next(ahead) == "second"
    assert ahead.ahead == 0
    ahead.close()


def test_no_more_than_one_is_ahead() -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for i in range(5):
            taken.append(i)
            yield i

    ahead = Lookahead(items())
    next(ahead)
    for _ in range(3):
        ahead.begin()
    assert next(ahead) == 1
    assert taken == [0, 1]
    ahead.close()


def test_an_error_is_raised_where_its_item_would_have_been() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    ahead = Lookahead(items())
    next(ahead)
    ahead.begin()
    with pytest.raises(ValueError, match="broken"):
        next(ahead)
    ahead.close()
