"""Streams are recorded as they arrive and replayed with every pre-buffer; a late chunk is noticed."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.chunking import (
    ChunkArrivals,
    arrivals_by_size,
    controls,
    fixed_and_adaptive,
    held_up,
    jitter,
    judge,
    recommendation,
    record,
    replay,
    summary,
)
from kokoro_lab.lab.bench.trial import gaps_beyond_chunks_s
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.speech.engine import Engine

TEXTS = [
    FixtureText("kettle", "short", "The kettle is on, and the window is open."),
    FixtureText("nobody", "short", "Nobody is in. Nobody came."),
    FixtureText("rain", "short", "Rain fell all night."),
]


def recording(*arrivals_s: float, text: str = "a", chunk_s: float = 0.05, sha256: str = "0") -> ChunkArrivals:
    return ChunkArrivals(text, chunk_s, arrivals_s, (chunk_s,) * len(arrivals_s), sha256)


@pytest.fixture(scope="module")
def streams(hum: Engine) -> list[ChunkArrivals]:
    return record(hum, TEXTS, "hum", chunks_s=(0.03, 0.05, 0.12))


def test_every_text_is_streamed_at_every_size_and_none_always_first(streams: list[ChunkArrivals]) -> None:
    assert len({(r.text, r.chunk_s) for r in streams}) == len(streams) == 9
    assert {r.chunk_s for r in streams[::3]} == {0.03, 0.05, 0.12}


def test_the_size_of_chunks_changes_no_sample(streams: list[ChunkArrivals]) -> None:
    assert len({r.sha256 for r in streams}) == len(TEXTS)
    for text in TEXTS:
        seconds = [sum(r.lengths_s) for r in streams if r.text == text.id]
        assert seconds == pytest.approx([seconds[0]] * 3)


def test_real_streams_pass_and_every_fault_is_caught(streams: list[ChunkArrivals]) -> None:
    assert [c for c in judge(streams, replay(streams)) if not c.passed] == []
    assert [c for c in controls(streams) if not c.caught] == []


def test_a_stream_is_never_spoken_from_the_cache(hum: Engine) -> None:
    hits = hum.first_audio.figures()["hits"]
    for _ in range(2):
        record(hum, TEXTS[:1], "hum", chunks_s=(0.05,))
    assert hum.first_audio.figures()["hits"] == hits


def test_jitter_is_the_time_between_chunks_less_their_length() -> None:
    assert gaps_beyond_chunks_s((1.0, 1.05, 1.30, 1.30), [0.05] * 4) == pytest.approx([0, 0.2, -0.05])
    table = jitter([recording(1.0, 1.05, 1.30, 1.30), recording(2.0, chunk_s=0.12)])
    assert list(table.index) == [50, 120]
    assert table.jitter_max_ms[50] == pytest.approx(200)
    assert table.ttfa_p50_ms[120] == pytest.approx(2000)


def test_a_replay_is_what_the_player_would_have_noticed() -> None:
    table = summary(replay([recording(1.0, 1.20, 1.20, 1.20)], (1, 2, 3)))
    assert list(table.underruns) == [1, 1, 0]
    assert list(table.late_s) == pytest.approx([0.10, 0.05, 0.0])
    assert list(table.heard_after_ms) == pytest.approx([1050, 1100, 1150])
    assert list(table.broken_streams) == [1, 1, 0]


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=30), min_size=1, max_size=4),
    st.sampled_from([0.03, 0.05, 0.12]),
)
def test_more_pre_buffer_never_makes_it_worse(gaps_s: list[list[float]], chunk_s: float) -> None:
    streams = [recording(*accumulate(gaps), text=str(i), chunk_s=chunk_s) for i, gaps in enumerate(gaps_s)]
    played = replay(streams, (0, 1, 2, 3, 8))
    assert next(c for c in judge(streams, played) if c.name.startswith("replays")).passed
    assert (played.groupby("text").late_s.diff().fillna(0) <= 1e-9).all()


def test_a_pre_buffer_that_makes_it_worse_would_be_noticed() -> None:
    streams = [recording(1.0, 1.2, 1.2)]
    played = replay(streams)
    played.loc[played.pre_buffer_chunks == 3, "underruns"] = 9
    assert [c.name for c in judge(streams, played) if not c.passed] == [
        "replays_that_more_pre_buffer_made_worse_count"
    ]


def test_the_recommendation_is_the_shortest_wait_without_a_gap() -> None:
    smooth = recording(0.2, 0.25, 0.30)
    assert "chunks of 50 ms and a pre-buffer of 1 chunk, 50 ms" in recommendation(replay([smooth]))
    bumpy = recording(0.2, 0.34, 0.36)
    small = recording(0.2, 0.34, 0.36, 0.38, chunk_s=0.03)
    assert "chunks of 50 ms and a pre-buffer of 2 chunks, 100 ms" in recommendation(replay([bumpy, small]))
    found = recommendation(replay([recording(0.2, 9.0, 9.05)]))
    assert found.startswith("No combination")
    assert "underruns 1, silence in speech 8.60 s" in found


def test_streams_are_grouped_by_size(streams: list[ChunkArrivals]) -> None:
    groups = arrivals_by_size(streams)
    assert list(groups) == ["chunks of 30 ms", "chunks of 50 ms", "chunks of 120 ms"]
    assert all(len(group) == len(TEXTS) for group in groups.values())


@pytest.mark.parametrize("chunk_s", [0.0, 0.029, 0.2, float("nan")])
def test_chunks_are_30_to_120_ms(hum: Engine, chunk_s: float) -> None:
    with pytest.raises(ParameterError, match=r"0\.03 to 0\.12"):
        record(hum, TEXTS, "hum", chunks_s=(chunk_s,))


@pytest.mark.parametrize(("texts", "chunks_s"), [([], (0.05,)), (TEXTS, ())])
def test_nothing_to_stream_is_refused(
    hum: Engine, texts: list[FixtureText], chunks_s: tuple[float, ...]
) -> None:
    with pytest.raises(ParameterError, match="nothing to stream"):
        record(hum, texts, "hum", chunks_s=chunks_s)


@pytest.mark.parametrize("pre_buffers", [(), (1, -1)])
def test_pre_buffers_that_cannot_be_are_refused(pre_buffers: tuple[int, ...]) -> None:
    with pytest.raises(ParameterError, match="0 or more"):
        replay([recording(1.0)], pre_buffers)


def test_a_stall_delays_and_never_reorders() -> None:
    smooth = recording(*[0.05 * i for i in range(40)])
    stalled = held_up(smooth, bursts=3, seed=1)
    assert stalled == held_up(smooth, bursts=3, seed=1)
    assert list(stalled.arrivals_s) == sorted(stalled.arrivals_s)
    assert all(b >= a for a, b in zip(smooth.arrivals_s, stalled.arrivals_s, strict=True))
    assert max(gaps_beyond_chunks_s(stalled.arrivals_s, stalled.lengths_s)) > 0.1


def test_what_was_learnt_from_stalls_saves_silence() -> None:
    streams = [recording(*[0.05 * i for i in range(60)], text=str(i)) for i in range(20)]
    table = fixed_and_adaptive(streams)
    assert table.loc[("as recorded", "adaptive"), "held_ms"] <= 100
    assert table.loc["as recorded", "late_s"].sum() == pytest.approx(0)
    held = table.loc["held up"]
    assert held.underruns["adaptive"] < held.underruns["fixed"]
    assert held.late_s["adaptive"] < held.late_s["fixed"]


@pytest.mark.test_all
@pytest.mark.model
def test_on_the_real_model_the_size_of_chunks_changes_no_sample(engine: Engine) -> None:
    streams = record(engine, TEXTS[:1], "af_heart", chunks_s=(0.03, 0.12))
    assert [c for c in judge(streams, replay(streams)) if not c.passed] == []
    other = replace(streams[0], sha256="0")
    assert not all(c.passed for c in judge([other, *streams[1:]], replay(streams)))
