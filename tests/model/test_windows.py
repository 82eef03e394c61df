"""Windows cover what is heard, and one may begin with any of them."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.graphs.signatures import TRUNK_FRAME_SAMPLES
from kokoro_lab.model.prosody import FIRST_CHUNK_FRAMES
from kokoro_lab.model.windows import (
    CHUNK_FRAMES,
    CONTEXT_FRAMES,
    FIRST_WINDOW_FRAMES,
    LATER_WINDOW_FRAMES,
    WindowPlan,
    WindowSizes,
)
from kokoro_lab.speech.chunker import CHUNK_S

AUDIBLE = (17, 1_234)


@pytest.mark.parametrize(
    "windows",
    [WindowSizes(), WindowSizes(first=LATER_WINDOW_FRAMES), WindowSizes(first_chunk=AUDIBLE[0] + 6)],
)
def test_any_frame_has_the_last_window_that_begins_at_or_before_it(windows: WindowSizes) -> None:
    spans = tuple(windows.spans(*AUDIBLE))
    plan = WindowPlan(2_000, spans)
    assert plan.audible == AUDIBLE
    for start, stop in spans:
        for frame in (start, stop - 1):
            assert plan.begin(frame) == start
    assert plan.begin(10_000) == spans[-1][0], "behind the end, it is the last one"


@pytest.mark.parametrize("frame", [-3, 0, 16])
def test_before_the_first_window_it_is_the_beginning_of_the_segment(frame: int) -> None:
    assert WindowPlan(2_000, (AUDIBLE,)).begin(frame) == 0


def test_an_engine_that_says_nothing_of_windows_has_the_ones_that_ship() -> None:
    assert WindowSizes.of(EngineConfig(), urgent=True) == WindowSizes()
    assert WindowSizes.of(EngineConfig(), urgent=False) == WindowSizes(first=LATER_WINDOW_FRAMES)


@pytest.mark.parametrize(("after", "first"), [(6, 6), (11, 11), (30, 11), (0, 1)])
def test_the_first_window_ends_with_the_first_chunk_and_the_next_one_with_the_second(
    after: int, first: int
) -> None:
    lengths = [stop - start for start, stop in WindowSizes(first_chunk=AUDIBLE[0] + after).spans(*AUDIBLE)]
    assert lengths[:3] == [first, CHUNK_FRAMES, 16]
    assert CHUNK_FRAMES * TRUNK_FRAME_SAMPLES == CHUNK_S * SAMPLE_RATE_HZ


def test_only_where_somebody_waits_a_window_is_cut_for_the_first_chunk() -> None:
    energy = np.array([-9.0] * 20 + [1.0] * 3 + [3.0] * 50, np.float32)
    assert WindowSizes.of(EngineConfig(), energy, urgent=True).first_chunk == 23 + FIRST_CHUNK_FRAMES
    assert WindowSizes.of(EngineConfig(), energy, urgent=False) == WindowSizes(first=LATER_WINDOW_FRAMES)
    assert WindowSizes.of(EngineConfig(), energy - 5, urgent=True) == WindowSizes(), (
        "never loud: nobody knows"
    )


@pytest.mark.parametrize("size", [1, 40, 200, 2400])
@pytest.mark.parametrize("urgent", [True, False])
def test_windows_of_a_configuration_are_as_long_as_it_says(size: int, urgent: bool) -> None:
    windows = WindowSizes.of(EngineConfig(window_frames=size), urgent=urgent)
    lengths = [stop - start for start, stop in windows.spans(*AUDIBLE)]
    assert sum(lengths) == AUDIBLE[1] - AUDIBLE[0]
    assert size <= max(lengths) < size + CONTEXT_FRAMES or size == 2400, "a small rest joins the last window"
    assert lengths[0] == min(FIRST_WINDOW_FRAMES if urgent else LATER_WINDOW_FRAMES, size)


@pytest.mark.parametrize("size", [0, 2401])
def test_windows_that_cannot_be_are_refused(size: int) -> None:
    with pytest.raises(SettingsError, match="window_frames"):
        EngineConfig(window_frames=size)
