"""Configurations as a user writes them: known fields, values that can be, the default in front."""

from __future__ import annotations

import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.compare.configurations import every_kind, parse

BASE = EngineConfig(threads=2)


def test_each_differs_from_the_base_in_the_fields_that_it_names() -> None:
    default, one, two = parse("threads=1;  variant=fp32   spinning=true window_frames=240", BASE)
    assert (default.name, default.config) == ("default", BASE)
    assert one.config == EngineConfig(threads=1)
    assert two.name == "variant=fp32 spinning=true window_frames=240"
    assert two.config == EngineConfig(threads=2, variant="fp32", spinning=True, window_frames=240)


def test_the_default_comes_first_wherever_it_stands() -> None:
    assert [c.name for c in parse("threads=1; default; native=off", BASE)] == [
        "default",
        "threads=1",
        "native=off",
    ]
    assert [c.name for c in parse("", BASE)] == ["default"]
    assert [c.name for c in parse("default; threads=1;", BASE)] == ["default", "threads=1"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("thread=1", "no field 'thread'"),
        ("threads", "no value"),
        ("threads=many", "threads=many cannot be"),
        ("variant=fp33", "no variant 'fp33'"),
        ("native=maybe", "native=maybe cannot be"),
        ("window_frames=2401", "No stream has windows of 2401"),
        ("threads.x=1", "threads has no entries"),
        ("threads=1; threads=1", "twice"),
    ],
)
def test_what_cannot_be_is_refused(written: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said) as refused:
        parse(written, BASE)
    assert refused.value.field == "configurations"


def test_those_that_are_worth_trying_can_be_made() -> None:
    found = {c.name: c.config for c in parse(every_kind(BASE), BASE)}
    assert {c.memory_arena_size_mb for c in found.values()} == {0, 2048, 3072, 4096}
    assert {c.provider for c in found.values()} > {"auto", "coreml"}
    assert any(c.next_threads for c in found.values())


def test_the_environment_says_what_differs() -> None:
    (_, other) = parse("threads=1 window_frames=240", BASE)
    assert other.environment(BASE) == {"KOKORO_THREADS": "1", "KOKORO_WINDOW_FRAMES": "240"}


def test_options_of_core_ml_are_set_one_by_one() -> None:
    written = "provider=coreml coreml.MLComputeUnits=CPUAndGPU coreml.ModelFormat=MLProgram"
    (_, other) = parse(written, BASE)
    assert other.config.coreml == {"MLComputeUnits": "CPUAndGPU", "ModelFormat": "MLProgram"}
    assert other.environment(BASE) == {
        "KOKORO_PROVIDER": "coreml",
        "KOKORO_COREML_COMPUTE_UNITS": "CPUAndGPU",
        "KOKORO_COREML_MODEL_FORMAT": "MLProgram",
    }
    named = parse("threads=1", EngineConfig(coreml={"ModelFormat": "MLProgram"}))[1]
    assert named.config.coreml == {"ModelFormat": "MLProgram"}, "the base's entries stay"


def test_sessions_for_the_next_segment_are_off_as_it_ships() -> None:
    assert EngineConfig().next_threads == 0
