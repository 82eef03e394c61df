"""Profiles an engine: loading by part, speech by stage, each graph by operator.

The engine itself speaks, and reports when each stage begins and ends. No two stages overlap here: the
excitation is computed after the trunk and not beside it, and no segment is prepared ahead. So sound begins
some milliseconds later than in a stream. `samples_unlike_the_engine` shows that the samples are the same.

The model has four stages: *prosody* (durations, pitch and energy of a segment), *trunk* (512 features for
each frame of 12.5 ms), *excitation* (the source signal of the voice) and *vocoder* (samples). The statistics,
by which the vocoder normalises, are predicted outside of these graphs.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from timeit import timeit
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.config import STAGED, weights_of
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.adain import AdainLayers
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.predictor import StatisticsPredictor
from kokoro_lab.native.operators import native_operators
from kokoro_lab.scheduling.stopwatch import listening
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.parts import Parts
from kokoro_lab.text.language import resolve_language
from kokoro_lab.typed import require_choice, require_range
from kokoro_lab.weights.store import model_sha256
from kokoro_lab.weights.voices import VoiceCache, load_voice

GRAPH_STAGES = ("prosody", "trunk", "excitation")
"""Stages that are one graph each, named as the graph."""
STATISTICS = "statistics"
"""The name of the stage for all that the model computes outside of its graphs, mostly the predictors of the
statistics."""
FIRST_WINDOW, OTHER_WINDOWS = VOCODER_STAGES = ("first window", "other windows")
STAGES = ("text", *GRAPH_STAGES, STATISTICS, *VOCODER_STAGES, "dsp")
"""All stages, in the order of the pipeline."""
FIRST_AUDIO, END = "first audio", "end"
COLD, WARM = "cold", "warm"

LOADING_EVENTS = ("model_loading_uri", "session_initialization")
"""The names that ONNX Runtime's profiler gives to reading a graph, and to optimising it and packing its
weights."""


class StageWatch:
    """Measures the seconds that one utterance spends in each of `STAGES`. The time of a stage within another
    counts only for the inner one."""

    def __init__(self) -> None:
        self.stages_s = dict.fromkeys(STAGES, 0.0)
        self._within_s: list[float] = []

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self._within_s.append(0.0)
        started_s = time.perf_counter()
        try:
            yield
        finally:
            taken_s = time.perf_counter() - started_s
            self.stages_s[self._named(stage)] += taken_s - self._within_s.pop()
            if self._within_s:
                self._within_s[-1] += taken_s

    def _named(self, stage: str) -> str:
        if stage == "vocoder":
            return OTHER_WINDOWS if self.stages_s[FIRST_WINDOW] else FIRST_WINDOW
        return STATISTICS if stage == "model" else stage


class Moment(NamedTuple):
    """How far an utterance is: seconds since it was asked for, and seconds spent in each stage since then."""

    wall_s: float
    stages_s: Mapping[str, float]


class Heard(NamedTuple):
    """A measured utterance: the times of its first and last chunk, and its samples."""

    first_audio: Moment
    end: Moment
    samples: Samples


def in_line(config: EngineConfig) -> Engine:
    """A new engine that never runs two stages of a segment at once.

    Raises
    ------
    ParameterError
        The variant has no stages.
    """
    _require_stages(config)
    decoder = StagedDecoder(config).in_turn()
    voices = VoiceCache(lambda spec: load_voice(spec, config.home))
    sha256 = model_sha256(weights_of(config.variant))
    return Engine(Parts(decoder, config, voices, sha256, lambda: decoder.placement))


def listen(engine: Engine, text: str, voice: str) -> Heard:
    """Speak `text` as a stream does, but without preparing segments ahead.

    Raises
    ------
    TextError, VoiceError
        There is nothing to speak, or no such voice.
    """
    engine.voice(voice)  # reads the voice's file before the clock starts
    watch, moments, chunks = StageWatch(), [], []
    started_s = time.perf_counter()
    with listening(watch):
        for chunk in engine.stream(
            text, voice=voice, streamed=False, statistics="predicted", loudness="voice"
        ):
            moments.append(Moment(time.perf_counter() - started_s, dict(watch.stages_s)))
            chunks.append(chunk.samples)
    return Heard(moments[0], moments[-1], np.concatenate(chunks))


def samples_unlike_the_engine(engine: Engine, text: str, voice: str) -> int:
    """How many samples of `listen` on `in_line` differ from those of the engine's own stream."""
    heard = listen(in_line(engine.config), text, voice).samples
    streamed = np.concatenate([chunk.samples for chunk in engine.stream(text, voice=voice)])
    common = min(len(heard), len(streamed))
    missing = max(len(heard), len(streamed)) - common
    return int(np.count_nonzero(heard[:common] != streamed[:common])) + missing


