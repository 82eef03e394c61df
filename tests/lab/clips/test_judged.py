"""The worst come first, and only they are kept, under names that say which is which."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kokoro_lab.containers.pcm import read_wav
from kokoro_lab.lab.clips import WORST_COUNT, JudgedClip, Sound, kept, worst_first
from kokoro_lab.lab.results import Check, open_run
from kokoro_lab.speech.engine import Engine
from tests.lab.clips.planted import LIMITS, clip, tone


def test_the_worst_comes_first_and_what_could_not_be_judged_before_it() -> None:
    ranked = worst_first([clip(1), clip(3), clip(2), clip(0, badness=math.nan)])
    assert [each.figures["click_score_ratio"] for each in ranked] == [0, 3, 2, 1]


def test_both_sounds_are_files_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "audio").mkdir()
    record = kept(clip(7), 1, tmp_path).record(tmp_path)
    assert record["candidate"] == "audio/worst-01-clip-7-more-candidate.flac"
    for side, length_s in (("candidate", 2.0), ("reference", 2.5)):
        samples, rate_hz = read_wav(tmp_path / record[side])
        assert len(samples) == length_s * rate_hz


def test_a_sound_that_the_run_has_written_is_not_written_again(tmp_path: Path) -> None:
    there = tmp_path / "audio" / "speech.wav"
    given = JudgedClip("it", "It.", "af_heart", "en-us", {}, 1.0, lambda: Sound(tone(), (), there))
    assert kept(given, 1, tmp_path).record(tmp_path)["candidate"] == "audio/speech.wav"
    assert not there.parent.exists()


def test_a_result_names_the_ten_worst_clips_worst_first(hum: Engine, tmp_path: Path) -> None:
    run = open_run("99_test", tmp_path)
    run.keep_clips([clip(number, reference=number > 5) for number in range(WORST_COUNT + 2)], LIMITS)
    run.finish(hum, checks=[Check("x_db", 1.0)])
    found = json.loads((tmp_path / "result.json").read_text())["clips"]
    assert [each["badness"] for each in found] == list(range(11, 1, -1))
    assert {name: found[0][name] for name in ("name", "text", "voice", "language", "figures")} == {
        "name": "clip 11 & more",
        "text": 'Say "<b>".',
        "voice": "af_heart",
        "language": "en-us",
        "figures": {"click_score_ratio": 11.0, "audio_s": 2.0},
    }
    assert found[-1]["reference"] is None
    assert len(list((tmp_path / "audio").iterdir())) == WORST_COUNT + 6


@pytest.mark.parametrize("count", [0, 1])
def test_few_clips_are_no_error(tmp_path: Path, count: int) -> None:
    html = open_run("99_test", tmp_path).keep_clips([clip(1)] * count, LIMITS)._repr_html_()
    assert ("No clip was judged" in html) is (count == 0)
