"""An upgrade that is worse is not kept, one that is not is, and the way back can be typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.reference import Inference
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates import upgrade
from kokoro_lab.lab.gates.upgrade import (
    LAST,
    NONE,
    NOTEBOOK,
    WORSE_PERCENT,
    changes,
    compare,
    record_before,
)
from kokoro_lab.lab.results import Check, facts_of, made_by
from kokoro_lab.speech.engine import Engine

TEXTS = [
    FixtureText("a", "prose", "Rain fell on the quiet town."),
    FixtureText("b", "prose", "Nobody is in."),
]


def noisy(center: float, count: int = 12) -> list[float]:
    return [float(v) for v in center * np.random.default_rng(7).uniform(0.9, 1.1, count)]


@pytest.mark.parametrize(("times", "worse"), [(1.0, False), (0.7, False), (1.05, False), (1.3, True)])
def test_only_what_is_certainly_worse_by_a_tenth_counts(times: float, worse: bool) -> None:
    before = noisy(2.0)
    now = [times * value for value in before]
    row = compare({"ttfa_ratio": before}, {"ttfa_ratio": now}).loc["ttfa_ratio"]
    assert row.worse == worse
    assert row.change_percent == pytest.approx(100 * (times - 1))


def test_a_change_that_may_be_noise_is_no_reason_to_go_back() -> None:
    before = noisy(2.0)
    jumpy = [value * (1.6 if number % 2 else 0.8) for number, value in enumerate(before)]
    row = compare({"rtf_ratio": before}, {"rtf_ratio": jumpy}).loc["rtf_ratio"]
    assert row.change_percent > WORSE_PERCENT > row.least_percent
    assert not row.worse


def test_a_few_texts_prove_nothing() -> None:
    assert not compare({"ttfa_ratio": [1.0, 1.0]}, {"ttfa_ratio": [9.0, 9.0]}).worse.any()
    assert compare({"ttfa_ratio": [1.0] * 5}, {"ttfa_ratio": [9.0] * 5}).worse.all()


def test_what_cannot_be_compared_is_worse() -> None:
    assert compare({"memory_mb": [500.0]}, {"memory_mb": [float("nan")]}).worse.all()


def test_a_figure_that_is_no_more_is_worse_and_a_new_one_is_told() -> None:
    table = compare({"ttfa_ratio": noisy(1.0), "memory_mb": [500.0]}, {"ttfa_ratio": noisy(1.0)})
    assert list(table.worse) == [False, True]
    table = compare({"ttfa_ratio": noisy(1.0)}, {"ttfa_ratio": noisy(1.0), "gap_s": noisy(0.1)})
    assert list(table.index) == ["ttfa_ratio", "gap_s"]
    assert not table.worse.any()
    assert table.now["gap_s"] == pytest.approx(float(np.median(noisy(0.1))))


def test_the_engine_is_looked_at_and_each_look_is_a_row(hum: Engine) -> None:
    smoked = upgrade.smoke(hum, [("python", True, "3.12"), ("flask", False, "not installed")], "hum")
    assert not smoked.ok["doctor: flask"]
    assert smoked.ok[["samples are finite", "level", "the same twice", "every word has its time"]].all()
    (smoke_check,) = upgrade.checks_of(smoked, None)
    assert (smoke_check.value, smoke_check.passed) == (1, False)


def test_times_are_ratios_to_a_reference_that_is_timed_beside_them(hum: Engine) -> None:
    class Fixed:
        """Disturbed in the first round: the least of all counts."""

        looks = 0

        def infer(self) -> Inference:
            self.looks += 1
            return Inference(0.9 if self.looks <= len(TEXTS) else 0.5, audio_s=1.0)

    table = upgrade.benchmark(hum, Fixed(), TEXTS, "hum", rounds=2)  # type: ignore[arg-type]
    assert list(table.index) == ["a", "b"]
    assert np.allclose(table.ttfa_ratio, table.ttfa_s / 0.5)
    assert np.allclose(table.rtf_ratio, table.rtf / 0.5)
    ratios = upgrade.ratios_of(table, 300.0)
    assert json.loads(json.dumps(ratios)) == ratios
    assert set(ratios) == {"ttfa_ratio", "rtf_ratio", "memory_mb"}
    with pytest.raises(ParameterError):
        upgrade.benchmark(hum, Fixed(), [], "hum")  # type: ignore[arg-type]


def test_faults_put_in_on_purpose_are_noticed(hum: Engine) -> None:
    smoked = upgrade.smoke(hum, [("python", True, "3.12")], "hum")
    controls = upgrade.controls({"ttfa_ratio": noisy(2), "memory_mb": [300.0]}, smoked)
    assert len(controls) == 4
    assert all(control.caught for control in controls)


# ----------------------------------------------------------------------------------- the run before


def a_record(**changed: Any) -> dict[str, Any]:
    record = {
        "notebook": NOTEBOOK,
        "verdict": "passed",
        "variant": "int8",
        "model_sha256": "8f",
        "conversion": {"recipe": 19},
        "versions": {"kokoro-lab": "0.1.0", "onnxruntime": "1.31.0"},
        "toolchain": {"compiler": "g++ 14"},
        "git": {"commit": "abc", "dirty": False},
        "machine": {"cpu": "here"},
        "ratios": {"ttfa_ratio": [1.0]},
        "asked": {"voice": "af_heart", "texts": ["a"]},
    }
    return record | changed


@pytest.fixture
def results(tmp_path: Path) -> Path:
    def keep(name: str, record: dict[str, Any]) -> None:
        path = tmp_path / NOTEBOOK / name / "result.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(record))

    keep("1", a_record(versions={"kokoro-lab": "0.0.8", "onnxruntime": "1.30.0"}))
    keep("2", a_record(versions={"kokoro-lab": "0.0.9", "onnxruntime": "1.31.0"}))
    keep("3", a_record(versions={"kokoro-lab": "0.0.95", "onnxruntime": "1.31.0"}, verdict="failed"))
    keep("4", a_record(variant="fp32", machine={"cpu": "elsewhere"}))
    keep("5", a_record(variant="fp32", asked={"voice": "am_michael", "texts": ["a"]}))
    keep("6", a_record())
    (tmp_path / NOTEBOOK / "7").mkdir()
    (tmp_path / NOTEBOOK / "7" / "result.json").write_text("{")
    return tmp_path


def test_the_last_run_that_was_made_otherwise_and_passed_here_is_compared_with(results: Path) -> None:
    found = record_before(LAST, results, a_record())
    assert found is not None
    assert found["versions"]["kokoro-lab"] == "0.0.9"
    assert list(changes(found, a_record()).index) == ["versions.kokoro-lab"]
    assert record_before(NONE, results, a_record()) is None
    assert record_before(LAST, results / "empty", a_record()) is None


@pytest.mark.parametrize("text", ["{", "[]", f'{{"notebook": "{NOTEBOOK}", "ratios": {{}}}}'])
def test_a_damaged_record_is_skipped(results: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    before = record_before(LAST, results, a_record())
    newest = results / NOTEBOOK / "20991231T000000Z-aaaa"
    newest.mkdir()
    (newest / "result.json").write_text(text)
    assert before is not None
    assert record_before(LAST, results, a_record()) == before
    assert (newest.name in caplog.text) is ("ratios" not in text)


def test_a_file_that_is_named_must_fit(results: Path, tmp_path: Path) -> None:
    runs = results / NOTEBOOK
    found = record_before(str(runs / "1" / "result.json"), results, a_record())
    assert found is not None
    assert found["versions"]["kokoro-lab"] == "0.0.8"
    with pytest.raises(ParameterError, match="another machine"):
        record_before(str(runs / "4" / "result.json"), results, a_record())
    for wrong in (runs / "7" / "result.json", tmp_path / "nowhere.json"):
        with pytest.raises(ParameterError, match="no result"):
            record_before(str(wrong), results, a_record())


def test_a_result_holds_what_the_next_version_needs(hum: Engine) -> None:
    now = facts_of(hum) | made_by() | {"asked": upgrade.asked_of(TEXTS, "hum")}
    assert {"versions", "toolchain", "conversion", "variant", "model_sha256", "git", "machine"} <= set(now)
    assert changes(now, now).empty
    assert "versions.onnxruntime" in changes(a_record(), now).index


# ------------------------------------------------------------------------------------------ decision


def test_what_passes_is_kept() -> None:
    decision = upgrade.decide([Check("x_count", 0, high=0)], None, a_record())
    assert decision.keep
    assert "no record" in str(decision)
    assert "kokoro-lab run gates" in decision.commands


def test_the_way_back_names_what_was_before() -> None:
    before = a_record(
        variant="fp32",
        versions={"kokoro-lab": "0.0.9", "onnxruntime": "1.30.0"},
        git={"commit": "def", "dirty": False},
    )
    decision = upgrade.decide([Check("ttfa_ratio_worse_at_least_percent", 25.0, high=10)], before, a_record())
    assert not decision.keep
    assert any("ttfa_ratio" in reason for reason in decision.reasons)
    assert decision.commands == (
        "KOKORO_VARIANT=fp32 kokoro-lab serve",
        "pip install kokoro-lab==0.0.9",
        "git checkout def && make env",
        "pip install onnxruntime==1.30.0",
    )


def test_without_a_record_the_way_back_is_the_reference_precision() -> None:
    decision = upgrade.decide([Check("smoke_failed_count", 1, high=0)], None, a_record())
    assert decision.commands[0].startswith("KOKORO_VARIANT=fp32")
