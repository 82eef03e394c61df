"""Sessions on the CPU: they give back memory where somebody asks for it, and their runs can be broken off."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import onnxruntime as ort

from kokoro_lab.model import interruption


class ShrinkingSession(ort.InferenceSession):  # type: ignore[misc]  # the library has no types
    """A session on the CPU that can be asked to give back what its arena keeps.

    What it runs `within` an `Interruption` ends with an exception of ONNX Runtime's when that does.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.shrinks_next = False
        with _counting:
            _sessions.add(self)

    def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> Any:
        if self.shrinks_next and run_options is None:
            self.shrinks_next = False
            run_options = _shrinking()
        found = interruption.current()
        if found is None:
            return super().run(output_names, input_feed, run_options)
        run_options = run_options or ort.RunOptions()
        with found.watching(run_options):
            return super().run(output_names, input_feed, run_options)


_sessions: weakref.WeakSet[ShrinkingSession] = weakref.WeakSet()
_counting = threading.Lock()
"""A session may be made while they are listed, such as the one that stands in for a lost provider."""


def shrink_arenas() -> int:
    """Have each session of this process give back what its arena does not use, once its next run is over.

    By ONNX Runtime's run option `memory.enable_memory_arena_shrinkage`: what is in use stays, so nobody who
    is speaking is disturbed.

    Returns
    -------
    int
        How many sessions were asked.
    """
    with _counting:
        asked = list(_sessions)
    for session in asked:
        session.shrinks_next = True
    return len(asked)


def _shrinking() -> ort.RunOptions:
    options = ort.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options
