"""The segments that are spoken to fit and calibrate, and the comparison of two decodes of one prosody.

PESQ and STOI compare a clip with a reference (4.64 and 1 for equal clips); DNSMOS rates a clip by itself,
from 1 to 5.
"""

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
    """Yield the segments of every line as every voice reads it, and show a progress bar."""
    front_end = FrontEnd()
    jobs = [(line, voice) for line in lines for voice in voices]
    for line, voice in tqdm(jobs, desc=what, disable=None):
        yield from segments_of(front_end, line, voice)


def one_voice_each(lines: Sequence[str], voices: Sequence[str], *, what: str = "spoken") -> Iterator[Spoken]:
    """Yield the segments of every line, each line read by the next voice in turn, and show a progress bar."""
    front_end = FrontEnd()
    for number, line in enumerate(tqdm(lines, desc=what, disable=None)):
        yield from segments_of(front_end, line, voices[number % len(voices)])


def distances(reference: Samples, candidate: Samples) -> dict[str, float]:
    """Measure pesq, stoi and lsd_db between two decodes of the same length."""
    return {
        "pesq": pesq_wb(reference, candidate, SAMPLE_RATE_HZ),
        "stoi": stoi(reference, candidate, SAMPLE_RATE_HZ),
        "lsd_db": log_spectral_distance_db(reference, candidate, SAMPLE_RATE_HZ),
    }


def heard_part(whole: Samples) -> slice:
    """The range of the samples without the silence at both ends, which the engine trims, too.

    Without trimming, PESQ also compares the silence: one word had 4.48 with trimming and 3.56 without.
    """
    trimmer = EdgeTrimmer(SAMPLE_RATE_HZ)
    trimmer.push(whole)
    trimmer.flush()
    return slice(trimmer.lead_samples, len(whole) - trimmer.tail_samples)


def mean_interval(table: pd.DataFrame, column: str) -> tuple[float, float]:
    """95 % interval of a mean. The bootstrap draws whole texts, since utterances of one text are not
    independent.

    The mean is computed as a rate (`rate_of`): the sum of the figure divided by the number of utterances. The
    interval is corrected for bias and acceleration (BCa): with few texts, plain percentiles of a bootstrap
    are too narrow on the skewed side.
    """
    found = rate_of(table[column], np.ones(len(table)), list(table["text"]))
    return found.low, found.high
