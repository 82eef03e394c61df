"""The values that are tried are those that a setting may have, and are narrowed by words."""

from __future__ import annotations

import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.tuning.search_space import Space


def test_a_space_is_narrowed_by_words() -> None:
    space = Space(threads=(1, 2)).narrowed("threads=2 spinning=false window_frames=90,120")
    assert (space.threads, space.spinning, space.window_frames) == ((2,), (False,), (90, 120))
    assert space.size == 5 * 1 * 1 * 1 * 2 * 2


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        ("thread=2", "cannot be tuned"),
        ("threads=many", "threads cannot be 'many'"),
        ("threads=", "no value to try"),
        ("spinning=1", "spinning cannot be 1"),
        ("chunk_ms=5", "chunk_ms cannot be 5"),
        ("first_window_frames=8", "cannot be tuned"),
    ],
)
def test_a_space_that_cannot_be_is_refused(tried: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        Space().narrowed(tried)
