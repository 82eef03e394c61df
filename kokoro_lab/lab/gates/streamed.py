"""Makes streams for gates: with the places of their seams, and the same speech decoded at once beside each.

A stream is put together in three steps: the vocoder decodes a segment window by window, segments are trimmed,
faded and joined by pauses, and all of it is sent in chunks. Windows have enough context that their samples
meet, except the first one of a stream, which has other statistics and fades into the second. So the streamed
samples can be compared with the same speech decoded at once.

How far they agree depends on the arithmetic: with fp32 weights, the difference is below -110 dBFS; with int8
weights it is 40 to 66 dB below the speech, because each window computes the scales of its integers by itself
(measured on sentences of two voices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

import numpy as np

from kokoro_lab.datatypes import AudioChunk, Samples, WordTiming
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates.forced import DecoderAround
from kokoro_lab.model.decoder import DecodedSegment, Decoder, SegmentRequest, StagedDecoder
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.stream import SpeechStream
from kokoro_lab.typed import require_range

WINDOW, SEGMENT = "window", "segment"
"""What meets at a seam: two windows of the vocoder, or speech and the pause between two segments."""

Request = tuple[FixtureText, str]
"""A text and the voice that reads it."""


class Seam(NamedTuple):
    """A place where two windows, or speech and a pause, meet: the first sample of the later one.

    Parameters
    ----------
    kind : str
    at_sample : int
        Index of the sample in the stream.
    decoded_at : int, optional
        Index of the same place in `Decodes`; None between two segments, which are decoded separately.
    """

    kind: str
    at_sample: int
    decoded_at: int | None = None


class Decodes(NamedTuple):
    """The vocoder's samples of a clip, one segment after the other, with the stream's gain and not trimmed.

    Parameters
    ----------
    windows, undivided : numpy.ndarray
        float32 (n,): decoded window by window as streamed, and each segment at once, with the same
        statistics.
    borders : tuple of int
        The first sample of each window that follows another one without silence between them.
    """

    windows: Samples
    undivided: Samples
    borders: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class StreamedClip:
    """One request as it was streamed, and what it must equal.

    Parameters
    ----------
    text, voice : str
        The id of the text, and the name of the voice.
    chunks : tuple of AudioChunk
        The chunks, in the order in which they came.
    seams : tuple of Seam
        In order.
    file : numpy.ndarray
        float32 (n,): the same request, not streamed, with the same statistics and gain.
    decodes : Decodes
    said : str
        The text itself.
    words : tuple of WordTiming
        When each word is heard.
    """

    text: str
    voice: str
    chunks: tuple[AudioChunk, ...]
    seams: tuple[Seam, ...]
    file: Samples
    decodes: Decodes
    said: str = ""
    words: tuple[WordTiming, ...] = ()

    @property
    def samples(self) -> Samples:
        """What a listener hears: the chunks joined as they came."""
        return np.concatenate([chunk.samples for chunk in self.chunks])

    def places(self, kind: str | None = None) -> list[int]:
        """The samples at which the seams are: all seams, or those of one kind."""
        return [seam.at_sample for seam in self.seams if kind in (None, seam.kind)]


def draw(texts: Sequence[FixtureText], voices: Sequence[str], count: int, seed: int) -> list[Request]:
    """`count` different texts drawn at random, each with a voice drawn at random.

    Raises
    ------
    ParameterError
        `count` is below 1, or above the number of texts.
    """
    require_range("clips", count, 1, len(texts), f"{count} clips cannot be drawn.")
    random = Random(seed)
    return [(text, random.choice(list(voices))) for text in random.sample(list(texts), count)]


def speak(engine: Engine, requests: Sequence[Request]) -> list[StreamedClip]:
    """Stream each text with its voice, without any cache, and make the file of the same request."""
    clips = []
    for text, voice in tqdm(requests, desc="streams"):
        segments: list[_DecodedSegment] = []
        stream = _with_decoder(engine, _noting(engine.decoder, segments)).stream(
            text.text, voice=voice, cached=False
        )
        chunks = tuple(stream)
        samples = np.concatenate([chunk.samples for chunk in chunks])
        asked = {"voice": voice, "statistics": stream.statistics, "loudness": "voice"}
        gain = np.float32(10 ** (stream.report.gain_db / 20))
        clips.append(
            StreamedClip(
                text=text.id,
                voice=voice,
                chunks=chunks,
                seams=tuple(_seams(stream, [s.lengths for s in segments], samples)),
                file=engine.synthesize(text.text, **asked).samples,
                decodes=_decodes(engine.decoder, segments, gain),
                said=text.text,
                words=tuple(stream.timings),
            )
        )
    return clips


def at_once(decoder: StagedDecoder, asked: SegmentRequest) -> Samples:
    """A segment decoded at once, with the statistics that its windows had."""
    contours = decoder.prosody.contours(asked.token_ids, asked.style, asked.speed, asked.delivery)
    return decoder.undivided(contours, asked.style, urgent=asked.urgent)


def _decodes(decoder: Decoder, segments: Sequence[_DecodedSegment], gain: np.float32) -> Decodes:
    windows, undivided, borders, start = [], [], [], 0
    for segment in segments:
        joined = np.concatenate(segment.blocks)
        # A decoder without predicted statistics has decoded the segment at once
        whole = joined
        if isinstance(decoder, StagedDecoder) and segment.asked.predicted:
            whole = at_once(decoder, segment.asked)
        inner = np.cumsum(segment.lengths)[:-1]
        borders += [start + int(at) for at in inner if joined[at - 1] != 0 and joined[at] != 0]
        windows.append(joined)
        undivided.append(whole)
        start += len(joined)
    return Decodes(gain * np.concatenate(windows), gain * np.concatenate(undivided), tuple(borders))


def _seams(stream: SpeechStream, lengths: Sequence[Sequence[int]], samples: Samples) -> Iterator[Seam]:
    """The seams of a stream, from the lengths of each segment's windows in the model's samples."""
    decoded = 0
    for segment, windows in zip(stream.segments, lengths, strict=True):
        place = stream.places[segment.segment_id]
        if segment is not stream.segments[0]:
            before = np.flatnonzero(samples[: place.start_samples])
            yield Seam(SEGMENT, int(before[-1]) + 1)
            yield Seam(SEGMENT, place.start_samples)
        end = _end(stream, segment.segment_id, len(samples))
        for border in np.cumsum(windows)[:-1]:
            at = place.start_samples + int(border) - place.lead_samples
            # Silent frames are not decoded: the edge of a window that meets them is faded, and is no seam
            if place.start_samples < at < end and samples[at - 1] != 0 and samples[at] != 0:
                yield Seam(WINDOW, at, decoded + int(border))
        decoded += sum(windows)


def _end(stream: SpeechStream, segment_id: int, whole: int) -> int:
    later = [place.start_samples for other, place in stream.places.items() if other > segment_id]
    return min(later, default=whole)


def _with_decoder(engine: Engine, decoder: Decoder) -> Engine:
    config = replace(engine.config, first_audio_ttl_s=0)
    return Engine(replace(engine.parts, decoder=decoder, config=config))


class _DecodedSegment(NamedTuple):
    asked: SegmentRequest
    blocks: list[Samples]

    @property
    def lengths(self) -> list[int]:
        return [len(block) for block in self.blocks]


def _noting(decoder: Decoder, segments: list[_DecodedSegment]) -> Decoder:
    """A decoder that works like `decoder`, and adds to `segments` each request of one stream with the blocks
    of samples that were decoded for it."""

    def decode(asked: SegmentRequest) -> DecodedSegment:
        decoded = decoder.decode(asked)
        segments.append(_DecodedSegment(asked, []))
        return replace(decoded, blocks=_kept(decoded.blocks, segments[-1].blocks), later=None)

    return DecoderAround(decoder, decode)


def _kept(blocks: Iterator[Samples], kept: list[Samples]) -> Iterator[Samples]:
    for block in blocks:
        kept.append(block.copy())
        yield block
