"""What the log says of a request, and how lateness is counted."""

from __future__ import annotations

import gc
import json
import logging
import random
from typing import Any

import pytest

from kokoro_lab.errors import DeadlineExceeded, Interrupted
from kokoro_lab.playback.buffering import STABLE
from kokoro_lab.server.health.figures import ServerFigures
from kokoro_lab.server.health.logs import JsonLines, PlainLines, with_fields
from kokoro_lab.server.health.objectives import ServedRequest
from kokoro_lab.server.requests import account as account_module
from kokoro_lab.server.requests.account import Account, usage

TEXT = "The secret is xyzzy."


class Clock:
    """Stands in for `time` where accounts read it."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def perf_counter(self) -> float:
        return self.now_s

    process_time = perf_counter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(account_module, "time", clock)
    return clock


def record(message: str, **fields: Any) -> logging.LogRecord:
    return logging.getLogger("kokoro_lab").makeRecord(
        "kokoro_lab", logging.INFO, __file__, 1, message, (), None, extra=with_fields(fields)
    )


def test_chunks_that_come_late_are_underruns_and_gaps(clock: Clock) -> None:
    figures, served = ServerFigures(), []
    account = Account("a", figures, served.append)
    account.streams(STABLE)
    for at_s in (100.2, 100.2, 100.25, 100.9, 100.9):  # 50 ms each, 100 ms held back: the fourth is late
        clock.now_s = at_s
        account.chunk(0.050)
        account.taken()
    account.close("completed")
    summary = figures.summary()
    assert account.underruns == summary["underruns"] == 1
    assert summary["streams_with_underruns"] == 1
    assert summary["chunk_gap_s"]["p95"] == pytest.approx(0.6)
    assert summary["ttfa_s"]["p50"] == pytest.approx(0.2)
    assert served[0].underruns == 1
    assert served[0].needed_s == pytest.approx(0.55)


def test_what_is_needed_is_counted_by_when_chunks_were_made(clock: Clock) -> None:
    """The first chunk is held back by 0.3 s: no underrun, but without that there would have been one."""
    served: list[Any] = []
    account = Account("a", ServerFigures(), served.append)
    account.streams(STABLE)
    account.holds_back(0.3)
    clock.now_s = 100.3
    for made_s in (100.0, 100.25, 100.3):
        account.chunk(0.050, made_s=made_s)
        account.taken()
    account.close("completed")
    assert account.asked["held_back_ms"] == 300
    assert served[0].underruns == 0
    assert served[0].needed_s == pytest.approx(0.2)
    assert served[0].held_back_s == 0.3


def test_the_time_in_which_a_client_takes_nothing_is_its_own(clock: Clock) -> None:
    account = Account("a", ServerFigures())
    account.streams(STABLE)
    account.chunk(0.050)
    clock.now_s += 9  # the socket was full
    account.taken()
    account.chunk(0.050)
    assert account.underruns == 0


def spoken_late(clock: Clock, pauses: int, wait_s: float) -> ServedRequest:
    """What a live text is counted as, of which each second of speech takes 1.5 s. Its writer pauses for 2 s
    every 40 chunks; after a pause, the next chunk is ready `wait_s` after its text came."""
    served: list[ServedRequest] = []
    account = Account("a", ServerFigures(), served.append)
    account.streams(STABLE)
    text_came_s = None
    for _ in range(pauses + 1):
        for _ in range(40):
            account.chunk(0.050, text_came_s=text_came_s)
            account.taken()
            clock.now_s += 0.075
        text_came_s = clock.now_s + 2
        clock.now_s = text_came_s + wait_s
    account.close("completed")
    assert account.chunks == 40 * (pauses + 1)
    return served[0]


@pytest.mark.parametrize("wait_s", [0.0, 0.04, 0.4])
def test_a_writer_who_pauses_while_speech_is_late_does_not_end_it(clock: Clock, wait_s: float) -> None:
    assert spoken_late(clock, pauses=1, wait_s=wait_s).underruns > 40, "each chunk but the first ones"


def test_the_lateness_before_a_pause_of_the_writer_does_not_count_after_it(clock: Clock) -> None:
    for pauses in (0, 1, 5):
        assert spoken_late(clock, pauses, wait_s=0.0).needed_s == pytest.approx(39 * 0.025)
    assert spoken_late(clock, 5, wait_s=0.1).needed_s == pytest.approx(39 * 0.025 + 0.1)


def test_times_that_are_rounded_do_not_end_a_stream(clock: Clock) -> None:
    """A client takes each chunk after some minutes, and the next chunk comes at that moment."""
    chance = random.Random(5)
    clock.now_s = 12345.678
    account = Account("a", ServerFigures())
    account.streams(STABLE)
    for _ in range(1000):
        account.chunk(0.050)
        clock.now_s += 1000 * chance.random()
        account.taken()
    assert account.chunks == 1000


def test_a_late_listener_waits_for_the_writer_once_all_is_heard(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """1 s late, the listener has heard all only at 102 s, and in time the player would have held back 0.1 s
    of it."""
    for text_came_s, starved_s in ((101.6, 0.0), (103.0, 1.1)):
        clock.now_s = 100.0
        account = Account("a", ServerFigures())
        account.streams(STABLE)
        for at_s in (100.0, *[101.0] * 20):
            clock.now_s = at_s
            account.chunk(0.050)
            account.taken()
        clock.now_s = text_came_s + 0.09
        account.chunk(0.050, text_came_s=text_came_s)
        assert account.underruns == 1, "the second chunk"
        with caplog.at_level(logging.INFO, "kokoro_lab"):
            account.close("completed")
        assert json.loads(JsonLines().format(caplog.records[-1]))["starved_s"] == pytest.approx(starved_s)


def test_first_audio_from_the_cache_is_no_ttfa(clock: Clock) -> None:
    figures, served = ServerFigures(), []
    account = Account("a", figures, served.append)
    account.streams(STABLE)
    account.chunk(0.050, cached=True)
    account.close("completed")
    assert figures.summary()["ttfa_s"]["count"] == 0
    assert served[0].needed_s is None, "it says nothing of how fast this machine computes a first sound"


@pytest.mark.parametrize("ephemeral", [False, True])
def test_the_line_of_a_request_holds_no_text_and_when_ephemeral_no_hash(
    caplog: pytest.LogCaptureFixture, ephemeral: bool
) -> None:
    account = Account("req-1", ServerFigures())
    account.asks(TEXT, ephemeral=ephemeral, format="wav", streamed=True)
    account.streams(STABLE)
    with caplog.at_level(logging.INFO, "kokoro_lab"):
        account.close("cancelled")
        account.close("completed")
    (line,) = [JsonLines().format(r) for r in caplog.records]
    entry = json.loads(line)
    assert "xyzzy" not in line
    assert entry["event"] == "request"
    assert (entry["request_id"], entry["outcome"]) == ("req-1", "cancelled")
    assert (entry["characters"], entry["chunk_ms"], entry["pre_buffer_ms"]) == (len(TEXT), 50, 100)
    assert (entry["sha256"] is None) is ephemeral
    assert {"ttfa_s", "underruns", "cpu_s", "gc_s", "shared", "queue_s", "level", "at"} <= set(entry)


@pytest.mark.parametrize(
    ("reason", "outcome"), [(DeadlineExceeded("too long"), "expired"), (Interrupted("stopped"), "cancelled")]
)
def test_why_a_request_was_stopped_is_its_outcome(reason: Any, outcome: str) -> None:
    account = Account("a", ServerFigures())
    assert account.interrupted() is None
    account.interruption = reason
    assert account.interrupted() == outcome


def test_every_account_is_handed_on_once() -> None:
    served: list[ServedRequest] = []
    account = Account("a", ServerFigures(), served.append)
    account.close("invalid", "invalid_text")
    account.close("failed")
    assert served == [ServedRequest("invalid")]


def test_an_exception_is_logged_without_its_message() -> None:
    try:
        raise ValueError(TEXT)
    except ValueError as error:
        entry = record("It failed.")
        entry.exc_info = (type(error), error, error.__traceback__)
    for formatter in (JsonLines(), PlainLines()):
        line = formatter.format(entry)
        assert "xyzzy" not in line
        assert "ValueError" in line


def test_a_json_line_is_one_line_that_any_reader_can_read() -> None:
    line = JsonLines().format(record("Two\nlines", rtf=float("nan"), path=object))
    assert "\n" not in line
    assert json.loads(line)["rtf"] is None


def test_plain_lines_name_the_fields() -> None:
    assert PlainLines().format(record("req-1 completed", rtf=0.2)).endswith("req-1 completed rtf=0.2")


def test_garbage_collections_are_timed() -> None:
    before = usage()
    gc.collect()
    cpu_s, gc_s = usage()
    assert gc_s > before[1]
    assert cpu_s > before[0]
