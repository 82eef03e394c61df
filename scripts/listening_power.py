"""Prints how often a panel of ten with 40 trials each ends in which outcome, by what its listeners hear.

The rule is that of `kokoro_lab.lab.listening.protocol`. The test whether listeners differ is the chi-square
test with its asymptote here, which is close with 20 expected answers of each kind, and fast.
"""

from __future__ import annotations

import click
import numpy as np
from scipy import stats

from kokoro_lab.metrics.abx import CHANCE, INAUDIBLE_BELOW, ODD_P
from kokoro_lab.metrics.intervals import ALPHA

LISTENERS, TRIALS, PANELS = 10, 40, 20_000
HEARING = {
    "all guess": [0.5] * LISTENERS,
    "all are right in 55 %": [0.55] * LISTENERS,
    "all are right in 60 %": [0.6] * LISTENERS,
    "one is right in 80 %, nine guess": [0.8] + [0.5] * (LISTENERS - 1),
    "three are right in 80 %, seven guess": [0.8] * 3 + [0.5] * (LISTENERS - 3),
}


def outcomes(proportions: list[float]) -> dict[str, float]:
    """The shares of panels in which a difference is heard, inaudibility is shown, or nothing is shown."""
    right = np.random.default_rng(0).binomial(TRIALS, proportions, (PANELS, LISTENERS))
    total = right.sum(axis=1)
    mean = total / LISTENERS
    spread = ((right - mean[:, None]) ** 2).sum(axis=1) / (mean * (1 - mean / TRIALS))
    differ = stats.chi2.sf(spread, LISTENERS - 1) <= ALPHA
    alone = (stats.binom.sf(right - 1, TRIALS, CHANCE) <= ALPHA / LISTENERS).any(axis=1)
    odd = (stats.binom.cdf(right, TRIALS, CHANCE) <= ODD_P).any(axis=1)
    together = stats.binom.sf(total - 1, LISTENERS * TRIALS, CHANCE) <= ALPHA
    heard = np.where(differ, alone, together & ~odd)
    below = stats.binom.cdf(total, LISTENERS * TRIALS, INAUDIBLE_BELOW) <= ALPHA
    inaudible = ~differ & ~odd & ~heard & below
    found = {"heard": heard.mean(), "inaudible": inaudible.mean()}
    return found | {"nothing shown": 1 - sum(found.values())}


if __name__ == "__main__":
    for about, proportions in HEARING.items():
        shares = ", ".join(f"{name} {share:.1%}" for name, share in outcomes(proportions).items())
        click.echo(f"{about}: {shares}")
