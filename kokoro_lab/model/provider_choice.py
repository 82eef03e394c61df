"""Which provider an engine takes: the one that is asked for, or with `auto` the one that was measured.

`auto` never guesses. Core ML has been seen to make this model slower (a graph of changing lengths falls into
a hundred pieces), to give wrong samples in 16 bits, and to need seconds at the first start, depending on
machine and version. So `auto` is the CPU, which is known to work everywhere, on a Mac as well, until a
comparison on this very machine has found another one better and kept that with `keep_measured`. What it
found does not count any more when ONNX Runtime, the system or the machine change.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime as ort

from kokoro_lab.config import EngineConfig
from kokoro_lab.datatypes import Fallback
from kokoro_lab.errors import ProviderError
from kokoro_lab.model.provider_registry import CPU, Provider, first_line, listed, named, require
from kokoro_lab.model.weights import weights_home
from kokoro_lab.provenance import machine

AUTO = "auto"
FILE_NAME = "measured_provider.json"
PROVIDER_STAGE = "provider"
"""The stage of every fallback from one provider to another."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider that was chosen, and why.

    Parameters
    ----------
    requested : str
        What the configuration says.
    provider : Provider
    because : str
    fallbacks : tuple of Fallback
        What would have been chosen, and why it was not.
    """

    requested: str
    provider: Provider
    because: str
    fallbacks: tuple[Fallback, ...] = ()

    @property
    def explicit(self) -> bool:
        """Whether it was asked for by name: then nothing may stand in for it when it cannot be loaded."""
        return not is_auto(self.requested)


def is_auto(requested: str) -> bool:
    """Whether a configuration leaves the provider to us."""
    return requested.strip().lower() == AUTO


def choose(config: EngineConfig) -> Choice:
    """The provider for a configuration.

    Raises
    ------
    ProviderError
        One was asked for by name, and there is none of that name or it is not to be had here.
    """
    if not is_auto(config.provider):
        return Choice(config.provider, require(config.provider), "it was asked for")
    path = _path(config.home)
    if not path.exists():
        return Choice(AUTO, CPU, "no other provider has been measured to be better on this machine")
    try:
        kept: dict[str, Any] = json.loads(path.read_text("utf-8"))
        provider, because, circumstances = named(kept["provider"]), str(kept["because"]), kept["measured_on"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ProviderError) as error:
        return _cpu_instead(f"{FILE_NAME} cannot be read ({first_line(error)})")
    if circumstances != _circumstances():
        return Choice(AUTO, CPU, "what was measured was measured with another system or ONNX Runtime")
    found = listed(provider)
    if not found.available:
        return _cpu_instead(f"{provider.full_name} was measured to be better, but {found.why}")
    return Choice(AUTO, provider, because)


def keep_measured(provider: str, because: str, home: Path | None = None) -> Path:
    """Have `auto` take a provider on this machine from now on.

    Parameters
    ----------
    provider : str
        A name of the registry; `cpu` says that nothing is better.
    because : str
        The figures, in a sentence.
    home : Path, optional
        Cache folder of the engines that this is for.

    Returns
    -------
    Path
        The file that says so. Remove it, and nothing has been measured.

    Raises
    ------
    ProviderError
        There is none of that name.
    """
    path = _path(home)
    kept = {
        "provider": named(provider).name,
        "because": because,
        "measured_on": _circumstances(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    os.replace(temporary, path)
    return path


def _circumstances() -> dict[str, Any]:
    """What must not have changed for a measurement to count."""
    return {"onnxruntime": ort.__version__, **machine()}


def _cpu_instead(why: str) -> Choice:
    return Choice(AUTO, CPU, why, (Fallback(PROVIDER_STAGE, f"{CPU.full_name}: {why}"),))


def _path(home: Path | None) -> Path:
    return weights_home(home) / FILE_NAME
