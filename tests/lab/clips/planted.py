"""Clips whose order is known: tones, of which each is worse than the one before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.lab.clips import JudgedClip, Limits, Sound

LIMITS: Limits = {"click_score_ratio": (None, 6.0)}


class SpokenWord(NamedTuple):
    text: str
    start_s: float
    end_s: float
    phonemes: str = ""


WORDS = (SpokenWord("<Kettle>", 0.2, 0.9, "kˈɛtᵊl"), SpokenWord("on", 1.0, 1.8, "ˈɔn"))


def tone(length_s: float = 2.0, hz: float = 440.0) -> Samples:
    time_s = np.arange(round(length_s * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    return np.asarray(0.3 * np.sin(2 * np.pi * hz * time_s), np.float32)


def clip(number: int, *, badness: float | None = None, reference: bool = True) -> JudgedClip:
    """Its click score, and its badness, is its number, unless said otherwise."""
    return JudgedClip(
        f"clip {number} & more",
        'Say "<b>".',
        "af_heart",
        "en-us",
        {"click_score_ratio": float(number), "audio_s": 2.0},
        float(number) if badness is None else badness,
        lambda: Sound(tone(), WORDS),
        (lambda: Sound(tone(2.5, 330.0))) if reference else None,
        {"heard": "<i>nothing</i>"},
    )
