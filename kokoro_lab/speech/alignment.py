"""When each word is heard."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Segment, WordTiming
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES


def word_timings(
    segment: Segment, durations: npt.NDArray[np.int64], offset: int, place: range, stretch: float = 1.0
) -> Iterator[WordTiming]:
    """Word times from the durations that prosody gave; marks are no words.

    Parameters
    ----------
    durations : numpy.ndarray
        int64, one for each input id, pads included, in frames of 600 samples.
    offset : int
        Where the untrimmed segment would begin in the stream, in samples; may be negative.
    place : range
        What was left of the segment after trimming, in samples of the stream. Words are clipped to it.
    stretch : float
        How many times as long the segment was made.
    """
    ends = offset + np.cumsum(durations) * DURATION_FRAME_SAMPLES * stretch
    for word, (first, stop) in zip(segment.words, segment.word_tokens, strict=True):
        # The first input id is the pad in front: token i begins where input i ends
        if word.is_mark:
            continue
        a, b = (min(max(int(ends[i]), place.start), place.stop) for i in (first, stop))
        yield WordTiming(
            word.text,
            word.start,
            word.end,
            a / SAMPLE_RATE_HZ,
            b / SAMPLE_RATE_HZ,
            word.phonemes,
            segment.segment_id,
        )
