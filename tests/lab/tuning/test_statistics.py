"""The judgement of the statistics predictor: what it must let pass, and what it must not."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from kokoro_lab.lab.tuning import statistics
from kokoro_lab.lab.tuning.comparison import mean_interval
from kokoro_lab.lab.tuning.statistics import checks_of, draw_voice

VOICES = ("af_heart", "am_michael", "jf_alpha", "zm_yunxi")


def judged(**changed: float) -> pd.DataFrame:
    """Forty utterances that leave nothing to wish for, but for what is changed."""
    rng = np.random.default_rng(1)
    good = {"pesq": 4.6, "stoi": 0.998, "lsd_db": 1.5, "audio_s": 4.0, "seam_rank_change": 0.0}
    table = pd.DataFrame([{"text": i // 4, "voice": VOICES[i % 4], "speed": 1.0} | good for i in range(40)])
    table["dnsmos_whole"] = rng.normal(4.2, 0.1, 40)
    table["dnsmos_windows"] = table.dnsmos_whole + rng.normal(0, 0.02, 40) + changed.pop("dnsmos", 0.0)
    return table.assign(**changed)


def failed(table: pd.DataFrame) -> list[str]:
    return [check.name for check in checks_of(table) if not check.passed]


def test_what_cannot_be_told_apart_passes() -> None:
    assert failed(judged()) == []


@pytest.mark.parametrize(
    ("changed", "caught"),
    [
        ({"pesq": 4.5}, ["pesq_mean_interval_high"]),
        ({"stoi": 0.99}, ["stoi_mean_interval_high"]),
        ({"dnsmos": -0.1}, ["dnsmos_change_interval_high"]),
        ({"seam_rank_change": 0.3}, ["seam_rank_change_mean"]),
        ({"audio_s": 1.5, "pesq": 4.4}, ["pesq_mean_interval_high_under_2500_ms"]),
        ({"seam_rank_change": float("nan")}, ["seam_rank_change_mean"]),
    ],
)
def test_what_can_be_told_apart_fails(changed: dict[str, float], caught: list[str]) -> None:
    assert failed(judged(**changed)) == caught


def test_a_short_first_segment_weighs_as_little_as_it_lasts() -> None:
    table = judged()
    first = table.assign(audio_s=0.5, stoi=0.99)
    assert failed(pd.concat([table, first])) == []
    assert failed(pd.concat([table, first.assign(audio_s=4.0)])) == ["stoi_mean_interval_high"]


def test_a_few_bad_utterances_fail_although_the_mean_is_good() -> None:
    table = judged()
    table.loc[:3, "pesq"] = 4.2
    table.loc[4:, "pesq"] = 4.63
    assert failed(table) == ["pesq_p5"]


def test_the_interval_is_over_texts() -> None:
    rng = np.random.default_rng(2)
    of_text = np.repeat(rng.normal(0, 1, 20), 50)
    alike = pd.DataFrame({"text": np.repeat(np.arange(20), 50), "x": of_text})
    low, high = mean_interval(alike, "x")
    assert low < of_text.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * of_text[::50].std() / np.sqrt(20), rel=0.2)


def test_all_voices_are_drawn_english_ones_more_often() -> None:
    draw = random.Random(3)
    drawn = Counter(draw_voice(draw, VOICES) for _ in range(2_000))
    plain = {name: count for name, count in drawn.items() if "+" not in name}
    assert set(plain) == set(VOICES)
    assert sum(c for n, c in drawn.items() if "+" in n) == pytest.approx(
        2_000 * statistics.BLEND_SHARE, rel=0.2
    )
    english = sum(count for name, count in plain.items() if name[0] in "ab")
    assert english / sum(plain.values()) == pytest.approx(statistics.ENGLISH_SHARE, abs=0.05)
    assert draw_voice(draw, ("jf_alpha",)).startswith("jf_alpha")
