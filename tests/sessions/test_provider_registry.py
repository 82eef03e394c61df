"""Providers: listed with why they are here or not, asked for by name or by `auto`, and placed by stage."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import onnxruntime as ort
import pytest

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError, SettingsError
from kokoro_lab.model.decoder import WholeGraph
from kokoro_lab.sessions import provider_registry, providers
from kokoro_lab.sessions.provider_registry import (
    CPU,
    KNOWN_PROVIDERS,
    Provider,
    choose,
    listed,
    named,
    registry,
    require,
)
from tests import tiny_voice

MAC, LINUX = "macOS arm64", "Linux x86_64"
BY_NAME = {provider.name: provider for provider in KNOWN_PROVIDERS}
PLUG_INS = [provider for provider in KNOWN_PROVIDERS if provider.module]


@pytest.fixture
def on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_registry, "this_machine", lambda: LINUX)
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CPUExecutionProvider"])


@pytest.fixture
def on_a_mac(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_registry, "this_machine", lambda: MAC)
    monkeypatch.setattr(
        ort, "get_available_providers", lambda: ["CoreMLExecutionProvider", "CPUExecutionProvider"]
    )


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """Every plug-in seems to be installed and finds a device. Gives what ONNX Runtime was told of."""
    told: list[tuple[str, str]] = []
    found: list[SimpleNamespace] = []

    def register(name: str, path: str) -> None:
        told.append((name, path))
        kinds = [SimpleNamespace(type=SimpleNamespace(name=kind)) for kind in ("CPU", "GPU")]
        found.extend(SimpleNamespace(ep_name=BY_NAME[name].full_name, device=kind) for kind in kinds)

    monkeypatch.setattr(provider_registry, "find_spec", lambda name: name)
    monkeypatch.setattr(ort, "register_execution_provider_library", register)
    monkeypatch.setattr(ort, "get_ep_devices", lambda: found)
    for provider in PLUG_INS:
        plug_in = ModuleType(provider.module)
        plug_in.get_library_path = lambda name=provider.name: f"lib{name}.so"  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, provider.module, plug_in)
    monkeypatch.setattr(provider_registry, "_loaded", set())
    return told


def test_every_provider_is_listed_with_why_it_is_here_or_not() -> None:
    lines = registry()
    assert [line.provider.name for line in lines] == ["cpu", "coreml", "cuda", "mlx", "openvino", "webgpu"]
    assert all(line.why for line in lines)
    assert lines[0].available
    assert [line.provider.full_name for line in lines if line.available and not line.provider.module] == [
        p.full_name for p in KNOWN_PROVIDERS if p.full_name in ort.get_available_providers()
    ]


@pytest.mark.usefixtures("on_linux")
@pytest.mark.parametrize("name", ["coreml", "mlx"])
def test_what_is_for_macs_alone_says_so_elsewhere_and_offers_no_mend(name: str) -> None:
    line = listed(BY_NAME[name])
    assert not line.available
    assert "macOS arm64" in line.why
    assert "Linux x86_64" in line.why
    assert line.mend == ""


@pytest.mark.usefixtures("on_linux")
@pytest.mark.parametrize("name", ["cuda", "openvino", "webgpu"])
def test_what_could_be_installed_says_how(name: str) -> None:
    line = listed(BY_NAME[name])
    assert not line.available
    assert "pip install onnxruntime" in line.mend


@pytest.mark.usefixtures("on_a_mac")
def test_a_mac_has_core_ml() -> None:
    assert {line.provider.name for line in registry() if line.available} == {"cpu", "coreml"}
    assert require("CoreMLExecutionProvider").name == "coreml"


@pytest.mark.usefixtures("on_linux")
@pytest.mark.parametrize("name", [p.name for p in KNOWN_PROVIDERS if p is not CPU])
def test_one_that_is_asked_for_and_missing_is_a_clear_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=f"'{name}' is not available") as raised:
        WholeGraph(tiny_voice.build(tmp_path / "hum.onnx"), EngineConfig(provider=name))
    assert raised.value.field == "provider"
    assert raised.value.value == name
    assert raised.value.allowed == "auto, cpu"
    assert raised.value.mend


def test_one_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ProviderError, match="tpu") as raised:
        require("tpu")
    assert raised.value.allowed == "auto, cpu, coreml, cuda, mlx, openvino, webgpu"


@pytest.mark.parametrize("typed", ["coreml", "CoreML", " coreml ", "CoreMLExecutionProvider"])
def test_a_provider_may_be_written_as_onnx_runtime_writes_it(typed: str) -> None:
    assert named(typed).name == "coreml"


@pytest.mark.parametrize("provider", PLUG_INS, ids=lambda provider: provider.name)
def test_a_plug_in_that_is_installed_is_loaded_once(
    provider: Provider, installed: list[tuple[str, str]]
) -> None:
    for _ in range(2):
        assert require(provider.name) is provider
    assert installed == [(provider.name, f"lib{provider.name}.so")]
    assert provider_registry.devices(provider)[0].device.type.name == "GPU"


def test_a_plug_in_that_registers_itself_is_let_do_so(
    installed: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plug_in = sys.modules["onnxruntime_ep_mlx"]
    monkeypatch.setattr(
        plug_in,
        "register_execution_provider_library",
        lambda: ort.register_execution_provider_library("mlx", "its own"),
        raising=False,
    )
    assert require("mlx").name == "mlx"
    assert installed == [("mlx", "its own")]


def test_a_plug_in_that_cannot_be_loaded_says_why(
    installed: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # ONNX Runtime's own loader, and a library that is not there
    monkeypatch.setattr(provider_registry, "find_spec", lambda name: name)
    plug_in = ModuleType("onnxruntime_ep_webgpu")
    plug_in.get_library_path = lambda: "/nowhere/lib.so"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime_ep_webgpu", plug_in)
    line = listed(BY_NAME["webgpu"])
    assert not line.available
    assert "/nowhere/lib.so" in line.why
    assert "--upgrade" in line.mend
    assert "webgpu" not in provider_registry._loaded
    assert installed == []


@pytest.mark.usefixtures("installed")
def test_a_plug_in_without_a_device_is_not_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ort, "get_ep_devices", list)
    with pytest.raises(ProviderError, match="finds no device"):
        require("openvino")


@pytest.mark.usefixtures("on_a_mac")
def test_auto_is_the_cpu_on_a_mac_too_and_says_why() -> None:
    choice = choose(EngineConfig(provider="auto"))
    assert choice.provider is CPU
    assert "known to be better" in choice.because
    assert choice.fallbacks == ()


@pytest.mark.usefixtures("on_a_mac")
@pytest.mark.parametrize("typed", ["auto:coreml", "Auto:CoreML"])
def test_auto_takes_the_one_that_is_preferred(typed: str) -> None:
    choice = choose(EngineConfig(provider=typed))
    assert choice.provider.name == "coreml"
    assert not choice.explicit


@pytest.mark.usefixtures("on_linux")
def test_auto_falls_back_and_says_so_where_the_preferred_one_is_missing(tmp_path: Path) -> None:
    decoder = WholeGraph(tiny_voice.build(tmp_path / "hum.onnx"), EngineConfig(provider="auto:openvino"))
    assert decoder.placement.active_provider == "CPUExecutionProvider"
    (fallback,) = decoder.placement.fallbacks
    assert fallback.stage == "provider"
    assert "OpenVINOExecutionProvider is not available" in fallback.reason
    assert "not installed" in decoder.placement.because


def test_one_that_is_preferred_must_exist() -> None:
    with pytest.raises(ProviderError, match="tpu"):
        choose(EngineConfig(provider="auto:tpu"))


@pytest.mark.usefixtures("on_a_mac")
def test_what_belongs_to_no_stage_runs_on_the_provider_that_is_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tiny_voice.build(tmp_path / "hum.onnx"))
    made: list[str] = []
    monkeypatch.setattr(providers, "provider_session", lambda provider, *_, **__: made.append(provider.name))
    for provider in ("cpu", "auto", "auto:coreml"):
        session = providers.make_session(path, EngineConfig(provider=provider, threads=1))
        assert session.get_providers() == ["CPUExecutionProvider"]
    assert made == []
    providers.make_session(path, EngineConfig(provider="coreml"))
    assert made == ["coreml"]


def test_a_stage_that_does_not_exist_cannot_be_placed() -> None:
    with pytest.raises(SettingsError, match="vocodr") as raised:
        EngineConfig(placement="prosody, vocodr")
    assert "vocoder" in str(raised.value.allowed)


@pytest.mark.parametrize(
    ("placement", "accelerated"),
    [
        ("vocoder", {"vocoder", "model"}),
        ("trunk, vocoder", {"trunk", "vocoder", "model"}),
        ("all", {"prosody", "trunk", "excitation", "vocoder", "vocoder_exact", "model"}),
        ("excitation", {"excitation"}),
    ],
)
def test_stages_go_where_they_are_placed(placement: str, accelerated: set[str]) -> None:
    config = EngineConfig(placement=placement)
    stages = ("prosody", "trunk", "excitation", "vocoder", "vocoder_exact", "model")
    assert {stage for stage in stages if config.accelerates(stage)} == accelerated


def test_a_provider_that_onnx_runtime_passes_over_is_an_error(tmp_path: Path) -> None:
    path = str(tiny_voice.build(tmp_path / "hum.onnx"))
    built_in = [provider for provider in KNOWN_PROVIDERS if not provider.module]
    missing = next(p for p in built_in if p.full_name not in ort.get_available_providers())
    with pytest.warns(UserWarning, match="not in avail"), pytest.raises(ProviderError, match="passed over"):
        providers.provider_session(missing, path, EngineConfig(threads=1))


def test_a_provider_that_takes_no_node_is_an_error(tmp_path: Path) -> None:
    path = str(tiny_voice.build(tmp_path / "hum.onnx"))
    # In every build of ONNX Runtime, and only for operators that call a service
    idle = Provider("azure", "AzureExecutionProvider", "a service")
    assert idle.full_name in ort.get_available_providers()
    with pytest.raises(ProviderError, match=r"none of the [0-9]+ nodes"):
        providers.provider_session(idle, path, EngineConfig(threads=1))


def test_the_options_of_core_ml_are_what_the_provider_gets(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    config = EngineConfig(coreml={"MLComputeUnits": "CPUAndGPU", "ModelCacheDirectory": str(cache)})
    passed = providers.provider_options(BY_NAME["coreml"], config)
    assert passed["MLComputeUnits"] == "CPUAndGPU"
    assert passed["ModelFormat"] == "MLProgram"
    assert Path(passed["ModelCacheDirectory"]) == cache / f"onnxruntime-{ort.__version__}"
    assert Path(passed["ModelCacheDirectory"]).is_dir()
    assert providers.provider_options(BY_NAME["cuda"], config) == {}
