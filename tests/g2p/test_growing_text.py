"""Segments of a text that is still being written, by a writer who writes only when somebody waits for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from kokoro_lab.datatypes import Segment
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.text.growing import GrowingText
from tests.speech.test_live import LATIN, cut_at_random, made_up


class Awaited(GrowingText):
    """Gets its next string at the moment when nothing can be decided without it."""

    def __init__(self, pieces: Iterable[str]) -> None:
        super().__init__()
        self._pieces: Iterator[str] = iter(pieces)

    def _wait(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self.end()
        else:
            self.append(piece)


def segments(front_end: FrontEnd, text: str, language: str) -> list[Segment]:
    return list(front_end.segments(text, language, lambda _: None))


@pytest.mark.parametrize("seed", range(100))
def test_what_came_late_changes_no_segment(front_end: FrontEnd, seed: int) -> None:
    language, text = made_up(seed) if seed >= len(LATIN) else ("en-us", LATIN[seed])
    whole = segments(front_end, text, language)
    for pieces in (list(text), cut_at_random(text, seed)):
        assert list(front_end.segments_of(Awaited(pieces), language, lambda _: None)) == whole
