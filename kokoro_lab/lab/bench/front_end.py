"""Times the text front end without the model: on single sentences, and along a long text."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.lab.bench.memory import resident_mb
from kokoro_lab.lab.bench.texts import sentences_of
from kokoro_lab.lab.fixtures import load_rows
from kokoro_lab.lab.results import made_by, new_run_folder
from kokoro_lab.scheduling.priority import keep_collector_off
from kokoro_lab.typed import require_range

WARM_SENTENCES = 20
"""Sentences that are read first, and not timed."""
LONG_CHARACTERS, STRETCH_CHARACTERS = 1_000_000, 100_000
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def prose() -> list[str]:
    """Some 650 English sentences of the fixtures, each once."""
    return sentences_of([row["text"] for name in ("calibration", "heteronyms") for row in load_rows(name)])


def time_sentences(front_end: FrontEnd, sentences: Sequence[str], language: str) -> pd.DataFrame:
    """Time each of `sentences` as a text of its own; the first `WARM_SENTENCES` only warm up the front end.

    Returns
    -------
    pandas.DataFrame
        A row for each sentence, which is read for the first time: characters, wall_ms (elapsed time, which
        other work of the machine lengthens), cpu_ms (CPU time of all threads of this process).

    Raises
    ------
    ParameterError
        No sentence is left to be timed.
    """
    distinct = list(dict.fromkeys(sentences))
    message = f"{len(distinct)} distinct sentences are too few: the first {WARM_SENTENCES} only warm up."
    require_range("--corpus", len(distinct), WARM_SENTENCES + 1, message=message)
    front_end.warm(language)
    front_end.cache.clear()
    rows = []
    for sentence in distinct:
        started_s, computed_s = time.perf_counter(), time.process_time()
        for _ in front_end.segments(sentence, language, lambda _: None):
            pass
        computed_s, wall_s = time.process_time() - computed_s, time.perf_counter() - started_s
        times_ms = {"wall_ms": wall_s * 1000, "cpu_ms": computed_s * 1000}
        rows.append({"characters": len(sentence), **times_ms})
    return pd.DataFrame(rows[WARM_SENTENCES:])


def long_text(sentences: Sequence[str], characters: int, *, ends: bool = True, seed: int = 0) -> str:
    """A text without repeated sentences: each has a made-up word of its own.

    Parameters
    ----------
    sentences : sequence of str
        The sentences from which the text is made.
    characters : int
        Approximate length of the text.
    ends : bool
        Whether its sentences end in a mark. If not, the text has only letters and spaces.
    """
    draw = random.Random(seed)
    made: list[str] = []
    length = 0
    while length < characters:
        words = draw.choice(sentences).split(" ")
        words.insert(draw.randrange(1, len(words) + 1) - 1, _invented(draw))
        sentence = " ".join(words)
        made.append(sentence if ends else "".join(c for c in sentence.lower() if c.isalpha() or c == " "))
        length += len(made[-1]) + 1
    return " ".join(made)


def _invented(draw: random.Random) -> str:
    return "".join(draw.choice(_CONSONANTS) + draw.choice(_VOWELS) for _ in range(draw.randrange(3, 6)))


def read_long(
    front_end: FrontEnd, text: str, language: str, stretch: int = STRETCH_CHARACTERS
) -> pd.DataFrame:
    """Read `text` as a stream without keeping its segments; returns the cost of each part of it.

    Parameters
    ----------
    stretch : int
        About how many characters each part has.

    Returns
    -------
    pandas.DataFrame
        A row for each part: until (its last character), wall_s, cpu_s, rss_mb (resident memory at its end).
        The first row includes the work that is done once for each text.
    """
    rows = []
    process = psutil.Process()
    started_s, computed_s, due = time.perf_counter(), time.process_time(), stretch
    for segment in front_end.segments(text, language, lambda _: None):
        if segment.end >= due or segment.end == len(text):
            now_s, now_computed_s = time.perf_counter(), time.process_time()
            took = {"wall_s": now_s - started_s, "cpu_s": now_computed_s - computed_s}
            rows.append({"until": segment.end, **took, "rss_mb": resident_mb(process)})
            due += stretch
            started_s, computed_s = time.perf_counter(), time.process_time()
    return pd.DataFrame(rows)


def read_alone(sentences: Sequence[str], language: str, *, memory: bool = False) -> tuple[Path, list[str]]:
    """Time `sentences`, and keep the result under `results/bench/<run>/`; returns the file and the lines to
    print.

    Parameters
    ----------
    sentences : sequence of str
        The sentences to time; a repeated sentence is timed once.
    language : str
        A canonical tag.
    memory : bool
        Whether to read texts of a million characters as well: one with sentences, and one without any
        sentence end.
    """
    front_end = FrontEnd()
    front_end.warm(language)
    keep_collector_off()  # as a server does; else one sentence would wait for the garbage collector
    table = time_sentences(front_end, sentences, language)
    figures = pd.DataFrame(
        {"p50": table.median(), "p95": table.quantile(0.95), "p99": table.quantile(0.99), "max": table.max()}
    )
    conditions = f"{len(table)} sentences in {language}, each read for the first time, warm, one at a time"
    lines = [conditions, figures.round(2).to_string()]
    record: dict[str, Any] = {
        "conditions": conditions,
        "summary": figures.to_dict("index"),
        "sentences": table.to_dict("records"),
    }
    for name, ends in (("sentences", True), ("no sentence end", False)) if memory else ():
        text = long_text(sentences, LONG_CHARACTERS, ends=ends)
        stretches = read_long(front_end, text, language)
        lines += [f"\n{len(text):,} characters, {name}", stretches.round(2).to_string(index=False)]
        record[f"long text, {name}"] = stretches.to_dict("records")
    path = new_run_folder("bench") / "result.json"
    write_json(path, record | made_by())
    return path, [*lines, f"kept in {path.parent}"]
