"""Where the requests of a connection end, found while their bytes arrive.

What is valid HTTP is for gunicorn's parser to say: it reads each head once that is whole, and a chunked
body once that is. Here only their ends are looked for, so that nobody waits for bytes: the parser is given
all that it will ever get, and takes the end of it for the end of the connection.
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
"""gunicorn would take 800 kB: 100 fields of 8 kB each."""
MOST_CHUNK_LINE_BYTES = 4_096
MOST_TRAILER_BYTES = 8_192
CHUNKED_OVERHEAD = 2
"""A chunked body may take up so many times the bytes of the longest body: some send a few bytes a chunk."""
FRAGMENT_BYTES = 8_192
"""As a socket would give them: gunicorn copies the rest of a fragment for each chunk in it."""

Stage = Literal["idle", "head", "body"]
"""What is there of the next request: nothing, some of its head, all of its head."""

BodyEnd = Callable[[bytearray], int | None]
"""Where the body ends that begins with these bytes; None while it goes on."""

_BARE_LF = re.compile(rb"(?<!\r)\n")
_CHUNK_LINE = re.compile(rb"([0-9a-fA-F]+)[ \t]*(?:;[^\n]*)?")


class BodyTooLong(ParseException):  # type: ignore[misc]
    """The body is longer than the longest that is taken."""

    def __init__(self, limit: int, length: int | None = None) -> None:
        is_long = "longer" if length is None else f"{length} bytes long"
        allowed = f" than {limit} bytes." if length is None else f". Allowed: up to {limit}."
        super().__init__(f"The request body is {is_long}{allowed}")


class Incoming:
    """The bytes that one connection has received and no request has taken; gunicorn's parser of them, too.

    Parameters
    ----------
    cfg : gunicorn.config.Config
    client : tuple
        The client's address.
    most_body_bytes : int
        A body beyond it is refused: by its length before it is read, if it is chunked while it is read.
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
        """Whether the client holds the body back until it is told to go on."""

    def __len__(self) -> int:
        """Bytes that are held, those of a request that is being served included."""
        return len(self._data) + (0 if self._request is None else len(self._request.unreader))

    @property
    def stage(self) -> Stage:
        if self._request is not None:
            return "body"
        return "head" if self._data else "idle"

    def push(self, data: bytes) -> None:
        """Bytes have arrived."""
        self._data += data

    def whole(self) -> bool:
        """Whether a request is there with all of its body; then `next` gives it.

        Raises
        ------
        gunicorn.http.errors.ParseException
            It will never be one: malformed, or beyond a limit.
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
        """The request that is whole, a chunked body joined: its head says a length, whatever came."""
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
        """True: what the application did not read of a body is not on the socket any more."""
        return True

    def _head_end(self) -> int | None:
        """Where the head ends; None if it goes on."""
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
        """Have gunicorn's parser say what is wrong up to `end`, in its own order of looking at things."""
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
        if len(request.unreader):  # it and we see another end: what follows cannot be trusted
            raise InvalidHeader("the head ends before it should")
        codings = [value for name, value in request.headers if name == "TRANSFER-ENCODING"]
        if any(coding.lower() != "chunked" for coding in codings):
            raise UnsupportedTransferCoding(", ".join(codings))
        self._body_end = self._body_end_of(request)
        self.waits_for_continue = request._expected_100_continue  # gunicorn would say it with the answer
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
    """Follows the lines of chunks without looking at what is in them, and counts their bytes."""

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
            A line is no chunk's. All else that may be wrong is left to gunicorn's parser.
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
        if _BARE_LF.search(data, self._at):  # the end of its line would be waited for in vain
            raise InvalidChunkSize(b"bare LF as line terminator")


class _FixedBytes(Unreader):  # type: ignore[misc]
    """Bytes that are there, and an end behind them."""

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
