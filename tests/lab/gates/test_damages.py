"""Damages do what they say, where speech is, and refuse what they cannot damage."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.gates import damages

SPAN = round(damages.DAMAGE_S * SAMPLE_RATE_HZ)


@pytest.fixture(scope="module")
def speech() -> Samples:
    """A second of noise that is loud in its middle tenth, no two samples alike."""
    samples = np.random.default_rng(1).uniform(-0.1, 0.1, 10 * SPAN)
    samples[5 * SPAN : 6 * SPAN] *= 5
    return samples.astype(np.float32)


def test_the_loudest_span_is_found(speech: Samples) -> None:
    assert abs(damages.loudest(speech).start - 5 * SPAN) < SPAN // 20


@pytest.mark.parametrize("name", damages.DAMAGES)
def test_each_damage_changes_the_speech_and_only_a_copy_of_it(name: str, speech: Samples) -> None:
    before = speech.copy()
    damaged = damages.DAMAGES[name](speech)
    assert damaged.dtype == np.float32
    assert np.isfinite(damaged).all()
    assert not np.array_equal(damaged, speech)
    assert np.array_equal(speech, before)


def test_lengths_change_by_what_is_said(speech: Samples) -> None:
    lengths = {name: len(damage(speech)) - len(speech) for name, damage in damages.DAMAGES.items()}
    assert lengths.pop("100 ms cut out") == -SPAN
    assert lengths.pop("100 ms heard twice") == SPAN
    assert lengths.pop("10 % faster") == pytest.approx(len(speech) / 1.1 - len(speech), abs=1)
    assert set(lengths.values()) == {0}


def test_swapped_chunks_hold_the_same_samples_in_another_order(speech: Samples) -> None:
    swapped = damages.swapped(speech)
    assert np.array_equal(np.sort(swapped), np.sort(speech))
    span = damages.loudest(speech)
    assert np.array_equal(swapped[span.stop : span.stop + SPAN], speech[span])


def test_noise_and_gain_have_their_levels(speech: Samples) -> None:
    noise = damages.noisy(speech) - speech
    snr_db = 10 * np.log10(float((speech**2).sum()) / float((noise**2).sum()))
    assert snr_db == pytest.approx(20, abs=0.1)
    assert float(damages.gained(speech)[0] / speech[0]) == pytest.approx(10 ** (3 / 20), rel=1e-5)


def test_clipping_cuts_the_loudest_hundredth(speech: Samples) -> None:
    damaged = damages.clipped(speech)
    assert (np.abs(damaged) == np.abs(damaged).max()).mean() == pytest.approx(0.01, abs=0.001)


def test_a_dropped_word_is_its_samples(speech: Samples) -> None:
    assert np.array_equal(damages.without(speech, slice(0, SPAN)), speech[SPAN:])


def test_what_is_too_short_is_refused() -> None:
    with pytest.raises(ParameterError, match="too short to be damaged"):
        damages.gap(np.zeros(2 * SPAN, np.float32))
