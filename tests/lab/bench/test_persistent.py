"""A listener who wants every word gets them once each, whatever breaks; one who does not ask does not."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.client import Busy, Patience
from kokoro_lab.lab.bench.persistent import FRUITLESS, MOST_PATIENCE_S, RECOVERY_S, listen
from kokoro_lab.lab.bench.received import ReceivedChunk, ReceivedStream, ids_of
from kokoro_lab.lab.faults.scenario import ChunksReordered, Shuffles

CHUNKS = [bytes([number, 16]) * 4 for number in range(10)]
WHOLE = b"".join(CHUNKS)


class Scripted:
    """Breaks off behind the chunks that it is told to, and goes on behind what is heard, or `again` chunks
    before."""

    def __init__(self, breaks: Sequence[int] = (), *, again: int = 0, busy: int = 0) -> None:
        self.asked = 0
        self._breaks = list(breaks)
        self._again = again
        self._busy = busy

    def __call__(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
        self.asked += 1
        if self._busy and self.asked > 1:
            self._busy -= 1
            raise Busy("not now")
        first = 0 if heard.last_id is None else ids_of(heard.last_id)[1] + 1
        for number in range(max(0, first - self._again), len(CHUNKS)):
            yield ReceivedChunk(f"0.{number}", CHUNKS[number])
            if self._breaks and number == self._breaks[0]:
                self._breaks.pop(0)
                raise SynthesisError("broken")


def test_a_whole_stream_is_whole() -> None:
    heard = listen(Scripted())
    assert (heard.pcm, heard.complete, heard.breaks, heard.repeated) == (WHOLE, True, [], 0)
    assert len(heard.arrivals_s) == len(heard.lengths_s) == len(CHUNKS)
    assert heard.samples == len(WHOLE) // 2
    assert heard.ttfa_s == heard.arrivals_s[0]


def test_what_breaks_is_gone_on_with() -> None:
    source = Scripted([2, 6])
    heard = listen(source)
    assert (heard.pcm, heard.complete, [*map(str, heard.breaks)]) == (WHOLE, True, ["broken", "broken"])
    assert source.asked == 3
    assert len(heard.recovered_s) == 2


def test_what_comes_again_is_not_played_again() -> None:
    heard = listen(Scripted([5], again=3))
    assert (heard.pcm, heard.repeated) == (WHOLE, 3)


def test_a_chunk_that_is_lost_is_asked_for_again() -> None:
    lost = iter([False, False, True])
    heard = listen(Scripted(), line=lambda frames: (f for f in frames if not next(lost, False)))
    (broke,) = heard.breaks
    assert heard.pcm == WHOLE
    assert str(broke).startswith("Chunk 2 is missing.")


def test_who_does_not_ask_again_lacks_it() -> None:
    lost = iter([False, False, True])
    heard = listen(
        Scripted(), line=lambda frames: (f for f in frames if not next(lost, False)), asks_again=False
    )
    assert heard.complete
    assert heard.pcm == WHOLE.replace(CHUNKS[2], b"")


@pytest.mark.parametrize("seed", range(8))
def test_chunks_that_overtake_each_other_are_put_in_order_and_nothing_is_asked_for_again(seed: int) -> None:
    fault = ChunksReordered(kind="chunks_reordered", one_in=5, window=4)
    source, shuffles = Scripted(), Shuffles(fault, seed)
    heard = listen(source, line=shuffles.over)
    assert (heard.pcm, heard.breaks, heard.repeated, source.asked) == (WHOLE, [], 0, 1)
    assert shuffles.struck == 2
    assert heard.reordered > 0
    assert heard.arrivals_s == sorted(heard.arrivals_s)
    jumbled = listen(Scripted(), line=Shuffles(fault, seed).over, reorders=False)
    assert jumbled.complete
    assert jumbled.pcm != WHOLE
    assert sorted(jumbled.pcm) == sorted(WHOLE)


def test_a_line_that_breaks_while_chunks_are_held_loses_none() -> None:
    fault = ChunksReordered(kind="chunks_reordered", one_in=5, window=5)
    heard = listen(Scripted([2, 6]), line=Shuffles(fault, 1).over)
    assert (heard.pcm, heard.complete) == (WHOLE, True)


def test_who_does_not_go_on_has_the_beginning() -> None:
    heard = listen(Scripted([2]), goes_on=False)
    assert (heard.pcm, heard.complete) == (b"".join(CHUNKS[:3]), False)


def test_a_busy_server_is_waited_for() -> None:
    heard = listen(Scripted([2], busy=3))
    assert (heard.pcm, heard.complete, [*map(str, heard.breaks)]) == (WHOLE, True, ["broken"])


def test_it_gives_up_where_nothing_new_comes() -> None:
    class Broken(Scripted):
        def __call__(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
            raise SynthesisError("gone")
            yield

    heard = listen(Broken())
    assert not heard.complete
    assert len(heard.breaks) == FRUITLESS + 1


def test_who_has_speech_in_hand_is_patient() -> None:
    patience_s: list[float] = []

    class Asking(Scripted):
        def __call__(self, heard: ReceivedStream, patience: Patience) -> Generator[ReceivedChunk]:
            patience_s.append(patience())
            for number in range(30):
                yield ReceivedChunk(f"0.{number}", bytes(4_800))
            patience_s.append(patience())
            for number in range(30, 200):
                yield ReceivedChunk(f"0.{number}", bytes(4_800))
            patience_s.append(patience())

    listen(Asking(), patience_s=0.25)
    assert patience_s[0] == 0.25
    assert 0.25 < patience_s[1] <= 3.0 - RECOVERY_S  # of the 3 s in hand, what it takes to go on is kept
    assert patience_s[2] == MOST_PATIENCE_S
