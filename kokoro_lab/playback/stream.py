"""A stream while it is played, the ring buffer of its samples, and the player's events and status.

Samples are played in the order in which they came; the ring takes only as many as fit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Fallback
from kokoro_lab.errors import KokoroLabError


class Ring:
    """A ring buffer of samples between a sender and the thread that plays, in memory that is allocated once.

    It has no lock: threads that share it need one.

    Parameters
    ----------
    capacity_samples : int
        Size of the buffer. The system provides memory only where samples were written.
    """

    def __init__(self, capacity_samples: int) -> None:
        self.capacity_samples = capacity_samples
        self._samples = np.zeros(capacity_samples, np.int16)
        self._at = 0
        self._held = 0

    def __len__(self) -> int:
        return self._held

    @property
    def free_samples(self) -> int:
        return len(self._samples) - self._held

    def put(self, pcm: Pcm) -> int:
        """Take as many of the first samples of `pcm` as fit, and return their number."""
        count = min(len(pcm), self.free_samples)
        begin = (self._at + self._held) % len(self._samples)
        until_end = min(count, len(self._samples) - begin)
        self._samples[begin : begin + until_end] = pcm[:until_end]
        self._samples[: count - until_end] = pcm[until_end:count]
        self._held += count
        return count

    def take(self, count: int) -> Pcm:
        """A copy of the oldest `count` samples, or of all if they are fewer."""
        count = min(count, self._held)
        until_end = min(count, len(self._samples) - self._at)
        parts = self._samples[self._at : self._at + until_end], self._samples[: count - until_end]
        taken = np.concatenate(parts)
        self._at = (self._at + count) % len(self._samples)
        self._held -= count
        return taken

    def clear(self) -> None:
        self._at = self._held = 0


RECENT_SAMPLES = SAMPLE_RATE_HZ
"""How many of the last played samples are kept, since a sink that fails may not have made them audible."""


@dataclass(slots=True)
class Stream:
    """A stream and its number, from 1 on. It changes as it is played, under the lock of its deck.

    Attributes
    ----------
    ended : bool
        Whether the sender has announced the end of the stream.
    slow : bool
        The stream ran dry so often that another player was tried.
    flows : bool
        The sink has taken a block, and no pause or gap has come since. If the sink has nothing left to play
        before the next block, that block is late.
    """

    number: int
    ended: bool = False
    slow: bool = False
    flows: bool = False
    late_blocks: int = 0
    received_samples: int = 0
    played_samples: int = 0
    fallbacks: list[Fallback] = field(default_factory=list)
    _recent: deque[Pcm] = field(default_factory=deque)
    _recent_samples: int = 0
    _paused_since_s: float | None = None
    _paused_s: float = 0.0

    @property
    def paused(self) -> bool:
        return self._paused_since_s is not None

    def pause(self, now_s: float) -> None:
        self.flows = False
        if self._paused_since_s is None:
            self._paused_since_s = now_s

    def resume(self, now_s: float) -> None:
        if self._paused_since_s is not None:
            self._paused_s += now_s - self._paused_since_s
            self._paused_since_s = None

    def time_s(self, now_s: float) -> float:
        """The player's clock, which stands still while the stream is paused."""
        return (now_s if self._paused_since_s is None else self._paused_since_s) - self._paused_s

    def played(self, block: Pcm) -> None:
        """Count a block that the sink has taken, and keep it among the recent ones."""
        self.flows = not self.paused
        self.played_samples += len(block)
        self._recent.append(block)
        self._recent_samples += len(block)
        while self._recent_samples - len(self._recent[0]) > RECENT_SAMPLES:
            self._recent_samples -= len(self._recent.popleft())

    def take_back(self, samples: int) -> Pcm:
        """Return the last samples that the sink took, as far as they are kept; they count as not played."""
        recent = np.concatenate([np.zeros(0, np.int16), *self._recent])
        samples = min(samples, len(recent))
        self.played_samples -= samples
        return recent[len(recent) - samples :]


Phase = Literal["idle", "buffering", "playing", "file"]
State = Literal["idle", "buffering", "playing", "file", "paused"]


class StreamOver(Exception):
    """The stream was played, stopped, or replaced by another one, and takes no more samples."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a stream.

    Parameters
    ----------
    kind : str
        `completed`: the stream's last sample was heard. `stopped`: the rest is not played. `fallback`: the
        system's player plays the rest. `error`: the stream cannot be played. `flow`: the sender is to wait,
        or to continue.
    stream : int
        Number of the stream.
    data : dict
        Figures of the event.
    error : KokoroLabError, optional
        The error of an `error` event.
    """

    kind: Literal["completed", "stopped", "fallback", "error", "flow"]
    stream: int
    data: dict[str, Any] = field(default_factory=dict)
    error: KokoroLabError | None = None


@dataclass(frozen=True, slots=True)
class PlayerStatus:
    """The player at a moment, and its latest stream.

    Parameters
    ----------
    state : str
        `buffering`: samples are held back until there are enough. `file`: a file for the system's player is
        being filled or played.
    buffered_s, capacity_s : float
        Seconds of speech that wait to be played, and their limit.
    received_samples, played_samples : int
        Samples of the latest stream, without gaps and pauses; played samples have been heard.
    underruns : int
        How often there was nothing to play, and `silent_s` for how many seconds in all.
    late_blocks : int
        How often samples were there, but the player took them too late, because the machine was busy.
    pre_buffer_s : float
        The pre-buffer at the next start.
    waits : bool
        Whether the sender was asked to wait.
    fallbacks : tuple of Fallback
        What this machine does not offer, and how the latest stream is played otherwise than it should be.
    """

    state: State
    stream: int
    buffered_s: float
    capacity_s: float
    received_samples: int
    played_samples: int
    underruns: int
    silent_s: float
    late_blocks: int
    pre_buffer_s: float
    volume: float
    waits: bool
    sink: str
    fallbacks: tuple[Fallback, ...]
