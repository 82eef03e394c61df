"""What to do about a figure that is too high, given how the server is set up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kokoro_lab.config import STAGED, Settings

if TYPE_CHECKING:
    from kokoro_lab.speech.engine import Engine


def remedies(engine: Engine, settings: Settings) -> Callable[[str, bool], str]:
    """The first thing that helps with `ttfa_s` or `rtf` and has not been done yet.

    The second argument is whether requests were served at the same time.
    """
    config = engine.config

    def remedy(objective: str, shared: bool) -> str:
        if config.variant not in STAGED:
            return "This variant runs as one graph: set KOKORO_VARIANT=int8, which speaks window by window."
        if config.variant != "int8":
            return "Set KOKORO_VARIANT=int8: it takes less than half of the computing."
        if config.native == "off":
            return "Unset KOKORO_NATIVE: our own operators need fewer multiplications."
        if config.threads == 1:
            return "Unset KOKORO_THREADS, so that every core is used."
        if settings.concurrency > 1 and shared:
            return "Lower KOKORO_CONCURRENCY: those who speak at a time share the cores."
        if objective == "ttfa_s":
            return "Keep other programs off the machine, and begin texts with a short sentence."
        return "Keep other programs off the machine; `kokoro-lab bench profile` shows where the time goes."

    return remedy
