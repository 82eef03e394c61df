"""Turns the messages of one client of the player into streams on the deck, and reports their state to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from kokoro_lab.containers.pcm import BYTES_A_SAMPLE, Pcm
from kokoro_lab.errors import KokoroLabError, ParameterError
from kokoro_lab.playback import protocol
from kokoro_lab.playback.deck import Deck
from kokoro_lab.playback.pcm_input import PcmInput
from kokoro_lab.playback.protocol import Audio, PlayerCommand
from kokoro_lab.playback.stream import Event, StreamOver


class PlayerConversation:
    """The conversation with one client. One thread calls all methods except `tell`, which any thread may
    call.

    Audio for which the deck has no room waits here in order, and none is dropped; control messages do not
    wait behind it.

    Parameters
    ----------
    deck : Deck
    say : callable
        Sends a message to the client; may be called by any thread.
    """

    def __init__(self, deck: Deck, say: Callable[[str], None]) -> None:
        self._deck = deck
        self._say = say
        self._input = PcmInput()
        self._waiting: deque[Pcm | None] = deque()  # None is the end of a stream
        self._stream = 0
        self._sending = False
        self._hears: Literal["all", "unnumbered", "first"] = "all"
        self._ignored_chunks = 0
        self._forgotten = 0  # the last stream that was forgotten together with the audio that waited after it

    @property
    def waiting_bytes(self) -> int:
        """Bytes of audio that wait here, because the deck has no room for them yet."""
        return sum(len(pcm) * BYTES_A_SAMPLE for pcm in self._waiting if pcm is not None)

    def hear(self, message: str | bytes) -> None:
        """Carry out a client's message; an error is reported to the client."""
        try:
            said = protocol.read_message(message)
            if isinstance(said, Audio):
                self._take(said)
            else:
                self._obey(said)
        except KokoroLabError as error:
            self._say(protocol.message("error", protocol.error_data(error)))

    def tell(self, event: Event) -> None:
        """Tell the client of an event of one of its streams."""
        own = event.stream == self._stream
        if event.kind == "completed":
            self._tell("completed", event, state="completed")
        elif event.kind == "stopped" and own:
            self._tell("status", event, state="idle")
        elif event.kind == "fallback" and own:
            self._tell("fallback", event)
        elif event.kind == "flow" and own:
            self._say(protocol.message("flow_control", event.data))
        elif event.kind == "error" and own and event.error is not None:
            self._say(protocol.message("error", protocol.error_data(event.error)))

    def work(self) -> bool:
        """Hand waiting audio to the deck, as far as there is room; returns whether some still waits."""
        while self._waiting:
            if not self._sending:
                if not self._deck.over(self._stream):
                    return True  # the next stream of the same client does not cut its last one off
                if self._forgotten != self._stream and self._deck.cut_off(self._stream):
                    self._forget("first" if self._open else "all")  # another client stopped it
                    return False
                self._stream, self._sending = self._deck.begin(), True
            pcm = self._waiting[0]
            if pcm is None:
                self._deck.end(self._stream)
                self._sending = False
            else:
                try:
                    taken = self._deck.offer(self._stream, pcm)
                except StreamOver:  # another client has stopped or replaced it
                    self._forget("first")
                    return False
                if taken < len(pcm):
                    self._waiting[0] = pcm[taken:]
                    return True
            self._waiting.popleft()
        return False

    def leave(self) -> None:
        """Record that the client has gone. The audio that it has sent is played to its end."""
        if self._open:
            self._waiting.append(None)

    @property
    def _open(self) -> bool:
        """Whether a stream has begun and not ended. If there is none, the message that ends a stream is
        ignored: it would begin an empty stream, which replaces that of another client."""
        return self._waiting[-1] is not None if self._waiting else self._sending

    # ------------------------------------------------------------------------------ listening

    def _take(self, audio: Audio) -> None:
        if audio.sequence == 0 or (self._hears == "unnumbered" and audio.sequence is None):
            self._hears = "all"
        if self._hears != "all":
            self._ignored_chunks += 1  # it was under way when its stream was stopped
            return
        try:
            pcm = self._input.push(audio.fragment)
        except ParameterError:
            # The rest of it is no PCM either; waiting audio belongs to earlier streams
            self._input, self._hears = PcmInput(), "first"
            raise
        if len(pcm):
            if not (self._sending or self._waiting) and self._deck.cut_off(self._stream):
                self._forgotten = self._stream  # nothing waited then, and this comes after it
            self._waiting.append(pcm)
            self.work()

    def _obey(self, said: PlayerCommand) -> None:
        if said.action == "heartbeat":
            self._say(protocol.message("heartbeat", {"status": "ok"}))
            return
        if said.action == "end_stream":
            self._end()
        elif said.action == "play":
            self._hears = "all"
            self._deck.resume()
        elif said.action == "pause":
            self._deck.pause()
        elif said.action == "resume":
            self._deck.resume()
        elif said.action == "stop":
            self._deck.stop()
            self._forget("unnumbered")
        elif said.action == "configure":
            self._configure(said.params)
        self.tell_status()

    def _end(self) -> None:
        torn = self._input.torn_bytes
        self._input = PcmInput()
        if self._open:
            self._waiting.append(None)
            self.work()
        elif self._hears == "all" and not self._waiting and self._deck.over(self._stream):
            # Nothing was sent, and all of it was played. A stream that is played reports its own end later
            self._say(protocol.message("completed", protocol.status_data(self._deck.status(), "completed")))
        self._hears = "all"
        if torn:
            raise ParameterError(
                f"The stream ended within a sample: {torn} bytes were left over.", field="chunk"
            )

    def _configure(self, params: dict[str, Any]) -> None:
        pre_buffer_s, volume = protocol.configured(params)
        if pre_buffer_s is not None:
            self._deck.hold_back(None if pre_buffer_s == "auto" else pre_buffer_s)
        if volume is not None:
            self._deck.set_volume(volume)

    def _forget(self, then: Literal["all", "unnumbered", "first"]) -> None:
        """Forget a stream and its audio. `then` says which chunks are taken next: all, unnumbered ones, or a
        first one."""
        self._waiting.clear()
        self._forgotten = self._stream
        self._input = PcmInput()
        self._sending, self._hears = False, then

    # -------------------------------------------------------------------------------- telling

    def _tell(self, kind: str, event: Event, state: str | None = None) -> None:
        data = protocol.status_data(self._deck.status(), state)
        self._say(protocol.message(kind, {**data, "stream": event.stream, **event.data}))

    def beat(self) -> None:
        """Send a heartbeat, and while the player plays also its status."""
        self._say(protocol.message("heartbeat", {"status": "ok"}))
        if not self._deck.over(self._stream):
            self.tell_status()

    def tell_status(self) -> None:
        """Send the player's status to the client."""
        status = self._deck.status()
        if status.state == "idle" and self._waiting:
            status = replace(status, state="buffering")  # audio of this client is still to be heard
        data = protocol.status_data(status)
        self._say(protocol.message("status", {**data, "ignored_chunks": self._ignored_chunks}))
