"""The soak benchmark: listeners hear text after text for many minutes, and the server's memory is watched."""

from __future__ import annotations

import hashlib
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from kokoro_lab.errors import KokoroLabError, ParameterError, SynthesisError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench import client
from kokoro_lab.lab.bench.client import TRANSPORTS, Transport
from kokoro_lab.lab.bench.memory import held_by, watched
from kokoro_lab.lab.bench.misbehaving import misbehaving
from kokoro_lab.lab.bench.own_server import OwnServer
from kokoro_lab.lab.bench.received import samples_of
from kokoro_lab.lab.bench.texts import texts_of
from kokoro_lab.lab.bench.trial import SPEECH_LEVEL, Listener
from kokoro_lab.lab.fixtures import load_rows

THINK_S = (1.0, 3.0)
"""Least and most seconds between the last word that a listener hears and the next request: a reader turns the
page."""
AFTER_FAULT_S = 1.0
MEMORY_SAMPLES_A_RUN = 300
"""How many times memory is sampled in a run; the interval is never below 0.2 s or above 5 s."""
HEARD: dict[str, float] = {
    **{"ttfa_s": math.nan, "rtf": math.nan, "audio_s": math.nan},
    **{"underruns": 0, "late_s": 0.0, "longest_gap_s": 0.0},
}
"""Name of each figure of a stream → its value for a stream that did not end as it should."""
LENGTHS = {"short": 40, "medium": 140, "paragraph": 400}
"""Lengths of texts in characters, about."""
SENTENCE = "sentence"
"""The length of texts in other languages than English: each is one sentence."""
ENGLISH = "en"
Answer = TypeVar("Answer")

READERS = (
    (ENGLISH, "medium", ""),
    ("es", SENTENCE, "ef_dora"),
    (ENGLISH, "short", "am_michael"),
    (ENGLISH, "paragraph", "bf_emma"),
    ("fr", SENTENCE, "ff_siwis"),
    (ENGLISH, "short", ""),
    ("it", SENTENCE, "if_sara"),
    (ENGLISH, "medium", "bf_emma"),
    ("pt", SENTENCE, "pf_dora"),
    (ENGLISH, "paragraph", ""),
)
"""Language of the text, its length, and who reads it; "" is the voice that was asked for. Japanese is left
out, as its G2P is an extra."""


@dataclass(frozen=True, slots=True)
class SoakReading:
    """One text that is read again and again by one voice.

    Parameters
    ----------
    name : str
        The text's number, language and length, and the voice, such as `3 en paragraph bf_emma`.
    """

    name: str
    text: str
    voice: str


def foreign_sentences() -> dict[str, list[str]]:
    """The fixtures' sentences in other languages than English, by language."""
    found: dict[str, list[str]] = {}
    for row in load_rows("intelligibility"):
        if row["language"] != ENGLISH:
            found.setdefault(row["language"], []).append(row["text"])
    return found


def readings_of(
    sentences: Sequence[str], foreign: Mapping[str, Sequence[str]], voice: str, texts: int, seed: int = 0
) -> list[SoakReading]:
    """`texts` readings, for each of `READERS` in turn.

    Parameters
    ----------
    sentences : sequence of str
        The sentences of which the English texts are made.
    foreign : mapping
        Sentences by language; a language that the mapping lacks is left out.
    voice : str
        The voice of those `READERS` that name none.
    texts : int
        How many readings to make.
    seed : int
        The same seed gives the same texts.

    Raises
    ------
    ParameterError
        There are too few sentences for this number of different texts.
    """
    readers = [one for one in READERS if one[0] == ENGLISH or foreign.get(one[0])]
    chosen = [readers[number % len(readers)] for number in range(texts)]
    english = {
        length: texts_of(sentences, characters, sum(one[1] == length for one in chosen), seed + number,
                         own_beginnings=False)
        for number, (length, characters) in enumerate(LENGTHS.items())
    }  # fmt: skip
    others = {language: iter(random.Random(seed).sample(list(s), len(s))) for language, s in foreign.items()}
    found = []
    for number, (language, length, reader) in enumerate(chosen):
        text = next(english[length] if language == ENGLISH else others[language], None)
        if text is None:
            raise ParameterError(
                f"There are not enough sentences in {language!r} for {texts} texts.",
                field="--trials",
                value=texts,
                allowed="fewer",
            )
        found.append(SoakReading(f"{number} {language} {length} {reader or voice}", text, reader or voice))
    return found


