"""Background work that makes way for requests: the warm-up, further languages, benchmarks at start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from kokoro_lab.datatypes import AudioChunk, SynthesisReport
from kokoro_lab.errors import Interrupted, KokoroLabError
from kokoro_lab.scheduling.kept_threads import SPEAKING
from kokoro_lab.scheduling.native_work import native_work
from kokoro_lab.scheduling.priority import keep_collector_off
from kokoro_lab.server.requests.slots import Slots
from kokoro_lab.text.language import SPOKEN, resolve_language

if TYPE_CHECKING:
    # For type checking alone: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

QUIET_S = 2.0
"""The server counts as idle after this time without a request. A client that reads article after article
waits less between two requests."""
LOOK_S = 0.1
SLOW = 0.2
"""Where a second of speech takes more computing than this many seconds, the warm-up rehearses. A quicker
machine has the next chunks in time, whatever the text."""
REHEARSED = (
    "Of course. The second sentence of this text has to be ready when the two words before it have been "
    "heard, which asks more of a slow computer than anything that comes later."
)
"""A beginning that asks for much: a short first segment, and a long one behind it."""


def wait_until_idle(slots: Slots) -> None:
    """Wait until no request has been served for `QUIET_S`."""
    while not slots.idle(QUIET_S):
        time.sleep(LOOK_S)


def needed_pre_buffer_s(
    stream: Iterable[AudioChunk], clock: Callable[[], float] = time.perf_counter
) -> float:
    """The least pre-buffer, in seconds, with which a player would have had every chunk of `stream` in time.

    `clock` returns the time in seconds, and is read whenever a chunk is ready."""
    needed_s = sounded_s = 0.0
    begun_s: float | None = None
    for chunk in stream:
        begun_s = clock() if begun_s is None else begun_s
        needed_s = max(needed_s, clock() - begun_s - sounded_s)
        sounded_s += chunk.duration_s
    return needed_s


class Stages:
    """The steps of starting, one after another, and the seconds of each. Call the object with the name of
    each step when the step begins.

    Parameters
    ----------
    finished_s : mapping, optional
        Seconds of earlier steps.
    """

    def __init__(self, finished_s: Mapping[str, float] | None = None) -> None:
        self.current: str | None = None
        self._finished_s = dict(finished_s or {})
        self._since_s = time.perf_counter()

    def __call__(self, stage: str) -> None:
        """End the current stage, and record that `stage` begins."""
        self.end()
        self.current = stage

    def end(self) -> None:
        """End the current stage, and record how long it took."""
        now_s = time.perf_counter()
        if self.current is not None:
            self._finished_s[self.current] = round(now_s - self._since_s, 3)
        self.current, self._since_s = None, now_s

    @property
    def finished_s(self) -> dict[str, float]:
        """Seconds that each finished stage took."""
        return dict(self._finished_s)


class WarmUp:
    """The first synthesis, in stages and in the background, so that `/health` can answer meanwhile.

    The steps are those before the application existed (`imports`; `weights`, which are checked; `graphs`,
    which are made and loaded), then `voice`, `text` (the language's G2P), and `model` (a long sentence that
    nobody hears, or a waiting client's own speech). Then requests are served at full speed, and `state` is
    "ok". Afterwards the G2P of further `languages` is loaded, which saves later listeners a second; it waits
    until nobody is being served.

    Attributes
    ----------
    state : {"warming", "ok", "failed"}
    stages : Stages
        The finished steps, and the step that is under way or failed.
    seconds : float or None
        Seconds until the engine was ready; None before.
    reason : str or None
        Why warming up failed.
    languages : dict
        `deferred`, `warm` or `failed` by language.
    complete : bool
        Whether all background loading is over.
    measured : callable
        Called with the computing cost of the first synthesis.
    rehearsed : callable or None
        If given, a machine that takes more than `SLOW` seconds of computing for a second of speech speaks
        `REHEARSED` to nobody, and calls this with the pre-buffer that a player would have needed, in seconds.
    """

    def __init__(self, loaded_s: Mapping[str, float] | None = None) -> None:
        self.state: Literal["warming", "ok", "failed"] = "warming"
        self.stages = Stages(loaded_s)
        self.seconds: float | None = None
        self.reason: str | None = None
        self.languages: dict[str, str] = {}
        self.complete = False
        self.measured: Callable[[SynthesisReport], None] = lambda report: None
        self.rehearsed: Callable[[float], None] | None = None
        self._stop = threading.Event()

    def end(self) -> None:
        """Break off behind the step that is under way, since nobody needs what would be loaded. A process
        that ends waits for native code only for a while."""
        self._stop.set()

    def start(
        self,
        engine: Engine,
        voice: str,
        slots: Slots,
        *,
        every_language: bool = False,
        defer: bool = True,
        own_process: bool = False,
        spoken: Callable[[], bool] = lambda: False,
    ) -> threading.Thread:
        """Warm `engine` in a thread of its own.

        Parameters
        ----------
        engine : Engine
        voice : str
            The voice whose language and style are loaded first.
        slots : Slots
            Show whether requests are being served.
        every_language : bool
            Whether the G2P of the other languages is loaded too.
        defer : bool
            Whether loading them waits until no request is live.
        own_process : bool
            Whether the process belongs to the server alone, so that the garbage collector may ignore all
            loaded objects.
        spoken : callable
            Returns whether a client already hears speech. Clients that return after a crash are served before
            the warm-up is over.
        """

        def warm() -> None:
            try:
                language = self._made_ready(engine, voice, slots, spoken)
                if language is None:
                    return
                if own_process:
                    keep_collector_off()
                self.state = "ok"
                log.info("Warm after %.1f s", self.seconds)
                if every_language:
                    if defer:
                        time.sleep(QUIET_S)  # clients that waited for "ok" ask now
                        wait_until_idle(slots)
                    self._warm_others(engine, language, slots if defer else None)
                    if own_process:
                        keep_collector_off()
            finally:
                self.complete = True

        thread = threading.Thread(target=warm, name="warm-up", daemon=True)
        thread.start()
        return thread

    def _made_ready(self, engine: Engine, voice: str, slots: Slots, spoken: Callable[[], bool]) -> str | None:
        """Load everything that the voice needs; returns its language, or None if that failed."""
        started = time.perf_counter()
        try:
            self.stages("voice")
            language = resolve_language(engine.voice(voice).language)
            self.stages("text")
            with native_work():
                engine.front_end.speakers.of(language)
            self.stages("model")
            self._first_words(engine, voice, slots, spoken)
            # Tables that a text may need: clients that came meanwhile were served without them
            with native_work():
                engine.front_end.warm(language)
            self.stages.end()
        except Interrupted:
            self.state, self.reason = "failed", "The server was stopped before it was warm."
            log.info("The warm-up was broken off, because the server is being stopped.")
            return None
        except Exception as error:
            known = isinstance(error, KokoroLabError)
            self.reason = str(error) if known else f"{type(error).__name__}; the log says more."
            self.state = "failed"
            log.error("Warm-up failed: %s", self.reason, exc_info=not known)
            return None
        finally:
            self.seconds = time.perf_counter() - started
        return language

    def _first_words(self, engine: Engine, voice: str, slots: Slots, spoken: Callable[[], bool]) -> None:
        """Speak a sentence that nobody hears, unless a client is waiting: then its speech is the first.

        This runs in a thread that later serves listeners, because each thread has memory of its own.
        """
        time.sleep(LOOK_S)  # clients that waited while it was loaded take slots first
        while not slots.idle():
            if spoken():
                return
            time.sleep(LOOK_S)
        report = SPEAKING.submit(lambda: engine.warm(voice, stop=self._stop)).result()
        self.measured(report)
        if self.rehearsed is not None and report.compute_s > SLOW * report.audio_s and slots.idle():
            stream = engine.stream(REHEARSED, voice=voice, cached=False, stop=self._stop)
            alone = takewhile(lambda _: slots.idle(), stream)
            needed_s = SPEAKING.submit(lambda: needed_pre_buffer_s(alone)).result()
            stream.close()
            if slots.idle():  # else a client has come, who needs the cores, and what was measured is too much
                self.rehearsed(needed_s)

    def _warm_others(self, engine: Engine, first: str, slots: Slots | None) -> None:
        self.languages = {first: "warm"} | {tag: "deferred" for tag in SPOKEN if tag != first}
        for tag in list(self.languages)[1:]:
            if slots is not None:
                wait_until_idle(slots)
            if self._stop.is_set():
                return
            try:
                with native_work():
                    engine.front_end.warm(tag)
            except Exception as error:
                # The same error is raised again for a request in that language
                reason = error if isinstance(error, KokoroLabError) else type(error).__name__
                log.warning("The language %s could not be warmed: %s", tag, reason)
                self.languages[tag] = "failed"
            else:
                self.languages[tag] = "warm"
