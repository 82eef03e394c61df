"""Compares disturbed streams with the same speech undisturbed, and writes the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from kokoro_lab.lab.bench.received import ReceivedStream, differences
from kokoro_lab.lab.results import Check, NegativeControl, Run


@dataclass(slots=True)
class ComparedStreams:
    """Several disturbed streams, each compared with the same speech undisturbed.

    Parameters
    ----------
    table : pandas.DataFrame
        A row for each stream; the last columns are those of `compared`.
    ran : mapping
        What the server states about itself: see `OwnServer.facts`.
    controls : list of NegativeControl
        Negative controls of the comparison.
    """

    table: pd.DataFrame
    ran: Mapping[str, Any]
    controls: list[NegativeControl]

    @property
    def exact(self) -> pd.Series:
        """Whether each stream equals the undisturbed one, sample for sample."""
        return exact(self.table)

    def finish(
        self, run: Run, asked: int, checks: Sequence[Check], figures: Mapping[str, float]
    ) -> dict[str, Any]:
        """Write the verdict into `run`: it passes if there are `asked` streams, all exact, and all `checks`
        pass.

        Raises
        ------
        GateFailed
            A stream differs, or a check fails.
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
    """For each row, whether no sample differs or is missing."""
    return (table.differing_samples == 0) & (table.missing_samples == 0)


def compared(heard: ReceivedStream, whole: ReceivedStream) -> dict[str, int]:
    """The columns differing_samples and missing_samples, computed by `differences`."""
    differing, missing = differences(heard.pcm, whole.pcm)
    return {"differing_samples": differing, "missing_samples": missing}


def spread(name: str, seconds: Sequence[float] | pd.Series, *asked: str) -> dict[str, float]:
    """Figures of `seconds`, name → value: those of p50, p95 and max that are `asked` for.

    A figure is NaN if there are no values. With fewer than 20 values, p95 is nearly the maximum.
    """
    of = pd.Series(seconds, dtype=float)
    found = {"p50": of.median(), "p95": of.quantile(0.95), "max": of.max()}
    return {f"{name}_{figure}_s": found[figure] for figure in asked}