def turns(
    readings: Sequence[SoakReading], ways: Sequence[Transport] = TRANSPORTS, seed: int = 0
) -> Iterator[tuple[SoakReading, Transport]]:
    """An endless sequence of pairs of a reading and a transport. Each round holds every reading once, in an
    order of its own, and moves each reading to the next transport, so that every part of a soak has the
    same mix.
    """
    draw = random.Random(seed)
    for rounds in count():
        order = list(enumerate(readings))
        draw.shuffle(order)
        for place, reading in order:
            yield reading, ways[(place + rounds) % len(ways)]


@dataclass(frozen=True, slots=True)
class Soak:
    """What `measure_soak` found.

    Parameters
    ----------
    run_s : float
        Length of the soak.
    concurrency : int
        The number of listeners.
    wholes : pandas.DataFrame
        Each complete reading, heard alone before the soak: samples_count, sha256 by reading.
    streams : pandas.DataFrame
        A row for each stream, as `listened` gives it, in the order in which they were asked for.
    holdings : pandas.DataFrame
        The server's resources, a row for each sampling: see `held_by`.
    left_behind : int
        Syntheses that still ran when every listener had left; −1 if the server did not answer.
    ran : mapping
        What the server states about itself: see `OwnServer.facts`.
    misbehaved : mapping, optional
        How many misbehaving clients `left` or `stalled` meanwhile; None if there were none on purpose.
    """

    run_s: float
    concurrency: int
    wholes: pd.DataFrame
    streams: pd.DataFrame
    holdings: pd.DataFrame
    left_behind: int
    ran: Mapping[str, Any] = field(default_factory=dict)
    misbehaved: Mapping[str, int] | None = None

    @property
    def minutes(self) -> float:
        return self.run_s / 60

    @property
    def nominal(self) -> bool:
        """Whether there was one stream at a time, and no other client."""
        return self.concurrency == 1 and self.misbehaved is None

    @property
    def heard(self) -> pd.DataFrame:
        """The streams that ended as they should."""
        return self.streams[self.streams.fault == ""]


def measure_soak(
    server: OwnServer,
    readings: Sequence[SoakReading],
    minutes: float,
    *,
    concurrency: int = 1,
    pace: float = 1.0,
    think_s: tuple[float, float] = THINK_S,
    misbehave: bool = False,
    ways: Sequence[Transport] = TRANSPORTS,
    seed: int = 0,
) -> Soak:
    """Hear every reading once, alone, so that later streams can be compared with it; then listen for
    `minutes`.

    Parameters
    ----------
    server : OwnServer
        The server must have a slot for each listener, and one more for clients that misbehave. It must have
        no cache of first audio: with the cache, only the first stream of each reading would be computed and
        timed.
    readings : sequence of SoakReading
    minutes : float
    concurrency : int
        The number of listeners, each with one stream at a time.
    pace : float
        Time until a listener has heard a stream, divided by the stream's length: 1 is real time; at 0 a
        listener has heard a stream as soon as it has come. The stream is received as fast as it comes in any
        case, as players do.
    think_s : tuple of float
        Least and most seconds between the end of what a listener hears and the next request.
    misbehave : bool
        Whether other clients come meanwhile, which leave in mid-stream or stop reading.
    ways : sequence of str
        The transports over which streams are asked for in turn.
    seed : int
        Seed of the order of readings and of the pauses.

    Raises
    ------
    SynthesisError
        A reading cannot be spoken even once.
    """
    wholes = known(server, readings)
    run_s = 60 * minutes
    longest = max(readings, key=lambda one: len(one.text))
    others = misbehaving(server.url, longest.text, longest.voice, seed=seed) if misbehave else nullcontext()
    interval_s = min(max(run_s / MEMORY_SAMPLES_A_RUN, 0.2), 5.0)
    started_s = time.monotonic()
    with watched(partial(held_by, server.process), interval_s) as holdings, others as misbehaved:
        streams = attended(
            partial(listened, server), turns(readings, ways, seed), run_s, concurrency, pace=pace,
            think_s=think_s, seed=seed, name="soak",
        )  # fmt: skip
    return Soak(
        run_s=time.monotonic() - started_s,
        concurrency=concurrency,
        wholes=wholes,
        streams=streams,
        holdings=pd.DataFrame(holdings),
        left_behind=_told(server.left_behind, -1),
        ran=_told(server.facts, {}),
        misbehaved=misbehaved,
    )


def known(server: OwnServer, readings: Sequence[SoakReading], way: Transport = "sse") -> pd.DataFrame:
    """The result of `listened` for each reading, spoken alone; the index is the reading's name.

    Raises
    ------
    SynthesisError
        A reading cannot be spoken.
    """
    found = [listened(server, one, way) for one in tqdm(readings, desc="readings")]
    for one in found:
        if one["fault"]:
            raise SynthesisError(one["fault"])
    return pd.DataFrame(found).set_index("reading")


