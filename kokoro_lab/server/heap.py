"""Memory of this process: how much it has, how much there is, and how what was freed is given back."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import psutil

MB = 2**20
SHARE = 0.75
"""Of all memory, where no limit is set: the rest is for whoever else lives here."""
_CGROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where Linux says what a container may have: of the second and of the first version."""


def resident_mb() -> float:
    """Resident memory of this process, in MiB."""
    return float(psutil.Process().memory_info().rss / MB)


def given_mb(cgroups: tuple[Path, ...] = _CGROUPS) -> float:
    """What the machine has, or the container if that is less, in MiB."""
    found = [float(psutil.virtual_memory().total / MB)]
    for path in cgroups:
        try:
            found.append(int(path.read_text()) / MB)
        except (OSError, ValueError):  # not this version, or `max`: no limit
            continue
    return min(found)


def limit_of(asked_mb: int) -> float:
    """The limit that a setting means, in MiB: itself, or where it is 0 a share of what there is."""
    return float(asked_mb) if asked_mb else round(SHARE * given_mb(), 1)


def give_back_freed() -> bool:
    """Have the C library hand back to the system what was freed; False where it has no way to.

    glibc keeps freed memory in its lists (`malloc_trim`), macOS in its zones (`malloc_zone_pressure_relief`).
    Takes milliseconds, in which others may allocate.
    """
    library = _c_library()
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(ctypes.c_size_t(0))
        return True
    if hasattr(library, "malloc_zone_pressure_relief"):
        library.malloc_zone_pressure_relief(None, ctypes.c_size_t(0))
        return True
    return False


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None)
