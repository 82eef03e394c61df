"""Is a stream whole: the same samples as the file, nothing to hear at its seams, and no defect?

A stream is compared bit by bit with the file of the same request; this comparison misses nothing.
`judge_clip` judges a clip by itself, for cases without a file, and misses much: see the counts below. Where
windows meet, a stream is compared with the same place of the same speech decoded at once: a border may fall
on an onset that is sharper than nearly everything else in its clip, which is no fault.

False alarms and detections of `judge_clip`
-------------------------------------------
The scores of clicks and of splices, and their limits (6 and 3), were chosen on the 216 clips of
`35_false_alarms`, where the highest scores were 4.1 and 2.5. These limits were kept after 672 streams of
other sentences (int8 variant, 24 by each of the English voices), where the highest were 4.3 and 2.9. The
other limits were set on 110 streams; there, the nearest figures to a limit were a residual of a repeat of -41
dB (limit -60) and a seam at 0.73 of its limit. On clips on which a limit was set, a detector looks better
than it is.

Nothing was chosen or fitted on 280 further streams (10 by each voice). These streams gave no false alarm: the
highest scores were 4.0 for clicks and 2.4 for splices. Faults were put at the loudest place of 140 of them.
The two scores find 93 % of clicks of 0.3, 76 % of swaps, 44 % of cuts and 41 % of repeats. (Another score,
how isolated the sharpest bend is, finds 88, 70, 43 and 31 % with a limit of 3, and has 2 false alarms.) If
the place of the fault is declared as a seam, `seam_excess` finds 83 % of clicks, 82 % of gaps, 64 % of swaps,
35 % of cuts and 32 % of repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, AudioChunk, Samples
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.streamed import SEGMENT, WINDOW, StreamedClip
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.results.units import words_of
from kokoro_lab.lab.tuning.statistics import SEAM_RANK_CHANGE_HIGH
from kokoro_lab.metrics import defects
from kokoro_lab.metrics.defects import click_score, splice_score
from kokoro_lab.metrics.seams import seam_excess, seam_rank, seam_scores
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX

REPEAT_RESIDUAL_LOW_DB = -60.0
CLIPPED_HIGH = 8.0
"""Limit of `defects.clipped_count`. A clean clip has at most one such sample by chance; a clip of which 1 %
of the samples were clipped has 178 or more."""
CLICK_SCORE_HIGH = 6.0
SPLICE_SCORE_HIGH = 3.0
SEAM_EXCESS_HIGH = 1.0
HIGH = {
    "gaps_count": 0.0,
    "hardest_fall_db": defects.HARD_DB,
    "clipped_samples_count": CLIPPED_HIGH,
    "click_score_ratio": CLICK_SCORE_HIGH,
    "splice_score_ratio": SPLICE_SCORE_HIGH,
    "seam_excess_ratio": SEAM_EXCESS_HIGH,
}
"""Upper limits of a clip's figures: for the clip by itself, and for declared seams."""
CLIP_LIMITS: Limits = {
    name: (None, HIGH[name]) for name in ("seam_excess_ratio", "click_score_ratio", "splice_score_ratio")
}
"""Figures of each clip that are drawn: those that are above 0 in clean speech, too."""
NONE_OF = ("differing_samples_count", "chunk_faults_count", "nonfinite_samples_count")
"""Counts that must be 0."""
WINDOWS_RESIDUAL_HIGH_DBFS = -50.0
"""Limit of the difference between windows and the undivided segment, with the fp32 weights."""
SILENT_DBFS = -200.0

FILE, CHUNKS, ITSELF, SEAMS = "against the file", "chunk numbers", "by itself", "at its seams"
"""Ways to catch a fault: comparison with the file's samples, the numbers of the chunks, the clip by itself,
and the clip at its seams."""


