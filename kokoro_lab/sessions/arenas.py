"""Sessions on the CPU: memory that is bounded and freed on request, and runs that can be interrupted.

ONNX Runtime takes memory for tensors from the system, and keeps it for the next run: its *arena*.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, NoReturn

import numpy as np
import onnxruntime as ort

from kokoro_lab.errors import OutOfMemory, SettingsError

ARENA = "KOKORO_MEMORY_ARENA_SIZE_MB"
ENOUGH_MB = {"int8": 512, "int8fp16mix": 640, "fp16": 768, "fp32": 768}
"""Variant → the arena in MiB that holds its models and the longest segment (510 token ids, at speed 1) of one
request at a time. By measurement, 384, 512, 640 and 640 MiB are enough; 320 and 448 MiB are too little for
the first two."""
FAULT_ARENA_MB = 16


class ShrinkingSession(ort.InferenceSession):  # type: ignore[misc]  # the library has no types
    """A session on the CPU that gives back, on request, the memory that its arena keeps.

    If `Interruption.end` is called during a run, the run raises an exception of ONNX Runtime; if there is not
    enough memory, it raises `OutOfMemory`.
    """

    def __init__(self, *arguments: Any, variant: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.shrinks_next = False
        self._variant = variant
        with _counting:
            _sessions.add(self)

    def run(self, output_names: Any, input_feed: Any, run_options: Any = None) -> Any:
        if self.shrinks_next and run_options is None:
            self.shrinks_next = False
            run_options = _shrinking()
        found = _current.get()
        try:
            if found is None:
                return super().run(output_names, input_feed, run_options)
            run_options = run_options or ort.RunOptions()
            with found.watching(run_options):
                return super().run(output_names, input_feed, run_options)
        except Exception as error:  # ONNX Runtime's exceptions have no common base but this
            if short := out_of_memory(error, "speak this", self._variant):
                raise short from error
            raise


_sessions: weakref.WeakSet[ShrinkingSession] = weakref.WeakSet()
_counting = threading.Lock()
"""A lock on the list of sessions. A session may be made while another thread reads the list, for instance
when the CPU takes over from a lost provider."""


def bound_arena(size_mb: int) -> None:
    """Register the process's one bounded CPU arena: ONNX Runtime accepts one, and keeps it.

    Raises
    ------
    SettingsError
        The process has an arena of another size already.
    """
    global _arena_mb
    with _counting:
        if _arena_mb is None:
            ort.create_and_register_allocator(
                ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT),
                ort.OrtArenaCfg({"max_mem": size_mb * 2**20}),
            )
            _arena_mb = size_mb
    if _arena_mb != size_mb:
        raise SettingsError(
            f"The memory arena of this process is already {_arena_mb} MiB.",
            field=ARENA,
            value=size_mb,
            mend="Start a new process to change it.",
        )


_arena_mb: int | None = None


def out_of_memory(error: Exception, to_do: str, variant: str = "") -> OutOfMemory | None:
    """The error for an exception of ONNX Runtime's that means that memory ran out; None for any other.

    Parameters
    ----------
    to_do : str
        The task for which there was no memory, as an infinitive such as `load the vocoder`.
    """
    text = str(error)
    in_arena = _NO_ROOM.search(text)
    if in_arena is None and not isinstance(error, MemoryError) and not _NO_MEMORY.search(text):
        return None
    if in_arena is None or _arena_mb is None:
        return OutOfMemory(
            f"The machine has not enough memory to {to_do}.",
            mend="Lower KOKORO_CONCURRENCY, end other programs, or speak a shorter text.",
        )
    available, requested = (int(number) for number in in_arena.groups())
    least_mb = -(-((_arena_mb << 20) - available + requested) // 2**20)
    enough_mb = ENOUGH_MB[variant] if variant in ENOUGH_MB else max(ENOUGH_MB.values())
    return OutOfMemory(
        f"{ARENA} is {_arena_mb}: not enough to {to_do}, which takes at least {least_mb} MiB.",
        field=ARENA,
        value=_arena_mb,
        allowed=f"{enough_mb} for one request at a time, or 0 for no bound",
        mend="Set it to that, or leave it out.",
    )


_NO_ROOM = re.compile(r"Available memory of (\d+) is smaller than requested bytes of (\d+)")
_NO_MEMORY = re.compile(r"Failed to allocate memory|bad[_ ]alloc", re.IGNORECASE)
"""Messages of ONNX Runtime and of our operators (native/operator.h) when memory runs out; ONNX Runtime has no
status code for that."""


def run_out_of_memory() -> NoReturn:
    """Inject a fault: run a graph that takes more memory than the process's arena holds.

    A process without a bounded arena gets one of `FAULT_ARENA_MB`, in which only graphs of this function run.

    Raises
    ------
    OutOfMemory
        The error that any other graph would raise.
    """
    from onnx import parser

    bound_arena(_arena_mb or FAULT_ARENA_MB)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.use_env_allocators", "1")
    model = parser.parse_model("""<ir_version: 9, opset_import: ["": 20]>
        more_than_there_is (int64[1] size) => (float[n] y) { y = ConstantOfShape (size) }""")
    session = ShrinkingSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert _arena_mb is not None
    session.run(None, {"size": np.array([_arena_mb * 2**20 // 4 + 1])})
    raise AssertionError("an arena gave more than it has")


def shrink_arenas() -> int:
    """Have each session of this process give back what its arena does not use, once its next run is over.

    This sets ONNX Runtime's run option `memory.enable_memory_arena_shrinkage`. Memory in use stays, so no
    stream is disturbed.

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


class Interruption:
    """Interrupts runs of sessions: those under way when `end` is called, and all later ones, of threads that
    are inside of the context `within`.

    Attributes
    ----------
    over : bool
        Whether `end` was called: a run that failed since then was broken off.
    """

    def __init__(self) -> None:
        self.over = False
        self._running: list[ort.RunOptions] = []
        self._lock = Lock()

    def end(self) -> None:
        """Interrupt the runs under way and every later one. Callable from any thread; returns at once."""
        with self._lock:
            self.over = True
            for options in self._running:
                options.terminate = True

    @contextmanager
    def within(self) -> Iterator[None]:
        """A context in which this thread's runs can be interrupted."""
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)

    @contextmanager
    def watching(self, options: ort.RunOptions) -> Iterator[None]:
        """A context around a run with these options, which `end` interrupts."""
        with self._lock:
            options.terminate = self.over
            self._running.append(options)
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(options)


_current: ContextVar[Interruption | None] = ContextVar("interruption", default=None)
