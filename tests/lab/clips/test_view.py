"""What a report shows of its clips: in order, escaped, small, and asking for nothing from outside."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from kokoro_lab.lab.clips import JudgedClip, Sound
from kokoro_lab.lab.clips.view import NAMED_DOTS
from kokoro_lab.lab.results import open_run
from tests.lab.clips.planted import LIMITS, clip, tone


def html_of(clips: Sequence[JudgedClip], folder: Path) -> str:
    return open_run("99_test", folder).keep_clips(clips, LIMITS)._repr_html_()


def test_rows_and_dots_are_numbered_from_the_worst(tmp_path: Path) -> None:
    html = html_of([clip(number) for number in (2, 9, 5)], tmp_path)
    rows = re.findall(r'<tr data-clip="(\d)">.*?clip (\d)', html)
    dots = re.findall(r'class="dot[^"]*" data-clip="(\d)".*?<title>clip (\d)', html)
    assert rows == [("0", "9"), ("1", "5"), ("2", "2")]
    assert sorted(dots) == rows
    assert "All 3 clips, worst first" in html


def test_only_what_is_beyond_a_limit_is_marked(tmp_path: Path) -> None:
    html = html_of([clip(6), clip(7)], tmp_path)
    assert re.findall(r'<td class="bad">(\S+?)<span', html) == ["7"]
    assert len(re.findall(r'class="dot bad"', html)) == 1
    assert "click score, ×, at most 6" in html


def test_a_figure_that_was_not_measured_is_said_to_be_so(tmp_path: Path) -> None:
    unknown = replace(clip(1), figures={"click_score_ratio": math.nan})
    html = html_of([clip(2), unknown], tmp_path)
    assert "(1 not measured)" in html
    assert html.count('<td aria-label="not measured">–</td>') == 2


def test_text_from_data_is_escaped(tmp_path: Path) -> None:
    html = html_of([clip(1)], tmp_path)
    assert "Say &#34;&lt;b&gt;&#34;." in html
    assert "&lt;Kettle&gt;" in html
    assert "heard: &lt;i&gt;nothing&lt;/i&gt;" in html
    assert "clip 1 &amp; more" in html
    assert not re.search(r"clip 1 & more|<i>|<Kettle>|<b>\"", html)


def test_phonemes_stand_below_their_word_and_words_may_be_unknown(tmp_path: Path) -> None:
    html = html_of([clip(1)], tmp_path)
    assert 'data-start="1.000" data-end="1.800"' in html
    assert "on<small>ˈɔn</small>" in html
    assert '<div class="words"></div>' in html, "the reference has none"


def test_a_clip_without_a_reference_says_so(tmp_path: Path) -> None:
    html = html_of([clip(1, reference=False)], tmp_path)
    assert "There is no reference." in html
    assert html.count("<audio") == 1
    assert 'class="switch"' not in html


def test_a_report_has_links_that_work_from_its_folder_and_nothing_from_outside(tmp_path: Path) -> None:
    html = html_of([clip(1)], tmp_path)
    addresses = re.findall(r'(?:src|href)="([^"]*)"', html)
    sounds = [address for address in addresses if not address.startswith("data:image/png")]
    assert len(sounds) == 2
    assert all((tmp_path / sound).is_file() for sound in sounds)
    assert "://" not in html


def test_a_name_that_is_no_address_becomes_one(tmp_path: Path) -> None:
    odd = tmp_path / "audio" / "a #1?.wav"
    odd.parent.mkdir()
    odd.touch()
    given = replace(clip(1, reference=False), candidate=lambda: Sound(tone(), (), odd))
    assert 'src="audio/a%20%231%3F.wav"' in html_of([given], tmp_path)


def test_jupyterlab_has_the_sounds_inside_for_no_report_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kokoro_lab.lab.results.run.results_folder", lambda: tmp_path)
    html = open_run("99_test").keep_clips([clip(1)], LIMITS)._repr_html_()
    assert len(re.findall(r'<audio preload="none" src="data:audio/flac;base64,', html)) == 2
    assert "audio/worst" not in html


def test_hundreds_of_clips_stay_below_a_megabyte(tmp_path: Path) -> None:
    html = html_of([clip(number) for number in range(3000)], tmp_path)
    assert "The 10 worst of 3000 clips" in html
    assert html.count("<circle") == 3000
    assert html.count("<title>") == NAMED_DOTS
    assert len(html) < 1_000_000
