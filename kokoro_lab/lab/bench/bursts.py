"""A sender whose line holds everything up now and then, and a player that must not let it be heard."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kokoro_lab.audio import Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.playback.buffering import STABLE, Hold
from kokoro_lab.playback.deck import Deck
from kokoro_lab.playback.sinks import ClockedSink, VirtualClock

CHUNK_S = STABLE.chunk_s
CHUNK_SAMPLES = round(CHUNK_S * SAMPLE_RATE_HZ)
BURST_S = (0.2, 0.4)
BURST_EVERY_S = 5.0
"""On average, with any time between two of them as likely as on a line that forgets."""
NO_LONGER_S = 5.0
"""A player that has not ended so long after its speech could have been heard twice never will."""


@dataclass(frozen=True, slots=True)
class BurstStream:
    """What a listener had of one stream.

    Parameters
    ----------
    underruns : int
        How often there was nothing to play, and `silent_s` for how long in all.
    samples, differing_samples : int
        Heard, and of those that should have been heard, how many were not in their place.
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
    """When each chunk of `audio_s` seconds comes, where the line holds all up for `BURST_S` now and then.

    Parameters
    ----------
    pace : float
        Seconds of sending by seconds of audio: 1 is a sender that is never ahead, which nothing but the
        pre-buffer helps; our server's is near its real-time factor.
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
    """Samples of which no two stretches are alike, so that one lost or repeated is seen; int16."""
    return np.random.default_rng(count).integers(-8000, 8000, count, dtype=np.int16)


def play_virtually(
    arrivals_s: Sequence[float], hold: Hold | None = None, *, lost_chunk: int | None = None
) -> BurstStream:
    """Play chunks that come at `arrivals_s` through the clocked sink, on a clock that takes no time.

    Parameters
    ----------
    hold : Hold, optional
        What is held back; learns unless given.
    lost_chunk : int, optional
        One that the line loses, on purpose: a control.
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
    alike = min(len(heard), len(pcm))
    differing = int(np.count_nonzero(heard[:alike] != pcm[:alike])) + abs(len(heard) - len(pcm))
    took_s = clock.now_s() - arrivals_s[0]
    return BurstStream(status.underruns, status.silent_s, len(heard), differing, audio_s, took_s)
