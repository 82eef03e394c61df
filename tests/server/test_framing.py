"""Where requests end: however their bytes are cut, and whatever they try."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from gunicorn.config import Config
from gunicorn.http.errors import ParseException
from gunicorn.http.parser import RequestParser
from hypothesis import given, settings
from hypothesis import strategies as st

from kokoro_lab.server.http.errors import refusal
from kokoro_lab.server.http.framing import (
    CHUNKED_OVERHEAD,
    MOST_CHUNK_LINE_BYTES,
    MOST_HEAD_BYTES,
    MOST_TRAILER_BYTES,
    BodyTooLong,
    Incoming,
)

CLIENT = ("127.0.0.1", 1)
MOST_BODY_BYTES = 400
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
HELLO = b'{"input": "Hello."}'


def fresh() -> Incoming:
    return Incoming(Config(), CLIENT, MOST_BODY_BYTES)


def read(fragments: Sequence[bytes], incoming: Incoming | None = None) -> tuple[list[tuple[str, bytes]], str]:
    """Methods and bodies of the requests in `fragments`; and what came of the rest: a stage, or a status."""
    incoming = incoming or fresh()
    found = []
    try:
        for fragment in fragments:
            incoming.push(fragment)
            while incoming.whole():
                request = next(incoming)
                found.append((request.method, request.body.read()))
                if request.should_close():
                    return found, "closed"
    except ParseException as error:
        return found, refusal(error).split()[1].decode()
    return found, incoming.stage


def by_gunicorn(data: bytes) -> tuple[list[tuple[str, bytes]], bool]:
    """The same by gunicorn's parser alone, and whether it found all in order."""
    found = []
    try:
        for request in RequestParser(Config(), [data], CLIENT):
            found.append((request.method, request.body.read()))  # noqa: PERF401
    except (ParseException, OSError):
        return found, False
    return found, True


def bytewise(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def with_length(body: bytes) -> bytes:
    return POST + b"Content-Length: %d\r\n\r\n" % len(body) + body


# ------------------------------------------------------------------------------------- what is whole


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (GET, b""),
        (b"\r\n" + GET, b""),
        (b"GET / HTTP/1.0\r\n\r\n", b""),
        (with_length(HELLO), HELLO),
        (with_length(b""), b""),
        (CHUNKED + b"13\r\n" + HELLO + b"\r\n0\r\n\r\n", HELLO),
        (CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in HELLO) + b"0\r\n\r\n", HELLO),
        (CHUNKED + b'013 ;name="a;b"\r\n' + HELLO + b"\r\n000;last\r\n\r\n", HELLO),
        (CHUNKED + b"5\r\n\r\n0\r\n\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n", b"\r\n0\r\n"),
        (CHUNKED + b"0\r\n\r\n", b""),
    ],
)
@pytest.mark.parametrize("cut", [bytewise, lambda data: [data]])
def test_a_request_is_whole_with_its_last_byte_and_not_before(data: bytes, body: bytes, cut: object) -> None:
    fragments = cut(data)  # type: ignore[operator]
    method = data.split()[0].decode()
    found, rest = read(fragments)
    assert found == [(method, body)]
    assert rest == ("closed" if b"HTTP/1.0" in data else "idle")
    found, rest = read(bytewise(data[:-1]))
    assert found == []
    assert rest in ("head", "body")


def test_requests_one_behind_the_other_are_told_apart() -> None:
    several = with_length(HELLO) + GET + CHUNKED + b"2\r\nab\r\n0\r\n\r\n" + GET
    expected = [("POST", HELLO), ("GET", b""), ("POST", b"ab"), ("GET", b"")]
    assert read([several]) == (expected, "idle")
    assert read(bytewise(several)) == (expected, "idle")
    assert by_gunicorn(several) == (expected, True)


