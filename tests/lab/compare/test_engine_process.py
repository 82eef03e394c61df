"""An engine in a process of its own: it speaks, refuses and dies, and none of that reaches who asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess
from tests.toy_engine import fails_at_1_thread, make_engine

CONFIG = EngineConfig(threads=2)


def test_a_process_speaks_refuses_and_dies_without_taking_us_along() -> None:
    with EngineProcess("toy", CONFIG, "hum", make_engine) as process:
        assert process.facts["active_provider"] == "CPUExecutionProvider"
        spoken = process.speak(3, "The kettle is on.")
        assert (spoken.trial.text_number, spoken.trial.system) == (3, "toy")
        assert spoken.trial.rss_peak_mb > 10
        assert len(spoken.samples) == 17 * 24_000 // 15
        with pytest.raises(EngineFailed, match="ended with code 7"):
            process.speak(4, "die")
        assert not process.alive


def test_what_an_engine_refuses_is_said_in_its_words() -> None:
    with (
        EngineProcess("toy", CONFIG, "hum", make_engine) as process,
        pytest.raises(EngineFailed, match="provider is lost"),
    ):
        process.speak(0, "refuse")
    with (
        pytest.raises(EngineFailed, match="One thread"),
        EngineProcess("toy", replace(CONFIG, threads=1), "hum", fails_at_1_thread),
    ):
        pytest.fail("it was loaded")


def test_who_has_refused_or_kept_us_waiting_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    with EngineProcess("toy", CONFIG, "hum", make_engine) as process:
        with pytest.raises(EngineFailed, match="provider is lost"):
            process.speak(0, "refuse")
        assert not process.alive
    with EngineProcess("toy", CONFIG, "hum", make_engine) as process:
        monkeypatch.setattr("kokoro_lab.lab.compare.engine_process.SPEAK_S", 0.0)
        with pytest.raises(EngineFailed, match="took more than 0 s"):
            process.speak(0, "hang")
        assert not process.alive
        with pytest.raises(EngineFailed, match="no more"):
            process.speak(1, "Else the answer to the first text would pass for this one's.")
