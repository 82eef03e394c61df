"""What the listeners' answers show, in a table and in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from kokoro_lab.metrics import abx

EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class ListeningResult:
    """Counts of right answers, of those who have answered every trial.

    Parameters
    ----------
    counts : mapping
        Listener → right answers and trials.
    unfinished : mapping
        Listener → answers so far and trials. How many were right is not told: whoever stops when it
        looks good finds what is not there.
    """

    counts: Mapping[str, tuple[int, int]]
    unfinished: Mapping[str, tuple[int, int]]

    @property
    def pooled(self) -> abx.PooledListeners | None:
        """All listeners as one; None while nobody has come to the end."""
        return abx.pool(self.counts) if self.counts else None

    def figures(self) -> dict[str, float]:
        """For `result.json`; empty while nobody has come to the end."""
        pooled = self.pooled
        if pooled is None:
            return {}
        found = pooled.outcome
        return {
            "human_listeners_count": pooled.listeners,
            "human_trials_count": found.trials,
            "human_right_count": found.right,
            "human_proportion_right": found.proportion,
            "human_p": found.p,
            "human_proportion_right_upper_95": found.upper,
            "human_d_prime": found.d_prime,
            "human_power_at_70_percent": abx.power(found.trials, abx.INAUDIBLE_BELOW),
            "human_listeners_differ_p": pooled.differ_p,
        }

    def table(self) -> pd.DataFrame:
        """A row a listener, and one for all of them if there are several."""
        rows = dict(self.counts)
        pooled = self.pooled
        if pooled is not None and pooled.listeners > 1:
            rows[EVERYBODY] = (pooled.outcome.right, pooled.outcome.trials)
        return pd.DataFrame([_row(name, abx.outcome(*count)) for name, count in rows.items()])

    def sentences(self) -> list[str]:
        """What the answers show, what they do not, and what it would take."""
        said = [
            f"{name} has answered {done} of {trials} trials and is not counted."
            for name, (done, trials) in self.unfinished.items()
        ]
        pooled = self.pooled
        if pooled is None:
            return [*said, "Nobody has answered every trial yet."]
        found = pooled.outcome
        said += [_heard(found), _power(found), _inaudible(found)]
        if pooled.listeners > 1:
            said.append(_together(pooled))
        return said


def _row(name: str, found: abx.AbxResult) -> dict[str, object]:
    return {
        "listener": name,
        "right": found.right,
        "trials": found.trials,
        "proportion": found.proportion,
        "p": found.p,
        "low_95": found.interval[0],
        "high_95": found.interval[1],
        "upper_95_one_sided": found.upper,
        "d_prime": found.d_prime,
    }


def _heard(found: abx.AbxResult) -> str:
    counted = f"{found.right} of {found.trials} right"
    if found.heard:
        return f"{counted}: a difference is heard (p = {found.p:.2g}, d′ = {found.d_prime:.2f})."
    return f"{counted}: no difference is shown to be heard (p = {found.p:.2g})."


def _power(found: abx.AbxResult) -> str:
    least = abx.fewest_right(found.trials)
    if least is None:
        return f"{found.trials} trials are too few to show anything, were every one of them right."
    chances = ", ".join(f"{rate:.0%}: {abx.power(found.trials, rate):.0%}" for rate in (0.6, 0.7, 0.9))
    return (
        f"{least} of {found.trials} would have been significant. The chance that this test finds a listener "
        f"who is right in so many trials: {chances}."
    )


def _inaudible(found: abx.AbxResult) -> str:
    bound = abx.INAUDIBLE_BELOW
    limit = f"the true proportion is below {found.upper:.3f} with 95 % confidence"
    if found.shown_inaudible() and found.heard:
        return f"It is heard now and then at most: {limit}."
    if found.shown_inaudible():
        return f"Inaudibility (below {bound:.2f}) is shown: {limit}."
    trials, most = abx.trials_to_show()
    return (
        f"Inaudibility (below {bound:.2f}) is not shown: {limit}. It takes {trials} trials with at most "
        f"{most} right, or more trials."
    )


def _together(pooled: abx.PooledListeners) -> str:
    if pooled.differ:
        return (
            f"The {pooled.listeners} listeners differ (p = {pooled.differ_p:.2g}): what is said of all of "
            "them together describes none of them. Read the table listener by listener."
        )
    return (
        f"The {pooled.listeners} listeners are not shown to differ (p = {pooled.differ_p:.2g}), so their "
        "answers are added up; few trials each would hide a keen ear."
    )
