"""Golden clips: what is recorded is whole, what differs is caught, what is missing is never tolerated."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from kokoro_lab.config import DEFAULT_VARIANT
from kokoro_lab.datatypes import has_sound
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.gates import golden
from kokoro_lab.lab.gates.golden import Take, measure, names_of, record_anew
from kokoro_lab.lab.gates.golden_files import (
    ANOTHER,
    MANIFEST,
    PLAN,
    SAME,
    GoldenClip,
    GoldenFolder,
    figures_of_samples,
    load_golden,
)
from kokoro_lab.lab.results import Check
from kokoro_lab.speech.engine import Engine

STRICT = {
    "length_share": 0,
    "word_s": 0,
    "beyond_words_s": 0,
    "fingerprint_share": 0.01,
    "loudness_lu": 0.1,
    "residual_peak_dbfs": -50,
}
LOOSE = STRICT | {"word_s": 0.03, "fingerprint_share": 0.2, "residual_peak_dbfs": None}


@pytest.fixture(scope="module")
def clips() -> GoldenFolder:
    return load_golden()


@pytest.fixture
def hummed(tmp_path: Path) -> GoldenFolder:
    """A plan of two cases for the tiny voice, of which nothing is recorded yet."""
    case = {"text": "one_clause", "voice": "hum", "variants": ["fp32"]}
    cases = [case | {"name": "low"}, case | {"name": "high", "voice": "hum_high", "streamed": True}]
    tolerances = {SAME: {"fp32": STRICT}, ANOTHER: {"fp32": LOOSE}}
    (tmp_path / PLAN).write_text(json.dumps({"cases": cases, "tolerances": tolerances}))
    return load_golden(tmp_path)


@pytest.fixture
def recorded(hummed: GoldenFolder, hum: Engine, tmp_path: Path) -> GoldenFolder:
    record_anew(hummed, list(hummed.planned), tmp_path / "evidence", lambda _: hum)
    return load_golden(tmp_path)


def failed(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if not check.passed}


def test_the_repository_has_every_clip_of_its_plan(clips: GoldenFolder) -> None:
    assert clips.faults() == []
    assert {variant for _, variant in clips.planned.values()} == {"int8", "fp32", "int8fp16mix"}
    for name, (case, variant) in clips.planned.items():
        assert case.words
        for build in (SAME, ANOTHER):
            assert clips.tolerance(build, variant).fingerprint_share <= 0.2, name


def test_the_repository_s_clips_are_small(clips: GoldenFolder) -> None:
    assert sum(path.stat().st_size for path in clips.folder.iterdir()) < 3e6


@pytest.mark.parametrize("name", ["greeting-int8", "question-fp32"])
def test_the_manifest_says_what_the_file_holds(clips: GoldenFolder, name: str) -> None:
    recording, samples = clips.spoken(name)
    for key, value in figures_of_samples(samples).items():
        assert getattr(recording, key) == (
            value if isinstance(value, str) else pytest.approx(value, abs=0.01)
        )


def test_damage_to_the_repository_s_clips_is_caught(clips: GoldenFolder) -> None:
    controls = golden.controls(clips, ["greeting-int8"])
    assert len(controls) > 20
    assert not [str(control) for control in controls if not control.caught]


def test_what_is_spoken_the_same_passes(recorded: GoldenFolder, hum: Engine) -> None:
    takes, ran = golden.speak_again(recorded, list(recorded.planned), lambda _: hum)
    table = measure(takes)
    assert list(table.build) == [SAME, SAME]
    assert table.residual_peak_dbfs.max() == golden.NO_RESIDUAL_DBFS
    assert not failed(golden.judge(table, recorded))
    assert ran["variant"] == "fp32"


def test_the_take_that_has_most_of_its_tolerance_is_the_worst_with_its_recording(
    recorded: GoldenFolder, hum: Engine
) -> None:
    takes, _ = golden.speak_again(recorded, list(recorded.planned), lambda _: hum)
    table = measure(takes)
    table.loc[table.index[1], "word_difference_s"] = 0.01
    clips, limits = golden.judged_clips(takes, table, recorded)
    first, second = worst_first(clips)
    assert (first.name, second.badness) == (table.index[1], 0)
    assert list(limits) == ["fingerprint_share"]
    assert first.reference is not None
    assert first.reference().samples is takes[1].reference.samples
    assert [word.text for word in first.candidate().words] == re.findall(r"\w+", first.text)
    assert all(has_sound(word.phonemes) for word in golden._spelled(takes[1].candidate.recording))


def test_a_recording_that_is_missing_is_never_tolerated(recorded: GoldenFolder, hum: Engine) -> None:
    recorded.path("low-fp32").unlink()
    takes, _ = golden.speak_again(recorded, list(recorded.planned), lambda _: hum)
    assert len(takes) == 1
    assert failed(golden.judge(measure(takes), recorded)) == {"recordings_at_fault_count"}


def test_no_clip_at_all_is_a_failure(hummed: GoldenFolder) -> None:
    assert {"recordings_at_fault_count", "clips_compared_count"} == failed(golden.judge(measure([]), hummed))


def test_a_file_that_was_exchanged_is_noticed(recorded: GoldenFolder) -> None:
    shutil.copy(recorded.path("low-fp32"), recorded.path("high-fp32"))
    shutil.copy(recorded.path("low-fp32"), recorded.folder / "stray.flac")
    assert recorded.faults() == [
        f"high-fp32.flac is not the file that {MANIFEST} describes",
        "stray is not planned",
    ]


def test_a_case_that_was_changed_must_be_recorded_anew(recorded: GoldenFolder) -> None:
    plan = recorded.folder / PLAN
    plan.write_text(plan.read_text().replace('"hum_high"', '"hum"'))
    assert load_golden(recorded.folder).faults() == [
        "high-fp32 was recorded of another text, voice, speed or way of speaking"
    ]


def test_another_build_has_its_own_limits(recorded: GoldenFolder) -> None:
    first = recorded.spoken("low-fp32")
    elsewhere = replace(first.recording, build=replace(first.recording.build, operators="c++ 99"))
    shifted = np.roll(first.samples, 3)
    there = GoldenClip(replace(elsewhere, **figures_of_samples(shifted)), shifted)
    table = measure([Take(first, there)])
    assert list(table.differs) == ["operators"]
    assert not failed(golden.judge(table, recorded))
    here = GoldenClip(replace(there.recording, build=first.recording.build), shifted)
    assert failed(golden.judge(measure([Take(first, here)]), recorded)) == {"fp32_residual_peak_highest_dbfs"}


def test_other_words_fail_on_every_build(recorded: GoldenFolder) -> None:
    first = recorded.spoken("low-fp32")
    lost = replace(first.recording, words=first.recording.words[:-1], phonemes=("ə",))
    names = failed(golden.judge(measure([Take(first, GoldenClip(lost, first.samples))]), recorded))
    assert {"readings_changed_count", "fp32_word_difference_most_s"} <= names


def test_a_variant_without_tolerance_is_refused(recorded: GoldenFolder) -> None:
    with pytest.raises(ParameterError, match="no tolerance for fp16"):
        recorded.tolerance(ANOTHER, "fp16")


def test_recording_anew_touches_what_is_named_and_shows_it(recorded: GoldenFolder, hum: Engine) -> None:
    before = {path.name: path.read_bytes() for path in recorded.folder.glob("*.flac")}
    evidence = recorded.folder / "again"
    (change,) = record_anew(recorded, ["low-fp32"], evidence, lambda _: hum)
    assert "+0.00% long" in change
    assert {path.name for path in evidence.iterdir()} == {
        *("low-fp32-before.flac", "low-fp32-after.flac", "low-fp32.png", "difference.json")
    }
    assert {path.name: path.read_bytes() for path in recorded.folder.glob("*.flac")} == before
    assert load_golden(recorded.folder).faults() == []


def test_a_plan_that_is_broken_is_refused(hummed: GoldenFolder) -> None:
    (hummed.folder / PLAN).write_text('{"cases": [{"nmae": "low"}], "tolerances": {}}')
    with pytest.raises(ParameterError, match="cannot be read"):
        load_golden(hummed.folder)


def test_names_are_cases_or_recordings(clips: GoldenFolder) -> None:
    assert names_of(clips, ["greeting"]) == ["greeting-int8", "greeting-fp32", "greeting-int8fp16mix"]
    assert names_of(clips, ["numbers-fp32"]) == ["numbers-fp32"]
    assert golden.chosen(clips, 2, "int8") == ["greeting-int8", "question-int8"]
    for wrong in (lambda: names_of(clips, ["greetings"]), lambda: golden.chosen(clips, 0, "int9")):
        with pytest.raises(ParameterError, match=r"greeting|int8"):
            wrong()


def test_the_command_lists_and_changes_nothing(clips: GoldenFolder) -> None:
    before = {path: path.read_bytes() for path in clips.folder.iterdir()}
    done = CliRunner().invoke(main, ["golden", "--json"])
    assert done.exit_code == 0
    assert {row["name"] for row in json.loads(done.stdout)["clips"]} == set(clips.planned)
    assert {path: path.read_bytes() for path in clips.folder.iterdir()} == before


@pytest.mark.model
def test_the_default_variant_speaks_its_golden_clips(clips: GoldenFolder) -> None:
    names = [case.recording_name(DEFAULT_VARIANT) for case in clips.cases[:2]]
    takes, _ = golden.speak_again(clips, names)
    assert len(takes) == 2
    checks = golden.judge(measure(takes), clips)
    assert not failed(checks), [str(check) for check in checks]
