"""The suite: what can be run, how it is typed, and which run was it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from kokoro_lab.commands.run import GATES_AT_A_TIME
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.plan import SpeechPlan
from kokoro_lab.lab.bench.verdicts import SERVER_PLANS
from kokoro_lab.lab.gates.suite import Measurement, defaults, measurements
from kokoro_lab.lab.notebooks import find_notebook, parse_parameters
from kokoro_lab.lab.suite_runs import span_s

FAST_GATES_S = 180


def measurement(name: str) -> Measurement:
    (found,) = (one for one in measurements() if one.name == name)
    return found


def test_names_are_given_once() -> None:
    names = [one.name for one in measurements()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("one", measurements(), ids=lambda one: one.name)
@pytest.mark.parametrize("fast", [True, False], ids=["fast", "full"])
def test_each_mode_can_be_asked_for(one: Measurement, fast: bool) -> None:
    if one.benchmark:
        SERVER_PLANS.get(one.instrument, SpeechPlan)(**one.parameters(fast))
    else:
        parse_parameters(find_notebook(one.name), one.parameters(fast))


def test_the_fast_gates_take_under_three_minutes() -> None:
    assert span_s(measurements("gates"), fast=True, jobs=GATES_AT_A_TIME) <= FAST_GATES_S


def test_a_command_is_what_one_types() -> None:
    assert measurement("30_loudness_gate").command(True) == (
        "kokoro-lab run 30_loudness_gate -p voices=bf_emma -p texts=2"
        " -p blends=1 -p speeds=0.5 -p speeds_voices=if_sara"
    )
    options = {"http": True, "peers": False, "listen_s": 2.5, "chunk_ms": 40, "streamed": False}
    assert Measurement("x", "", {}, options, 1, 1, kind="benchmarks").command(False) == (
        "kokoro-lab bench --http --listen 2.5 --chunk-ms 40 --file"
    )
    assert measurement("soak_crowd").command(True) == (
        "kokoro-lab bench soak --minutes 2 --concurrency 4 --misbehave --voice af_heart --trials 10"
    )


def test_a_run_is_the_mode_that_it_was_asked_for() -> None:
    one = measurement("30_loudness_gate")
    for fast in (True, False):
        asked = defaults(find_notebook(one.name)) | dict(one.parameters(fast))
        assert one.was_asked(asked, fast)
        assert not one.was_asked(asked, not fast)
        assert not one.was_asked(asked | {"voices": "am_adam"}, fast)
    assert not one.was_asked({}, fast=True)


def test_a_run_of_another_candidate_is_no_evidence() -> None:
    one = measurement("20_quantization_abx")
    assert one.was_asked(defaults(find_notebook(one.name)), fast=False)
    assert not one.was_asked(defaults(find_notebook(one.name)) | {"candidate": "int8-upstream"}, fast=False)


def test_a_corpus_may_be_recorded_by_its_name() -> None:
    one = Measurement("20_quantization_abx", "", {}, {"corpus": "data/prose.txt"}, 1, 1, kind="gates")
    assert one.was_asked({"corpus": "prose.txt"}, fast=False)
    assert not one.was_asked({"corpus": "verse.txt"}, fast=False)


def test_a_benchmark_is_known_by_all_its_options() -> None:
    one = measurement("first_audio")
    asked = asdict(SpeechPlan(**one.full))
    assert one.was_asked(asked, fast=False)
    assert not one.was_asked(asked, fast=True)
    assert not one.was_asked(asked | {"seed": 4}, fast=False)


def test_benchmarks_are_where_they_are_kept() -> None:
    folders = {one.name: one.folder for one in measurements("benchmarks")}
    assert (folders["first_audio"], folders["resume"], folders["load"]) == (
        "bench",
        "bench-resume",
        "bench-load",
    )


@pytest.mark.parametrize("written", [None, "{", '{"gates": [{"name": "01_a"}]}'])
def test_a_suite_that_is_wrong_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str | None
) -> None:
    for folder in ("notebooks", "fixtures"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    if written is not None:
        (tmp_path / "notebooks/suite.json").write_text(written)
    with pytest.raises(ParameterError, match=r"suite\.json"):
        measurements()


def test_every_row_says_what_it_guards(repository: Path) -> None:
    rows = json.loads((repository / "notebooks/suite.json").read_text())
    assert all(row["guards"] for kind in rows.values() for row in kind)
