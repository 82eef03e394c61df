"""The common style of plots: fonts, size, title and caption, and how a plot is shown."""

from __future__ import annotations

import io
import re
import warnings
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import getdoc
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from kokoro_lab.lab.markup import filled
from kokoro_lab.lab.plots.palette import BLUE, GROUND, INK, MUTED, ON_DARK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

PIXELS_PER_INCH = 144
"""Two pixels a point."""
_STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "svg.fonttype": "none",  # a reader's own fonts have the letters of every script
    "svg.hashsalt": "kokoro_lab",  # so that the same data is the same picture
    "axes.titlesize": 10,
    "legend.fontsize": 9,
    "lines.color": BLUE,
    **dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), "none"),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), MUTED),
}
_LIGHT = "".join(f"--c{one[1:]}:{one};" for one in ON_DARK)
_DARK = "".join(f"--c{one[1:]}:{other};" for one, other in ON_DARK.items())
_COLOURS = f"<style>:root{{{_LIGHT}}}@media (prefers-color-scheme: dark){{:root{{{_DARK}}}}}</style>"


@dataclass(frozen=True)
class Plot:
    """A picture with its title, caption and description, which shows itself in a notebook, on a light and on
    a dark ground.

    Parameters
    ----------
    title : str
    caption : str
        The meaning of the marks; for a plot without a picture, the reason why there is none.
    alt : str
        A description for readers who cannot see the picture.
    figure : matplotlib.figure.Figure, optional
        None if there is no data, since an empty frame would tell nothing.
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
        if self.figure is None:
            return filled("plots/plot", plot=self)
        picture = f"data:image/svg+xml;base64,{b64encode(self.svg().encode()).decode()}"
        width_px = int(96 * self.figure.get_figwidth())
        return filled("plots/plot", plot=self, picture=picture, width_px=width_px)

    def svg(self) -> str:
        """The picture as SVG. Its colours are CSS variables, so one file suits a light and a dark page,
        whichever the reader's system prefers."""
        written = io.StringIO()
        self.savefig(written, format="svg", facecolor="none", metadata=dict.fromkeys(("Date", "Creator")))
        text = written.getvalue().replace("'DejaVu Sans'", "system-ui, sans-serif")
        for colour in ON_DARK:
            text = text.replace(colour, f"var(--c{colour[1:]})")
        return text.replace("<defs>", f"<defs>{_COLOURS}", 1)

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
            warnings.filterwarnings("ignore", "Glyph .* missing")  # the reader's fonts have the glyph
            self.figure.savefig(target, **{"facecolor": GROUND, "dpi": PIXELS_PER_INCH, **options})


class Drawing(NamedTuple):
    """The return value of a plot's function: a figure with its description, or None with the reason. `note`
    is added to the caption of this figure only; a title replaces the docstring's."""

    figure: Figure | None
    alt: str
    note: str = ""
    title: str = ""


_Arguments = ParamSpec("_Arguments")


def plotted(none: str = "") -> Callable[[Callable[_Arguments, Drawing]], Callable[_Arguments, Plot]]:
    """Decorates a function that draws in the common style. The first line of its docstring is the title of
    the plot, and the next paragraph the caption, so that the meaning of marks is written once, for readers of
    code and plot. If `none` is given and the function's first argument is empty, the function is not called:
    the plot then has no figure and says `none`."""

    def decorated(draw: Callable[_Arguments, Drawing]) -> Callable[_Arguments, Plot]:
        words = [" ".join(part.split()) for part in str(getdoc(draw)).split("\n\n")]
        title, caption = words[0].rstrip("."), words[1]

        @wraps(draw)
        def drawn(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Plot:
            import matplotlib

            first: Any = (*args, *kwargs.values())[0]
            if none and not len(first):
                return Plot(title, none)
            with matplotlib.rc_context(_STYLE):
                figure, alt, note, own_title = draw(*args, **kwargs)
            if figure is None:
                return Plot(own_title or title, alt)
            return Plot(own_title or title, f"{caption} {note}".strip(), alt, figure)

        return drawn

    return decorated


def panels(
    rows: int = 1, columns: int = 1, *, height: float, width: float = 10.0, **options: Any
) -> tuple[Figure, list[Axes]]:
    """An empty figure with panels in rows and columns. Sizes are in inches; `options` are those of
    `Figure.subplots`.

    The figure is not registered with pyplot, which would show it a second time at the end of the cell.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def bare(axes: Axes, *sides: str) -> None:
    """Remove the lines at these sides of a panel."""
    axes.spines[list(sides)].set_visible(False)


def named(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of a panel, from the top."""
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(max(1, len(names)) - 0.5, -0.5))
    axes.tick_params(axis="y", length=0)


def plain(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers instead of powers of ten."""
    from matplotlib.ticker import LogLocator

    axis.set_minor_locator(LogLocator(subs=(2, 3, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("{x:g}")
    axis.set_tick_params(which="both", labelsize=9)


def counted(number: int, noun: str) -> str:
    """`1 clip`, `2 clips`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(values: Sequence[object]) -> str:
    """Values joined by semicolons, with a full stop at the end."""
    return f"{'; '.join(map(str, values))}."
