"""Frames: one size, in order, tagged, nothing lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import ParameterError
from kokoro_lab.speech.chunker import Chunker


@given(st.lists(st.integers(0, 5000), max_size=12))
def test_frames_joined_are_the_stream(sizes: list[int]) -> None:
    stream = np.arange(sum(sizes), dtype=np.float32)
    framer = Chunker(0.05)
    chunks = []
    at = 0
    for size in sizes:
        chunks += list(framer.push(stream[at : at + size]))
        at += size
    chunks += list(framer.flush())
    joined = np.concatenate([c.samples for c in chunks]) if chunks else np.zeros(0)
    np.testing.assert_array_equal(joined, stream)
    assert all(len(c.samples) == 1200 for c in chunks[:-1])
    assert [c.chunk_id for c in chunks] == list(range(len(chunks)))


def test_a_frame_belongs_to_the_segment_it_starts_in() -> None:
    framer = Chunker(0.05)
    framer.mark(0, 0)
    framer.mark(1, 1300)
    framer.mark(2, 2400)
    chunks = [*framer.push(np.zeros(4000, np.float32)), *framer.flush()]
    assert [c.segment_id for c in chunks] == [0, 0, 2, 2]


@pytest.mark.parametrize("chunk_s", [0.0, 0.029, 0.121, float("nan")])
def test_frames_are_30_to_120_ms(chunk_s: float) -> None:
    with pytest.raises(ParameterError, match=r"0\.03 to 0\.12"):
        Chunker(chunk_s)
