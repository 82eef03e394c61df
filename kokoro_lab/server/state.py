"""What the blueprints of one application share."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from flask import current_app
from werkzeug.exceptions import TooManyRequests

from kokoro_lab.config import Settings
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.server.figures import Figures
from kokoro_lab.server.live import LiveStreams

if TYPE_CHECKING:
    # Only for its name: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.engine import Engine

log = logging.getLogger(__name__)

EXTENSION = "kokoro_lab"
RETRY_AFTER_S = 1
SOCKETS = 8
"""WebSockets that may be open at a time; each takes a thread of the server."""


class Slots:
    """Syntheses that may run at a time. A further one is told to come back, not made to wait."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._taken = 0
        self._lock = threading.Lock()

    @property
    def active(self) -> int:
        """Slots that are taken now."""
        return self._taken

    def take(self) -> Slot:
        """A slot, which its holder must release.

        Raises
        ------
        werkzeug.exceptions.TooManyRequests
            All are taken.
        """
        with self._lock:
            if self._taken >= self.count:
                raise TooManyRequests(
                    f"All {self.count} syntheses that may run at a time are running.",
                    retry_after=RETRY_AFTER_S,
                )
            self._taken += 1
        return Slot(self)

    def _give_back(self) -> None:
        with self._lock:
            self._taken -= 1


class Slot:
    """One taken slot. Releasing it twice gives back one."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._lock = threading.Lock()
        self._held = True

    def release(self) -> None:
        with self._lock:
            held, self._held = self._held, False
        if held:
            self._slots._give_back()


class WarmUp:
    """The first synthesis, done in the background so that `/health` can answer meanwhile.

    Attributes
    ----------
    state : {"warming", "ok", "failed"}
    seconds : float or None
        How long it took, once it is over.
    reason : str or None
        Why it failed.
    """

    def __init__(self) -> None:
        self.state: Literal["warming", "ok", "failed"] = "warming"
        self.seconds: float | None = None
        self.reason: str | None = None

    def start(self, engine: Engine, voice: str) -> threading.Thread:
        """Warm `engine` in a thread of its own."""
        thread = threading.Thread(target=self._run, args=(engine, voice), name="warm-up", daemon=True)
        thread.start()
        return thread

    def _run(self, engine: Engine, voice: str) -> None:
        started = time.perf_counter()
        try:
            engine.warm(voice)
        except Exception as error:
            known = isinstance(error, KokoroLabError)
            self.reason = str(error) if known else f"{type(error).__name__}; the log says more."
            self.state = "failed"
            log.error("Warm-up failed: %s", self.reason, exc_info=not known)
        else:
            self.state = "ok"
        self.seconds = time.perf_counter() - started
        if self.state == "ok":
            log.info("Warm after %.1f s", self.seconds)


@dataclass(slots=True, eq=False)
class ServerState:
    """One engine being served."""

    engine: Engine
    settings: Settings
    slots: Slots
    figures: Figures = field(default_factory=Figures)
    warm_up: WarmUp = field(default_factory=WarmUp)
    live: LiveStreams = field(default_factory=LiveStreams)
    sockets: Slots = field(default_factory=lambda: Slots(SOCKETS))
    started_s: float = field(default_factory=time.monotonic)


def server_state() -> ServerState:
    """The state of the application that is handling the current request."""
    state: ServerState = current_app.extensions[EXTENSION]
    return state
