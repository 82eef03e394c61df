"""Every text is spoken once by every system, in turn or at a time, and each time is a trial."""

from __future__ import annotations

import threading
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from kokoro_lab.containers.pcm import read_wav
from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import SynthesisError
from kokoro_lab.lab.bench.timing import InProcess, measure
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.speech.engine import Engine

TEXTS = ["The kettle is on.", "Nobody is in."]


class Scripted:
    """Says a tone, and writes down in `log` what it was asked for."""

    streamed = True

    def __init__(self, name: str, log: list[tuple[str, str]]) -> None:
        self.name = name
        self.process = psutil.Process()
        self.threads: set[str] = set()
        self._log = log

    def warm(self) -> None:
        self._log.append((self.name, "warm"))

    def speak(self, text: str, listener: Listener) -> None:
        self._log.append((self.name, text))
        self.threads |= {t.name for t in threading.enumerate()}
        if text == "fail":
            raise SynthesisError("It failed.")
        if text != "silent":
            listener.hears(np.full(2400, 0.1, np.float32))

    def facts(self) -> dict[str, Any]:
        return {}


class LengthsHeard(Listener):
    """Keeps the lengths of what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def hears(self, samples: Samples) -> None:
        self.lengths.append(len(samples))
        super().hears(samples)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_trial_is_a_synthesis(hum: Engine, streamed: bool) -> None:
    trials = measure([InProcess(hum, "hum", streamed=streamed)], TEXTS)
    assert [t.text_number for t in trials] == [0, 1]
    for trial in trials:
        assert trial.system == "kokoro-lab"
        assert 0 < trial.ttfa_s <= trial.wall_s
        assert trial.ttfa_s == trial.wall_s or streamed
        assert trial.audio_s > 0.5
        assert trial.rtf == pytest.approx(trial.wall_s / trial.audio_s)
        assert trial.streamed is streamed


def test_a_listener_that_has_heard_enough_hangs_up(hum: Engine) -> None:
    text = [" ".join(TEXTS * 20)]
    (whole,) = measure([InProcess(hum, "hum")], text)
    (part,) = measure([InProcess(hum, "hum")], text, listen_s=1.0)
    assert 1.0 <= part.audio_s < 1.2 < whole.audio_s


def test_systems_take_turns_text_by_text() -> None:
    log: list[tuple[str, str]] = []
    speakers = [Scripted(name, log) for name in ("ours", "fp32", "int8")]
    trials = measure(speakers, ["a", "b"])
    assert log[:3] == [("ours", "warm"), ("fp32", "warm"), ("int8", "warm")]
    in_turn = [(name, text) for text in "ab" for name in ("ours", "fp32", "int8")]
    assert log[3:] == in_turn
    assert [(t.system, "ab"[t.text_number]) for t in trials] == in_turn


@pytest.mark.parametrize("wrong", ["fail", "silent"])
def test_a_failure_ends_the_benchmark(wrong: str) -> None:
    with pytest.raises(SynthesisError):
        measure([Scripted("ours", [])], ["a", wrong, "b"])


def test_memory_is_sampled_only_if_asked() -> None:
    speaker = Scripted("ours", [])
    (trial,) = measure([speaker], ["a"])
    assert isnan(trial.rss_start_mb)
    assert "memory-sampler" not in speaker.threads
    (trial,) = measure([speaker], ["a"], memory_interval_s=0.01)
    assert "memory-sampler" in speaker.threads
    assert 0 < trial.rss_start_mb <= trial.rss_peak_mb
    assert trial.rss_growth_mb == pytest.approx(trial.rss_end_mb - trial.rss_start_mb)


def test_every_trial_is_kept_as_audio(hum: Engine, tmp_path: Path) -> None:
    trials = measure([InProcess(hum, "hum")], TEXTS, audio_folder=tmp_path / "audio")
    for trial in trials:
        samples, rate_hz = read_wav(tmp_path / "audio" / f"{trial.text_number:03d}-kokoro-lab.wav")
        assert rate_hz == SAMPLE_RATE_HZ
        assert len(samples) / rate_hz == pytest.approx(trial.audio_s, abs=0.05)  # less the fade-in


@pytest.mark.parametrize("chunk_ms", [30, 120])
def test_chunks_are_as_long_as_asked(hum: Engine, chunk_ms: int) -> None:
    listener = LengthsHeard()
    listener.asks()
    InProcess(hum, "hum", chunk_s=chunk_ms / 1000).speak("The kettle is singing.", listener)
    assert set(listener.lengths[:-1]) == {chunk_ms * SAMPLE_RATE_HZ // 1000}


def test_a_first_audio_from_the_cache_is_refused(hum: Engine) -> None:
    config = replace(hum.config, first_audio_ttl_s=60)
    ours = InProcess(Engine(replace(hum.parts, config=config)), "hum")
    text = "This very sentence is spoken twice."
    measure([ours], [text])
    with pytest.raises(SynthesisError, match="in the cache"):
        measure([ours], [text])
