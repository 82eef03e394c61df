"""The first part of the pipeline: from an utterance to segments whose prosody is known.

    text → sentences → segments, pauses → prosody

Voice, language, lexicon and statistics were chosen before (see `utterance`). Every fallback on the way is
recorded here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from threading import Event
from typing import NamedTuple

import numpy as np

from kokoro_lab.datatypes import (
    SAMPLE_RATE_HZ,
    Fallback,
    Place,
    ProviderChoice,
    Segment,
    has_sound,
)
from kokoro_lab.dsp import Envelope, Processor
from kokoro_lab.errors import Gone, Interrupted
from kokoro_lab.g2p.frontend import Languages
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.model.delivery import ProsodyChanges, model_speed
from kokoro_lab.scheduling.deadlines import Claim
from kokoro_lab.scheduling.native_work import waiting_for_others
from kokoro_lab.scheduling.stopwatch import Stopwatch
from kokoro_lab.sessions.arenas import Interruption
from kokoro_lab.speech.parts import Parts
from kokoro_lab.speech.silence import Pause, added
from kokoro_lab.speech.utterance import CheckedUtterance, nothing_to_speak
from kokoro_lab.text.aligned import AlignedText
from kokoro_lab.text.growing import GrowingText
from kokoro_lab.text.ssml import Mark, SsmlDocument
from kokoro_lab.weights.voices import Voice

WORDLESS_S = 0.1
"""Silence for a text that has only marks, such as `...`: a client that sends a text in parts may send one."""


def go_on(stop: Event) -> None:
    """Called before each step of work: raises `Interrupted` if the stream was stopped."""
    if stop.is_set():
        raise Interrupted("This synthesis was stopped.")


class PreparedSegment(NamedTuple):
    """A segment whose prosody is known, and the pause before it.

    `stretch` is the factor by which the model's samples are made longer. `text_came_s` is the time by
    `time.perf_counter` when the text arrived for which the segment waited; None if it did not wait.
    """

    segment: Segment
    pause: Pause
    decoded: DecodedSegment
    delivery: ProsodyChanges | None
    stretch: float
    text_came_s: float | None
    voice: Voice

    @property
    def in_order(self) -> bool:
        """Whether its samples depend on earlier ones, so that they must be computed from the segment's
        beginning."""
        return self.stretch != 1 or self.envelope() is not None

    def stretcher(self) -> Processor[np.float32] | None:
        """The time stretch of its samples; None if they keep their length."""
        if self.stretch == 1:
            return None
        from kokoro_lab.dsp.stretch import TimeStretch

        return TimeStretch(self.stretch, SAMPLE_RATE_HZ)

    def envelope(self) -> Envelope | None:
        """The gains of its words; None if no word has a gain of its own."""
        if self.delivery is None or not any(self.delivery.gains_db):
            return None
        lengths = self.decoded.durations * DURATION_FRAME_SAMPLES
        return Envelope(self.delivery.gains_db, lengths.tolist(), SAMPLE_RATE_HZ)


class Preparation:
    """Reads one utterance and finds its prosody, segment by segment.

    Parameters
    ----------
    parts : Parts
        The engine's parts, of which the front end and the decoder are used.
    asked : CheckedUtterance
        The utterance to be spoken.
    cached : bool
        Whether the phonemes of sentences are taken from the engine's cache, and kept there.
    place : Place or None
        Where to begin; None for the beginning of the text.
    stopwatch : Stopwatch
        Measures the stages.
    claim : Claim
        The claim by which the stream asks for the cores.
    growing : GrowingText, optional
        The text, where it is still being written.

    Attributes
    ----------
    fallbacks : list of Fallback
        Substitutions made so far.
    choices : list of ProviderChoice
        The provider of each segment made so far, and the reason.
    style_rows : list of int
        For each segment made so far, the row of the voice pack that is its style.
    stretches : list of float
        The stretch of each segment made so far.
    first_ids : dict
        The id of each sentence's first segment.
    wordless : bool
        Whether the text was read to its end and has no word.
    marks : deque of Mark
        The marks of a document that have not been reached.
    breaks : tuple of Break
        The pauses that a document asks for.
    at_end : Pause or None
        The silence after the last segment; None until the last segment has been made.

    Raises
    ------
    TextError
        The text cannot be read, or has nothing to speak in it.
    """

    def __init__(
        self,
        parts: Parts,
        asked: CheckedUtterance,
        *,
        cached: bool,
        place: Place | None,
        stopwatch: Stopwatch,
        claim: Claim,
        growing: GrowingText | None = None,
    ) -> None:
        self._parts = parts
        self._asked = asked
        self._utterance = asked.utterance
        self._cached = cached
        self._place = place
        self._watch = stopwatch
        self._claim = claim
        self.fallbacks: list[Fallback] = list(asked.fallbacks)
        self.choices: list[ProviderChoice] = []
        self._growing = growing
        if growing is not None:
            growing.noted = self.fallbacks.append
            growing.waiting = self._waiting
        self._text = self._read()
        marked = self._text if isinstance(self._text, SsmlDocument) else None
        self.marks: deque[Mark] = deque(() if marked is None else marked.marks)
        self.breaks = () if marked is None else marked.breaks
        self.style_rows: list[int] = []
        self.stretches: list[float] = []
        self.first_ids: dict[int, int] = {}
        self.at_end: Pause | None = None
        self.wordless = False
        self._speakable = self._speakable_segments()
        self._interruption = Interruption()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._watch.waiting("text"), waiting_for_others():
            yield

    def _read(self) -> AlignedText | GrowingText | SsmlDocument:
        front_end, asked = self._parts.front_end, self._utterance
        how: dict[str, str] = {"code": asked.code, "emoji": asked.emoji}
        kind, language, note = asked.input_format, self._asked.language, self.fallbacks.append
        if self._growing is not None and kind != "markdown":
            return self._growing
        if self._growing is not None:
            return front_end.read_as_written(self._growing, language, note, **how)
        with self._watch("text"):
            text = front_end.read(asked.text, kind, language, note, language_of=self._language_of, **how)
        # A Markdown text may hold nothing that is spoken: a horizontal rule, a block of code that is left out
        unseen = kind == "markdown" and asked.text.strip()
        if not len(text) and not _breaks_s(text) and not unseen:
            raise nothing_to_speak(asked.text)
        return text

    def _language_of(self, voice: str) -> str:
        return self._parts.voices(voice).language

    def interrupt(self) -> None:
        """Break off the segment that another thread is preparing; no further segment is prepared."""
        self._interruption.end()
        if self._growing is not None:
            self._growing.close()

    def begin(self) -> None:
        """Read the first segment's text now (a few milliseconds), so that a text without words is refused at
        once.

        Raises
        ------
        Gone
            The text has no such place.
        """
        self._speakable = chain(tuple(islice(self._speakable, 1)), self._speakable)

    def segments(self) -> Iterator[PreparedSegment]:
        """Yield segments with their prosody. This may run in parallel to the decoding of the segment
        before."""
        self._parts.enter_thread()
        for segment, pause in self._speakable:
            self.style_rows.append(len(segment.token_ids) - 1)
            delivery = ProsodyChanges.of(segment)
            speed = model_speed(self._utterance.speed, delivery)
            stretch = speed / self._utterance.speed
            if delivery is not None:
                delivery = replace(delivery, stretch=stretch)
            voice = self._asked.voice if segment.voice is None else self._parts.voices(segment.voice)
            decoded = self._decoded(segment, delivery, speed, voice)
            if stretch != 1 and decoded.plain_frames is not None:
                # In a few words, rounding to whole frames may change the length by a tenth
                stretch = decoded.plain_frames / (self._utterance.speed * int(decoded.durations.sum()))
            self.stretches.append(stretch)
            choice = decoded.choice or self._asked.choice or self._parts.given_provider
            self.choices.append(
                replace(choice, segment_id=segment.segment_id, token_count=len(segment.token_ids))
            )
            for fallback in decoded.fallbacks:
                self.fallbacks.append(replace(fallback, start=segment.start, end=segment.end))
            pause = pause.made(stretch, ruled=self._parts.config.pauses == "ruled")
            came_s = None if self._growing is None else self._growing.came_s
            yield PreparedSegment(segment, pause, decoded, delivery, stretch, came_s, voice)

    def _decoded(
        self, segment: Segment, delivery: ProsodyChanges | None, speed: float, voice: Voice
    ) -> DecodedSegment:
        predicted = self._asked.statistics == "predicted"
        if predicted and voice is not self._asked.voice:
            reason = self._asked.decoder.predicts(voice)
            if reason is not None:
                predicted, reason = False, f"exact instead of predicted: {reason}"
                self.fallbacks.append(Fallback("statistics", reason, segment.start, segment.end))
        try:
            whole = not predicted  # its samples are made at once
            with self._claim.computing(whole=whole), self._watch("model"), self._interruption.within():
                asked = SegmentRequest(
                    segment.token_ids,
                    voice.style(len(segment.token_ids)),
                    speed,
                    predicted=predicted,
                    # A listener waits for the first segment, but not for a later one with which a broken
                    # stream is resumed: smaller windows would round differently
                    urgent=len(self.style_rows) == 1 and (self._place is None or self._place.opens),
                    delivery=delivery,
                )
                return self._asked.decoder.decode(asked)
        except Exception as error:  # ONNX Runtime's exceptions have no other common base
            if self._interruption.over:
                raise Interrupted("This synthesis was stopped.") from error
            raise

    def _speakable_segments(self) -> Iterator[tuple[Segment, Pause]]:
        """Segments with at least one word, and the pause before each."""
        pause_s = 0.0
        asked_s: float | None = None
        at_end_s: float | None = None
        spoken = False
        segments = self._timed_segments()
        if self._place is not None:
            segments = self._from(segments, self._place.segment_id)
        for segment in segments:
            asked_s = added(asked_s, segment.break_before_s)
            if has_sound(segment.phonemes):
                yield segment, Pause(pause_s, asked_s)
                spoken = True
                pause_s, asked_s = segment.pause_after_s, None
            else:
                pause_s = max(pause_s, segment.pause_after_s)  # a row of marks is a pause, not a sound
            at_end_s = segment.break_after_s
        if not spoken and self._growing is not None and self._growing.blank:
            raise nothing_to_speak("")
        if not spoken and self._place is not None:
            raise Gone("This stream has no such place.", mend="Ask for the whole speech anew.")
        at_end_s = added(asked_s, at_end_s)
        if not spoken:
            self.wordless = True
            breaks_s = _breaks_s(self._text)
            heard = round(breaks_s * SAMPLE_RATE_HZ) > 0  # a break may be shorter than a sample
            at_end_s = breaks_s if heard else WORDLESS_S
            self.fallbacks.append(
                Fallback("text", f"no word is in this text: {1000 * at_end_s:.0f} ms of silence instead")
            )
        self.at_end = Pause(0.0, at_end_s)

    def _from(self, segments: Iterator[Segment], segment_id: int) -> Iterator[Segment]:
        """The segments from the given one on. The document's marks before that segment are dropped: the
        stream that broke has reached them."""
        for segment in segments:
            if segment.segment_id == segment_id:
                yield segment
                yield from segments
                return
            spoken = [word.start for word in segment.words if not word.is_mark]
            while spoken and self.marks and self.marks[0].offset <= spoken[-1]:
                self.marks.popleft()

    def _timed_segments(self) -> Iterator[Segment]:
        languages = Languages(
            self._asked.language,
            self._asked.voice.language,
            self._utterance.detect_languages,
            remembered=self._cached,
        )
        segments = self._parts.front_end.segments_of(
            self._text, languages, self.fallbacks.append, self._asked.lexicon, self._place
        )
        while True:
            with self._watch("text"):
                segment = next(segments, None)
            if segment is None:
                return
            self.first_ids.setdefault(segment.sentence, segment.segment_id)
            yield segment


def _breaks_s(text: AlignedText | GrowingText | SsmlDocument) -> float:
    """The seconds of silence that a document asks for, in all."""
    return sum(each.duration_s for each in text.breaks) if isinstance(text, SsmlDocument) else 0.0
