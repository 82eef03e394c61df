"""Kokoro-82M measured, tuned and served.

    import kokoro_lab as kl
    engine = kl.load_engine()
    clip = engine.synthesize("Hello.")        # plays itself in a notebook
    for chunk in engine.stream("A long text ..."):
        ...

Importing does no work: what is named here is loaded when it is first used.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from kokoro_lab._version import __version__ as __version__

if TYPE_CHECKING:
    from kokoro_lab.containers import save as save
    from kokoro_lab.datatypes import AudioChunk as AudioChunk
    from kokoro_lab.datatypes import Clip as Clip
    from kokoro_lab.datatypes import SynthesisReport as SynthesisReport
    from kokoro_lab.datatypes import Utterance as Utterance
    from kokoro_lab.engine_config import EngineConfig as EngineConfig
    from kokoro_lab.errors import KokoroLabError as KokoroLabError
    from kokoro_lab.speech.engine import Engine as Engine
    from kokoro_lab.speech.engine import load_engine as load_engine

# Before ONNX Runtime is imported: it would keep an id of this machine in the user's home folder, and events
# for its maker
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_HOMES = {
    "AudioChunk": "datatypes",
    "Clip": "datatypes",
    "Engine": "speech.engine",
    "EngineConfig": "engine_config",
    "KokoroLabError": "errors",
    "SynthesisReport": "datatypes",
    "Utterance": "datatypes",
    "load_engine": "speech.engine",
    "save": "containers",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
