"""A bounded line of samples: what comes in first is played first, and what does not fit is not taken."""

from __future__ import annotations

import numpy as np

from kokoro_lab.audio import Pcm


class Ring:
    """Samples between one who brings them and one who plays them, in memory that is taken once.

    It has no lock: who shares it between threads brings one.

    Parameters
    ----------
    capacity_samples : int
        The most that it holds. Memory is touched only where samples have been.
    """

    def __init__(self, capacity_samples: int) -> None:
        self._samples = np.zeros(capacity_samples, np.int16)
        self._at = 0
        self._held = 0

    def __len__(self) -> int:
        return self._held

    @property
    def capacity_samples(self) -> int:
        return len(self._samples)

    @property
    def free_samples(self) -> int:
        return len(self._samples) - self._held

    def put(self, pcm: Pcm) -> int:
        """Take as many of the first samples of `pcm` as fit, and say how many those were."""
        count = min(len(pcm), self.free_samples)
        begin = (self._at + self._held) % len(self._samples)
        until_end = min(count, len(self._samples) - begin)
        self._samples[begin : begin + until_end] = pcm[:until_end]
        self._samples[: count - until_end] = pcm[until_end:count]
        self._held += count
        return count

    def take(self, count: int) -> Pcm:
        """The `count` samples that have been there longest, or all, if they are fewer. A copy."""
        count = min(count, self._held)
        until_end = min(count, len(self._samples) - self._at)
        parts = self._samples[self._at : self._at + until_end], self._samples[: count - until_end]
        taken = np.concatenate(parts)
        self._at = (self._at + count) % len(self._samples)
        self._held -= count
        return taken

    def clear(self) -> None:
        self._at = self._held = 0
