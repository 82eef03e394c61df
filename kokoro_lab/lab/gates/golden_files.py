"""The folder `golden/`: read by gates and tests, written by `kokoro-lab golden` alone.

`plan.json` is written by hand: the cases, and the tolerances. `manifest.json` and the FLAC files beside it
are recordings.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from kokoro_lab.audio import read_wav, write_whole
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates.golden_clips import (
    PCM_SCALE,
    Case,
    GoldenClip,
    GoldenRecording,
    HeardWord,
    Tolerance,
)
from kokoro_lab.lab.results import write_json
from kokoro_lab.native.toolchain import Build
from kokoro_lab.provenance import repository_root

PLAN, MANIFEST = "plan.json", "manifest.json"


@dataclass(frozen=True, slots=True)
class GoldenFolder:
    """The folder `golden/`, read. Made by `load_golden`."""

    folder: Path
    cases: tuple[Case, ...]
    tolerances: Mapping[str, Mapping[str, Tolerance]]
    recordings: Mapping[str, GoldenRecording] = field(default_factory=dict)

    @property
    def planned(self) -> dict[str, tuple[Case, str]]:
        """Name of each recording that there must be → its case and variant."""
        return {case.recording_name(v): (case, v) for case in self.cases for v in case.variants}

    @property
    def there(self) -> list[str]:
        """Names of the planned recordings that can be compared with; `faults` says of the others why not."""
        return [name for name in self.planned if name in self.recordings and self.path(name).is_file()]

    def path(self, name: str) -> Path:
        """Of a recording's FLAC file."""
        return self.folder / f"{name}.flac"

    def tolerance(self, build: str, variant: str) -> Tolerance:
        """What `build`, `SAME` or `ANOTHER`, may be off.

        Raises
        ------
        ParameterError
            The plan does not say: nothing is tolerated by default.
        """
        try:
            return self.tolerances[build][variant]
        except KeyError:
            raise ParameterError(
                f"{PLAN} has no tolerance for {variant} on {build}.",
                field="tolerances",
                value=f"{build}, {variant}",
                mend="Measure what it must be, and write it down there.",
            ) from None

    def faults(self) -> list[str]:
        """What is wrong with the folder, in a sentence each: recordings missing, changed, or not planned."""
        found = []
        for name, (case, _) in self.planned.items():
            recording, path = self.recordings.get(name), self.path(name)
            if recording is None or not path.is_file():
                found.append(f"{name} was not recorded")
            elif sha256(path.read_bytes()).hexdigest() != recording.flac_sha256:
                found.append(f"{path.name} is not the file that {MANIFEST} describes")
            elif recording.asked != case.asked:
                found.append(f"{name} was recorded of another text, voice, speed or way of speaking")
        there = {path.stem for path in self.folder.glob("*.flac")} | set(self.recordings)
        return found + [f"{name} is not planned" for name in sorted(there - set(self.planned))]

    def spoken(self, name: str) -> GoldenClip:
        """A recording with its samples.

        Raises
        ------
        ParameterError
            There is none of that name.
        """
        if name not in self.recordings:
            raise ParameterError(
                f"There is no recording {name!r}.",
                field="case",
                value=name,
                allowed=", ".join(self.recordings) or "none yet",
                mend="Run `make golden CASE=...` to record it.",
            )
        samples, _ = read_wav(self.path(name))
        return GoldenClip(self.recordings[name], samples)


def golden_folder() -> Path:
    """`golden/` of the repository."""
    return repository_root() / "golden"


def load_golden(folder: Path | None = None) -> GoldenFolder:
    """Read the plan and the manifest.

    Raises
    ------
    ParameterError
        The plan is missing, or one of the two is not as it should be.
    """
    folder = folder or golden_folder()
    plan, manifest = (_read(folder / name) for name in (PLAN, MANIFEST))
    try:
        cases = tuple(Case(**(row | {"variants": tuple(row["variants"])})) for row in plan["cases"])
        tolerances = {
            build: {variant: Tolerance(**limits) for variant, limits in by_variant.items()}
            for build, by_variant in plan["tolerances"].items()
        }
        recordings = {row["name"]: _recording(row) for row in manifest.get("recordings", [])}
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(
            f"A file in {folder.name}/ is not as it should be: {error}.",
            field="golden",
            value=str(error),
            mend="golden/README.md says what they hold.",
        ) from error
    return GoldenFolder(folder, cases, tolerances, recordings)


def record(golden: GoldenFolder, spoken: Sequence[GoldenClip]) -> GoldenFolder:
    """Write recordings to the folder, in place of those of the same names, and no others.

    What is not planned any more leaves the manifest; its FLAC file is left to who took it out of the plan.

    Returns
    -------
    Golden
        The folder as it is now.

    Raises
    ------
    ParameterError
        A recording that is not planned, or a folder that cannot be written.
    """
    recordings = dict(golden.recordings)
    for recording, samples in spoken:
        if recording.name not in golden.planned:
            raise ParameterError(
                f"{recording.name} is not in {PLAN}.",
                field="case",
                value=recording.name,
                allowed=", ".join(golden.planned),
            )
        content = flac_bytes(samples)
        write_whole(golden.path(recording.name), content)
        recordings[recording.name] = replace(recording, flac_sha256=sha256(content).hexdigest())
    kept = [recordings[name] for name in golden.planned if name in recordings]
    write_json(golden.folder / MANIFEST, {"recordings": [_row(recording) for recording in kept]})
    return load_golden(golden.folder)


def flac_bytes(samples: Samples) -> bytes:
    """A FLAC file of samples that are whole steps of 16 bit already: nothing is dithered twice."""
    content = io.BytesIO()
    pcm = np.rint(samples * PCM_SCALE).astype(np.int16)
    soundfile.write(content, pcm, SAMPLE_RATE_HZ, format="FLAC", subtype="PCM_16")
    return content.getvalue()


def _read(path: Path) -> dict[str, Any]:
    if not path.exists() and path.name == MANIFEST:  # before the first recording
        return {}
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ParameterError(
            f"{path.parent.name}/{path.name} cannot be read: {error}.", field="golden", value=path.name
        ) from error


def _row(recording: GoldenRecording) -> dict[str, Any]:
    words = [f"{word.start_s} {word.end_s} {word.text}" for word in recording.words]  # a line each
    return asdict(recording) | {"words": words}


def _recording(row: Mapping[str, Any]) -> GoldenRecording:
    lists = {name: tuple(row[name]) for name in ("phonemes", "token_counts", "segments_s")}
    words = tuple(_word(line) for line in row["words"])
    return GoldenRecording(**{**row, **lists, "words": words, "build": Build(**row["build"])})


def _word(line: str) -> HeardWord:
    start_s, end_s, text = line.split(" ", 2)
    return HeardWord(text, float(start_s), float(end_s))
