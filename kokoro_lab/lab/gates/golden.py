"""Does the engine still speak as it did? Its golden clips are spoken again and compared.

What may differ depends on the build (`native.toolchain`). On the **same build** as recorded, the samples are
the same; the tolerance covers threads that add in another order. On **another build**, roundings differ, and
the 8-bit variants' integers amplify them: words may be a frame longer, and samples cannot be compared.
`UNSEEN_ON_ANOTHER_BUILD` names the faults that stay hidden then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.containers.pcm import write_whole
from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples, has_sound
from kokoro_lab.dsp import Dither
from kokoro_lab.dsp.limiter import TRUE_PEAK_LIMIT_DBTP
from kokoro_lab.lab import plots
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.gates import damages
from kokoro_lab.lab.gates.golden_files import (
    ANOTHER,
    PCM_SCALE,
    SAME,
    Case,
    GoldenClip,
    GoldenFolder,
    GoldenRecording,
    HeardWord,
    figures_of_samples,
    flac_bytes,
    record,
)
from kokoro_lab.lab.results import Check, NegativeControl, facts_of, failed
from kokoro_lab.metrics.fingerprint import Fingerprint, bit_error_rate, even_edges_s, mel_fingerprint
from kokoro_lab.native.toolchain import build_of
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.typed import require_choice
from kokoro_lab.weights.voices import LANGUAGE_OF_PREFIX

NO_RESIDUAL_DBFS = -120.0
"""The finite level that stands for no difference: below the last bit."""
CONTROL_CLIPS = 2
UNTOUCHED, WORD_DROPPED, OTHER_VOICE = "the recording itself passes", "a dropped word", "another voice"


FIGURES_SHOWN = (
    "fingerprint_share",
    "word_difference_s",
    "loudness_difference_lu",
    "residual_peak_dbfs",
    "length_share",
)
"""Figures of each clip in the table of the worst."""


class SpelledWord(NamedTuple):
    """A word, when it is heard, and its phonemes; empty where they are not known."""

    text: str
    start_s: float
    end_s: float
    phonemes: str


class Take(NamedTuple):
    """A recording, and the same request spoken now."""

    reference: GoldenClip
    candidate: GoldenClip


def chosen(golden: GoldenFolder, cases: int = 0, variants: str = "") -> list[str]:
    """Names of recordings: of the first `cases` of the plan, 0 for all, by `variants`, with commas, or all.

    Raises
    ------
    ParameterError
        A variant that the plan has nowhere.
    """
    planned = sorted({variant for _, variant in golden.planned.values()})
    wanted = variants.split(",") if variants else planned
    for variant in wanted:
        require_choice("variants", variant, planned, f"No golden clip is spoken by {variant}.")
    among = {case.name for case in golden.cases[: cases or None]}
    return [name for name, (case, v) in golden.planned.items() if case.name in among and v in wanted]


def as_it_ships(variant: str) -> Engine:
    """An engine without tuned settings: with other windows, samples would be rounded differently."""
    return load_engine(variant, tuned=False)


def speak_again(
    golden: GoldenFolder, names: Sequence[str], engine_of: Callable[[str], Engine] = as_it_ships
) -> tuple[list[Take], dict[str, Any]]:
    """Speak what was recorded, one variant's engine after the other.

    A planned recording that is not there is left out here; `judge` counts it.

    Returns
    -------
    list of Take
    dict
        The facts of the engines, for a result.
    """
    takes = []
    ran: dict[str, Any] = {}
    there = [name for name in names if name in golden.there]
    for engine, spoken in _spoken(golden, there, engine_of):
        takes.append(Take(golden.spoken(spoken.recording.name), spoken))
        ran = facts_of(engine)
    variants = dict.fromkeys(golden.planned[name][1] for name in there)
    return takes, ran | {"variant": ",".join(variants)} if takes else {}


def _spoken(
    golden: GoldenFolder, names: Sequence[str], engine_of: Callable[[str], Engine]
) -> Iterator[tuple[Engine, GoldenClip]]:
    """Recordings as they are spoken now, one variant's engine after the other."""
    with tqdm(total=len(names), desc="golden clips") as bar:
        for variant in dict.fromkeys(golden.planned[name][1] for name in names):
            engine = engine_of(variant)
            for name in names:
                if golden.planned[name][1] == variant:
                    yield engine, speak(engine, *golden.planned[name])
                    bar.update()


