"""Bytes become the same samples wherever they were cut; what would be noise is refused."""

from __future__ import annotations

import io
import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.containers import Encoder, format_of, write_encoded
from kokoro_lab.containers.pcm import pcm_bytes, wav_header
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.playing import numbered
from kokoro_lab.playback.pcm_input import PcmInput

PCM = numbered(500)


def whole_wav() -> bytes:
    """As another program writes it: sizes known, and a chunk behind the samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, 24_000, 0, "NONE", ""))
        out.writeframes(pcm_bytes(PCM))
    return file.getvalue() + b"LIST\x04\x00\x00\x00INFO"


WAYS = {
    "bare": pcm_bytes(PCM),
    "streamed WAV": wav_header(24_000) + pcm_bytes(PCM),
    "whole WAV": whole_wav(),
}


@pytest.mark.parametrize("way", WAYS)
@given(cuts=st.lists(st.integers(0, 1100), max_size=8).map(sorted))
def test_cuts_do_not_matter(way: str, cuts: list[int]) -> None:
    pcm_input, content = PcmInput(), WAYS[way]
    fragments = [content[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
    assert np.array_equal(np.concatenate([pcm_input.push(fragment) for fragment in fragments]), PCM)
    assert pcm_input.torn_bytes == 0


def test_half_a_sample_is_told() -> None:
    pcm_input = PcmInput()
    assert len(pcm_input.push(b"\x01\x02\x03")) == 1
    assert pcm_input.torn_bytes == 1


TWO_CHANNELS = wav_header(24_000)[:22] + b"\x02\x00" + wav_header(24_000)[24:]


@pytest.mark.parametrize("header", [wav_header(44_100), TWO_CHANNELS])
def test_another_rate_or_a_second_channel_is_refused_and_says_what_to_ask_for(header: bytes) -> None:
    with pytest.raises(ParameterError, match="24000 Hz") as refused:
        PcmInput().push(header + bytes(100))
    assert "response_format" in str(refused.value)


@pytest.mark.parametrize("kind", ["mp3", "opus", "aac", "flac"])
def test_what_is_compressed_would_be_noise_and_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"speech.{kind}"
    write_encoded(path, Encoder(format_of(path), 24_000, 0, streamed=True), PCM.astype(np.float32) / 32768)
    with pytest.raises(ParameterError, match="begins like") as refused:
        PcmInput().push(path.read_bytes())
    assert "response_format" in str(refused.value)


def test_an_answer_that_is_an_error_is_no_speech() -> None:
    with pytest.raises(ParameterError, match="error"):
        PcmInput().push(b'{"error": {"message": "There is no such voice."}}')


@given(first=st.integers(-500, 500), second=st.integers(-500, 500))
def test_speech_that_begins_near_silence_is_never_taken_for_another_format(first: int, second: int) -> None:
    pcm = np.array([first, second, 0, 0], np.int16)
    assert np.array_equal(PcmInput().push(pcm_bytes(pcm)), pcm)


def test_what_only_begins_like_wav_is_refused() -> None:
    with pytest.raises(ParameterError, match="no samples follow"):
        PcmInput().push(b"RIFF" + b"\x01" * 5000)
