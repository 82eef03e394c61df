"""The list of syntheses under way: they are admitted, shown, and stopped by their ids.

A named client has one synthesis at a time. A further synthesis is admitted if all can be served in time, by
the measured cost of speech on this machine. Files get the computing time that streams leave, since nobody
listens while a file is computed.

A *unit* of computing is one window of the vocoder, or the prosody of one segment (see
`scheduling.deadlines`).
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from flask import g

from kokoro_lab.config import Settings
from kokoro_lab.datatypes import Utterance
from kokoro_lab.errors import DeadlineExceeded, Interrupted, KokoroLabError, ParameterError
from kokoro_lab.net.watched_socket import WatchedSocket
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.openapi.request_schema import CLIENT
from kokoro_lab.server.requests.account import Account
from kokoro_lab.server.requests.costs import MeasuredCosts
from kokoro_lab.server.requests.slots import Admission, ClientLeft, Slot, Slots
from kokoro_lab.server.requests.speech_request import SpeechRequest

if TYPE_CHECKING:
    from kokoro_lab.speech.live import LiveSpeech
    from kokoro_lab.speech.stream import SpeechStream

LONGEST_ID = 64
"""Characters of a request's id."""
END_S = 10.0
"""Seconds to wait until a stopped synthesis has ended. It ends after the window under way, which takes less
time than this on any machine."""
SEND_S = 0.5
"""How long a client may take to receive data that is being sent, before its connection is cut."""
POLL_S = 0.01
GRACE_S = 2.0
"""How long a stopped client's thread has to send the reason, before its connection is cut."""
FILES = 2
"""How many files are computed at a time: each holds all of its samples, and windows are computed one after
the other anyway."""
KNOWN_S = 5.0
"""Seconds of speech after which a stream's own cost is used, instead of that of earlier streams."""
CHARACTERS_PER_S = 15.0
LONGEST_RETRY_S = 600.0


