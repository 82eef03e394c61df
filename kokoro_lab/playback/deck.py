"""The player: any thread may send, pause and stop streams, and one thread plays them.

The module `aloud` uses the player for our own speech, which is heard while it is computed.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

import numpy as np

from kokoro_lab.config import settings
from kokoro_lab.containers.pcm import Pcm
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Fallback
from kokoro_lab.errors import PlaybackError
from kokoro_lab.playback.buffering import Hold
from kokoro_lab.playback.sinks import BLOCK_S, BLOCK_SAMPLES, Clock, Sink
from kokoro_lab.playback.stream import Event, Phase, PlayerStatus, Ring, Stream, StreamOver
from kokoro_lab.playback.system_player import PLAYERS, FilePlayback, system_player
from kokoro_lab.scheduling.priority import enter_playback
from kokoro_lab.typed import require_range

log = logging.getLogger(__name__)

NEAR_S = 0.0025
"""Seconds between two checks whether the sink has played all samples."""
KEEP_OPEN_S = 30.0
"""Seconds without sound after which the sound card is closed, because an open one keeps a laptop awake."""
CAPACITY_S = 600.0
"""Capacity of the ring buffer: ten minutes, or 29 MB once all of it was used. A sender that does not wait can
send this much. With less room, later messages of the sender, such as `stop`, would wait until the deck has
room for the audio before them."""
HIGH_S, LOW_S = 30.0, 15.0
"""A sender is asked to wait when more than `HIGH_S` of speech are buffered, and to continue when less than
`LOW_S` are left."""
KEPT_OUTCOMES = 64


class Deck:
    """Plays one stream after another. A new stream replaces the present one, even if that is not over.

    Any thread may send and control. `step`, which plays one block, and all methods from `open` on are called
    by one thread (`running`).

    Parameters
    ----------
    sink : Sink
    clock : Clock, optional
        The clock, by default the machine's. The sink must use the same clock.
    hold : Hold, optional
        The pre-buffer; by default one that learns.
    capacity_s : float
        The capacity of the ring buffer.
    tell : callable, optional
        Called with every `Event` by the thread that plays, so it must return soon.
    players : sequence of str
        The system's players to choose from if the sink fails; if empty, the failure is final.
    qos : {"off", "interactive"}, optional
        Whether the thread that plays, and those that hand it speech, ask macOS for its user-interactive
        class; the setting `qos` unless given.
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
        self._clock = clock or Clock()
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
        self._lacking: dict[str, Fallback] = {}  # what the machine does not offer, for every stream

    # -------------------------------------------------------------------------- who sends

    def begin(self) -> int:
        """Begin a stream and return its number. An earlier one that is not over is stopped."""
        with self._changed:
            self._stop("replaced")
            self._stream = Stream(self._stream.number + 1)
            self._hold.begin_stream()
            self._phase = "buffering"
            self._changed.notify_all()
            return self._stream.number

    def offer(self, number: int, pcm: Pcm) -> int:
        """Take as many samples as there is room for, and return their number. Does not wait.

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
        """Hand over all of `pcm`, and wait for room: for a sender that can wait.

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
        """End a stream. No effect if it is over already."""
        with self._changed:
            if number == self._stream.number:
                self._stream.ended = True
                self._changed.notify_all()

    def over(self, number: int) -> bool:
        """Whether the stream was played, or stopped."""
        return self._over >= number

    def cut_off(self, number: int) -> bool:
        """Whether the stream was stopped or replaced."""
        with self._changed:
            being = {stopped: reason for stopped, reason, _ in self._stops}
            return (self._outcomes.get(number) or being.get(number)) in ("stopped", "replaced")

    def wait_over(self, number: int, timeout_s: float | None = None) -> bool:
        """Wait until the stream is over; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: self.over(number), timeout_s)

    def require_played(self, number: int) -> bool:
        """Wait until the stream is over; returns whether it was played to its end, and not stopped.

        Raises
        ------
        PlaybackError
            The stream could not be played.
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
        """Continue with the sample after the last one that was played."""
        with self._changed:
            self._stream.resume(self._clock.now_s())
            if self._file is not None:
                self._file.resume()

    def stop(self) -> None:
        """Stop playing, and drop the samples that were not played."""
        with self._changed:
            self._stop("stopped")

    def set_volume(self, volume: float) -> None:
        """Set the volume from 0 to 1; at 1, samples are played unchanged.

        Raises
        ------
        ParameterError
            The volume is not from 0 to 1.
        """
        require_range("volume", volume, 0, 1, "There is no such volume.")
        self._volume = volume

    def hold_back(self, held_s: float | None) -> None:
        """Set the pre-buffer; None learns it from the arrival of samples.

        Raises
        ------
        ParameterError
            `held_s` is below 0, or not finite.
        """
        with self._changed:
            self._hold.fix(held_s)

    def status(self) -> PlayerStatus:
        """The player's status."""
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
        """Tell the sender to wait, or to continue, if the amount of buffered speech asks for a change
        (`HIGH_S`, `LOW_S`)."""
        held_s = len(self._ring) / SAMPLE_RATE_HZ
        limit_s = self._high_s * LOW_S / HIGH_S if self._waits else self._high_s
        if self._waits != (held_s > limit_s):
            self._waits = not self._waits
            self._events.append(Event("flow", self._stream.number, {"pause": self._waits}))
            self._changed.notify_all()

    # ------------------------------------------------------------------------- who plays

    def open(self) -> None:
        """Open the sink, so that a sink that cannot play is reported before the first stream comes.

        Without a sound card, the system's player plays streams from files, as when a sound card fails.

        Raises
        ------
        PlaybackError
            The sink does not open and cannot be replaced: it is a file or a named device, or no other player
            is installed.
        """
        try:
            self._sink.open()
        except PlaybackError as error:
            if not self._sink.real_time or error.value is not None:
                raise
            try:
                command = system_player(self._players)
            except PlaybackError as missing:
                mend = f"{error.mend or ''} Or install a player of files: {missing.allowed}.".strip()
                raise PlaybackError(error.message, field=error.field, mend=mend) from error
            self._lack(Fallback("playback", f"{error} Speech is played from files by {command[0]}."))
            log.warning("%s", self._lacking["playback"].reason)

    def run(self, until: threading.Event) -> None:
        """Play until `until` is set, sleeping while there is nothing to play."""
        missing = enter_playback(self.qos)
        if missing is not None:
            self._lack(missing)
        idle_s = 0.0
        while not until.is_set():
            if self._step_safely():
                idle_s = 0.0
                continue
            with self._changed:
                idle = self._phase == "idle" and not self._stops and not until.is_set()
                if idle and not self._changed.wait(1.0):
                    idle_s += 1.0
            if idle_s == KEEP_OPEN_S and self._sink.real_time:
                self._sink.close()

    def _lack(self, fallback: Fallback) -> None:
        with self._changed:
            self._lacking[fallback.stage] = fallback

    def _step_safely(self) -> bool:
        """Run `step`. If the sound card's library raises, the stream fails, and the next one is tried."""
        try:
            return self.step()
        except Exception as error:
            log.exception("The player failed.")
            why = PlaybackError(f"The player failed: {type(error).__name__}.", mend="Its log says more.")
            self._fail(self._stream, why)
            return True

    def close(self) -> None:
        """Stop, and close the sink; called by the thread that plays, or after that thread has ended."""
        self.stop()
        self.step()
        self._sink.close()

    def step(self) -> bool:
        """Play one block, or wait for as long as one lasts; False if there is nothing to do."""
        self._silence()
        with self._changed:
            stream, phase = self._stream, self._phase
            block = self._next_block()
            runs_out = self._phase == "playing" and not stream.paused
        if block is not None:
            self._play(stream, block)
        elif phase == "file":
            self._step_file(stream)
        elif phase != "idle" and not self._stops:
            self._clock.sleep(NEAR_S if runs_out else BLOCK_S)
        while self._events:
            self._tell(self._events.popleft())
        return phase != "idle"

    def _next_block(self) -> Pcm | None:
        """The block to play now; None if there is none yet."""
        stream, buffered_s = self._stream, len(self._ring) / SAMPLE_RATE_HZ
        if stream.paused or self._phase not in ("buffering", "playing"):
            return None
        if self._stops:  # the sink still has samples that it will drop, with all that it gets now
            return None
        time_s = stream.time_s(self._clock.now_s())
        if self._phase == "buffering":
            if not (stream.ended or (buffered_s and self._enough(time_s, buffered_s))):
                return None
            if buffered_s:
                self._hold.started(time_s)
            self._phase = "playing"
        played_out = self._sink.unheard_samples == 0
        if buffered_s:
            stream.late_blocks += stream.flows and played_out and self._sink.real_time
            block = self._ring.take(BLOCK_SAMPLES)
            self._direct()
            return block
        if played_out:
            stream.flows = False
            if stream.ended:
                self._complete()
            elif self._sink.real_time:
                self._hold.ran_dry(time_s)
                self._phase = "buffering"
        return None

    def _enough(self, time_s: float, buffered_s: float) -> bool:
        return not self._sink.real_time or self._hold.enough(time_s, buffered_s)

    def _play(self, stream: Stream, block: Pcm) -> None:
        if self._hold.hopeless and not stream.slow:
            stream.slow = True
            if self._to_file(stream, block, "Speech comes slower than it is played.", None) is None:
                return  # without another player the stream has gaps, which is better than no sound
        try:
            self._sink.open()
            self._sink.play(self._scaled(block))
        except PlaybackError as error:
            missing = self._to_file(stream, block, error.message, self._sink)
            if missing is not None:
                mend = " ".join(filter(None, (error.mend, str(missing))))
                self._fail(stream, PlaybackError(error.message, field=error.field, mend=mend))
            return
        with self._changed:
            self._lacking.pop("playback", None)
            stream.played(block)

    def _scaled(self, pcm: Pcm) -> Pcm:
        volume = self._volume
        return pcm if volume == 1 else np.rint(pcm * volume).astype(np.int16)

    # ------------------------------------------------------- what the sink cannot play

    def _to_file(self, stream: Stream, block: Pcm, why: str, died: Sink | None) -> PlaybackError | None:
        """Collect the unheard samples, `block` and the rest of the stream in a file for the system's player;
        returns an error if there is no player."""
        if not self._players:
            return PlaybackError("No other player is asked.")
        try:
            file = FilePlayback(system_player(self._players))
        except PlaybackError as error:
            log.warning("%s It cannot be played from a file: %s", why, error)
            return error
        fallback = Fallback("playback", f"{why} The rest is played from a file.")
        log.warning("%s", fallback.reason)
        with self._changed:
            if stream is not self._stream or self._phase == "idle":  # it was stopped meanwhile
                file.close()
                return None
            unheard = stream.take_back(died.unheard_samples) if died else block[:0]
            self._file, self._phase = file, "file"
            stream.fallbacks.append(fallback)
            self._events.append(Event("fallback", stream.number, {"reason": fallback.reason}))
        if died:
            died.close()
        try:
            file.write(self._scaled(np.concatenate((unheard, block))))
        except PlaybackError as error:
            self._fail(stream, error)
        return None

    def _step_file(self, stream: Stream) -> None:
        with self._changed:
            file = self._file
            if stream is not self._stream or self._phase != "file" or file is None:
                return
            pcm, ended, paused = self._ring.take(len(self._ring)), stream.ended, stream.paused
            self._direct()
        try:
            file.write(self._scaled(pcm))
            if ended and not file.started and not paused:
                file.start()
                self._pause_again(stream, file)
            played = file.over()
        except PlaybackError as error:
            self._fail(stream, error)
            return
        if not played:
            self._clock.sleep(BLOCK_S)
            return
        file.close()
        with self._changed:
            self._file = None
            if stream is self._stream and self._phase == "file":
                stream.played_samples += file.samples
                self._complete()

    def _pause_again(self, stream: Stream, file: FilePlayback) -> None:
        """Repeat a pause that came while the player was being started, and had no effect."""
        with self._changed:
            if stream.paused:
                file.pause()

    def _fail(self, stream: Stream, error: PlaybackError) -> None:
        with self._changed:
            if stream is self._stream:
                self._failure = error
                self._events.append(Event("error", stream.number, error=error))
                self._stop("failed")
        self._silence()

    # ---------------------------------------------------------------------- how it ends

    def _silence(self) -> None:
        """Silence the sink or the system's player."""
        with self._changed:
            if not self._stops:
                return
            stops, self._stops = self._stops, []
            file, self._file = self._file, None
        if file is not None:
            file.close()
        self._drop()
        now_s = self._clock.now_s()
        with self._changed:
            for number, reason, since_s in stops:
                self._events.append(
                    Event("stopped", number, {"reason": reason, "silenced_s": now_s - since_s})
                )
                self._ends(number, reason)

    def _drop(self) -> None:
        """Drop the sink's samples. A sink that fails even at that is closed, so that threads waiting for the
        stop go on."""
        try:
            self._sink.drop()
        except Exception:
            log.exception("The sink could not be silenced.")
            with suppress(Exception):
                self._sink.close()

    def _complete(self) -> None:
        stream = self._stream
        self._phase, self._waits = "idle", False
        self._events.append(Event("completed", stream.number, {"played_samples": stream.played_samples}))
        self._ends(stream.number, "completed")

    def _ends(self, number: int, outcome: str) -> None:
        self._outcomes[number] = outcome  # first: it may be asked for as soon as the end is seen
        self._over = max(self._over, number)
        self._outcomes.pop(number - KEPT_OUTCOMES, None)
        self._changed.notify_all()


@contextmanager
def running(deck: Deck) -> Iterator[Deck]:
    """A context in which `deck` plays in a thread of its own; at its end, streams are stopped."""
    over = threading.Event()
    thread = threading.Thread(target=deck.run, args=(over,), name="deck")
    thread.start()
    try:
        yield deck
    finally:
        over.set()
        with deck._changed:
            deck._changed.notify_all()
        thread.join()
        deck.close()
