"""The performance gate: what is slower is caught, what noise explains is not, and bands are never guessed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pandas as pd
import pytest

from kokoro_lab.errors import ParameterError, SynthesisError
from kokoro_lab.lab.bench.fresh_process import started
from kokoro_lab.lab.bench.reference import Inference
from kokoro_lab.lab.gates import performance
from kokoro_lab.lab.gates.performance import FIGURES, Band, Kind
from kokoro_lab.lab.results import NegativeControl
from kokoro_lab.metrics.intervals import Estimate
from kokoro_lab.speech.engine import Engine

KIND = Kind("int8", "cpu", "a processor", 2, "ours")
GOLDEN = Band(KIND, dict.fromkeys(FIGURES, 0.5), {})


class Clock:
    """A reference inference that takes as long as it is told."""

    def infer(self) -> Inference:
        time.sleep(0.01)
        return Inference(0.01, 0.1)


def spreads(low: float, ratio: float, high: float) -> dict[str, Estimate]:
    return dict.fromkeys(FIGURES, Estimate(ratio, low, high, 20))


@pytest.fixture
def bands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout's."""
    for folder in ("notebooks", "fixtures", "golden"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "golden/bands.json"


@pytest.mark.parametrize("control", performance.made_up_controls(), ids=lambda one: one.name)
def test_a_figure_over_its_band_is_caught_and_noise_is_not(control: NegativeControl) -> None:
    assert control.caught


@pytest.mark.parametrize(
    ("low", "ratio", "high", "passes"),
    [(0.48, 0.5, 0.52, True), (0.54, 0.6, 0.7, True), (0.56, 0.6, 0.7, False), (0.18, 0.2, 0.3, True)],
)
def test_an_interval_that_is_wholly_over_the_band_fails(
    low: float, ratio: float, high: float, passes: bool
) -> None:
    checks = performance.judge(spreads(low, ratio, high), GOLDEN)
    assert all(check.passed for check in checks) == passes


@pytest.mark.parametrize(("low", "passes"), [(0.43, True), (0.42, False), (0.1, False)])
def test_an_interval_too_wide_to_say_anything_fails(low: float, passes: bool) -> None:
    checks = performance.judge(spreads(low, 0.5, 0.6), GOLDEN)
    assert all(check.passed for check in checks) == passes


def test_an_engine_that_sleeps_is_caught(hum: Engine) -> None:
    clock = Clock()
    table = performance.measure_speech(hum, clock, "hum", 2)  # type: ignore[arg-type]
    assert sorted(set(table.figure)) == ["rtf_medium", "ttfa_medium", "ttfa_short"]
    assert list(table.groupby("figure").size()) == [2, 2, 2]
    assert (table.ratio == table.ours / table.reference).all()
    asleep = performance.slowed(hum, 0.3)
    slow = performance.medians(
        performance.measure_speech(asleep, clock, "hum", 1, warm=False)  # type: ignore[arg-type]
    )
    assert slow["ttfa_short"].value >= 0.3 / 0.01


def test_nothing_measured_is_refused(hum: Engine) -> None:
    with pytest.raises(ParameterError, match="Nothing would be measured"):
        performance.measure_speech(hum, Clock(), "hum", 0)  # type: ignore[arg-type]


def test_a_process_that_fails_is_told_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_THREADS", "many")
    with pytest.raises(SynthesisError, match="KOKORO_THREADS"):
        started("reference", "int8")


# ------------------------------------------------------------------------------------------- bands


def test_a_band_is_written_read_and_replaced_by_its_kind_alone(bands: Path) -> None:
    other = Kind("fp32", "cpu", "a processor", 2, "ours")
    performance.write_band(KIND, GOLDEN.ratios, 20, 7)
    performance.write_band(other, dict.fromkeys(FIGURES, 1.0), 20, 7)
    performance.write_band(KIND, dict.fromkeys(FIGURES, 0.4), 20, 7)
    found = performance.read_bands()
    assert {band.kind: band.ratios["memory"] for band in found} == {KIND: 0.4, other: 1.0}
    recorded = performance.band_for(KIND).recorded  # type: ignore[union-attr]
    assert (recorded["trials"], recorded["starts"]) == (20, 7)


def test_a_band_of_few_trials_or_without_a_figure_is_not_written(bands: Path) -> None:
    for trials, starts in ((9, 7), (20, 5)):
        with pytest.raises(ParameterError, match="one of noise"):
            performance.write_band(KIND, GOLDEN.ratios, trials, starts)
    with pytest.raises(ParameterError, match="every figure"):
        performance.write_band(KIND, {"memory": 1.0}, 20, 7)
    assert not bands.exists()


@pytest.mark.parametrize(
    "written",
    ["{", "[]", '{"bands": [{"kind": {}}]}'],
)
def test_bands_that_cannot_be_read_are_refused(bands: Path, written: str) -> None:
    bands.write_text(written)
    with pytest.raises(ParameterError, match="cannot be read"):
        performance.read_bands()


@pytest.mark.parametrize("ratio", [0, -1, None, "fast", float("nan")])
def test_a_ratio_that_is_none_is_refused(bands: Path, ratio: object) -> None:
    performance.write_band(KIND, GOLDEN.ratios, 20, 7)
    kept = json.loads(bands.read_text())
    kept["bands"][0]["ratios"]["memory"] = ratio
    bands.write_text(json.dumps(kept))
    with pytest.raises(ParameterError, match=r"A band|cannot be read"):
        performance.read_bands()


def test_a_machine_without_a_band_is_told_how_to_record_one(bands: Path) -> None:
    performance.write_band(KIND, GOLDEN.ratios, 20, 7)
    stranger = Kind("int8", "cpu", "another processor", 8, "stock")
    with pytest.raises(ParameterError, match="write=true"):
        performance.band_before(stranger, decides=True, write=False, trials=20, starts=7)
    assert performance.band_before(stranger, decides=False, write=False, trials=1, starts=1) is None
    assert performance.band_before(stranger, decides=True, write=True, trials=20, starts=7) is None
    for trials, starts in ((3, 7), (20, 1)):
        with pytest.raises(ParameterError, match="one of noise"):
            performance.band_before(stranger, decides=True, write=True, trials=trials, starts=starts)


def test_where_times_do_not_decide_they_are_held_against_no_band(bands: Path) -> None:
    performance.write_band(KIND, GOLDEN.ratios, 20, 7)
    assert performance.band_before(KIND, decides=False, write=False, trials=1, starts=1) is None
    for write in (False, True):
        band = performance.band_before(KIND, decides=True, write=write, trials=20, starts=7)
        assert band is not None
        assert band.ratios == GOLDEN.ratios


def test_where_times_do_not_decide_every_figure_must_have_been_measured_all_the_same(bands: Path) -> None:
    performance.write_band(KIND, GOLDEN.ratios, 20, 7)
    slow = spreads(5, 5, 5)
    assert all(c.passed for c in performance.judge(slow, GOLDEN, decides=False))
    assert not all(c.passed for c in performance.judge(slow, GOLDEN, decides=True))
    slow.pop("start_up")
    assert not all(c.passed for c in performance.judge(slow, GOLDEN, decides=False))


def test_what_a_new_band_changes_is_shown(bands: Path) -> None:
    table = performance.changes(spreads(0.6, 0.6, 0.6), GOLDEN)
    assert table.change_percent.round(6).to_dict() == dict.fromkeys(FIGURES, 20)
    assert performance.changes(spreads(0.6, 0.6, 0.6), None).before.isna().all()


def test_figures_say_how_far_over_the_band_the_worst_is() -> None:
    rows = [
        {"figure": name, "trial": 0, "ours": 1.0, "reference": 2.0, "ratio": 0.5 if n else 0.7}
        for n, name in enumerate(FIGURES)
    ]
    found = performance.figures(pd.DataFrame(rows), GOLDEN)
    assert found[performance.MOST] == pytest.approx(1.4)
    assert found["start_up_median_s"] == 1
    assert performance.MOST not in performance.figures(pd.DataFrame(rows), None)


def test_the_recorded_bands_are_whole(repository: Path) -> None:
    assert performance.read_bands(repository / "golden/bands.json")
