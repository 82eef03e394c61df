"""The body of a streamed answer, and what becomes of a listener who leaves."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

from kokoro_lab.server.errors import code_of, log_failure
from kokoro_lab.server.figures import Outcome
from kokoro_lab.server.sessions import Session
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


class Delivery(Iterator[bytes]):
    """The body of a streamed answer: head, then speech, frame by frame as it is computed.

    The WSGI server iterates it, and calls `close` however it ended. A client that left is noticed when a
    piece cannot be sent; then nothing further is computed.

    Parameters
    ----------
    session : Session
        Its stream has begun, so that what is wrong with a request has been found by now. Its account is
        told of the times and of the outcome; its connection is cut if the answer does not come to its end.
    encoder : Encoder
        Fresh. Its head and the primer are sent before anything is computed, so that a player opens its
        device.
    make_way : callable
        Called before each chunk is computed, so that others may go first.
    on_close : callable
        Called once, at the end.
    """

    def __init__(
        self,
        session: Session,
        *,
        encoder: Encoder,
        make_way: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        self._session = session
        self._stream = session.stream
        self._account = session.account
        self._encoder = encoder
        self._make_way = make_way
        self._on_close = on_close
        self._outcome: Outcome | None = None
        self._code: str | None = None
        self._closed = False
        self._pieces = self._run()

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self.close()  # now, and not after the client has seen the end and may have sent its next request
            raise
        except Exception as error:
            self._outcome, self._code = self._account.interrupted() or "failed", code_of(error)
            log_failure(
                error, "failed after the first byte; the connection is cut.", self._account.request_id
            )
            raise StreamBroken from error

    def close(self) -> None:
        """Stop computing, give the slot back, and say in log and figures how it ended."""
        if self._closed:
            return
        self._closed = True
        try:
            self._pieces.close()
            self._stream.close()
            self._encoder.close()
        finally:
            outcome = self._outcome or self._account.interrupted() or "cancelled"
            if outcome != "completed":
                # Or gunicorn's main thread waits up to 2 s for the client to do it
                self._session.cut()
            self._on_close()
            self._account.close(outcome, self._code)

    def _run(self) -> Generator[bytes]:
        head = self._encoder.prime(PRIMER_S)
        if head:
            self._account.first_byte()
        yield head  # even if it is empty: a codec that holds the primer back holds no headers back
        held_s = 0.0
        for chunk in self._stream:
            data = self._encoder.push(chunk.samples)
            held_s += chunk.duration_s
            if data:  # a resampler or a codec keeps the first milliseconds back
                if self._encoder.audible:
                    self._account.chunk(held_s, cached=self._stream.primed)
                    held_s = 0.0
                yield from self._sent(data)
            self._make_way()
        rest = self._encoder.finish()
        if rest:
            if held_s:
                self._account.chunk(held_s, cached=self._stream.primed)
            yield from self._sent(rest)
        warn_of_clipping(self._account.request_id, self._encoder)
        self._account.finished(self._stream.report)
        self._outcome = "completed"

    def _sent(self, data: bytes) -> Iterator[bytes]:
        self._account.first_byte()
        yield data
        self._account.taken()


def warn_of_clipping(request_id: str, encoder: Encoder) -> None:
    """Samples that did not fit into 16 bit are heard: say so."""
    if encoder.clipped_samples:
        log.warning("%s: %d samples were clipped to 16 bit", request_id, encoder.clipped_samples)
