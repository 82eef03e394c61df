"""The order of clients who ask at the same time, for the cores and for slots."""

from __future__ import annotations

from cachetools import LRUCache

CLIENTS = 256
"""Number of clients whose last turn is remembered."""


class RoundRobin:
    """The order of clients who ask at the same time: each client's next request comes after one request of
    every other client.

    Not thread-safe.

    Attributes
    ----------
    round : int
        The latest round of which a request was served.
    """

    def __init__(self) -> None:
        self.round = 0
        self._last: LRUCache[str, int] = LRUCache(CLIENTS)

    def round_of(self, client: str, since: int) -> int:
        """The round of a client's next request. `since` is the value of `round` when the request came."""
        return max(since, self._last.get(client, 0)) + 1

    def serve(self, client: str, since: int) -> int:
        """Serve the client's request; returns its round."""
        self._last[client] = served = self.round_of(client, since)
        self.round = max(self.round, served)
        return served
