"""Windows cover what is heard, and one may begin with any of them."""

from __future__ import annotations

import pytest

from kokoro_lab.model.vocoder import LATER_WINDOW_FRAMES, Windows

AUDIBLE = (17, 1_234)


@pytest.mark.parametrize("windows", [Windows(), Windows(first=LATER_WINDOW_FRAMES)])
def test_any_frame_has_the_last_window_that_begins_at_or_before_it(windows: Windows) -> None:
    spans = list(windows.spans(*AUDIBLE))
    assert (spans[0][0], spans[-1][1]) == AUDIBLE
    for start, stop in spans:
        for frame in (start, stop - 1):
            assert windows.begin(AUDIBLE, frame) == start
    assert windows.begin(AUDIBLE, 10_000) == spans[-1][0], "behind the end, it is the last one"


@pytest.mark.parametrize("frame", [-3, 0, 16])
def test_before_the_first_window_it_is_the_beginning_of_the_segment(frame: int) -> None:
    assert Windows().begin(AUDIBLE, frame) == 0
