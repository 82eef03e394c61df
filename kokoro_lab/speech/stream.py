"""The stream of one utterance: runs the whole pipeline, chunk by chunk, while somebody listens.

    text → segments → decoder → trim, pause → gain, limiter → chunks

Every step starts again with each segment. So a stream that broke is resumed from the segment in which it
broke, with the same samples. Every step is a generator, so memory does not grow with the text. The one
exception is the measured loudness of a file, for which all samples are held. While a segment is decoded, the
next one's text is turned into phonemes and its prosody is computed, as soon as the listener has enough speech
that was received and not yet heard.

A *segment* is the part of a text that the model reads at once, a sentence or more. A *window* is the part of
a segment that the vocoder decodes at once, at most 1.5 s. A *claim* asks for the cores in competition with
other streams.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain
from threading import Event

import numpy as np

from kokoro_lab.datatypes import (
    SAMPLE_RATE_HZ,
    AudioChunk,
    Clip,
    Fallback,
    Place,
    Samples,
    SynthesisReport,
)
from kokoro_lab.dsp import SETTLED_S, EdgeTrimmer
from kokoro_lab.errors import SynthesisError
from kokoro_lab.graphs.signatures import DURATION_FRAME_SAMPLES
from kokoro_lab.provenance import versions
from kokoro_lab.scheduling.kept_threads import Lookahead
from kokoro_lab.scheduling.stopwatch import Stopwatch
from kokoro_lab.speech.chunker import Chunker
from kokoro_lab.speech.first_audio import FirstAudio
from kokoro_lab.speech.levelling import Levelling, SegmentStart, bounded
from kokoro_lab.speech.parts import Parts
from kokoro_lab.speech.preparation import Preparation, PreparedSegment, go_on
from kokoro_lab.speech.silence import Pause, silence_of, trimmer_of
from kokoro_lab.speech.timeline import Timeline
from kokoro_lab.speech.utterance import CheckedUtterance
from kokoro_lab.text.growing import GrowingText

SETTLED_SAMPLES = math.ceil(SETTLED_S * SAMPLE_RATE_HZ)
"""How many samples before a given one must be decoded, so that the given one is exact to the last bit."""
LEAD_S = 0.4
"""Once a listener has this much unplayed speech, or made computing wait for as long, the next segment is
prepared in parallel. Earlier, its preparation would take the cores from the windows that are needed next.
This changes when samples are computed, and not the samples."""


class SpeechStream(Iterator[AudioChunk]):
    """The stream of one utterance. Iterate to the end, then read `report`; or `close` it early.

    Parameters
    ----------
    parts : Parts
        The parts of the engine that speaks.
    asked : CheckedUtterance
        The utterance to be spoken, and whether somebody listens meanwhile.
    chunk_s : float, optional
        Length of a chunk; None takes the configuration's.
    cached : bool
        Whether a stream's first audio and the phonemes of sentences are taken from the engine's caches, and
        kept there.
    place : Place, optional
        Begin there, and not at the beginning of the text. The chunk in which the place lies is not complete;
        the chunks after it equal those of the stream from which the place comes.
    heard_samples : int
        How much of the stream the listener has. In the segment at `place`, only the windows that later
        samples need are decoded; chunks before `heard_samples` may come, and may be wrong.
    stop : threading.Event, optional
        Set it to end the stream: nothing is computed after the window under way, and that window is not
        handed out.
    growing : GrowingText, optional
        The text, if it is still being written; then `asked` has an empty text.
    client : str
        The client for whom it is computed: clients whose streams are equally urgent compute in turn.
    listened : bool
        Whether somebody listens meanwhile; for a file, nobody does, and streams compute first.

    Attributes
    ----------
    claim : Claim
        The claim by which it asks for the cores.
    primed : bool
        Whether the first audio comes from the cache; its time then does not count as TTFA.
    segments : list of Segment
        The segments that are under way or done.
    timings : list of WordTiming
        When the words of segments that are done are heard.
    marks : list of MarkTiming
        The marks of a document that the speech has passed, and when.
    places : dict of int to Place
        Where the segments that are under way or done, or whose first audio comes from the cache, can be begun
        again, by their ids.
    statistics : str
        The statistics with which the vocoder normalises: `predicted` or `exact`. Known before the first
        chunk.
    text_came_s : float or None
        The time by `time.perf_counter` when the text arrived for which the last chunk waited; None if it did
        not wait.
    """

    def __init__(
        self,
        parts: Parts,
        asked: CheckedUtterance,
        *,
        chunk_s: float | None = None,
        cached: bool = True,
        place: Place | None = None,
        heard_samples: int = 0,
        longest_s: float = math.inf,
        stop: Event | None = None,
        growing: GrowingText | None = None,
        client: str = "",
        listened: bool = True,
    ) -> None:
        self._parts = parts
        self._asked = asked
        self._heard_samples = heard_samples
        self._longest_s = longest_s
        self._needed_samples = heard_samples - SETTLED_SAMPLES
        if place is not None and place.opens and self._needed_samples <= place.start_samples:
            place = None  # the place is so near the beginning that nothing can be left out
        self._place = place
        self._stop = stop or Event()
        self._watch = Stopwatch()
        self.claim = parts.cores.claim(
            client,
            self._stop,
            listened=listened and asked.streamed,
            stood_still=partial(self._watch.stood_still, "model"),
        )
        self._preparation = Preparation(
            parts, asked, cached=cached, place=place, stopwatch=self._watch, claim=self.claim, growing=growing
        )
        chunk_s = parts.config.chunk_ms / 1000 if chunk_s is None else chunk_s
        self._growing = growing
        self.text_came_s: float | None = None
        self._ahead = Lookahead(self._preparation.segments())
        self._levelling = Levelling(asked.utterance, asked.voice, self._watch)
        # A stream that begins later has no first audio to keep
        kept = asked.streamed and cached and place is None and growing is None
        key = asked.digest(chunk_s, parts.active_provider) if kept else None
        self._timeline = Timeline()
        self._first_audio = FirstAudio(parts.first_audio, key, self._timeline.places)
        self._timeline.places.update(self._first_audio.places)
        self.primed = bool(self._first_audio.chunks)
        self.segments = self._timeline.segments
        self.timings = self._timeline.timings
        self.marks = self._timeline.marks
        self.places = self._timeline.places
        self.statistics = asked.statistics
        self._held_since_s: float | None = None
        self._idle_s = 0.0
        self._ttfa_s = float("nan")
        self._samples = 0
        self._report: SynthesisReport | None = None
        self._chunker = Chunker(chunk_s, start_samples=0 if place is None else place.start_samples)
        self._chunks = self._run()

    def __next__(self) -> AudioChunk:
        if self._held_since_s is not None:  # computing waited until the last chunk was taken
            held_s = time.perf_counter() - self._held_since_s
            self._idle_s += held_s
            self.claim.held_up(held_s)
        chunk = next(self._chunks)
        self._held_since_s = time.perf_counter()
        return chunk

    def begin(self) -> None:
        """Read the first segment's text now, which takes a few milliseconds, so that a text without words is
        refused at once.

        Raises
        ------
        Gone
            The text has no such place as `place`.
        """
        self._preparation.begin()

    def close(self) -> None:
        """Stop the stream. No more of it is computed."""
        self._chunks.close()
        self._end()

    def joined(self) -> Clip:
        """The rest of the stream as one clip. If it is called before the first `next`, the clip is the whole
        stream."""
        return Clip(
            samples=np.concatenate([chunk.samples for chunk in self]),
            sample_rate_hz=SAMPLE_RATE_HZ,
            report=self.report,
            segments=tuple(self.segments),
            timings=tuple(self.timings),
            marks=tuple(self.marks),
            seed=self._asked.utterance.seed,
        )

    @property
    def fill(self) -> dict[str, float]:
        """How full the queues are: segments prepared ahead (0 or 1), samples held until they fill a chunk,
        and seconds of speech that a listener in real time has in hand."""
        return {
            "prepared_segments": self._ahead.ahead,
            "held_samples": self._chunker.held_samples,
            "lead_s": round(self.claim.lead_s, 3),
        }

    @property
    def compute_s(self) -> float:
        """Seconds of computing so far."""
        return self._watch.busy_s

    @property
    def is_computed(self) -> bool:
        """Whether all of the stream is computed."""
        return self._report is not None

    @property
    def characters(self) -> int:
        """Characters of the text, as far as it has been written."""
        return len(self._asked.utterance.text) if self._growing is None else self._growing.length

    @property
    def sent_samples(self) -> int:
        """Samples from the beginning of the utterance to the end of the last chunk that was made."""
        return self._chunker.sent_samples

    @property
    def wordless(self) -> bool:
        """Whether there is no word in the text, and so no sound; known once the stream has begun."""
        return self._preparation.wordless

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """Substitutions made so far: those for this stream, and the engine's changes of provider."""
        return (*self._preparation.fallbacks, *self._parts.placement().fallbacks)

    @property
    def report(self) -> SynthesisReport:
        """The report: what the speech cost, and which models and providers ran. It is complete only after the
        last chunk.

        Raises
        ------
        SynthesisError
            The stream has not come to its end.
        """
        if self._report is None:
            raise SynthesisError("The report is made when the stream has ended; this one has not.")
        return self._report

    def _run(self) -> Generator[AudioChunk, None, None]:
        self._parts.enter_thread()
        try:
            for chunk in self._first_audio.chunks:
                yield self._delivered(chunk)
            spoken = self._spoken()
            if self._longest_s < math.inf:
                spoken = bounded(spoken, self._longest_s)
            for samples in chain(self._levelling.levelled(spoken), (None,)):
                for chunk in self._chunker.flush() if samples is None else self._chunker.push(samples):
                    if chunk.chunk_id < len(self._first_audio.chunks):
                        continue  # was delivered already
                    if not self.primed and math.isnan(self._ttfa_s) and self._speaks(chunk):
                        self._ttfa_s = time.perf_counter() - self._asked.accepted
                    self._first_audio.keep(chunk)
                    yield self._delivered(chunk)
            self._first_audio.keep_all()
            if not self._asked.streamed and not self.wordless:
                self._ttfa_s = time.perf_counter() - self._asked.accepted
            self._report = self._make_report()
        finally:
            self._end()

    def _end(self) -> None:
        self._ahead.close()
        self._preparation.interrupt()
        self.claim.leave()

    def _speaks(self, chunk: AudioChunk) -> bool:
        """Whether speech has begun by the end of a chunk. A stream may begin with silence, if a document asks
        for a pause there."""
        end = round(chunk.start_s * SAMPLE_RATE_HZ) + len(chunk.samples)
        speech_from = self._timeline.speech_from
        return speech_from is not None and end > speech_from

    def _delivered(self, chunk: AudioChunk) -> AudioChunk:
        go_on(self._stop)  # a window that was being computed is not handed out, either
        if round(chunk.start_s * SAMPLE_RATE_HZ) < self._heard_samples:
            return chunk  # the listener has no speech in hand now
        self.claim.gave(len(chunk.samples) / SAMPLE_RATE_HZ)
        self._samples += len(chunk.samples)
        return chunk

    def _spoken(self) -> Iterator[Samples | SegmentStart]:
        """Yield trimmed segments as loud as the model spoke them, the pauses between them, and a marker at
        the beginning of each segment."""
        line = self._timeline
        for prepared in self._ahead:
            segment, decoded = prepared.segment, prepared.decoded
            self.text_came_s = prepared.text_came_s
            trimmer = trimmer_of(segment, prepared.stretch)
            pause, blocks, left_out = prepared.pause, decoded.blocks, 0
            place = None if line.segments else self._place
            if place is not None:
                pause = Pause(0.0)  # a place lies after the pause
                left_out, blocks = self._entered(prepared, trimmer, place)
                line.position = place.start_samples + left_out
                self._chunker.enter(line.position)
            opens = not line.segments and (place is None or place.opens)
            yield from self._silent(pause.sure(line.behind, first=not line.segments))
            line.take_up(segment)
            for block in self._decoded(prepared, blocks, trimmer):
                if len(block) and not line.speaks:
                    yield from self._silent(pause.rest(line.behind, trimmer.kept_lead_samples))
                    whole = block if decoded.later is None and prepared.envelope() is None else None
                    heard = (decoded.energy, whole)
                    yield SegmentStart(len(segment.token_ids), prepared.stretch, prepared.voice, *heard)
                    first_id = self._preparation.first_ids[segment.sentence]
                    line.begin_speech(first_id, trimmer.lead_samples, left_out, opens=opens)
                    self._chunker.mark(segment.segment_id, line.position)
                line.position += len(block)
                yield block
            line.end_speech(decoded.durations, trimmer.kept_tail_samples, prepared.stretch)
            line.reach(self._preparation.marks, self._preparation.breaks)
        line.reach(self._preparation.marks, self._preparation.breaks, ended=True)
        at_end = self._preparation.at_end
        if at_end is not None:
            yield from self._silent(at_end.sure(line.behind, first=False) + at_end.rest(line.behind, 0))

    def _silent(self, samples: int) -> Iterator[Samples]:
        self._timeline.position += samples
        for block in silence_of(samples):
            go_on(self._stop)
            yield block

    def _entered(
        self, prepared: PreparedSegment, trimmer: EdgeTrimmer, place: Place
    ) -> tuple[int, Iterator[Samples]]:
        """How many samples of the trimmed segment at `place` the listener does not need, and the blocks after
        them. The first of these blocks has speech in it: else the length of the silence before the speech
        would be unknown.
        """
        decoded, lead = prepared.decoded, place.lead_samples
        wanted = self._needed_samples - place.start_samples + lead
        while decoded.later is not None and not prepared.in_order and wanted > lead:
            go_on(self._stop)
            start, blocks = decoded.later(wanted)
            if start <= lead:
                break
            with self.claim.computing(), self._watch("model"):
                first = next(blocks)
            if trimmer.hears(first):
                trimmer.enter(lead)
                return start - lead, chain((first,), blocks)
            wanted = start - 1
        return 0, decoded.blocks

    def _decoded(
        self, prepared: PreparedSegment, blocks: Iterator[Samples], trimmer: EdgeTrimmer
    ) -> Iterator[Samples]:
        changes = [each for each in (prepared.envelope(), prepared.stretcher()) if each is not None]
        left = int(prepared.decoded.durations.sum()) * DURATION_FRAME_SAMPLES
        while True:
            go_on(self._stop)
            # Behind the last sample there is nothing to compute: the end is not waited for
            with self.claim.computing() if left > 0 else nullcontext(), self._watch("model"):
                block = next(blocks, None)
            if block is None:
                break
            left -= len(block)
            with self._watch("dsp"):
                for change in (*changes, trimmer):
                    block = change.push(block)
            yield block
            if self._asked.streamed and self.claim.lead_s + self._idle_s > LEAD_S:
                self._ahead.begin()
        with self._watch("dsp"):
            rest = np.zeros(0, np.float32)
            for change in (*changes, trimmer):
                rest = np.concatenate([change.push(rest), change.flush()])
        yield rest

    def _make_report(self) -> SynthesisReport:
        parts, asked, prepared = self._parts, self._asked, self._preparation
        seconds = self._watch.stages_s
        return SynthesisReport(
            voice=asked.voice.name,
            speed=asked.utterance.speed,
            language=asked.language,
            characters=self.characters,
            segments=len(self.segments),
            token_count=sum(len(s.token_ids) for s in self.segments),
            words=sum(not word.is_mark for s in self.segments for word in s.words),
            audio_s=self._samples / SAMPLE_RATE_HZ,
            compute_s=self._watch.busy_s,
            text_s=seconds.get("text", 0.0),
            model_s=seconds.get("model", 0.0),
            dsp_s=seconds.get("dsp", 0.0),
            ttfa_s=self._ttfa_s,
            first_audio="cache" if self.primed else "computed",
            streamed=asked.streamed,
            variant=parts.config.variant,
            model_sha256=parts.model_sha256,
            requested_provider=parts.config.provider,
            active_provider=parts.active_provider,
            threads=parts.config.thread_count,
            statistics=asked.statistics,
            loudness=asked.utterance.loudness,
            gain_db=self._levelling.gain_db,
            limited_db=self._levelling.limited_db,
            style_rows=tuple(prepared.style_rows),
            stretches=tuple(prepared.stretches),
            choices=tuple(prepared.choices),
            fallbacks=self.fallbacks,
            session=parts.session_record,
            versions=versions(),
        )
