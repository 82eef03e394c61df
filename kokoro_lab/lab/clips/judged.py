"""A clip as a gate judged it, and the files that are kept of the worst clips."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kokoro_lab.containers import write_file
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Clip, Samples

WORST_COUNT = 10
"""How many of the worst clips are kept with their sounds."""


class TimedWord(Protocol):
    """A word and when it is heard, in seconds; it may have an attribute `phonemes`, too."""

    @property
    def text(self) -> str: ...
    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...


class Sound(NamedTuple):
    """The sound of a clip.

    Parameters
    ----------
    samples : numpy.ndarray
        float32, shape (n,), at 24 kHz.
    words : sequence of TimedWord
        The words, and when each is heard, in seconds from the start of `samples`; empty where that is not
        known.
    file : Path, optional
        The sound's file, if the run has written one already.
    """

    samples: Samples
    words: Sequence[TimedWord] = ()
    file: Path | None = None

    @classmethod
    def of(cls, clip: Clip) -> Sound:
        """A clip of the engine, with its words."""
        return cls(clip.samples, clip.timings)


@dataclass(frozen=True, slots=True, eq=False)
class JudgedClip:
    """One clip as a gate judged it.

    Parameters
    ----------
    name : str
        Unique in the run, such as "greeting, af_heart, stream".
    text : str
        What is said, in words.
    voice, language : str
    figures : mapping
        The measurements of the clip. Names end in units.
    badness : float
        Higher is worse. A clip whose value is not finite could not be judged, and counts as the worst.
    candidate : callable
        Returns the sound that was judged; called only for the worst clips.
    reference : callable, optional
        Returns the sound with which the clip was compared, if there is one.
    notes : mapping
        Further texts about the clip: heading → text.
    """

    name: str
    text: str
    voice: str
    language: str
    figures: Mapping[str, float]
    badness: float
    candidate: Callable[[], Sound]
    reference: Callable[[], Sound] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class KeptClip(NamedTuple):
    """One of the worst clips, whose sounds are files of the run."""

    judged: JudgedClip
    sounds: Mapping[str, Sound]

    def record(self, folder: Path) -> dict[str, Any]:
        """The clip's entry in `result.json`. Paths are relative to the run's `folder`."""
        files = {
            side: sound.file.relative_to(folder).as_posix()
            for side, sound in self.sounds.items()
            if sound.file
        }
        about = {name: getattr(self.judged, name) for name in ("name", "text", "voice", "language")}
        sounds = {"candidate": files["candidate"], "reference": files.get("reference")}
        return about | sounds | {"figures": dict(self.judged.figures), "badness": self.judged.badness}


def worst_first(clips: Iterable[JudgedClip]) -> list[JudgedClip]:
    """The clips in the order in which a person should listen to them."""
    return sorted(clips, key=lambda clip: -clip.badness if math.isfinite(clip.badness) else -math.inf)


def kept(clip: JudgedClip, place: int, folder: Path) -> KeptClip:
    """Write a clip's sounds to the run's `folder`, as FLAC, unless they are there already.

    Parameters
    ----------
    place : int
        1 for the worst; the files' names begin with it.
    """
    sounds = {}
    name = re.sub(r"[^\w.]+", "-", clip.name)
    for side, ask in (("candidate", clip.candidate), ("reference", clip.reference)):
        if ask is None:
            continue
        sound = ask()
        if sound.file is None:
            path = folder / "audio" / f"worst-{place:02}-{name}-{side}.flac"
            write_file(path, sound.samples, SAMPLE_RATE_HZ)
            sound = sound._replace(file=path)
        sounds[side] = sound
    return KeptClip(clip, sounds)
