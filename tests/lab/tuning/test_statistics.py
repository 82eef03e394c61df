"""The judgement of the statistics predictor: what it must let pass, and what it must not."""

from __future__ import annotations

import random
from collections import Counter

import nbformat
import numpy as np
import pandas as pd
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.gates.suite import defaults, measurements
from kokoro_lab.lab.notebooks import find_notebook
from kokoro_lab.lab.tuning import statistics
from kokoro_lab.lab.tuning.comparison import mean_interval
from kokoro_lab.lab.tuning.statistics import Predictors, checks_of, draw_voice

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


def test_predictors_that_are_wrong_on_purpose_are_off_by_so_much_everywhere() -> None:
    shipped = Predictors.load()
    for right, wrong in zip(shipped, shipped.wrong_by(0.5), strict=True):
        off = (wrong.target_mean - right.target_mean) / right.unit
        np.testing.assert_allclose(np.abs(off), 0.5, rtol=1e-3)
        assert abs(off.mean()) < 0.05, "up as often as down"


@pytest.mark.parametrize("figure", ["pesq", "stoi", "dnsmos"])
def test_a_control_asks_for_the_check_of_its_own_figure(figure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = {"pesq": {"pesq": 4.0}, "stoi": {"stoi": 0.9}, "dnsmos": {"dnsmos": -1.0}}[figure]
    monkeypatch.setattr(statistics, "judge", lambda *_, **__: judged(**bad))
    found = statistics.controls(Predictors.load(), ["A line."], "af_heart", EngineConfig())
    assert [one.name for one in found if one.caught] == [f"statistics that are off cost {figure.upper()}"]


def test_only_a_predictor_that_has_passed_is_shipped() -> None:
    cells = nbformat.read(find_notebook("12_statistics_predictor"), 4).cells
    (saves,), (judges,) = (
        [place for place, cell in enumerate(cells) if call in cell.source]
        for call in ("predictors.save()", "run.finish(")
    )
    assert saves > judges


def test_a_run_of_another_training_set_is_no_evidence_of_the_shipped_predictor() -> None:
    (measurement,) = [one for one in measurements("notebooks") if one.name == "12_statistics_predictor"]
    shipped = defaults(find_notebook("12_statistics_predictor"))
    assert measurement.was_asked(shipped, fast=False)
    for other in ({"training": "mine.npz"}, {"corpus": "lines.txt"}, {"write": True}):
        assert not measurement.was_asked(shipped | other, fast=False)


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
