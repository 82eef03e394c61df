"""The cache of first audio: a repeated request is answered before anything is computed.

Synthesis is deterministic, so the stream is computed from its beginning meanwhile, and its samples continue
the cached ones exactly. The time to cached first audio is not called TTFA, and is counted separately.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cachetools import TTLCache

from kokoro_lab.datatypes import AudioChunk, Place

PRIMED_S = 2.0
"""Seconds of speech that are kept of an utterance. While they are heard, the engine computes the same speech
again to continue it. At a real-time factor of 0.44, that takes about 1.5 s: with 0.5 s, 13 of 16 repeated
streams came too late for a player that holds back 100 ms."""
ENTRIES = 64
"""The most entries: 12 MB of samples."""


class KeptAudio(NamedTuple):
    """The first chunks of an utterance, and where the segments of these chunks can be begun again, by their
    ids."""

    chunks: tuple[AudioChunk, ...] = ()
    places: Mapping[int, Place] = {}


class FirstAudioCache:
    """The first chunks of the last utterances, for a while. Thread-safe.

    Holds samples under a hash of the request (`CheckedUtterance.digest`), never its text.

    Parameters
    ----------
    ttl_s : float
        Seconds that an entry lives; 0 keeps nothing.
    """

    def __init__(self, ttl_s: float) -> None:
        self.ttl_s = ttl_s
        self._lock = threading.Lock()
        self._kept: TTLCache[str, KeptAudio] = TTLCache(ENTRIES, max(ttl_s, 1e-9))
        self._hits = self._misses = 0

    def get(self, key: str) -> KeptAudio:
        """The first audio of `key`, empty if there is none; counts a hit or a miss."""
        if not self.ttl_s:
            return KeptAudio()
        with self._lock:
            found: KeptAudio = self._kept.get(key, KeptAudio())
            if found.chunks:
                self._hits += 1
            else:
                self._misses += 1
            return found

    def put(self, key: str, chunks: Sequence[AudioChunk], places: Mapping[int, Place]) -> None:
        """Keep the chunks of `key`, which must not change any more, and the places of their segments."""
        if self.ttl_s and chunks:
            with self._lock:
                ids = {chunk.segment_id for chunk in chunks}
                kept = {segment_id: place for segment_id, place in places.items() if segment_id in ids}
                self._kept[key] = KeptAudio(tuple(chunks), kept)

    def clear(self) -> None:
        """Remove all entries; the counts of hits and misses are kept."""
        with self._lock:
            self._kept.clear()

    def figures(self) -> dict[str, float]:
        """Counts of hits, misses and entries, and `ttl_s`."""
        with self._lock:
            self._kept.expire()
            return {
                "hits": self._hits,
                "misses": self._misses,
                "entries": len(self._kept),
                "ttl_s": self.ttl_s,
            }


class FirstAudio:
    """The first audio of one stream: taken from the cache if it is there, else collected for the cache.

    Parameters
    ----------
    cache : FirstAudioCache
        The cache that is read and filled.
    key : str, optional
        Hash of the request; None to use no cache.
    places : mapping of int to Place
        The places of the stream's segments, by their ids, which the stream adds as it speaks.

    Attributes
    ----------
    chunks : tuple of AudioChunk
        The first audio as it was spoken before; empty if the cache has none.
    places : mapping of int to Place
        The places of the segments of these chunks.
    """

    def __init__(self, cache: FirstAudioCache, key: str | None, places: Mapping[int, Place]) -> None:
        self._cache = cache
        self._key = key
        self._fresh_places = places
        self.chunks, self.places = cache.get(key) if key else KeptAudio()
        self._fresh: list[AudioChunk] = []

    def keep(self, chunk: AudioChunk) -> None:
        """Collect the next chunk; as soon as the first audio is complete, it is put into the cache."""
        if not self._key or self.chunks:
            return
        if chunk.start_s < PRIMED_S:
            self._fresh.append(chunk)
        else:
            self.keep_all()

    def keep_all(self) -> None:
        """Put the collected chunks into the cache. Call this when the first audio is complete, or the stream
        has ended."""
        if self._key and self._fresh:
            self._cache.put(self._key, self._fresh, self._fresh_places)
            self._fresh = []
