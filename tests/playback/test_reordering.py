"""Chunks in the order of their ids, whatever order they came in; and one that never comes is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.playback.reordering import MOST_CHUNKS, WAIT_S, ChunkMissing, Reorderer


def pushed(reorderer: Reorderer[int], *ids: int, at_s: float = 0.0) -> list[int]:
    return [ready for i in ids for ready in reorderer.push(0, i, i, at_s)]


@given(st.permutations(range(MOST_CHUNKS + 1)))
def test_any_order_within_the_bound_becomes_the_right_one(ids: list[int]) -> None:
    reorderer = Reorderer[int]()
    assert pushed(reorderer, *ids) == sorted(ids)
    reorderer.finish()
    assert (reorderer.held, reorderer.repeated) == (0, 0)


@given(st.lists(st.integers(0, 3), max_size=40))
def test_nothing_is_given_out_twice_and_nothing_before_its_turn(jumps: list[int]) -> None:
    order = sorted(range(len(jumps)), key=lambda i: (i + jumps[i], i))
    reorderer = Reorderer[int]()
    out: list[int] = []
    for i in order:
        out += reorderer.push(i // 7, i, i, 0.0)
        assert out == list(range(len(out)))
        assert reorderer.held <= 3
    assert out == list(range(len(jumps)))


def test_one_that_is_in_order_waits_for_nothing() -> None:
    reorderer = Reorderer[int]()
    for i in range(100):
        assert reorderer.push(0, i, i, float(i)) == [i]
    assert reorderer.reordered == 0


def test_what_came_before_is_thrown_away_and_counted() -> None:
    reorderer = Reorderer[int](due=5)
    assert pushed(reorderer, 4, 5, 5, 7, 7, 6) == [5, 6, 7]
    assert reorderer.repeated == 3


def test_more_are_not_held_than_was_said() -> None:
    reorderer = Reorderer[int](most_chunks=3)
    assert pushed(reorderer, 0, 2, 3, 4) == [0]
    with pytest.raises(ChunkMissing, match=r"Chunk 1 is missing. 4 later ones have come") as missing:
        pushed(reorderer, 5)
    assert missing.value.chunk_id == 1
    assert reorderer.give_up(0.0) == (range(1, 2), [2, 3, 4, 5])
    assert pushed(reorderer, 1, 6) == [6], "what was given up comes too late"


def test_one_is_not_waited_for_longer_than_was_said() -> None:
    reorderer = Reorderer[int]()
    assert pushed(reorderer, 0, 2, at_s=10.0) == [0]
    assert pushed(reorderer, 3, at_s=10.0 + WAIT_S) == []
    with pytest.raises(ChunkMissing, match=r"It has been waited for 1\.10 s"):
        pushed(reorderer, 4, at_s=10.1 + WAIT_S)


def test_each_missing_one_has_its_own_time() -> None:
    reorderer = Reorderer[int](wait_s=1.0)
    pushed(reorderer, 0, 2, 4, at_s=0.0)
    assert pushed(reorderer, 1, at_s=0.9) == [1, 2]
    assert pushed(reorderer, 5, at_s=1.8) == []
    with pytest.raises(ChunkMissing, match="Chunk 3"):
        pushed(reorderer, 6, at_s=2.0)


def test_the_end_says_what_never_came() -> None:
    reorderer = Reorderer[int]()
    assert pushed(reorderer, 0, 3, 4) == [0]
    with pytest.raises(ChunkMissing, match=r"Chunk 1 is missing\. The stream is over"):
        reorderer.finish()
    assert reorderer.give_up(0.0) == (range(1, 3), [3, 4])
    reorderer.finish()


def test_segments_whose_ids_go_down_are_no_stream_of_ours() -> None:
    reorderer = Reorderer[int]()
    reorderer.push(1, 0, 0, 0.0)
    with pytest.raises(SynthesisError, match="Chunk 1 is of segment 0"):
        reorderer.push(0, 1, 1, 0.0)


@pytest.mark.parametrize(
    "wrong", [{"due": -1}, {"most_chunks": -1}, {"wait_s": -0.1}, {"wait_s": float("nan")}]
)
def test_bounds_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Reorderer[int](**wrong)  # type: ignore[arg-type]
