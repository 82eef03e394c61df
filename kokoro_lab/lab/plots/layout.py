"""Where every figure begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many panels, row by row; `size` in inches, `options` as of `pyplot.subplots`.

    It is closed already: an open one is shown a second time at the end of its cell, by matplotlib itself.
    """
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)
    plt.close(figure)
    return figure, list(axes.flat)


def bare(axes: Axes, *sides: str) -> None:
    """Without the lines at these sides of a panel."""
    axes.spines[list(sides)].set_visible(False)
