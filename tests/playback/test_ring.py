"""A ring gives back what it was given, in order and once, and takes no more than it has room for."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.playback.stream import Ring

MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=40)


@given(st.integers(1, 12), MOVES)
def test_it_is_a_queue_with_an_end(capacity: int, moves: list[tuple[bool, int]]) -> None:
    ring, queue, number = Ring(capacity), [], 0
    for puts, count in moves:
        if puts:
            pcm = np.arange(number, number + count, dtype=np.int16)
            taken = ring.put(pcm)
            assert taken == min(count, capacity - len(queue))
            queue += list(pcm[:taken])
            number += taken
        else:
            assert list(ring.take(count)) == queue[:count]
            queue = queue[count:]
        assert (len(ring), ring.free_samples) == (len(queue), capacity - len(queue))


def test_what_was_cleared_is_gone() -> None:
    ring = Ring(4)
    ring.put(np.array([1, 2, 3], np.int16))
    ring.clear()
    ring.put(np.array([4, 5], np.int16))
    assert list(ring.take(9)) == [4, 5]
