"""A listening test kept in a folder: the sounds, the plan, and a file of answers for each listener.

<folder>/
    test.npz          the sounds as they are played, repeats, seed and number of catch trials
    protocol.json     the rule of a panel, written before anybody listens: see `protocol`
    <listener>.jsonl  see `answers`

The sounds are kept so that a test is finished with the same ones. A copy of the folder also works on a
machine without the model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from kokoro_lab.containers import Encoder
from kokoro_lab.containers.plain_json import whole_file
from kokoro_lab.errors import AnswersError, ParameterError
from kokoro_lab.lab.gates.damages import noisy
from kokoro_lab.lab.listening.answers import SUFFIX, AnswerFile, check_listener, open_answers, read_answers
from kokoro_lab.lab.listening.plan import (
    CATCH_SNR_DB,
    CATCHES_A_SLIP,
    TRIALS_A_CATCH,
    AbxTrial,
    Letter,
    LevelledPair,
    ListeningPlan,
    PassagePair,
    Side,
    match_loudness,
    missed_catches,
    right_answers,
)
from kokoro_lab.lab.listening.protocol import PROTOCOL_FILE, planned_listeners, write_protocol
from kokoro_lab.lab.listening.result import ListeningResult
from kokoro_lab.lab.results import results_folder
from kokoro_lab.metrics.perceptual import signal_to_difference_db

TEST_FILE = "test.npz"
BUTTONS = "ABX"
LISTENED_S = 1.5
"""Seconds of each sound that must be heard before an answer, so that pressing a button is not enough."""
SAME_SOUND_DB = 60.0
"""SNR above which two sounds count as the same. Sounds that the same engine makes again differ only by
rounding, more than 100 dB below the sound."""


@dataclass(frozen=True, slots=True, eq=False)
class Sitting:
    """One listener on the way through a test: the next trial, and the answers so far."""

    plan: ListeningPlan
    trials: Sequence[AbxTrial]
    answers: AnswerFile

    @property
    def trial(self) -> AbxTrial:
        """The next trial."""
        return self.trials[len(self.answers.letters)]

    @property
    def least_s(self) -> float:
        """Seconds of each sound that must be heard before an answer: `LISTENED_S`, or nearly all of a short
        sound."""
        pair = self.plan.pairs[self.trial.pair]
        shorter = min(len(pair.reference), len(pair.candidate))
        return round(min(LISTENED_S, 0.9 * shorter / pair.sample_rate_hz), 3)

    def wav(self, button: str) -> bytes:
        """The sound of the button "A", "B" or "X" in the next trial, as a WAV file.

        Each of the three sounds gets other dither, and all get the length of the longest, so that neither the
        bytes nor the length of X tell whether it is A or B.
        """
        seed = len(self.answers.letters) * len(BUTTONS) + BUTTONS.index(button)
        pair = self.plan.pairs[self.trial.pair]
        if self.trial.catch:
            pair = replace(pair, candidate=noisy(pair.reference, CATCH_SNR_DB))
        return _wav(pair, self.trial.side(button), seed)

    def calibration(self) -> bytes:
        """A passage for setting the volume, as a WAV file: the loudest of the test.

        The passage is that of the reference or of the candidate. Which one is drawn for each listener, and
        kept secret.
        """
        loudest = max(self.plan.pairs, key=lambda pair: pair.level_lufs)
        side: Side = "reference" if self.trials[0].a == "candidate" else "candidate"
        return _wav(loudest, side, len(self.trials) * len(BUTTONS))

    def answer(
        self, number: int, letter: Letter, plays: Mapping[str, int], heard_s: Mapping[str, float]
    ) -> None:
        """Write the answer to the trial `number`, counted from 0.

        Raises
        ------
        AnswersError
            Trial `number` is not the next one, for example after a double click, or after an answer in
            another window.
        ParameterError
            One of A, B and X was heard for less than `least_s`.
        """
        if number != len(self.answers.letters) or self.answers.complete:
            raise AnswersError(
                f"Trial {number + 1} is not the next one: it was answered before.",
                field="trial",
                value=number,
                mend="Load the page again: it goes on after the last answer.",
            )
        short = [button for button in BUTTONS if heard_s.get(button, 0.0) < self.least_s]
        if short:
            raise ParameterError(
                f"{' and '.join(short)} must be heard first.",
                field="heard_s",
                value=short,
                allowed=f"{self.least_s:g} s of each, or more",
            )
        self.answers.append(letter, plays, heard_s)

    def result(self) -> ListeningResult:
        """The result of this listener's own answers, once all are given."""
        own = self.answers.listener
        if not self.answers.complete:
            return ListeningResult({}, {own: (len(self.answers.letters), len(self.trials))})
        missed, catches = missed_catches(self.trials, self.answers.letters), self.plan.catches
        if missed > catches // CATCHES_A_SLIP:
            return ListeningResult({}, {}, {own: (missed, catches)})
        right = right_answers(self.trials, self.answers.letters)
        return ListeningResult({own: (right, self.plan.judged)}, {})


