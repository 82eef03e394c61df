"""A repeated request begins at once with the samples that it would have had anyway, and is no TTFA."""

from __future__ import annotations

from dataclasses import replace
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from kokoro_lab import Utterance
from kokoro_lab.datatypes import AudioChunk, LexiconEntry, Place
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.g2p.lexicons import Lexicons
from kokoro_lab.speech.engine import Engine
from kokoro_lab.speech.first_audio import PRIMED_S, FirstAudioCache, KeptAudio
from tests.server.scripted import Scripted

TEXT = "The rain had stopped before the train came in. Nobody was waiting for it on the platform."


@pytest.fixture
def fresh(hum: Engine) -> Engine:
    """The humming engine with a cache of its own."""
    config = replace(hum.config, first_audio_ttl_s=60)
    return Engine(replace(hum.parts, decoder=Scripted(hum.decoder), config=config))


def samples_of(chunks: list[AudioChunk]) -> np.ndarray:
    return np.concatenate([c.samples for c in chunks])


def test_a_repeated_stream_is_the_same_and_begins_before_anything_is_decoded(fresh: Engine) -> None:
    decoder = fresh.decoder
    assert isinstance(decoder, Scripted)
    first = fresh.stream(TEXT, voice="hum")
    once = list(first)
    decoded = decoder.decoded
    second = fresh.stream(TEXT, voice="hum")
    primed = [next(second)]
    while primed[-1].start_s + primed[-1].duration_s < PRIMED_S - 1e-6:
        primed.append(next(second))
    assert decoder.decoded == decoded
    twice = primed + list(second)
    assert [(c.segment_id, c.chunk_id) for c in twice] == [(c.segment_id, c.chunk_id) for c in once]
    np.testing.assert_array_equal(samples_of(twice), samples_of(once))
    assert (first.report.first_audio, second.report.first_audio) == ("computed", "cache")
    assert first.report.ttfa_s > 0
    assert isnan(second.report.ttfa_s)
    assert fresh.first_audio.figures() == {"hits": 1, "misses": 1, "entries": 1, "ttl_s": 60}


@pytest.mark.parametrize(
    "other",
    [
        Utterance(TEXT + " Yes.", voice="hum"),
        Utterance(TEXT, voice="hum", speed=1.1),
        Utterance(TEXT, voice="hum", language="en-gb"),
        Utterance(TEXT, voice="hum", loudness="none"),
        Utterance(TEXT, voice="hum_high"),
        Utterance(TEXT, voice="hum", lexicon=(LexiconEntry("*", "rain", "zˈu"),)),
    ],
)
def test_another_request_does_not_hear_it(fresh: Engine, other: Utterance) -> None:
    list(fresh.stream(TEXT, voice="hum"))
    assert not fresh.stream(other).primed
    assert not fresh.stream(TEXT, voice="hum", chunk_s=0.1).primed
    assert fresh.stream(TEXT, voice="hum").primed


def test_who_has_changed_a_lexicon_does_not_hear_it(fresh: Engine, tmp_path: Path) -> None:
    path = tmp_path / "ours.tsv"
    path.write_text("lang\tgrapheme\tphoneme\nen\train\tzˈu\n")
    front_end = FrontEnd(Lexicons(project=path, look_every_s=0))
    fresh = Engine(replace(fresh.parts, front_end=front_end))
    list(fresh.stream(TEXT, voice="hum"))
    assert fresh.stream(TEXT, voice="hum").primed
    path.write_text("lang\tgrapheme\tphoneme\nen\train\tzˈuz\n")
    assert not fresh.stream(TEXT, voice="hum").primed


def test_a_file_neither_fills_the_cache_nor_is_given_from_it(fresh: Engine) -> None:
    clip = fresh.synthesize(TEXT, voice="hum")
    assert clip.report.first_audio == "computed"
    assert fresh.first_audio.figures()["entries"] == 0
    list(fresh.stream(TEXT, voice="hum"))
    again = fresh.synthesize(TEXT, voice="hum")
    assert again.report.first_audio == "computed"
    assert fresh.first_audio.figures()["hits"] == 0


def test_a_stream_that_is_stopped_early_has_left_its_beginning(fresh: Engine) -> None:
    stream = fresh.stream(TEXT, voice="hum")
    for chunk in stream:
        if chunk.start_s > PRIMED_S:
            break
    stream.close()
    assert fresh.stream(TEXT, voice="hum").primed


def test_entries_end_with_their_time() -> None:
    chunk = AudioChunk(np.zeros(10, np.float32), 24_000, 0, 0, 0.0)
    cache = FirstAudioCache(1e-6)
    cache.put("a", [chunk], {})
    assert cache.get("a") == KeptAudio()
    off = FirstAudioCache(0)
    off.put("a", [chunk], {})
    assert off.get("a") == KeptAudio()
    assert off.figures()["misses"] == 0
    kept = FirstAudioCache(100)
    kept.put("a", [chunk], {0: Place(), 1: Place(segment_id=1)})
    assert kept.get("a") == KeptAudio((chunk,), {0: Place()})
    kept.clear()
    assert kept.get("a") == KeptAudio()
