"""The side of a player that its senders and listeners see: streams come in, and are paused and stopped."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

from kokoro_lab.audio import Pcm
from kokoro_lab.config import settings
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Fallback
from kokoro_lab.errors import PlaybackError
from kokoro_lab.playback.buffering import Hold
from kokoro_lab.playback.sinks import Clock, RealClock, Sink
from kokoro_lab.playback.status import Event, Phase, PlayerStatus, StreamOver
from kokoro_lab.playback.stream import Ring, Stream
from kokoro_lab.playback.system_player import PLAYERS, FilePlayback
from kokoro_lab.typed import require_range

CAPACITY_S = 600.0
"""Ten minutes, 29 MB where they were ever used. A sender that knows nothing of waiting is taken in so far:
what it says behind its audio, such as `stop`, would wait with it otherwise."""
HIGH_S, LOW_S = 30.0, 15.0
"""A sender that listens is told to wait when more than that is there, and to go on when so little is left."""
KEPT_OUTCOMES = 64


class Controls:
    """What any thread may call. `Deck` adds what plays.

    Parameters
    ----------
    sink : Sink
    clock : Clock, optional
        The machine's unless given. The sink must go by the same.
    hold : Hold, optional
        What is held back; learns by itself unless given.
    capacity_s : float
        What the ring holds.
    tell : callable, optional
        Told of every `Event`, by the thread that plays: it must not take long.
    players : sequence of str
        The system's players to choose from where the sink fails; none leaves it at that.
    qos : {"off", "interactive"}, optional
        Whether the thread that plays, and those that hand it speech, ask macOS for its user-interactive
        class; what the environment says unless given.
    """

    def __init__(
        self,
        sink: Sink,
        clock: Clock | None = None,
        *,
        hold: Hold | None = None,
        capacity_s: float = CAPACITY_S,
        tell: Callable[[Event], None] = lambda event: None,
        players: Sequence[str] = PLAYERS,
        qos: Literal["off", "interactive"] | None = None,
    ) -> None:
        self._sink = sink
        self._clock = clock or RealClock()
        self._hold = hold or Hold()
        self._ring = Ring(round(capacity_s * SAMPLE_RATE_HZ))
        self._high_s = min(HIGH_S, capacity_s / 2)
        self._tell = tell
        self._players = players
        self.qos = qos or settings().qos
        self._changed = threading.Condition()
        self._events: deque[Event] = deque()
        self._volume = 1.0
        self._waits = False
        self._phase: Phase = "idle"
        self._stream = Stream(0)
        self._over = 0
        self._outcomes: dict[int, str] = {}
        self._failure: PlaybackError | None = None
        self._stops: list[tuple[int, str, float]] = []
        self._file: FilePlayback | None = None
        self._lacking: dict[str, Fallback] = {}  # what the machine does not offer, whatever the stream

    # -------------------------------------------------------------------------- who sends

    def begin(self) -> int:
        """Begin a stream, and return its number. One that is not over is stopped."""
        with self._changed:
            self._stop("replaced")
            self._stream = Stream(self._stream.number + 1)
            self._hold.begin_stream()
            self._phase = "buffering"
            self._changed.notify_all()
            return self._stream.number

    def offer(self, number: int, pcm: Pcm) -> int:
        """Take as many samples as there is room for, and say how many that were. Does not wait.

        Raises
        ------
        StreamOver
            The stream is over, or its end was announced.
        """
        with self._changed:
            stream = self._stream
            if number != stream.number or self._phase == "idle" or stream.ended:
                raise StreamOver
            count = self._ring.put(pcm)
            if count:
                stream.received_samples += count
                self._hold.arrived(stream.time_s(self._clock.now_s()), count / SAMPLE_RATE_HZ)
                self._direct()
                self._changed.notify_all()
            return count

    def feed(self, number: int, pcm: Pcm) -> None:
        """Hand over all of `pcm`, waiting while there is plenty: for a sender that can be made to wait.

        Raises
        ------
        StreamOver
            The stream is over.
        """
        while len(pcm):
            with self._changed:
                self._changed.wait_for(lambda: not self._waits or number <= self._over)
            pcm = pcm[self.offer(number, pcm) :]

    def end(self, number: int) -> None:
        """Nothing more comes. Nothing happens if the stream is over already."""
        with self._changed:
            if number == self._stream.number:
                self._stream.ended = True
                self._changed.notify_all()

    def over(self, number: int) -> bool:
        """Whether the stream was played, or stopped."""
        return self._over >= number

    def cut_off(self, number: int) -> bool:
        """Whether it was stopped, or another one took its place."""
        with self._changed:
            being = {stopped: reason for stopped, reason, _ in self._stops}
            return (self._outcomes.get(number) or being.get(number)) in ("stopped", "replaced")

    def wait_over(self, number: int, timeout_s: float | None = None) -> bool:
        """Wait until it was, and say so."""
        with self._changed:
            return self._changed.wait_for(lambda: self.over(number), timeout_s)

    def require_played(self, number: int) -> bool:
        """Wait until the stream is over; whether it was played to its end, and not stopped.

        Raises
        ------
        PlaybackError
            It could not be played.
        """
        self.wait_over(number)
        outcome = self._outcomes.get(number)
        if outcome == "failed" and self._failure is not None:
            raise self._failure
        return outcome == "completed"

    # ----------------------------------------------------------------------- who controls

    def pause(self) -> None:
        """Play nothing more until `resume`; nothing is lost."""
        with self._changed:
            if self._phase != "idle":
                self._stream.pause(self._clock.now_s())
                if self._file is not None:
                    self._file.pause()

    def resume(self) -> None:
        """Go on with the sample behind the last one that was played."""
        with self._changed:
            self._stream.resume(self._clock.now_s())
            if self._file is not None:
                self._file.resume()

    def stop(self) -> None:
        """Be silent, and forget what was not played."""
        with self._changed:
            self._stop("stopped")

    def set_volume(self, volume: float) -> None:
        """From 0 to 1, where samples are played as they came.

        Raises
        ------
        ParameterError
            It is not.
        """
        require_range("volume", volume, 0, 1, "There is no such volume.")
        self._volume = volume

    def hold_back(self, held_s: float | None) -> None:
        """Hold back so much before playing; None learns it from how samples come.

        Raises
        ------
        ParameterError
            Below 0, or not finite.
        """
        with self._changed:
            self._hold.fix(held_s)

    def status(self) -> PlayerStatus:
        """How it stands."""
        with self._changed:
            stream = self._stream
            unheard = 0 if self._phase == "file" else self._sink.unheard_samples
            return PlayerStatus(
                state="paused" if stream.paused and self._phase != "idle" else self._phase,
                stream=stream.number,
                buffered_s=len(self._ring) / SAMPLE_RATE_HZ,
                capacity_s=self._ring.capacity_samples / SAMPLE_RATE_HZ,
                received_samples=stream.received_samples,
                played_samples=max(0, stream.played_samples - unheard),
                underruns=self._hold.underruns,
                silent_s=self._hold.silent_s,
                late_blocks=stream.late_blocks,
                pre_buffer_s=self._hold.held_s,
                volume=self._volume,
                waits=self._waits,
                sink=self._sink.name,
                fallbacks=(*self._lacking.values(), *stream.fallbacks),
            )

    def _stop(self, reason: str) -> None:
        if self._phase != "idle":
            self._stops.append((self._stream.number, reason, self._clock.now_s()))
            self._ring.clear()
            self._phase, self._waits = "idle", False
            self._changed.notify_all()

    def _direct(self) -> None:
        """Tell the sender to wait, or to go on."""
        held_s = len(self._ring) / SAMPLE_RATE_HZ
        limit_s = self._high_s * LOW_S / HIGH_S if self._waits else self._high_s
        if self._waits != (held_s > limit_s):
            self._waits = not self._waits
            self._events.append(Event("flow", self._stream.number, {"pause": self._waits}))
            self._changed.notify_all()
