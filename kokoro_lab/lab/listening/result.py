"""The result of a listening test: a sentence, a table, a picture, and sentences with the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

import pandas as pd

from kokoro_lab.lab.markup import filled
from kokoro_lab.metrics import abx
from kokoro_lab.metrics.intervals import ALPHA

EVERYBODY = "everybody"

Outcome = Literal["heard", "inaudible", "open", "odd"]


@dataclass(frozen=True, slots=True)
class ListeningResult:
    """Counts of right answers of the listeners who have answered every trial. In Jupyter it shows itself.

    Parameters
    ----------
    counts : mapping
        Listener → right answers and trials.
    unfinished : mapping
        Listener → answers so far and trials. The number of right answers stays hidden, since a test that is
        stopped when it looks good is biased.
    inattentive : mapping
        Listener who missed too many catch trials to be counted → number of catch trials missed, and of catch
        trials.
    planned : int
        How many listeners the protocol asks for. Until they have finished, no result is shown; 0 without a
        protocol.
    catches : int
        How many catch trials each listener has.
    """

    counts: Mapping[str, tuple[int, int]]
    unfinished: Mapping[str, tuple[int, int]]
    inattentive: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    planned: int = 0
    catches: int = 0

    @property
    def finished(self) -> int:
        """How many listeners have answered every trial, those who are not counted included."""
        return len(self.counts) + len(self.inattentive)

    @property
    def pooled(self) -> abx.PooledListeners | None:
        """The answers of all listeners together; None before all that are planned have finished, or if there
        is nobody to count."""
        waiting = self.finished < self.planned
        return None if waiting or not self.counts else _pooled(tuple(self.counts.items()))

    @property
    def odd_listeners(self) -> list[str]:
        """The listeners who are right far less often than by guessing."""
        return [name for name, count in self.counts.items() if abx.outcome(*count).odd]

    @property
    def outcome(self) -> Outcome:
        """The outcome of all listeners together: "inaudible" needs enough listeners who agree, and no odd
        one."""
        pooled = self.pooled
        if pooled is None:
            return "open"
        if pooled.differ and self._keen:
            return "heard"
        if self.odd_listeners or pooled.differ:
            return "odd" if self.odd_listeners else "open"
        found = outcome_of(pooled.outcome)
        return "open" if found == "inaudible" and pooled.listeners < abx.LEAST_LISTENERS else found

    @property
    def _keen(self) -> list[str]:
        """The listeners who hear a difference, each judged alone, with Bonferroni's correction. Without it,
        one or more of ten listeners who guess would be significant in 4 of 10 panels."""
        most = ALPHA / len(self.counts)
        return [name for name, count in self.counts.items() if abx.p_value(*count) <= most]

    def figures(self) -> dict[str, float]:
        """Figures for `result.json`; empty while a result is hidden, or nobody is counted."""
        pooled = self.pooled
        if pooled is None:
            return {}
        found = pooled.outcome
        return {
            "human_listeners_count": pooled.listeners,
            "human_odd_listeners_count": len(self.odd_listeners),
            "human_inattentive_listeners_count": len(self.inattentive),
            "human_planned_listeners_count": self.planned,
            "human_catch_trials_count": self.catches,
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
        """A row for each listener, and one for all of them if there are several; empty while a result is
        hidden."""
        pooled = self.pooled
        rows = dict(self.counts) if pooled else {}
        if pooled is not None and pooled.listeners > 1:
            rows[EVERYBODY] = (pooled.outcome.right, pooled.outcome.trials)
        table = pd.DataFrame([_row(name, abx.outcome(*count)) for name, count in rows.items()])
        if EVERYBODY in rows:
            table.loc[table.listener == EVERYBODY, "outcome"] = self.outcome
        return table

    def headline(self) -> str:
        """The outcome in a sentence for readers without statistics."""
        pooled = self.pooled
        if self.finished < self.planned:
            return (
                f"{self.finished} of {self.planned} listeners have answered every trial; by the protocol, "
                "nothing is shown before all have."
            )
        if pooled is None:
            if self.inattentive:
                return "Nobody can be counted: all who have finished missed catch trials."
            return "Nobody has answered every trial yet."
        found, outcome = pooled.outcome, self.outcome
        counted = (
            f"{_were(list(self.counts))} right in {found.right} of {found.trials} trials, where guessing "
            f"gives {found.trials / 2:g}"
        )
        if pooled.differ and self._keen:
            return f"A difference is heard by {', '.join(self._keen)}: the listeners do not hear alike."
        if outcome == "odd":
            return self._odd()
        if pooled.differ:
            return "Nothing is shown: the listeners do not hear alike."
        if outcome == "heard":
            return f"A difference is heard: {counted}."
        if outcome == "inaudible":
            return f"No difference is heard: {counted}."
        if outcome_of(found) == "inaudible":
            names = ", ".join(self.counts)
            return f"No difference is heard by {names}, and what others hear is open: {counted}."
        return f"Nothing is shown yet: {counted}."

    def _odd(self) -> str:
        return (
            f"Odd, and no proof: {_were(self.odd_listeners)} right far less often than by guessing. "
            "Perhaps the answers were mixed up, or nobody listened."
        )

    def remarks(self) -> list[str]:
        """Remarks for the verdict of a run with listeners; none if inaudibility is shown."""
        waiting = "waiting for listeners: " if self.outcome == "open" else ""
        return [] if self.outcome == "inaudible" else [waiting + self.headline()]

    def sentences(self) -> list[str]:
        """Sentences on what the answers show, what they do not show, and how many more answers would be
        needed."""
        said = [
            f"{name} has answered {done} of {trials} trials and is not counted."
            for name, (done, trials) in self.unfinished.items()
        ]
        said += [
            f"{name} missed {missed} of {catches} catch trials, in which the difference is plain, and is not "
            "counted."
            for name, (missed, catches) in self.inattentive.items()
        ]
        said.append(self.headline())
        pooled = self.pooled
        if pooled is None:
            return said
        found = pooled.outcome
        if self.odd_listeners and self.outcome != "odd":
            said.append(self._odd())
        said += [_heard(found), _power(found), *self._inaudible(pooled)]
        if pooled.listeners > 1:
            said.append(_together(pooled))
        return said

    def _inaudible(self, pooled: abx.PooledListeners) -> list[str]:
        found, bound = pooled.outcome, abx.INAUDIBLE_BELOW
        limit = f"the true proportion is below {found.upper:.3f} with 95 % confidence"
        if self.outcome == "inaudible":
            return [f"Inaudibility (below {bound:.2f}) is shown: {limit}."]
        if found.shown_inaudible() and found.heard and not pooled.differ:
            return [f"It is heard now and then at most: {limit}."]
        trials, most = abx.trials_to_show()
        said = [
            f"Inaudibility (below {bound:.2f}) is not shown. It takes {trials} trials with at most {most} "
            f"right, or more trials, by {abx.LEAST_LISTENERS} listeners or more who do not differ."
        ]
        missing = {
            "trial": found.missing_trials,
            "listener": max(abx.LEAST_LISTENERS - pooled.listeners, 0),
        }
        if self.outcome == "open" and any(missing.values()):
            counted = " and ".join(f"{n} {what}{'s' * (n > 1)}" for what, n in missing.items() if n)
            said.append(f"Missing: {counted}.")
        elif self.outcome == "open":
            said.append(f"{limit[0].upper()}{limit[1:]}.")
        return said

    def _repr_html_(self) -> str:
        """The sentence in its colour, a row for each listener with a picture, and the other sentences."""
        return filled(
            "listening/result",
            outcome=self.outcome,
            headline=self.headline(),
            sentences=self.sentences(),
            rows=self.table().to_dict("records"),
        )


@lru_cache(maxsize=16)
def _pooled(counts: tuple[tuple[str, tuple[int, int]], ...]) -> abx.PooledListeners:
    """Pool the counts. To test whether the listeners differ, `abx.pool` compares their counts with thousands
    of counts that are drawn at random. That takes long, so the result is cached for the same counts."""
    return abx.pool(dict(counts))


def outcome_of(found: abx.AbxResult) -> Outcome:
    """The outcome of one count, for the listener or listeners who gave it."""
    if found.odd:
        return "odd"
    if found.heard:
        return "heard"
    return "inaudible" if found.shown_inaudible() else "open"


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
        "outcome": outcome_of(found),
    }


def _were(names: Sequence[str]) -> str:
    """The subject of a sentence: listeners by name, or their number if they are many, with "was" or
    "were"."""
    if len(names) > 3:
        return f"{len(names)} listeners were"
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}"


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
