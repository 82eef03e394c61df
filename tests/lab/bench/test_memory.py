"""What a process holds is read by a thread that is not there otherwise, and growth is told from settling."""

from __future__ import annotations

import math
import mmap
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import psutil
import pytest

from kokoro_lab.lab.bench.memory import MB, growth_of, memory_figures, resident_mb, sampled_memory

BLOCK_MB = 64


def block() -> mmap.mmap:
    """Memory that is really new: a bytearray may be given pages that an earlier test has left."""
    new = mmap.mmap(-1, BLOCK_MB * MB)
    for _ in range(BLOCK_MB):
        new.write(b"x" * MB)
    return new


def test_what_is_kept_is_growth() -> None:
    with sampled_memory(psutil.Process(), 0.005) as readings_mb:
        kept = block()
    kept.close()
    found = memory_figures(readings_mb)
    assert found["rss_growth_mb"] == pytest.approx(BLOCK_MB, abs=BLOCK_MB / 4)
    assert found["rss_peak_mb"] >= found["rss_end_mb"]


def test_what_is_given_back_is_peak_alone() -> None:
    with sampled_memory(psutil.Process(), 0.005) as readings_mb:
        passing = block()
        time.sleep(0.05)
        passing.close()
    found = memory_figures(readings_mb)
    assert found["rss_peak_mb"] - found["rss_start_mb"] > BLOCK_MB / 2
    assert found["rss_growth_mb"] < BLOCK_MB / 2


def test_it_is_read_as_often_as_asked() -> None:
    with sampled_memory(psutil.Process(), 60) as seldom:
        time.sleep(0.1)
    with sampled_memory(psutil.Process(), 0.005) as often:
        time.sleep(0.1)
    assert len(seldom) == 2  # at the start and at the end
    assert len(often) > 4


def test_the_sampler_ends_with_the_block() -> None:
    with pytest.raises(KeyError), sampled_memory(psutil.Process(), 0.005):
        raise KeyError
    assert "memory-sampler" not in {t.name for t in threading.enumerate()}


def test_a_servers_workers_count() -> None:
    def process(mb: int, *children: SimpleNamespace) -> SimpleNamespace:
        return SimpleNamespace(
            memory_info=lambda: SimpleNamespace(rss=mb * MB), children=lambda recursive: list(children)
        )

    def gone() -> None:
        raise psutil.NoSuchProcess(1)

    ended = SimpleNamespace(memory_info=gone)
    assert resident_mb(process(20, process(300), ended)) == 320  # type: ignore[arg-type]


def held(at_s: Sequence[float], rss_mb: object = 600, descriptors: object = 30) -> pd.DataFrame:
    return pd.DataFrame({"at_s": at_s, "rss_mb": rss_mb, "descriptors": descriptors, "threads": 20})


def test_growth_is_counted_after_the_first_minutes_alone() -> None:
    at_s = np.arange(0, 1200, 10)
    assert growth_of(held(at_s, rss_mb=600 + np.minimum(at_s, 300))).rss_mb == 0
    late = growth_of(held(at_s, rss_mb=600 + np.maximum(at_s - 300, 0) / 10))
    assert late.rss_mb == pytest.approx(81, abs=2)
    assert late.rss_mb_an_hour == pytest.approx(360, abs=1)


def test_what_a_stream_under_way_holds_is_no_growth() -> None:
    at_s = np.arange(200)
    assert growth_of(held(at_s, descriptors=30 + at_s % 3)).descriptors == 0


def test_too_few_readings_show_no_growth() -> None:
    assert math.isnan(growth_of(held([0, 1])).rss_mb)
