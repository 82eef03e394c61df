"""The requests that are being answered now: to be seen, to be stopped, and to make way for each other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kokoro_lab.errors import DeadlineExceeded, KokoroLabError
from kokoro_lab.server.account import Account
from kokoro_lab.server.live import Live

if TYPE_CHECKING:
    from kokoro_lab.speech.stream import SpeechStream

GRACE_S = 2.0
"""A client that can still be told why it is stopped is, if its thread comes to it in this time."""
MAKE_WAY_S = 0.02
"""How long a stream with enough in hand steps aside before it looks again."""


class RunningSynthesis:
    """One synthesis under way, and how to stop it.

    Parameters
    ----------
    account : Account
    stream : SpeechStream
    live : Live
        How it is stopped, and the client's connection.
    streamed : bool
        Whether it is sent as it is computed.
    tells : bool
        Whether the client can still be told of an error. Not so in raw audio: all that can be said there is
        to break off.
    """

    def __init__(
        self, account: Account, stream: SpeechStream, live: Live, *, streamed: bool, tells: bool
    ) -> None:
        self.account = account
        self.stream = stream
        self.live = live
        self.streamed = streamed
        self._tells = tells
        self._lock = threading.Lock()
        self._ended = False
        self._timers: list[threading.Timer] = []

    def interrupt(self, reason: KokoroLabError) -> None:
        """Stop it: nothing is computed beyond the window under way, and the client is let go."""
        with self._lock:
            if self._ended:
                return
            self.account.interruption = reason
        self.live.stop.set()
        self._after(GRACE_S if self._tells else 0.0, self._cut_unless_ended)

    def cut(self) -> None:
        """Shut the connection down, whatever its thread is busy with."""
        if self.live.connection is not None:
            with suppress(OSError):  # the client was quicker
                self.live.connection.shutdown(socket.SHUT_RDWR)

    def expire_after(self, first_audio_s: float, total_s: float) -> None:
        """Stop it when it has not begun to sound, or has not ended, so many seconds after its acceptance."""
        age_s = self.account.age_s
        if self.streamed:
            self._after(first_audio_s - age_s, lambda: self._expire_silent(first_audio_s))
        self._after(total_s - age_s, lambda: self._expire("end", "deadline_s", total_s))

    def end(self) -> None:
        """Nothing is to be stopped any more: the connection may serve another request from now on."""
        with self._lock:
            self._ended = True
            for timer in self._timers:
                timer.cancel()

    def figures(self) -> dict[str, Any]:
        """For `/status`: how far it is and how full its stages are."""
        account = self.account
        return {
            "request_id": account.request_id,
            "age_s": round(account.age_s, 3),
            "characters": account.asked.get("characters"),
            "streamed": self.streamed,
            "speaking": account.first_audio_s is not None,
            "chunks": account.chunks,
            "segments": len(self.stream.segments),
            "underruns": account.underruns,
            "fill": self.stream.fill,
        }

    def _cut_unless_ended(self) -> None:
        with self._lock:
            if not self._ended:
                self.cut()

    def _expire_silent(self, limit_s: float) -> None:
        if self.account.first_audio_s is None:
            self._expire("first audio", "first_audio_deadline_s", limit_s)

    def _expire(self, what: str, setting: str, limit_s: float) -> None:
        self.interrupt(
            DeadlineExceeded(
                f"The request did not come to its {what} within {limit_s:g} s.",
                field=setting,
                mend="Send a shorter text, ask again when less is going on, or allow more by "
                f"KOKORO_{setting.upper()}.",
            )
        )

    def _after(self, seconds: float, work: Callable[[], None]) -> None:
        timer = threading.Timer(max(0.0, seconds), work)
        timer.daemon = True
        with self._lock:
            if self._ended:
                return
            self._timers.append(timer)
            timer.start()


class Sessions:
    """All that are under way. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[int, RunningSynthesis] = {}

    def begin(self, session: RunningSynthesis) -> None:
        """One more. From now on, it and those beside it share the processor."""
        with self._lock:
            self._sessions[id(session)] = session
            if len(self._sessions) > 1:
                for other in self._sessions.values():
                    other.account.shared = True

    def end(self, session: RunningSynthesis) -> None:
        """One less; ending it twice is no error."""
        session.end()
        with self._lock:
            self._sessions.pop(id(session), None)

    def under_way(self) -> list[RunningSynthesis]:
        """A snapshot."""
        with self._lock:
            return list(self._sessions.values())

    def anyone_hears(self) -> bool:
        """Whether any of them has begun to sound."""
        return any(session.account.first_audio_s is not None for session in self.under_way())

    def interrupt(self, reason: KokoroLabError, request_id: str | None = None) -> list[str]:
        """Stop those that have that id or were given it, or all; says which."""
        stopped = [s for s in self.under_way() if request_id in (None, s.live.stream_id, s.live.asked_id)]
        for session in stopped:
            session.interrupt(reason)
        return [session.account.request_id for session in stopped]

    def make_way(self, session: RunningSynthesis, reserve_s: float) -> None:
        """Step aside while another one has not begun to sound and there is speech in hand to cover it.

        Scheduling alone: what is computed, and in which pieces, stays the same.
        """
        while (
            not session.live.stopped
            and self._somebody_is_silent(session)
            and session.stream.fill["lead_s"] > reserve_s
        ):
            time.sleep(MAKE_WAY_S)

    def _somebody_is_silent(self, beside: RunningSynthesis) -> bool:
        others = (s for s in self.under_way() if s is not beside)
        return any(s.streamed and s.account.first_audio_s is None for s in others)
