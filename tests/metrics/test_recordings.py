"""What a metric refuses to measure, and how it says so."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.metrics.recordings import require_recording

RATE_HZ = 24_000


def test_a_recording_that_can_be_measured_passes() -> None:
    require_recording(np.zeros(RATE_HZ, np.float32), RATE_HZ, 1.0)
    require_recording(np.zeros((1, 5)), channels=5)
    require_recording(np.full(3, np.nan), finite=False)


@pytest.mark.parametrize(
    ("samples", "shortest_s", "said"),
    [
        (np.zeros(9, np.int16), 0.0, "int16.*one channel"),
        (np.zeros((9, 2)), 0.0, "one channel"),
        (np.zeros(0), 0.0, "too short.*one sample"),
        (np.zeros(RATE_HZ - 1), 1.0, "too short.*1 s or more"),
        (np.array([0.0, np.nan, np.inf]), 0.0, "not finite"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_what_can(
    samples: np.ndarray, shortest_s: float, said: str
) -> None:
    with pytest.raises(ParameterError, match=said) as caught:
        require_recording(samples, RATE_HZ, shortest_s, field="candidate")
    assert caught.value.field == "candidate"
    if "finite" in said:
        assert caught.value.value == 2
