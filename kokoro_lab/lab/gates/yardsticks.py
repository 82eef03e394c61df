"""Are our streams understood as well as kokoro-onnx's, on sentences for which others have published rates?

The Harvard sentences are 72 lists of ten, phonetically balanced (IEEE Recommended Practice for Speech Quality
Measurements, 1969, appendix C). The repository has the first list; the others come from a file that the user
names. Both programs read the sentences with the same voice, each with its own front end and its own weights;
Whisper base writes down both streams. Only the difference of the two error rates is judged, since the rate
itself depends on the recogniser.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.datatypes import Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.peers import KokoroOnnx, load_kokoro_onnx
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.lab.fixtures import FixtureText, load_texts, read_corpus
from kokoro_lab.lab.gates import word_errors
from kokoro_lab.lab.gates.intelligibility import SIDES, error_percent
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.intelligibility import Transcriber
from kokoro_lab.metrics.intervals import Estimate, rate_of
from kokoro_lab.metrics.noninferiority import error_rate
from kokoro_lab.speech.engine import Engine

FIXTURE = "harvard"
LISTS = 72
OF_EACH = 10
WORDS_SHA256 = "62c9332473dc63f1534cf095bdbfe32ba32b8b90efeef2da39cec57f3de7b50e"
"""SHA-256 of the words of all lists in small letters, one sentence on each line. A file with another digest
does not hold these lists."""
PUBLISHED_LISTS = 5
"""Number of lists, from the first on, for which others have published error rates: fifty sentences."""

measure = word_errors.measure


class PeerStreams:
    """kokoro-onnx as a `word_errors.Reference`: it gives what a listener of its stream has heard at the end.

    Parameters
    ----------
    variant : {"fp32", "int8"}
        The precision of the peer's weights.
    threads : int
        Threads inside one inference.
    load : callable
        Returns the peer for a variant, a voice and a number of threads; a test passes its own.

    Attributes
    ----------
    facts : dict
        Version, weights and threads of the peer that spoke last.
    """

    def __init__(
        self,
        variant: str,
        threads: int,
        load: Callable[[str, str, int], KokoroOnnx] = load_kokoro_onnx,
    ) -> None:
        # Only one peer is kept: each holds a model, and voices are read one after another
        self._of = lru_cache(maxsize=1)(lambda voice: load(variant, voice, threads))
        self.facts: dict[str, Any] = {}

    def synthesize(self, text: str, *, voice: str) -> Samples:
        """The chunks of kokoro-onnx's stream, joined: float32, shape (n,), at 24 kHz.

        Raises
        ------
        MissingExtra
            kokoro-onnx is not installed.
        WeightsError, VoiceError
            The weights are not available, or there is no such voice.
        """
        peer, listener = self._of(voice), Listener(keep=True)
        self.facts = peer.facts()
        peer.speak(text, listener)
        return listener.samples


def sentences(lists: str = "", corpus: str = "") -> list[FixtureText]:
    """The Harvard sentences of some lists. `lists` has numbers and ranges, separated by commas, such as
    `1-5,12`; empty takes all.

    `corpus` is a text file of all 72 lists, one sentence on each line. Without this file there is only list
    1.

    Raises
    ------
    ParameterError
        There is no such list or file, or the file does not hold the Harvard sentences.
    """
    last_list = LISTS if corpus else 1
    wanted: set[int] = set()
    for part in lists.split(",") if lists else [f"1-{last_list}"]:
        first, dash, last = part.strip().partition("-")
        numbers = [int(each) if each.isdecimal() else 0 for each in (first, last if dash else first)]
        if not 1 <= numbers[0] <= numbers[1] <= LISTS:
            raise ParameterError(
                f"There is no list {part.strip()!r} of Harvard sentences.",
                field="lists",
                value=lists,
                allowed=f"numbers from 1 to {LISTS}, and ranges such as 1-5, with commas",
            )
        wanted.update(range(numbers[0], numbers[1] + 1))
    if max(wanted) > last_list:
        raise ParameterError(
            f"The repository holds list 1 of the Harvard sentences alone, and not list {max(wanted)}.",
            field="corpus",
            value=corpus,
            mend="Name a file of all lists. scripts/harvard_sentences.py makes one from a Debian package.",
        )
    texts = _all_of(Path(corpus)) if corpus else load_texts(FIXTURE)
    return [text for text in texts if _list_of(text.id) in wanted]


def _all_of(corpus: Path) -> list[FixtureText]:
    lines = [text.text for text in read_corpus(corpus)]
    spelt = (" ".join(re.findall("[a-z']+", line.lower().replace("’", "'"))) for line in lines)
    if hashlib.sha256("\n".join(spelt).encode()).hexdigest() != WORDS_SHA256:
        raise ParameterError(
            f"{corpus} does not hold the {LISTS * OF_EACH} Harvard sentences, one a line, in their order.",
            field="corpus",
            value=str(corpus),
            mend="scripts/harvard_sentences.py makes such a file from a Debian package.",
        )
    places = (divmod(number, OF_EACH) for number in range(len(lines)))
    return [
        FixtureText(f"harvard_{of + 1:02}_{at + 1:02}", f"list {of + 1}", line)
        for (of, at), line in zip(places, lines, strict=True)
    ]


def _list_of(name: str) -> int:
    return int(name.split("_")[1])


def judge(table: pd.DataFrame) -> list[Check]:
    """The check: our word error rate is less than 0.5 points above the peer's with 95 % confidence, or, with
    fewer than 1000 words, at most one word more is misheard. The limits are those of `word_errors`."""
    return [word_errors.no_worse(table)]


def difference(table: pd.DataFrame) -> Estimate:
    """Our word error rate minus the peer's in percentage points, with its paired 95 % interval over texts."""
    more = 100 * (table.word_errors_candidate - table.word_errors_reference)
    return rate_of(more, table.words, list(table.text))


