"""A provider that raises at load, at the first run, at the tenth: a clear error or a recorded fallback, and
complete audio."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import EPFail, Fail, InvalidArgument

from kokoro_lab.datatypes import Clip
from kokoro_lab.errors import OutOfMemory, ProviderError
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.speech.engine import Engine, load_engine
from tests import tiny_voice
from tests.sessions.fake_provider import NAME, FakeProvider

CPU = "CPUExecutionProvider"
SENTENCES = " ".join(f"This is sentence number {n}, and it is about nothing at all." for n in range(1, 13))


@pytest.fixture
def hum_on(tmp_path: Path, hum: Engine) -> Callable[..., Engine]:
    """The humming engine on a provider."""
    path = tiny_voice.build(tmp_path / "hum.onnx")

    def make(provider: str = "coreml", **options: Any) -> Engine:
        config = replace(hum.config, provider=provider, **options)
        decoder = WholeGraph(path, config)
        changed = {"decoder": decoder, "config": config, "placement": lambda: decoder.placement}
        return Engine(replace(hum.parts, **changed))

    return make


def spoken(engine: Engine, text: str = SENTENCES, **options: Any) -> Clip:
    return engine.stream(text, **{"voice": "hum", **options}).joined()


def provider_fallbacks(clip: Clip) -> list[str]:
    return [fallback.reason for fallback in clip.report.fallbacks if fallback.stage == "provider"]


def test_a_provider_that_holds_is_named_in_the_report(
    hum_on: Callable[..., Engine], coreml: FakeProvider, hum: Engine
) -> None:
    clip = spoken(hum_on())
    assert np.array_equal(clip.samples, spoken(hum).samples)
    assert clip.report.requested_provider == "coreml"
    assert clip.report.active_provider == NAME
    assert provider_fallbacks(clip) == []
    assert coreml.sessions[0].runs > 10
    assert coreml.cpu_sessions == 0


def test_one_asked_for_by_name_that_raises_at_load_is_an_error(
    hum_on: Callable[..., Engine], coreml: FakeProvider
) -> None:
    coreml.at_load = True
    with pytest.raises(ProviderError, match="does not compile"):
        hum_on("coreml")


def test_one_that_is_preferred_and_raises_at_load_is_a_fallback(
    hum_on: Callable[..., Engine], coreml: FakeProvider, hum: Engine
) -> None:
    coreml.at_load = True
    clip = spoken(hum_on("auto:coreml"))
    assert np.array_equal(clip.samples, spoken(hum).samples)
    assert clip.report.active_provider == CPU
    (reason,) = provider_fallbacks(clip)
    assert NAME in reason
    assert "does not compile" in reason


@pytest.mark.parametrize("run", [1, 2, 10])
@pytest.mark.parametrize("error", [EPFail("reset"), Fail("out of memory"), RuntimeError("it threw"), None])
def test_one_that_is_lost_in_mid_stream_costs_no_sample(
    hum_on: Callable[..., Engine],
    coreml: FakeProvider,
    hum: Engine,
    caplog: pytest.LogCaptureFixture,
    run: int,
    error: Exception | None,
) -> None:
    coreml.breaks_at, coreml.error = run, error
    engine = hum_on()
    with caplog.at_level(logging.WARNING):
        clip = spoken(engine)
    assert np.array_equal(clip.samples, spoken(hum).samples)
    (reason,) = provider_fallbacks(clip)
    assert reason.startswith(f"model: {CPU} instead of {NAME}, lost in run {run}: ")
    assert (str(error) if error else "not finite") in reason
    assert reason in caplog.text
    assert clip.report.active_provider == engine.active_provider == CPU
    assert clip.report.requested_provider == "coreml"


def test_from_then_on_the_cpu_speaks_and_every_report_says_why(
    hum_on: Callable[..., Engine], coreml: FakeProvider
) -> None:
    coreml.breaks_at = 3
    engine = hum_on()
    assert engine.placement.figures()["nodes"] == {"model": "2 of 3"}
    first = spoken(engine)
    runs = coreml.sessions[0].runs
    second = spoken(engine)
    assert coreml.sessions[0].runs == runs == 3
    assert coreml.cpu_sessions == 1
    assert provider_fallbacks(first) == provider_fallbacks(second) != []
    assert engine.placement.figures() == {
        "requested": "coreml",
        "active": CPU,
        "because": "it was asked for",
        "stages": {"model": CPU},
        "nodes": {},
        "fallbacks": provider_fallbacks(first),
    }


def test_first_audio_of_a_provider_that_was_lost_is_not_played_again(
    hum_on: Callable[..., Engine], coreml: FakeProvider
) -> None:
    engine = hum_on(first_audio_ttl_s=60.0)
    for primed in (False, True):
        stream = engine.stream(SENTENCES, voice="hum")
        assert stream.primed is primed
        stream.joined()
    coreml.sessions[0].breaks_at = 1
    assert spoken(engine, "Lost.").report.active_provider == CPU
    assert not engine.stream(SENTENCES, voice="hum").primed


def test_what_the_cpu_refuses_too_is_no_loss(hum_on: Callable[..., Engine], coreml: FakeProvider) -> None:
    session = hum_on().decoder._session  # type: ignore[attr-defined]
    wrong = {
        "input_ids": np.zeros((1, 3), np.int64),
        "style": np.zeros((1, 2), np.float32),
        "speed": np.ones(1, np.float32),
    }
    for _ in range(2):
        with pytest.raises(InvalidArgument):
            session.run(None, wrong)
    assert session.active_provider == NAME
    assert session.fallbacks == ()
    assert coreml.cpu_sessions == 1


def test_two_threads_that_lose_it_at_once_make_one_session() -> None:
    both = threading.Barrier(2, timeout=20)
    made: list[object] = []

    class Lost:
        def run(self, *_: object) -> list[Any]:
            both.wait()
            raise Fail("reset")

    class Spare:
        def run(self, *_: object) -> list[Any]:
            return [np.ones(1, np.float32)]

    def spare() -> Spare:
        made.append(None)
        return Spare()

    session = GuardedSession("vocoder", Lost(), NAME, spare=spare)
    found: list[list[Any]] = []
    threads = [threading.Thread(target=lambda: found.append(session.run(None, {}))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [values[0][0] for values in found] == [1.0, 1.0]
    assert len(made) == len(session.fallbacks) == 1


def test_a_loss_that_the_cpu_cannot_make_good_is_a_clear_error() -> None:
    class Lost:
        def run(self, *_: object) -> list[Any]:
            raise Fail("reset")

    def no_spare() -> Any:
        raise FileNotFoundError("vocoder.onnx")

    with pytest.raises(ProviderError, match=r"the CPU cannot take over: FileNotFoundError: vocoder\.onnx"):
        GuardedSession("vocoder", Lost(), NAME, spare=no_spare).run(None, {})


def test_no_memory_for_the_cpu_is_said_so() -> None:
    class Lost:
        def run(self, names: Any, feed: Any) -> list[Any]:
            raise EPFail("the device was reset")

    def full() -> Any:
        raise OutOfMemory("KOKORO_MEMORY_ARENA_SIZE_MB is 16: not enough.")

    with pytest.raises(OutOfMemory, match="is 16"):
        GuardedSession("vocoder", Lost(), NAME, spare=full).run(None, {})


def test_what_is_no_error_of_a_provider_is_not_caught() -> None:
    class Wrong:
        def run(self, *_: object) -> list[Any]:
            raise KeyError("a bug of ours")

    with pytest.raises(KeyError):
        GuardedSession("vocoder", Wrong(), NAME, spare=Wrong).run(None, {})


@pytest.mark.model
def test_the_vocoder_of_a_real_stream_is_lost_without_a_gap(coreml: FakeProvider, engine: Engine) -> None:
    text = "The kettle is on, and the window is open. Nobody is in. A letter lies on the table for somebody."
    coreml.breaks_at = 10
    # Windows of any length, whose samples are the CPU's to the last bit
    breaking = load_engine(config=replace(engine.config, provider="coreml", fixed_windows="off"))
    stages = breaking.placement.stages
    assert [stage for stage in stages if stages[stage] == NAME] == ["vocoder"]
    assert stages["prosody"] == stages["trunk"] == stages["excitation"] == CPU
    clip = spoken(breaking, text, voice="af_heart")
    assert np.array_equal(clip.samples, spoken(engine, text, voice="af_heart").samples)
    (reason,) = provider_fallbacks(clip)
    assert reason.startswith(f"vocoder: {CPU} instead of {NAME}, lost in run 10: EPFail")
    assert set(breaking.placement.stages.values()) == {CPU}
    assert NAME not in clip.report.session["stage_providers"]
    assert clip.report.active_provider == CPU