def judge_clip(
    samples: Samples, sample_rate_hz: int = SAMPLE_RATE_HZ, seams: Sequence[int] = ()
) -> list[Check]:
    """The figures of one clip by itself, and those of its seams if their places are given.

    Parameters
    ----------
    samples : numpy.ndarray
        float32 (n,), 0.1 s or more.
    sample_rate_hz : int
        The rate of `samples`; the limits hold for 24000.
    seams : sequence of int
        The first sample after each seam.

    Raises
    ------
    ParameterError
        `samples` are shorter than 0.1 s, or have several channels.
    """
    count = defects.nonfinite_count(samples)
    checks = [Check("nonfinite_samples_count", count, high=0)]
    if count:
        return checks
    found = {
        "gaps_count": len(defects.gaps(samples, sample_rate_hz)),
        "hardest_fall_db": defects.hardest_fall_db(samples, sample_rate_hz),
        "clipped_samples_count": defects.clipped_count(samples, sample_rate_hz),
        "click_score_ratio": click_score(samples, sample_rate_hz),
        "splice_score_ratio": splice_score(samples, sample_rate_hz),
    }
    if len(seams):
        found["seam_excess_ratio"] = float(seam_excess(samples, sample_rate_hz, seams).max())
    repeat_db = defects.closest_repeat(samples, sample_rate_hz).residual_db
    return [
        *checks,
        *(Check(name, value, high=HIGH[name]) for name, value in found.items()),
        Check("closest_repeat_residual_db", repeat_db, low=REPEAT_RESIDUAL_LOW_DB),
    ]


def measure(spoken: Sequence[StreamedClip]) -> pd.DataFrame:
    """One row for each clip: its differences from the file, faults in the numbers of its chunks, and the
    figures of `judge_clip`.

    Returns
    -------
    pandas.DataFrame
        text, voice, audio_s, window_seams_count, segment_seams_count, differing_samples_count,
        chunk_faults_count; and a column for each check of `judge_clip`, NaN if the check was not made. Among
        these, seam_excess_ratio counts only what exceeds the same place decoded at once. Three columns
        compare windows with the segment decoded at once: seam_rank_change, how much higher borders of windows
        rank among other places than the same places decoded at once; windows_residual_dbfs, the largest
        difference; and speech_to_residual_db.
    """
    rows = []
    for clip in spoken:
        samples = clip.samples
        rows.append(
            {
                "text": clip.text,
                "voice": clip.voice,
                "audio_s": len(samples) / SAMPLE_RATE_HZ,
                "window_seams_count": len(clip.places(WINDOW)),
                "segment_seams_count": len(clip.places(SEGMENT)),
                "differing_samples_count": differing_count(samples, clip.file),
                "chunk_faults_count": chunk_faults_count(clip.chunks),
                "seam_excess_ratio": _most_bent(clip),
            }
            | {check.name: check.value for check in judge_clip(samples)}
            | _windows(clip)
        )
    return pd.DataFrame(rows)


def differing_count(samples: Samples, file: Samples) -> int:
    """The number of samples that differ from those of the file. Samples that one of the two lacks count,
    too."""
    shared = min(len(samples), len(file))
    different = samples[:shared].view(np.uint32) != file[:shared].view(np.uint32)
    return int(different.sum()) + abs(len(samples) - len(file))


def chunk_faults_count(chunks: Sequence[AudioChunk]) -> int:
    """The number of chunks that have a wrong number or place, or that belong to a segment that had ended."""
    faults, sent, segment_id = 0, 0, 0
    for number, chunk in enumerate(chunks):
        follows = chunk.chunk_id == number and round(chunk.start_s * chunk.sample_rate_hz) == sent
        faults += not (follows and chunk.segment_id >= segment_id)
        sent, segment_id = sent + len(chunk.samples), chunk.segment_id
    return faults


def judge(table: pd.DataFrame) -> list[Check]:
    """The checks of a table: every sample equals the file's, every chunk is in its place, and no clip has a
    defect."""
    checks = [
        Check("seams_count", table.window_seams_count.sum() + table.segment_seams_count.sum(), low=1),
        Check("differing_samples_count", table.differing_samples_count.sum(), high=0),
        Check("chunk_faults_count", table.chunk_faults_count.sum(), high=0),
        Check("nonfinite_samples_count", table.nonfinite_samples_count.sum(), high=0),
    ]
    checks += [Check(f"{name}_most", table[name].max(), high=high) for name, high in HIGH.items()]
    repeat_db = table.closest_repeat_residual_db.min()
    checks.append(Check("closest_repeat_residual_least_db", repeat_db, low=REPEAT_RESIDUAL_LOW_DB))
    if table.seam_rank_change.notna().any():
        change = table.seam_rank_change.mean()
        checks.append(Check("seam_rank_change_mean", change, high=SEAM_RANK_CHANGE_HIGH))
    return checks


