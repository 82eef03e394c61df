"""Tests the playback daemon in a process of its own, with bursts of chunks, pauses and stops."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from simple_websocket import Client, ConnectionClosed

from kokoro_lab.containers.pcm import Pcm, pcm_bytes
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.own_server import ServerFailed
from kokoro_lab.lab.bench.received import differences
from kokoro_lab.lab.bench.verdicts import BenchVerdict, Measured, concluded
from kokoro_lab.lab.results import Check, NegativeControl, Run
from kokoro_lab.playback.buffering import STABLE, Hold
from kokoro_lab.playback.deck import Deck
from kokoro_lab.playback.sinks import ClockedSink, VirtualClock

UNDERRUNS = 1
"""Underruns that are allowed: the player cannot prepare for the first burst."""
STOPPED_S = 0.050
STOPS, PAUSES = 20, 5
PAUSE_S = 0.5
ANSWER_S = 30.0
SLOWER = 1.3
"""Pace (see `burst_arrivals`) of the negative control: a sender so slow that no pre-buffer helps."""

CHUNK_S = STABLE.chunk_s
CHUNK_SAMPLES = round(CHUNK_S * SAMPLE_RATE_HZ)
BURST_S = (0.2, 0.4)
BURST_EVERY_S = 5.0
"""Mean time between two bursts; the times are exponentially distributed."""
NO_LONGER_S = 5.0
"""Seconds beyond twice the length of the speech, after which a player that has not ended counts as hung."""

_LISTENING = re.compile(r"Listening at: (ws://127\.0\.0\.1:\d+)")


@dataclass(frozen=True, slots=True)
class BurstStream:
    """The figures of one stream whose chunks came in bursts.

    Parameters
    ----------
    underruns : int
        How often there was nothing to play, and `silent_s` for how many seconds in all.
    samples, differing_samples : int
        The samples heard, and how many of the expected ones were not in their place.
    audio_s, took_s : float
        Length of the speech, and the time from its first sample to `completed`.
    """

    underruns: int
    silent_s: float
    samples: int
    differing_samples: int
    audio_s: float
    took_s: float


def burst_arrivals(audio_s: float, seed: int, *, pace: float = 1.0) -> list[float]:
    """The arrival times of the chunks of `audio_s` seconds, over a line that stalls for `BURST_S` now and
    then.

    Parameters
    ----------
    pace : float
        Seconds of sending divided by seconds of audio. At 1 the sender is never ahead, and only the
        pre-buffer helps. Our server's pace is near its real-time factor.
    """
    draw = random.Random(seed)
    arrivals_s: list[float] = []
    held_until_s, next_burst_s = 0.0, draw.expovariate(1 / BURST_EVERY_S)
    for index in range(round(audio_s / CHUNK_S)):
        sent_s = index * CHUNK_S * pace
        if sent_s >= next_burst_s:
            held_until_s = sent_s + draw.uniform(*BURST_S)
            next_burst_s = held_until_s + draw.expovariate(1 / BURST_EVERY_S)
        arrivals_s.append(max(sent_s, held_until_s))
    return arrivals_s


def numbered(count: int) -> Pcm:
    """Samples (int16) in which no two parts are equal, so that a lost or repeated one is noticed."""
    return np.random.default_rng(count).integers(-8000, 8000, count, dtype=np.int16)


def play_virtually(
    arrivals_s: Sequence[float], hold: Hold | None = None, *, lost_chunk: int | None = None
) -> BurstStream:
    """Play chunks that come at `arrivals_s` through a `ClockedSink`, on a simulated clock.

    Parameters
    ----------
    hold : Hold, optional
        How much to hold back before playing; by default, the hold learns from the arrivals.
    lost_chunk : int, optional
        A chunk to be lost on purpose: a control.
    """
    clock = VirtualClock()
    sink = ClockedSink(clock, keep=True)
    deck = Deck(sink, clock, hold=hold, players=())
    pcm = numbered(len(arrivals_s) * CHUNK_SAMPLES)
    audio_s = len(pcm) / SAMPLE_RATE_HZ
    stream, sent = deck.begin(), 0
    while not deck.over(stream) and clock.now_s() < arrivals_s[-1] + 2 * audio_s + NO_LONGER_S:
        while sent < len(arrivals_s) and arrivals_s[sent] <= clock.now_s():
            if sent != lost_chunk:
                deck.offer(stream, pcm[sent * CHUNK_SAMPLES : (sent + 1) * CHUNK_SAMPLES])
            sent += 1
        if sent == len(arrivals_s):
            deck.end(stream)
        deck.step()
    status, heard = deck.status(), sink.heard
    differing, missing = differences(pcm_bytes(heard), pcm_bytes(pcm))
    took_s = clock.now_s() - arrivals_s[0]
    wrong = differing + abs(missing)
    return BurstStream(status.underruns, status.silent_s, len(heard), wrong, audio_s, took_s)


@dataclass(frozen=True, slots=True)
class PlayerFigures:
    """What a client of the daemon measured.

    Parameters
    ----------
    late_blocks : int
        Blocks of 10 ms that were played too late because the machine was busy.
    unplayed_samples : int
        Samples that were sent, but that the message `completed` does not count as heard.
    took_beyond_audio_s : float
        Seconds from the first chunk to `completed`, less the length of the speech. If it is below 0,
        `completed` came too early.
    unplayed_after_pauses_samples : int
        Unplayed samples of a stream that was paused `PAUSES` times.
    silenced_s : tuple of float
        Seconds from each stop to the last sample that was heard, as the daemon measured.
    stop_told_s : tuple of float
        Seconds from sending each stop to the message that the player is silent.
    virtual : BurstStream
        The same bursts on a simulated clock, where samples are compared.
    """

    audio_s: float
    underruns: int
    silent_s: float
    late_blocks: int
    unplayed_samples: int
    took_beyond_audio_s: float
    unplayed_after_pauses_samples: int
    silenced_s: tuple[float, ...]
    stop_told_s: tuple[float, ...]
    virtual: BurstStream


def judge_player(
    minutes: float, seed: int, pre_buffer_ms: float | None = None, *, say: Callable[[str], None]
) -> BenchVerdict:
    """Test the daemon, and keep the verdict under `results/bench-player/<run>/`.

    Parameters
    ----------
    minutes : float
        Minutes of speech to play during the bursts.
    seed : int
        Seed from which the times of bursts and of stops are drawn.
    pre_buffer_ms : float, optional
        How much speech the daemon holds back before it plays; by default, it learns that from the arrivals.
    """

    def measured() -> Measured:
        with own_player(pre_buffer_ms) as url:
            figures = measure_player(url, 60 * minutes, seed)
        return printed(figures), lambda run: conclude(run, figures, seed)

    say("Starting the player.")
    return concluded("player", {"minutes": minutes, "seed": seed, "pre_buffer_ms": pre_buffer_ms}, measured)


@contextmanager
def own_player(pre_buffer_ms: float | None = None) -> Iterator[str]:
    """Start a daemon with a silent sink on a free port, and end it after the `with` block; gives its address.

    Raises
    ------
    ServerFailed
        The daemon did not begin to listen.
    """
    held = [] if pre_buffer_ms is None else ["--pre-buffer", str(pre_buffer_ms)]
    command = [sys.executable, "-m", "kokoro_lab", "player", "--sink", "null", "--port", "0", *held]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            listening = _LISTENING.search(said)
            if listening is None:
                raise ServerFailed(f"The player did not start: {said.strip()}")
            yield f"{listening[1]}/"
        finally:
            process.terminate()


def measure_player(url: str, audio_s: float, seed: int) -> PlayerFigures:
    """Be a client of the daemon at `url`: one long stream through bursts, one with pauses, and stops."""
    try:
        with closing(_Talk(url)) as talk:
            arrivals_s = burst_arrivals(audio_s, seed)
            sent, took_s, done = talk.stream(arrivals_s)
            paused = talk.pauses()
            stops = talk.stops(random.Random(seed))
    except ConnectionClosed as error:
        raise ServerFailed("The player broke off in the midst of it.") from error
    return PlayerFigures(
        audio_s=audio_s,
        underruns=done["underruns"],
        silent_s=done["silent_s"],
        late_blocks=done["late_blocks"],
        unplayed_samples=sent - done["played_samples"],
        took_beyond_audio_s=took_s - sent / SAMPLE_RATE_HZ,
        unplayed_after_pauses_samples=paused,
        silenced_s=tuple(silenced_s for silenced_s, _ in stops),
        stop_told_s=tuple(told_s for _, told_s in stops),
        virtual=play_virtually(arrivals_s),
    )


def conclude(run: Run, figures: PlayerFigures, seed: int) -> dict[str, Any]:
    """Write the verdict into `run`.

    Raises
    ------
    GateFailed
        There were too many gaps, a sample was not heard, or a stop came late.
    """
    short_s = 60.0
    slow = play_virtually(burst_arrivals(short_s, seed, pace=SLOWER))
    lossy = play_virtually(burst_arrivals(short_s, seed), lost_chunk=100)
    return run.finish(
        {"sink": "null", "session": {"real_time": True}},
        checks=[
            Check("underruns_count", figures.underruns, high=UNDERRUNS),
            Check("unplayed_samples_count", figures.unplayed_samples, low=0, high=0),
            Check("took_beyond_audio_s", figures.took_beyond_audio_s, low=0),
            Check(
                "unplayed_after_pauses_samples_count", figures.unplayed_after_pauses_samples, low=0, high=0
            ),
            Check("stops_count", len(figures.silenced_s), low=STOPS),
            Check("silenced_max_s", max(figures.silenced_s, default=float("nan")), high=STOPPED_S),
            Check("virtual_underruns_count", figures.virtual.underruns, high=UNDERRUNS),
            Check("virtual_differing_samples_count", figures.virtual.differing_samples, high=0),
        ],
        controls=[
            NegativeControl("a sender slower than speech", slow.underruns > UNDERRUNS),
            NegativeControl("a chunk that was lost", lossy.differing_samples > 0),
        ],
        figures={
            "audio_s": figures.audio_s,
            "silent_s": figures.silent_s,
            "late_blocks_count": figures.late_blocks,
            "stop_told_max_s": max(figures.stop_told_s, default=float("nan")),
        },
        details={"virtual": asdict(figures.virtual)},
    )


def printed(figures: PlayerFigures) -> Iterator[str]:
    """The lines to print."""
    yield f"played     {figures.audio_s:.0f} s of speech through bursts of 200 to 400 ms"
    yield f"underruns  {figures.underruns}, {figures.silent_s:.2f} s of silence"
    yield f"late       {figures.late_blocks} blocks of 10 ms, by a busy machine"
    yield f"completed  {1000 * figures.took_beyond_audio_s:.0f} ms later than without any wait"
    lost_samples = figures.unplayed_after_pauses_samples
    yield f"not heard  {figures.unplayed_samples} samples, and {lost_samples} by pauses"
    silenced_ms, told_ms = 1000 * max(figures.silenced_s), 1000 * max(figures.stop_told_s)
    yield f"stopped    within {silenced_ms:.1f} ms, told within {told_ms:.1f} ms"


class _Talk:
    """A connection to the daemon as one of its clients."""

    def __init__(self, url: str) -> None:
        self._ws = Client.connect(url)

    def close(self) -> None:
        with suppress(ConnectionClosed):  # the player closed it first
            self._ws.close()

    def stream(self, arrivals_s: list[float]) -> tuple[int, float, dict[str, Any]]:
        """Send chunks when they are due; returns the samples sent, the seconds to `completed`, and its
        data."""
        pcm = numbered(CHUNK_SAMPLES * len(arrivals_s))
        started_s = time.monotonic()
        for index, at_s in enumerate(tqdm(arrivals_s, unit=" chunks")):
            while (left_s := started_s + at_s - time.monotonic()) > 0:
                self._ws.receive(timeout=left_s)
            self._ws.send(pcm_bytes(pcm[index * CHUNK_SAMPLES : (index + 1) * CHUNK_SAMPLES]))
        self._control("end_stream")
        done = self._until("completed")
        return len(pcm), time.monotonic() - started_s, done

    def pauses(self) -> int:
        """The number of missing samples of a stream that was paused now and then."""
        pcm = numbered(3 * SAMPLE_RATE_HZ)
        self._ws.send(pcm_bytes(pcm))
        self._control("end_stream")
        for _ in range(PAUSES):
            time.sleep(PAUSE_S)
            self._control("pause")
            time.sleep(PAUSE_S)
            self._control("resume")
        return len(pcm) - int(self._until("completed")["played_samples"])

    def stops(self, draw: random.Random) -> list[tuple[float, float]]:
        """For each of `STOPS` stopped streams, the seconds from the stop until silence, and until the message
        about it."""
        found = []
        for _ in range(STOPS):
            self._ws.send(pcm_bytes(numbered(SAMPLE_RATE_HZ)))
            time.sleep(draw.uniform(0.1, 0.5))
            sent_s = time.monotonic()
            self._control("stop")
            said = self._until("status", reason="stopped")
            found.append((float(said["silenced_s"]), time.monotonic() - sent_s))
        return found

    def _control(self, action: str) -> None:
        message = {"type": "control", "timestamp": round(1000 * time.time()), "data": {"action": action}}
        self._ws.send(json.dumps(message))

    def _until(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """The data of the next message of a kind. Heartbeats do not extend the time limit."""
        until_s = time.monotonic() + ANSWER_S
        while (message := self._ws.receive(timeout=max(until_s - time.monotonic(), 0))) is not None:
            said = json.loads(message)
            if said["type"] == kind and wanted.items() <= said["data"].items():
                data: dict[str, Any] = said["data"]
                return data
        raise ServerFailed(f"The player did not say {kind} in {ANSWER_S:.0f} s.")
