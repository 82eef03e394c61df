"""The body of a streamed answer, and what becomes of a listener who leaves."""

from __future__ import annotations

import errno
import logging
import socket
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from kokoro_lab.datatypes import SynthesisReport
from kokoro_lab.errors import Interrupted
from kokoro_lab.server.errors import log_failure
from kokoro_lab.server.figures import Figures, Outcome
from kokoro_lab.server.live import Live
from kokoro_lab.server.speech_events import Done, Event, Frame, SpeechEvents, Stalled
from kokoro_lab.streaming import PRIMER_S

if TYPE_CHECKING:
    from kokoro_lab.containers import Encoder

log = logging.getLogger(__name__)

FILE_PIECE_BYTES = 65_536
"""A file is handed to the socket in pieces, because the time limit on sending is for one piece."""


class StreamBroken(BrokenPipeError):
    """Synthesis failed after the first byte was sent.

    A broken pipe, so that gunicorn closes the connection and leaves out the chunk that would mark the
    body as complete: then the client sees that something is missing.
    """

    def __init__(self) -> None:
        super().__init__(errno.EPIPE, "synthesis failed after the first byte")


def in_pieces(whole: bytes) -> Iterator[bytes]:
    """`whole`, a piece at a time."""
    return (whole[at : at + FILE_PIECE_BYTES] for at in range(0, len(whole), FILE_PIECE_BYTES))


class Writer(Protocol):
    """How the events of a stream become the body of an answer."""

    def begin(self) -> bytes:
        """Sent before anything is computed."""

    def write(self, event: Event) -> bytes:
        """The bytes of an event, perhaps none."""

    def failed(self, error: BaseException) -> bytes | None:
        """How the client is told of an error; None if it can only be cut off."""


class RawWriter:
    """The bytes of the audio themselves. While computing stalls, silence.

    Parameters
    ----------
    encoder : Encoder
        Fresh. Its head and the primer are sent before anything is computed, so that a player opens its
        device.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def begin(self) -> bytes:
        return self._encoder.prime(PRIMER_S)

    def write(self, event: Event) -> bytes:
        if isinstance(event, Frame):
            return event.data
        return self._encoder.still(PRIMER_S) if isinstance(event, Stalled) else b""

    def failed(self, error: BaseException) -> bytes | None:
        return None


class Delivery(Iterator[bytes]):
    """The body of a streamed answer: events as they come, in the words of its writer.

    The WSGI server iterates it, and calls `close` however it ended. A client that left is noticed when a
    piece cannot be sent; then nothing further is computed.

    Parameters
    ----------
    events : SpeechEvents
        Of a stream that has begun, so that what is wrong with a request has been found by now.
    writer : Writer
        For the transport.
    encoder : Encoder
        For the log: what it clipped.
    figures : Figures
        Told of the times and of the outcome.
    accepted_s : float
        When the request was accepted, by `time.perf_counter`.
    request_id : str
        For the log.
    live : Live
        Is told when a piece is handed over to be sent. Its connection is cut if the answer does not come to
        its end.
    on_close : callable
        Called once, at the end.
    """

    def __init__(
        self,
        events: SpeechEvents,
        *,
        writer: Writer,
        encoder: Encoder,
        figures: Figures,
        accepted_s: float,
        request_id: str,
        live: Live,
        on_close: Callable[[], None],
    ) -> None:
        self._events = events
        self._writer = writer
        self._encoder = encoder
        self._figures = figures
        self._accepted_s = accepted_s
        self._request_id = request_id
        self._live = live
        self._on_close = on_close
        self._outcome: Outcome | None = None
        self._told = False
        self._closed = False
        self._pieces = self._run()

    def __next__(self) -> bytes:
        self._live.sending = False
        try:
            piece = next(self._pieces)
            self._live.sending = True
            return piece
        except StopIteration:
            self.close()  # now, and not after the client has seen the end and may have sent its next request
            raise

    def close(self) -> None:
        """Stop computing, give the slot back, and say in log and figures how it ended."""
        if self._closed:
            return
        self._closed = True
        try:
            self._pieces.close()
            self._events.close()
        finally:
            if self._outcome is None:
                self._outcome = "cancelled"
                log.info("%s left by the client", self._request_id)
            if self._outcome != "completed" and not self._told:
                self._cut()
            self._figures.count(self._outcome)
            self._on_close()

    def _run(self) -> Generator[bytes]:
        head = self._writer.begin()
        sent = bool(head)
        if sent:
            self._figures.first_byte(time.perf_counter() - self._accepted_s)
        yield head  # a codec that holds the primer back holds no headers back
        try:
            for event in self._events:
                data = self._writer.write(event)
                if data and not sent:
                    sent = True
                    self._figures.first_byte(time.perf_counter() - self._accepted_s)
                if isinstance(event, Done):
                    log_report(self._request_id, event.report, self._events.ttfa_s or 0.0, self._encoder)
                    self._outcome = "completed"
                if data:
                    yield data
        except Exception as error:
            last = self._failed(error)
            if last is None:
                raise StreamBroken from error
            self._told = True
            yield last

    def _failed(self, error: Exception) -> bytes | None:
        if isinstance(error, Interrupted):
            self._outcome = "cancelled"
            log.info("%s was stopped", self._request_id)
        else:
            self._outcome = "failed"
            log_failure(error, "failed after the first byte.", self._request_id)
        return self._writer.failed(error)

    def _cut(self) -> None:
        """Shut the connection down, or gunicorn's main thread waits up to 2 s for the client to do it."""
        if self._live.connection is not None:
            with suppress(OSError):  # the client was quicker
                self._live.connection.shutdown(socket.SHUT_RDWR)


def log_report(request_id: str, report: SynthesisReport, ttfa_s: float, encoder: Encoder) -> None:
    """One line for a synthesis that came to its end."""
    log.info(
        "%s spoken: %.2f s of audio, TTFA %.3f s, RTF %.3f, %d segments, %d fallbacks",
        request_id,
        report.audio_s,
        ttfa_s,
        report.rtf,
        report.segments,
        len(report.fallbacks),
    )
    if encoder.clipped_samples:
        log.warning("%s: %d samples were clipped to 16 bit", request_id, encoder.clipped_samples)
