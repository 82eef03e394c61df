"""A profile accounts for all of the time, and what is profiled is what the engine speaks."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError, TextError, VoiceError
from kokoro_lab.lab.bench.profile import (
    END,
    FIRST_AUDIO,
    STAGES,
    StageWatch,
    in_line,
    profile_loading,
    profile_operators,
    profile_stages,
    samples_unlike_the_engine,
)
from kokoro_lab.lab.bench.profile_verdict import judge, loading_ms, medians_s
from kokoro_lab.lab.results import failed
from kokoro_lab.scheduling.stopwatch import Stopwatch, heard, listening
from kokoro_lab.sessions.providers import make_session
from kokoro_lab.speech.engine import Engine
from tests import tiny_voice

TEXT = "The kettle is on, and the window is open."
RECURRENCES = {"LSTM", "BiLstm"}
"""The second where the operators of our own are loaded."""


def test_a_stage_within_another_one_counts_by_itself_alone() -> None:
    watch, stream = StageWatch(), Stopwatch()
    with listening(watch), stream("model"):
        time.sleep(0.02)
        for stage in ("prosody", "vocoder", "vocoder"):
            with heard(stage):
                time.sleep(0.01)
    taken_s = {stage: seconds for stage, seconds in watch.stages_s.items() if seconds}
    assert set(taken_s) == {"prosody", "statistics", "first window", "other windows"}
    assert sum(taken_s.values()) == pytest.approx(stream.stages_s["model"], abs=0.005)
    assert all(seconds >= 0.01 for seconds in taken_s.values())


def test_who_listens_hears_of_its_own_thread_while_it_listens() -> None:
    watch = StageWatch()
    with listening(watch):
        other = Thread(target=lambda: Stopwatch()("text").__enter__())
        other.start()
        other.join()
    with Stopwatch()("text"):
        pass
    assert not any(watch.stages_s.values())


def test_only_a_variant_with_stages_can_be_profiled() -> None:
    config = EngineConfig(variant="int8-upstream")
    for profile in (profile_stages, profile_operators):
        with pytest.raises(ParameterError, match="Allowed: fp32"):
            profile(config, TEXT, "af_heart")
    with pytest.raises(ParameterError, match="Allowed: fp32"):
        profile_loading(config, "af_heart")
    with pytest.raises(ParameterError, match="Allowed: fp32"):
        in_line(config)


@pytest.mark.parametrize("count", [0, -1])
def test_nothing_to_measure_is_refused(count: int) -> None:
    config = EngineConfig()
    with pytest.raises(ParameterError, match="1 or more"):
        profile_loading(config, "af_heart", loads=count)
    with pytest.raises(ParameterError, match="1 or more"):
        profile_stages(config, TEXT, "af_heart", loads=count)
    with pytest.raises(ParameterError, match="1 or more"):
        profile_stages(config, TEXT, "af_heart", trials=count)
    with pytest.raises(ParameterError, match="1 or more"):
        profile_operators(config, TEXT, "af_heart", trials=count)


def test_a_session_writes_its_profile_where_it_is_told(tmp_path: Path) -> None:
    graph = tiny_voice.build(tmp_path / "hum.onnx").read_bytes()
    folder = tmp_path / "profiles"
    folder.mkdir()
    make_session(graph, EngineConfig(profiles=folder)).end_profiling()
    assert [path.suffix for path in folder.iterdir()] == [".json"]


@pytest.mark.model
def test_what_is_profiled_is_what_the_engine_streams(engine: Engine) -> None:
    text = "Nobody came. It rained all night, and then it rained all day."
    assert samples_unlike_the_engine(engine, text, "af_heart") == 0


@pytest.mark.test_all
@pytest.mark.model
def test_stages_and_operators_account_for_the_time(engine: Engine) -> None:
    stages = profile_stages(engine.config, TEXT, "af_heart", trials=2, loads=1)
    assert len(stages) == 3 * 2 * len(STAGES)
    assert (stages.stage_s >= 0).all()
    at_end, at_first = (
        stages[stages.until == until].set_index(["trial", "stage"]).stage_s for until in (END, FIRST_AUDIO)
    )
    assert (at_end >= at_first).all()
    assert set(medians_s(stages)) >= {"prosody", "trunk", "excitation", "statistics", "first window"}
    operators = profile_operators(engine.config, TEXT, "af_heart", trials=1)
    assert failed(judge(stages, operators)) == []
    assert {"prosody", "trunk", "excitation"} < set(operators.graph)
    recurrences = operators[(operators.graph == "prosody") & operators.operator.isin(RECURRENCES)]
    assert recurrences.calls.sum() % 6 == 0
    assert (operators.groupby("graph").share.sum() <= 1).all()


@pytest.mark.model
def test_loading_names_every_part(engine: Engine) -> None:
    found = loading_ms(profile_loading(engine.config, "af_heart", loads=1))
    assert {"G2P", "voice", "predictor", "prosody", "trunk", "excitation", "vocoder"} < set(found)
    assert all(ms > 0 for ms in found.values())


@pytest.mark.model
def test_what_cannot_be_spoken_is_refused(engine: Engine) -> None:
    with pytest.raises(TextError):
        profile_stages(engine.config, " ", "af_heart", trials=1, loads=1)
    with pytest.raises(VoiceError, match="af_heart"):
        profile_operators(engine.config, TEXT, "af_hart")
