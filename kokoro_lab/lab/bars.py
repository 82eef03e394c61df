"""Progress bars on standard error, which a caller can switch off with `quiet`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import tqdm as bars

_QUIET = ContextVar("quiet", default=False)


@contextmanager
def quiet(silent: bool = True) -> Iterator[None]:
    """A context without bars, unless `silent` is False."""
    before = _QUIET.set(silent or _QUIET.get())
    try:
        yield
    finally:
        _QUIET.reset(before)


def tqdm(*arguments: Any, **options: Any) -> Any:
    """A bar of the library tqdm, with these arguments."""
    return bars.tqdm(*arguments, disable=_QUIET.get() or options.pop("disable", False), **options)