def _wav(pair: LevelledPair, side: Side, seed: int) -> bytes:
    samples = pair.side(side)
    missing = max(len(pair.reference), len(pair.candidate)) - len(samples)
    rate_hz = pair.sample_rate_hz
    encoder = Encoder("wav", rate_hz, seed, streamed=False, from_hz=rate_hz)
    return encoder.run(np.pad(samples, (0, missing)))


@dataclass(frozen=True, slots=True, eq=False)
class ListeningSession:
    """A listening test and all who take part. Made by `open_session`."""

    folder: Path
    plan: ListeningPlan

    def sitting(self, listener: str) -> Sitting:
        """Let a listener begin, or continue after their last answer.

        Raises
        ------
        ParameterError
            A name that cannot name a file.
        AnswersError
            The listener's file of answers is damaged, or belongs to another test.
        """
        path, trials = self.path_of(check_listener(listener)), self.plan.trials(listener)
        answers = open_answers(path, test=self.plan.sha256, listener=listener, trials=len(trials))
        return Sitting(self.plan, trials, answers)

    def path_of(self, listener: str) -> Path:
        """The file of a listener's answers."""
        return self.folder / (listener + SUFFIX)

    def result(self) -> ListeningResult:
        """What all listeners in the folder have answered, together.

        Raises
        ------
        AnswersError
            A file is damaged, or of another test.
        """
        counts: dict[str, tuple[int, int]] = {}
        unfinished: dict[str, tuple[int, int]] = {}
        inattentive: dict[str, tuple[int, int]] = {}
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            found = read_answers(path)
            found.require(self.plan.sha256)
            if found.listener != path.stem:
                mend = f"Name it {found.listener}{SUFFIX}: whose answers they are decides what X was."
                raise AnswersError.of(path, f"{path.name} holds the answers of {found.listener!r}.", mend)
            own = Sitting(self.plan, self.plan.trials(found.listener), found).result()
            counts |= own.counts
            unfinished |= own.unfinished
            inattentive |= own.inattentive
        planned = planned_listeners(self.folder, self.plan)
        return ListeningResult(counts, unfinished, inattentive, planned, self.plan.catches)

    def pairs_table(self) -> pd.DataFrame:
        """A row for each pair: the gains that made both sides equally loud, and remaining differences that
        could tell them apart."""
        figures = ("duration_difference_s", "candidate_gain_db", "residual_lu", "level_lufs")
        rows = [
            {"pair": pair.name, "audio_s": len(pair.reference) / pair.sample_rate_hz}
            | {name: getattr(pair, name) for name in figures}
            for pair in self.plan.pairs
        ]
        return pd.DataFrame(rows)


