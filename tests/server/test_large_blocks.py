"""Memory that was freed goes back to the system, whatever is still in use beside it."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from kokoro_lab.server.health.watchdog import give_large_blocks_back

GLIBC = "import ctypes; print(hasattr(ctypes.CDLL(None), 'gnu_get_libc_version'))"
KEEPS = """
import sys, psutil
from kokoro_lab.server.health.watchdog import give_large_blocks_back
if sys.argv[1] == "fixed":
    assert give_large_blocks_back()
def resident_mb():
    return psutil.Process().memory_info().rss / 2**20
bytearray(2**24)  # freed at once: what is as large comes from the heap from now on
before_mb = resident_mb()
large, small = [], []
for _ in range(100):
    large.append(bytearray(2**20))
    large[-1][::4096] = bytes(256)  # every page is there only when something was written to it
    small.append(bytearray(2_000))
large.clear()
print(resident_mb() - before_mb)
"""


def kept_mb(how: str) -> float:
    done = subprocess.run([sys.executable, "-c", KEEPS, how], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_holes_between_small_blocks_are_not_kept() -> None:
    if subprocess.run([sys.executable, "-c", GLIBC], capture_output=True, text=True).stdout.strip() != "True":
        pytest.skip("another C library than glibc")
    assert kept_mb("as it is") > 50
    assert kept_mb("fixed") < 10


def test_a_library_without_the_option_is_left_alone() -> None:
    assert give_large_blocks_back(SimpleNamespace()) is False


def test_a_library_that_refuses_is_told() -> None:
    assert give_large_blocks_back(SimpleNamespace(mallopt=lambda option, value: 0)) is False
