"""Options of Core ML: what is wrong is refused by name and value, on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kokoro_lab.config import COREML_NAMES, Settings, settings
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import SettingsError
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.sessions.coreml_options import OPTIONS, coreml_options, variable_of
from tests import tiny_voice

NAMES = list(OPTIONS)
CHOICES = {name: values for name, values in OPTIONS.items() if values}


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


def test_there_are_eight() -> None:
    assert len(NAMES) == len(set(NAMES)) == 8
    assert sorted(COREML_NAMES.values()) == sorted(NAMES)


@pytest.mark.parametrize("name", CHOICES)
def test_every_value_is_taken_and_any_other_refused(name: str) -> None:
    values = CHOICES[name]
    for value in values:
        assert coreml_options({name: value})[name] == value
    for wrong in ("", "yes", values[0].swapcase() + "x", 1, None):
        with pytest.raises(SettingsError) as raised:
            coreml_options({name: wrong})
        assert raised.value.field == name
        assert raised.value.allowed == ", ".join(values)
        assert raised.value.mend


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_misspelt_is_refused_and_the_right_one_named(name: str) -> None:
    for wrong in (name.lower(), name + "s", name[:-1]):
        with pytest.raises(SettingsError, match=wrong) as raised:
            coreml_options({wrong: "1"})
        assert name in str(raised.value.mend)


def test_a_value_in_the_wrong_case_is_refused_and_the_right_one_named() -> None:
    with pytest.raises(SettingsError, match="Is 'CPUAndGPU' meant"):
        coreml_options({"MLComputeUnits": "cpuandgpu"})


def test_the_cache_is_a_folder(tmp_path: Path) -> None:
    new = str(tmp_path / "new" / "folder")
    assert coreml_options({"ModelCacheDirectory": new})["ModelCacheDirectory"] == new
    assert not Path(new).exists()
    (file := tmp_path / "file").touch()
    for wrong in (str(file), str(file / "below"), "", " "):
        with pytest.raises(SettingsError, match="no folder"):
            coreml_options({"ModelCacheDirectory": wrong})


def test_what_onnx_runtime_would_pass_over_is_refused() -> None:
    with pytest.raises(SettingsError, match="ML Programs"):
        coreml_options({"ProfileComputePlan": "1", "ModelFormat": "NeuralNetwork"})


def test_what_is_not_said_is_ours() -> None:
    assert coreml_options({}) == {
        "MLComputeUnits": "ALL",
        "ModelFormat": "MLProgram",
        "SpecializationStrategy": "Default",
        "RequireStaticInputShapes": "0",
        "EnableOnSubgraphs": "0",
        "ProfileComputePlan": "0",
        "AllowLowPrecisionAccumulationOnGPU": "0",
    }
    assert EngineConfig.from_settings().coreml == coreml_options({})


@pytest.mark.parametrize("name", NAMES)
def test_each_is_set_by_its_variable(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    value = OPTIONS[name][-1] if OPTIONS[name] else str(tmp_path)
    assert variable_of(name).startswith("KOKORO_COREML_")
    monkeypatch.setenv(variable_of(name), value)
    assert EngineConfig.from_settings().coreml[name] == value


@pytest.mark.parametrize("name", CHOICES)
def test_a_wrong_value_of_a_variable_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable_of(name), "wrong")
    with pytest.raises(SettingsError, match=variable_of(name)):
        EngineConfig.from_settings()


def test_a_variable_that_is_misspelt_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOKORO_COREML_COMPUTE_UNIT", "ALL")
    with pytest.raises(SettingsError, match="KOKORO_COREML_COMPUTE_UNITS"):
        EngineConfig.from_settings()


def test_settings_take_the_same_values_as_the_provider() -> None:
    for setting, name in COREML_NAMES.items():
        if name in CHOICES and CHOICES[name] != ("0", "1"):
            assert set(Settings.model_fields[setting].annotation.__args__) == set(CHOICES[name])


def test_an_engine_refuses_them_even_where_core_ml_is_not_there(tmp_path: Path) -> None:
    path = tiny_voice.build(tmp_path / "hum.onnx")
    with pytest.raises(SettingsError, match="MLComputeUnits"):
        WholeGraph(path, EngineConfig(provider="cpu", coreml={"mlcomputeunits": "ALL"}))
