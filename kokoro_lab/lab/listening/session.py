"""A listening test in a folder: the sounds, the plan, and a file of answers for each listener.

<folder>/
    test.npz          the sounds as they are played, repeats and seed
    <listener>.jsonl  see `answers`

The sounds are kept, so that a test that was begun is finished with the same ones, on a machine without the
model, too: copy the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from kokoro_lab.containers import Encoder
from kokoro_lab.errors import AnswersError
from kokoro_lab.lab.listening.answers import SUFFIX, AnswerFile, check_listener, check_test, read_answers
from kokoro_lab.lab.listening.levels import LevelledPair, match_all
from kokoro_lab.lab.listening.plan import AbxTrial, Letter, ListeningPlan, PassagePair, right_answers
from kokoro_lab.lab.listening.result import ListeningResult
from kokoro_lab.metrics.perceptual import signal_to_difference_db

TEST_FILE = "test.npz"
BUTTONS = "ABX"
SAME_SOUND_DB = 60.0
"""Sounds made again by the same engine differ by rounding alone, over 100 dB below the sound."""


class Sitting:
    """One listener on the way through a test. Made by `ListeningSession.sitting`.

    Attributes
    ----------
    note : str
        What was found wrong with the file of answers, and what was done about it.
    """

    def __init__(self, session: ListeningSession, listener: str) -> None:
        self.listener = check_listener(listener)
        self._plan = session.plan
        self._trials = session.plan.trials(listener)
        self._file = AnswerFile(
            session.path_of(listener), test=session.sha256, listener=listener, trials=len(self._trials)
        )
        self.note = self._file.note

    def __len__(self) -> int:
        return len(self._trials)

    @property
    def answered(self) -> int:
        """How many trials are answered."""
        return len(self._file.letters)

    @property
    def done(self) -> bool:
        """Whether all of them are."""
        return self.answered == len(self)

    def wav(self, button: str) -> bytes:
        """What is behind the button "A", "B" or "X" of this trial, as a WAV file.

        Each has a dither of its own, so that X is not the same bytes as what it is.
        """
        trial = self._trials[self.answered]
        pair = self._plan.pairs[trial.pair]
        seed = self.answered * len(BUTTONS) + BUTTONS.index(button)
        rate_hz = pair.sample_rate_hz
        encoder = Encoder("wav", rate_hz, seed, streamed=False, from_hz=rate_hz)
        return encoder.run(pair.side(trial.side(button)))

    def answer(self, letter: Letter, plays: dict[str, int]) -> None:
        """Keep the answer to this trial, and go on to the next.

        Raises
        ------
        AnswersError
            It cannot be kept.
        """
        self._file.append(letter, plays)


@dataclass(frozen=True, slots=True, eq=False)
class ListeningSession:
    """A listening test and all who take part. Made by `open_session`."""

    folder: Path
    plan: ListeningPlan
    levels: tuple[LevelledPair, ...]
    sha256: str

    def sitting(self, listener: str) -> Sitting:
        """Let a listener begin, or go on after their last answer.

        Raises
        ------
        ParameterError
            A name that cannot name a file.
        AnswersError
            Their file is damaged, or of another test.
        """
        return Sitting(self, listener)

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
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            found = read_answers(path)
            check_test(found, self.sha256, path)
            if found.listener != path.stem:
                raise AnswersError(
                    f"{path.name} holds the answers of {found.listener!r}.",
                    field="answers",
                    value=path.name,
                    mend=f"Name it {found.listener}{SUFFIX}: whose answers they are decides what X was.",
                )
            if found.complete:
                trials: list[AbxTrial] = self.plan.trials(found.listener)
                counts[found.listener] = (right_answers(trials, found.letters), len(trials))
            else:
                unfinished[found.listener] = (len(found.letters), found.trials)
        return ListeningResult(counts, unfinished)

    def pairs_table(self) -> pd.DataFrame:
        """A row a pair: what was done to make it equally loud, and what could still give it away."""
        return pd.DataFrame(
            [
                {
                    "pair": level.pair.name,
                    "audio_s": len(level.pair.reference) / level.pair.sample_rate_hz,
                    "duration_difference_s": level.pair.duration_difference_s,
                    "candidate_gain_db": level.candidate_gain_db,
                    "residual_lu": level.residual_lu,
                    "level_lufs": level.level_lufs,
                }
                for level in self.levels
            ]
        )


def open_session(
    folder: str | os.PathLike[str],
    pairs: Sequence[PassagePair] | None = None,
    *,
    repeats: int | None = None,
    seed: int | None = None,
) -> ListeningSession:
    """Begin a listening test, or come back to it.

    Parameters
    ----------
    folder : path
        Of the test; made if it is not there.
    pairs : sequence of PassagePair, optional
        What is compared; loudness is matched here. None takes the sounds that the folder keeps. If it
        keeps some, they must be the ones that are given.
    repeats, seed : int, optional
        How often each pair is heard, and what the order is drawn from. None takes what the folder keeps,
        else 1 and 0.

    Raises
    ------
    ParameterError
        Pairs or repeats that make no test.
    AnswersError
        There is no test in the folder and none is given, or there is another one that has answers.
    """
    path = Path(folder) / TEST_FILE
    kept = _load(path) if path.exists() else None
    if kept is None and pairs is None:
        raise AnswersError(
            f"There is no listening test in {path.parent.name!r}.",
            field="folder",
            value=str(folder),
            mend="Name the folder of a test that was begun, or give the pairs of a new one.",
        )
    given = None if pairs is None else _Test(tuple(match_all(pairs)), repeats or 1, seed or 0)
    answered = any(path.parent.glob(f"*{SUFFIX}"))
    if given and kept and answered and not _same_sounds(kept.levels, given.levels):
        raise AnswersError(
            "The sounds are not those of the test that was begun in this folder: the engine has changed, or "
            "other texts and voices were asked for.",
            field="folder",
            value=str(folder),
            mend="Give a new folder for a new test, or finish the old one: open_session(folder).",
        )
    # A test that has answers keeps its sounds to the last bit
    base = kept if kept and (answered or not given) else given
    assert base is not None
    test = _Test(
        base.levels,
        base.repeats if repeats is None else repeats,
        base.seed if seed is None else seed,
    )
    plan = ListeningPlan(tuple(level.pair for level in test.levels), test.repeats, test.seed)
    session = ListeningSession(path.parent, plan, test.levels, plan.sha256)
    session.result()  # answers to another test are refused before anything is written
    if not answered:
        _save(path, test)
    return session


@dataclass(frozen=True, slots=True)
class _Test:
    levels: tuple[LevelledPair, ...]
    repeats: int
    seed: int


def _same_sounds(kept: Sequence[LevelledPair], given: Sequence[LevelledPair]) -> bool:
    return len(kept) == len(given) and all(
        a.pair.name == b.pair.name
        and a.pair.sample_rate_hz == b.pair.sample_rate_hz
        and _same(a.pair.reference, b.pair.reference)
        and _same(a.pair.candidate, b.pair.candidate)
        for a, b in zip(kept, given, strict=True)
    )


def _same(kept: np.ndarray, given: np.ndarray) -> bool:
    return kept.shape == given.shape and signal_to_difference_db(kept, given) > SAME_SOUND_DB


def _save(path: Path, test: _Test) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "repeats": test.repeats,
        "seed": test.seed,
        "pairs": [
            {
                "name": level.pair.name,
                "sample_rate_hz": level.pair.sample_rate_hz,
                "candidate_gain_db": level.candidate_gain_db,
                "residual_lu": level.residual_lu,
                "level_lufs": level.level_lufs,
            }
            for level in test.levels
        ],
    }
    arrays = {"about": np.array(json.dumps(about))}
    for number, level in enumerate(test.levels):
        arrays |= {f"reference_{number}": level.pair.reference, f"candidate_{number}": level.pair.candidate}
    making = path.with_suffix(".making.npz")
    np.savez(making, **arrays)  # type: ignore[arg-type]  # numpy types its flag as one of them
    os.replace(making, path)


def _load(path: Path) -> _Test:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            levels = tuple(
                LevelledPair(
                    PassagePair(
                        row["name"],
                        file[f"reference_{number}"],
                        file[f"candidate_{number}"],
                        row["sample_rate_hz"],
                    ),
                    row["candidate_gain_db"],
                    row["residual_lu"],
                    row["level_lufs"],
                )
                for number, row in enumerate(about["pairs"])
            )
            return _Test(levels, about["repeats"], about["seed"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise AnswersError(
            f"{path.name} cannot be read: {error}.",
            field="folder",
            value=path.name,
            mend="Bring it back from a copy, or give a new folder for a new test.",
        ) from error
