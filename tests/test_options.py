"""Options of the wrong type, or out of range: one clear error names the option, and nothing is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kokoro_lab.datatypes import Utterance
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError, SettingsError
from kokoro_lab.speech.engine import Engine, load_engine

TEXT = "The kettle is on."
WRONG: dict[str, tuple[Any, ...]] = {
    "voice": (3, None, b"af_heart", ["af_heart"]),
    "speed": ("x", None, True, [1.0], float("nan"), 5),
    "language": (3, b"en", ["en-us"]),
    "input_format": (3, None, [], "html"),
    "code": (3, None, "say"),
    "emoji": (3, None, True, "loud"),
    "loudness": (3, None, {}, "loud"),
    "statistics": (3, None, True, "guessed"),
    "seed": (1.5, "1", None, True, -1),
    "lexicon": ("nginx", 3, b"x", True),
    "detect_languages": (True, None, "on"),
}
STREAM_ONLY: dict[str, tuple[Any, ...]] = {
    "chunk_s": ("x", True, [0.05], 0.5, float("nan")),
    "streamed": ("no", 1, None),
    "cached": ("no", 0, None),
    "place": ("3.57", 3, (0, 0)),
    "heard_samples": ("3", 1.5, -1, None),
    "stop": (True, 3, "stop"),
}


def cases(options: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [pytest.param(n, v, id=f"{n}={v!r}") for n, values in options.items() for v in values]


def refused(name: str, error: KokoroLabError) -> None:
    assert error.field == name
    assert error.allowed or error.mend, "what would have been right is said"


@pytest.mark.parametrize(("name", "value"), cases(WRONG | STREAM_ONLY))
def test_a_stream_refuses_what_is_no_such_option(hum: Engine, name: str, value: Any) -> None:
    with pytest.raises(KokoroLabError) as wrong:
        hum.stream(TEXT, **{"voice": "hum", name: value})
    refused(name, wrong.value)


@pytest.mark.parametrize(("name", "value"), cases(WRONG | {"stop": STREAM_ONLY["stop"]}))
def test_a_file_refuses_the_same(hum: Engine, name: str, value: Any) -> None:
    with pytest.raises(KokoroLabError) as wrong:
        hum.synthesize(TEXT, **{"voice": "hum", name: value})
    refused(name, wrong.value)


@pytest.mark.parametrize(("name", "value"), cases(WRONG))
def test_an_utterance_that_was_made_elsewhere_is_looked_at_too(hum: Engine, name: str, value: Any) -> None:
    with pytest.raises(KokoroLabError) as wrong:
        hum.stream(Utterance(TEXT, **{"voice": "hum", name: value}))
    refused(name, wrong.value)


@pytest.mark.parametrize("text", [3, None, b"Hello.", bytearray(b"Hello.")])
def test_a_text_is_a_str(hum: Engine, text: Any) -> None:
    for speak in (hum.stream, hum.synthesize):
        with pytest.raises(KokoroLabError) as wrong:
            speak(text, voice="hum")
        refused("text", wrong.value)


def test_numbers_of_numpy_are_numbers(hum: Engine) -> None:
    plain = hum.synthesize(TEXT, voice="hum", speed=1.5, seed=3)
    same = hum.synthesize(TEXT, voice="hum", speed=np.float32(1.5), seed=np.int64(3))
    assert np.array_equal(plain.samples, same.samples)


CONFIG: dict[str, tuple[Any, ...]] = {
    "variant": (3, None, "int9"),
    "provider": (3, None),
    "placement": (3, None),
    "fixed_windows": (True, "yes"),
    "coreml": ("MLProgram", [1]),
    "threads": ("2", 1.5, True, -1),
    "memory_arena_size_mb": ("64", 1.5, -1),
    "window_frames": ("120", 1.5, 0),
    "chunk_ms": ("50", 50.5, True, 29, 121),
    "pauses": (True, "longer"),
    "next_threads": ("1", -1),
    "by_length": (3, None),
    "provider_choice": (True, "cheapest"),
    "cost_ttl_s": ("1", True, -1.0, float("nan")),
    "qos": (True, "high"),
    "cores": (3, [0, 1]),
    "optimisation": (3, "most"),
    "memory_pattern": ("yes", 1),
    "spinning": ("no", 0),
    "native": (True, "on"),
    "instruction_set": (2, "sse"),
    "stages": ("folder", 3),
    "first_audio_ttl_s": ("1", -1.0),
    "source": (3, "mirror"),
    "profiles": ("folder", 3),
    "home": ("folder", 3),
    "tuned": (True, None),
}


@pytest.mark.parametrize(("name", "value"), cases(CONFIG))
def test_a_configuration_refuses_what_is_no_such_option(name: str, value: Any) -> None:
    with pytest.raises(SettingsError) as wrong:
        EngineConfig(**{name: value})
    assert wrong.value.field == name
    assert wrong.value.allowed


def test_every_option_of_a_configuration_stands_here() -> None:
    assert set(CONFIG) == set(EngineConfig.__dataclass_fields__)
    assert set(WRONG) | {"text"} == set(Utterance.__dataclass_fields__)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("variant", 3),
        ("provider", 3),
        ("config", "int8"),
        ("config", {"threads": 2}),
        ("tuned", "no"),
        ("say", "print"),
        ("begins", 3),
    ],
)
def test_loading_refuses_the_same(name: str, value: Any, tmp_path: Path) -> None:
    with pytest.raises(KokoroLabError) as wrong:
        load_engine(**{"config": EngineConfig(home=tmp_path), name: value})
    refused(name, wrong.value)
