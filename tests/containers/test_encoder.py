"""Each format is one valid stream or file, and decoded, it is the speech that went in: all of it, soon."""

from __future__ import annotations

import gc
import hashlib
import struct
import sys
from collections.abc import Sequence
from typing import Any, get_args

import av
import numpy as np
import psutil
import pytest

from kokoro_lab.containers import Encoder, Format
from kokoro_lab.containers.coded import CODECS
from kokoro_lab.datatypes import Samples
from kokoro_lab.dsp import RATES_HZ, Dither, Resampler
from kokoro_lab.errors import FormatUnavailable, ParameterError, SynthesisError
from tests.containers.decoding import SPOKEN_HZ, at_rate, correlation, decoded, lag_of, level_db, speechlike

KINDS: tuple[Format, ...] = get_args(Format)
CODED: tuple[Format, ...] = ("mp3", "opus", "aac", "flac")
EXACT: tuple[Format, ...] = ("flac", "wav", "pcm")
PRIMER_S = 0.050
WAV_HEADER_BYTES = 44
FLAC_HEAD_BYTES = 42
"""The mark, and STREAMINFO; a block with the name of the encoder follows."""


@pytest.fixture(scope="module")
def speech() -> Samples:
    return speechlike(1.5)


def cut(samples: Samples, size: int) -> Sequence[Samples]:
    return [samples[at : at + size] for at in range(0, len(samples), size)]


def streamed(kind: Format, samples: Samples, rate_hz: int = SPOKEN_HZ, *, block: int = 1200) -> bytes:
    encoder = Encoder(kind, rate_hz)
    return b"".join([*map(encoder.push, cut(samples, block)), encoder.finish()])


def filed(kind: Format, samples: Samples, rate_hz: int = SPOKEN_HZ) -> bytes:
    return Encoder(kind, rate_hz, streamed=False).run(samples)


def frame_samples(kind: Format, rate_hz: int) -> int:
    """Of MPEG-1 and MPEG-2 layer 3, of AAC-LC; the others end where they end."""
    return {"mp3": 1152 if rate_hz > 24_000 else 576, "aac": 1024}.get(kind, 0)


def declared_lag(kind: Format, *, as_file: bool) -> int:
    """MP3 files and Opus tell the decoder what to leave out; ADTS and streams of MP3 have no place for it."""
    return {"mp3": 0 if as_file else 1105, "aac": 1024}.get(kind, 0)


# ------------------------------------------------------------------------------------ the same speech


