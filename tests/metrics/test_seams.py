"""Seams that are smooth rank like other places; clicks, gaps and jumps rank above them."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.seams import seam_rank, seam_scores

RATE_HZ = 24_000
SEAMS = [6_000, 12_000, 18_000]


def voice() -> np.ndarray:
    """A second of a buzzing tone with breath, as bent everywhere as speech is."""
    t = np.arange(RATE_HZ) / RATE_HZ
    breath = np.random.default_rng(3).normal(size=RATE_HZ) * 0.002
    return (0.2 * np.sin(2 * np.pi * 140 * t) + 0.1 * np.sin(2 * np.pi * 1_300 * t) + breath).astype(
        np.float32
    )


def test_what_was_not_touched_ranks_like_any_other_place() -> None:
    places = [int(p) for p in np.random.default_rng(1).integers(500, RATE_HZ - 500, 400)]
    assert seam_rank(voice(), RATE_HZ, places).mean() == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("damage", ["click", "jump", "gap"])
def test_damage_at_a_seam_stands_out(damage: str) -> None:
    samples = voice()
    for seam in SEAMS:
        if damage == "click":
            samples[seam] += 0.3
        elif damage == "jump":
            samples[seam:] += 0.2
        else:
            peak = seam + int(np.abs(samples[seam - 20 : seam + 20]).argmax()) - 20
            samples[peak : peak + 240] = 0
    assert seam_rank(samples, RATE_HZ, SEAMS).mean() > 0.95


def test_silence_scores_nothing() -> None:
    assert seam_scores(np.zeros(1_000, np.float32), RATE_HZ, [500]).max() == 0


def test_a_place_outside_is_refused() -> None:
    with pytest.raises(ParameterError, match="outside"):
        seam_scores(voice(), RATE_HZ, [RATE_HZ])
