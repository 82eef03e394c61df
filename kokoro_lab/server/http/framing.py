"""Finds where the requests of a connection end, while their bytes arrive.

gunicorn's parser decides what is valid HTTP: it reads each head, and each chunked body, once it is complete.
Here only their ends are looked for, so that no thread waits for bytes: the parser gets all bytes at once, and
takes their end for the end of the connection.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.errors import (
    ChunkMissingTerminator,
    InvalidChunkSize,
    InvalidHeader,
    LimitRequestHeaders,
    NoMoreData,
    ParseException,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request
from gunicorn.http.unreader import Unreader

MOST_HEAD_BYTES = 65_536
"""The longest head of a request, in bytes. With gunicorn's own limits it could have 800 kB: 100 fields of 8
kB each."""
MOST_CHUNK_LINE_BYTES = 4_096
MOST_TRAILER_BYTES = 8_192
CHUNKED_OVERHEAD = 2
"""A chunked body may take this multiple of the longest body's bytes, since some clients send a few bytes a
chunk."""
FRAGMENT_BYTES = 8_192
"""Bytes that gunicorn's parser gets at a time, as from a socket. It copies the rest of a fragment for each
chunk in it, so larger fragments would be slow."""

Stage = Literal["idle", "head", "body"]
"""How much of the next request has arrived: `idle`: no byte; `head`: a part of its head; `body`: its whole
head."""

BodyEnd = Callable[[bytearray], int | None]
"""Takes the bytes from the body's beginning on. If the body is complete, it returns where it ends; else
None."""

_BARE_LF = re.compile(rb"(?<!\r)\n")
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]+)[ \t]*(?:;[^\n]*)?")


class BodyTooLong(ParseException):  # type: ignore[misc]
    """The body is longer than allowed."""

    def __init__(self, limit: int, length: int | None = None) -> None:
        is_long = "longer" if length is None else f"{length} bytes long"
        allowed = f" than {limit} bytes." if length is None else f". Allowed: up to {limit}."
        super().__init__(f"The request body is {is_long}{allowed}")


class Incoming:
    """The bytes that a connection has received and no request has taken, with gunicorn's parser for them.

    Parameters
    ----------
    cfg : gunicorn.config.Config
    client : tuple
        The client's address.
    most_body_bytes : int
        A longer body is refused. If the head states the body's length, it is refused before it is read; if
        the body is chunked, while it is read.
    """

    def __init__(self, cfg: Any, client: Any, most_body_bytes: int) -> None:
        self._cfg = cfg
        self._client = client
        self._most_body_bytes = most_body_bytes
        self._data = bytearray()
        self._seen = 0
        self._request: Any = None
        self._body_end: BodyEnd = lambda data: 0
        self._count = 0
        self.waits_for_continue = False
        """Whether the client sends the body only after `100 Continue`."""

    def __len__(self) -> int:
        """The number of bytes that are held, those of a request that is being served included."""
        return len(self._data) + (0 if self._request is None else len(self._request.unreader))

    @property
    def stage(self) -> Stage:
        if self._request is not None:
            return "body"
        return "head" if self._data else "idle"

    def push(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        self._data += data

    def whole(self) -> bool:
        """Whether a request with its whole body has arrived; then `next` returns it.

        Raises
        ------
        gunicorn.http.errors.ParseException
            The bytes can be no request: malformed, or beyond a limit.
        """
        if self._request is None:
            end = self._head_end()
            if end is None:
                return False
            self._begin(bytes(self._data[:end]))
            del self._data[:end]
        end = self._body_end(self._data)
        if end is None:
            return False
        self.waits_for_continue = False
        self._request.unreader.give(bytes(self._data[:end]))
        del self._data[:end]
        return True

    def __next__(self) -> Any:
        """The complete request. A chunked body is joined, and its head then states a length."""
        request, self._request = self._request, None
        if isinstance(request.body.reader, ChunkedReader):
            try:
                body = request.body.read()
            except NoMoreData:
                raise InvalidChunkSize(b"a chunk that does not end") from None
            if len(request.unreader):
                raise InvalidChunkSize(b"bytes behind the last chunk")
            request.headers = [field for field in request.headers if field[0] != "TRANSFER-ENCODING"]
            request.headers.append(("CONTENT-LENGTH", str(len(body))))
            request.body = Body(LengthReader(_FixedBytes(body), len(body)))
        return request

    def finish_body(self, deadline: float | None = None) -> bool:
        """Always True: no rest of a body is left on the socket."""
        return True

    def _head_end(self) -> int | None:
        """Where the head ends; None if its end has not arrived."""
        data, seen = self._data, self._seen
        end = data.find(b"\r\n\r\n", max(0, seen - 3))
        end = -1 if end < 0 else end + 4
        self._seen = len(data)
        bare = _BARE_LF.search(data, seen, end if end >= 0 else len(data))
        if bare is not None:
            self._refuse(bare.end(), InvalidHeader("bare LF as line terminator"))
        if max(end, len(data) if end < 0 else 0) > MOST_HEAD_BYTES:
            self._refuse(MOST_HEAD_BYTES, LimitRequestHeaders(f"the head is over {MOST_HEAD_BYTES} bytes"))
        if end >= 0:
            self._seen = 0
            return end
        line_limit = self._cfg.limit_request_line + len(b"\r\n\r\n")
        if len(data) > line_limit and b"\r\n" not in data[2:line_limit]:
            self._refuse(len(data), LimitRequestHeaders("the request line is too long"))
        return None

    def _refuse(self, end: int, otherwise: ParseException) -> None:
        """Raise the error that gunicorn's parser finds up to `end`, or else `otherwise`."""
        with suppress(NoMoreData):
            self._judged(bytes(self._data[:end]))
        raise otherwise

    def _judged(self, head: bytes) -> Any:
        return Request(self._cfg, _FixedBytes(head), self._client, self._count + 1)

    def _begin(self, head: bytes) -> None:
        try:
            request = self._judged(head)
        except NoMoreData:
            raise InvalidHeader("the head does not end where it should") from None
        if len(request.unreader):  # the parser sees another end than we do: what follows cannot be trusted
            raise InvalidHeader("the head ends before it should")
        codings = [value for name, value in request.headers if name == "TRANSFER-ENCODING"]
        if any(coding.lower() != "chunked" for coding in codings):
            raise UnsupportedTransferCoding(", ".join(codings))
        self._body_end = self._body_end_of(request)
        self.waits_for_continue = request._expected_100_continue  # gunicorn would report it with the answer
        request._expected_100_continue = False
        self._request = request
        self._count += 1

    def _body_end_of(self, request: Any) -> BodyEnd:
        reader = request.body.reader
        if isinstance(reader, ChunkedReader):
            return _Chunks(self._most_body_bytes).end
        length: int = reader.length
        if length > self._most_body_bytes:
            raise BodyTooLong(self._most_body_bytes, length)
        return lambda data: length if len(data) >= length else None


