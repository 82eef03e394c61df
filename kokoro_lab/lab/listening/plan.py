"""The plan of an ABX test: pairs at one loudness, and the order of trials, drawn before anybody listens."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from kokoro_lab.datatypes import Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.typed import require_range

Letter = Literal["A", "B"]
Side = Literal["reference", "candidate"]

MOST_TRIALS = 400
"""The most trials of a test. They take an hour and more; further answers would only show fatigue."""

LISTENING_LUFS = -23.0
"""Loudness of EBU R 128. It is lower than the engine's own loudness, so that no limiter is needed; a limiter
would act differently on the two sides."""
PEAK_DBTP = -1.0
CATCH_SNR_DB = 20.0
"""How far below the speech the noise of a catch trial is: everybody who listens hears it."""
TRIALS_A_CATCH = 5
"""A new test has one catch trial for this number of other trials."""
CATCHES_A_SLIP = 8
"""A listener may miss one catch trial in this number of them. With eight catch trials, 4 % of the listeners
who guess miss at most one, and 0.3 % of the listeners who are right in 99 of 100 catch trials miss more than
one."""
LEAST_CATCHES = 5
"""The least number of catch trials with which answers can show inaudibility: of listeners who guess, 3 % miss
none of five, so hardly any is counted."""


@dataclass(frozen=True, slots=True, eq=False)
class PassagePair:
    """One passage, spoken twice.

    Parameters
    ----------
    name : str
        Name of the passage, such as its text. The listener may see it, so it must not tell the two sides
        apart.
    reference, candidate : numpy.ndarray
        float32 mono. Both have the same length and timing, unless the test is about timing.
    sample_rate_hz : int
        Sample rate of both sides.

    Raises
    ------
    ParameterError
        An array is of another type or shape, is empty, or has samples that are not finite.
    """

    name: str
    reference: Samples
    candidate: Samples
    sample_rate_hz: int

    def __post_init__(self) -> None:
        for side, samples in (("reference", self.reference), ("candidate", self.candidate)):
            if samples.dtype != np.float32 or samples.ndim != 1 or not len(samples):
                raise ParameterError(
                    f"The {side} of {self.name!r} is no mono clip.",
                    field=side,
                    value=f"{samples.dtype} of shape {samples.shape}",
                    allowed="float32 of shape (n,), n > 0",
                )
            if not np.isfinite(samples).all():
                raise ParameterError(
                    f"The {side} of {self.name!r} has samples that are not finite.",
                    field=side,
                    value=self.name,
                )

    @property
    def duration_difference_s(self) -> float:
        """How much longer the candidate is, in seconds."""
        return (len(self.candidate) - len(self.reference)) / self.sample_rate_hz

    def side(self, side: Side) -> Samples:
        """The samples of the reference or of the candidate."""
        return self.reference if side == "reference" else self.candidate


@dataclass(frozen=True, slots=True, eq=False)
class LevelledPair(PassagePair):
    """A pair at one loudness, because a louder side is heard as better, and as different.

    Parameters
    ----------
    candidate_gain_db : float
        The gain that makes the candidate as loud as the reference.
    residual_lu : float
        How much louder than the reference the candidate is with that gain.
    level_lufs : float
        Loudness of both sides: `LISTENING_LUFS`, or less if a peak would pass −1 dBTP.
    """

    candidate_gain_db: float
    residual_lu: float
    level_lufs: float


def match_loudness(pair: PassagePair) -> LevelledPair:
    """Bring both clips to the reference's loudness, then both by the same gain to `LISTENING_LUFS`, or less
    if a peak would pass `PEAK_DBTP`.

    Raises
    ------
    ParameterError
        A clip is shorter than 0.4 s, or silent: it has no loudness.
    """
    rate = pair.sample_rate_hz
    loudness = {side: integrated_lufs(pair.side(side), rate) for side in ("reference", "candidate")}
    for side, lufs in loudness.items():
        if not np.isfinite(lufs):
            raise ParameterError(f"The {side} of {pair.name!r} is silent.", field=side, value=pair.name)
    candidate_db = loudness["reference"] - loudness["candidate"]
    peak = max(true_peak_dbtp(pair.reference, rate), true_peak_dbtp(pair.candidate, rate) + candidate_db)
    common_db = min(LISTENING_LUFS - loudness["reference"], PEAK_DBTP - peak)
    level = loudness["reference"] + common_db
    reference = _gained(pair.reference, common_db)
    candidate = _gained(pair.candidate, common_db + candidate_db)
    residual = integrated_lufs(candidate, rate) - integrated_lufs(reference, rate)
    return LevelledPair(pair.name, reference, candidate, rate, candidate_db, residual, level)


def _gained(samples: Samples, gain_db: float) -> Samples:
    return (samples * np.float32(10 ** (gain_db / 20))).astype(np.float32)


@dataclass(frozen=True, slots=True)
class AbxTrial:
    """One question: which of A and B is X?

    Parameters
    ----------
    pair : int
        Index into the plan's pairs.
    a : {"reference", "candidate"}
        What A is; B is the other.
    x : {"A", "B"}
        What X is: the right answer.
    catch : bool
        Whether this is a catch trial, which only shows that the listener listens: its candidate is the
        reference with noise.
    """

    pair: int
    a: Side
    x: Letter
    catch: bool = False

    def side(self, button: str) -> Side:
        """The sound of the button "A", "B" or "X"."""
        letter = self.x if button == "X" else button
        other: Side = "candidate" if self.a == "reference" else "reference"
        return self.a if letter == "A" else other


@dataclass(frozen=True, eq=False)
class ListeningPlan:
    """Pairs, how often each is heard, the seed of the order, and the number of catch trials.

    Raises
    ------
    ParameterError
        There is no pair, two pairs have one name, or there are more trials than anyone can listen to.
    """

    pairs: tuple[LevelledPair, ...]
    repeats: int
    seed: int
    catches: int = 0

    def __post_init__(self) -> None:
        names = [pair.name for pair in self.pairs]
        if not names or len(set(names)) != len(names):
            raise ParameterError(
                "A listening test takes one pair or more, each with a name of its own.",
                field="pairs",
                value=len(names),
            )
        message = f"{len(names)} pairs, each {self.repeats} times, are not a listening test."
        require_range("repeats", self.repeats, 1, MOST_TRIALS // len(names), message)
        require_range("seed", self.seed, 0, message="A seed is a whole number.")
        message = f"{self.judged} trials cannot have {self.catches} catch trials among them."
        require_range("catches", self.catches, 0, self.judged, message)

    def __len__(self) -> int:
        return self.judged + self.catches

    @property
    def judged(self) -> int:
        """The number of trials without catch trials."""
        return len(self.pairs) * self.repeats

    def trials(self, listener: str) -> list[AbxTrial]:
        """The trials of one listener, in order. Each listener gets an order of their own, always the same.

        Every pair is heard once before any pair is heard again, and the reference is A in half of the trials.
        **X is drawn by a fair coin in every trial.** If X were A in exactly half of the trials, a listener
        who guesses, and answers A in exactly half of them, would reach significance in 7 % of tests of 16
        trials; with a fair coin it is 4 %. The binomial test is exact only for independent coins. Catch
        trials are spread over all others, each at a random place.
        """
        random = np.random.default_rng([self.seed, *listener.encode()])
        pairs = [int(i) for _ in range(self.repeats) for i in random.permutation(len(self.pairs))]
        a_is_reference = random.permutation(len(pairs)) < (len(pairs) + random.integers(2)) // 2
        x_is_a = random.random(len(pairs)) < 0.5
        found = [
            AbxTrial(pair, "reference" if reference else "candidate", "A" if is_a else "B")
            for pair, reference, is_a in zip(pairs, a_is_reference, x_is_a, strict=True)
        ]
        for number in range(self.catches):
            first, end = (self.judged * part // self.catches for part in (number, number + 1))
            a: Side = "reference" if random.random() < 0.5 else "candidate"
            x: Letter = "A" if random.random() < 0.5 else "B"
            catch = AbxTrial(int(random.integers(len(self.pairs))), a, x, catch=True)
            found.insert(number + int(random.integers(first, end)), catch)
        return found

    @cached_property
    def sha256(self) -> str:
        """A digest that names the test: with another sound, order, seed or number of trials, it is another
        test."""
        digest = hashlib.sha256()
        drawn = {"repeats": self.repeats, "seed": self.seed}
        if self.catches:  # a test without catch trials keeps the digest that it had before there were any
            drawn["catches"] = self.catches
        digest.update(json.dumps(drawn, sort_keys=True).encode())
        for pair in self.pairs:
            head = [pair.name, pair.sample_rate_hz, len(pair.reference), len(pair.candidate)]
            digest.update(json.dumps(head).encode())
            for samples in (pair.reference, pair.candidate):
                digest.update(samples.astype("<f4").tobytes())
        return digest.hexdigest()


def right_answers(trials: Sequence[AbxTrial], answers: Sequence[Letter]) -> int:
    """How many of the answers given so far are right; catch trials do not count."""
    given = zip(trials, answers, strict=False)
    return sum(trial.x == answer and not trial.catch for trial, answer in given)


def missed_catches(trials: Sequence[AbxTrial], answers: Sequence[Letter]) -> int:
    """How many catch trials were answered wrongly so far."""
    return sum(trial.catch and trial.x != answer for trial, answer in zip(trials, answers, strict=False))