class Synthesis:
    """One request for speech, from its admission until its slot is free. Its methods stop the request.

    Parameters
    ----------
    account : Account
        The account of the request. The account's id stops only this synthesis.
    asked : SpeechRequest
    utterance : Utterance
        What the engine is to speak.
    caller : str
        A name for the client, by which clients are served in turn.

    Attributes
    ----------
    asked_id : str
        The id that the client gave it, which also stops it; other syntheses may have the same.
    stop : threading.Event
        Set to end the synthesis; the computing thread looks at it after each window.
    connection : socket.socket or WatchedSocket, optional
        The client's connection, which is shut down if a send hangs.
    sending : bool
        Whether the synthesis is sending, and so waits for its client instead of for samples.
    stream : SpeechStream or None
        The stream that is spoken; None until speech begins.
    live : LiveSpeech or None
        Takes further text, if the text is still being written.
    streamed : bool
        Whether the speech is sent as it is computed.
    tells : bool
        Whether an error can still be sent to the client. Raw audio cannot carry one: there, the connection is
        only cut.
    forget : callable
        Removes the synthesis from the list of syntheses.
    over : bool
        Whether the synthesis has ended. After that it may not be stopped any more: the connection may already
        serve another request.
    """

    def __init__(self, account: Account, asked: SpeechRequest, utterance: Utterance, caller: str) -> None:
        self.account = account
        self.asked = asked
        self.utterance = utterance
        self.caller = caller
        self.asked_id = account.request_id
        self.stop = threading.Event()
        self.connection: socket.socket | WatchedSocket | None = None
        self.sending = self.streamed = self.tells = self.over = False
        self.stream: SpeechStream | None = None
        self.live: LiveSpeech | None = None
        self.slot: Slot | None = None
        self.forget: Callable[[Synthesis], None] = lambda synthesis: None
        self._lock = threading.Lock()
        self._timers: list[threading.Timer] = []
        self._released = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return self.stop.is_set()

    def is_called(self, request_id: str) -> bool:
        """Whether an id is this synthesis's own one, or the one that the client gave it."""
        return request_id in (self.account.request_id, self.asked_id)

    @property
    def is_listened(self) -> bool:
        """Whether it is heard while it is computed."""
        return bool(self.account.asked["streamed"])

    @property
    def is_resumed(self) -> bool:
        """Whether its stream broke before. Then more is computed than its listener is given, so that it says
        nothing of what speech costs."""
        return bool(self.account.asked.get("resumed"))

    def load(self, costs: MeasuredCosts) -> float:
        """Seconds of computing that it needs in each second, so that its listener never runs out of
        speech."""
        stream = self.stream
        if not self.is_listened or (stream is not None and stream.is_computed):
            return 0.0
        if stream is None or stream.claim.given_s < KNOWN_S or self.is_resumed:
            cost = costs.of(self.utterance.voice)
        else:
            cost = stream.compute_s / stream.claim.given_s
        return cost if stream is None else cost * min(1.0, stream.claim.pace)

    def left_s(self, costs: MeasuredCosts) -> float:
        """The seconds until its end, estimated from its text."""
        stream, done, given_s, pace = self.stream, 0, 0.0, 1.0
        if stream is not None:
            done = stream.segments[-1].end if stream.segments else 0
            given_s, pace = stream.claim.given_s, max(stream.claim.pace, 1e-3)
        known = given_s >= KNOWN_S and done and not self.is_resumed
        per_character_s = given_s / done if known else 1 / CHARACTERS_PER_S
        characters = len(self.utterance.text) if stream is None else stream.characters
        left_s = max(0, characters - done) * per_character_s
        return left_s / pace if self.is_listened else left_s * costs.of(self.utterance.voice)

    def cut(self) -> None:
        """Shut the connection down, whatever its thread is busy with."""
        if self.connection is not None:
            with suppress(OSError):  # the client was quicker
                self.connection.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        """Stop it, and wait until its slot is free, at most for `END_S`."""
        self.stop.set()
        now_s = time.monotonic()
        until_s, computed_s = now_s + END_S, now_s
        while not self._released.wait(POLL_S) and (now_s := time.monotonic()) < until_s:
            if not self.sending:
                computed_s = now_s
            elif now_s - computed_s > SEND_S:
                self.cut()

    def interrupt(self, reason: KokoroLabError) -> None:
        """Stop the synthesis. The window under way is the last one that is computed, and the answer ends."""
        with self._lock:
            if self.over:
                return
            self.account.interruption = reason
        self.stop.set()
        self._after(GRACE_S if self.tells else 0.0, self._cut_unless_over)

    def expire_after(self, first_audio_s: float, total_s: float) -> None:
        """Stop it if it has not begun to sound `first_audio_s` after its acceptance, or has not ended
        `total_s` after it. A resumed stream that is computed from its beginning sounds only once all is
        computed that its client has: it need only have begun to be computed."""
        age_s = self.account.age_s
        if self.streamed and self.live is None:  # else the writer may be the one who takes so long
            self._after(first_audio_s - age_s, lambda: self._expire_silent(first_audio_s))
        self._after(total_s - age_s, lambda: self._expire("end", "deadline_s", total_s))

    def end(self) -> None:
        """Free the slot, and wake the threads that wait for it. A second call has no effect."""
        with self._lock:
            self.over = True
            for timer in self._timers:
                timer.cancel()
        if self.slot is not None:
            self.slot.release()
        self.forget(self)
        self._released.set()

    def finish(self, outcome: Outcome, code: str | None = None) -> None:
        """Close its account, and end it."""
        try:
            self.account.close(outcome, code)
        finally:
            self.end()

    def figures(self) -> dict[str, Any]:
        """Figures for `/status`: its progress, and how much is computed ahead of its listener."""
        account, stream = self.account, self.stream
        assert stream is not None
        return {
            "request_id": account.request_id,
            "age_s": round(account.age_s, 3),
            "characters": account.asked.get("characters"),
            "streamed": self.streamed,
            "speaking": account.first_audio_s is not None,
            "chunks": account.chunks,
            "segments": len(stream.segments),
            "underruns": account.underruns,
            "fill": stream.fill,
            "waited_s": round(stream.claim.waited_s, 3),
        }

    def _cut_unless_over(self) -> None:
        with self._lock:
            if not self.over:
                self.cut()

    def _expire_silent(self, limit_s: float) -> None:
        if not self.account.speaks:
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
            if self.over:
                return
            self._timers.append(timer)
            timer.start()


