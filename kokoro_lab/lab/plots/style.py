"""Where every plot begins: its colours, its lettering, its size, and how it is shown.

Colours are those of Okabe and Ito, which people tell apart who do not see red or green, darkened for a light
ground and lightened for a dark one. A plot is drawn in those of a light ground; its picture names the other.
"""

from __future__ import annotations

import io
import re
import warnings
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any, ParamSpec

from kokoro_lab.lab.results.units import unit_of, words_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

INK, MUTED, LINE, GROUND = "#1b1e23", "#5a626d", "#d9dde3", "#ffffff"
BLUE, ORANGE, GREEN, YELLOW, PURPLE = "#0072b2", "#c25100", "#00694b", "#6b5200", "#b8498c"
ON_DARK = {
    INK: "#e8eaed",
    MUTED: "#a3abb6",
    LINE: "#363c45",
    GROUND: "#15181c",
    BLUE: "#56b4e9",
    ORANGE: "#f0944d",
    GREEN: "#4fcfa4",
    YELLOW: "#e9d94f",
    PURPLE: "#cc5fa3",
}
"""Colour on a light ground → the same on a dark one."""
SERIES = (BLUE, ORANGE, GREEN, PURPLE, YELLOW, MUTED)
LINE_STYLES = ("-", "--", ":", "-.")
GOOD, BAD = BLUE, ORANGE
PALE = 0.4
"""Opacity of a ground on which text is read."""

PIXELS_PER_INCH = 144
"""Two pixels a point."""
WIDEST_INCHES = 10.0

_STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "svg.fonttype": "none",  # a reader's own fonts have the letters of every script
    "svg.hashsalt": "kokoro_lab",  # so that the same data is the same picture
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "lines.color": BLUE,
    "patch.edgecolor": INK,
}
_SHEET = (
    f"<style>:root{{{''.join(f'--c{one[1:]}:{one};' for one in ON_DARK)}}}@media (prefers-color-scheme: dark)"
    f"{{:root{{{''.join(f'--c{one[1:]}:{other};' for one, other in ON_DARK.items())}}}}}</style>"
)
# JupyterLab's theme is not the system's
_JUPYTER = "".join(
    f"[data-jp-theme-light={light}] .lm-Widget .plot{{color-scheme:{scheme}}}"
    for light, scheme in (("true", "light"), ("false", "dark"))
)


@dataclass(frozen=True)
class Plot:
    """A picture with the words that it needs; shows itself in a notebook, on a light and on a dark ground.

    Parameters
    ----------
    title : str
    caption : str
        What the marks mean; of a plot without a picture, why there is nothing to see.
    alt : str
        What is to be seen, for who does not see it.
    figure : matplotlib.figure.Figure, optional
        None where there is no data: a frame without data says nothing.
    """

    title: str
    caption: str
    alt: str = ""
    figure: Figure | None = None

    def __post_init__(self) -> None:
        for name in ("title", "caption", "alt"):
            object.__setattr__(self, name, re.sub(r"(?<![\w-])-(?=\d)", "−", getattr(self, name)))

    def __repr__(self) -> str:
        return f"{self.title}. {self.alt or self.caption}"

    def _repr_html_(self) -> str:
        words = f"<b>{escape(self.title)}.</b> {escape(self.caption)}"
        if self.figure is None:
            return f'<p class="plot">{words}</p>'
        width_px = int(96 * self.figure.get_figwidth())
        picture = f"data:image/svg+xml;base64,{b64encode(self.svg().encode()).decode()}"
        # A phone moves a wide plot to the side: lettering of 4 pixels is read by nobody
        return (
            f'<figure class="plot" style="margin:1em 0"><style>{_JUPYTER}</style>'
            f'<figcaption style="margin-bottom:.5em;max-width:60em">{words}</figcaption>'
            f'<div style="overflow-x:auto" tabindex="0" role="group" aria-label="{escape(self.title)}">'
            f'<img src="{picture}" alt="{escape(self.alt)}" '
            f'style="display:block;width:{width_px}px;min-width:{min(640, width_px)}px;max-width:100%">'
            "</div></figure>"
        )

    def svg(self) -> str:
        """The picture; it takes the colours of the ground that its reader prefers."""
        written = io.StringIO()
        self.savefig(written, format="svg", facecolor="none", metadata=dict.fromkeys(("Date", "Creator")))
        text = written.getvalue().replace("'DejaVu Sans'", "system-ui, sans-serif")
        for colour in ON_DARK:
            text = text.replace(colour, f"var(--c{colour[1:]})")
        return text.replace("<defs>", f"<defs>{_SHEET}", 1)

    def savefig(self, target: Any, **options: Any) -> None:
        """Write the picture on a light ground, as `Figure.savefig` does, in two pixels a point.

        Raises
        ------
        ValueError
            There is no data.
        """
        import matplotlib

        if self.figure is None:
            raise ValueError(f"{self!r} Nothing can be drawn.")
        with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have it
            self.figure.savefig(target, **{"facecolor": GROUND, "dpi": PIXELS_PER_INCH, **options})


_Arguments = ParamSpec("_Arguments")


def styled(draw: Callable[_Arguments, Plot]) -> Callable[_Arguments, Plot]:
    """A function that draws in the one style, whatever matplotlib's settings are."""

    @wraps(draw)
    def drawn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Plot:
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return drawn


def panels(
    rows: int = 1, columns: int = 1, *, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[Axes]]:
    """An empty figure of so many panels, row by row; `size` in inches, `options` as of `Figure.subplots`.

    No pyplot knows of it: what that knows of is shown a second time at the end of its cell.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def bare(axes: Axes, *sides: str) -> None:
    """Without the lines at these sides of a panel."""
    axes.spines[list(sides)].set_visible(False)


def label_of(column: str) -> str:
    """A column's name as an axis has it: words, then the unit."""
    words, unit = words_of(column), unit_of(column)
    return f"{words}, {unit}" if unit and unit != words else words


def named(axes: Axes, names: Any) -> None:
    """A row each, from the top, with its name."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(max(1, len(names)) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)


def plain(axis: Axis) -> None:
    """Numbers on a logarithmic axis as one says them, and not as powers of ten."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="both", labelsize=9)


def counted(number: int, noun: str) -> str:
    """`1 clip`, `2 clips`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
