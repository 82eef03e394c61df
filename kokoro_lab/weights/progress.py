"""Progress bars on standard error, for work of more than two seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Tick = Callable[[int], None]
Step = Callable[[str], None]


@contextmanager
def progress_bar(what: str, total: int, shown: bool) -> Iterator[Tick]:
    """A bar of bytes, if standard error is a terminal; yields a function to call with the number of bytes
    added."""
    with _bar(what, total, shown, unit="B", unit_scale=True, mininterval=0.3) as bar:
        yield lambda n: bar.update(n) and None


@contextmanager
def step_bar(what: str, steps: int, shown: bool) -> Iterator[Step]:
    """A bar of named steps, if standard error is a terminal; yields a function to call with the step that
    begins.

    Nothing is drawn into a log or a pipe, whose readers get a line instead.
    """
    shape = "{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt}, {elapsed}{postfix}"
    with _bar(what, steps, shown, bar_format=shape) as bar:
        begun = 0

        def begins(name: str) -> None:
            nonlocal begun
            bar.update(min(begun, 1))
            bar.set_postfix_str(name)
            begun += 1

        yield begins
        bar.set_postfix_str("done")
        bar.update(steps - bar.n)


def untold(_: str) -> None:
    """A `Step` that does nothing."""


def _bar(what: str, total: int, shown: bool, **options: Any) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, desc=what, disable=None if shown else True, file=sys.stderr, **options)
