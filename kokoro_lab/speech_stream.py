"""One utterance on its way out: the whole pipeline, as it is listened to.

    text → segments → decoder → trim, pause → gain, limiter → frames

Every stage is a generator, so memory does not depend on the length of the text, but for a file's
measured loudness, which must hear the whole. While a segment is decoded, the next one's text and
prosody are made as soon as there is speech in hand to cover them.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kokoro_lab.alignment import word_timings
from kokoro_lab.datatypes import (
    SAMPLE_RATE_HZ,
    AudioChunk,
    Clip,
    Fallback,
    Samples,
    Segment,
    SynthesisReport,
    Utterance,
    WordTiming,
)
from kokoro_lab.dsp import EdgeTrimmer, Gain, Limiter, normalise_loudness, silence, voice_gain_db
from kokoro_lab.errors import KokoroLabError, SynthesisError
from kokoro_lab.g2p.frontend import Languages
from kokoro_lab.lookahead import Lookahead
from kokoro_lab.model.decoder import Decoded
from kokoro_lab.model.graphs import DURATION_FRAME_SAMPLES
from kokoro_lab.model.providers import recorded_options
from kokoro_lab.primer import PRIMED_S
from kokoro_lab.provenance import versions
from kokoro_lab.stopwatch import Stopwatch
from kokoro_lab.streaming import Framer
from kokoro_lab.text.language import resolve_language
from kokoro_lab.utterance import nothing_to_speak

if TYPE_CHECKING:
    from kokoro_lab.engine import Engine

MEASURABLE_S = 3.0
"""Below this, integrated loudness says more about the words than about the level (0.7 LU of scatter
at 1 s), so a short clip is given its voice's gain, like a stream."""
LEAD_S = 0.4
"""Speech made ahead of a listener in real time from which on the next segment is prepared beside this
one. Earlier, it would take the cores from the windows that are needed next. Scheduling only: the
samples are the same."""


class _Prepared(NamedTuple):
    """A segment whose prosody is known, and the pause before it."""

    segment: Segment
    pause_s: float
    decoded: Decoded


