"""What attributes may say: read as SSML 1.1 has it, and nothing that could mean something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.datatypes import PLAIN, SpeakingStyle
from kokoro_lab.text.ssml.grammar import read_pitch, read_rate, read_time


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("250ms", 0.25),
        ("3s", 3.0),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("0ms", 0.0),
        ("10s", 10.0),
        ("10000ms", 10.0),
    ],
)
def test_times(value: str, seconds: float) -> None:
    assert read_time(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["", "250", "-1s", "+1s", "1 s", "1m", "1S", "10.01s", "ms", "1e3ms", "١s", "∞s"]
)
def test_times_that_are_none(value: str) -> None:
    assert read_time(value) is None


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        ("150%", 1.5), ("50%", 0.5), ("200%", 2.0), ("66.6%", 0.666), ("x-slow", 0.5), ("slow", 0.64),
        ("medium", 1.0), ("fast", 1.55), ("x-fast", 2.0), ("default", 1.0),
    ],
)  # fmt: skip
def test_rates(value: str, rate: float) -> None:
    assert read_rate(value) == SpeakingStyle(rate=pytest.approx(rate))


@pytest.mark.parametrize(
    "value", ["", "1.5", "+10%", "-10%", "49%", "201%", "150 %", "quick", "150%%", "nan%"]
)
def test_rates_that_are_none(value: str) -> None:
    assert read_rate(value) is None


@pytest.mark.parametrize(
    ("value", "style"),
    [
        ("+10%", SpeakingStyle(pitch_scale=1.1)),
        ("-50%", SpeakingStyle(pitch_scale=0.5)),
        ("-12st", SpeakingStyle(pitch_scale=0.5)),
        ("+4st", SpeakingStyle(pitch_scale=1.2599)),
        ("+20Hz", SpeakingStyle(pitch_offset_hz=20)),
        ("180Hz", SpeakingStyle(pitch_base_hz=180)),
        ("x-low", SpeakingStyle(pitch_scale=0.55)),
        ("low", SpeakingStyle(pitch_scale=0.8)),
        ("medium", PLAIN),
        ("default", PLAIN),
        ("high", SpeakingStyle(pitch_scale=1.2)),
        ("x-high", SpeakingStyle(pitch_scale=1.45)),
    ],
)
def test_pitches(value: str, style: SpeakingStyle) -> None:
    found = read_pitch(value)
    assert found is not None
    assert found.pitch_scale == pytest.approx(style.pitch_scale, abs=1e-4)
    assert (found.pitch_offset_hz, found.pitch_base_hz) == (style.pitch_offset_hz, style.pitch_base_hz)


@pytest.mark.parametrize(
    "value",
    ["", "10%", "+51%", "-51%", "+8st", "-13st", "4st", "+20hz", "+20", "20Hz", "700Hz", "+301Hz",
     "+999999st", "-999999st", "-999999%", "tall"],
)  # fmt: skip
def test_pitches_that_are_none(value: str) -> None:
    assert read_pitch(value) is None


@given(st.text(max_size=12))
def test_anything_else_is_refused_and_nothing_raises(value: str) -> None:
    for read in (read_time, read_rate, read_pitch):
        read(value)


def test_styles_compose() -> None:
    outer = SpeakingStyle(rate=1.2, pitch_scale=1.1, pitch_offset_hz=10, gain_db=2)
    inner = SpeakingStyle(rate=0.5, pitch_scale=2.0, pitch_offset_hz=5, gain_db=-3)
    both = outer.around(inner)
    assert (both.rate, both.gain_db) == pytest.approx((0.6, -1))
    # 100 Hz become 120, and those 245
    assert both.pitch_scale * 100 + both.pitch_offset_hz == pytest.approx(245)
    assert outer.around(PLAIN) == PLAIN.around(outer) == outer


def test_a_pitch_in_absolute_terms_does_not_build_on_what_is_around_it() -> None:
    inner = SpeakingStyle(pitch_base_hz=150)
    assert SpeakingStyle(pitch_scale=1.2, pitch_offset_hz=9).around(inner) == inner
    assert inner.around(SpeakingStyle(pitch_scale=1.2)) == SpeakingStyle(pitch_scale=1.2, pitch_base_hz=150)