def remarks(table: pd.DataFrame) -> list[str]:
    """Remarks on what the verdict does not cover."""
    unranked = "no border of windows was compared with the same place decoded at once"
    return [unranked] * (not table.seam_rank_change.notna().any())


def judged_clips(spoken: Sequence[StreamedClip], table: pd.DataFrame) -> list[JudgedClip]:
    """Every stream beside its file: the worst is the one with the largest share of a limit of `CLIP_LIMITS`.

    A stream with a fault that clean speech never has, such as a sample that differs from the file, is worse
    than all others.
    """
    found = []
    for clip, (_, row) in zip(spoken, table.iterrows(), strict=True):
        faults = [name for name in NONE_OF if row[name] > 0]
        faults += [name for name, high in HIGH.items() if name not in CLIP_LIMITS and row[name] > high]
        faults += ["closest_repeat"] if row.closest_repeat_residual_db < REPEAT_RESIDUAL_LOW_DB else []
        shares = [row[name] / HIGH[name] for name in CLIP_LIMITS if np.isfinite(row[name])]
        found.append(
            JudgedClip(
                f"{clip.text}, {clip.voice}",
                clip.said,
                clip.voice,
                LANGUAGE_OF_PREFIX[clip.voice[0]],
                {name: float(row[name]) for name in (*CLIP_LIMITS, "differing_samples_count", "audio_s")},
                max(shares, default=0.0) + 1000 * len(faults),
                partial(Sound, clip.samples, clip.words),
                partial(Sound, clip.file, clip.words),
                {"faults": ", ".join(map(words_of, faults)) or "none"},
            )
        )
    return found


def judge_windows(table: pd.DataFrame) -> list[Check]:
    """Checks of the fp32 model: windows differ from the undivided segment by next to nothing.

    The limits hold only for fp32: in other variants, each window has its own scales of integers.
    """
    return [
        Check("windows_compared_count", table.window_seams_count.sum(), low=1),
        Check(
            "windows_residual_most_dbfs", table.windows_residual_dbfs.max(), high=WINDOWS_RESIDUAL_HIGH_DBFS
        ),
    ]


def detections(spoken: Sequence[StreamedClip]) -> pd.DataFrame:
    """Put every fault into every clip, and find the share of clips in which each way of looking catches it.

    Returns
    -------
    pandas.DataFrame
        A row for each fault; columns `against the file`, `by itself` (`judge_clip` without seams) and `at its
        seams` (the fault's own splices are declared as seams), 0 to 1.
    """
    rows = []
    for name, (damage, splices) in FAULTS.items():
        for clip in spoken:
            damaged = damage(clip.samples)
            seams = [] if name == NOT_FINITE else splices(clip.samples)
            refused = failed(judge_clip(damaged, seams=seams))
            rows.append(
                {
                    "fault": name,
                    FILE: differing_count(damaged, clip.file) > 0,
                    ITSELF: bool(set(refused) - {"seam_excess_ratio"}),
                    SEAMS: "seam_excess_ratio" in refused,
                }
            )
    return pd.DataFrame(rows).groupby("fault", sort=False).mean()


def controls(spoken: Sequence[StreamedClip], found: pd.DataFrame) -> list[NegativeControl]:
    """Faults that the gate must catch: every damage of the samples by comparison with the file, those in
    `SEEN_ALONE` also by `judge_clip` without the file, and every fault of `CHUNK_FAULTS` by the numbers of
    the chunks.

    `found` is the table that `detections` returned for the clips. A click, a cut and swapped chunks are no
    controls of `judge_clip`, which finds them only sometimes.
    """
    made = [NegativeControl(f"{name}: {FILE}", bool(found.loc[name, FILE] == 1)) for name in found.index]
    made += [NegativeControl(f"{name}: {ITSELF}", bool(found.loc[name, ITSELF] == 1)) for name in SEEN_ALONE]
    first = spoken[0]
    for name, fault in CHUNK_FAULTS.items():
        table = measure([replace(first, chunks=fault(first.chunks))])
        made.append(NegativeControl(f"{name}: {CHUNKS}", "chunk_faults_count" in failed(judge(table))))
    return made