class SpeechStream(Iterator[AudioChunk]):
    """One utterance on its way out. Iterate to the end, then read `report`; or `close` it early.

    Parameters
    ----------
    engine : Engine
        Whose models speak.
    utterance : Utterance
        What is to be said.
    frame_s : float
        Length of a chunk.
    streamed : bool
        Whether somebody listens meanwhile, or it is joined into a file.
    cached : bool
        Whether a stream's first audio and the phonemes of sentences are taken from the engine's caches, and
        kept there.

    Attributes
    ----------
    segments : list of Segment
        Those that have been decoded so far.
    timings : list of WordTiming
        When their words are heard.
    primed : bool
        Whether the first audio was spoken before and comes from the cache: then it is no TTFA.
    """

    def __init__(
        self, engine: Engine, utterance: Utterance, *, frame_s: float, streamed: bool, cached: bool = True
    ) -> None:
        self._accepted = time.perf_counter()
        self._engine = engine
        self._utterance = utterance
        self._streamed = streamed
        self._cached = streamed and cached
        self._remembered = cached
        self._voice = engine.voice(utterance.voice)
        self._language = resolve_language(utterance.language or self._voice.language)
        self._watch = Stopwatch()
        lexicons = engine.front_end.lexicons
        self._lexicon = lexicons.current().with_request(utterance.lexicon)
        self._fallbacks: list[Fallback] = [*lexicons.problems()]
        self._statistics = utterance.statistics
        if self._statistics == "predicted":
            reason = engine.decoder.predicts(self._voice)
            if reason is not None:
                self._statistics = "exact"
                self._fallbacks.append(Fallback("statistics", f"exact instead of predicted: {reason}"))
        with self._watch("text"):
            self._text = engine.front_end.cleaned(utterance.text)
        if not len(self._text):
            raise nothing_to_speak(utterance.text)
        self.segments: list[Segment] = []
        self.timings: list[WordTiming] = []
        self._texts = self._speakable()
        self._ahead = Lookahead(self._prepared())
        self._key = engine.first_audio.key(
            utterance, self._voice.name, self._language, self._statistics, frame_s, self._lexicon.version
        )
        self._primed = engine.first_audio.get(self._key) if self._cached else ()
        self.primed = bool(self._primed)
        self._fresh: list[AudioChunk] = []
        self._style_rows: list[int] = []
        self._gain_db = self._limited_db = 0.0
        self._first_s: float | None = None
        self._ttfa_s = float("nan")
        self._samples = 0
        self._report: SynthesisReport | None = None
        self._interruption: KokoroLabError | None = None
        self._framer = Framer(frame_s)
        self._chunks = self._run()

    def __next__(self) -> AudioChunk:
        return next(self._chunks)

    def begin(self) -> None:
        """Read the first segment's text now, a few milliseconds: a text without words is found out.

        Raises
        ------
        TextError
            There is nothing to speak.
        """
        first = next(self._texts)
        self._texts = chain((first,), self._texts)

    def close(self) -> None:
        """Stop here: nothing further is computed."""
        self._chunks.close()
        self._ahead.close()

    def interrupt(self, reason: KokoroLabError) -> None:
        """Stop from another thread: who iterates gets `reason` raised before the next window is decoded."""
        self._interruption = reason

    def joined(self) -> Clip:
        """The rest of the stream as one clip; for the whole of it, ask before the first `next`."""
        return Clip(
            samples=np.concatenate([chunk.samples for chunk in self]),
            sample_rate_hz=SAMPLE_RATE_HZ,
            report=self.report,
            segments=tuple(self.segments),
            timings=tuple(self.timings),
            seed=self._utterance.seed,
        )

    @property
    def fill(self) -> dict[str, float]:
        """How full the stages are: segments prepared ahead (0 or 1), samples held until they fill a frame,
        and seconds of speech that a listener in real time has in hand."""
        return {
            "prepared_segments": self._ahead.ahead,
            "held_samples": self._framer.held_samples,
            "lead_s": round(self._lead_s(), 3),
        }

    @property
    def statistics(self) -> str:
        """What the vocoder normalises with: `predicted` or `exact`. Known before the first chunk."""
        return self._statistics

    @property
    def fallbacks(self) -> tuple[Fallback, ...]:
        """Substitutions made so far."""
        return tuple(self._fallbacks)

    @property
    def report(self) -> SynthesisReport:
        """What it cost and what ran. Complete only after the last chunk.

        Raises
        ------
        SynthesisError
            The stream has not come to its end.
        """
        if self._report is None:
            raise SynthesisError("The report is made when the stream has ended; this one has not.")
        return self._report

    def _run(self) -> Generator[AudioChunk, None, None]:
        try:
            for chunk in self._primed:
                yield self._delivered(chunk)
            for samples in chain(self._levelled(self._spoken()), (None,)):
                for chunk in self._framer.flush() if samples is None else self._framer.push(samples):
                    if chunk.chunk_id < len(self._primed):
                        continue  # was delivered already
                    if not self.primed and self._first_s is None:
                        # Leading silence is trimmed, so the first frame already speaks
                        self._ttfa_s = time.perf_counter() - self._accepted
                    self._keep(chunk)
                    yield self._delivered(chunk)
            self._engine.first_audio.put(self._key, self._fresh)
            self._report = self._make_report()
        finally:
            self._ahead.close()

    def _keep(self, chunk: AudioChunk) -> None:
        """Remember the beginning for the next time that this is asked for."""
        if not self._cached or self.primed:
            return
        if chunk.start_s < PRIMED_S:
            self._fresh.append(chunk)
        elif self._fresh:
            self._engine.first_audio.put(self._key, self._fresh)
            self._fresh = []

    def _delivered(self, chunk: AudioChunk) -> AudioChunk:
        if self._first_s is None:
            self._first_s = time.perf_counter()
        self._samples += len(chunk.samples)
        return chunk

    def _lead_s(self) -> float:
        if self._first_s is None:
            return 0.0
        return self._samples / SAMPLE_RATE_HZ - (time.perf_counter() - self._first_s)

    def _spoken(self) -> Iterator[Samples]:
        """Trimmed segments with pauses between them, at the model's own level."""
        position = 0
        for segment, pause_s, decoded in self._ahead:
            if self.segments:
                gap = silence(pause_s, SAMPLE_RATE_HZ)
                position += len(gap)
                yield gap
            self._framer.mark(segment.segment_id, position)
            self.segments.append(segment)
            started = position
            for block in self._decoded(segment, decoded, position):
                position += len(block)
                yield block
            if position == started:
                raise SynthesisError(
                    f"The model was silent for segment {segment.segment_id} "
                    f"({len(segment.token_ids)} token ids).",
                    mend="Try another voice or variant; this is a bug worth reporting.",
                )

    def _prepared(self) -> Iterator[_Prepared]:
        """Segments with their prosody. May run beside the decoding of the segment before."""
        for segment, pause_s in self._texts:
            self._style_rows.append(len(segment.token_ids) - 1)
            with self._watch("model"):
                decoded = self._engine.decoder.decode(
                    segment.token_ids,
                    self._voice.style(len(segment.token_ids)),
                    self._utterance.speed,
                    predicted=self._statistics == "predicted",
                    urgent=len(self._style_rows) == 1,  # of the first segment, a listener waits
                )
            yield _Prepared(segment, pause_s, decoded)

    def _speakable(self) -> Iterator[tuple[Segment, float]]:
        """Segments that hold a word, with the pause before each."""
        pause_s = 0.0
        spoken = False
        for segment in self._timed_segments():
            if any(symbol.isalpha() for symbol in segment.phonemes):
                yield segment, pause_s
                spoken = True
                pause_s = segment.pause_after_s
            else:
                pause_s = max(pause_s, segment.pause_after_s)  # a row of marks is a pause, not a sound
        if not spoken:
            raise nothing_to_speak(self._utterance.text)

    def _timed_segments(self) -> Iterator[Segment]:
        languages = Languages(
            self._language,
            self._voice.language,
            self._utterance.detect_languages,
            remembered=self._remembered,
        )
        segments = self._engine.front_end.segments_of(
            self._text, languages, self._fallbacks.append, self._lexicon
        )
        while True:
            with self._watch("text"):
                segment = next(segments, None)
            if segment is None:
                return
            yield segment

    def _decoded(self, segment: Segment, decoded: Decoded, position: int) -> Iterator[Samples]:
        trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
        while True:
            if self._interruption is not None:
                raise self._interruption
            with self._watch("model"):
                block = next(decoded.blocks, None)
            if block is None:
                break
            with self._watch("dsp"):
                trimmed = trimmer.push(block)
            yield trimmed
            if self._streamed and self._lead_s() > LEAD_S:
                self._ahead.begin()
        with self._watch("dsp"):
            rest = trimmer.flush()
        yield rest
        heard = int(decoded.durations.sum()) * DURATION_FRAME_SAMPLES
        heard -= trimmer.lead_samples + trimmer.tail_samples
        place = range(position, position + heard)
        self.timings += word_timings(segment, decoded.durations, position - trimmer.lead_samples, place)

    def _levelled(self, pieces: Iterator[Samples]) -> Iterator[Samples]:
        """Gain and limiter. Measured loudness must hear the whole; the voice's gain need not."""
        if self._utterance.loudness == "measured":
            whole = np.concatenate(list(pieces))
            if len(whole) >= MEASURABLE_S * SAMPLE_RATE_HZ:
                with self._watch("dsp"):
                    levelled, self._gain_db, self._limited_db = normalise_loudness(whole, SAMPLE_RATE_HZ)
                yield levelled
                return
            pieces = iter((whole,))
        if self._utterance.loudness != "none":
            self._gain_db = voice_gain_db(self._voice.level_lufs)
        gain = Gain(self._gain_db)
        limiter = Limiter(SAMPLE_RATE_HZ)
        for piece in pieces:
            with self._watch("dsp"):
                limited = limiter.push(gain.push(piece))
            yield limited
        with self._watch("dsp"):
            rest = limiter.flush()
        self._limited_db = limiter.max_reduction_db
        yield rest

    def _make_report(self) -> SynthesisReport:
        engine, seconds = self._engine, self._watch.stages_s
        return SynthesisReport(
            voice=self._voice.name,
            speed=self._utterance.speed,
            language=self._language,
            characters=len(self._utterance.text),
            segments=len(self.segments),
            token_count=sum(len(s.token_ids) for s in self.segments),
            words=sum(len(s.words) for s in self.segments),
            audio_s=self._samples / SAMPLE_RATE_HZ,
            compute_s=self._watch.busy_s,
            text_s=seconds.get("text", 0.0),
            model_s=seconds.get("model", 0.0),
            dsp_s=seconds.get("dsp", 0.0),
            ttfa_s=self._ttfa_s,
            first_audio="cache" if self.primed else "computed",
            streamed=self._streamed,
            variant=engine.config.variant,
            model_sha256=engine.model_sha256,
            requested_provider=engine.config.provider,
            active_provider=engine.active_provider,
            threads=engine.config.thread_count,
            statistics=self._statistics,
            loudness=self._utterance.loudness,
            gain_db=self._gain_db,
            limited_db=self._limited_db,
            style_rows=tuple(self._style_rows),
            fallbacks=tuple(self._fallbacks),
            session=recorded_options(engine.config) | dict(engine.decoder.details),
            versions=versions(),
        )
