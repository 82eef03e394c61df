"""What is left to chance, drawn from a scenario's seed: the same seed, the same faults."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import TypeVar

from kokoro_lab.lab.faults.scenario import Bursts, ChunksLost, ChunksReordered

Item = TypeVar("Item")


class Losses:
    """Which chunks are lost: of each `one_in` that are counted, one, wherever the seed puts it."""

    def __init__(self, fault: ChunksLost, seed: int) -> None:
        self._one_in = fault.one_in
        self._seed = seed
        self._counted = 0
        self.struck = 0

    def next(self) -> bool:
        """Whether the next chunk is lost."""
        run, place = divmod(self._counted, self._one_in)
        self._counted += 1
        lost = place == random.Random(f"{self._seed} {run}").randrange(self._one_in)
        self.struck += lost
        return lost

    def over(self, chunks: Iterable[Item]) -> Iterator[Item]:
        """Pass on those of `chunks` that are not lost; counts on from one connection to the next."""
        return (chunk for chunk in chunks if not self.next())


class Shuffles:
    """The chunks of a stream in another order, here and there."""

    def __init__(self, fault: ChunksReordered, seed: int) -> None:
        self._fault = fault
        self._seed = seed
        self._counted = 0
        self.struck = 0

    def over(self, chunks: Iterable[Item]) -> Iterator[Item]:
        """Pass on `chunks`, none of them twice and none left out; counts on from one connection to the next.

        What is held when `chunks` breaks off has not come over the line.
        """
        held: list[Item] = []
        for chunk in chunks:
            run, place = divmod(self._counted, self._fault.one_in)
            self._counted += 1
            draw = random.Random(f"{self._seed} {run}")
            first = draw.randrange(self._fault.one_in - self._fault.window + 1)
            if not first <= place < first + self._fault.window:
                yield chunk
                continue
            held.append(chunk)
            if place == first + self._fault.window - 1:
                yield from self._shuffled(held, draw)
                held = []
        yield from held

    def _shuffled(self, held: list[Item], draw: random.Random) -> list[Item]:
        self.struck += 1
        order = list(range(len(held)))
        while order == sorted(order) and len(order) > 1:
            draw.shuffle(order)
        return [held[place] for place in order]


class Holds:
    """When everything is held up, and for how long."""

    def __init__(self, fault: Bursts, seed: int) -> None:
        self._fault = fault
        self._draw = random.Random(seed)
        self._next_s: float | None = None

    def next_s(self, now_s: float) -> float:
        """Seconds to wait before what is there at `now_s`, on any clock, goes on; mostly 0."""
        if self._next_s is None:
            self._next_s = now_s + self._draw.uniform(0, self._fault.every_s)
        if now_s < self._next_s:
            return 0.0
        held_s = self._draw.uniform(self._fault.shortest_s, self._fault.longest_s)
        self._next_s = now_s + held_s + self._fault.every_s
        return held_s
