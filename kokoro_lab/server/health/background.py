"""Work that nobody waits for: the first synthesis, other languages, benchmarks. It makes way for requests."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from kokoro_lab.datatypes import SynthesisReport
from kokoro_lab.errors import KokoroLabError
from kokoro_lab.scheduling.kept_threads import SPEAKING
from kokoro_lab.scheduling.native_work import native_work
from kokoro_lab.scheduling.priority import keep_collector_off
from kokoro_lab.server.requests.slots import Slots
from kokoro_lab.text.language import SPOKEN, resolve_language

if TYPE_CHECKING:
    # Only for its name: gunicorn's master process must not load ONNX Runtime before it forks
    from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

QUIET_S = 2.0
"""The server is idle when it has had nothing to do for so long: a client that reads article after article
leaves less between two requests."""
LOOK_S = 0.1


def wait_until_idle(slots: Slots) -> None:
    """Return when no request is live and none has been for `QUIET_S`."""
    while not slots.idle(QUIET_S):
        time.sleep(LOOK_S)


class Stages:
    """Stages one after another, and the seconds that each took. Call it when one begins.

    Parameters
    ----------
    finished_s : mapping, optional
        Seconds of stages that came before.
    """

    def __init__(self, finished_s: Mapping[str, float] | None = None) -> None:
        self.current: str | None = None
        self._finished_s = dict(finished_s or {})
        self._since_s = time.perf_counter()

    def __call__(self, stage: str) -> None:
        """`stage` begins, and with that the one before has ended."""
        self.end()
        self.current = stage

    def end(self) -> None:
        """The last one has ended."""
        now_s = time.perf_counter()
        if self.current is not None:
            self._finished_s[self.current] = round(now_s - self._since_s, 3)
        self.current, self._since_s = None, now_s

    @property
    def finished_s(self) -> dict[str, float]:
        """Seconds that each finished one took."""
        return dict(self._finished_s)


class WarmUp:
    """The first synthesis, in stages and in the background, so that `/health` can answer meanwhile.

    What came before the application existed (`imports`, `weights`, which are checked, and `graphs`, made and
    loaded), `voice`, `text` (the language's G2P), `model` (a long sentence, spoken to nobody, or
    what those hear who came meanwhile). Then requests
    are served as fast as they ever will be, and `state` is "ok". What comes after, the G2P of `languages`,
    only spares a later listener a second; it waits until nobody is being served.

    Attributes
    ----------
    state : {"warming", "ok", "failed"}
    stages : Stages
        Those that are finished, and the one under way or that failed.
    seconds : float or None
        How long it took until ready, once it is.
    reason : str or None
        Why it failed.
    languages : dict
        `deferred`, `warm` or `failed` by language.
    complete : bool
        Whether nothing more will be loaded unasked.
    measured : callable
        Told what the first words cost.
    """

    def __init__(self, loaded_s: Mapping[str, float] | None = None) -> None:
        self.state: Literal["warming", "ok", "failed"] = "warming"
        self.stages = Stages(loaded_s)
        self.seconds: float | None = None
        self.reason: str | None = None
        self.languages: dict[str, str] = {}
        self.complete = False
        self.measured: Callable[[SynthesisReport], None] = lambda report: None

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
            Whose language and style come first.
        slots : Slots
            Where live requests are seen.
        every_language : bool
            Whether the G2P of the other languages is loaded too.
        defer : bool
            Whether they wait until no request is live.
        own_process : bool
            Whether what is loaded then may be kept from the collector of garbage.
        spoken : callable
            Whether one who is being served hears something already: those who come back after a crash come
            before the warm-up is over.
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
                        time.sleep(QUIET_S)  # whoever has waited for "ok" asks now
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
        """The voice's language, once everything is loaded that it needs; None if that failed."""
        started = time.perf_counter()
        try:
            self.stages("voice")
            language = resolve_language(engine.voice(voice).language)
            self.stages("text")
            with native_work():
                engine.front_end.speakers.of(language)
            self.stages("model")
            self._first_words(engine, voice, slots, spoken)
            # The detector of languages: who came meanwhile was served without
            with native_work():
                engine.front_end.warm(language)
            self.stages.end()
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
        """Speak to nobody, unless somebody is there who would have to wait for that: their speech will do.

        It is done where the first listener's will be: memory is a thread's own.
        """
        time.sleep(LOOK_S)  # who waited at the door, while it was loaded, takes a slot first
        while not slots.idle():
            if spoken():
                return
            time.sleep(LOOK_S)
        self.measured(SPEAKING.submit(lambda: engine.warm(voice)).result())

    def _warm_others(self, engine: Engine, first: str, slots: Slots | None) -> None:
        self.languages = {first: "warm"} | {tag: "deferred" for tag in SPOKEN if tag != first}
        for tag in list(self.languages)[1:]:
            if slots is not None:
                wait_until_idle(slots)
            try:
                with native_work():
                    engine.front_end.warm(tag)
            except Exception as error:
                # It is found out again, and said to whoever asks for the language
                reason = error if isinstance(error, KokoroLabError) else type(error).__name__
                log.warning("The language %s could not be warmed: %s", tag, reason)
                self.languages[tag] = "failed"
            else:
                self.languages[tag] = "warm"