@contextmanager
def _profiled(config: EngineConfig) -> Iterator[tuple[Engine, list[GuardedSession]]]:
    """An engine in whose sessions ONNX Runtime's profiler is on; `_events` gives what it recorded."""
    with tempfile.TemporaryDirectory() as folder:
        engine = in_line(replace(config, profiles=Path(folder)))
        decoder = engine.decoder
        assert isinstance(decoder, StagedDecoder)
        fixed = () if decoder.fixed is None else decoder.fixed.sessions
        yield engine, [*decoder.prosody.sessions, *decoder.vocoder.sessions, *fixed]


def _events(session: GuardedSession) -> list[dict[str, Any]]:
    """Stop the profiler of a session, and return what it recorded. Times are in microseconds."""
    return list(json.loads(Path(session.end_profiling()).read_text("utf-8")))


def profile_loading(config: EngineConfig, voice: str, *, loads: int = 3) -> pd.DataFrame:
    """Load each part of an engine `loads` times, from files that the system has already read once.

    The times of graphs come from ONNX Runtime's own profiler.

    Returns
    -------
    pandas.DataFrame
        One row for each load of a part: part, trial, load_s. `load_s` does not contain the imports of
        modules.

    Raises
    ------
    ParameterError
        `loads` is under 1, or the variant has no stages.
    """
    require_range("loads", loads, 1)
    _require_stages(config)
    folder = stages_folder(config, native_operators(config))
    language = resolve_language(load_voice(voice, config.home).language)
    parts: dict[str, Callable[[], object]] = {
        "G2P": lambda: FrontEnd().warm(language),
        "AdaIN layers": lambda: AdainLayers.load(folder / "layers.npz"),
        "predictor": StatisticsPredictor.load,
        "voice": lambda: load_voice(voice, config.home),
    }
    rows = []
    for trial in range(-1, loads):  # the first round includes imports and the disk, and is not counted
        found = {part: timeit(load, number=1) for part, load in parts.items()}
        with _profiled(config) as (_, sessions):
            found |= {session.stage: _loading_s(_events(session)) for session in sessions}
        rows += [{"part": part, "trial": trial, "load_s": s} for part, s in found.items() if trial >= 0]
    return pd.DataFrame(rows)


def _loading_s(events: Sequence[Mapping[str, Any]]) -> float:
    return float(sum(e["dur"] for e in events if e["name"] in LOADING_EVENTS) / 1e6)


