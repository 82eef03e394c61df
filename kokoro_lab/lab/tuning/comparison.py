"""The segments that are spoken to fit and calibrate, and the comparison of two decodes of one prosody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.dsp import EdgeTrimmer
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.metrics.intervals import rate_of
from kokoro_lab.metrics.perceptual import log_spectral_distance_db, pesq_wb, stoi
from kokoro_lab.model.prosody import Values
from kokoro_lab.weights.voices import english_of, load_voice

Spoken = tuple[tuple[int, ...], Values]
"""Token ids of a segment, without pads, and the style vector, float32 (1, 256), that speaks it."""


def segments_of(front_end: FrontEnd, line: str, voice: str) -> Iterator[Spoken]:
    """The segments of an English line, as `voice` reads it."""
    pack = load_voice(voice)
    for segment in front_end.segments(line, english_of(voice), lambda _: None):
        yield tuple(segment.token_ids), pack.style(len(segment.token_ids))


def segments_of_all(lines: Sequence[str], voices: Sequence[str], *, what: str = "spoken") -> Iterator[Spoken]:
    """The segments of every line by every voice, one after the other, with a bar."""
    front_end = FrontEnd()
    jobs = [(line, voice) for line in lines for voice in voices]
    for line, voice in tqdm(jobs, desc=what, disable=None):
        yield from segments_of(front_end, line, voice)


def one_voice_each(lines: Sequence[str], voices: Sequence[str], *, what: str = "spoken") -> Iterator[Spoken]:
    """The segments of every line, each line by the next voice, with a bar."""
    front_end = FrontEnd()
    for number, line in enumerate(tqdm(lines, desc=what, disable=None)):
        yield from segments_of(front_end, line, voices[number % len(voices)])


def distances(reference: Samples, candidate: Samples) -> dict[str, float]:
    """pesq, stoi, lsd_db of two decodes of the same length."""
    return {
        "pesq": pesq_wb(reference, candidate, SAMPLE_RATE_HZ),
        "stoi": stoi(reference, candidate, SAMPLE_RATE_HZ),
        "lsd_db": log_spectral_distance_db(reference, candidate, SAMPLE_RATE_HZ),
    }


def heard_part(whole: Samples) -> slice:
    """The samples without the silence at both ends, which is also trimmed in speech.

    Without trimming, PESQ also compares the silence: a word with 4.48 trimmed reads 3.56.
    """
    trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
    trimmer.push(whole)
    trimmer.flush()
    return slice(trimmer.lead_samples, len(whole) - trimmer.tail_samples)


def mean_interval(table: pd.DataFrame, column: str) -> tuple[float, float]:
    """95 % interval of a mean, texts drawn whole: utterances of one text are not independent.

    It is that of a rate (`rate_of`), the sum of the figure over the number of utterances, corrected for bias
    and acceleration (BCa): over few texts, percentiles of a bootstrap are too narrow on the skewed side.
    """
    found = rate_of(table[column], np.ones(len(table)), list(table["text"]))
    return found.low, found.high
