"""The folder `golden/`, as gates and tests read it; `golden_speaking` writes it.

`plan.json` is written by hand: the cases, and how far a later version's speech may differ from the
recordings. `manifest.json` describes each recorded clip, and the FLAC files beside it are the clips.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from kokoro_lab.containers.pcm import read_wav
from kokoro_lab.containers.plain_json import FileModel
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import load_texts, require_known
from kokoro_lab.metrics.fingerprint import mel_fingerprint
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.native.toolchain import Build
from kokoro_lab.provenance import repository_root

PLAN, MANIFEST = "plan.json", "manifest.json"
SAME, ANOTHER = "same build", "another build"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the plan: a text, whose id in `fixtures/texts/<texts>.jsonl` is `text`, spoken by each of
    `variants`."""

    name: str
    text: str
    voice: str
    variants: tuple[str, ...]
    texts: str = "english"
    speed: float = 1.0
    streamed: bool = False

    @property
    def words(self) -> str:
        """The text itself.

        Raises
        ------
        ParameterError
            No fixture text has this id.
        """
        found = {each.id: each.text for each in load_texts(self.texts)}
        allowed = f"an id of fixtures/texts/{self.texts}.jsonl"
        require_known(
            f"text for the golden case {self.name!r} named", self.text, found, "text", allowed=allowed
        )
        return found[self.text]

    @property
    def asked(self) -> dict[str, Any]:
        """The request that a recording of this case must have had."""
        digest = sha256(self.words.encode()).hexdigest()
        return {
            "text": self.text,
            "text_sha256": digest,
            "voice": self.voice,
            "speed": self.speed,
            "streamed": self.streamed,
        }

    def recording_name(self, variant: str) -> str:
        """The name of this case's recording by `variant`, which its FLAC file has, too."""
        return f"{self.name}-{variant}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a candidate may differ from its recording.

    Parameters
    ----------
    length_share : float
        Difference in length, as a share of the recording's length.
    word_s : float
        Difference in length of any word, in seconds.
    beyond_words_s : float
        Difference in length outside of the words, in seconds. It shows samples that were lost, or added,
        after the engine had made the speech.
    fingerprint_share : float
        Share of the fingerprint's bits that may differ, with both clips aligned at their words.
    loudness_lu : float
        Difference of integrated loudness.
    residual_peak_dbfs : float, optional
        Highest sample of the difference; None for builds whose samples differ anyway.
    """

    length_share: float
    word_s: float
    beyond_words_s: float
    fingerprint_share: float
    loudness_lu: float
    residual_peak_dbfs: float | None = None


class HeardWord(NamedTuple):
    """A word and when it is heard, in seconds from the start of the clip."""

    text: str
    start_s: float
    end_s: float


def _heard(line: Any) -> Any:
    """The word that a line of the manifest holds, with its start and end in seconds."""
    start_s, end_s, text = line.split(" ", 2) if isinstance(line, str) else line
    return HeardWord(text, float(start_s), float(end_s))


@dataclass(frozen=True, slots=True)
class GoldenRecording:
    """The facts of one clip, besides its samples. All figures are of the clip as written: 16 bit, dithered.
    `phonemes`, `token_counts` and `segments_s` have one value for each segment."""

    name: str
    variant: str
    asked: dict[str, Any]
    model_sha256: str
    build: Build
    samples_count: int
    duration_s: float
    integrated_lufs: float
    true_peak_dbtp: float
    phonemes: tuple[str, ...]
    token_counts: tuple[int, ...]
    segments_s: tuple[float, ...]
    words: tuple[Annotated[HeardWord, BeforeValidator(_heard)], ...]
    fingerprint: str
    flac_sha256: str = ""


class Plan(FileModel):
    """What `plan.json` holds: the cases, and build → variant → tolerance."""

    cases: tuple[Case, ...]
    tolerances: dict[str, dict[str, Tolerance]]


class Manifest(FileModel):
    """What `manifest.json` holds."""

    recordings: tuple[GoldenRecording, ...] = ()


class GoldenClip(NamedTuple):
    """A recording and its samples: float32 mono at 24 kHz, steps of 1/32768."""

    recording: GoldenRecording
    samples: Samples

    @property
    def anchors_s(self) -> list[float]:
        """Times that correspond in all recordings of the same words: the clip's beginning, start and end of
        every word, and the clip's end."""
        words = [time_s for word in self.recording.words for time_s in (word.start_s, word.end_s)]
        return [0.0, *words, max([self.recording.duration_s, *words])]


def figures_of_samples(samples: Samples) -> dict[str, Any]:
    """Length, loudness, true peak and fingerprint of a clip as written, under the names of
    `GoldenRecording`."""
    return {
        "samples_count": len(samples),
        "duration_s": round(len(samples) / SAMPLE_RATE_HZ, 5),
        "integrated_lufs": round(integrated_lufs(samples, SAMPLE_RATE_HZ), 4),
        "true_peak_dbtp": round(true_peak_dbtp(samples, SAMPLE_RATE_HZ), 4),
        "fingerprint": mel_fingerprint(samples, SAMPLE_RATE_HZ).hex,
    }


@dataclass(frozen=True, slots=True)
class GoldenFolder:
    """The contents of the folder `golden/`, as `load_golden` reads them."""

    folder: Path
    cases: tuple[Case, ...]
    tolerances: Mapping[str, Mapping[str, Tolerance]]
    recordings: Mapping[str, GoldenRecording] = field(default_factory=dict)

    @property
    def planned(self) -> dict[str, tuple[Case, str]]:
        """Name of each planned recording → its case and variant."""
        return {case.recording_name(v): (case, v) for case in self.cases for v in case.variants}

    @property
    def there(self) -> list[str]:
        """Names of the planned recordings that can be used; `faults` says why others cannot."""
        return [name for name in self.planned if name in self.recordings and self.path(name).is_file()]

    def path(self, name: str) -> Path:
        """The path of a recording's FLAC file."""
        return self.folder / f"{name}.flac"

    def tolerance(self, build: str, variant: str) -> Tolerance:
        """The tolerance for a `build`, `SAME` or `ANOTHER`.

        Raises
        ------
        ParameterError
            The plan has no tolerance for this build and variant: no difference is tolerated by default.
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
            No recording has this name.
        """
        mend = "Run `make golden CASE=...` to record it."
        allowed = ", ".join(self.recordings) or "none yet"
        require_known("recording", name, self.recordings, "case", allowed=allowed, mend=mend)
        samples, _ = read_wav(self.path(name))
        return GoldenClip(self.recordings[name], samples)


def load_golden(folder: Path | None = None) -> GoldenFolder:
    """Read the plan and the manifest of `folder`, or of the repository's `golden/`.

    Raises
    ------
    ParameterError
        The plan is missing, or plan or manifest is damaged.
    """
    folder = folder or repository_root() / "golden"
    mend = "golden/README.md says what it holds."
    plan, manifest = Plan.read(folder / PLAN, mend=mend), Manifest()
    if (folder / MANIFEST).exists():  # the first recording creates it
        manifest = Manifest.read(folder / MANIFEST, mend=mend)
    recordings = {recording.name: recording for recording in manifest.recordings}
    return GoldenFolder(folder, plan.cases, plan.tolerances, recordings)
