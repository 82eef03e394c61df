"""Every setting does what its description says: what ONNX Runtime, the system or a listener gets of it.

`tests/mutations/settings.toml` lists for each field of `Settings` and of `EngineConfig` the tests that show
its effect. `scripts/mutations.py "is ignored"` makes the program ignore one field at a time, while what it
records of the field stays true, and sees these tests fail. Settings of the server are in
`tests/server/test_settings_effects.py`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxruntime as ort
import pytest
from click.testing import CliRunner

from kokoro_lab.__main__ import main
from kokoro_lab.config import PREFIX, Settings, misspelt, settings
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError, SettingsError, WeightsError
from kokoro_lab.model.choosing import PlacedDecoder, chosen_by_cost
from kokoro_lab.model.decoder import StagedDecoder, WholeGraph, fixed_windows
from kokoro_lab.model.windows import WindowSizes
from kokoro_lab.sessions import providers
from kokoro_lab.sessions.provider_registry import KNOWN_PROVIDERS, choose
from kokoro_lab.sessions.tuned import TUNABLE
from kokoro_lab.speech.engine import Engine, load_engine
from tests import tiny_voice

TABLE = Path(__file__).parent / "mutations" / "settings.toml"
CORE_ML = next(provider for provider in KNOWN_PROVIDERS if provider.name == "coreml")
SPOKEN = "The kettle is on, and the window is open."

Set = Callable[..., None]


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[Set]:
    """Sets variables by the names of their fields."""

    def set_them(**values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setenv(PREFIX + name.upper(), str(value))
        settings.cache_clear()

    yield set_them
    monkeypatch.undo()
    settings.cache_clear()


@pytest.fixture
def graph(tmp_path: Path) -> str:
    return str(tiny_voice.build(tmp_path / "hum.onnx"))


# ------------------------------------------------------------------------------------------- the table


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("settings", list(Settings.model_fields)),
        ("engine_config", [field.name for field in dataclasses.fields(EngineConfig)]),
    ],
)
def test_every_field_has_tests_of_its_effect(part: str, fields: list[str]) -> None:
    """`tests/test_mutations.py` looks whether they are there, `scripts/mutations.py` whether they notice."""
    table = tomllib.loads(TABLE.read_text("utf-8"))[part]
    assert set(table) == set(fields)
    assert all(table.values())


SEES = """
import json
from dataclasses import asdict, replace
from kokoro_lab.config import Settings, settings
from kokoro_lab.engine_config import EngineConfig
config = replace(EngineConfig(threads=2, spinning=True), window_frames=9)
print(json.dumps({
    "environment": settings().threads,
    "given": Settings(threads=5).threads,
    "copied": Settings().model_copy(update={"threads": 7}).threads,
    "another": Settings(port=9).port,
    "record": Settings(threads=5).model_dump()["threads"],
    "engine": [config.spinning, config.threads, config.window_frames],
    "engine_record": asdict(config)["spinning"],
}))
"""


def test_ignoring_a_field_leaves_what_is_recorded_of_it(
    mutations: ModuleType, repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "kokoro_lab").mkdir()
    (tmp_path / "kokoro_lab" / "__init__.py").touch()
    for name in ("config.py", "engine_config.py", "errors.py", "typed.py"):
        shutil.copy(repository / "kokoro_lab" / name, tmp_path / "kokoro_lab" / name)
    for mutation in mutations.MUTATIONS:
        if mutation.name in ("the setting threads is ignored", "EngineConfig.spinning is ignored"):
            target = tmp_path / mutation.file
            target.write_text(mutation.of(target.read_text("utf-8")), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SEES],
        cwd=tmp_path,
        env={**os.environ, "KOKORO_THREADS": "3", "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert (found["environment"], found["given"], found["copied"]) == (0, 0, 0)
    assert (found["another"], found["record"]) == (9, 5)
    assert found["engine"] == [False, 2, 9]
    assert found["engine_record"] is True


# ----------------------------------------------------------------------------------------- the weights


class Asked(Exception):
    """Somebody asked for it; nothing more is to be done."""


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What was asked of the sources of weights, which give nothing."""
    found: dict[str, Any] = {}

    def fetch(names: Any, **named: Any) -> None:
        found.update(named, names=list(names))
        raise Asked

    monkeypatch.setattr("kokoro_lab.speech.engine.fetch", fetch)
    return found


