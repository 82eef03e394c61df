"""What an accelerator takes of each graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kokoro_lab.lab.plots.layout import bare, panels

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_TAKEN, _REFUSED = "C0", "0.85"


def taken_by(table: pd.DataFrame, providers: dict[str, str]) -> Figure:
    """How much of each graph's arithmetic each provider takes, and in how many pieces.

    Parameters
    ----------
    table : pandas.DataFrame
        As `bench.provider_partitions.table` gives it.
    providers : dict of str to str
        Providers that are shown, each with the words above its column.
    """
    figure, beside = panels(1, len(providers), size=(4.2 * len(providers), 3.6), sharey=True)
    for axes, (provider, words) in zip(beside, providers.items(), strict=True):
        rows = table.xs(provider, level="provider")
        share = rows["operations taken, %"]
        axes.barh(rows.index, 100, color=_REFUSED)
        axes.barh(rows.index, share, color=_TAKEN)
        for k, (percent, pieces) in enumerate(zip(share, rows.partitions, strict=True)):
            said = "nothing" if pieces == 0 else f"{percent:.0f} % in {pieces} piece{'s' * (pieces > 1)}"
            dark = percent > 55
            axes.text(
                3 if dark else 97,
                k,
                said,
                ha="left" if dark else "right",
                va="center",
                fontsize=9,
                color="white" if dark else "black",
            )
        axes.set(xlim=(0, 100), xlabel="% of the arithmetic", title=words)
        bare(axes, "top", "right", "left")
    beside[0].invert_yaxis()
    return figure
