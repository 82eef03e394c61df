"""Large blocks of memory come from the system one by one, so that they go back to it when they are freed.

glibc serves blocks above a threshold by `mmap`, and raises that threshold to the size of whatever is freed
(`mallopt(3)`, M_MMAP_THRESHOLD). Soon the arrays of a segment, some megabytes each and of another length
every time, come from the heap, whose holes fit nobody: over 70 streams a server grew from 1.0 to 1.4 GB.
"""

from __future__ import annotations

import ctypes
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of `malloc.h`."""
LARGE_BYTES = 256 * 2**10


def give_large_blocks_back(library: Any = None) -> bool:
    """Fix the threshold for this process, which must be one of its own; False where the C library has none.

    Parameters
    ----------
    library : ctypes.CDLL, optional
        The C library, unless a test has another.
    """
    library = ctypes.CDLL(None) if library is None else library
    if not hasattr(library, "mallopt"):  # macOS and musl give large blocks back as it is
        return False
    return all(library.mallopt(option, LARGE_BYTES) == 1 for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD))