def speak(engine: Engine, case: Case, variant: str) -> GoldenClip:
    """Speak a case, computed from the start, as it would be recorded."""
    stream = engine.stream(
        case.words, voice=case.voice, speed=case.speed, streamed=case.streamed, cached=False
    )
    clip = stream.joined()
    samples = as_written(clip)
    recording = GoldenRecording(
        name=case.recording_name(variant),
        variant=variant,
        asked=case.asked,
        model_sha256=engine.model_sha256,
        build=build_of(engine.config, engine.decoder.details),
        phonemes=tuple(segment.phonemes for segment in clip.segments),
        token_counts=tuple(len(segment.token_ids) for segment in clip.segments),
        segments_s=_segments_s(clip),
        words=tuple(HeardWord(w.text, round(w.start_s, 5), round(w.end_s, 5)) for w in clip.timings),
        **figures_of_samples(samples),
    )
    return GoldenClip(recording, samples)


def as_written(clip: Clip) -> Samples:
    """The samples of a 16-bit file of `clip`."""
    return Dither(clip.seed).run(clip.samples).astype(np.float32) / np.float32(PCM_SCALE)


def _segments_s(clip: Clip) -> tuple[float, ...]:
    by_segment: dict[int, list[float]] = {}
    for word in clip.timings:
        by_segment.setdefault(word.segment_id, []).extend((word.start_s, word.end_s))
    return tuple(round(max(times) - min(times), 5) for times in by_segment.values())


def measure(takes: Sequence[Take]) -> pd.DataFrame:
    """How each candidate differs from its recording.

    Returns
    -------
    pandas.DataFrame
        One row a take, named by its recording: variant; build, `same build` or `another build`, and in what
        it `differs`; same_request, same_weights, same_reading (phonemes of each segment); length_share, by
        how much of its length it is longer; word_difference_s, the most that any word is longer or shorter;
        beyond_words_difference_s, how much longer it is without its words; fingerprint_share, bits that
        differ; loudness_difference_lu; residual_peak_dbfs; true_peak_dbtp. NaN stands for figures that cannot
        be compared because words or lengths differ; it never passes.
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
    """The highest sample of the difference; NaN where the lengths differ, and never below −120."""
    if len(reference) != len(candidate):
        return float("nan")
    peak = float(np.abs(reference.astype(np.float64) - candidate).max())
    return max(20 * float(np.log10(peak)), NO_RESIDUAL_DBFS) if peak else NO_RESIDUAL_DBFS


def judged_clips(
    takes: Sequence[Take], table: pd.DataFrame, golden: GoldenFolder
) -> tuple[list[JudgedClip], Limits]:
    """Every take, and the limits that are drawn. The worst uses the largest share of one of its tolerances; a
    take with other words, or with a difference where none is allowed, is worse than any other.
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
    """The words, each with its phonemes where there are as many as words."""
    phonemes = [one for one in " ".join(recording.phonemes).split() if has_sound(one)]
    if len(phonemes) != len(recording.words):
        phonemes = [""] * len(recording.words)
    return [SpelledWord(*word, spelled) for word, spelled in zip(recording.words, phonemes, strict=True)]


