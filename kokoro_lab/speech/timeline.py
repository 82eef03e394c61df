"""Where each segment of a stream lies, from where it can be resumed, and when its words are heard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, MarkTiming, Place, Segment, WordTiming
from kokoro_lab.errors import SynthesisError
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES
from kokoro_lab.text.ssml import Break, Mark


class Timeline:
    """Counts the samples of one stream, silence and speech, and notes what begins and ends where.

    Attributes
    ----------
    segments : list of Segment
        The segments that are under way or done.
    timings : list of WordTiming
        When the words of finished segments are heard.
    marks : list of MarkTiming
        The marks that have been reached.
    places : dict
        Where segments can be begun again, by their ids.
    position : int
        Number of the next sample, counted from the start of the utterance.
    behind : int
        How many of the samples just before `position` are the silence that trimming left after the last
        speech.
    speech_from : int or None
        Where the first speech begins.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.timings: list[WordTiming] = []
        self.marks: list[MarkTiming] = []
        self.places: dict[int, Place] = {}
        self.position = self.behind = 0
        self.speech_from: int | None = None
        self._reached = 0
        """The number of words in `timings` that have been compared with the marks: no mark before them is
        left."""
        self._began: int | None = None
        self._lead_samples = 0

    @property
    def speaks(self) -> bool:
        """Whether the speech of the last segment has begun."""
        return self._began is not None

    def take_up(self, segment: Segment) -> None:
        """Record that the next segment is under way. Its speech has not begun yet."""
        self.segments.append(segment)
        self._began = None

    def begin_speech(self, first_id: int, lead_samples: int, left_out: int, *, opens: bool) -> None:
        """Record that the segment's speech begins here or, if its beginning is left out, began `left_out`
        samples before.

        Parameters
        ----------
        first_id : int
            Id of the first segment of its sentence.
        lead_samples : int
            Samples of silence that were trimmed before the speech.
        opens : bool
            Whether the segment is the first of the utterance.
        """
        segment = self.segments[-1]
        self._began, self._lead_samples = self.position - left_out, lead_samples
        self.places[segment.segment_id] = Place(
            segment.sentence, first_id, segment.segment_id, self._began, lead_samples, opens=opens
        )
        if self.speech_from is None:
            self.speech_from = self.position

    def end_speech(self, durations: npt.NDArray[np.int64], kept_tail_samples: int, stretch: float) -> None:
        """Record that the speech of the segment ends here.

        Raises
        ------
        SynthesisError
            The speech of the segment has not begun.
        """
        segment = self.segments[-1]
        if self._began is None:
            raise SynthesisError(
                f"The model was silent for segment {segment.segment_id} "
                f"({len(segment.token_ids)} token ids).",
                mend="Try another voice or variant; this is a bug worth reporting.",
            )
        self.behind = kept_tail_samples
        origin, spoken = self._began - self._lead_samples, range(self._began, self.position)
        self.timings += word_timings(segment, durations, origin, spoken, stretch)

    def reach(self, marks: deque[Mark], breaks: Sequence[Break], *, ended: bool = False) -> None:
        """Record the marks before the last word so far as reached, or all marks if the stream has ended.

        Parameters
        ----------
        marks : deque of Mark
            The marks that have not been reached, in order.
        breaks : sequence of Break
            All breaks of the document.
        """
        words = self.timings
        while marks and (ended or (words and marks[0].offset <= words[-1].start)):
            offset, name = marks.popleft()
            while self._reached < len(words) and words[self._reached].start < offset:
                self._reached += 1
            if self._reached < len(words):
                following = words[self._reached]
                silence_s = sum(each.duration_s for each in breaks if offset < each.offset <= following.start)
                start_s, segment_id = following.start_s - silence_s, following.segment_id
            else:
                last = words[-1] if words else WordTiming("", -1, -1, 0.0, 0.0, "", 0)
                silence_s = sum(each.duration_s for each in breaks if last.start < each.offset < offset)
                start_s, segment_id = last.end_s + silence_s, last.segment_id
            self.marks.append(MarkTiming(name, offset, max(0.0, start_s), segment_id))


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
        Range of the trimmed segment, in samples of the stream. Word times are clipped to it.
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
