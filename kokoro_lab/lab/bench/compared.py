"""Streams laid beside the same speech undisturbed: what a table of them shows, and what it must show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kokoro_lab.lab.bench.received import ReceivedStream, differences
from kokoro_lab.lab.results import Check, NegativeControl, Run


@dataclass(slots=True)
class ComparedStreams:
    """What became of several streams.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a stream, which ends in what `compared` finds.
    ran : mapping
        What the server says of itself.
    controls : list of NegativeControl
        Of the comparison.
    """

    table: pd.DataFrame
    ran: Mapping[str, Any]
    controls: list[NegativeControl]

    @property
    def exact(self) -> pd.Series:
        """Of each stream, whether what was heard is the undisturbed one, sample for sample."""
        return exact(self.table)

    def finish(
        self, run: Run, asked: int, checks: Sequence[Check], figures: Mapping[str, float]
    ) -> dict[str, Any]:
        """Write the verdict into `run`: `asked` streams, all of them exact, and `checks` besides.

        Raises
        ------
        GateFailed
            One of these does not hold.
        """
        return run.finish(
            self.ran,
            checks=[
                Check("streams_count", len(self.table), low=asked, high=asked),
                Check("streams_that_differ_count", (~self.exact).sum(), high=0),
                *checks,
            ],
            controls=self.controls,
            figures=figures,
            details={"streams": self.table.to_dict("records")},
        )


def exact(table: pd.DataFrame) -> pd.Series:
    """Of each row, whether no sample differs and none is missing."""
    return (table.differing_samples == 0) & (table.missing_samples == 0)


def compared(heard: ReceivedStream, whole: ReceivedStream) -> dict[str, int]:
    """By `differences`: differing_samples, missing_samples."""
    differing, missing = differences(heard.pcm, whole.pcm)
    return {"differing_samples": differing, "missing_samples": missing}


def spread(name: str, seconds: Sequence[float] | pd.Series, *asked: str) -> dict[str, float]:
    """Figures of `seconds` by their names, those of p50, p95 and max that are asked for.

    Not a number where there are no values. Of fewer than 20, p95 is nearly the max.
    """
    of = pd.Series(seconds, dtype=float)
    found = {"p50": of.median(), "p95": of.quantile(0.95), "max": of.max()}
    return {f"{name}_{figure}_s": found[figure] for figure in asked}
