"""A pre-buffer follows how chunks arrive: up at once, down slowly, within bounds, always the same way."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench import trial
from kokoro_lab.playback.buffering import (
    HALF_LIFE_S,
    LEAST_S,
    MOST_S,
    PROFILES,
    SPARE_S,
    PreBuffer,
    buffer_profile,
)
from kokoro_lab.speech.chunker import CHUNK_S, Chunker

GAPS_S = st.lists(st.floats(0, 2, allow_nan=False), min_size=1, max_size=60)
"""Times between chunks."""


def play(pre_buffer: PreBuffer, arrivals_s: list[float], length_s: float = CHUNK_S) -> list[float]:
    pre_buffer.begin_stream()
    return [pre_buffer.arrived(at_s, length_s) for at_s in arrivals_s]


def silence_s(plays_s: list[float]) -> float:
    """Silence within speech that a listener hears."""
    return plays_s[-1] - plays_s[0] - CHUNK_S * (len(plays_s) - 1)


def steady(count: int) -> list[float]:
    return [i * CHUNK_S for i in range(count)]


def jittery(seed: int, count: int = 100) -> list[float]:
    """A sender that keeps pace, and a line that holds everything up for 0.2 to 0.4 s now and then."""
    draw = random.Random(seed)
    arrivals_s, held_until_s = [], 0.0
    for sent_s in steady(count):
        if draw.random() < 0.03:
            held_until_s = sent_s + draw.uniform(0.2, 0.4)
        arrivals_s.append(max(sent_s + draw.uniform(0, 0.01), held_until_s, *arrivals_s[-1:]))
    return arrivals_s


def test_the_profiles_are_those_that_were_promised() -> None:
    assert {name: p.chunk_s for name, p in PROFILES.items()} == {
        "stable": 0.050,
        "benchmark": 0.040,
        "safe": 0.100,
    }
    assert buffer_profile("stable").chunk_s == CHUNK_S
    for profile in PROFILES.values():
        Chunker(profile.chunk_s)
    assert PreBuffer().target_s == buffer_profile("stable").pre_buffer_s


def test_what_is_advised_is_100_to_150_ms_whatever_the_chunks() -> None:
    assert {name: p.pre_buffer_s for name, p in PROFILES.items()} == pytest.approx(
        {"stable": 0.100, "benchmark": 0.120, "safe": 0.150}
    )
    for chunk_ms in range(30, 121):
        chunk_s = chunk_ms / 1000
        held_s = buffer_profile("safe").cut_by(chunk_s).pre_buffer_s
        assert 0.100 - 1e-9 <= held_s <= 0.150 + 1e-9
        assert chunk_s < held_s, "more than one chunk: the second one may come late"
        if chunk_ms <= 75:
            assert held_s / chunk_s == pytest.approx(round(held_s / chunk_s)), "whole chunks where they fit"


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ParameterError, match="stable, benchmark, safe"):
        buffer_profile("fast")


@given(GAPS_S)
def test_the_same_arrivals_give_the_same_schedule(gaps_s: list[float]) -> None:
    arrivals_s = list(accumulate(gaps_s))
    assert play(PreBuffer(), arrivals_s) == play(PreBuffer(), arrivals_s)


@given(GAPS_S, st.floats(0.01, 0.5))
def test_chunks_play_in_order_after_they_came_and_never_two_at_once(
    gaps_s: list[float], length_s: float
) -> None:
    arrivals_s = list(accumulate(gaps_s))
    plays_s = play(PreBuffer(), arrivals_s, length_s)
    assert all(plays >= at for plays, at in zip(plays_s, arrivals_s, strict=True))
    assert all(b - a >= length_s - 1e-9 for a, b in pairwise(plays_s))


@given(GAPS_S, st.floats(0, 0.1), st.floats(0.1, 2))
def test_the_target_stays_within_its_bounds(gaps_s: list[float], least_s: float, most_s: float) -> None:
    pre_buffer = PreBuffer(0.1, least_s=least_s, most_s=most_s)
    for at_s in accumulate(gaps_s):
        pre_buffer.arrived(at_s, CHUNK_S)
        assert least_s <= pre_buffer.target_s <= most_s


@given(st.lists(st.integers(0, 64), min_size=1, max_size=60), st.integers(0, 16))
def test_a_fixed_one_is_a_clock_that_waits_for_what_is_late(gaps: list[int], held: int) -> None:
    """In sixty-fourths of a second, which add up without rounding."""
    arrivals_s = [gap / 64 for gap in accumulate(gaps)]
    pre_buffer = PreBuffer.fixed(held / 64)
    plays_s = play(pre_buffer, arrivals_s, 1 / 16)
    clock_s, late_s = arrivals_s[0] + held / 64, []
    for arrival_s in arrivals_s:
        if arrival_s > clock_s:
            late_s.append(arrival_s - clock_s)
            clock_s = arrival_s
        clock_s += 1 / 16
    assert pre_buffer.underruns == len(late_s)
    assert plays_s[-1] - plays_s[0] - (len(gaps) - 1) / 16 == sum(late_s)
    assert pre_buffer.target_s == held / 64
    played = trial.play(arrivals_s, [1 / 16] * len(gaps), PreBuffer.fixed(held / 64))
    assert (played.underruns, played.late_s) == (len(late_s), sum(late_s))
    assert played.longest_silence_s == max(late_s, default=0.0)


@given(st.floats(0.001, 0.7))
def test_after_an_underrun_the_same_delay_is_covered(late_s: float) -> None:
    pre_buffer = PreBuffer()
    arrivals_s = [*steady(20), 20 * CHUNK_S + pre_buffer.target_s + late_s]
    play(pre_buffer, arrivals_s)
    assert pre_buffer.underruns == 1
    assert pre_buffer.target_s == pytest.approx(0.1 + late_s + SPARE_S)
    assert silence_s(play(pre_buffer, arrivals_s)) == pytest.approx(0, abs=1e-9)
    assert pre_buffer.underruns == 1


def test_it_grows_before_there_is_an_underrun() -> None:
    pre_buffer = PreBuffer()
    play(pre_buffer, [*steady(20), 20 * CHUNK_S + 0.095])
    assert pre_buffer.underruns == 0
    assert pre_buffer.target_s == pytest.approx(0.095 + SPARE_S)


def test_it_shrinks_by_half_of_what_is_beyond_the_least_in_a_half_life() -> None:
    pre_buffer = PreBuffer(0.45)
    play(pre_buffer, steady(round(HALF_LIFE_S / CHUNK_S) + 1))
    assert pre_buffer.target_s == pytest.approx(LEAST_S + (0.45 - LEAST_S) / 2)


@given(GAPS_S)
def test_it_never_shrinks_faster_than_that(gaps_s: list[float]) -> None:
    pre_buffer = PreBuffer(0.5)
    for at_s in accumulate(gaps_s):
        before_s = pre_buffer.target_s
        pre_buffer.arrived(at_s, CHUNK_S)
        slowest_s = LEAST_S + (before_s - LEAST_S) * 0.5 ** (CHUNK_S / HALF_LIFE_S)
        assert pre_buffer.target_s >= min(slowest_s, MOST_S) - 1e-12


@given(st.lists(st.floats(0, 0.07), min_size=20, max_size=200))
def test_a_steady_stream_is_heard_no_later_than_with_a_fixed_one(delays_s: list[float]) -> None:
    """Steady: no chunk is later than the pre-buffer at the start can take, with some to spare."""
    arrivals_s = [0.0]
    for sent_s, delay_s in zip(steady(len(delays_s) + 1)[1:], delays_s, strict=True):
        arrivals_s.append(max(arrivals_s[-1], sent_s + delay_s))
    fixed, adaptive = PreBuffer.fixed(0.1), PreBuffer(0.1)
    for _ in range(3):
        waits_s = [play(pre_buffer, arrivals_s)[0] for pre_buffer in (adaptive, fixed)]
        assert waits_s[0] <= waits_s[1]
    assert adaptive.underruns == fixed.underruns == 0


@pytest.mark.parametrize("seed", range(8))
def test_on_a_bad_line_there_is_less_silence_than_with_a_fixed_one(seed: int) -> None:
    streams = [jittery(100 * seed + i) for i in range(20)]
    fixed, adaptive = PreBuffer.fixed(0.1), PreBuffer(0.1)
    heard_s = {p: sum(silence_s(play(p, arrivals_s)) for arrivals_s in streams) for p in (fixed, adaptive)}
    assert heard_s[adaptive] < 0.25 * heard_s[fixed]
    assert adaptive.underruns < 0.5 * fixed.underruns


@pytest.mark.parametrize(
    ("start_s", "least_s", "most_s"),
    [
        (0.1, 0.2, 1.0),
        (0.1, 0.05, 0.08),
        (0.1, -0.1, 1.0),
        (0.1, 0.05, float("inf")),
        (float("nan"), 0.05, 1.0),
    ],
)
def test_bounds_that_make_no_sense_are_refused(start_s: float, least_s: float, most_s: float) -> None:
    with pytest.raises(ParameterError, match="least_s ≤ start_s ≤ most_s"):
        PreBuffer(start_s, least_s=least_s, most_s=most_s)


@pytest.mark.parametrize(
    ("at_s", "length_s", "field"),
    [
        (0.9, 0.05, "at_s"),
        (float("nan"), 0.05, "at_s"),
        (float("inf"), 0.05, "at_s"),
        (1.1, 0.0, "length_s"),
        (1.1, -1.0, "length_s"),
        (1.1, float("nan"), "length_s"),
    ],
)
def test_a_chunk_that_cannot_be_is_refused_and_changes_nothing(
    at_s: float, length_s: float, field: str
) -> None:
    pre_buffer = PreBuffer()
    pre_buffer.arrived(1.0, CHUNK_S)
    with pytest.raises(ParameterError) as refused:
        pre_buffer.arrived(at_s, length_s)
    assert refused.value.field == field
    assert pre_buffer.arrived(1.0, CHUNK_S) == pytest.approx(1.0 + 0.1 + CHUNK_S)
