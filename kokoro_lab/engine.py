"""Text in, chunks out: the only place that knows the whole pipeline.

    text → segments → decoder → trim, pause → gain, limiter → frames

There is one path. `Engine.stream` runs it as it is listened to; `Engine.synthesize` is that stream,
joined. Every stage is a generator, so memory does not depend on the length of the text, but for a
file's measured loudness, which must hear the whole.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from kokoro_lab.alignment import word_timings
from kokoro_lab.config import EngineConfig
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
from kokoro_lab.errors import SynthesisError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.model.artefacts import stages_folder
from kokoro_lab.model.decoder import Decoder, Staged, WholeGraph
from kokoro_lab.model.graphs import DURATION_FRAME_SAMPLES
from kokoro_lab.model.providers import recorded_options
from kokoro_lab.model.voices import Voice, load_voice
from kokoro_lab.model.weights import fetch, missing, model_path, model_sha256
from kokoro_lab.provenance import versions
from kokoro_lab.streaming import FRAME_S, Framer
from kokoro_lab.text.language import resolve_language
from kokoro_lab.utterance import nothing_to_speak, utterance_of

log = logging.getLogger(__name__)

MEASURABLE_S = 3.0
"""Below this, integrated loudness says more about the words than about the level (0.7 LU of scatter
at 1 s), so a short clip is given its voice's gain, like a stream."""
VOICE_CACHE = 64


def load_engine(
    variant: str | None = None,
    provider: str | None = None,
    *,
    config: EngineConfig | None = None,
    say: Callable[[str], None] = log.info,
) -> Engine:
    """An engine on the real weights, fetched first if they are not in the cache.

    Parameters
    ----------
    variant, provider : str, optional
        Override what the environment says; see `EngineConfig`.
    config : EngineConfig, optional
        The whole configuration, instead of the environment's.
    say : callable
        Told in a line each what is being fetched.

    Raises
    ------
    SettingsError, ProviderError, WeightsError
        What was asked for does not exist, or cannot be had.
    """
    config = config or EngineConfig.from_settings()
    config = replace(config, variant=variant or config.variant, provider=provider or config.provider)
    if missing((config.variant,), config.home):
        fetch((config.variant,), source=config.source, home=config.home, say=say)
    decoder: Staged | WholeGraph
    if config.variant == "fp32":
        decoder = Staged(stages_folder(config.home, say), config)
    else:
        decoder = WholeGraph(model_path(config.variant, config.home), config)
    return Engine(
        decoder,
        config=config,
        voices=lambda spec: load_voice(spec, config.home),
        model_sha256=model_sha256(config.variant),
        active_provider=decoder.active_provider,
    )


class Engine:
    """Speaks. Thread-safe: one engine serves any number of streams at a time.

    Made by `load_engine`; tests hand in a small decoder and voices of their own.
    """

    def __init__(
        self,
        decoder: Decoder,
        *,
        config: EngineConfig,
        voices: Callable[[str], Voice],
        model_sha256: str,
        active_provider: str,
        front_end: FrontEnd | None = None,
    ) -> None:
        self.decoder = decoder
        self.config = config
        self.model_sha256 = model_sha256
        self.active_provider = active_provider
        self.front_end = front_end or FrontEnd()
        self._load_voice = voices
        self._voices: OrderedDict[str, Voice] = OrderedDict()
        self._lock = threading.Lock()

    def voice(self, spec: str) -> Voice:
        """The voice that `spec` names; the last ones used are kept."""
        with self._lock:
            if spec in self._voices:
                self._voices.move_to_end(spec)
                return self._voices[spec]
        voice = self._load_voice(spec)
        with self._lock:
            self._voices[spec] = voice
            while len(self._voices) > VOICE_CACHE:
                self._voices.popitem(last=False)
        return voice

    def stream(self, text: str | Utterance, *, frame_s: float = FRAME_S, **options: Any) -> SpeechStream:
        """Speak as it is listened to.

        Parameters
        ----------
        text : str or Utterance
            What to say.
        frame_s : float
            Length of a chunk, 0.030 to 0.120 s.
        **options
            Fields of `Utterance`: voice, speed, language, loudness, statistics, seed.

        Returns
        -------
        SpeechStream
            Iterates over `AudioChunk`s of float32 mono at 24 kHz. Nothing is computed before the
            first `next`, but what is wrong with the request is raised here.

        Raises
        ------
        TextError, VoiceError, LanguageError, ParameterError
            The request cannot be spoken.
        """
        return SpeechStream(self, utterance_of(text, options, streamed=True), frame_s=frame_s, streamed=True)

    def synthesize(self, text: str | Utterance, **options: Any) -> Clip:
        """Speak into a `Clip`: the stream, joined. Options and errors are those of `stream`."""
        utterance = utterance_of(text, options, streamed=False)
        stream = SpeechStream(self, utterance, frame_s=FRAME_S, streamed=False)
        chunks = [chunk.samples for chunk in stream]
        return Clip(
            samples=np.concatenate(chunks),
            sample_rate_hz=SAMPLE_RATE_HZ,
            report=stream.report,
            segments=tuple(stream.segments),
            timings=tuple(stream.timings),
            seed=utterance.seed,
        )

    def warm(self, voice: str = "af_heart", language: str | None = None) -> SynthesisReport:
        """Speak one word and throw it away, so that the first listener does not wait for lazy parts."""
        language = resolve_language(language or self.voice(voice).language)
        self.front_end.warm(language)
        return self.synthesize("Ready.", statistics="predicted", voice=voice, language=language).report


