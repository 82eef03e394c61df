"""What is spoken to calibrate, compare and check: segments of texts, by voices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tqdm import tqdm

from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.model.prosody import Values
from kokoro_lab.weights.voices import english_of, load_voice

Spoken = tuple[tuple[int, ...], Values]
"""Token ids of a segment, without pads, and the style vector, float32 (1, 256), that speaks it."""


def segments_of(front_end: FrontEnd, line: str, voice: str) -> Iterator[Spoken]:
    """The segments of an English line, as `voice` reads it."""
    pack = load_voice(voice)
    for segment in front_end.segments(line, english_of(voice), lambda _: None):
        yield tuple(segment.token_ids), pack.style(len(segment.token_ids))


def segments_of_all(
    lines: Sequence[str], voices: Sequence[str], *, what: str = "spoken", progress: bool = True
) -> Iterator[Spoken]:
    """The segments of every line by every voice, one after the other, with a bar."""
    front_end = FrontEnd()
    jobs = [(line, voice) for line in lines for voice in voices]
    for line, voice in tqdm(jobs, desc=what, disable=None if progress else True):
        yield from segments_of(front_end, line, voice)


def one_voice_each(
    lines: Sequence[str], voices: Sequence[str], *, what: str = "spoken", progress: bool = True
) -> Iterator[Spoken]:
    """The segments of every line, each line by the next voice, with a bar."""
    front_end = FrontEnd()
    for number, line in enumerate(tqdm(lines, desc=what, disable=None if progress else True)):
        yield from segments_of(front_end, line, voices[number % len(voices)])