def profile_stages(
    config: EngineConfig, text: str, voice: str, *, trials: int = 15, loads: int = 3
) -> pd.DataFrame:
    """Speak a text on engines that have never spoken (cold), and again and again on the last (warm).

    Cold figures include what is loaded with the first request, above all the G2P. Neither cold nor warm
    figures include imports.

    Parameters
    ----------
    trials : int
        Number of warm utterances; one more is spoken before them and not counted.
    loads : int
        Number of cold utterances, each on a new engine.

    Returns
    -------
    pandas.DataFrame
        A row for each stage of each utterance, up to the first audio and up to the end: state (`cold`,
        `warm`), trial, until (`first audio`, `end`), stage (of `STAGES`), stage_s, wall_s (elapsed time of
        the utterance up to there), audio_s.

    Raises
    ------
    ParameterError, TextError, VoiceError
        Fewer than one trial or load, a variant without stages, nothing to speak, no such voice.
    """
    require_range("trials", trials, 1)
    require_range("loads", loads, 1)
    _require_stages(config)
    FrontEnd().warm(resolve_language(load_voice(voice, config.home).language))  # imports are not timed
    found: list[tuple[str, Heard]] = []
    for _ in tqdm(range(loads), desc="cold"):
        engine = in_line(config)
        found.append((COLD, listen(engine, text, voice)))
    listen(engine, text, voice)
    found += [(WARM, listen(engine, text, voice)) for _ in tqdm(range(trials), desc="warm")]
    return pd.DataFrame(
        {
            "state": state,
            "trial": trial,
            "until": until,
            "stage": stage,
            "stage_s": stage_s,
            "wall_s": moment.wall_s,
            "audio_s": len(heard.samples) / SAMPLE_RATE_HZ,
        }
        for trial, (state, heard) in enumerate(found)
        for until, moment in ((FIRST_AUDIO, heard.first_audio), (END, heard.end))
        for stage, stage_s in moment.stages_s.items()
    )


def profile_operators(config: EngineConfig, text: str, voice: str, *, trials: int = 3) -> pd.DataFrame:
    """Where each graph's time goes, by ONNX Runtime's own profiler.

    No operator's time contains another's.

    Parameters
    ----------
    trials : int
        Utterances; one more before them is not counted.

    Returns
    -------
    pandas.DataFrame
        One row for each operator type of a graph, the slowest first: graph, operator, calls (for one
        utterance), operator_s (for one utterance, mean of the trials), graph_s (the same for the whole graph,
        by the profiler's clock), share (operator_s ÷ graph_s).

    Raises
    ------
    ParameterError, TextError, VoiceError
        As `profile_stages`.
    """
    require_range("trials", trials, 1)
    tables = []
    with _profiled(config) as (engine, sessions):
        for _ in range(trials + 1):
            listen(engine, text, voice)
        for session in sessions:
            graph_s, table = _by_operator(_events(session), trials)
            if not table.empty:
                table.insert(0, "graph", session.stage)
                tables.append(table.assign(graph_s=graph_s, share=table.operator_s / graph_s))
    return pd.concat(tables, ignore_index=True)


def _by_operator(events: Sequence[Mapping[str, Any]], trials: int) -> tuple[float, pd.DataFrame]:
    """For one utterance: the seconds that the graph takes, and a table with the calls and seconds of each
    operator type in the graph, the slowest first. The first utterance was a warm-up: only the `trials` after
    it count.

    All times are by the profiler's clock. This is the system's clock, which may be set while the profiler
    runs.
    """
    runs = sorted((e["ts"], e["dur"]) for e in events if e["name"] == "model_run")
    counted = runs[len(runs) // (trials + 1) :]  # the same text takes the same runs each time
    begin_us = counted[0][0] if counted else math.inf
    rows = [
        {"operator": e["args"]["op_name"], "calls": 1 / trials, "operator_s": e["dur"] / 1e6 / trials}
        for e in events
        if e["cat"] == "Node" and e["name"].endswith("_kernel_time") and e["ts"] >= begin_us
    ]
    table = pd.DataFrame(rows, columns=["operator", "calls", "operator_s"])
    table = table[table.operator != "If"]  # its time is that of the nodes of its branch
    table = table.groupby("operator", as_index=False).sum().sort_values("operator_s", ascending=False)
    table["calls"] = table.calls.round().astype(int)
    return sum(dur_us for _, dur_us in counted) / 1e6 / trials, table


def _require_stages(config: EngineConfig) -> None:
    message = f"The variant {config.variant!r} runs as one graph: it has no stages to profile."
    require_choice("variant", config.variant, STAGED, message)
