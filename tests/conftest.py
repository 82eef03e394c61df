"""What tests share: a voice that hums, the front end loaded once, and the engine on the real weights."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxruntime as ort
import pytest

from kokoro_lab.datatypes import Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.signatures import TRUNK_FRAME_SAMPLES
from kokoro_lab.lab.gates.intelligibility import load_recogniser
from kokoro_lab.lab.gates.perceptual import load_voice_encoder
from kokoro_lab.metrics.intelligibility import Recogniser
from kokoro_lab.metrics.speaker import VoiceEncoder
from kokoro_lab.model.vocoder import Vocoder
from kokoro_lab.native.operators import native_operators
from kokoro_lab.sessions import providers
from kokoro_lab.speech.engine import Engine, load_engine
from tests import tiny_voice
from tests.sessions.fake_provider import NAME, FakeProvider
from tests.tested_commit import pytest_configure  # noqa: F401  # pytest finds it by its name here


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A notebook or a browser takes seconds to start: those tests are left to `make test-all`."""
    for item in items:
        if item.get_closest_marker("notebook") or item.get_closest_marker("browser"):
            item.add_marker("test_all")


def pytest_runtest_setup() -> None:
    """Where `TESTS_BEGIN_UNTIL_S` says so, in seconds since 1970, no test begins later.

    `.ci/run` has to end: on a machine of a third of the usual speed, `make test-all` takes more time than is
    left. The report in results/tests names what was skipped.
    """
    if time.time() > float(os.environ.get("TESTS_BEGIN_UNTIL_S", "inf")):
        pytest.skip("it is too late to begin this test: `make test-all` runs it")


@pytest.fixture(autouse=True, scope="session")
def _as_urgent_as_it_began() -> Iterator[None]:
    """`run` and `bench` lower the priority of their process: here, of all tests behind them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "nice", lambda by: 0)
        yield


@pytest.fixture(autouse=True, scope="session")
def _interrupted_as_in_a_terminal() -> None:
    """In the background, a shell has what it starts ignore Ctrl-C, and so would all that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def without_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `pip install kokoro-lab`, to who imports the lab from now on."""
    for name in [name for name in sys.modules if name.startswith("kokoro_lab.lab")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.fixture(scope="session")
def front_end() -> FrontEnd:
    return FrontEnd()


@pytest.fixture(scope="session")
def hum(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """An engine on the tiny voice: the whole pipeline, in milliseconds."""
    return tiny_voice.engine(tmp_path_factory.mktemp("hum") / "hum.onnx")


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The engine on the real fp32 weights; fetches them if they are not in the cache."""
    # Without the cache of first audio, so that every test hears what was computed for it
    return load_engine(config=replace(EngineConfig.from_settings(), variant="fp32", first_audio_ttl_s=0))


@pytest.fixture(scope="session")
def library() -> Path:
    """Our own operators, where they can be built."""
    built = native_operators(EngineConfig())
    if built.library is None:
        pytest.skip(f"our own operators cannot be built here: {built.reason}")
    return built.library


@pytest.fixture
def coreml(monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    """Core ML seems to be here, and each session on it does as the test says."""
    fake = FakeProvider()
    monkeypatch.setattr(ort, "get_available_providers", lambda: [NAME, "CPUExecutionProvider"])
    monkeypatch.setattr(providers, "provider_session", fake.session)
    monkeypatch.setattr(providers, "cpu_session", fake.on_cpu)
    return fake


@pytest.fixture
def decoded_frames(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Lengths of the windows that are decoded from here on, in trunk frames."""
    found: list[int] = []
    window = Vocoder._window

    def counted(*arguments: Any, **named: Any) -> Samples:
        samples = window(*arguments, **named)
        found.append(len(samples) // TRUNK_FRAME_SAMPLES)
        return samples

    monkeypatch.setattr(Vocoder, "_window", counted)
    return found


@pytest.fixture(scope="session")
def recogniser() -> Recogniser:
    """Whisper base; fetched if it is not in the cache."""
    return load_recogniser()


@pytest.fixture(scope="session")
def voice_encoder() -> VoiceEncoder:
    """What compares voices; fetched if it is not in the cache."""
    return load_voice_encoder()


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def mutations(repository: Path) -> ModuleType:
    """`scripts/mutations.py`, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("mutations", repository / "scripts" / "mutations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module  # its dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
