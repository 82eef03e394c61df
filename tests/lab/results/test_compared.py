"""Two runs are compared: what got worse stands first, and nothing is said that the intervals do not bear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kokoro_lab.containers.plain_json import write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results.compared import (
    compare_figures,
    differences,
    figures_of,
    pairs_of_sounds,
    sentence,
)
from kokoro_lab.lab.results.kept import KeptRun, find_run, read_runs
from tests.lab.results.planted import GATE, check, plant, record, sound


@pytest.fixture
def pair(tmp_path: Path) -> tuple[KeptRun, KeptRun]:
    runs = read_runs(plant(tmp_path))
    return find_run("aa01", runs), find_run("aa02", runs)


def two(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> tuple[KeptRun, KeptRun]:
    write_json(folder / GATE / "20260101T000000Z-aaaa/result.json", before)
    write_json(folder / GATE / "20260102T000000Z-bbbb/result.json", after)
    b, a = read_runs(folder)
    return a, b


def changes(folder: Path, before: dict[str, Any], after: dict[str, Any]) -> dict[str, str]:
    return {one.name: one.change for one in compare_figures(*two(folder, before, after))}


def test_a_planted_regression_stands_first(pair: tuple[KeptRun, KeptRun]) -> None:
    found = compare_figures(*pair)
    assert [(one.name, one.change) for one in found] == [
        ("stream_true_peak_dbtp", "fails now"),
        ("loudest_file_lufs", "worse"),
        ("pesq_mean", "within the intervals"),
        ("rtf", "better"),
        ("caught: 3 dB louder", "same"),
        ("clips_count", "same"),
    ]
    assert (found[0].difference, found[3].difference) == ("+0.8 dB", "−0.1 (−50.0 %)")
    assert found[2].said(after=True) == "4.45 [4.35, 4.55]"
    assert sentence(found, *pair).startswith(
        "1 fails now, 1 worse, 1 within the intervals, 1 better, 2 same."
    )


def test_among_those_that_fail_now_the_one_furthest_beyond_its_limit_is_first(tmp_path: Path) -> None:
    before = record(checks=[check("a_db", 1, high=2), check("b_db", 1, high=2)])
    after = record(checks=[check("a_db", 2.1, high=2), check("b_db", 9, high=2)])
    assert list(changes(tmp_path, before, after))[:2] == ["b_db", "a_db"]


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((0.2, 0.1, 0.3), (0.4, 0.35, 0.45), "worse"),
        ((0.2, 0.1, 0.3), (0.4, 0.25, 0.45), "within the intervals"),
        ((0.4, 0.35, 0.45), (0.2, 0.1, 0.3), "better"),
    ],
)
@pytest.mark.parametrize("form", ["rtf_{}", "rtf_interval_{}"])
def test_an_interval_decides_where_both_have_one(
    tmp_path: Path,
    before: tuple[float, ...],
    after: tuple[float, ...],
    change: str,
    form: str,
) -> None:
    names = ("rtf", form.format("low"), form.format("high"))
    a, b = (record(checks=[], figures=dict(zip(names, row, strict=True))) for row in (before, after))
    found = changes(tmp_path, a, b)
    assert found == {"caught: 3 dB louder": "same", "rtf": change}, "ends of an interval are no figures"


def test_what_got_worse_most_is_first_with_a_limit_or_without(tmp_path: Path) -> None:
    before = record(checks=[check("loudest_file_lufs", -16, -17, -15)], figures={"rtf": 0.2})
    after = record(checks=[check("loudest_file_lufs", -15.9, -17, -15)], figures={"rtf": 0.6})
    assert list(changes(tmp_path, before, after))[:2] == ["rtf", "loudest_file_lufs"]


def test_an_interval_of_one_of_them_decides_nothing(tmp_path: Path) -> None:
    a = record(checks=[], figures={"rtf": 0.2, "rtf_low": 0.1, "rtf_high": 0.5})
    b = record(checks=[], figures={"rtf": 0.3})
    assert changes(tmp_path, a, b)["rtf"] == "worse"


def test_a_fault_that_is_missed_now_fails(tmp_path: Path) -> None:
    missed = record(controls=[{"name": "3 dB louder", "caught": False}])
    assert next(iter(changes(tmp_path, record(), missed).items())) == ("caught: 3 dB louder", "fails now")


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    bare = record(
        checks=[check("loudest_file_lufs", None, -17, -15)], figures={"pesq_mean": 4.5, "new_db": 1.0}
    )
    found = changes(tmp_path, record(), bare)
    assert found["loudest_file_lufs"] == "fails now"
    assert found["stream_true_peak_dbtp"] == found["rtf"] == "not measured now"
    assert found["new_db"] == "new"


def test_of_a_figure_that_nobody_knows_the_better_way_of_only_the_change_is_said(tmp_path: Path) -> None:
    a, b = record(figures={"clips_count": 2}), record(figures={"clips_count": 3})
    assert changes(tmp_path, a, b)["clips_count"] == "changed"


def test_other_parameters_commit_and_machine_are_named(pair: tuple[KeptRun, KeptRun]) -> None:
    found = {name: (a, b) for name, a, b in differences(*pair)}
    assert next(iter(found)) == "parameter texts"
    assert found["parameter texts"] == ("2", "3")
    assert found["git dirty"] == ("False", "True")
    assert "machine cpu" not in found


def test_of_a_run_that_ended_early_only_what_both_know_differs(tmp_path: Path) -> None:
    write_json(tmp_path / GATE / "20260101T000000Z-aaaa/result.json", record(parameters={"texts": 2, "a": None}))
    crash = {"message": "IndexError: out of range", "parameters": {"texts": 1}}
    write_json(tmp_path / GATE / "20260102T000000Z-bbbb/crash.json", crash)
    b, a = read_runs(tmp_path)
    assert differences(a, b) == [("parameter texts", "2", "1"), ("verdict", "passed", "crashed")]
    assert "B left no figure: IndexError: out of range." in sentence(compare_figures(a, b), a, b)
    assert {one.change for one in compare_figures(a, b)} == {"not measured now"}


def test_a_parameter_that_is_new_or_was_nothing_differs(tmp_path: Path) -> None:
    a, b = two(tmp_path, record(parameters={"a": None}), record(parameters={"a": "int8", "b": 1}))
    assert differences(a, b) == [("parameter a", "None", "int8"), ("parameter b", "–", "1")]


def test_times_of_two_machines_say_nothing(tmp_path: Path) -> None:
    a, b = two(tmp_path, record(), record(machine={"cpu": "another"}))
    assert "The machines differ" in sentence(compare_figures(a, b), a, b)


def test_two_notebooks_are_not_compared(tmp_path: Path) -> None:
    runs = read_runs(plant(tmp_path))
    with pytest.raises(ParameterError, match="measure different things"):
        compare_figures(find_run("30", runs), find_run("31", runs))


def test_a_benchmark_is_compared_by_its_summary(tmp_path: Path) -> None:
    assert figures_of(find_run("bench", read_runs(plant(tmp_path)))) == {"kokoro-lab > rtf > p50": 0.2}
    rows = [{"summary": {"kokoro-lab": {"ttfa_s": {"p50": value}}}} for value in (0.1, 0.2)]
    (found,) = compare_figures(*two(tmp_path / "two", *rows))
    assert (found.change, found.difference) == ("worse", "+0.1 s (+100.0 %)")


def test_sounds_of_one_name_are_a_pair_the_worst_first(pair: tuple[KeptRun, KeptRun]) -> None:
    assert pairs_of_sounds(*pair) == [
        ("loud.wav", "audio/loud.wav", "audio/loud.wav", False),
        ("calm.wav", "audio/calm.wav", "audio/calm.wav", True),
    ]


def test_clips_of_one_name_are_a_pair_whatever_their_files_are_called(tmp_path: Path) -> None:
    for run_id, clips in (
        ("20260101T000000Z-aaaa", ("greeting", "order")),
        ("20260102T000000Z-bbbb", ("order", "greeting", "new")),
    ):
        run = tmp_path / GATE / run_id
        kept = [{"name": name, "candidate": f"audio/{n}-{name}.wav"} for n, name in enumerate(clips)]
        write_json(run / "result.json", record(clips=[*kept, {"name": "gone", "candidate": "audio/gone.wav"}]))
        for clip in kept:
            sound(run / clip["candidate"], 300)
    b, a = read_runs(tmp_path)
    assert pairs_of_sounds(a, b) == [
        ("order", "audio/1-order.wav", "audio/0-order.wav", True),
        ("greeting", "audio/0-greeting.wav", "audio/1-greeting.wav", True),
    ]
