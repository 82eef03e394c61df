"""Golden clips: what is to be spoken, what is known of a clip that was, and how far off another may be."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples
from kokoro_lab.dsp import Dither
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.metrics.fingerprint import mel_fingerprint
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from kokoro_lab.native.toolchain import Build, build_of
from kokoro_lab.speech.engine import Engine

SAME, ANOTHER = "same build", "another build"
PCM_SCALE = 32768
"""What `audio.read_wav` divides 16-bit samples by."""


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to say: `text` is an id in `fixtures/texts/<texts>.jsonl`, spoken by each of `variants`."""

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
            There is no such text.
        """
        found = {each.id: each.text for each in load_texts(self.texts)}
        if self.text not in found:
            raise ParameterError(
                f"The golden case {self.name!r} has a text that is not there.",
                field="text",
                value=self.text,
                allowed=f"an id of fixtures/texts/{self.texts}.jsonl",
            )
        return found[self.text]

    @property
    def asked(self) -> dict[str, Any]:
        """What a recording of this case must have been asked for."""
        digest = sha256(self.words.encode()).hexdigest()
        return {
            "text": self.text,
            "text_sha256": digest,
            "voice": self.voice,
            "speed": self.speed,
            "streamed": self.streamed,
        }

    def recording_name(self, variant: str) -> str:
        """Of its recording by a variant, and of the FLAC file."""
        return f"{self.name}-{variant}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a candidate may be from its recording.

    Parameters
    ----------
    length_share : float
        Difference in length ÷ length.
    word_s : float
        Difference in length of any word.
    beyond_words_s : float
        Difference in length that is not that of the words: what was lost or added behind the engine's back.
    fingerprint_share : float
        Of the fingerprint's bits, with its moments at the same words.
    loudness_lu : float
        Difference of integrated loudness.
    residual_peak_dbfs : float, optional
        Highest sample of the difference; None where no two builds agree by samples.
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


@dataclass(frozen=True, slots=True)
class GoldenRecording:
    """What is known of one clip, besides its samples. All figures are of the clip as it is written: 16 bit,
    dithered. `phonemes`, `token_counts` and `segments_s` have one value for each segment."""

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
    words: tuple[HeardWord, ...]
    fingerprint: str
    flac_sha256: str = ""


class GoldenClip(NamedTuple):
    """A recording and its samples: float32 mono at 24 kHz, steps of 1/32768."""

    recording: GoldenRecording
    samples: Samples

    @property
    def anchors_s(self) -> list[float]:
        """Places that another reading of the same words has too: beginning, ends of words, end."""
        words = [time_s for word in self.recording.words for time_s in (word.start_s, word.end_s)]
        return [0.0, *words, max([self.recording.duration_s, *words])]


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
        **figures(samples),
    )
    return GoldenClip(recording, samples)


def figures(samples: Samples) -> dict[str, Any]:
    """Of a clip as it is written: length, level and fingerprint, as a `GoldenRecording` has them."""
    return {
        "samples_count": len(samples),
        "duration_s": round(len(samples) / SAMPLE_RATE_HZ, 5),
        "integrated_lufs": round(integrated_lufs(samples, SAMPLE_RATE_HZ), 4),
        "true_peak_dbtp": round(true_peak_dbtp(samples, SAMPLE_RATE_HZ), 4),
        "fingerprint": mel_fingerprint(samples, SAMPLE_RATE_HZ).hex,
    }


def as_written(clip: Clip) -> Samples:
    """The samples that come back from a 16-bit file of `clip`."""
    written: Samples = Dither(clip.seed).run(clip.samples).astype(np.float32) / np.float32(PCM_SCALE)
    return written


def _segments_s(clip: Clip) -> tuple[float, ...]:
    by_segment: dict[int, list[float]] = {}
    for word in clip.timings:
        by_segment.setdefault(word.segment_id, []).extend((word.start_s, word.end_s))
    return tuple(round(max(times) - min(times), 5) for times in by_segment.values())