class _Chunks:
    """Finds where a body in HTTP's chunked encoding ends, by the lines that state the length of each chunk,
    and counts the bytes of the body."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._counted_bytes = 0
        self._at = 0
        self._last = False

    def end(self, data: bytearray) -> int | None:
        """Where the body ends.

        Raises
        ------
        BodyTooLong
        InvalidChunkSize, ChunkMissingTerminator
            A line is no chunk line. All other errors are left to gunicorn's parser.
        """
        while not self._last:
            if len(data) < self._at:
                return None
            if self._at and data[self._at - 2 : self._at] != b"\r\n":
                raise ChunkMissingTerminator(bytes(data[self._at - 2 : self._at]))
            line_end = data.find(b"\r\n", self._at, self._at + MOST_CHUNK_LINE_BYTES)
            if line_end < 0:
                self._line_goes_on(data)
                return None
            line = _CHUNK_LINE.fullmatch(data, self._at, line_end)
            if line is None:
                raise InvalidChunkSize(bytes(data[self._at : line_end][:40]))
            size = int(line[1], 16)
            self._counted_bytes += size
            self._last = size == 0
            self._at = line_end + 2 if self._last else line_end + 2 + size + 2
            room = CHUNKED_OVERHEAD * self._most_bytes + MOST_CHUNK_LINE_BYTES
            if self._counted_bytes > self._most_bytes or self._at > room:
                raise BodyTooLong(self._most_bytes)
        if data[self._at : self._at + 2] == b"\r\n":
            return self._at + 2
        trailers_end = data.find(b"\r\n\r\n", self._at, self._at + MOST_TRAILER_BYTES)
        if trailers_end >= 0:
            return trailers_end + 4
        if len(data) - self._at >= MOST_TRAILER_BYTES:
            raise LimitRequestHeaders(f"the trailers are over {MOST_TRAILER_BYTES} bytes")
        return None

    def _line_goes_on(self, data: bytearray) -> None:
        if len(data) - self._at >= MOST_CHUNK_LINE_BYTES:
            raise InvalidChunkSize(b"a line that is too long")
        if _BARE_LF.search(data, self._at):  # its line would never end
            raise InvalidChunkSize(b"bare LF as line terminator")


class _FixedBytes(Unreader):  # type: ignore[misc]
    """A reader of given bytes, which ends after them."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._fragments: deque[bytes] = deque()
        self.give(data)

    def __len__(self) -> int:
        return int(self.buf.getbuffer().nbytes) + sum(map(len, self._fragments))

    def give(self, data: bytes) -> None:
        self._fragments.extend(data[at : at + FRAGMENT_BYTES] for at in range(0, len(data), FRAGMENT_BYTES))

    def chunk(self, size_hint: int | None = None) -> bytes:
        return self._fragments.popleft() if self._fragments else b""