class Syntheses:
    """All syntheses that have a slot or wait for one. Thread-safe.

    Parameters
    ----------
    slots : Slots
    admission : Admission
    settings : Settings
        Settings with the deadlines and the capacity.
    at_a_time : int
        How many units may be computed at a time.

    Attributes
    ----------
    costs : MeasuredCosts
    """

    def __init__(self, slots: Slots, admission: Admission, settings: Settings, at_a_time: int = 1) -> None:
        self.costs = MeasuredCosts()
        self._at_a_time = at_a_time
        self._slots = slots
        self._admission = admission
        self._settings = settings
        self._lock = threading.Lock()
        self._entered: dict[str, Synthesis] = {}

    def admit(self, synthesis: Synthesis, gone: Callable[[], bool]) -> None:
        """Give a synthesis its slot. Other syntheses of the same named client are stopped first: the latest
        one wins.

        If another synthesis under way has the same id, a number is added to the new one's: `a.2` for `a`.

        Parameters
        ----------
        synthesis : Synthesis
        gone : callable
            Returns whether the client has left while the request waits.

        Raises
        ------
        ParameterError
            The client's name is not allowed.
        Unavailable
            New requests are refused, or have been refused since it began to wait.
        Interrupted
            The synthesis was stopped while it waited.
        werkzeug.exceptions.TooManyRequests, ClientLeft
            No slot is free, or the client has left.
        """
        self._admission.check()
        self._enter(synthesis)
        g.request_id = synthesis.account.request_id  # headers and log show the id that stops it
        try:
            synthesis.slot = self._wait(synthesis, gone)
        except BaseException:
            synthesis.end()
            raise

    def begin(self, synthesis: Synthesis, stream: SpeechStream, *, streamed: bool, tells: bool) -> None:
        """Record that the stream of `synthesis` has begun. From now on the synthesis is shown, operators can
        stop it, and deadlines apply.

        From now on, this synthesis and all others under way share the processor.
        """
        with self._lock:
            synthesis.streamed, synthesis.tells, synthesis.stream = streamed, tells, stream
            synthesis.account.claim = stream.claim
            speaking = self._speaking()
            for one in speaking if len(speaking) > 1 else ():
                one.account.shared = True
        synthesis.expire_after(self._settings.first_audio_deadline_s, self._settings.deadline_s)

    @property
    def load(self) -> float:
        """Seconds of computing that listeners need in a second."""
        return sum(one.load(self.costs) for one in self.under_way())

    @property
    def capacity(self) -> float:
        """How many seconds of computing listeners may need in a second."""
        return self._settings.capacity * self._at_a_time * self._slots.limit / self._slots.count

    def _fits(self, synthesis: Synthesis, held: Sequence[Synthesis]) -> bool:
        """Whether a synthesis can be served in time beside the others."""
        if not synthesis.is_listened:
            return sum(not one.is_listened for one in held) < FILES
        loads = [load for one in held if (load := one.load(self.costs)) > 0]
        return not loads or sum(loads) + synthesis.load(self.costs) <= self.capacity

    def _come_back_s(self, synthesis: Synthesis, before: int) -> float:
        """The seconds until enough syntheses have ended for all that wait before this one, and for this
        one."""
        alike = [one for one in self.under_way() if one.is_listened == synthesis.is_listened]
        ends_s = sorted(one.left_s(self.costs) for one in alike or self.under_way())
        return min(LONGEST_RETRY_S, ends_s[min(before, len(ends_s) - 1)]) if ends_s else 0.0

    def under_way(self) -> list[Synthesis]:
        """The syntheses that speak."""
        with self._lock:
            return self._speaking()

    def anyone_hears(self) -> bool:
        """Whether any synthesis has begun to sound."""
        return any(one.account.first_audio_s is not None for one in self.under_way())

    def stop(self, request_id: str) -> list[str]:
        """Stop all syntheses with an id, waiting ones too; returns their ids once their slots are free."""
        with self._lock:
            found = [one for one in self._entered.values() if one.is_called(request_id)]
        for one in found:
            one.stop.set()
        for one in found:
            one.cancel()
        return [one.account.request_id for one in found]

    def interrupt(self, reason: KokoroLabError, request_id: str | None = None) -> list[str]:
        """Stop the syntheses under way with the id `request_id`, or all that are under way without it, and
        tell their clients the reason. Returns the ids of the stopped syntheses."""
        found = [one for one in self.under_way() if request_id is None or one.is_called(request_id)]
        for one in found:
            one.interrupt(reason)
        return [one.account.request_id for one in found]

    def _forget(self, synthesis: Synthesis) -> None:
        with self._lock:
            if self._entered.get(synthesis.account.request_id) is not synthesis:
                return
            del self._entered[synthesis.account.request_id]
        stream = synthesis.stream
        if stream is not None and stream.claim.given_s and not synthesis.is_resumed:
            self.costs.note(synthesis.utterance.voice, stream.compute_s, stream.claim.given_s)

    def _speaking(self) -> list[Synthesis]:
        return [one for one in self._entered.values() if one.stream is not None and not one.over]

    def _enter(self, synthesis: Synthesis) -> None:
        account, client = synthesis.account, synthesis.asked.client
        if client is not None and not CLIENT.fullmatch(client):
            raise ParameterError(
                "This is no name for a client.",
                field="client",
                value=client[:40],
                allowed="1 to 64 letters, digits, points, colons, dashes and underscores",
            )
        with self._lock:
            account.request_id = self._free_id(account.request_id)
            older = [
                one for one in self._entered.values() if client is not None and one.asked.client == client
            ]
            self._entered[account.request_id] = synthesis
            synthesis.forget = self._forget
        until_s = time.monotonic() + END_S
        for other in older:
            other.stop.set()
        for other in older:
            if time.monotonic() < until_s:
                other.cancel()

    def _free_id(self, asked_id: str) -> str:
        free_id, number = asked_id, 1
        while free_id in self._entered:
            number += 1
            ending = f".{number}"
            free_id = asked_id[: LONGEST_ID - len(ending)] + ending
        return free_id

    def _wait(self, synthesis: Synthesis, gone: Callable[[], bool]) -> Slot:
        account, admission = synthesis.account, self._admission
        left_s = self._settings.first_audio_deadline_s - account.age_s
        try:
            # While new requests are refused, a client should ask elsewhere or later, and not wait here
            return self._slots.take(
                left_s,
                lambda: synthesis.stopped or bool(admission.reasons) or gone(),
                holder=synthesis,
                client=synthesis.caller,
                fits=partial(self._fits, synthesis),
                come_back_s=partial(self._come_back_s, synthesis),
            )
        except ClientLeft:
            admission.check()
            if synthesis.stopped:
                raise Interrupted("This synthesis was stopped while it waited for its turn.") from None
            raise
        finally:
            account.admitted()