def attended(
    hear: Callable[..., dict[str, Any]],
    asked: Iterator[tuple[SoakReading, Transport]],
    run_s: float,
    listeners: int,
    *,
    pace: float = 1.0,
    think_s: tuple[float, float] = THINK_S,
    begin_s: float = 0.0,
    seed: int = 0,
    name: str,
) -> pd.DataFrame:
    """Run listeners for `run_s`, each hearing one stream after the other; the last streams are heard to their
    ends.

    Parameters
    ----------
    hear : callable
        Called with a reading, a transport, the stream's number and the time; for instance `partial(listened,
        server)`.
    asked : iterator
        Gives pairs of a reading and a transport. A listener takes the next pair as soon as it is ready for
        another stream.
    begin_s : float
        Each listener begins at a random time in the first `begin_s` seconds.
    name : str
        Label of the progress bar.

    Returns
    -------
    pandas.DataFrame
        A row for each stream, with its listener, in the order in which they were asked for.
    """
    numbered, lock, over = enumerate(asked), threading.Lock(), threading.Event()
    streams: list[dict[str, Any]] = []
    started_s = time.monotonic()

    def elapsed_s() -> float:
        return time.monotonic() - started_s

    def listen(listener: int) -> None:
        draw = random.Random(f"{seed} {listener}")
        over.wait(draw.uniform(0, begin_s))
        while (at_s := elapsed_s()) < run_s and not over.is_set():
            with lock:
                number, turn = next(numbered)
            one = hear(*turn, number, at_s)
            streams.append(one | {"listener": listener})
            if one["fault"]:
                rest_s = AFTER_FAULT_S
            else:
                heard_s = one["at_s"] + one["ttfa_s"] + pace * one["audio_s"]  # its last word has been played
                rest_s = max(heard_s - elapsed_s(), 0.0) + draw.uniform(*think_s)
            over.wait(max(min(rest_s, run_s - elapsed_s()), 0.0))
            with lock:
                bar.update(min(round(elapsed_s(), 1), run_s) - bar.n)

    with (
        tqdm(total=run_s, unit="s", desc=name) as bar,
        ThreadPoolExecutor(listeners, thread_name_prefix="listener") as pool,
    ):
        try:
            list(pool.map(listen, range(listeners)))
        finally:
            over.set()  # after Ctrl-C, listeners ask for no more
    return pd.DataFrame(streams).sort_values("number", ignore_index=True)


def listened(
    server: OwnServer,
    reading: SoakReading,
    way: Transport,
    number: int = 0,
    at_s: float = 0.0,
    *,
    most_in_hand_s: float = math.inf,
) -> dict[str, Any]:
    """Hear one stream until it ends or fails.

    Parameters
    ----------
    most_in_hand_s : float
        The most unplayed speech that the listener takes, in seconds; by default, the stream is read as fast
        as it comes.

    Returns
    -------
    dict
        number, reading (its name), way, at_s (when it was asked for, since the soak began), fault (why it did
        not end as it should; empty if it did), retry_after_s (after how many seconds it may be asked for
        again, if the server was busy), samples_count (from the first sample of speech to the last sample),
        sha256 (of these samples), and the figures of `trial.Trial` that `HEARD` names.
    """
    listener = Listener(keep=True)
    row = {"number": number, "reading": reading.name, "way": way, "at_s": at_s, "fault": ""}
    row["retry_after_s"] = math.nan
    listener.asks()
    try:
        for chunk in client.receive(way, server.url, client.speech_request(reading.text, reading.voice)):
            listener.hears(samples_of(chunk.data))
            if (beyond_s := listener.in_hand_s - most_in_hand_s) > 0:
                time.sleep(beyond_s)
        heard = listener.trial(way, number, len(reading.text), streamed=True)
    except KokoroLabError as error:
        row |= {"fault": str(error)[:200], "retry_after_s": getattr(error, "retry_after_s", math.nan)}
        return {**row, "samples_count": 0, "sha256": "", **HEARD}
    # From the first sample of speech: bare audio begins with a primer of silence, events do not
    speech = listener.samples[int((np.abs(listener.samples) >= SPEECH_LEVEL).argmax()) :]
    row |= {"samples_count": len(speech), "sha256": hashlib.sha256(speech.tobytes()).hexdigest()}
    return row | {name: getattr(heard, name) for name in HEARD}


def _told(call: Callable[[], Answer], otherwise: Answer) -> Answer:
    """The server's answer; `otherwise` if the server has died. Its death is not hidden: the streams that
    broke report it."""
    try:
        return call()
    except KokoroLabError:
        return otherwise