def open_session(
    folder: str | os.PathLike[str],
    pairs: Sequence[PassagePair] | None = None,
    *,
    repeats: int | None = None,
    seed: int | None = None,
    catches: int | None = None,
) -> ListeningSession:
    """Begin a listening test, or come back to it.

    Parameters
    ----------
    folder : path
        Folder of the test; made if it does not exist. See `folder_of` for a bare name.
    pairs : sequence of PassagePair, optional
        The pairs to compare; loudness is matched here. None takes the sounds that the folder keeps. If the
        folder keeps sounds and pairs are given, both must be the same.
    repeats, seed, catches : int, optional
        How often each pair is heard, the seed of the order, and the number of catch trials. None takes the
        value that the folder keeps; a new test takes 1, 0 and 0.

    Raises
    ------
    ParameterError
        The pairs or repeats make no test.
    AnswersError
        The folder has no test and `pairs` is not given, or the folder has another test that has answers.
    """
    path = folder_of(folder) / TEST_FILE
    kept = _load(path) if path.exists() else None
    if kept is None and pairs is None:
        raise AnswersError(
            f"There is no listening test in {path.parent}.",
            field="folder",
            value=str(folder),
            mend="Name the folder of a test that was begun, or give the pairs of a new one.",
        )
    given = None
    if pairs is not None:
        given = ListeningPlan(tuple(map(match_loudness, pairs)), repeats or 1, seed or 0)
    settled = any(path.parent.glob(f"*{SUFFIX}")) or (path.parent / PROTOCOL_FILE).exists()
    if given and kept and settled and not _same_sounds(kept.pairs, given.pairs):
        raise AnswersError(
            "The sounds are not those of the test that was begun in this folder: the engine has changed, or "
            "other texts and voices were asked for.",
            field="folder",
            value=str(folder),
            mend="Give a new folder for a new test, or finish the old one: open_session(folder).",
        )
    # A test that has answers, or a protocol, keeps its sounds to the last bit
    base = kept if kept and (settled or not given) else given
    assert base is not None
    plan = replace(
        base,
        repeats=base.repeats if repeats is None else repeats,
        seed=base.seed if seed is None else seed,
        catches=base.catches if catches is None else catches,
    )
    session = ListeningSession(path.parent, plan)
    session.result()  # answers to another test are refused before anything is written
    if not settled:
        _save(path, plan)
    return session


def open_with_rule(
    folder: str | os.PathLike[str],
    pairs: Sequence[PassagePair],
    *,
    repeats: int,
    seed: int,
    listeners: int,
) -> ListeningSession:
    """Begin a listening test for a panel, or come back to it: with one catch trial for every
    `TRIALS_A_CATCH` other trials, and with a protocol.

    The protocol asks for `listeners` listeners, unless the folder has one already. With 0, or if somebody has
    begun, none is written.

    Raises
    ------
    ParameterError, AnswersError
        As `open_session`.
    """
    catches = len(pairs) * repeats // TRIALS_A_CATCH
    session = open_session(folder, pairs, repeats=repeats, seed=seed, catches=catches)
    if not planned_listeners(session.folder, session.plan):
        write_protocol(session.folder, session.plan, listeners)
    return session


def folder_of(test: str | os.PathLike[str]) -> Path:
    """The folder of a test. A bare name such as "fp32-int8" that does not exist here is a folder in
    `results/listening`; "./fp32-int8" is always a path."""
    here = Path(test)
    bare = here.name == test and not (here / TEST_FILE).exists()
    return results_folder() / "listening" / here if bare else here


def _same_sounds(kept: Sequence[PassagePair], given: Sequence[PassagePair]) -> bool:
    return len(kept) == len(given) and all(
        a.name == b.name
        and a.sample_rate_hz == b.sample_rate_hz
        and _same(a.reference, b.reference)
        and _same(a.candidate, b.candidate)
        for a, b in zip(kept, given, strict=True)
    )


def _same(kept: np.ndarray, given: np.ndarray) -> bool:
    return kept.shape == given.shape and signal_to_difference_db(kept, given) > SAME_SOUND_DB


ABOUT_PAIR = ("name", "sample_rate_hz", "candidate_gain_db", "residual_lu", "level_lufs")
"""The fields of a pair that are kept besides its samples."""


def _save(path: Path, plan: ListeningPlan) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = [{name: getattr(pair, name) for name in ABOUT_PAIR} for pair in plan.pairs]
    drawn = {"repeats": plan.repeats, "seed": plan.seed, "catches": plan.catches}
    arrays = {"about": np.array(json.dumps(drawn | {"pairs": pairs}))}
    for number, pair in enumerate(plan.pairs):
        arrays |= {f"reference_{number}": pair.reference, f"candidate_{number}": pair.candidate}
    with whole_file(path) as making, making.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy types its flag as one of them


def _load(path: Path) -> ListeningPlan:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            pairs = [
                LevelledPair(
                    reference=file[f"reference_{number}"], candidate=file[f"candidate_{number}"], **row
                )
                for number, row in enumerate(about["pairs"])
            ]
            return ListeningPlan(tuple(pairs), about["repeats"], about["seed"], about.get("catches", 0))
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        mend = "Bring it back from a copy, or give a new folder for a new test."
        raise AnswersError.of(path, f"{path.name} cannot be read: {error}.", mend, "folder") from error
