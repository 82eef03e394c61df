"""Files of speech: the ending says the format, and nothing half-written is left behind."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import soundfile

from kokoro_lab.containers import FORMATS, Encoder, Format, content_type, format_of, save, write_file
from kokoro_lab.datatypes import Clip, Samples
from kokoro_lab.errors import ParameterError, SynthesisError
from tests.containers.decoding import SPOKEN_HZ, decoded, speechlike


@pytest.fixture
def speech() -> Samples:
    return speechlike(0.5)


def clip_of(samples: Samples, seed: int = 0) -> Clip:
    report: Any = None  # saving reads no report
    return Clip(samples=samples, sample_rate_hz=SPOKEN_HZ, report=report, seed=seed)


@pytest.mark.parametrize("kind", get_args(Format))
def test_a_file_is_what_its_ending_says(tmp_path: Path, speech: Samples, kind: Format) -> None:
    for suffix in FORMATS[kind].suffixes:
        path = tmp_path / f"speech{suffix}"
        assert save(clip_of(speech), path) == path
        assert path.read_bytes() == Encoder(kind, streamed=False).run(speech)


@pytest.mark.parametrize("name", ["a.flac", "a.mp3", "a.ogg", "a.wav"])
def test_another_library_reads_it(tmp_path: Path, speech: Samples, name: str) -> None:
    samples, rate_hz = soundfile.read(write_file(tmp_path / name, speech))
    assert len(samples) / rate_hz == pytest.approx(len(speech) / SPOKEN_HZ, abs=0.09)
    assert np.abs(samples).max() == pytest.approx(0.5, rel=0.1)


@pytest.mark.parametrize(
    ("name", "kind"), [("a.MP3", "mp3"), ("b.c.Opus", "opus"), ("a.ogg", "opus"), (Path("d/e.aac"), "aac")]
)
def test_endings_are_read_in_any_case(name: str | Path, kind: Format) -> None:
    assert format_of(name) == kind


@pytest.mark.parametrize("name", ["speech", "speech.txt", ".mp3", "mp3", "speech.mp3.part", "speech."])
def test_an_ending_that_names_no_format_is_refused(tmp_path: Path, speech: Samples, name: str) -> None:
    with pytest.raises(ParameterError, match=r"\.mp3, .*\.opus, .*\.wav, ") as caught:
        save(clip_of(speech), tmp_path / name)
    assert caught.value.field == "path"
    assert name in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_clip_is_saved_with_its_own_seed_and_rate(tmp_path: Path, speech: Samples) -> None:
    clip = clip_of(speech, seed=7)
    path = save(clip, tmp_path / "clip.WAV")
    assert path.read_bytes() == Encoder("wav", SPOKEN_HZ, 7, streamed=False).run(speech)
    other = save(replace(clip, sample_rate_hz=48_000), tmp_path / "other.wav")
    assert soundfile.info(other).samplerate == 48_000


def test_a_file_may_have_another_rate(tmp_path: Path, speech: Samples) -> None:
    heard = decoded(write_file(tmp_path / "a.mp3", speech, 44_100).read_bytes(), "mp3")
    assert (heard.rate_hz, len(heard.samples)) == (44_100, pytest.approx(22_050, abs=1152))


def test_clipping_is_not_silent(tmp_path: Path, speech: Samples, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        write_file(tmp_path / "a.mp3", speech)
        assert not caplog.records
        write_file(tmp_path / "a.mp3", 3 * speech)
    assert "were clipped" in caplog.text


def test_bad_samples_leave_the_old_file(tmp_path: Path, speech: Samples) -> None:
    path = write_file(tmp_path / "a.mp3", speech)
    before = path.read_bytes()
    speech[3] = np.inf
    with pytest.raises(SynthesisError, match="first at 3"):
        write_file(path, speech)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named_with_the_mend(tmp_path: Path, speech: Samples) -> None:
    with pytest.raises(ParameterError, match="mkdir -p"):
        write_file(tmp_path / "nowhere" / "a.mp3", speech)


def test_every_format_has_a_media_type_of_its_own() -> None:
    types = [content_type(kind, SPOKEN_HZ) for kind in FORMATS]
    assert types == [
        "audio/mpeg",
        "audio/ogg",
        "audio/aac",
        "audio/flac",
        "audio/wav",
        "audio/pcm;rate=24000;channels=1",
    ]
    known = [name for names in FORMATS.values() for name in names.media_types]
    assert len(set(known)) == len(known)
