"""Priority of the threads that speak: macOS' quality of service, cores, and when garbage is collected.

Quality of service and cores are set only if the configuration asks for them. If the system does not offer
them, the caller gets the reason.
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import platform
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import EngineConfig

log = logging.getLogger(__name__)

USER_INTERACTIVE = 0x21
"""`QOS_CLASS_USER_INTERACTIVE` of macOS' <sys/qos.h>."""
_this_thread = threading.local()
_warned: set[str] = set()


def user_interactive() -> str | None:
    """Put the calling thread into macOS' user-interactive class; returns None, or the reason why this failed.

    A thread's class is not inherited by threads that it starts, so each asks for itself, once. ONNX Runtime's
    own threads keep the default class: no code of ours runs in them.

    Source: `pthread_set_qos_class_self_np` of <pthread/qos.h>, macOS 10.10 and later.
    """
    if getattr(_this_thread, "is_interactive", False):
        return None
    if platform.system() != "Darwin":  # with sys.platform, the type checker would skip the rest
        return f"{platform.system()} has no classes of service: KOKORO_CORES pins threads where it can"
    code = ctypes.CDLL(None).pthread_set_qos_class_self_np(ctypes.c_uint(USER_INTERACTIVE), ctypes.c_int(0))
    if code:
        return f"macOS refused the user-interactive class: {os.strerror(code)}"
    _this_thread.is_interactive = True
    return None


def pin(cores: Sequence[int]) -> str | None:
    """Keep the calling thread, and threads that it starts from now on, on `cores`; returns None, or the
    reason why this failed.

    Source: `sched_setaffinity` of Linux. macOS has no such call.
    """
    setter = getattr(os, "sched_setaffinity", None)
    if setter is None:
        return f"{platform.system()} does not let a program choose its cores"
    try:
        setter(0, set(cores))
    except OSError as error:
        return f"cores {','.join(map(str, cores))} are not available: {error.strerror}"
    return None


def prepare(config: EngineConfig) -> tuple[Fallback, ...]:
    """Apply the priority and cores of `config` before an engine's sessions start their threads; returns what
    could not be done.

    Threads of a session stay on the cores of the thread that made it.
    """
    reasons = []
    if config.cores:
        reasons.append(pin(config.core_numbers))
    if config.qos == "interactive":
        reasons.append(user_interactive())
    fallbacks = tuple(Fallback("scheduling", reason) for reason in reasons if reason)
    for fallback in fallbacks:
        _warned.add(fallback.reason)
        log.warning("Scheduling: %s", fallback.reason)
    return fallbacks


def enter_playback(qos: Literal["off", "interactive"]) -> Fallback | None:
    """Give the calling thread, which plays samples or hands them over, the class that `qos` names.

    Both threads of the player ask for the class. The thread that plays waits for a lock while the other fills
    the ring buffer, so a slow thread would delay it.

    Returns
    -------
    Fallback or None
        Why the class could not be set. It is logged once a process, however many threads ask.
    """
    reason = user_interactive() if qos == "interactive" else None
    if reason is None:
        return None
    if reason not in _warned:
        _warned.add(reason)
        log.warning("Scheduling: %s", reason)
    return Fallback("scheduling", reason)


def give_way(by: int) -> None:
    """Lower the priority of this process, and of those that it starts from now on. Their niceness is then at
    least `by`; on a system without niceness, nothing happens."""
    if hasattr(os, "nice"):
        os.nice(max(0, by - os.nice(0)))


def keep_collector_off() -> None:
    """Let the garbage collector ignore all objects that are loaded now. Dictionaries alone are 180,000
    objects, for which every thread would wait 70 ms at each collection.

    Call this when everything is loaded, in a process that the engine has to itself.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def loaded_without_collector() -> Iterator[None]:
    """A context for loading without garbage collection; later collections ignore the loaded objects as well.

    It lets a program sound sooner: in `speak` the collector ran three times before the first sound, for 140
    ms in all, and sometimes later, when it delayed Ctrl-C.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
