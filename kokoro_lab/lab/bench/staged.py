"""An utterance spoken stage by stage, in one thread, with a clock on each stage.

The decoder is the one that the engine runs; only what is around it is laid out in a line here, and the
excitation comes after the trunk, not beside it: so sound begins some milliseconds later than in the engine.
`samples_unlike_the_engine` shows that what comes out is what the engine says.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from kokoro_lab.config import STAGED
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples, Segment
from kokoro_lab.dsp import EdgeTrimmer, Gain, Limiter, silence, voice_gain_db
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.model.decoder import SegmentRequest, StagedDecoder
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.model.prosody import Prosody
from kokoro_lab.scheduling.stopwatch import Stopwatch
from kokoro_lab.speech.chunker import Chunker
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.utterance import nothing_to_speak
from kokoro_lab.text.language import resolve_language
from kokoro_lab.weights.voices import Voice, load_voice

GRAPH_STAGES = ("prosody", "trunk", "excitation")
"""Each is one graph, and has its name."""
STATISTICS = "statistics"
"""The predictors, and what else a decoder does before its first block."""
FIRST_WINDOW, OTHER_WINDOWS = VOCODER_STAGES = ("first window", "other windows")
"""The first is all decoding up to the first block that is not silent."""
STAGES = ("text", *GRAPH_STAGES, STATISTICS, *VOCODER_STAGES, "dsp")
"""In the order of the pipeline."""


@dataclass(frozen=True, slots=True, eq=False)
class StageTimes:
    """One utterance, timed stage by stage.

    Parameters
    ----------
    first_audio_s, end_s : mapping
        Seconds spent in each of `STAGES` when the first chunk was complete, and when the last one was.
    ttfa_s, wall_s : float
        The same moments by the clock on the wall, from the call on.
    samples : numpy.ndarray
        float32 mono at 24 kHz: what was spoken.
    """

    first_audio_s: Mapping[str, float]
    end_s: Mapping[str, float]
    ttfa_s: float
    wall_s: float
    samples: Samples


class StagedSpeaker:
    """Speaks as the engine's streams do, one stage after the other.

    Parameters
    ----------
    config : EngineConfig
        Of the engine that is profiled; a variant that runs in stages.

    Attributes
    ----------
    sessions : list of ObservedSession
        Those of the decoder: one a graph.

    Raises
    ------
    ParameterError
        The variant has no stages.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._front_end = FrontEnd()
        require_stages(config)
        self._decoder = StagedDecoder(config).in_turn()
        self._observed = list(_observe(self._decoder))
        self.sessions = [each for each in self._observed if isinstance(each, ObservedSession)]

    def speak(self, text: str, voice: Voice) -> StageTimes:
        """Speak `text` once, in the language of `voice`.

        Raises
        ------
        TextError
            There is nothing to speak.
        """
        watch = StageWatch()
        for each in self._observed:
            each.watch = watch
        output = _Output(watch)
        for segment in self._segments(text, voice.language, watch):
            output.begin_segment(voice_gain_db(voice.level_at(len(segment.token_ids))))
            for block in self._decoded(segment, voice, watch):
                output.push(block)
            output.end_segment(segment.pause_after_s)
        return output.finish(text)

    def _segments(self, text: str, language: str, watch: Stopwatch) -> Iterator[Segment]:
        with watch("text"):
            segments = self._front_end.segments(text, resolve_language(language), lambda _: None)
        while True:
            with watch("text"):
                segment = next(segments, None)
            if segment is None:
                return
            yield segment

    def _decoded(self, segment: Segment, voice: Voice, watch: Stopwatch) -> Iterator[Samples]:
        sounding = OTHER_WINDOWS in watch.stages_s  # of an earlier segment
        with watch(STATISTICS):
            asked = SegmentRequest(
                segment.token_ids,
                voice.style(len(segment.token_ids)),
                predicted=self._decoder.predicts(voice) is None,
                urgent=segment.segment_id == 0,
            )
            decoded = self._decoder.decode(asked)
        while True:
            with watch(OTHER_WINDOWS if sounding else FIRST_WINDOW):
                block = next(decoded.blocks, None)
            if block is None:
                return
            sounding = sounding or bool(block.any())
            yield block


class StageWatch(Stopwatch):
    """A stopwatch for one thread, in which a stage within another one counts by itself alone.

    What is none of `STAGES` is a part of the stage that it is in.
    """

    def __init__(self) -> None:
        super().__init__()
        self._within_s: list[float] = []

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        if stage not in STAGES:
            yield
            return
        self._within_s.append(0.0)
        started_s = time.perf_counter()
        try:
            yield
        finally:
            taken_s = time.perf_counter() - started_s
            own_s = taken_s - self._within_s.pop()
            self.stages_s[stage] = self.stages_s.get(stage, 0.0) + own_s
            if self._within_s:
                self._within_s[-1] += taken_s


def _stage_s(watch: Stopwatch) -> dict[str, float]:
    return {stage: watch.stages_s.get(stage, 0.0) for stage in STAGES}


