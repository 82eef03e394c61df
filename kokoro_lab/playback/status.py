"""What a player says of itself, and of what became of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import KokoroLabError

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
