"""Does the engine still speak as it did? Its golden clips are spoken again and compared.

What may differ depends on the build (`native.toolchain`). On the **same build** as recorded, the samples are
the same; the tolerance covers threads that add in another order. On **another build**, roundings differ, and
the 8-bit variants' integers amplify them: words may be a frame longer, and samples cannot be compared.
`UNSEEN_ON_ANOTHER_BUILD` names the faults that stay hidden then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples, has_sound
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.golden_files import (
    ANOTHER,
    SAME,
    GoldenClip,
    GoldenFolder,
    GoldenRecording,
    figures_of_samples,
)
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.fingerprint import Fingerprint, bit_error_rate, even_edges_s, mel_fingerprint
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX

NO_RESIDUAL_DBFS = -120.0
"""The residual that is reported for two equal clips, in place of minus infinity. It is below the last bit of
a sample."""
CONTROL_CLIPS = 2
UNTOUCHED, WORD_DROPPED, OTHER_VOICE = "the recording itself passes", "a dropped word", "another voice"


FIGURES_SHOWN = (
    "fingerprint_share",
    "word_difference_s",
    "loudness_difference_lu",
    "residual_peak_dbfs",
    "length_share",
)
"""Figures of each clip that the table of the worst clips shows."""


class SpelledWord(NamedTuple):
    """A word, when it is heard, and its phonemes, which are empty if they are not known."""

    text: str
    start_s: float
    end_s: float
    phonemes: str


class Take(NamedTuple):
    """A recording, and the same request spoken now."""

    reference: GoldenClip
    candidate: GoldenClip


def measure(takes: Sequence[Take]) -> pd.DataFrame:
    """How each candidate differs from its recording.

    Returns
    -------
    pandas.DataFrame
        One row for each take, indexed by its recording's name: variant; build, `same build` or `another
        build`; `differs`, the parts of the build that differ; same_request, same_weights, same_reading
        (phonemes of each segment); length_share, how much longer the candidate is as a share of the
        recording's length; word_difference_s, the most that any word is longer or shorter;
        beyond_words_difference_s, how much longer the candidate is outside of its words; fingerprint_share,
        the share of bits that differ; loudness_difference_lu; residual_peak_dbfs; true_peak_dbtp. NaN stands
        for figures that cannot be compared because words or lengths differ; NaN never passes.
    """
    rows = [compare(take) for take in takes]
    return pd.DataFrame(rows).set_index("name") if rows else pd.DataFrame()


def compare(take: Take) -> dict[str, Any]:
    """One row of `measure`."""
    first, second = take.reference.recording, take.candidate.recording
    differs = first.build.differences(second.build)
    return {
        "name": first.name,
        "variant": first.variant,
        "build": ANOTHER if differs else SAME,
        "differs": ", ".join(differs),
        "same_request": first.asked == second.asked,
        "same_weights": first.model_sha256 == second.model_sha256,
        "same_reading": (first.phonemes, first.token_counts) == (second.phonemes, second.token_counts),
        "length_share": second.samples_count / first.samples_count - 1,
        **_by_words(take),
        "loudness_difference_lu": second.integrated_lufs - first.integrated_lufs,
        "residual_peak_dbfs": residual_peak_dbfs(take.reference.samples, take.candidate.samples),
        "true_peak_dbtp": second.true_peak_dbtp,
    }


def _by_words(take: Take) -> dict[str, float]:
    """The comparison word by word; all NaN if the words differ."""
    first, second = take.reference.recording, take.candidate.recording
    if [word.text for word in first.words] != [word.text for word in second.words]:
        return dict.fromkeys(("word_difference_s", "beyond_words_difference_s", "fingerprint_share"), np.nan)
    lengths_s, others_s = (np.array([w.end_s - w.start_s for w in each.words]) for each in (first, second))
    beyond_s, other_s = (each.duration_s - each.words[-1].end_s for each in (first, second))
    anchors_s, moved_s = (np.maximum.accumulate(each.anchors_s) for each in take)
    edges_s = np.interp(even_edges_s(first.duration_s), anchors_s, moved_s)
    heard = mel_fingerprint(take.candidate.samples, SAMPLE_RATE_HZ, edges_s)
    return {
        "word_difference_s": float(np.abs(others_s - lengths_s).max()),
        "beyond_words_difference_s": other_s - beyond_s,
        "fingerprint_share": bit_error_rate(Fingerprint.from_hex(first.fingerprint), heard),
    }


def residual_peak_dbfs(reference: Samples, candidate: Samples) -> float:
    """The highest sample of the difference; NaN where the lengths differ, and never below −120 dBFS."""
    if len(reference) != len(candidate):
        return float("nan")
    peak = float(np.abs(reference.astype(np.float64) - candidate).max())
    return max(20 * float(np.log10(peak)), NO_RESIDUAL_DBFS) if peak else NO_RESIDUAL_DBFS


def judged_clips(
    takes: Sequence[Take], table: pd.DataFrame, golden: GoldenFolder
) -> tuple[list[JudgedClip], Limits]:
    """Every take as a judged clip, and the limits that are drawn. The worst take uses the largest share of
    one of its tolerances. A take with other words, or with a difference where none is allowed, is worse than
    all others.
    """
    found, allowed = [], [0.0]
    for take, (name, row) in zip(takes, table.iterrows(), strict=True):
        case, variant = golden.planned[str(name)]
        limit = golden.tolerance(row.build, variant)
        measured = {column: row[column] for column in FIGURES_SHOWN}
        shares = [
            _share(row.fingerprint_share, limit.fingerprint_share),
            _share(row.word_difference_s, limit.word_s),
            _share(row.loudness_difference_lu, limit.loudness_lu),
        ]
        sounds = [partial(Sound, each.samples, _spelled(each.recording)) for each in take]
        about = (str(name), case.words, case.voice, LANGUAGE_OF_PREFIX[case.voice[0]])
        found.append(JudgedClip(*about, measured, float(np.max(shares)), sounds[1], sounds[0]))
        allowed.append(limit.fingerprint_share)
    return found, {"fingerprint_share": (None, max(allowed))}


def _share(value: float, limit: float) -> float:
    if limit:
        return abs(value) / limit
    return 0.0 if value == 0 else float("inf")


def _spelled(recording: GoldenRecording) -> list[SpelledWord]:
    """The words of a recording, each with its phonemes if the numbers of words and of phoneme groups are
    equal."""
    phonemes = [one for one in " ".join(recording.phonemes).split() if has_sound(one)]
    if len(phonemes) != len(recording.words):
        phonemes = [""] * len(recording.words)
    return [SpelledWord(*word, spelled) for word, spelled in zip(recording.words, phonemes, strict=True)]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Figures without a limit: how many clips were compared on the same build, with strict tolerances, and on
    another one; and medians."""
    return {
        "clips_on_the_same_build_count": int((table.build == SAME).sum()),
        "clips_on_another_build_count": int((table.build == ANOTHER).sum()),
        "fingerprint_errors_median_share": table.fingerprint_share.median(),
        "loudness_difference_median_lu": table.loudness_difference_lu.median(),
    }


def judge(table: pd.DataFrame, golden: GoldenFolder) -> list[Check]:
    """The checks by build and variant, with the plan's limits; a missing recording always fails."""
    checks = [
        Check("recordings_at_fault_count", len(golden.faults()), high=0),
        Check("clips_compared_count", len(table), low=1),
    ]
    return checks + judge_takes(table, golden) if len(table) else checks


def judge_takes(table: pd.DataFrame, golden: GoldenFolder) -> list[Check]:
    """Those checks of `judge` that concern takes, without those on the folder."""
    same = {"requests": "same_request", "weights": "same_weights", "readings": "same_reading"}
    checks = [
        Check(f"{name}_changed_count", int((~table[column]).sum()), high=0) for name, column in same.items()
    ]
    checks.append(Check("true_peak_highest_dbtp", table.true_peak_dbtp.max(), high=TRUE_PEAK_LIMIT_DBTP))
    for (build, variant), rows in table.groupby(["build", "variant"]):
        limit = golden.tolerance(str(build), str(variant))
        limits = {
            "length_difference_most_share": (rows.length_share, limit.length_share),
            "word_difference_most_s": (rows.word_difference_s, limit.word_s),
            "beyond_words_difference_most_s": (rows.beyond_words_difference_s, limit.beyond_words_s),
            "fingerprint_errors_most_share": (rows.fingerprint_share, limit.fingerprint_share),
            "loudness_difference_most_lu": (rows.loudness_difference_lu, limit.loudness_lu),
        }
        checks += [
            Check(f"{variant}_{name}", values.abs().max(skipna=False), high=most)
            for name, (values, most) in limits.items()
        ]
        if limit.residual_peak_dbfs is not None:
            highest, most = rows.residual_peak_dbfs.max(skipna=False), limit.residual_peak_dbfs
            checks.append(Check(f"{variant}_residual_peak_highest_dbfs", highest, high=most))
    return checks


UNSEEN_ON_ANOTHER_BUILD = frozenset(
    {"a click of 0.3", "100 ms of silence", "two chunks swapped", "clipped peaks"}
)
"""Damages that change the fingerprint and the loudness less than another build may: short ones, and clipping
of a hundredth of the samples. The gate notices these damages again once the clips have been recorded on that
build. Seams and loudness have gates of their own."""


def controls(golden: GoldenFolder, names: Sequence[str]) -> list[NegativeControl]:
    """The recordings themselves, damaged: the judge must refuse each, on the same build and on another.

    The controls are every damage of `damages.DAMAGES`, a dropped word and another voice, each put into the
    shortest of the recordings `names`. Damages in `UNSEEN_ON_ANOTHER_BUILD` are left out on another build.
    The first control of each build is no fault: the recording as its own candidate must pass.
    """
    there = [golden.spoken(name) for name in names if name in golden.there]
    spoken = sorted(there, key=lambda each: each.recording.samples_count)[:CONTROL_CLIPS]
    takes = {UNTOUCHED: [Take(each, each) for each in spoken]}
    takes |= {n: [Take(each, _damaged(each, d)) for each in spoken] for n, d in damages.DAMAGES.items()}
    takes[WORD_DROPPED] = [Take(each, _damaged(each, _without_longest_word(each))) for each in spoken]
    takes[OTHER_VOICE] = list(_two_voices(golden))
    tables = {name: measure(of_it) for name, of_it in takes.items() if of_it}
    found = []
    for build in (SAME, ANOTHER):
        for name in takes:
            if build == ANOTHER and name in UNSEEN_ON_ANOTHER_BUILD:
                continue
            rows = tables[name].iterrows() if name in tables else ()
            passed = [_passes(golden, row, build) for _, row in rows]
            right = all(passed) if name == UNTOUCHED else not any(passed)
            found.append(NegativeControl(f"{build}: {name}", caught=bool(passed) and right))
    return found


def _passes(golden: GoldenFolder, row: pd.Series, build: str) -> bool:
    table = pd.DataFrame([row.to_dict() | {"build": build}]).infer_objects()
    return not failed(judge_takes(table, golden))


def _damaged(spoken: GoldenClip, damage: damages.Damage) -> GoldenClip:
    samples = damage(spoken.samples)
    return GoldenClip(replace(spoken.recording, **figures_of_samples(samples)), samples)


def _without_longest_word(spoken: GoldenClip) -> damages.Damage:
    return partial(damages.without, word=damages.longest_word(spoken.recording.words))


def _two_voices(golden: GoldenFolder) -> Iterator[Take]:
    """A take for each two recordings of one text by one variant and two voices: the first recording, and as
    its candidate the same recording with the samples of the second voice."""
    for first, second in combinations((golden.recordings[name] for name in golden.there), 2):
        one, other = ((each.variant, each.asked["text"]) for each in (first, second))
        if one == other and first.asked["voice"] != second.asked["voice"]:
            voice = golden.spoken(second.name)
            heard = {name: getattr(second, name) for name in figures_of_samples(voice.samples)}
            yield Take(golden.spoken(first.name), GoldenClip(replace(first, **heard), voice.samples))
