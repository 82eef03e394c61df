"""DNSMOS tells speech from noise, and refuses what it cannot hear."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest

from kokoro_lab.errors import MissingExtra, ParameterError
from kokoro_lab.metrics import mos
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.speech.engine import Engine

needs_model = pytest.mark.skipif(
    find_spec("speechmos") is None, reason="DNSMOS needs the extra `quality`, which is not installed"
)


@needs_model
@pytest.mark.model
def test_speech_is_better_than_the_same_speech_in_noise(engine: Engine) -> None:
    speech = engine.synthesize("The ferry leaves at nine, and nobody is on the pier.").samples
    noise = np.random.default_rng(4).normal(size=len(speech)).astype(np.float32) * 0.05
    clean = dnsmos(speech, 24_000)
    assert 3.0 < clean < 5.0
    assert dnsmos(speech + noise, 24_000) < clean - 0.5
    assert dnsmos(np.concatenate([speech] * 4), 24_000) == pytest.approx(clean, abs=0.3)


@needs_model
def test_silence_is_not_good_speech() -> None:
    assert dnsmos(np.zeros(24_000, np.float32), 24_000) < 3.0


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.array([0.0, np.nan], np.float32)])
def test_what_cannot_be_heard_is_refused(samples: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="cannot be measured"):
        dnsmos(samples, 24_000)


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "speechmos", None)
    mos._session.cache_clear()
    with pytest.raises(MissingExtra, match=r"kokoro-lab\[quality\]"):
        dnsmos(np.ones(100, np.float32), 24_000)
    mos._session.cache_clear()
