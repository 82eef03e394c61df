"""How an error falls with training, and what longer training would reach: a power law, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from kokoro_lab.metrics.intervals import Estimate

LEFT_OUT = 0.25
"""The first part of the training time, as a share of it, which is not fitted: the power law holds only
later."""
FEWEST = 4
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True, eq=False)
class Growth:
    """A straight line through logarithms: error = 10^(level + slope · log10(seconds)).

    Parameters
    ----------
    line : numpy.ndarray
        Slope and level.
    covariance : numpy.ndarray
        Covariance of slope and level.
    spread : float
        Variance of log10(error) around the line.
    points : int
        Number of points that the line was fitted to.
    """

    line: np.ndarray
    covariance: np.ndarray
    spread: float
    points: int

    @classmethod
    def of(cls, history: pd.DataFrame) -> Growth:
        """Fit the line to the table of `Training.history` without its first part (`LEFT_OUT`).

        Raises
        ------
        ValueError
            After its first part is left out, the history has fewer than `FEWEST` points.
        """
        later = history[history.compute_s > LEFT_OUT * history.compute_s.max()]
        if len(later) < FEWEST:
            raise ValueError(f"a line needs {FEWEST} points, but training was judged {len(later)} times")
        seconds, wrong = np.log10(later.compute_s), np.log10(later.error_ratio)
        line, covariance = np.polyfit(seconds, wrong, 1, cov=True)
        rest = wrong - np.polyval(line, seconds)
        return cls(line, covariance, float(rest @ rest) / (len(later) - 2), len(later))

    def at(self, seconds: float) -> Estimate:
        """The error (`error_ratio`) after `seconds` of training, with the 95 % interval of a prediction.

        The interval supposes that the power law goes on. It takes no account of a floor below which the error
        cannot fall.
        """
        place = np.array([np.log10(seconds), 1.0])
        middle = float(place @ self.line)
        around = float(np.sqrt(place @ self.covariance @ place + self.spread))
        half = float(student.ppf(0.975, self.points - 2)) * around
        value, low, high = (10.0**exponent for exponent in (middle, middle - half, middle + half))
        return Estimate(value, low, high, self.points)


def loss_at(errors: np.ndarray, losses: np.ndarray, wanted: float) -> float:
    """The loss of PESQ at the error `wanted`, by a power law through the measured `errors` and `losses`: a
    line of log(loss) over log(error)."""
    slope, level = np.polyfit(np.log10(errors), np.log10(np.maximum(losses, 1e-3)), 1)
    return float(10.0 ** (level + slope * np.log10(wanted)))