class SpeechStream(Iterator[AudioChunk]):
    """One utterance on its way out. Iterate to the end, then read `report`; or `close` it early.

    Attributes
    ----------
    segments : list of Segment
        Those that have been decoded so far.
    timings : list of WordTiming
        When their words are heard.
    """

    def __init__(self, engine: Engine, utterance: Utterance, *, frame_s: float, streamed: bool) -> None:
        self._accepted = time.perf_counter()
        self._engine = engine
        self._utterance = utterance
        self._streamed = streamed
        self._voice = engine.voice(utterance.voice)
        self._language = resolve_language(utterance.language or self._voice.language)
        self._watch = _Watch()
        self._fallbacks: list[Fallback] = []
        self._statistics = utterance.statistics
        if self._statistics == "predicted":
            reason = engine.decoder.predicts(self._voice)
            if reason is not None:
                self._statistics = "exact"
                self._fallbacks.append(Fallback("statistics", f"exact instead of predicted: {reason}"))
        with self._watch("text"):
            self._text = engine.front_end.normalised(utterance.text, self._language)
        if not len(self._text):
            raise nothing_to_speak(utterance.text)
        self.segments: list[Segment] = []
        self.timings: list[WordTiming] = []
        self._style_rows: list[int] = []
        self._gain_db = self._limited_db = 0.0
        self._ttfa_s: float | None = None
        self._samples = 0
        self._report: SynthesisReport | None = None
        self._framer = Framer(frame_s)
        self._chunks = self._run()

    def __next__(self) -> AudioChunk:
        return next(self._chunks)

    def close(self) -> None:
        """Stop here: nothing further is computed."""
        self._chunks.close()

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
        for samples in self._levelled(self._spoken()):
            for chunk in self._framer.push(samples):
                yield self._delivered(chunk)
        for chunk in self._framer.flush():
            yield self._delivered(chunk)
        self._report = self._make_report()

    def _delivered(self, chunk: AudioChunk) -> AudioChunk:
        if self._ttfa_s is None:  # leading silence is trimmed, so the first frame already speaks
            self._ttfa_s = time.perf_counter() - self._accepted
        self._samples += len(chunk.samples)
        return chunk

    def _spoken(self) -> Iterator[Samples]:
        """Trimmed segments with pauses between them, at the model's own level."""
        position = 0
        pause_s = 0.0
        for segment in self._timed_segments():
            if not any(symbol.isalpha() for symbol in segment.phonemes):
                pause_s = max(pause_s, segment.pause_after_s)  # a row of marks is a pause, not a sound
                continue
            if self.segments:
                gap = silence(pause_s, SAMPLE_RATE_HZ)
                position += len(gap)
                yield gap
            self._framer.mark(segment.segment_id, position)
            self.segments.append(segment)
            started = position
            for block in self._decoded(segment, position):
                position += len(block)
                yield block
            if position == started:
                raise SynthesisError(
                    f"The model was silent for segment {segment.segment_id} "
                    f"({len(segment.token_ids)} token ids).",
                    mend="Try another voice or variant; this is a bug worth reporting.",
                )
            pause_s = segment.pause_after_s
        if not self.segments:
            raise nothing_to_speak(self._utterance.text)

    def _timed_segments(self) -> Iterator[Segment]:
        segments = self._engine.front_end.segments_of(self._text, self._language, self._fallbacks.append)
        while True:
            with self._watch("text"):
                segment = next(segments, None)
            if segment is None:
                return
            yield segment

    def _decoded(self, segment: Segment, position: int) -> Iterator[Samples]:
        style = self._voice.style(len(segment.token_ids))
        self._style_rows.append(len(segment.token_ids) - 1)
        trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
        with self._watch("model"):
            decoded = self._engine.decoder.decode(
                segment.token_ids,
                style,
                self._utterance.speed,
                predicted=self._statistics == "predicted",
            )
        while True:
            with self._watch("model"):
                block = next(decoded.blocks, None)
            if block is None:
                break
            with self._watch("dsp"):
                trimmed = trimmer.push(block)
            yield trimmed
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
        engine, seconds = self._engine, self._watch.seconds
        return SynthesisReport(
            voice=self._voice.name,
            speed=self._utterance.speed,
            language=self._language,
            characters=len(self._utterance.text),
            segments=len(self.segments),
            token_count=sum(len(s.token_ids) for s in self.segments),
            words=sum(len(s.words) for s in self.segments),
            audio_s=self._samples / SAMPLE_RATE_HZ,
            compute_s=sum(seconds.values()),
            text_s=seconds.get("text", 0.0),
            model_s=seconds.get("model", 0.0),
            dsp_s=seconds.get("dsp", 0.0),
            ttfa_s=self._ttfa_s if self._ttfa_s is not None else float("nan"),
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
            session=recorded_options(engine.config),
            versions=versions(),
        )


class _Watch:
    """Seconds spent in each stage. Time between two chunks, which is the listener's, is in none."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
