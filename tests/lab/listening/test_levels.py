"""Both clips of a pair are equally loud, and nothing is clipped to make them so."""

from __future__ import annotations

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.listening import PassagePair
from kokoro_lab.lab.listening.levels import LISTENING_LUFS, match_loudness
from kokoro_lab.metrics.loudness import integrated_lufs, true_peak_dbtp
from tests.lab.listening.tones import RATE_HZ, pair, tone


@pytest.mark.parametrize("amplitude", [0.02, 0.1, 0.5])
def test_the_candidate_is_as_loud_as_the_reference(amplitude: float) -> None:
    matched = match_loudness(pair(hz=440, amplitude=amplitude))
    assert matched.candidate_gain_db == pytest.approx(20 * np.log10(0.1 / amplitude), abs=0.01)
    assert abs(matched.residual_lu) < 0.001
    for samples in (matched.pair.reference, matched.pair.candidate):
        assert integrated_lufs(samples, RATE_HZ) == pytest.approx(LISTENING_LUFS, abs=0.001)


def test_a_peaky_clip_makes_both_quieter_instead_of_being_limited() -> None:
    peaky = pair(hz=440)
    peaky.candidate[3000] = 0.9
    matched = match_loudness(peaky)
    assert matched.level_lufs < LISTENING_LUFS
    assert true_peak_dbtp(matched.pair.candidate, RATE_HZ) == pytest.approx(-1, abs=0.01)
    assert integrated_lufs(matched.pair.reference, RATE_HZ) == pytest.approx(matched.level_lufs, abs=0.001)
    assert abs(matched.residual_lu) < 0.001


@pytest.mark.parametrize(
    ("candidate", "said"), [(np.zeros(24_000, np.float32), "silent"), (tone(440, seconds=0.3), "too short")]
)
def test_what_has_no_loudness_is_refused(candidate: np.ndarray, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        match_loudness(PassagePair("a", tone(440), candidate, RATE_HZ))
