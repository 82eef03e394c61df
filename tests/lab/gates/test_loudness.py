"""The loudness gate: what files and streams must keep, and which faults it sees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from kokoro_lab.containers.pcm import read_wav
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import FixtureText, load_texts
from kokoro_lab.lab.gates import damages, loudness
from kokoro_lab.lab.results import Check
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.speech.engine import Engine
from tests.speech.decoders import with_decoder

LONG = "The kettle is on, and the window is open. Nobody is in, and a letter lies on the table."


def clips(way: str, lufs: list[float], *, audio_s: float = 4.0, peak_dbtp: float = -1.2) -> pd.DataFrame:
    same = {
        "way": way,
        "text": "t",
        "voice": "v",
        "speed": 1.0,
        "audio_s": audio_s,
        "true_peak_dbtp": peak_dbtp,
        "limited_db": 0.0,
        "rtf": 0.1,
    }
    return pd.DataFrame([{**same, "integrated_lufs": v} for v in lufs])


def failed(checks: list[Check]) -> set[str]:
    return {check.name for check in checks if not check.passed}


def both(files: pd.DataFrame, streams: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([files, streams], ignore_index=True)


GOOD_FILES, GOOD_STREAMS = clips("file", [-16.0] * 3), clips("stream", [-16.9, -15.1, *[-16.0] * 98])


def test_clips_inside_the_band_pass() -> None:
    assert not failed(loudness.judge(both(GOOD_FILES, GOOD_STREAMS)))


def test_one_stream_of_a_hundred_may_be_outside_and_no_file() -> None:
    one, two = clips("stream", [-17.1, *[-16.0] * 99]), clips("stream", [-17.1, -14.9, *[-16.0] * 98])
    assert not failed(loudness.judge_streams(one))
    assert failed(loudness.judge_streams(two)) == {"streams_within_band_percent"}
    assert failed(loudness.judge_files(one.assign(way="file"))) == {"quietest_file_lufs"}


@pytest.mark.parametrize(("way", "check"), [("file", "file_true_peak"), ("stream", "stream_true_peak")])
def test_a_peak_counts_at_any_length_and_loudness_does_not(way: str, check: str) -> None:
    short = clips(way, [-30.0], audio_s=0.5, peak_dbtp=-0.9)
    table = pd.concat([GOOD_FILES, GOOD_STREAMS, short], ignore_index=True)
    assert failed(loudness.judge(table)) == {f"{check}_most_dbtp"}


@pytest.mark.parametrize("measured", [GOOD_FILES, GOOD_STREAMS, clips("stream", [-16.0], audio_s=2.9)])
def test_what_was_not_measured_does_not_pass(measured: pd.DataFrame) -> None:
    assert failed(loudness.judge(measured))


def test_the_share_has_its_interval_and_the_worst_clips_are_named() -> None:
    table = both(GOOD_FILES, clips("stream", [-17.5, -14.8, *[-16.0] * 98]))
    figures = loudness.figures(table)
    assert figures["streams_outside_band_count"] == 2
    low, high = (figures[f"streams_within_band_{end}_95_percent"] for end in ("low", "high"))
    assert low < 98 < high < 100
    # both off clips are those of one voice in ten
    by_voice = loudness.figures(table.assign(voice=[str(number // 10) for number in range(len(table))]))
    assert by_voice["streams_within_band_low_95_percent"] < low - 2
    assert list(loudness.worst(table, 2).integrated_lufs) == [-17.5, -14.8]


def test_a_stream_is_heard_beside_its_file_and_the_furthest_outside_is_the_worst(
    hum: Engine, tmp_path: Path
) -> None:
    read, heard = [FixtureText("long one", "prose", LONG)], {}
    table = loudness.measure(hum, read, ["hum"], tmp_path, heard)
    table.loc[table.way == "stream", "true_peak_dbtp"] = -0.2
    stream, file = worst_first(loudness.judged_clips(table, read, tmp_path, heard))
    assert stream.name == "long one, hum, stream"
    assert stream.badness == pytest.approx(0.8)
    assert file.reference is None
    assert stream.reference is not None
    assert stream.reference().file == file.candidate().file == tmp_path / "long-one-hum-file.wav"
    assert [word.text for word in stream.candidate().words][:3] == ["The", "kettle", "is"]


def test_both_ways_are_spoken_and_what_is_written_is_measured(hum: Engine, tmp_path: Path) -> None:
    table = loudness.measure(hum, [FixtureText("long one", "prose", LONG)], ["hum"], tmp_path)
    assert list(table.way) == ["file", "stream"]
    assert (tmp_path / table.file[1]).is_file()
    file, stream = table.integrated_lufs
    assert file == pytest.approx(-16, abs=0.1)
    assert stream != file  # it has the gain of its voice, 1 dB
    assert list(table.gain_db)[1] == pytest.approx(1.0)
    samples, rate_hz = read_wav(tmp_path / table.file[1])
    assert table.audio_s[1] == len(samples) / rate_hz


def test_other_speeds_are_streams_of_their_own(hum: Engine, tmp_path: Path) -> None:
    read = [FixtureText("long one", "prose", LONG)]
    table = loudness.measure(hum, read, ["hum"], tmp_path, {}, ways=("stream",), speeds=(1.0, 2.0))
    assert list(table.file) == ["long-one-hum-stream.wav", "long-one-hum-2-stream.wav"]
    assert table.audio_s[1] < 0.6 * table.audio_s[0]
    _, fast = sorted(loudness.judged_clips(table, read, tmp_path, {}), key=lambda clip: len(clip.name))
    assert fast.name == "long one, hum at 2, stream"
    assert fast.reference is None, "there is no file of it"
    blend = table.assign(voice="a+b", integrated_lufs=[-16.0, -18.0])
    figures = loudness.figures(blend)
    assert figures["blends_within_band_percent"] == 50
    assert figures["other_speeds_within_band_percent"] == 0


def test_a_blend_at_the_mean_of_its_voices_levels_is_caught(hum: Engine, tmp_path: Path) -> None:
    text = FixtureText("long one", "prose", LONG)
    for level_lufs, caught in ((-14.0, True), (loudness_of_hum(hum), False)):
        voice = replace(hum.voice("hum"), level_lufs=level_lufs)
        engine = with_decoder(hum, hum.decoder, voices=lambda _, voice=voice: voice)
        assert loudness.mean_of_levels(engine, text, tmp_path, "hum").caught == caught


def loudness_of_hum(hum: Engine) -> float:
    return integrated_lufs(hum.stream(LONG, voice="hum", loudness="none").joined().samples, 24_000)


@pytest.mark.test_all
@pytest.mark.model
def test_blends_and_other_speeds_are_within_the_band(engine: Engine, tmp_path: Path) -> None:
    marks = [text for text in load_texts() if text.id == "list_of_marks"]
    blends = loudness.measure(engine, marks, loudness.BLENDS[:2], tmp_path, ways=("stream",))
    speeds = loudness.measure(engine, marks, ["if_sara"], tmp_path, ways=("stream",), speeds=(0.5, 2.0))
    for table in (blends, speeds):
        assert loudness.within(table).all(), table
    assert loudness.mean_of_levels(engine, marks[0], tmp_path).caught


def test_every_fault_that_is_its_to_catch_is_caught(hum: Engine, tmp_path: Path) -> None:
    clip = hum.synthesize(LONG, voice="hum")
    found = loudness.controls(clip, tmp_path)
    assert set(loudness.CAUGHT) <= {control.name for control in found} & set(damages.DAMAGES)
    assert len(found) >= 7
    assert all(control.caught for control in found), found


def test_a_clip_that_fails_untouched_shows_nothing(hum: Engine, tmp_path: Path) -> None:
    (only,) = loudness.controls(hum.synthesize("Ah.", voice="hum"), tmp_path)
    assert not only.caught


def test_voices_are_named_or_taken_together() -> None:
    english = loudness.voices_of("english")
    assert len(english) == 28
    assert {name[0] for name in english} == {"a", "b"}
    assert len(loudness.voices_of("all")) == 54
    assert loudness.voices_of("af_heart, bf_emma") == ["af_heart", "bf_emma"]
    for wrong in ("", "af_hart", "af_heart,"):
        with pytest.raises(ParameterError, match="no voice"):
            loudness.voices_of(wrong)


@pytest.mark.model
def test_a_voice_whose_language_we_do_not_read_reads_english(engine: Engine, tmp_path: Path) -> None:
    text = FixtureText("kettle", "short", LONG)
    table = loudness.measure(engine, [text], ["zf_xiaobei"], tmp_path)
    assert table.integrated_lufs.between(loudness.LOWEST_LUFS, loudness.HIGHEST_LUFS).all()