class _Output:
    """What is behind the decoder: trim, pause, gain, limiter, frames."""

    def __init__(self, watch: Stopwatch) -> None:
        self._started_s = time.perf_counter()
        self._watch = watch
        self._gain, self._limiter = Gain(0.0), Limiter(SAMPLE_RATE_HZ)
        self._chunker = Chunker()
        self._trimmer: EdgeTrimmer | None = None
        self._pause_s: float | None = None
        self._first: tuple[dict[str, float], float] | None = None
        self._chunks: list[Samples] = []

    def push(self, block: Samples) -> None:
        with self._watch("dsp"):
            if self._trimmer is None:
                self._trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
                if self._pause_s is not None:
                    self._send(silence(self._pause_s, SAMPLE_RATE_HZ))
                    self._frame(self._limiter.flush())
                    self._limiter = Limiter(SAMPLE_RATE_HZ)  # as the engine's stream, a new one each segment
            self._send(self._trimmer.push(block))
        if self._chunks and self._first is None:
            self._first = self._now()

    def begin_segment(self, gain_db: float) -> None:
        self._gain = Gain(gain_db)

    def end_segment(self, pause_s: float) -> None:
        if self._trimmer is not None:
            with self._watch("dsp"):
                self._send(self._trimmer.flush())
        self._trimmer, self._pause_s = None, pause_s

    def finish(self, text: str) -> StageTimes:
        with self._watch("dsp"):
            frames = chain(self._chunker.push(self._limiter.flush()), self._chunker.flush())
            self._chunks += [chunk.samples for chunk in frames]
        if not self._chunks:
            raise nothing_to_speak(text)
        end_s, wall_s = self._now()
        first_audio_s, ttfa_s = self._first or (end_s, wall_s)  # it may be shorter than a frame
        return StageTimes(first_audio_s, end_s, ttfa_s, wall_s, np.concatenate(self._chunks))

    def _send(self, samples: Samples) -> None:
        self._frame(self._limiter.push(self._gain.push(samples)))

    def _frame(self, levelled: Samples) -> None:
        self._chunks += [chunk.samples for chunk in self._chunker.push(levelled)]

    def _now(self) -> tuple[dict[str, float], float]:
        return _stage_s(self._watch), time.perf_counter() - self._started_s


class ObservedSession:
    """An inference session whose runs are timed and counted; in all else it is the session.

    Attributes
    ----------
    graph : str
        The stage that it runs; its graph's name.
    watch : Stopwatch
        Told of each run, under the graph's name.
    runs : int
        So far.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self.graph: str = session.stage
        self.watch = Stopwatch()
        self.runs = 0

    def run(self, *arguments: Any) -> Any:
        with self.watch(self.graph):
            values = self._session.run(*arguments)
        self.runs += 1
        return values

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class ObservedPredictor:
    """A statistics predictor that is timed; in all else it is the predictor."""

    def __init__(self, predictor: StatisticsPredictor) -> None:
        self._predictor = predictor
        self.watch = Stopwatch()

    def told(self, inputs: Samples) -> tuple[Samples, Samples]:
        with self.watch(STATISTICS):
            return self._predictor.told(inputs)

    def predict(self, prosody: Prosody) -> tuple[Samples, Samples]:
        with self.watch(STATISTICS):
            return self._predictor.predict(prosody)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._predictor, name)


def _observe(owner: object) -> Iterator[ObservedSession | ObservedPredictor]:
    """Put an observer in the place of every session and predictor inside `owner` and inside its parts."""
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        if isinstance(value, ObservedSession | ObservedPredictor):
            continue  # a part that has two names
        if isinstance(value, StatisticsPredictor):
            predictor = ObservedPredictor(value)
            setattr(owner, name, predictor)
            yield predictor
            continue
        if hasattr(value, "run") and hasattr(value, "get_providers"):
            observed = ObservedSession(value)
            setattr(owner, name, observed)
            yield observed
        elif type(value).__module__.startswith("kokoro_lab."):
            yield from _observe(value)


def require_stages(config: EngineConfig) -> None:
    """Make sure that the variant runs in stages.

    Raises
    ------
    ParameterError
        It runs as one graph.
    """
    if config.variant not in STAGED:
        raise ParameterError(
            f"The variant {config.variant!r} runs as one graph: it has no stages to profile.",
            field="variant",
            value=config.variant,
            allowed=", ".join(STAGED),
        )


def samples_unlike_the_engine(engine: Engine, text: str, voice: str) -> int:
    """How many samples spoken stage by stage are not, to the last bit, those of the engine's stream."""
    staged = StagedSpeaker(engine.config).speak(text, load_voice(voice, engine.config.home)).samples
    streamed = np.concatenate([chunk.samples for chunk in engine.stream(text, voice=voice)])
    common = min(len(staged), len(streamed))
    missing = max(len(staged), len(streamed)) - common
    return int(np.count_nonzero(staged[:common] != streamed[:common])) + missing
