"""Gates: an engine speaks the fixtures, metrics measure the files, limits decide. A file a gate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pandas as pd

    from kokoro_lab.lab.results import Check, NegativeControl


@runtime_checkable
class Gate(Protocol):
    """What the module of every gate has; which arguments its functions take depends on what it judges.

    Most have `worst`, too: what to look at, or listen to, first.
    """

    measure: Callable[..., pd.DataFrame]
    """What was found: a row a clip, a pair, or whatever is judged."""
    judge: Callable[..., list[Check]]
    """The checks of such a table, each with its limits."""
    figures: Callable[..., dict[str, float]]
    """What else the table says, by names that end in units."""
    controls: Callable[..., list[NegativeControl]]
    """Faults put in on purpose, which the same judge must refuse."""
