"""A stream may begin at any of its segments, and is the same from there on."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.containers.pcm import pcm_bytes
from kokoro_lab.datatypes import Place
from kokoro_lab.dsp import Dither
from kokoro_lab.errors import Gone, Interrupted
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.speech.chunker import Chunker
from kokoro_lab.speech.engine import Engine

TEXT = (
    "The first sentence is long enough to be cut, as it goes on and on behind its comma. Short? Yes. No!\n\n"
    "- one\n- two\n\n... *** ...\n\nA paragraph of its own, with 3 numbers and Dr. Smith in it, at least. "
    + "It has one that is so long, and so fond of its own voice, that nobody could ever say it all, " * 4
    + "in one go. LOUD ONES follow! And this is the end of it all."
)
FRAME = 1200


def goes_on_the_same(engine: Engine, text: str, voice: str, speed: float = 1.0) -> None:
    stream = engine.stream(text, voice=voice, speed=speed)
    chunks = {chunk.chunk_id: chunk for chunk in stream}
    assert len(stream.places) == len(stream.segments) > 3
    places = list(stream.places.values())
    for place in (places[0], places[1], places[len(places) // 2], places[-1]):
        later = engine.stream(text, voice=voice, speed=speed, place=place)
        again = {chunk.chunk_id: chunk for chunk in later}
        whole = [chunk_id for chunk_id in chunks if chunk_id * FRAME >= place.start_samples]
        assert set(again) - {whole[0] - 1} == set(whole)
        for chunk_id in whole:
            assert np.array_equal(again[chunk_id].samples, chunks[chunk_id].samples)
            assert again[chunk_id].segment_id == chunks[chunk_id].segment_id
            assert again[chunk_id].start_s == chunks[chunk_id].start_s
        assert later.timings == [t for t in stream.timings if t.segment_id >= place.segment_id]
        assert list(later.places) == [i for i in stream.places if i >= place.segment_id]


def test_a_stream_goes_on_from_any_segment_to_the_same_samples_and_timings(hum: Engine) -> None:
    goes_on_the_same(hum, TEXT, "hum", speed=4.0)  # the tiny voice drawls


@pytest.mark.parametrize("speed", [0.5, 3.0])
def test_a_stretched_segment_is_gone_on_with_to_the_same_samples(hum: Engine, speed: float) -> None:
    """Also in its middle, where a decoder that can begin there must not."""
    inner = hum.decoder

    class Enters:
        details: Mapping[str, str] = {}

        def predicts(self, voice: object) -> None:
            return None

        def decode(self, asked: SegmentRequest) -> DecodedSegment:
            decoded = inner.decode(asked)
            samples = np.concatenate(list(decoded.blocks))
            return replace(decoded, blocks=iter((samples,)), later=lambda at: (at, iter((samples[at:],))))

    engine = Engine(replace(hum.parts, decoder=Enters()))  # type: ignore[arg-type]
    stream = engine.stream(TEXT, voice="hum", speed=speed)
    chunks = {chunk.chunk_id: chunk for chunk in stream}
    place = max(stream.places.values(), key=lambda each: each.start_samples)
    for heard in (place.start_samples + 20_000, FRAME * len(chunks) - 4 * FRAME):
        later = engine.stream(TEXT, voice="hum", speed=speed, place=place, heard_samples=heard)
        again = {chunk.chunk_id: chunk for chunk in later}
        for chunk_id in (chunk_id for chunk_id in chunks if chunk_id * FRAME >= heard):
            assert np.array_equal(again[chunk_id].samples, chunks[chunk_id].samples)
        assert later.timings == [t for t in stream.timings if t.segment_id >= place.segment_id]


def test_segments_are_the_same_wherever_reading_begins(front_end: FrontEnd) -> None:
    cleaned = front_end.cleaned(TEXT)
    segments = list(front_end.segments_of(cleaned, "en-us", lambda _: None))
    first_ids: dict[int, int] = {}
    for segment in segments:
        first_ids.setdefault(segment.sentence, segment.segment_id)
    assert len(first_ids) < len(segments), "some sentence was cut"
    for sentence, first_id in first_ids.items():
        place = Place(sentence, first_id)
        later = list(front_end.segments_of(cleaned, "en-us", lambda _: None, place=place))
        assert later == segments[first_id:]


def test_a_place_that_the_text_does_not_have_is_gone(hum: Engine) -> None:
    stream = hum.stream(TEXT, voice="hum", place=Place(900, 900, 900, 900))
    with pytest.raises(Gone, match="no such place"):
        stream.begin()


def test_the_dither_of_the_rest_is_that_of_the_whole() -> None:
    samples = np.random.default_rng(0).uniform(-1, 1, 5000).astype(np.float32)
    whole = pcm_bytes(Dither(3).run(samples))
    for at in (0, 1, 1200, 4999):
        assert whole[2 * at :] == pcm_bytes(Dither(3, skipped_samples=at).run(samples[at:]))


@pytest.mark.parametrize("start", [0, 1, 1199, 1200, 1201, 2400])
def test_frames_lie_on_the_same_grid_wherever_they_begin(start: int) -> None:
    samples = np.arange(5000, dtype=np.float32)
    uncut = Chunker(0.05)
    frames = {f.chunk_id: f for f in [*uncut.push(samples), *uncut.flush()]}
    later = Chunker(0.05, start_samples=start)
    for frame in [*later.push(samples[start:]), *later.flush()]:
        assert frame.start_s == frames[frame.chunk_id].start_s
        if frame.chunk_id * FRAME >= start:
            assert np.array_equal(frame.samples, frames[frame.chunk_id].samples)


def test_a_synthesis_that_is_stopped_computes_nothing_further(hum: Engine) -> None:
    stop = threading.Event()
    stream = hum.stream(TEXT, voice="hum", stop=stop)
    next(stream)
    stop.set()
    with pytest.raises(Interrupted):
        list(stream)
    assert len(stream.segments) == 1
    with pytest.raises(Interrupted):
        hum.synthesize(TEXT, voice="hum", stop=stop)


@pytest.mark.model
def test_on_the_real_weights_a_stream_goes_on_to_the_same_samples(engine: Engine) -> None:
    text = (
        "The first sentence is here, and it is not very short. LOUD ONES come behind it! Then a quiet one "
        "follows, which is meant to last. And this is the end of it all."
    )
    goes_on_the_same(engine, text, "af_heart")


ONE_LONG_SEGMENT = (
    "It begins here. There is, they say, a house at the end of the long road that goes down to the harbour, "
    "where nobody has lived for a hundred years, LOUD AS THE SEA MAY BE; and yet a light is seen in it, "
    "on quiet nights, by those who come home late and have, perhaps, been somewhere pleasant. The end."
)


@pytest.mark.test_all
@pytest.mark.model
@pytest.mark.parametrize("part", [0.3, 0.5, 0.75, 0.98, 1.0])
def test_of_a_long_segment_only_what_is_still_to_be_heard_is_decoded(
    engine: Engine, part: float, decoded_frames: list[int]
) -> None:
    stream = engine.stream(ONE_LONG_SEGMENT, voice="af_heart")
    chunks = {chunk.chunk_id: chunk for chunk in stream}
    long, behind = list(stream.places.values())[-2:]
    assert behind.start_samples - long.start_samples > 8 * 24_000
    heard = long.start_samples + round(part * (behind.start_samples - long.start_samples))
    decoded_frames.clear()
    later = engine.stream(ONE_LONG_SEGMENT, voice="af_heart", place=long, heard_samples=heard)
    again = {chunk.chunk_id: chunk for chunk in later}
    wanted = [chunk_id for chunk_id in chunks if chunk_id * FRAME >= heard]
    for chunk_id in wanted:
        assert np.array_equal(again[chunk_id].samples, chunks[chunk_id].samples)
        assert again[chunk_id].segment_id == chunks[chunk_id].segment_id
    assert later.timings == [t for t in stream.timings if t.segment_id >= long.segment_id]
    assert later.places == {i: p for i, p in stream.places.items() if i >= long.segment_id}
    length_s = (len(chunks) * FRAME - heard) / 24_000
    assert 0 < sum(decoded_frames) * 0.0125 < length_s + 1.1 + 1.5 + 0.5, (
        "what settles, a window, and trimmed edges"
    )
