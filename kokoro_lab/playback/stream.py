"""One stream while it is played, the bounded line in which its samples wait, and what is said of both.

What comes in first is played first, and what does not fit is not taken.
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
    """Samples between one who brings them and one who plays them, in memory that is taken once.

    It has no lock: who shares it between threads brings one.

    Parameters
    ----------
    capacity_samples : int
        The most that it holds. Memory is touched only where samples have been.
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
        """Take as many of the first samples of `pcm` as fit, and say how many those were."""
        count = min(len(pcm), self.free_samples)
        begin = (self._at + self._held) % len(self._samples)
        until_end = min(count, len(self._samples) - begin)
        self._samples[begin : begin + until_end] = pcm[:until_end]
        self._samples[: count - until_end] = pcm[until_end:count]
        self._held += count
        return count

    def take(self, count: int) -> Pcm:
        """The `count` samples that have been there longest, or all, if they are fewer. A copy."""
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
"""Kept of what was played, for the part that a dying sink has not made heard."""


@dataclass(slots=True)
class Stream:
    """Parameters: its number, from 1 on. It changes as it is played, under the lock of its deck.

    Attributes
    ----------
    ended : bool
        Its end was announced.
    slow : bool
        It ran dry so often that another way was looked for.
    flows : bool
        The sink had the block before the next one, and no pause or gap lies between.
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
        """The player's clock, which stands still while it is paused."""
        return (now_s if self._paused_since_s is None else self._paused_since_s) - self._paused_s

    def played(self, block: Pcm) -> None:
        """The sink has taken it."""
        self.flows = not self.paused
        self.played_samples += len(block)
        self._recent.append(block)
        self._recent_samples += len(block)
        while self._recent_samples - len(self._recent[0]) > RECENT_SAMPLES:
            self._recent_samples -= len(self._recent.popleft())

    def take_back(self, samples: int) -> Pcm:
        """The last samples that the sink took, or as many as are kept: they count as not played."""
        recent = np.concatenate([np.zeros(0, np.int16), *self._recent])
        samples = min(samples, len(recent))
        self.played_samples -= samples
        return recent[len(recent) - samples :]


Phase = Literal["idle", "buffering", "playing", "file"]
State = Literal["idle", "buffering", "playing", "file", "paused"]


class StreamOver(Exception):
    """What was offered belongs to a stream that was played, stopped, or replaced by another one."""


@dataclass(frozen=True, slots=True)
class Event:
    """What became of a stream.

    Parameters
    ----------
    kind : str
        `completed`: its last sample was heard. `stopped`: the rest is not. `fallback`: the rest is played by
        the system's player. `error`: it cannot be played. `flow`: the sender is to wait, or to go on.
    stream : int
        Its number.
    data : dict
        Figures that belong to it.
    error : KokoroLabError, optional
        With `error`: what is wrong.
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
        `buffering` holds samples back until there are enough, `file` collects or plays what the system's
        player gets.
    buffered_s, capacity_s : float
        What waits to be played, and the most that may.
    received_samples, played_samples : int
        Of the latest stream. Gaps and pauses are not counted, and played is what was heard.
    underruns : int
        How often nothing was there to play, and `silent_s` for how long in all.
    late_blocks : int
        How often samples were there, and the player was too late with them: the machine was busy.
    pre_buffer_s : float
        What is held back at the next start.
    waits : bool
        Whether the sender was told to wait.
    fallbacks : tuple of Fallback
        What this machine does not offer, and what of the latest stream is played otherwise than it should be.
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
