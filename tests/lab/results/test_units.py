"""Names of figures are read as words and units."""

from __future__ import annotations

import pytest

from kokoro_lab.lab.results.units import unit_of, words_of


@pytest.mark.parametrize(
    ("name", "words", "unit"),
    [
        ("true_peak_dbtp", "true peak", "dBTP"),
        ("integrated_lufs", "integrated", "LUFS"),
        ("pause_ms_p95", "pause p95", "ms"),
        ("clips_off_target_count", "clips off target", ""),
        ("word_error_rate_percent", "word error rate", "%"),
        ("rtf", "RTF", ""),
        ("pesq_mean", "PESQ mean", ""),
        ("seconds", "seconds", ""),
        ("s_of_speech", "s of speech", ""),
    ],
)
def test_a_name_is_words_and_a_unit(name: str, words: str, unit: str) -> None:
    assert (words_of(name), unit_of(name)) == (words, unit)
