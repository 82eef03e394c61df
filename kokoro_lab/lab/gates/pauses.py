"""The audible pauses of a stream: the longest run below -50 dBFS around each mark.

`model.pauses` promises how long a pause is, at least and at most: `STOP_S` at marks like a full stop,
`COMMA_S` at marks like a comma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.model.pauses import COMMA_S, STOP_S
from kokoro_lab.speech.engine import Engine, load_engine

TEXT = (
    "Bring three things: a lamp, a rope, and a knife; leave the rest behind. He waited — nobody came — and, "
    "well… he left. If it rains, we stay; if it clears, we go. “Stop!” she cried, and the dog sat down."
)
"""The text to speak; some of its sentences share a segment."""
STOPS, MARKS = ".!?…:", ".!?…:,;—"
LATIN = str.maketrans("、，；：。।！？", ",,;:..!?")
"""Marks of Hindi, Japanese and Mandarin, and the marks that promise the same pauses."""
SILENT = 10 ** (-50 / 20)
AROUND_S = 0.1
SHORT_SHARE_HIGH = 0.2
"""Limit of the share of pauses that are shorter than `STOP_S` or `COMMA_S` promises. The share was a twelfth
in 80 pauses by five voices, and more than half with the model's own pauses."""


def measure(engine: Engine, voices: Sequence[str], texts: Sequence[str] = (TEXT,)) -> pd.DataFrame:
    """One row for each pause of `texts`: voice, place (`within` a segment, or `between` two), mark, heard_ms,
    and whether the pause is shorter or longer than `STOP_S` or `COMMA_S` promises for this mark."""
    rows: list[dict[str, object]] = []
    for voice in voices:
        for text in texts:
            clip = engine.stream(text, voice=voice, cached=False).joined()
            rows += ({"voice": voice} | row for row in _heard(clip, text.translate(LATIN)))
    return pd.DataFrame(rows)


def _heard(clip: Clip, text: str) -> Iterator[dict[str, object]]:
    for word, following in pairwise(clip.timings):
        marks = [sign for sign in text[word.end : following.start] if sign in MARKS]
        if not marks:
            continue
        mark = next((sign for sign in marks if sign in STOPS), marks[0])
        first, stop = (
            round(at_s * SAMPLE_RATE_HZ) for at_s in (word.end_s - AROUND_S, following.start_s + AROUND_S)
        )
        loud = np.flatnonzero(np.abs(clip.samples[first:stop]) >= SILENT)
        heard_s = (np.diff(loud, prepend=-1, append=stop - first).max() - 1) / SAMPLE_RATE_HZ
        least_s, most_s = STOP_S if mark in STOPS else COMMA_S
        yield {
            "place": "within" if word.segment_id == following.segment_id else "between",
            "mark": mark,
            "heard_ms": 1000 * heard_s,
            "short": heard_s < least_s,
            "long": heard_s > most_s,
        }


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Index: place and mark. Columns: number of pauses, the shortest, the median and the longest in ms, and
    the shares that are shorter and longer than promised."""
    by = table.groupby(["place", "mark"])
    heard = by.heard_ms.agg(["count", "min", "median", "max"])
    return heard.join(by[["short", "long"]].mean()).reset_index()


def judge(table: pd.DataFrame) -> list[Check]:
    """The check: hardly any pause is shorter than promised. Longer ones are the model's own, and allowed."""
    return [Check("short_pauses_share", table.short.mean(), high=SHORT_SHARE_HIGH)]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """The number of pauses, and the shares that are shorter and longer than promised."""
    return {
        "pauses_count": float(len(table)),
        "short_pauses_share": float(table.short.mean()),
        "long_pauses_share": float(table.long.mean()),
    }


def controls(engine: Engine, voices: Sequence[str]) -> list[NegativeControl]:
    """The control: the model's own pauses, which must be refused."""
    own = load_engine(config=replace(engine.config, pauses="model"))
    return [NegativeControl("the model's own pauses", bool(failed(judge(measure(own, voices)))))]
