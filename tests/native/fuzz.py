"""Looks for cases that bring our operators down: python -m tests.native.fuzz SECONDS [FIRST_SEED].

Each round draws a right case of each operator and compares what comes of it with NumPy, breaks it in several
ways, none of which may crash, and has each call of ONNX Runtime's interface and each allocation in it fail
once, which must be an error and nothing else. A seed tells which round it was: `tests/native/seeds.txt` keeps
those that found something.
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tests.native.cases import DRAWN, Right, broken
from tests.native.driver import PROCESSORS, Crashed, Driver, build

BROKEN_A_CASE = 8
MOST_FAILURES = 60
"""Calls and allocations of one case that are made to fail, beginning with the first."""


def seeds() -> list[tuple[str, int]]:
    """Operators and rounds that once failed."""
    lines = Path(__file__).with_name("seeds.txt").read_text().splitlines()
    kept = (line.split() for line in lines if line and not line.startswith("#"))
    return [(name, int(seed)) for name, seed in kept]


def check(driver: Driver, operator: str, seed: int) -> Counter[str]:
    """One round of one operator; how many cases of each kind it had.

    Raises
    ------
    AssertionError
        Something is wrong with the operator.
    """
    rng = np.random.default_rng([seed, zlib.crc32(operator.encode())])
    right = DRAWN[operator](rng)
    place = f"{operator} {seed}"
    found = Counter(right=1)
    clean = driver.run(right.case)
    assert clean.code == 0, f"{place}: {clean.message}"
    assert not clean.unwritten, f"{place}: {clean.unwritten} values were never written"
    compare(right, clean.outputs, place)
    for number in range(min(clean.calls, MOST_FAILURES)):
        outcome = driver.run(right.case, failing_call=number)
        assert outcome.message == "failed on purpose", f"{place}: call {number} failed, {outcome.message!r}"
    found["failed calls"] += min(clean.calls, MOST_FAILURES)
    # Threads keep what they have been given, so the second run may not ask for it again
    for number in range(min(clean.allocations, MOST_FAILURES)):
        outcome = driver.run(right.case, failing_allocation=number)
        assert outcome.code == 0 or "allocate" in outcome.message, f"{place}: allocation {number}"
        found["failed allocations"] += outcome.code != 0
    for _ in range(BROKEN_A_CASE):
        outcome = driver.run(broken(right.case, rng))
        found["refused" if outcome.code else "answered"] += 1
        assert outcome.code or not outcome.unwritten, f"{place}: values were never written"
    compare(right, driver.run(right.case).outputs, f"{place}, after the broken ones")
    return found


def compare(right: Right, outputs: Iterable[np.ndarray], place: str) -> None:
    for made, expected in zip(outputs, right.expected, strict=True):
        assert made.shape == expected.shape, f"{place}: {made.shape} instead of {expected.shape}"
        if not made.size:
            continue
        assert np.isfinite(made).all(), f"{place}: not finite"
        if made.ndim:
            made, expected = made[..., right.columns], expected[..., right.columns]
        worst = np.abs(made - expected).max(initial=0)
        assert worst <= right.tolerance, f"{place}: {worst} away, {right.tolerance} allowed"


def rounds(driver: Driver, budget_s: float, first: int) -> Counter[str]:
    """As many rounds as the time allows, from the one with this seed on: one at least."""
    found: Counter[str] = Counter()
    end = time.monotonic() + budget_s
    seed = first
    while True:
        for operator in DRAWN:
            try:
                found += check(driver, operator, seed)
            except Crashed as error:
                raise Crashed(f"{operator} {seed}: {error}") from None
        found["rounds"] += 1
        seed += 1
        if time.monotonic() > end:
            return found


def main() -> None:
    budget_s, first = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        for processor in PROCESSORS:
            with Driver(build(Path(folder), processor)) as driver:
                found = rounds(driver, budget_s / len(PROCESSORS), first)
            print(processor, dict(found), flush=True)


if __name__ == "__main__":
    main()
