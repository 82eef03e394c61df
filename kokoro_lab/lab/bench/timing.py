"""Has every system speak every text, interleaved, and times it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import psutil

from kokoro_lab.containers import write_file
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.memory import sampled_memory
from kokoro_lab.lab.bench.trial import Listener, Trial
from kokoro_lab.speech.engine import Engine

SETTLE_S = 0.5
"""Seconds to wait after a listener hangs up, until the engine has finished the segment that it was preparing
ahead."""


class Speaker(Protocol):
    """A system that can be measured, such as `InProcess`, `OverHttp` or `KokoroOnnx`."""

    name: str
    streamed: bool
    process: psutil.Process
    """The process that holds the speaker's model."""

    def warm(self) -> None:
        """Speak something short, which is not timed."""

    def speak(self, text: str, listener: Listener) -> None:
        """Speak `text` to `listener` as it is computed, until the listener has enough; never wait for the
        listener."""

    def facts(self) -> dict[str, Any]:
        """The speaker's facts: its model, precision and number of threads."""


@dataclass(eq=False)
class InProcess:
    """A `Speaker` of benchmarks: our engine, called as a library in this process.

    Parameters
    ----------
    engine : Engine
    voice : str
        A name, or a blend.
    streamed : bool
        Whether to speak in chunks; otherwise in one clip.
    chunk_s : float, optional
        Length of a chunk, 0.030 to 0.120 s; None takes the engine's default.
    cached : bool
        Whether the engine's cache of first audio is used; without it, a text may be spoken twice.
    name : str
        The name in the table of trials.
    process : psutil.Process
        This process.
    """

    engine: Engine
    voice: str
    _: KW_ONLY
    streamed: bool = True
    chunk_s: float | None = None
    cached: bool = True
    name: str = "kokoro-lab"
    process: psutil.Process = field(default_factory=psutil.Process)

    def warm(self) -> None:
        self.engine.warm(self.voice)

    def speak(self, text: str, listener: Listener) -> None:
        if self.streamed:
            stream = self.engine.stream(text, voice=self.voice, chunk_s=self.chunk_s, cached=self.cached)
            for chunk in stream:
                listener.hears(chunk.samples)
                if listener.satisfied:
                    break
            stream.close()
            if stream.primed:
                raise SynthesisError(
                    "The first audio of this text was in the cache, so its time says nothing.",
                    mend="Speak each text once, or make the engine with first_audio_ttl_s=0.",
                )
        else:
            listener.hears(self.engine.synthesize(text, voice=self.voice).samples)

    def facts(self) -> dict[str, Any]:
        return {
            "variant": self.engine.config.variant,
            "model_sha256": self.engine.model_sha256,
            "requested_provider": self.engine.config.provider,
            "active_provider": self.engine.active_provider,
            "threads": self.engine.config.thread_count,
            "conversion": dict(self.engine.conversion),
        }


def spoken(
    speaker: Speaker,
    number: int,
    text: str,
    listener: Listener | None = None,
    *,
    memory_interval_s: float | None = None,
) -> Trial:
    """Speak a text once and time it. Resident memory is sampled only if an interval is given.

    Raises
    ------
    SynthesisError
        The speaker failed or was silent.
    """
    listener = listener or Listener()
    watch = nullcontext() if memory_interval_s is None else sampled_memory(speaker.process, memory_interval_s)
    with watch as memory:
        listener.asks()
        speaker.speak(text, listener)
    return listener.trial(speaker.name, number, len(text), streamed=speaker.streamed, memory=memory)


def measure(
    speakers: Sequence[Speaker],
    texts: Sequence[str],
    *,
    memory_interval_s: float | None = None,
    listen_s: float = math.inf,
    audio_folder: Path | None = None,
) -> list[Trial]:
    """Speak each text once with each speaker, warm.

    Speakers are interleaved, text by text: other work of the machine affects all of them alike, so their
    ratios hold even if it changes the times.

    Parameters
    ----------
    speakers : sequence of Speaker
    texts : sequence of str
        Distinct, from `texts_of`.
    memory_interval_s : float, optional
        Read resident memory this often; not at all if None, because reading takes time from speaking.
    listen_s : float
        Seconds of speech after which the listener hangs up, if only the first audio matters.
    audio_folder : Path, optional
        Keep every trial there as a WAV file, which is written after the trial was timed.

    Returns
    -------
    list of Trial
        In the order of texts, then of speakers.

    Raises
    ------
    SynthesisError
        A speaker failed or was silent; nothing is skipped.
    """
    for speaker in speakers:
        speaker.warm()
    if audio_folder:
        audio_folder.mkdir(parents=True, exist_ok=True)
    trials = []
    for (number, text), speaker in tqdm(list(product(enumerate(texts), speakers)), desc="trials"):
        listener = Listener(keep=audio_folder is not None, enough_s=listen_s)
        trials.append(spoken(speaker, number, text, listener, memory_interval_s=memory_interval_s))
        if listener.satisfied:
            time.sleep(SETTLE_S)
        if audio_folder:
            name = f"{number:03d}-{speaker.name.replace(' ', '-')}.wav"
            write_file(audio_folder / name, listener.samples)
    return trials


def measure_considerately(
    speaker: InProcess,
    texts: Sequence[str],
    *,
    wait: Callable[[], object],
    wanted: Callable[[], bool],
    done: Callable[[int], None] = lambda _: None,
) -> tuple[list[Trial], int]:
    """Speak each text once on a shared engine, while no request is being served.

    Parameters
    ----------
    speaker : InProcess
        Warm, and streaming.
    texts : sequence of str
    wait : callable
        Returns when no request is being served.
    wanted : callable
        Returns whether a request is being served: then the trial ends with the chunk under way, and its text
        is repeated later.
    done : callable
        Called with the number of finished texts.

    Returns
    -------
    trials : list of Trial
        In the order of texts.
    disturbed : int
        The number of trials that were given up for a request.
    """
    trials: list[Trial] = []
    disturbed = 0
    while len(trials) < len(texts):
        wait()
        listener = Listener(wanted=wanted)
        listener.asks()
        speaker.speak(texts[len(trials)], listener)
        if listener.disturbed:
            disturbed += 1
            continue
        trials.append(listener.trial(speaker.name, len(trials), len(texts[len(trials)]), streamed=True))
        done(len(trials))
    return trials, disturbed