def test_a_chunked_body_reaches_the_application_with_its_length() -> None:
    incoming = fresh()
    incoming.push(CHUNKED + b"13\r\n" + HELLO + b"\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert incoming.whole()
    headers = dict(next(incoming).headers)
    assert headers["CONTENT-LENGTH"] == "19"
    assert "TRANSFER-ENCODING" not in headers


@pytest.mark.parametrize("head", [CHUNKED, POST + b"Content-Length: 19\r\n\r\n"])
def test_who_expects_to_be_told_to_go_on_is(head: bytes) -> None:
    asked = head.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
    body = HELLO if head is not CHUNKED else b"13\r\n" + HELLO + b"\r\n0\r\n\r\n"
    incoming = fresh()
    incoming.push(asked)
    assert not incoming.whole()
    assert incoming.waits_for_continue
    incoming.push(body)
    assert incoming.whole()
    assert not incoming.waits_for_continue
    assert not next(incoming)._expected_100_continue, "gunicorn would say it again"
    incoming = fresh()
    incoming.push(asked.replace(b"HTTP/1.1", b"HTTP/1.0") if head is not CHUNKED else head)
    incoming.whole()
    assert not incoming.waits_for_continue


def test_what_is_held_is_counted() -> None:
    incoming = fresh()
    assert len(incoming) == 0
    incoming.push(with_length(HELLO)[:-1])
    incoming.whole()
    assert len(incoming) == len(HELLO) - 1
    incoming.push(HELLO[-1:] + GET[:5])
    assert incoming.whole()
    assert len(incoming) == len(HELLO) + 5
    next(incoming)
    assert len(incoming) == 5


# ------------------------------------------------------------------------------------ what is refused

HOSTILE = {
    "bare LF behind the request line": (b"GET / HTTP/1.1\nHost: a\n\n", "400"),
    "bare LF in a head": (b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "400"),
    "bare LF at the end of a head": (b"GET / HTTP/1.1\r\nHost: a\n\n", "400"),
    "bare CR in a head": (b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "400"),
    "NUL in a head": (b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", "400"),
    "folded field": (b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "400"),
    "space before the colon": (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
    "no version": (b"GET /\r\n\r\n", "400"),
    "no such version": (b"GET / HTTP/3.0\r\n\r\n", "400"),
    "small letters": (b"get / HTTP/1.1\r\n\r\n", "400"),
    "two empty lines": (b"\r\n\r\n" + GET, "400"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", "400"),
    "another expectation": (POST + b"Expect: tea\r\n\r\n", "417"),
    "two lengths": (POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde", "400"),
    "two lengths in one": (POST + b"Content-Length: 5, 5\r\n\r\nabcde", "400"),
    "a length below zero": (POST + b"Content-Length: -1\r\n\r\n", "400"),
    "a length with a sign": (POST + b"Content-Length: +5\r\n\r\nabcde", "400"),
    "a length that is no number": (POST + b"Content-Length: 1e3\r\n\r\n", "400"),
    "two Hosts": (POST + b"Host: b\r\n\r\n", "400"),
    "length and chunks": (
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    "chunks and length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "400",
    ),
    "chunked twice": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400"),
    "chunked in two fields": (
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "400",
    ),
    "chunked by another name": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"),
    "packed and chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501"),
    "packed alone": (POST + b"Transfer-Encoding: gzip\r\n\r\n", "400"),
    "chunked of an old version": (CHUNKED.replace(b"1.1", b"1.0") + b"0\r\n\r\n", "400"),
    "a chunk size of another notation": (CHUNKED + b"0x5\r\nabcde\r\n0\r\n\r\n", "400"),
    "a chunk size with a sign": (CHUNKED + b"+5\r\nabcde\r\n0\r\n\r\n", "400"),
    "a chunk size behind a space": (CHUNKED + b" 5\r\nabcde\r\n0\r\n\r\n", "400"),
    "a chunk size before a space": (CHUNKED + b"5 \r\nabcde\r\n0\r\n\r\n", "400"),
    "no chunk size": (CHUNKED + b";a=b\r\n\r\n0\r\n\r\n", "400"),
    "a chunk's line that ends with a bare LF": (CHUNKED + b"5\nabcde\r\n0\r\n\r\n", "400"),
    "a bare LF in an extension": (CHUNKED + b"5;a\nb\r\nabcde\r\n0\r\n\r\n", "400"),
    "a bare CR in an extension": (CHUNKED + b"5;a\rb\r\nabcde\r\n0\r\n\r\n", "400"),
    "an extension that is none": (CHUNKED + b"5;=\r\nabcde\r\n0\r\n\r\n", "400"),
    "a chunk longer than its size": (CHUNKED + b"4\r\nabcde\r\n0\r\n\r\n", "400"),
    "a chunk that does not end with its size": (CHUNKED + b"5\r\nabcdefgh", "400"),
    "a chunk shorter than its size": (CHUNKED + b"6\r\nabcde\r\n0\r\n\r\n", "400"),
    "a huge chunk": (CHUNKED + b"f" * 40 + b"\r\nabc", "413"),
    "a chunk over the limit": (CHUNKED + b"191\r\n", "413"),
    "chunks that add up": (CHUNKED + (b"20\r\n" + b" " * 32 + b"\r\n") * 13, "413"),
    "chunks of more lines than content": (
        CHUNKED + (b"1;" + b"e" * 90 + b"\r\n \r\n") * (MOST_BODY_BYTES // CHUNKED_OVERHEAD),
        "413",
    ),
    "a chunk's line without end": (CHUNKED + b"1;" + b"e" * MOST_CHUNK_LINE_BYTES, "400"),
    "a trailer that would change the head": (CHUNKED + b"0\r\nContent-Length: 5\r\n\r\n", "400"),
    "a trailer that is none": (CHUNKED + b"0\r\nnonsense\r\n\r\n", "400"),
    "a bare LF in a trailer": (CHUNKED + b"0\r\nA: b\nC: d\r\n\r\n", "400"),
    "trailers without end": (CHUNKED + b"0\r\n" + b"A: b\r\n" * MOST_TRAILER_BYTES, "431"),
    "a body over the limit": (POST + b"Content-Length: 401\r\n\r\n", "413"),
    "a body of more digits than a number has": (
        POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        "400",
    ),
    "a line without end": (b"GET /" + b"a" * 9000, "414"),
    "a line that is too long": (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\n\r\n", "414"),
    "a field that is too long": (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", "431"),
    "a field without end": (b"GET / HTTP/1.1\r\nX: " + b"a" * MOST_HEAD_BYTES, "431"),
    "too many fields": (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", "431"),
    "a head that is too long": (
        b"GET / HTTP/1.1\r\n" + (b"X: " + b"a" * 8000 + b"\r\n") * 9 + b"\r\n",
        "431",
    ),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_hostile_is_refused_however_it_is_cut(what: str) -> None:
    data, status = HOSTILE[what]
    assert read([data]) == ([], status)
    assert read(bytewise(data)) == ([], status)
    half = len(data) // 2
    assert read([data[:half], data[half:]]) == ([], status)
    assert read([GET + data]) == ([("GET", b"")], status)


@pytest.mark.parametrize("what", [name for name, (_, status) in HOSTILE.items() if status == "400"])
def test_we_are_as_strict_as_gunicorn_and_it_as_we(what: str) -> None:
    data, _ = HOSTILE[what]
    found, sound = by_gunicorn(data)
    assert (found, sound) == ([], False)


def test_a_length_over_the_limit_is_refused_before_a_byte_of_the_body() -> None:
    incoming = fresh()
    incoming.push(POST + b"Expect: 100-continue\r\nContent-Length: 401\r\n\r\n")
    with pytest.raises(BodyTooLong, match=r"401 bytes.*400"):
        incoming.whole()
    assert not incoming.waits_for_continue


# ---------------------------------------------------------------------------------- how it is cut

PARTS = st.sampled_from(
    [
        *(
            GET,
            CHUNKED,
            with_length(HELLO),
            POST,
            b"\r\n",
            b"\r",
            b"\n",
            b"\r\n\r\n",
            b"0\r\n\r\n",
            b"a: b\r\n",
        ),
        *(b"5\r\nabcde\r\n", b"5;x=y\r\nabcde\r\n", b"ff\r\n", b"Content-Length: 3\r\n", b"abc", b"0\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b" ", b"\0", b";", b'"'),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=12).map(b"".join), st.data())
def test_how_bytes_are_cut_changes_nothing(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.sets(st.integers(0, len(data)), max_size=20)))
    fragments = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert read([fragment for fragment in fragments if fragment]) == read([data])


@settings(max_examples=150, deadline=None)
@given(st.lists(PARTS, max_size=12).map(b"".join))
def test_no_request_is_seen_that_gunicorn_does_not_see(data: bytes) -> None:
    """And none is passed over, unless a limit of ours is meant to."""
    ours, rest = read([data])
    theirs, _ = by_gunicorn(data)
    assert ours == theirs[: len(ours)]
    assert len(ours) == len(theirs) or rest not in ("idle", "head", "body")
