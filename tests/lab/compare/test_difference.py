"""How a text sounds beside the reference is judged to its end."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.lab.compare import difference as ab
from kokoro_lab.metrics.perceptual import PESQ_CEILING


def test_noise_at_the_end_of_a_text_is_as_bad_as_at_its_beginning() -> None:
    found = ab.noise_at_the_end()
    assert found["longer_s"] == 0
    assert found["snr_db"] < 20
    assert found["pesq"] < 2


@pytest.mark.parametrize(
    ("seconds", "parts_s"),
    [(0.5, [0.5]), (12, [12]), (15, [15]), (16, [12, 4]), (27, [12, 15]), (41, [12, 12, 12, 5])],
)
def test_a_text_is_compared_in_parts_of_which_none_is_much_shorter(
    seconds: float, parts_s: list[float]
) -> None:
    parts = ab._parts(round(seconds * SAMPLE_RATE_HZ))
    assert [(part.stop - part.start) / SAMPLE_RATE_HZ for part in parts] == parts_s
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]


def test_only_parts_that_differ_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    monkeypatch.setattr(ab, "pesq_wb", lambda one, other, rate_hz: compared.append(len(one)) or 3.0)
    reference = np.sin(np.arange(30 * SAMPLE_RATE_HZ) / 20).astype(np.float32)
    candidate = reference.copy()
    candidate[-1000:] = 0
    assert ab.difference_of(reference, candidate)["pesq"] == 3
    assert compared == [6 * SAMPLE_RATE_HZ]
    assert ab._pesq(reference[:1000], candidate[:1000]) == PESQ_CEILING