def _parts(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    first = table[table.text.map(_list_of) <= PUBLISHED_LISTS]
    if first.text.map(_list_of).nunique() < PUBLISHED_LISTS:
        return {"read": table}
    return {"read": table, f"lists_1_to_{PUBLISHED_LISTS}": first}


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """One row for all that was read, and one for the lists of which others have published rates: word error
    rates of both programs in percent, and our rate minus the peer's in points, each with its 95 %
    interval."""
    rows = []
    for name, part in _parts(table).items():
        row: dict[str, object] = {"sentences": name, "clips": len(part), "words": int(part.words.sum())}
        for side, said in zip(SIDES, ("ours_percent", "kokoro_onnx_percent"), strict=True):
            rate = error_rate(part[f"word_errors_{side}"], part.words, list(part.text))
            row[said] = f"{100 * rate.value:.2f} ({100 * rate.low:.2f} to {100 * rate.high:.2f})"
        more = difference(part)
        row["difference_points"] = f"{more.value:+.2f} ({more.low:+.2f} to {more.high:+.2f})"
        rows.append(row)
    return pd.DataFrame(rows).set_index("sentences")


def figures(table: pd.DataFrame) -> dict[str, float]:
    """The error rates of both programs by voice, as in `word_errors.figures`; then those for all that was
    read, and for the lists of which others have published rates, each with the difference between both
    programs."""
    found = word_errors.figures(table)
    for name, part in _parts(table).items():
        more = difference(part)
        found |= {
            f"{name}_words_count": int(part.words.sum()),
            **{f"{name}_word_error_rate_{side}_percent": error_percent(part, "word", side) for side in SIDES},
            f"{name}_difference_points": more.value,
            f"{name}_difference_low_95_points": more.low,
            f"{name}_difference_high_95_points": more.high,
        }
    return found


def controls(table: pd.DataFrame, candidate: Engine, recogniser: Transcriber) -> list[NegativeControl]:
    """The faults of `word_errors.controls`, the losses a little over the margin among them."""
    return word_errors.controls(table, candidate, recogniser, judge)
