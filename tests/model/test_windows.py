"""Windows cover what is heard, and one may begin with any of them."""

from __future__ import annotations

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
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


def test_an_engine_that_says_nothing_of_windows_has_the_ones_that_ship() -> None:
    assert Windows.of(EngineConfig(), urgent=True) == Windows()
    assert Windows.of(EngineConfig(), urgent=False) == Windows(first=LATER_WINDOW_FRAMES)


@pytest.mark.parametrize(("first", "size"), [(1, 1), (4, 40), (80, 200), (2400, 2400)])
@pytest.mark.parametrize("urgent", [True, False])
def test_windows_of_a_configuration_are_as_long_as_it_says(first: int, size: int, urgent: bool) -> None:
    windows = Windows.of(EngineConfig(first_window_frames=first, window_frames=size), urgent=urgent)
    lengths = [stop - start for start, stop in windows.spans(*AUDIBLE)]
    assert sum(lengths) == AUDIBLE[1] - AUDIBLE[0]
    assert max(lengths) < size + windows.context, "a small rest is decoded with the last one"
    if urgent:
        assert lengths[0] == min(first, AUDIBLE[1] - AUDIBLE[0])


@pytest.mark.parametrize(("first", "size"), [(0, 120), (121, 120), (12, 2401)])
def test_windows_that_cannot_be_are_refused(first: int, size: int) -> None:
    with pytest.raises(SettingsError, match="first_window_frames"):
        EngineConfig(first_window_frames=first, window_frames=size)
