"""PCM and WAV: what we write, others read; sizes are right; nothing half-written is left behind."""

from __future__ import annotations

import errno
import io
import logging
import os
import struct
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from kokoro_lab.containers import Encoder, write_file
from kokoro_lab.containers.pcm import WAV_HEADER_BYTES, pcm_bytes, read_wav, wav_header
from kokoro_lab.errors import ParameterError, SynthesisError

RATE_HZ = 24_000


def wav_bytes(samples: np.ndarray, seed: int = 0) -> bytes:
    return Encoder("wav", RATE_HZ, seed, streamed=False).run(samples)


@pytest.fixture
def samples() -> np.ndarray:
    t = np.arange(RATE_HZ // 2) / RATE_HZ
    return (0.5 * np.sin(2 * np.pi * 440 * t)).astype(np.float32)


def test_a_file_is_read_back_by_soundfile_within_the_dither(tmp_path: Path, samples: np.ndarray) -> None:
    path = write_file(tmp_path / "a.wav", samples, RATE_HZ)
    assert path == tmp_path / "a.wav"
    read, rate = soundfile.read(path, dtype="float64")
    info = soundfile.info(path)
    assert (rate, info.channels, info.subtype) == (RATE_HZ, 1, "PCM_16")
    error = read * 32768 - samples.astype(np.float64) * 32767
    assert np.abs(error).max() <= 1.5
    assert np.sqrt(np.mean(error**2)) == pytest.approx(0.5, abs=0.01)


def test_a_file_is_read_back_by_the_standard_library(tmp_path: Path, samples: np.ndarray) -> None:
    path = write_file(str(tmp_path / "a.wav"), samples, RATE_HZ)
    with wave.open(str(path)) as file:
        assert file.getparams()[:4] == (1, 2, RATE_HZ, len(samples))
        pcm = np.frombuffer(file.readframes(len(samples) + 1), dtype="<i2")
    assert len(pcm) == len(samples)


def test_what_we_write_we_read(tmp_path: Path, samples: np.ndarray) -> None:
    read, rate = read_wav(write_file(tmp_path / "a.wav", samples, RATE_HZ))
    assert (read.dtype, read.shape, rate) == (np.float32, samples.shape, RATE_HZ)
    assert 20 * np.log10(np.abs(read).max() / np.abs(samples).max()) == pytest.approx(0.0, abs=0.001)


def test_two_channels_are_read_as_two_columns(tmp_path: Path) -> None:
    stereo = np.zeros((100, 2))
    stereo[:, 1] = 0.25
    soundfile.write(tmp_path / "s.wav", stereo, RATE_HZ)
    read, _ = read_wav(str(tmp_path / "s.wav"))
    assert read.shape == (100, 2)
    assert np.all(read[:, 1] == 0.25)


def test_the_header_has_its_44_bytes_in_order() -> None:
    header = wav_header(RATE_HZ, data_bytes=1000)
    assert len(header) == WAV_HEADER_BYTES == 44
    assert header[:4] + header[8:16] + header[36:40] == b"RIFFWAVEfmt data"
    assert struct.unpack("<I", header[4:8]) == (1036,)
    assert struct.unpack("<IHHIIHH", header[16:36]) == (16, 1, 1, RATE_HZ, 48_000, 2, 16)
    assert struct.unpack("<I", header[40:]) == (1000,)


def test_sizes_in_a_file_are_final(samples: np.ndarray) -> None:
    content = wav_bytes(samples)
    riff_bytes, data_bytes = struct.unpack("<I", content[4:8])[0], struct.unpack("<I", content[40:44])[0]
    assert riff_bytes == len(content) - 8
    assert data_bytes == len(content) - 44 == 2 * len(samples)


def test_a_stream_of_unknown_length_can_be_played(tmp_path: Path, samples: np.ndarray) -> None:
    header = wav_header(RATE_HZ)
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"
    path = tmp_path / "captured.wav"
    path.write_bytes(header + wav_bytes(samples)[44:])
    read, rate = read_wav(path)
    assert (len(read), rate) == (len(samples), RATE_HZ)


def test_pcm_is_little_endian() -> None:
    assert pcm_bytes(np.array([1, -2, 0x1234], dtype=np.int16)) == b"\x01\x00\xfe\xff\x34\x12"
    assert pcm_bytes(np.array([0x1234], dtype=">i2")) == b"\x34\x12"


def test_an_empty_clip_is_an_empty_file(tmp_path: Path) -> None:
    path = write_file(tmp_path / "a.wav", np.zeros(0, np.float32), RATE_HZ)
    assert path.stat().st_size == 44
    assert read_wav(path)[0].shape == (0,)


def test_the_same_seed_gives_the_same_bytes(samples: np.ndarray) -> None:
    assert wav_bytes(samples, seed=1) == wav_bytes(samples, seed=1)
    assert wav_bytes(samples, seed=1) != wav_bytes(samples, seed=2)


def test_clipping_is_not_silent(
    tmp_path: Path, samples: np.ndarray, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        write_file(tmp_path / "a.wav", samples)
        assert not caplog.records
        write_file(tmp_path / "a.wav", 3 * samples)
    assert "were clipped" in caplog.text


def test_an_old_file_is_replaced(tmp_path: Path, samples: np.ndarray) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")
    write_file(path, samples, RATE_HZ)
    assert soundfile.info(path).frames == len(samples)
    assert [p.name for p in tmp_path.iterdir()] == ["a.wav"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, samples: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")

    def half_written(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", half_written)
    with pytest.raises(ParameterError, match="No space left") as caught:
        write_file(path, samples, RATE_HZ)
    assert caught.value.mend is None
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.wav"]


def test_bad_samples_leave_the_old_file(tmp_path: Path, samples: np.ndarray) -> None:
    path = write_file(tmp_path / "a.wav", samples, RATE_HZ)
    before = path.read_bytes()
    samples[3] = np.inf
    with pytest.raises(SynthesisError, match="first at 3"):
        write_file(path, samples, RATE_HZ)
    assert path.read_bytes() == before


def test_a_folder_that_is_not_there_is_named_with_the_mend(tmp_path: Path, samples: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="mkdir -p") as caught:
        write_file(tmp_path / "nowhere" / "a.wav", samples, RATE_HZ)
    assert caught.value.field == "path"
    assert str(tmp_path / "nowhere") in str(caught.value)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path, samples: np.ndarray) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="cannot be written"):
        write_file(tmp_path / "file" / "a.wav", samples, RATE_HZ)
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(ParameterError, match="cannot be written"):
        write_file(tmp_path / "folder.wav", samples, RATE_HZ)


def test_a_full_disk_is_not_blamed_on_the_folder(
    tmp_path: Path, samples: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ParameterError, match=r"cannot be written: No space left on device\.$"):
        write_file(tmp_path / "a.wav", samples, RATE_HZ)


@pytest.mark.parametrize("content", [None, b"not sound"])
def test_what_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.wav"
    if content:
        path.write_bytes(content)
    with pytest.raises(ParameterError, match=r"a\.wav cannot be read") as caught:
        read_wav(path)
    assert caught.value.field == "path"


@pytest.mark.parametrize("data_bytes", [-2, 1, 0xFFFF_FFFF])
def test_impossible_sizes_are_refused(data_bytes: int) -> None:
    with pytest.raises(ParameterError, match="do not make a WAV"):
        wav_header(RATE_HZ, data_bytes=data_bytes)
    wav_header(RATE_HZ, data_bytes=0xFFFF_FFFF - 36 - 1)


def test_an_impossible_rate_is_refused() -> None:
    with pytest.raises(ParameterError, match="cannot be"):
        wav_header(0)


def test_a_whole_file_can_be_read_from_memory(samples: np.ndarray) -> None:
    read, _ = soundfile.read(io.BytesIO(wav_bytes(samples)))
    assert len(read) == len(samples)
