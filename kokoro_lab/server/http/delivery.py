"""The body of a streamed answer: raw audio or server-sent events, until it ends or the listener leaves."""

from __future__ import annotations

import base64
import errno
import json
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from kokoro_lab.containers import Encoder
from kokoro_lab.server.health.figures import Outcome
from kokoro_lab.server.http.errors import code_of, log_failure
from kokoro_lab.server.requests.speech_events import (
    AudioBytes,
    Done,
    Event,
    KeepAlive,
    SpeechEvents,
    timed,
)
from kokoro_lab.speech.chunker import PRIMER_S

log = logging.getLogger(__name__)

FILE_SLICE_BYTES = 65_536
"""Length of a slice of a file. The time limit on sending is for one slice, so a file is sent in slices."""


class StreamBroken(BrokenPipeError):
    """Synthesis failed after the first byte was sent.

    It is a broken pipe for gunicorn, which then closes the connection without the chunk that marks a complete
    body. So the client sees that something is missing.
    """

    def __init__(self) -> None:
        super().__init__(errno.EPIPE, "synthesis failed after the first byte")


def in_slices(whole: bytes, size: int = FILE_SLICE_BYTES) -> Iterator[bytes]:
    """The bytes of `whole`, slice by slice."""
    return (whole[at : at + size] for at in range(0, len(whole), size))


def until_sent(body: Iterable[bytes], sent: Callable[[], None]) -> Iterator[bytes]:
    """Pass the body on; `sent` is called at its end, however it ends."""
    try:
        yield from body
    finally:
        sent()


class RawWriter:
    """Sends only the bytes of the audio; while computing stalls, it sends silence.

    Parameters
    ----------
    encoder : Encoder
        A new encoder. The format's header and a little silence (the primer) are sent before anything is
        computed, so that a player opens its sound device.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def begin(self) -> bytes:
        """The bytes to send before anything is computed."""
        return self._encoder.prime(PRIMER_S)

    def write(self, event: Event) -> bytes:
        """The bytes of an event; may be empty."""
        if isinstance(event, AudioBytes):
            return event.data
        return self._encoder.still(PRIMER_S) if isinstance(event, KeepAlive) else b""

    def failed(self, error: BaseException) -> bytes | None:
        """None: raw audio cannot report an error, so the connection is cut."""
        return None


class EventWriter:
    """Server-sent events, as OpenAI streams speech: `speech.audio.delta`, `speech.audio.done`, and an error.

    Each delta has an `id:` (`segment.chunk`) after which a client may resume. A segment's first chunk also
    has the token with which it resumes (see `requests.resume`).

    Parameters
    ----------
    stream_id : str
        Sent in the first line, a comment, which also keeps an impatient proxy from closing the connection.
    describe : callable
        Returns an error in OpenAI's shape.
    """

    def __init__(self, stream_id: str, describe: Callable[[BaseException], dict[str, Any]]) -> None:
        self._stream_id = stream_id
        self._describe = describe

    def begin(self) -> bytes:
        return f": {self._stream_id}\n\n".encode()

    def write(self, event: Event) -> bytes:
        if isinstance(event, AudioBytes):
            fields = {"type": "speech.audio.delta", "audio": base64.b64encode(event.data).decode()}
            if event.token is not None:
                fields["resume"] = event.token
            return _event(fields, f"id: {event.segment_id}.{event.chunk_id}\n")
        if isinstance(event, KeepAlive):
            return b": still computing\n\n"
        if isinstance(event, Done):
            return _event({"type": "speech.audio.done", "usage": event.usage})
        return _event(
            {
                "type": "speech.audio.words",
                "segment_id": event.segment_id,
                **timed(event.timings, event.marks),
            }
        )

    def failed(self, error: BaseException) -> bytes | None:
        return _event(self._describe(error), "event: error\n")


def _event(fields: dict[str, Any], head: str = "") -> bytes:
    # JSON escapes line breaks, so the data is one line
    return f"{head}data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


class ResponseBody(Iterator[bytes]):
    """The body of a streamed answer: events as they come, formatted by its writer.

    The WSGI server iterates it, and calls `close` however it ended. A client that left is noticed when
    bytes cannot be sent; then nothing further is computed.

    Parameters
    ----------
    events : SpeechEvents
        The events of a stream that has begun, so that errors of the request have been found. Its synthesis'
        account notes the first byte, the bytes that the socket took, and the outcome. The connection is cut
        if the answer does not come to its end.
    writer : RawWriter or EventWriter
        Formats the events for the transport.
    """

    def __init__(self, events: SpeechEvents, writer: RawWriter | EventWriter) -> None:
        self._events = events
        self._writer = writer
        self._synthesis = events.synthesis
        self._account = events.synthesis.account
        self._outcome: Outcome | None = None
        self._code: str | None = None
        self._told = False
        self._closed = False
        self._written = self._run()

    def __next__(self) -> bytes:
        self._synthesis.sending = False
        try:
            data = next(self._written)
            self._synthesis.sending = True
            return data
        except StopIteration:
            self.close()  # before the client sees the end: then it may send its next request
            raise

    def close(self) -> None:
        """Stop computing, record in log and figures how it ended, and free the slot."""
        if self._closed:
            return
        self._closed = True
        try:
            self._written.close()
            self._events.close()
        finally:
            outcome = self._outcome or self._account.interrupted() or "cancelled"
            if outcome != "completed" and not self._told:
                # Else gunicorn's main thread waits up to 2 s for the client to close
                self._synthesis.cut()
            self._synthesis.finish(outcome, self._code)

    def _run(self) -> Generator[bytes]:
        head = self._writer.begin()
        if head:
            self._account.first_byte()
        yield head  # even if it is empty: a codec may hold the primer back, but not the headers
        try:
            for event in self._events:
                data = self._writer.write(event)
                if isinstance(event, Done):
                    warn_of_clipping(self._account.request_id, self._events.encoder)
                    self._outcome = "completed"
                if data:
                    self._account.first_byte()
                    yield data
                    self._account.taken()
        except Exception as error:
            last = self._failed(self._account.reason(error))
            if last is None:
                raise StreamBroken from error
            self._told = True
            yield last

    def _failed(self, error: Exception) -> bytes | None:
        self._outcome, self._code = self._account.outcome_of(error), code_of(error)
        if self._outcome == "failed":
            log_failure(error, "failed after the first byte", self._account.request_id)
        return self._writer.failed(error)


def warn_of_clipping(request_id: str, encoder: Encoder) -> None:
    """Log samples that were clipped because they did not fit into 16 bits."""
    if encoder.clipped_samples:
        log.warning("%s: %d samples were clipped to 16 bit", request_id, encoder.clipped_samples)