def window_controls(spoken: Sequence[StreamedClip]) -> list[NegativeControl]:
    """Windows of the fp32 model that each fade in within 1 ms must fail `judge_windows`."""
    clip = max(spoken, key=lambda each: len(each.decodes.borders))
    faded = clip.decodes.windows.copy()
    for border in clip.decodes.borders:
        faded[border : border + 24] *= np.linspace(0, 1, 24, dtype=np.float32)
    table = measure([replace(clip, decodes=clip.decodes._replace(windows=faded))])
    return [
        NegativeControl(
            "windows that fade in: against the undivided segment",
            caught=bool(failed(judge_windows(table))),
        )
    ]


def figures(table: pd.DataFrame, found: pd.DataFrame) -> dict[str, float]:
    """Figures without a limit: how much speech was judged, and how often a clip by itself shows an injected
    fault."""
    alone = {f"{name.replace(' ', '_')}_seen_alone_share": found.loc[name, ITSELF] for name in found.index}
    return {
        "clips_count": len(table),
        "audio_s": table.audio_s.sum(),
        "speech_to_residual_least_db": table.speech_to_residual_db.min(),
    } | alone


def _windows(clip: StreamedClip) -> dict[str, float]:
    windows, undivided, borders = clip.decodes
    residual = np.abs(windows.astype(np.float64) - undivided)
    power = float((undivided.astype(np.float64) ** 2).sum()), float((residual**2).sum())
    change = float("nan")
    if borders:
        joined, whole = (seam_rank(s, SAMPLE_RATE_HZ, borders).mean() for s in (windows, undivided))
        change = float(joined - whole)
    return {
        "seam_rank_change": change,
        "windows_residual_dbfs": 20 * float(np.log10(max(residual.max(), 10 ** (SILENT_DBFS / 20)))),
        "speech_to_residual_db": 10 * float(np.log10(power[0] / power[1])) if power[1] else float("inf"),
    }


def _most_bent(clip: StreamedClip) -> float:
    """The excess of a clip's most bent seam; NaN where there is none, or a sample is not finite."""
    samples = clip.samples
    # Not all chunks may have come
    inside = [seam for seam in clip.seams if seam.at_sample < len(samples)]
    if not inside or defects.nonfinite_count(samples):
        return float("nan")
    natural = np.zeros(len(inside))
    windows = [number for number, seam in enumerate(inside) if seam.decoded_at is not None]
    decoded_at = [seam.decoded_at for seam in inside if seam.decoded_at is not None]
    natural[windows] = seam_scores(clip.decodes.undivided, SAMPLE_RATE_HZ, decoded_at)
    places = [seam.at_sample for seam in inside]
    return float(seam_excess(samples, SAMPLE_RATE_HZ, places, natural).max())


def _not_finite(samples: Samples) -> Samples:
    damaged = samples.copy()
    damaged[damages.loudest(samples).start] = np.nan
    return damaged


def _splices(*numbers: int) -> Callable[[Samples], list[int]]:
    """A function that returns the samples at which a fault joins two pieces. `numbers` are their distances
    from the start of the loudest span, in lengths of that span."""

    def places(samples: Samples) -> list[int]:
        span = damages.loudest(samples)
        return [span.start + number * (span.stop - span.start) for number in numbers]

    return places


NOT_FINITE = "one sample that is no number"
FAULTS: dict[str, tuple[damages.Damage, Callable[[Samples], list[int]]]] = {
    "a click of 0.3": (damages.click, _splices(0)),
    "100 ms of silence": (damages.gap, _splices(0, 1)),
    "100 ms cut out": (damages.cut, _splices(0)),
    "100 ms heard twice": (damages.repeat, _splices(1)),
    "two chunks swapped": (damages.swapped, _splices(0, 1, 2)),
    "clipped peaks": (damages.clipped, _splices(0)),
    NOT_FINITE: (_not_finite, _splices(0)),
}
"""Name of a fault → the function that makes it, and the function that finds the places of its splices."""
SEEN_ALONE = ("100 ms of silence", "100 ms heard twice", "clipped peaks", NOT_FINITE)
CHUNK_FAULTS: dict[str, Callable[[tuple[AudioChunk, ...]], tuple[AudioChunk, ...]]] = {
    "a chunk lost": lambda chunks: (*chunks[:1], *chunks[2:]),
    "a chunk sent twice": lambda chunks: (*chunks[:2], *chunks[1:]),
    "two chunks in each other's place": lambda chunks: (chunks[1], chunks[0], *chunks[2:]),
}