def test_weights_are_looked_for_in_the_home_of_the_environment(
    variables: Set, fetched: dict[str, Any], tmp_path: Path
) -> None:
    variables(home=tmp_path, source="registry", variant="fp16-upstream")
    with pytest.raises(Asked):
        load_engine()
    assert fetched["home"] == tmp_path
    assert (fetched["source"], fetched["names"]) == ("registry", ["fp16-upstream"])


def test_weights_are_taken_from_the_folder_of_the_environment(
    variables: Set, fetched: dict[str, Any], tmp_path: Path
) -> None:
    variables(home=tmp_path / "empty", source=tmp_path / "stick")
    with pytest.raises(Asked):
        load_engine()
    assert fetched["source"] == tmp_path / "stick"


@pytest.mark.parametrize("misspelt_source", ["registy", "./stick"])
def test_a_source_is_a_name_or_a_whole_path(variables: Set, misspelt_source: str) -> None:
    variables(source=misspelt_source)
    with pytest.raises(SettingsError, match=r"KOKORO_SOURCE=.* is not valid: .*'hub'.*configuration"):
        settings()


def test_weights_are_looked_for_in_the_home_of_the_configuration(
    fetched: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(Asked):
        load_engine(config=EngineConfig(home=tmp_path, source="hub", variant="int8-upstream"))
    assert fetched["home"] == tmp_path
    assert (fetched["source"], fetched["names"]) == ("hub", ["int8-upstream"])


@pytest.mark.parametrize("words", [("run", "no such notebook"), ("bench", "--peers", "--file")])
def test_run_and_bench_let_others_go_first_as_far_as_the_variable_says(
    variables: Set, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    asked: list[int] = []

    def nice(by: int) -> int:
        asked.append(by)
        return 3

    monkeypatch.setattr(os, "nice", nice)
    for by in (7, 0):
        variables(nice=by)
        assert CliRunner().invoke(main, words).exit_code
    assert asked == [0, 7 - 3, 0, 0]


@pytest.mark.parametrize(
    ("words", "lowered"),
    [
        (("bench", "load"), False),
        (("bench", "live"), False),
        (("bench", "soak"), False),
        (("bench", "--http", "--peers", "--file"), False),
        (("bench", "text"), True),
    ],
)
def test_a_server_that_is_measured_has_the_priority_of_users_servers(
    variables: Set, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], lowered: bool
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "nice", lambda by: asked.append(by) or 0)
    variables(nice=7)
    CliRunner().invoke(main, (*words, "--no-such-option"))
    CliRunner().invoke(main, words if "--file" in words else (*words, "--help"))
    assert (7 in asked) == lowered


def test_exported_graphs_are_run_instead_of_the_caches(variables: Set, tmp_path: Path) -> None:
    variables(stages=tmp_path)
    with pytest.raises(WeightsError, match="no export that is whole"):
        StagedDecoder(EngineConfig.from_settings())
    with pytest.raises(WeightsError, match="no export that is whole"):
        StagedDecoder(EngineConfig(stages=tmp_path))


# ------------------------------------------------------------------------------- what ONNX Runtime gets


def options_of(graph: str, config: EngineConfig, stage: str = "") -> ort.SessionOptions:
    """Of a session that was made, as ONNX Runtime has them."""
    return providers.cpu_session(graph, config, stage=stage).get_session_options()


LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


@pytest.mark.parametrize("level", LEVELS)
def test_a_session_has_the_level_of_optimisation(variables: Set, graph: str, level: str) -> None:
    variables(optimisation=level)
    for config in (EngineConfig.from_settings(), EngineConfig(optimisation=level)):  # type: ignore[arg-type]
        assert options_of(graph, config).graph_optimization_level == LEVELS[level]


@pytest.mark.parametrize("on", [False, True])
def test_a_session_plans_memory_only_if_it_is_told_to(variables: Set, graph: str, on: bool) -> None:
    variables(memory_pattern=on)
    for config in (EngineConfig.from_settings(), EngineConfig(memory_pattern=on)):
        assert options_of(graph, config).enable_mem_pattern is on


@pytest.mark.parametrize(
    ("spinning", "stage", "spins", "stopped"),
    [
        (False, "", "0", None),
        (False, "prosody", "1", "1"),
        (True, "", "1", None),
        (True, "prosody", "1", None),
    ],
)
def test_threads_spin_only_if_they_are_told_to_but_for_moments_of_two_stages(
    variables: Set, graph: str, spinning: bool, stage: str, spins: str, stopped: str | None
) -> None:
    variables(spinning=spinning)
    for config in (EngineConfig.from_settings(), EngineConfig(spinning=spinning)):
        options = options_of(graph, config, stage)
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == spins
        if stopped:
            assert options.get_session_config_entry("session.force_spinning_stop") == stopped
        else:
            with pytest.raises(RuntimeError, match="force_spinning_stop"):
                options.get_session_config_entry("session.force_spinning_stop")


def test_a_session_has_as_many_threads_as_it_is_told_and_every_core_otherwise(
    variables: Set, graph: str
) -> None:
    assert options_of(graph, EngineConfig()).intra_op_num_threads == len(os.sched_getaffinity(0))
    variables(threads=3)
    for config in (EngineConfig.from_settings(), EngineConfig(threads=3)):
        options = options_of(graph, config)
        assert (options.intra_op_num_threads, options.inter_op_num_threads) == (3, 1)


ALONE = """
import json, os, sys
import numpy as np
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.sessions.providers import cpu_session

def threads():
    return len(os.listdir("/proc/self/task"))

before = threads()
session = cpu_session(sys.argv[1], EngineConfig.from_settings())
found = {"threads": threads() - before, "error": ""}
try:
    session.run(None, {
        "input_ids": np.full((1, 400), 50), "style": np.zeros((1, 256), np.float32),
        "speed": np.ones(1, np.float32),
    })
except Exception as error:
    found["error"] = str(error)
print(json.dumps(found))
"""


def alone(graph: str, **changed: str) -> dict[str, Any]:
    """A session in a process of its own, which speaks once: its threads, and the error if there was one."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE, graph],
        env={**os.environ, **{PREFIX + name.upper(): value for name, value in changed.items()}},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in Linux' /proc")
def test_the_process_has_so_many_threads(graph: str) -> None:
    # The caller is one of them
    assert [alone(graph, threads=str(count))["threads"] for count in (1, 4)] == [0, 3]


def test_the_arena_is_bounded(graph: str) -> None:
    assert not alone(graph)["error"]
    assert "memory" in alone(graph, memory_arena_size_mb="1")["error"].lower(), "it needs some ten MiB"


def test_a_bounded_arena_is_what_the_session_takes_memory_from(
    graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has one arena, so this test registers none."""
    bounded: list[int] = []
    monkeypatch.setattr(providers, "bound_arena", bounded.append)
    options = providers.session_options(EngineConfig(memory_arena_size_mb=64))
    assert options.get_session_config_entry("session.use_env_allocators") == "1"
    assert bounded == [64]


# ------------------------------------------------------------------------------------------- providers


@pytest.mark.parametrize(
    ("field", "value", "name", "passed"),
    [
        ("coreml_compute_units", "CPUAndGPU", "MLComputeUnits", "CPUAndGPU"),
        ("coreml_model_format", "NeuralNetwork", "ModelFormat", "NeuralNetwork"),
        ("coreml_specialization", "FastPrediction", "SpecializationStrategy", "FastPrediction"),
        ("coreml_static_shapes", "1", "RequireStaticInputShapes", "1"),
        ("coreml_subgraphs", "1", "EnableOnSubgraphs", "1"),
        ("coreml_profile", "1", "ProfileComputePlan", "1"),
        ("coreml_low_precision", "1", "AllowLowPrecisionAccumulationOnGPU", "1"),
    ],
)
def test_core_ml_is_passed_what_the_variable_says(
    variables: Set, field: str, value: str, name: str, passed: str
) -> None:
    variables(**{field: value})
    found = providers.provider_options(CORE_ML, EngineConfig.from_settings())
    assert found[name] == passed


def test_core_ml_keeps_compiled_models_in_the_folder_of_the_variable(variables: Set, tmp_path: Path) -> None:
    variables(coreml_cache=tmp_path)
    found = providers.provider_options(CORE_ML, EngineConfig.from_settings())
    assert Path(found["ModelCacheDirectory"]).parent == tmp_path


def test_the_provider_of_the_variable_is_asked_for(variables: Set) -> None:
    variables(provider="mlx")
    for config in (EngineConfig.from_settings(), EngineConfig(provider="mlx")):
        with pytest.raises(ProviderError, match="'mlx'"):
            choose(config)


def test_stages_are_placed_as_the_variable_says(variables: Set) -> None:
    variables(placement="prosody")
    config = EngineConfig.from_settings()
    assert config.accelerates("prosody")
    assert not config.accelerates("vocoder")


def test_fixed_windows_are_made_where_they_are_asked_for(
    variables: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(config: EngineConfig, say: object = None) -> Path:
        raise Asked

    monkeypatch.setattr("kokoro_lab.model.static_vocoder.static_folder", made)
    variables(fixed_windows="on")
    for config in (EngineConfig.from_settings(), EngineConfig(fixed_windows="on")):
        with pytest.raises(Asked):
            fixed_windows(config)


def test_providers_are_chosen_by_cost_where_that_is_asked_for(
    variables: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(*_: object) -> None:
        raise Asked

    monkeypatch.setattr("kokoro_lab.speech.engine.chosen_by_cost", chosen)
    monkeypatch.setattr("kokoro_lab.speech.engine.missing", lambda *_: ())
    variables(provider_choice="measured")
    for config in (None, EngineConfig(provider_choice="measured")):
        with pytest.raises(Asked):
            load_engine(config=config)


def test_costs_are_measured_anew_once_they_are_no_longer_believed(
    variables: Set, graph: str, tmp_path: Path
) -> None:
    variables(threads=1, home=tmp_path, variant="fp32")
    asked: list[int] = []

    def voice() -> tiny_voice.Voice:
        asked.append(1)
        return tiny_voice.voice("hum")

    def measured(config: EngineConfig) -> int:
        decoder: PlacedDecoder = WholeGraph(Path(graph), config)
        before = len(asked)
        chosen_by_cost(config, "hum", voice, lambda _: decoder, ["cpu", "coreml"])
        return len(asked) - before

    believed = EngineConfig.from_settings()
    assert [measured(believed) for _ in range(2)] == [2, 0]
    assert measured(replace(believed, cost_ttl_s=0)) == 2
    variables(cost_ttl_s=0)
    assert measured(EngineConfig.from_settings()) == 2


@pytest.mark.model
@pytest.mark.test_all
def test_a_second_prosody_model_has_the_threads_it_is_given(variables: Set) -> None:
    variables(next_threads=3, variant="fp32")
    for config in (EngineConfig.from_settings(), EngineConfig(variant="fp32", next_threads=3)):
        staged = StagedDecoder(config)
        assert staged._next_prosody is not staged.prosody
        session = staged._next_prosody.sessions[0]
        assert session._session.get_session_options().intra_op_num_threads == 3


def test_texts_are_divided_by_length_as_the_variable_says(variables: Set) -> None:
    variables(by_length="threads=1 < 200; threads=3")
    below, above = EngineConfig.from_settings().sides() or (EngineConfig(), EngineConfig())
    assert (below.threads, above.threads) == (1, 3)


# ---------------------------------------------------------------------------------- what a listener gets


def test_windows_are_as_long_as_the_variable_says(variables: Set) -> None:
    variables(window_frames=40)
    for config in (EngineConfig.from_settings(), EngineConfig(window_frames=40)):
        lengths = [stop - start for start, stop in WindowSizes.of(config, urgent=True).spans(0, 1000)]
        assert max(lengths) == 40


def test_pauses_are_ruled_where_the_variable_says_so(variables: Set, hum: Engine) -> None:
    def length_s(config: EngineConfig) -> float:
        engine = Engine(replace(hum.parts, config=replace(hum.config, pauses=config.pauses)))
        return engine.synthesize("The first one is here. The second one is there.", voice="hum").duration_s

    usual_s = length_s(EngineConfig())
    variables(pauses="ruled")
    for config in (EngineConfig.from_settings(), EngineConfig(pauses="ruled")):
        assert length_s(config) == pytest.approx(usual_s - 0.08, abs=0.012)


@pytest.fixture
def humming(hum: Engine) -> Callable[..., Engine]:
    """The humming engine with other fields of its configuration."""

    def made(**changed: Any) -> Engine:
        return Engine(replace(hum.parts, config=replace(hum.config, **changed)))

    return made


def test_chunks_are_as_long_as_the_configuration_says(humming: Callable[..., Engine]) -> None:
    chunk = next(iter(humming(chunk_ms=80).stream(SPOKEN, voice="hum")))
    assert len(chunk.samples) == 0.080 * chunk.sample_rate_hz


def test_first_audio_is_kept_as_long_as_the_variable_says(
    variables: Set, humming: Callable[..., Engine]
) -> None:
    variables(first_audio_ttl_s=0)
    kept = []
    for ttl_s in (60.0, 0.0, EngineConfig.from_settings().first_audio_ttl_s):
        engine = humming(first_audio_ttl_s=ttl_s)
        kept.append([engine.stream(SPOKEN, voice="hum").joined().report.first_audio for _ in range(2)])
    assert kept == [["computed", "cache"], ["computed"] * 2, ["computed"] * 2]


def test_the_engine_is_made_with_what_the_variables_say_of_the_system(variables: Set) -> None:
    """What each field does is in `tests/scheduling/test_priority.py` and in `tests/native`."""
    variables(cores="0", qos="interactive", native="off", instruction_set="avx2")
    config = EngineConfig.from_settings()
    assert (config.core_numbers, config.qos, config.native) == ((0,), "interactive", "off")
    assert config.instruction_set == "avx2"


# ------------------------------------------------------------------------------------- the command line


def test_the_player_listens_on_the_port_of_the_variable(
    variables: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports: list[int] = []
    monkeypatch.setattr("kokoro_lab.playback.player.main", lambda sink, port, **_: ports.append(port))
    variables(player_port=18_081)
    assert CliRunner().invoke(main, ["player", "--sink", "null"]).exit_code == 0
    assert ports == [18_081]


def test_wyoming_is_spoken_on_the_port_of_the_variable(
    variables: Set, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, object]] = []
    monkeypatch.setattr("kokoro_lab.serve.main", lambda **options: asked.append(options))
    variables(wyoming_port=10_201)
    assert CliRunner().invoke(main, ["wyoming"]).exit_code == 0
    assert asked == [{"host": "127.0.0.1", "port": 10_201, "variant": None, "wyoming": True}]


def run(*arguments: str, **changed: str) -> str:
    """Standard error of a program, with these settings."""
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **{PREFIX + name.upper(): value for name, value in changed.items()}},
        input="Tea.\n",
        capture_output=True,
        text=True,
        check=True,
    ).stderr


SERVES = """
import logging
from kokoro_lab import serve
class Nobody:
    def __init__(self, *_): ...
    def run(self): ...
serve._Gunicorn = Nobody
serve.main(port=0)
logging.getLogger("kokoro_lab.any").info("for operators")
logging.getLogger("kokoro_lab.any").debug("for developers")
"""


def test_the_log_of_the_server_is_json_or_for_people_and_deep_if_it_is_told_to() -> None:
    *_, line = run("-c", SERVES).splitlines()
    assert json.loads(line)["message"] == "for operators"
    *_, plain, deep = run("-c", SERVES, log_format="text", verbose_logs="1").splitlines()
    assert plain.endswith("INFO kokoro_lab.any: for operators")
    assert deep.endswith("DEBUG kokoro_lab.any: for developers")


def test_a_command_logs_more_if_it_is_told_to() -> None:
    assert not run("-m", "kokoro_lab", "text", "--language", "en")
    program = (
        "import logging; from kokoro_lab.__main__ import main; main(['doctor', '-h'], standalone_mode=False)"
    )
    told = f"{program}; logging.getLogger('kokoro_lab.any').debug('deep')"
    assert "DEBUG kokoro_lab.any: deep" in run("-c", told, verbose_logs="1")
    assert "deep" not in run("-c", told)


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("KOKORO_THREDS", "KOKORO_THREADS"),
        ("kokoro_variants", "KOKORO_VARIANT"),
        ("KOKORO_FIRST_WINDOW_FRAMES", "KOKORO_WINDOW_FRAMES"),
        ("KOKORO_XYZZY", "docs/configuration.md"),
    ],
)
def test_a_variable_that_sets_nothing_is_named_with_the_nearest_that_does(
    monkeypatch: pytest.MonkeyPatch, variable: str, near: str
) -> None:
    before = misspelt()
    monkeypatch.setenv(variable, "1")
    (sentence,) = [line for line in misspelt() if line not in before]
    assert sentence.startswith(f"{variable} sets nothing")
    assert near in sentence


def test_commands_and_the_log_of_the_server_name_what_sets_nothing() -> None:
    (warned,) = run("-m", "kokoro_lab", "text", "--language", "en", threds="1").splitlines()
    assert warned.startswith("Warning: KOKORO_THREDS sets nothing")
    warned, *_ = run("-c", SERVES, threds="1").splitlines()
    assert json.loads(warned)["message"].startswith("KOKORO_THREDS sets nothing")


def test_variables_that_set_something_are_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    before = misspelt()
    for name in Settings.model_fields:
        monkeypatch.setenv(PREFIX + name.upper(), "x")
    monkeypatch.setenv("kokoro_threads", "1")
    monkeypatch.setenv("KOKORO_SPEED", "1")  # of the Raycast commands
    assert misspelt() == before


def test_what_the_tuner_may_set_are_fields_of_an_engine() -> None:
    assert set(TUNABLE) <= {field.name for field in dataclasses.fields(EngineConfig)}