def figures(table: pd.DataFrame) -> dict[str, float]:
    """Figures without a limit: how many clips were compared with the strict tolerances, and the medians."""
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
    """`judge` without the folder: the takes alone."""
    checks = [
        Check(f"{name}_count", int((~table[column]).sum()), high=0)
        for name, column in (
            ("requests_changed", "same_request"),
            ("weights_changed", "same_weights"),
            ("readings_changed", "same_reading"),
        )
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
            highest = rows.residual_peak_dbfs.max(skipna=False)
            checks.append(
                Check(f"{variant}_residual_peak_highest_dbfs", highest, high=limit.residual_peak_dbfs)
            )
    return checks


def names_of(golden: GoldenFolder, wanted: Sequence[str]) -> list[str]:
    """Names of recordings, from names of cases (all their variants) or of recordings, in the plan's order.

    Raises
    ------
    ParameterError
        One that is neither.
    """
    known = {case.name for case in golden.cases} | set(golden.planned)
    allowed = ", ".join(case.name for case in golden.cases) + ", each also with -<variant>"
    for name in wanted:
        mend = "New ones are written into golden/plan.json first."
        require_known("golden case", name, known, "CASE", allowed=allowed, mend=mend)
    return [name for name, (case, _) in golden.planned.items() if {name, case.name} & set(wanted)]


def record_anew(
    golden: GoldenFolder, names: Sequence[str], folder: Path, engine_of: Callable[[str], Engine] = as_it_ships
) -> list[str]:
    """Speak the recordings `names`, keep evidence in `folder`, then put them in place of those before.

    Nothing in `golden/` changes before all of them are spoken. The evidence of each is `<name>-after.flac`,
    and if there was one before, `<name>-before.flac`, `<name>.png`, and a row of `measure` in
    `difference.json`.

    Returns
    -------
    list of str
        What changed, in a sentence each.
    """
    spoken = [clip for _, clip in _spoken(golden, names, engine_of)]
    folder.mkdir(parents=True, exist_ok=True)
    differences = {clip.recording.name: _evidence(golden, clip, folder) for clip in spoken}
    write_json(folder / "difference.json", differences)
    record(golden, spoken)
    return [_change(name, row) for name, row in differences.items()]


def _evidence(golden: GoldenFolder, after: GoldenClip, folder: Path) -> dict[str, Any]:
    name = after.recording.name
    write_whole(folder / f"{name}-after.flac", flac_bytes(after.samples))
    if name not in golden.there:
        return {}
    before = golden.spoken(name)
    write_whole(folder / f"{name}-before.flac", golden.path(name).read_bytes())
    picture = plots.spectrograms_compared(before.samples, after.samples, SAMPLE_RATE_HZ)
    picture.savefig(folder / f"{name}.png", dpi=100)
    return compare(Take(before, after))


def _change(name: str, row: dict[str, Any]) -> str:
    if not row:
        return f"{name}: recorded for the first time"
    changed = [what for what in ("request", "weights", "reading") if not row[f"same_{what}"]]
    changed += [f"build ({row['differs']})"] if row["differs"] else []
    return (
        f"{name}: {row['length_share']:+.2%} long, words ±{row['word_difference_s']:.3f} s, "
        f"fingerprint {row['fingerprint_share']:.4f}, {row['loudness_difference_lu']:+.2f} LU, "
        f"residual {row['residual_peak_dbfs']:.0f} dBFS; changed: {', '.join(changed) or 'nothing else'}"
    )


UNSEEN_ON_ANOTHER_BUILD = frozenset(
    {"a click of 0.3", "100 ms of silence", "two chunks swapped", "clipped peaks"}
)
"""Damages that change fewer bits and less level than another build may: short ones, and clipping of a
hundredth of the samples. They are noticed if the clips are recorded on that build; seams and levels within a
clip have gates of their own."""


def controls(golden: GoldenFolder, names: Sequence[str]) -> list[NegativeControl]:
    """The recordings themselves, damaged: the judge must refuse each, on the same build and on another.

    Every damage of `damages.DAMAGES`, a dropped word and another voice, on the shortest of the recordings
    `names`; those that another build hides are `UNSEEN_ON_ANOTHER_BUILD`. The first of each build is no
    fault: the recording as its own candidate passes.
    """
    there = [golden.spoken(name) for name in names if name in golden.there]
    spoken = sorted(there, key=lambda each: each.recording.samples_count)[:CONTROL_CLIPS]
    takes = {UNTOUCHED: [Take(each, each) for each in spoken]}
    for name, damage in damages.DAMAGES.items():
        takes[name] = [Take(each, _damaged(each, damage)) for each in spoken]
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
    """Recordings of one text by one variant and two voices: the first, and it with the second's sound."""
    for first, second in combinations((golden.recordings[name] for name in golden.there), 2):
        one, other = ((each.variant, each.asked["text"]) for each in (first, second))
        if one == other and first.asked["voice"] != second.asked["voice"]:
            voice = golden.spoken(second.name)
            heard = {name: getattr(second, name) for name in figures_of_samples(voice.samples)}
            yield Take(golden.spoken(first.name), GoldenClip(replace(first, **heard), voice.samples))
