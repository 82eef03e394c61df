"""A cache of the phonemes of sentences that were read before."""

from __future__ import annotations

import threading
from operator import itemgetter
from typing import Any, NamedTuple

from cachetools import LRUCache

from kokoro_lab.g2p.guarded import SentenceReading
from kokoro_lab.g2p.protocol import Readings

CACHE_BYTES = 8 * 2**20
"""The size of the cache in bytes: about 4,000 sentences."""
_WORD_BYTES, _ENTRY_BYTES = 400, 600
"""Bytes that a word and an entry take in memory, without their characters, measured with `sys.getsizeof`."""


class Key(NamedTuple):
    """Everything on which the reading of a text depends."""

    language: str
    lexicon: str
    text: str
    given: Readings = ()
    """The readings that the document gives."""


class PhonemeCache:
    """The last sentences read, in a bounded number of bytes. Thread-safe.

    Parameters
    ----------
    max_bytes : int
        The upper bound; the oldest entries are dropped to stay below it. 0 keeps nothing.
    """

    def __init__(self, max_bytes: int = CACHE_BYTES) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._entries: LRUCache[Key, tuple[SentenceReading, int]] = LRUCache(
            max_bytes, getsizeof=itemgetter(1)
        )
        self._hits = self._misses = 0

    def get(self, key: Key) -> SentenceReading | None:
        """The words of `key`, or None; counts a hit or a miss."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                self._misses += 1
                return None
            self._hits += 1
            return found[0]

    def put(self, key: Key, reading: SentenceReading) -> None:
        """Keep the words of `key`, with offsets into its text, unless this one entry is larger than
        `max_bytes`."""
        texts = 3 * len(key.text) + sum(3 * len(word.text) + 2 * len(word.phonemes) for word in reading.words)
        size = _ENTRY_BYTES + _WORD_BYTES * (len(reading.words) + len(reading.fallbacks)) + texts
        with self._lock:
            if size <= self.max_bytes:
                self._entries[key] = reading, size

    def clear(self) -> None:
        """Forget every sentence. The counts of hits and misses stay."""
        with self._lock:
            self._entries.clear()

    def figures(self) -> dict[str, Any]:
        """Entries, bytes, hits and misses, as plain data."""
        with self._lock:
            asked = self._hits + self._misses
            return {
                "entries": len(self._entries),
                "bytes": int(self._entries.currsize),
                "max_bytes": self.max_bytes,
                "hits": self._hits,
                "misses": self._misses,
                "hit_rate": round(self._hits / asked, 4) if asked else None,
            }