@pytest.mark.parametrize(
    ("rate_hz", "as_file"), [*((rate_hz, False) for rate_hz in RATES_HZ), (24_000, True), (44_100, True)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_decoded_it_is_the_same_speech_and_all_of_it(
    kind: Format, rate_hz: int, as_file: bool, speech: Samples
) -> None:
    heard = decoded((filed if as_file else streamed)(kind, speech, rate_hz), kind, rate_hz)
    assert heard.rate_hz == Encoder(kind, rate_hz).sample_rate_hz == (48_000 if kind == "opus" else rate_hz)
    reference = at_rate(speech, heard.rate_hz)
    lag = declared_lag(kind, as_file=as_file)
    assert lag_of(heard.samples, reference) == lag
    candidate, rest = np.split(heard.samples[lag:], [len(reference)])
    assert len(candidate) == len(reference)
    assert correlation(candidate, reference) > (0.9999 if kind in EXACT else 0.985)
    assert level_db(candidate, reference) == pytest.approx(0, abs=0.1)
    # LAME closes a stream by up to a frame more than would be needed
    assert len(rest) <= frame_samples(kind, rate_hz) * (2 if kind == "mp3" and not as_file else 1)
    assert np.abs(rest).max(initial=0) < 0.002


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_is_whole_and_has_no_click(kind: Format, speech: Samples) -> None:
    heard = decoded(streamed(kind, speech), kind)
    reference = at_rate(speech, heard.rate_hz)
    end = declared_lag(kind, as_file=False) + len(reference)
    last_syllable = round(0.2 * heard.rate_hz)
    candidate = heard.samples[end - last_syllable : end]
    assert correlation(candidate, reference[-last_syllable:]) > 0.97
    assert level_db(candidate, reference[-last_syllable:]) == pytest.approx(0, abs=0.5)
    tail = heard.samples[end - round(0.005 * heard.rate_hz) :]
    loudest = np.abs(reference[-round(0.005 * heard.rate_hz) :]).max()
    assert np.abs(tail).max() < loudest + 0.003
    # a click is a corner in the wave: compare with the sharpest one of the speech itself
    assert np.abs(np.diff(tail, 2)).max() < np.abs(np.diff(reference, 2)).max() / 2


@pytest.mark.parametrize("kind", ["mp3", "opus", "aac"])
def test_control_without_its_end_the_speech_is_cut(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    unfinished = decoded(b"".join(map(encoder.push, cut(speech, 1200))), kind)
    encoder.close()
    lag = declared_lag(kind, as_file=False)
    assert len(unfinished.samples) - lag < len(at_rate(speech, unfinished.rate_hz))


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_wav_pcm_and_flac_hold_the_very_same_samples(rate_hz: int, speech: Samples) -> None:
    pcm = Dither(0).run(Resampler(SPOKEN_HZ, rate_hz).run(speech)).astype("<i2").tobytes()
    assert filed("pcm", speech, rate_hz) == pcm
    assert filed("wav", speech, rate_hz)[WAV_HEADER_BYTES:] == pcm
    flac = decoded(filed("flac", speech, rate_hz), "flac")
    assert (flac.samples * 32768).astype("<i2").tobytes() == pcm


@pytest.mark.parametrize("kind", KINDS)
def test_how_the_samples_are_cut_does_not_matter(kind: Format, speech: Samples) -> None:
    whole = streamed(kind, speech, block=len(speech))
    assert all(streamed(kind, speech, block=block) == whole for block in (240, 1200, 777))


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_is_that_of_the_dither(kind: Format, speech: Samples) -> None:
    first, second = (Encoder(kind, seed=seed).run(speech) for seed in (1, 2))
    assert (first != second) == (kind in EXACT)


# -------------------------------------------------------------------------------- a file is its stream


@pytest.mark.parametrize("kind", ["opus", "aac", "pcm"])
def test_a_file_is_its_stream(kind: Format, speech: Samples) -> None:
    assert filed(kind, speech) == streamed(kind, speech)


def test_a_wav_file_is_its_stream_but_for_the_sizes(speech: Samples) -> None:
    file, stream = filed("wav", speech), streamed("wav", speech)
    assert file[WAV_HEADER_BYTES:] == stream[WAV_HEADER_BYTES:]
    assert struct.unpack_from("<I", file, 4) == (len(file) - 8,)
    assert struct.unpack_from("<I", file, 40) == (2 * len(speech),)
    assert struct.unpack_from("<I", stream, 4) == struct.unpack_from("<I", stream, 40) == (0xFFFF_FFFF,)


def test_a_flac_file_is_its_stream_but_for_its_length_and_checksum(speech: Samples) -> None:
    file, stream = filed("flac", speech), streamed("flac", speech)
    assert file[FLAC_HEAD_BYTES:] == stream[FLAC_HEAD_BYTES:]
    assert file[:4] == stream[:4] == b"fLaC"

    def samples_and_md5(data: bytes) -> tuple[int, bytes]:
        return int.from_bytes(data[18:26], "big") & (2**36 - 1), data[26:42]

    pcm = filed("pcm", speech)
    assert samples_and_md5(file) == (len(speech), hashlib.md5(pcm).digest())
    assert samples_and_md5(stream) == (0, bytes(16))  # which means unknown


def test_an_mp3_file_is_its_stream_behind_a_frame_of_lengths(speech: Samples) -> None:
    file, stream = filed("mp3", speech), streamed("mp3", speech)
    assert file.endswith(stream)
    lengths = file[: len(file) - len(stream)]
    assert b"Info" in lengths  # Xing's frame, as it is called where the bit rate is constant
    assert b"Info" not in stream
    assert decoded(file, "mp3").duration_s == pytest.approx(len(speech) / SPOKEN_HZ, abs=0.001)


@pytest.mark.parametrize("kind", ["opus", "flac", "wav"])
def test_a_file_says_how_long_it_is(kind: Format, speech: Samples) -> None:
    seconds = len(speech) / SPOKEN_HZ
    # FFmpeg counts what a decoder of Opus leaves out
    assert decoded(filed(kind, speech), kind).duration_s == pytest.approx(seconds, abs=0.007)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_spoken_is_no_error(kind: Format) -> None:
    assert len(filed(kind, np.zeros(0, np.float32))) < 300
    assert len(Encoder(kind).finish()) < 200


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_shorter_than_a_frame_is_heard(kind: Format, speech: Samples) -> None:
    word = speech[6000:6100]
    heard = decoded(filed(kind, word), kind)
    reference = at_rate(word, heard.rate_hz)
    lag = declared_lag(kind, as_file=True)
    candidate = heard.samples[lag : lag + len(reference)]
    assert level_db(candidate, reference) == pytest.approx(0, abs=2)


# -------------------------------------------------------------------------------------- early, bounded


@pytest.mark.parametrize("rate_hz", [24_000, 48_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_comes_out_within_the_stated_delay(kind: Format, rate_hz: int, speech: Samples) -> None:
    encoder = Encoder(kind, rate_hz)
    data = encoder.prime(0)
    lag = declared_lag(kind, as_file=False)
    resampler_s = 0.038 if rate_hz == 48_000 and kind != "opus" else 0
    behind_s = []
    for pushed, block in enumerate(cut(speech[: SPOKEN_HZ * 2 // 3], 120), start=1):
        data += encoder.push(block)
        if pushed > 40 and pushed % 3 == 0:
            heard = decoded(data, kind, rate_hz)
            behind_s.append(pushed * 0.005 - (len(heard.samples) - lag) / heard.rate_hz)
    assert max(behind_s) <= encoder.delay_s + resampler_s + 0.001
    # and the figure is no exaggeration: within a step of what is found
    assert max(behind_s) >= encoder.delay_s - 0.016
    encoder.close()


def test_the_delays_are_those_of_the_page_on_serving() -> None:
    delays_ms = {kind: round(1000 * Encoder(kind).delay_s) for kind in KINDS}
    assert delays_ms == {"mp3": 94, "opus": 46, "aac": 128, "flac": 25, "wav": 0, "pcm": 0}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_given_out_is_called_audible_when_speech_can_be_heard(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    data = encoder.prime(PRIMER_S)
    assert not encoder.audible
    for block in cut(speech[6000:], 240):
        data += encoder.push(block)
        if encoder.audible:
            break
    heard = decoded(data, kind)
    silent = round(PRIMER_S * heard.rate_hz) + declared_lag(kind, as_file=False)
    assert len(heard.samples) > silent
    assert np.abs(heard.samples[silent:]).max() > 0.01
    encoder.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_primer_is_silence_before_the_speech(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    data = b"".join([encoder.prime(PRIMER_S), *map(encoder.push, cut(speech, 1200)), encoder.finish()])
    heard = decoded(data, kind)
    primer = round(PRIMER_S * heard.rate_hz)
    reference = at_rate(speech, heard.rate_hz)
    assert lag_of(heard.samples, reference) == primer + declared_lag(kind, as_file=False)
    assert np.abs(heard.samples[: primer - 100]).max() < 0.001
    if kind in ("wav", "pcm"):
        head_bytes = len(data) - 2 * len(speech)
        assert data[head_bytes:] == filed("pcm", speech)
        assert not any(data[head_bytes - 2 * primer : head_bytes])


@pytest.mark.parametrize(("kind", "mark"), [("flac", b"fLaC"), ("opus", b"OggS"), ("wav", b"RIFF")])
def test_the_head_comes_with_the_primer(kind: Format, mark: bytes) -> None:
    encoder = Encoder(kind)
    assert encoder.prime(PRIMER_S).startswith(mark)
    encoder.close()


@pytest.mark.parametrize("kind", ["mp3", "aac", "opus"])
@pytest.mark.parametrize("rate_hz", [24_000, 48_000])
def test_the_bit_rate_is_the_stated_one(kind: Format, rate_hz: int) -> None:
    spoken = speechlike(4)
    stated = CODECS[kind].bit_rate_at(rate_hz if kind != "opus" else 24_000)
    # of Opus and AAC it is what the encoder aims at over a longer time; heads of pages and frames come on top
    assert 8 * len(streamed(kind, spoken, rate_hz)) / 4 == pytest.approx(
        stated, rel=0.02 if kind == "mp3" else 0.45
    )


@pytest.mark.parametrize("kind", CODED)
def test_memory_does_not_grow_with_the_length(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    process = psutil.Process()
    for _ in range(3):
        encoder.push(speech)
    before = process.memory_info().rss
    for _ in range(16):  # 24 s: 2.3 MB of samples
        encoder.push(speech)
    assert process.memory_info().rss - before < 1.5 * 2**20
    encoder.close()


def test_encoders_that_are_given_up_are_freed(speech: Samples) -> None:
    def give_up() -> None:
        for _ in range(15):
            encoder = Encoder("flac")
            encoder.push(speech[:2400])
            encoder.close()

    gc.disable()  # they must not wait for it
    try:
        give_up()
        before = psutil.Process().memory_info().rss
        give_up()
        assert psutil.Process().memory_info().rss - before < 8 * 2**20  # each held about 3 MB
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("kind", ["ogg", "MP3", "", "m4a"])
def test_another_format_is_refused(kind: Any) -> None:
    with pytest.raises(ParameterError, match="mp3, opus, aac, flac, wav, pcm") as caught:
        Encoder(kind)
    assert caught.value.field == "response_format"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rate_hz", [0, 8_000, 96_000])
def test_another_rate_is_refused(kind: Format, rate_hz: int) -> None:
    with pytest.raises(ParameterError, match="22050, 24000, 44100, 48000") as caught:
        Encoder(kind, rate_hz)
    assert caught.value.field == "sample_rate"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_mono_speech_is_refused(kind: Format) -> None:
    for samples in (np.zeros(10, np.int16), np.zeros((10, 2), np.float32), np.zeros(10)):
        with pytest.raises(ParameterError, match="cannot be processed"):
            Encoder(kind).push(samples)  # type: ignore[arg-type]
    with pytest.raises(SynthesisError, match="not finite"):
        Encoder(kind).push(np.array([0, np.nan], np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_spent_takes_nothing_more(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    encoder.push(speech)
    with pytest.raises(RuntimeError, match="primer"):
        encoder.prime(PRIMER_S)
    encoder.finish()
    encoder.close()
    for more in (lambda: encoder.push(speech), encoder.finish):
        with pytest.raises(RuntimeError, match="flushed"):
            more()


@pytest.mark.parametrize("kind", KINDS)
def test_clipping_is_counted(kind: Format, speech: Samples) -> None:
    encoder = Encoder(kind)
    encoder.run(speech)
    assert encoder.clipped_samples == 0
    encoder = Encoder(kind)
    data = encoder.run(4 * speech)
    assert encoder.clipped_samples == pytest.approx(np.count_nonzero(np.abs(4 * speech) > 1), rel=0.01)
    assert np.abs(decoded(data, kind).samples).max() > 0.9


@pytest.mark.parametrize("kind", CODED)
def test_an_encoder_that_is_not_installed_is_named_with_the_mend(
    kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str, mode: str) -> None:
        raise av.codec.codec.UnknownCodecError(name)

    monkeypatch.setattr(av, "Codec", unknown)
    with pytest.raises(FormatUnavailable, match="make env") as caught:
        Encoder(kind)
    assert caught.value.field == "response_format"
    assert CODECS[kind].encoder in str(caught.value)
    assert Encoder("wav").run(np.zeros(10, np.float32))


def test_without_the_libraries_wav_and_pcm_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(FormatUnavailable, match="wav, pcm"):
        Encoder("mp3")
    assert filed("pcm", np.zeros(10, np.float32))
