"""Golden clips: what is recorded is whole, what differs is caught, what is missing is never tolerated."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from kokoro_lab.config import DEFAULT_VARIANT
from kokoro_lab.datatypes import has_sound
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.gates import golden
from kokoro_lab.lab.gates.golden import Take, measure
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
from kokoro_lab.lab.gates.golden_speaking import speak_again
from kokoro_lab.lab.results import Check
from kokoro_lab.speech.engine import Engine


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
    takes, ran = speak_again(recorded, list(recorded.planned), lambda _: hum)
    table = measure(takes)
    assert list(table.build) == [SAME, SAME]
    assert table.residual_peak_dbfs.max() == golden.NO_RESIDUAL_DBFS
    assert not failed(golden.judge(table, recorded))
    assert ran["variant"] == "fp32"


def test_the_take_that_has_most_of_its_tolerance_is_the_worst_with_its_recording(
    recorded: GoldenFolder, hum: Engine
) -> None:
    takes, _ = speak_again(recorded, list(recorded.planned), lambda _: hum)
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
    takes, _ = speak_again(recorded, list(recorded.planned), lambda _: hum)
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


def test_a_plan_that_is_broken_is_refused(hummed: GoldenFolder) -> None:
    (hummed.folder / PLAN).write_text('{"cases": [{"nmae": "low"}], "tolerances": {}}')
    with pytest.raises(ParameterError, match="cannot be read"):
        load_golden(hummed.folder)


@pytest.mark.model
def test_the_default_variant_speaks_its_golden_clips(clips: GoldenFolder) -> None:
    names = [case.recording_name(DEFAULT_VARIANT) for case in clips.cases[:2]]
    takes, _ = speak_again(clips, names)
    assert len(takes) == 2
    checks = golden.judge(measure(takes), clips)
    assert not failed(checks), [str(check) for check in checks]
