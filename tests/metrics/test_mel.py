"""Mel spectra are those of `librosa.feature.melspectrogram`, whose figures are in `librosa.npz`.

Kept, and not made anew: to call it is to have it compile itself, which takes half a minute.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kokoro_lab.metrics.mel import mel_filters, mel_power

MADE = np.load(Path(__file__).parent / "librosa.npz")


@pytest.mark.parametrize("name", [name for name in MADE.files if name.startswith("power")])
def test_power_is_librosas(name: str) -> None:
    rate_hz, window_samples, hop_samples, bands = map(int, name.split("_")[1:])
    sizes = {"window_samples": window_samples, "hop_samples": hop_samples, "bands": bands}
    np.testing.assert_allclose(mel_power(MADE["samples"], rate_hz, **sizes), MADE[name], rtol=1e-4)


def test_a_tone_is_in_the_band_of_its_frequency() -> None:
    tone = np.sin(2 * np.pi * 3000 * np.arange(24_000) / 24_000)
    power = mel_power(tone, 24_000, window_samples=1024, hop_samples=240, bands=80)
    middle_hz = np.fft.rfftfreq(1024, 1 / 24_000)[mel_filters(24_000, 1024, 80).argmax(0)]
    assert abs(middle_hz[power.sum(0).argmax()] - 3000) < 120
