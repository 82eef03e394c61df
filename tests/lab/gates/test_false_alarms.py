"""Alarms are counted gate by gate, on clean clips and on damaged ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import soundfile

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.clips import worst_first
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates import damages, false_alarms
from kokoro_lab.lab.gates.false_alarms import StreamPair
from kokoro_lab.lab.results import failed
from kokoro_lab.speech.engine import Engine

TEXT = "The kettle is on, and the window is open."


@pytest.fixture(scope="module")
def spoken(hum: Engine) -> list[StreamPair]:
    """Files, since what the tiny voice streams is not at its level."""
    texts = {"first": TEXT, "second": "Nobody is in, and the letter is on the table."}
    twice = {name: [hum.synthesize(text, voice="hum") for _ in range(2)] for name, text in texts.items()}
    return [StreamPair(name, "hum", first, second.samples) for name, (first, second) in twice.items()]


GATES = {name: gate for name, gate in false_alarms.GATES.items() if gate is not false_alarms.defective}
"""To that one a hum repeats itself, as it does."""


@pytest.fixture(scope="module")
def table(spoken: list[StreamPair]) -> pd.DataFrame:
    return false_alarms.measure(spoken, GATES)


def test_each_gate_is_asked_about_each_clip_clean_and_damaged(
    spoken: list[StreamPair], table: pd.DataFrame
) -> None:
    assert [each.name for each in spoken] == ["first-hum", "second-hum"]
    assert len(table) == 2 * (1 + len(damages.DAMAGES)) * len(GATES)
    clean = table[table.damage == "clean"]
    assert not clean.alarm.any()


def test_a_request_is_streamed_twice(hum: Engine) -> None:
    (each,) = false_alarms.speak(hum, [FixtureText("line 7", "prose", TEXT)], ["hum"])
    assert each.name == "line-7-hum"
    assert each.clip.report.streamed
    assert np.array_equal(each.clip.samples, each.again)


def test_what_each_gate_finds_and_misses_is_shown(table: pd.DataFrame) -> None:
    found = false_alarms.detected(table)
    assert list(found.index) == list(damages.DAMAGES)
    assert list(found.columns) == [*GATES, "any gate"]
    assert (found["any gate"] == 100).all()
    assert found.loc["3 dB louder", "loudness"] == found.loc["3 dB quieter", "loudness"] == 100
    assert found.loc["100 ms cut out", "loudness"] == 0


def test_good_gates_pass_and_wrong_ones_do_not(spoken: list[StreamPair], table: pd.DataFrame) -> None:
    assert all(check.passed for check in false_alarms.judge(table))
    found = false_alarms.controls(spoken)
    assert len(found) == 7
    assert all(control.caught for control in found), found


@pytest.mark.parametrize("dead", ["loudness", "seams and clicks"])
def test_a_gate_that_finds_nothing_fails_although_the_golden_gate_finds_everything(
    table: pd.DataFrame, dead: str
) -> None:
    golden = table[table.gate == "golden on one build"]
    tables = [golden, *(golden.assign(gate=name) for name in ("loudness", "seams and clicks"))]
    alive = pd.concat(tables, ignore_index=True)
    assert not failed(false_alarms.judge(alive))
    failures = failed(false_alarms.judge(alive.assign(alarm=alive.alarm & (alive.gate != dead))))
    assert failures == [f"{dead.replace(' ', '_')}_least_detected_damage_percent"]


def test_a_gate_answers_for_its_own_damages_and_for_clips_that_it_judges(table: pd.DataFrame) -> None:
    loud = table[table.gate == "loudness"]
    assert false_alarms.least_detected(loud) == {"loudness": 100}
    missed = loud.assign(alarm=loud.alarm & (loud.damage != "3 dB quieter"))
    assert false_alarms.least_detected(missed) == {"loudness": 0}
    brief = missed.assign(audio_s=2.9, name=missed.name + "-brief")
    assert false_alarms.least_detected(pd.concat([loud, brief])) == {"loudness": 100}
    assert failed(false_alarms.judge(brief)) == ["loudness_least_detected_damage_percent"], "none is judged"


def test_one_alarm_in_a_hundred_is_allowed_and_has_its_interval(table: pd.DataFrame) -> None:
    one = table[(table.name == "first-hum")]
    many = [one.assign(name=f"clip {i}") for i in range(100)]

    def of(alarms: int) -> pd.DataFrame:

        tables = [t.copy() for t in many]
        for t in tables[:alarms]:
            t.loc[(t.damage == "clean") & (t.gate == "loudness"), "alarm"] = True
        return pd.concat(tables, ignore_index=True)

    rates = false_alarms.false_alarms(of(1))
    assert rates.loc["loudness", "percent"] == rates.loc["any gate", "percent"] == 1
    assert rates.loc["loudness", "low_95"] < 1 < rates.loc["loudness", "high_95"] < 6
    assert rates.loc["golden on one build", "alarms"] == 0
    assert rates.loc["golden on one build", "upper_95"] == pytest.approx(100 * (1 - 0.05 ** (1 / 100)))
    assert all(check.passed for check in false_alarms.judge(of(1)))
    assert failed(false_alarms.judge(of(2))) == [
        "loudness_false_alarms_percent",
        "any_gate_false_alarms_percent",
    ]
    assert false_alarms.figures(of(2))["loudness_false_alarms_count"] == 2


def test_a_clip_that_a_gate_objects_to_is_the_worst_and_has_the_gate_as_a_note(
    spoken: list[StreamPair], table: pd.DataFrame
) -> None:
    last = spoken[-1].name
    wrong = table.copy()
    wrong.loc[(wrong.name == last) & (wrong.damage == "clean") & (wrong.gate == "loudness"), "alarm"] = True
    first = worst_first(false_alarms.judged_clips(spoken, wrong))[0]
    assert first.name == last
    assert first.notes == {"gates that object": "loudness"}
    assert first.figures["gates_objecting_count"] == 1
    assert first.candidate().words == spoken[-1].clip.timings


def test_the_loudness_of_what_is_short_is_not_judged_but_its_peaks_are(spoken: list[StreamPair]) -> None:
    each = spoken[0]
    short = each.clip.samples[: 2 * SAMPLE_RATE_HZ]
    assert not false_alarms.off_level(short / 4, each)
    assert false_alarms.off_level(np.sin(np.arange(9000, dtype=np.float32)), each)


def test_a_repetition_that_differs_in_one_bit_is_an_alarm(spoken: list[StreamPair]) -> None:
    each = spoken[0]
    other = each.again.copy()
    other[1000] = np.nextafter(other[1000], np.float32(1))
    assert not false_alarms.not_repeated(each.clip.samples, each)
    assert false_alarms.not_repeated(each.clip.samples, replace(each, again=other))


def test_defects_of_speech_are_an_alarm_and_speech_is_none(spoken: list[StreamPair]) -> None:
    path = Path(__file__).parents[2] / "metrics" / "speech.flac"
    speech = soundfile.read(path, dtype="float32")[0][: 4 * SAMPLE_RATE_HZ]
    assert not false_alarms.defective(speech, spoken[0])
    assert false_alarms.defective(damages.gap(speech), spoken[0])
    assert false_alarms.defective(damages.repeat(speech), spoken[0])
    assert false_alarms.defective(damages.clipped(speech), spoken[0])


def test_nothing_to_ask_is_refused(spoken: list[StreamPair]) -> None:
    with pytest.raises(ParameterError, match="one or more"):
        false_alarms.measure([])
    with pytest.raises(ParameterError, match="one or more"):
        false_alarms.measure(spoken, {})
