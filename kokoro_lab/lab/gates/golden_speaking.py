"""Speaks golden clips: to compare them with their recordings, or to record them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from kokoro_lab.containers.pcm import write_whole
from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.lab import plots
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.fixtures import MANDARIN_VOICE, mandarin_texts, require_known
from kokoro_lab.lab.gates.golden import Take, compare
from kokoro_lab.lab.gates.golden_files import (
    MANIFEST,
    Case,
    GoldenClip,
    GoldenFolder,
    GoldenRecording,
    HeardWord,
    figures_of_samples,
)
from kokoro_lab.lab.results import facts_of
from kokoro_lab.native.toolchain import build_of
from kokoro_lab.speech.engine import Engine, load_engine
from kokoro_lab.typed import require_choice

PCM_SCALE = 32768
"""The number by which `containers.pcm.read_wav` divides 16-bit samples."""


def chosen(golden: GoldenFolder, cases: int = 0, variants: str = "") -> list[str]:
    """Names of the recordings of the plan's first `cases` (0 takes all) by `variants` (names separated by
    commas; empty takes all). Mandarin cases are left out if Mandarin is not installed.

    Raises
    ------
    ParameterError
        No case of the plan has one of the variants.
    """
    planned = sorted({variant for _, variant in golden.planned.values()})
    wanted = variants.split(",") if variants else planned
    for variant in wanted:
        require_choice("variants", variant, planned, f"No golden clip is spoken by {variant}.")
    among = {c.name for c in golden.cases[: cases or None] if c.voice != MANDARIN_VOICE or mandarin_texts()}
    return [name for name, (case, v) in golden.planned.items() if case.name in among and v in wanted]


def as_it_ships(variant: str) -> Engine:
    """An engine without the tuner's settings: with tuned windows, its samples would be rounded otherwise than
    the recorded ones."""
    return load_engine(variant, tuned=False)


def speak_again(
    golden: GoldenFolder, names: Sequence[str], engine_of: Callable[[str], Engine] = as_it_ships
) -> tuple[list[Take], dict[str, Any]]:
    """Speak the recordings `names` again, one variant's engine after the other.

    A planned recording that does not exist is left out here; `golden.judge` counts it.

    Returns
    -------
    list of Take
    dict
        Facts of the engines that spoke, for a result.
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
    """Speak the recordings `names` as they are planned now, one variant's engine after the other."""
    with tqdm(total=len(names), desc="golden clips") as bar:
        for variant in dict.fromkeys(golden.planned[name][1] for name in names):
            engine = engine_of(variant)
            for name in names:
                if golden.planned[name][1] == variant:
                    yield engine, speak(engine, *golden.planned[name])
                    bar.update()


def speak(engine: Engine, case: Case, variant: str) -> GoldenClip:
    """Speak a case as it would be recorded, without any cache."""
    clip = engine.stream(
        case.words, voice=case.voice, speed=case.speed, streamed=case.streamed, cached=False
    ).joined()
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
    """The samples that are read from a 16-bit file of `clip`."""
    return Dither(clip.seed).run(clip.samples).astype(np.float32) / np.float32(PCM_SCALE)


def _segments_s(clip: Clip) -> tuple[float, ...]:
    by_segment: dict[int, list[float]] = {}
    for word in clip.timings:
        by_segment.setdefault(word.segment_id, []).extend((word.start_s, word.end_s))
    return tuple(round(max(times) - min(times), 5) for times in by_segment.values())


def names_of(golden: GoldenFolder, wanted: Sequence[str]) -> list[str]:
    """Names of recordings, from names of cases (all their variants) or of recordings, in the plan's order.

    Raises
    ------
    ParameterError
        A name is neither that of a case nor that of a recording.
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
    """Speak the recordings `names`, keep evidence in `folder`, then replace the earlier recordings with them.

    Nothing in `golden/` changes before all of them are spoken. `folder` gets each new recording as
    `<name>-after.flac`. If a recording replaces an earlier one, `folder` also gets `<name>-before.flac`,
    `<name>.png`, and the row of `golden.compare` in `difference.json`.

    Returns
    -------
    list of str
        One sentence for each change.
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


def record(golden: GoldenFolder, spoken: Sequence[GoldenClip]) -> None:
    """Write `spoken` to the folder, in place of earlier recordings with the same names.

    A recording that is not planned any more is removed from the manifest. Its FLAC file stays, until the
    person who edited the plan deletes it.
    """
    recordings = dict(golden.recordings)
    for recording, samples in spoken:
        content = flac_bytes(samples)
        write_whole(golden.path(recording.name), content)
        recordings[recording.name] = replace(recording, flac_sha256=sha256(content).hexdigest())
    kept = [recordings[name] for name in golden.planned if name in recordings]
    write_json(golden.folder / MANIFEST, {"recordings": [_row(recording) for recording in kept]})


def flac_bytes(samples: Samples) -> bytes:
    """A FLAC file of samples that are whole steps of 16 bit already, so that they are not dithered a second
    time."""
    content = io.BytesIO()
    pcm = np.rint(samples * PCM_SCALE).astype(np.int16)
    soundfile.write(content, pcm, SAMPLE_RATE_HZ, format="FLAC", subtype="PCM_16")
    return content.getvalue()


def _row(recording: GoldenRecording) -> dict[str, Any]:
    words = [f"{word.start_s} {word.end_s} {word.text}" for word in recording.words]  # a line each
    return asdict(recording) | {"words": words}
