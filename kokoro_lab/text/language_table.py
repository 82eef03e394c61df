"""Tells how likely a word is in each language, by the letters that follow each other in it.

`scripts/language_table.py` makes the table from the statistics of lingua (Apache-2.0), and words are judged
as lingua judges them. For each group of one to five letters in the word, the table has the probability of the
group's last letter after its other letters, in each language. If a language lacks a group, the group without
its last letter is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kokoro_lab.errors import IntegrityError
from kokoro_lab.extras import AGAIN, shipped_arrays

LONGEST = 5
"""Most letters of a group."""
TABLE_FILE = Path(__file__).with_name("language_table.npz")
OTHER = 83
"""The number of every letter outside the alphabet. The letters of the alphabet are numbered from 1; 0 stands
for no letter."""
PLACES = (OTHER + 1) ** np.arange(LONGEST - 1, -1, -1)
"""The numbers of a group's letters are multiplied by these values and added up. The sum is the group's code,
of 32 bits. It is smaller than the codes of all longer groups that begin with the same letters."""


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """How probable it is, in each language, that a letter follows other letters.

    Parameters
    ----------
    languages : tuple of str
        The languages, by their two letters.
    letters : str
        The alphabet, in small letters.
    having : numpy.ndarray
        bool (OTHER + 1, languages): the languages that have a letter with an accent, by the letter's number.
        The row of a letter that rules out no language, such as one without an accent, is False throughout.
    codes : numpy.ndarray
        uint32 (groups,), ascending: one number for each group of letters, made of its letters' numbers with
        `PLACES`.
    steps : numpy.ndarray
        uint8 (groups + 1, languages): 1 plus the negative logarithm, in units of `step`, of the probability
        of a group's last letter after its other letters. If a language lacks the group, it has the value of
        the group without its last letter, or last letters; 0 if it lacks all of these, too. The last row is
        0.
    step : float
        The unit of `steps`, in nats.
    """

    languages: tuple[str, ...]
    letters: str
    having: npt.NDArray[np.bool_]
    codes: npt.NDArray[np.uint32]
    steps: npt.NDArray[np.uint8]
    step: float

    @classmethod
    def load(cls, path: Path = TABLE_FILE) -> LanguageTable:
        """The table in a file.

        Raises
        ------
        IntegrityError
            The file does not exist, or is damaged.
        """
        stored = shipped_arrays(path)
        try:
            letters = str(stored["letters"])
            languages = tuple(map(str, stored["languages"]))
            codes = _codes(stored["length"], stored["last"])
            steps = np.zeros((len(codes) + 1, len(languages)), np.uint8)
            steps[:-1] = _filled(stored["steps"], stored["length"]).T
            having = np.zeros((OTHER + 1, len(languages)), np.bool_)
            having[1 : len(letters) + 1] = stored["having"]
            whole = (codes[1:] > codes[:-1]).all() and len(codes)
            if not whole:
                raise ValueError("its groups are not in order")
        except (KeyError, ValueError, IndexError) as error:
            raise IntegrityError(
                f"{path} is no language table ({error}).", field=path.name, mend=AGAIN
            ) from error
        return cls(languages, letters, having, codes, steps, float(stored["step"]))

    def probabilities(self, word: str) -> dict[str, float]:
        """The probability of each language, given `word` in small letters; 0 for all if it has no letter that
        the table knows."""
        numbers = [self.letters.find(c) + 1 or OTHER if c.isalpha() else 0 for c in word]
        groups: dict[int, int] = {}  # the code of each group → that of the group without its last letter
        places = PLACES.tolist()
        for begin in range(len(numbers)):
            code = 0
            for number, place in zip(numbers[begin:], places, strict=False):
                if not number:  # groups end at an apostrophe and with the word
                    break
                shorter, code = code, code + number * place
                groups.setdefault(code, shorter)
        codes = np.fromiter(groups, np.uint32, len(groups))
        rows = np.minimum(np.searchsorted(self.codes, codes), len(self.codes) - 1)
        known = self.codes[rows] == codes
        row_of = {0: len(self.codes)}  # the last row, of no group
        for (code, shorter), row, has in zip(groups.items(), rows.tolist(), known.tolist(), strict=True):
            row_of[code] = row if has else row_of[shorter]
        found = self.steps[[row_of[code] for code in groups]]
        alone = [not shorter for shorter in groups.values()]
        count = (found[alone] > 0).sum(0)
        log = -self.step * (found.sum(0, np.int64) - (found > 0).sum(0)) / np.maximum(count, 1)
        having = self.having[numbers].any(0)
        possible = (count > 0) & (having if having.any() else True)
        if not possible.any():
            return dict.fromkeys(self.languages, 0.0)
        likely = np.where(possible, np.exp(log - log[possible].max()), 0)
        return dict(zip(self.languages, (likely / likely.sum()).tolist(), strict=True))


def _codes(length: npt.NDArray[Any], last: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """The code of each group, from its length and the number of its last letter. In these lists, each group
    stands after the group to which it adds a letter."""
    row = np.arange(len(length), dtype=np.uint32)
    codes = np.zeros(len(length), np.uint32)
    for k, place in enumerate(PLACES.astype(np.uint32), 1):
        latest = np.maximum.accumulate(row * (length == k))
        codes += last[latest] * (length >= k) * place
    return codes


def _filled(steps: npt.NDArray[np.uint8], length: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """`steps` (languages, groups), in which a language that lacks a group gets the value of the group without
    its last letter. A loop over the groups would take three times as long, and the first text waits
    meanwhile."""
    row = np.arange(len(length), dtype=np.int32)
    shorter = np.zeros_like(row)
    for k in range(2, LONGEST + 1):
        np.copyto(shorter, np.maximum.accumulate(row * (length == k - 1)), where=length == k)
    filled = steps.copy()
    for of_language in filled:
        lacking = np.flatnonzero((of_language == 0) & (length > 1))
        for _ in range(1, LONGEST):  # the group without its last letter may be lacking, too
            of_language[lacking] = taken = of_language[shorter[lacking]]
            lacking = lacking[taken == 0]
    return filled
