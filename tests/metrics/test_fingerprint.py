"""The fingerprint keeps through what nobody hears, and turns with what is said, by whom and when."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

from kokoro_lab.dsp import Dither
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import damages
from kokoro_lab.metrics.fingerprint import (
    HEX_DIGITS,
    Fingerprint,
    bit_error_rate,
    even_edges_s,
    mel_fingerprint,
)

RATE_HZ = 24_000


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    return recording("speech")


def recording(name: str) -> np.ndarray:
    samples, rate_hz = soundfile.read(Path(__file__).parent / f"{name}.flac", dtype="float32")
    assert rate_hz == RATE_HZ
    return samples


def errors(reference: np.ndarray, candidate: np.ndarray) -> float:
    return bit_error_rate(mel_fingerprint(reference, RATE_HZ), mel_fingerprint(candidate, RATE_HZ))


def test_the_same_recording_has_the_same_bits(speech: np.ndarray) -> None:
    assert errors(speech, speech) == 0
    assert 0.2 < mel_fingerprint(speech, RATE_HZ).bits.mean() < 0.8  # bits that say something


def test_what_nobody_hears_turns_hardly_a_bit(speech: np.ndarray) -> None:
    dithered = Dither(seed=3).run(speech).astype(np.float32) / 32767
    there_and_back = soxr.resample(soxr.resample(speech, RATE_HZ, 44_100), 44_100, RATE_HZ)
    assert errors(speech, dithered) <= 0.005
    assert errors(speech, there_and_back) <= 0.005
    assert errors(speech, damages.click(speech)) <= 0.01


def test_gain_turns_none(speech: np.ndarray) -> None:
    assert errors(speech, damages.gained(speech, -6)) == 0


def test_noise_in_a_pause_is_not_compared(speech: np.ndarray) -> None:
    pauses = np.concatenate([speech, np.zeros(RATE_HZ, np.float32)])
    noise = np.random.default_rng(1).normal(scale=1e-5, size=(2, len(pauses))).astype(np.float32)
    assert errors(pauses + noise[0], pauses + noise[1]) <= 0.005


def test_more_noise_turns_more(speech: np.ndarray) -> None:
    turned = [errors(speech, damages.noisy(speech, snr_db)) for snr_db in (40, 20, 0)]
    assert turned == sorted(turned)
    assert turned[1] > 0.08


def test_lost_and_repeated_speech_turns_a_fifth(speech: np.ndarray) -> None:
    assert errors(speech, damages.cut(speech)) > 0.15
    assert errors(speech, damages.repeat(speech)) > 0.15


def test_another_sentence_turns_half(speech: np.ndarray) -> None:
    assert errors(speech, recording("misaligned_reference")) == pytest.approx(0.5, abs=0.08)


def test_two_builds_of_one_utterance_are_alike() -> None:
    assert errors(recording("misaligned_reference"), recording("misaligned_candidate")) < 0.1


def test_moments_at_the_same_words_take_timing_out(speech: np.ndarray) -> None:
    """A pause of 50 ms put in: all that is behind it is late, unless the edges know of it."""
    at, pause_s = len(speech) // 2, 0.05
    late = np.insert(speech, at, np.zeros(round(pause_s * RATE_HZ), np.float32))
    even = even_edges_s(len(speech) / RATE_HZ)
    moved = np.where(even > at / RATE_HZ, even + pause_s, even)
    reference = mel_fingerprint(speech, RATE_HZ)
    known = bit_error_rate(reference, mel_fingerprint(late, RATE_HZ, moved))
    assert known < 0.02
    assert errors(speech, late) > 5 * known


def test_what_is_beyond_the_end_is_silent(speech: np.ndarray) -> None:
    edges_s = even_edges_s(2 * len(speech) / RATE_HZ)
    bits = mel_fingerprint(speech, RATE_HZ, edges_s).bits
    assert bits[:30].any()
    assert not bits[34:].any()


def test_it_is_written_and_read(speech: np.ndarray) -> None:
    found = mel_fingerprint(speech, RATE_HZ)
    assert len(found.hex) == HEX_DIGITS
    assert np.array_equal(Fingerprint.from_hex(found.hex).bits, found.bits)


@pytest.mark.parametrize("digits", ["", "ab", "z" * HEX_DIGITS, "0" * (HEX_DIGITS + 2), "0 " * HEX_DIGITS])
def test_what_is_no_fingerprint_is_refused(digits: str) -> None:
    with pytest.raises(ParameterError, match="512 hexadecimal"):
        Fingerprint.from_hex(digits)


def test_what_has_no_fingerprint_is_refused(speech: np.ndarray) -> None:
    broken = speech.copy()
    broken[7] = np.nan
    for samples, said in (
        (speech[: RATE_HZ // 2], "too short"),
        (np.stack([speech, speech], axis=1), "one channel"),
        (broken, "finite"),
        (np.zeros_like(speech), "Silence"),
    ):
        with pytest.raises(ParameterError, match=said):
            mel_fingerprint(samples, RATE_HZ)
    with pytest.raises(ParameterError, match="8000"):
        mel_fingerprint(speech, 4_000)


@pytest.mark.parametrize("edges_s", [[0.0, 1.0], list(range(66, 0, -1)), [float("nan")] * 66])
def test_edges_that_are_none_are_refused(speech: np.ndarray, edges_s: list[float]) -> None:
    with pytest.raises(ParameterError, match="66 rising"):
        mel_fingerprint(speech, RATE_HZ, edges_s)
