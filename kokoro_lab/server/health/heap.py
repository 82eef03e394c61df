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
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of `malloc.h`."""
LARGE_BYTES = 256 * 2**10


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


def give_large_blocks_back(library: Any = None) -> bool:
    """Have large blocks come from the system one by one, so that they go back to it when they are freed.

    glibc serves blocks above a threshold by `mmap`, and raises that threshold to the size of whatever is
    freed (`mallopt(3)`, M_MMAP_THRESHOLD). Soon the arrays of a segment, some megabytes each and of another
    length every time, come from the heap, whose holes fit nobody: over 70 streams a server grew from 1.0 to
    1.4 GB. This fixes the threshold for the process, which must be one of its own; False where the C library
    has none.

    Parameters
    ----------
    library : ctypes.CDLL, optional
        The C library, unless a test has another.
    """
    library = _c_library() if library is None else library
    if not hasattr(library, "mallopt"):  # macOS and musl give large blocks back as it is
        return False
    return all(library.mallopt(option, LARGE_BYTES) == 1 for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD))


@cache
def _c_library() -> Any:
    return ctypes.CDLL(None)
