"""A G2P that raises or stalls holds up nobody, and what read instead is said."""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any

import pytest

from kokoro_lab.datatypes import Fallback, Word
from kokoro_lab.g2p.english import EnglishG2P
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.guarded import DEADLINE_S, MAX_SLOW, MAX_STALLED, GuardedG2P, _Worker
from kokoro_lab.g2p.protocol import FixedReading, OnFallback
from kokoro_lab.g2p.shared_lock import SharedLock
from kokoro_lab.text.aligned import AlignedText

SENTENCE = AlignedText.of("one two")
WORDS = ["blorful", "tame", "skizzle", "live", "yomper", "read", "frabjous", "wound", "zindle", "lead"]


class Scripted:
    """Says who read; waits or raises if it is told to."""

    def __init__(self, name: str, obstacle: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.obstacle = obstacle

    def __call__(
        self, sentence: AlignedText, on_fallback: OnFallback, given: Sequence[FixedReading] = ()
    ) -> list[Word]:
        self.obstacle()
        return [Word(sentence.text, *sentence.span(0, len(sentence)), "a", "en-us", self.name)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who stalls is replaced soon."""
    monkeypatch.setattr("kokoro_lab.g2p.guarded.PATIENCE_S", 0.3)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is."""
    monkeypatch.setattr("kokoro_lab.g2p.guarded.PATIENCE_S", 60)


def guarded(load: Callable[[], Scripted]) -> GuardedG2P:
    return GuardedG2P(load, Scripted("below"), name="misaki", below_name="espeak")


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Whoever stalls in a test waits for this, and is let go after it."""
    event = threading.Event()
    yield event
    event.set()


def test_what_answers_is_heard() -> None:
    read = guarded(lambda: Scripted("first")).read(SENTENCE)
    assert [word.source for word in read.words] == ["first"]
    assert read.fallbacks == []
    assert read.lasting


def test_what_raises_is_read_by_the_next_level_and_said() -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    read = guarded(lambda: Scripted("first", fail)).read(SENTENCE)
    assert [word.source for word in read.words] == ["below"]
    assert [(f.stage, f.start, f.end) for f in read.fallbacks] == [("g2p", 0, 7)]
    assert "misaki raised RuntimeError: read by espeak" in read.fallbacks[0].reason
    assert not read.lasting


@pytest.mark.usefixtures("impatient")
def test_what_stalls_is_read_by_the_next_level_soon_and_replaced(gate: threading.Event) -> None:
    made: list[Scripted] = []

    def load() -> Scripted:
        made.append(Scripted("fresh") if made else Scripted("stuck", lambda: gate.wait() and None))
        return made[-1]

    g2p = guarded(load)
    started = time.perf_counter()
    read = g2p.read(SENTENCE)
    took_s = time.perf_counter() - started
    assert [word.source for word in read.words] == ["below"]
    assert "did not answer within 50 ms" in read.fallbacks[0].reason
    assert DEADLINE_S <= took_s < 10  # this machine may be busy; it is not waited for, in any case
    until = time.perf_counter() + 10
    while (read := g2p.read(SENTENCE)).words[0].source != "fresh" and time.perf_counter() < until:
        time.sleep(0.01)
    assert (read.words[0].source, read.lasting) == ("fresh", True)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.usefixtures("patient")
def test_a_long_sentence_has_longer() -> None:
    g2p = guarded(lambda: Scripted("slow", lambda: compute(0.1)))
    assert g2p.read(SENTENCE).words[0].source == "below"
    g2p = guarded(lambda: Scripted("slow", lambda: compute(0.1)))
    assert g2p.read(AlignedText.of("a" * 800)).words[0].source == "slow"


class Spinning:
    """Computes without end where the text is `slow`, until the gate is open."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate
        self.spinning = 0

    def __call__(
        self, sentence: AlignedText, on_fallback: OnFallback, given: Sequence[FixedReading] = ()
    ) -> list[Word]:
        if sentence.text == "slow":
            self.spinning += 1
            while not self._gate.is_set():
                pass
        return Scripted("first")(sentence, on_fallback, given)


def test_a_slow_text_changes_nothing_that_another_hears(gate: threading.Event) -> None:
    g2p = GuardedG2P(lambda: Spinning(gate), Scripted("below"), name="misaki", below_name="espeak")
    slow = g2p.read(AlignedText.of("slow"))
    assert [word.source for word in slow.words] == ["below"]
    assert not slow.lasting
    for _ in range(20):  # while its thread goes on
        read = g2p.read(SENTENCE)
        assert [word.source for word in read.words] == ["first"]
        assert read.fallbacks == []
        assert read.lasting


def test_sentences_are_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kokoro_lab.g2p.guarded.DEADLINE_S", 60)
    both = threading.Barrier(2)
    g2p = guarded(lambda: Scripted("first", lambda: both.wait(30) and None))
    with ThreadPoolExecutor(2) as pool:
        read = list(pool.map(g2p.read, [SENTENCE] * 2))
    assert [r.words[0].source for r in read] == ["first"] * 2


def test_slow_texts_at_the_same_time_do_not_wait_for_each_other(gate: threading.Event) -> None:
    g2p = GuardedG2P(lambda: Spinning(gate), Scripted("below"), name="misaki", below_name="espeak")
    with ThreadPoolExecutor(8) as pool:
        texts = [AlignedText.of("slow"), *[SENTENCE] * 7]
        read = list(pool.map(g2p.read, texts))
    assert [r.words[0].source for r in read] == ["below", *["first"] * 7]


def test_threads_that_nobody_waits_for_are_few(
    gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    spinning, given_up = Spinning(gate), threading.Semaphore(0)
    give_up = GuardedG2P._give_up

    def noted(*arguments: Any) -> None:
        given_up.release()
        give_up(*arguments)

    monkeypatch.setattr(GuardedG2P, "_give_up", noted)
    g2p = GuardedG2P(lambda: spinning, Scripted("below"), name="misaki", below_name="espeak")
    with ThreadPoolExecutor(1) as pool:
        further = [pool.submit(g2p.read, AlignedText.of("slow")) for _ in range(MAX_SLOW + 3)]
        try:
            for _ in range(MAX_SLOW + 1):
                assert given_up.acquire(timeout=60)
            with pytest.raises(TimeoutError):
                further[MAX_SLOW].result(0.3)
            assert spinning.spinning == MAX_SLOW + 1, "the further ones are not begun"
            assert g2p.read(SENTENCE).words[0].source == "first", "and nobody else waits"
        finally:
            gate.set()
        read = [each.result(60).words[0].source for each in further]
        assert read == [*["below"] * (MAX_SLOW + 1), "first", "first"]


def test_a_wait_for_another_call_is_no_stall() -> None:
    lock = SharedLock()

    def take() -> None:
        with lock:
            pass

    g2p = guarded(lambda: Scripted("first", take))
    with ThreadPoolExecutor(1) as pool:
        with lock:
            read = pool.submit(g2p.read, SENTENCE)
            with pytest.raises(TimeoutError):
                read.result(4 * DEADLINE_S)
        assert read.result(60).words[0].source == "first"


def test_one_g2p_reads_sentences_at_the_same_time_as_one_by_one() -> None:
    """Of which some words are eSpeak's, and each sentence knows its own."""
    g2p = EnglishG2P("en-us")
    texts = [f"The {word} grackly yacht was {word} by the {n} colonels." for n, word in enumerate(WORDS)]

    def read(text: str) -> list[Word]:
        return g2p(AlignedText.of(text), lambda _: None)

    alone = [read(text) for text in texts]
    assert {word.source for words in alone for word in words} == {"misaki", "espeak"}
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(read, texts * 3)) == alone * 3


def test_a_sentence_read_within_another_ones_time_does_not_change_whose_words_are_espeaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    g2p = EnglishG2P("en-us")
    espeak = g2p._espeak

    def interrupted(word: str) -> str | None:
        if word == "skizzle":
            other = threading.Thread(target=g2p, args=(AlignedText.of("A yomper."), lambda _: None))
            other.start()
            other.join()
        return espeak(word)

    monkeypatch.setattr(g2p, "_espeak", interrupted)
    words = g2p(AlignedText.of("The skizzle blorful boat."), lambda _: None)
    assert [word.source for word in words[:4]] == ["misaki", "espeak", "espeak", "misaki"]


def hold_up_everybody() -> None:
    """As a collection of garbage does, of a large heap: no other thread of Python runs meanwhile."""
    ctypes.PyDLL(None).usleep(ctypes.c_uint(300_000))  # a PyDLL keeps the lock of the interpreter


def hold_up_everybody_computing() -> None:
    """So too, and the time is counted as that of the thread in which the collection happens to fall."""
    began_s = time.thread_time()
    sum(repeat(1, 60_000_000))  # a loop in C, which lets nobody in
    assert time.thread_time() - began_s > 2 * DEADLINE_S


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("held_up", [hold_up_everybody, hold_up_everybody_computing])
def test_a_pause_of_the_whole_interpreter_is_no_stall(held_up: Callable[[], None]) -> None:
    read = guarded(lambda: Scripted("first", held_up)).read(SENTENCE)
    assert [word.source for word in read.words] == ["first"]


@pytest.mark.usefixtures("patient")
def test_a_pause_in_another_thread_is_no_stall() -> None:
    def wait_beside_a_pause() -> None:
        pause = threading.Thread(target=hold_up_everybody)
        pause.start()
        compute(0.2 * DEADLINE_S)
        pause.join()

    read = guarded(lambda: Scripted("first", wait_beside_a_pause)).read(SENTENCE)
    assert [word.source for word in read.words] == ["first"]


@pytest.mark.usefixtures("patient")
def test_who_comes_back_is_not_replaced() -> None:
    made: list[int] = []

    def load() -> Scripted:
        made.append(1)
        return Scripted("slow", lambda: compute(0.1))

    g2p = guarded(load)
    long = AlignedText.of("a" * 800)
    assert g2p.read(SENTENCE).words[0].source == "below"
    until = time.perf_counter() + 60
    while g2p.read(long).words[0].source != "slow" and time.perf_counter() < until:
        time.sleep(0.05)
    assert g2p.read(long).words[0].source == "slow"
    assert len(made) == 1


@pytest.mark.usefixtures("patient")
def test_a_machine_without_time_for_it_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    g2p = guarded(lambda: Scripted("starved", lambda: time.sleep(4 * DEADLINE_S)))
    monkeypatch.setattr(_Worker, "wants_to_run", lambda _: True)
    assert g2p.read(SENTENCE).words[0].source == "starved"


def test_where_threads_have_no_clocks_the_deadline_still_holds(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    monkeypatch.setattr(_Worker, "cpu_s", lambda _: None)
    g2p = guarded(lambda: Scripted("stuck", lambda: gate.wait() and None))
    assert g2p.read(SENTENCE).words[0].source == "below"


@pytest.mark.usefixtures("impatient")
def test_while_a_replacement_loads_nobody_waits(gate: threading.Event) -> None:
    made: list[int] = []

    def load() -> Scripted:
        made.append(1)
        if len(made) > 1:
            gate.wait()
        return Scripted("stuck", lambda: gate.wait() and None)

    g2p = guarded(load)
    g2p.read(SENTENCE)
    time.sleep(0.35)
    started = time.perf_counter()
    read = g2p.read(SENTENCE)
    assert len(made) == 2
    assert time.perf_counter() - started < 10
    assert "has stalled before" in read.fallbacks[0].reason


@pytest.mark.usefixtures("impatient")
def test_stuck_threads_are_bounded_and_end_when_they_come_back(gate: threading.Event) -> None:
    before = set(threading.enumerate())
    g2p = guarded(lambda: Scripted("stuck", lambda: gate.wait() and None))
    for _ in range(4 * MAX_STALLED):
        assert g2p.read(SENTENCE).words[0].source == "below"
        time.sleep(0.15)
    stuck = set(threading.enumerate()) - before
    assert len(stuck) <= MAX_STALLED
    gate.set()
    until = time.perf_counter() + 10
    while g2p.read(SENTENCE).words[0].source != "stuck" and time.perf_counter() < until:
        time.sleep(0.01)
    assert g2p.read(SENTENCE).lasting
    for thread in stuck:
        thread.join(10)
        assert not thread.is_alive()


def test_its_thread_ends_with_it() -> None:
    before = set(threading.enumerate())
    g2p = guarded(lambda: Scripted("first"))
    g2p.read(SENTENCE)
    (thread,) = set(threading.enumerate()) - before
    del g2p
    thread.join(10)
    assert not thread.is_alive()


def test_the_threads_of_a_front_end_end_with_it() -> None:
    before = set(threading.enumerate())
    front_end = FrontEnd()
    list(front_end.segments("A small boat, un barco pequeño.", "en-us", lambda _: None))
    made = set(threading.enumerate()) - before
    assert made
    del front_end
    gc.collect()
    for thread in made:
        thread.join(10)
        assert not thread.is_alive()


def test_what_cannot_be_loaded_says_so_at_once() -> None:
    def load() -> Scripted:
        raise LookupError("missing")

    with pytest.raises(LookupError, match="missing"):
        guarded(load)


@pytest.mark.usefixtures("impatient")
def test_english_that_stalls_is_read_by_espeak(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    front_end = FrontEnd()
    front_end.warm("en-us")
    monkeypatch.setattr(EnglishG2P, "_words", lambda *_: gate.wait() and [])
    fallbacks: list[Fallback] = []
    segments = list(front_end.segments("A small boat.", "en-us", fallbacks.append))
    words = [word for segment in segments for word in segment.words]
    assert [(word.text, word.source) for word in words[:3]] == [(w, "espeak") for w in ("A", "small", "boat")]
    reason = "misaki did not answer within 50 ms: read by espeak"
    assert fallbacks == [Fallback("g2p", reason, 0, 13)]
    monkeypatch.undo()
    gate.set()
    until = time.perf_counter() + 20
    while time.perf_counter() < until:
        (segment,) = front_end.segments("A small boat.", "en-us", lambda _: None)
        if segment.words[0].source == "misaki":  # nothing of the stall was kept in the cache
            break
        time.sleep(0.05)
    assert segment.words[0].source == "misaki"


def test_espeak_that_stalls_too_leaves_the_letters(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    front_end = FrontEnd()
    front_end.warm("es")
    monkeypatch.setattr("kokoro_lab.g2p.espeak.EspeakG2P.__call__", lambda *_: gate.wait() and [])
    fallbacks: list[str] = []
    segments = list(front_end.segments("Sol, mar.", "es", lambda f: fallbacks.append(f.reason)))
    assert [(w.text, w.source) for s in segments for w in s.words] == [
        ("Sol,", "characters"),
        ("mar.", "characters"),
    ]
    assert fallbacks == ["espeak did not answer within 50 ms: read by characters"]
