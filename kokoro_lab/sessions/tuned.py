"""The settings that `kokoro-lab tune` found for this machine, kept beside the weights and read at loading.

<home>/tuned.json
    {"about": ..., "configurations": [{"made_for": ..., "settings": ..., "gains": ..., "found_at": ...}]}

A configuration is used only for the model, variant, ONNX Runtime and processor that it was found with, and
only for fields that the user has not set. `EngineConfig.tuned`, and so every report and result, says which
were used.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from kokoro_lab.containers.plain_json import FileModel, write_json
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import KokoroLabError, SettingsError
from kokoro_lab.provenance import machine, versions
from kokoro_lab.sessions.provider_registry import choose
from kokoro_lab.weights.disk import told_apart
from kokoro_lab.weights.store import weights_home

NAME = "tuned.json"
ABOUT = "Settings that `kokoro-lab tune` found to beat the defaults; KOKORO_TUNED=off leaves them out"


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _truth(value: Any) -> bool:
    return type(value) is bool


def _runs_here(value: Any) -> bool:
    return isinstance(value, str) and bool(choose(EngineConfig(provider=value)))


TUNABLE: Mapping[str, Callable[[Any], bool]] = {
    "chunk_ms": _whole(30, 120),
    "provider": _runs_here,
    "threads": _whole(0, 256),
    "spinning": _truth,
    "memory_pattern": _truth,
    "window_frames": _whole(1, 2400),
}
"""Field of `EngineConfig` that may be tuned → a function that says whether a value is allowed."""


@dataclass(frozen=True, slots=True)
class TuningConditions:
    """The conditions under which a configuration was found, and is used.

    Parameters
    ----------
    model_sha256, variant, native : str
        The weights, the precision, and whether our own operators may be used.
    onnxruntime : str
        Version of ONNX Runtime.
    cpu, architecture, system : str
    cores : int
        Number of cores on which the process may run.
    """

    model_sha256: str
    variant: str
    native: str
    onnxruntime: str
    cpu: str
    architecture: str
    system: str
    cores: int

    @classmethod
    def of(cls, config: EngineConfig, model_sha256: str) -> TuningConditions:
        """The conditions of this machine, and of the model that `config` runs."""
        here = machine()
        return cls(
            model_sha256=model_sha256,
            variant=config.variant,
            native=config.native,
            onnxruntime=versions()["onnxruntime"],
            cpu=here["cpu"],
            architecture=here["architecture"],
            system=platform.system(),
            cores=here["cores"],
        )

    def differences(self, other: TuningConditions) -> list[str]:
        """The fields in which these conditions and `other` differ, with both values."""
        return [
            f"{field.name} {getattr(self, field.name)!r}, here {getattr(other, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != getattr(other, field.name)
        ]


@dataclass(frozen=True, slots=True)
class TunedConfiguration:
    """A configuration that was adopted.

    Parameters
    ----------
    made_for : TuningConditions
    settings : mapping
        Field of `TUNABLE` → value.
    gains : mapping
        The measured gains over the defaults, as text for people.
    found_at : str
        When the configuration was found, in ISO 8601.
    """

    made_for: TuningConditions
    settings: Mapping[str, Any]
    gains: Mapping[str, Any]
    found_at: str


class TunedFile(FileModel):
    """The content of `tuned.json`."""

    about: str = ABOUT
    configurations: list[TunedConfiguration]


def tuned_path(home: Path | None = None) -> Path:
    """The path of `tuned.json`, which may not exist."""
    return weights_home(home) / NAME


def read_tuned(home: Path | None = None) -> list[TunedConfiguration]:
    """All configurations that were adopted so far, for any machine.

    Raises
    ------
    SettingsError
        The file is incomplete, or another program wrote it.
    """
    path = tuned_path(home)
    if not path.exists():
        return []
    return TunedFile.read(path, SettingsError).configurations


def adopt(tuned: TunedConfiguration, home: Path | None = None) -> Path:
    """Write a configuration to `tuned.json`, where it replaces an earlier one for the same conditions. A file
    that cannot be read is overwritten.

    Raises
    ------
    WeightsError
        The folder cannot be written, or its disk is full.
    """
    return _rewrite(home, lambda kept: [t for t in kept if t.made_for != tuned.made_for] + [tuned])


def forget(made_for: TuningConditions, home: Path | None = None) -> bool:
    """Go back to the defaults; returns whether anything was tuned. An unreadable file is overwritten."""
    try:
        there = any(t.made_for == made_for for t in read_tuned(home))
    except SettingsError:
        there = True
    if there:
        _rewrite(home, lambda kept: [t for t in kept if t.made_for != made_for])
    return there


def with_tuned(config: EngineConfig, model_sha256: str, kept: Collection[str] = ()) -> EngineConfig:
    """`config` with the tuned values; its field `tuned` says which were used, or why none was.

    Parameters
    ----------
    config : EngineConfig
        The configuration of the settings.
    model_sha256 : str
        SHA-256 of its weights.
    kept : collection of str
        Fields that a user has set, and that are therefore kept.
    """
    try:
        found = _found(config, model_sha256)
        if found is None:
            return replace(config, tuned=_nothing_for(config))
        _require_valid(found.settings)
        used = {name: value for name, value in found.settings.items() if name not in kept}
        said = f"{_in_words(used) or 'nothing'} of {found.found_at}"
        if held := sorted(found.settings.keys() & set(kept)):
            said += f"; set otherwise by the user: {', '.join(held)}"
        return replace(config, **used, tuned=said)
    except (ValueError, KokoroLabError) as error:
        return replace(config, tuned=f"no: {error}")


def _found(config: EngineConfig, model_sha256: str) -> TunedConfiguration | None:
    """The configuration for these conditions; None if none was ever found for the variant."""
    here = TuningConditions.of(config, model_sha256)
    differences = []
    for each in read_tuned(config.home):
        if not (others := each.made_for.differences(here)):
            return each
        if each.made_for.variant == config.variant:
            differences.append(others)
    if not differences:
        return None
    nearest = min(differences, key=len)
    raise ValueError(f"it was found with {'; '.join(nearest)}. Run `kokoro-lab tune` here")


def _nothing_for(config: EngineConfig) -> str:
    others = sorted({each.made_for.variant for each in read_tuned(config.home)})
    but = f", only for {', '.join(others)}" if others else ""
    return f"nothing is adopted for {config.variant}{but}; `kokoro-lab tune` finds what suits this machine"


def _require_valid(found: Mapping[str, Any]) -> None:
    """Refuse a kept configuration with an unknown field or value.

    Raises
    ------
    ValueError, ProviderError
        The field or the value is unknown.
    """
    for name, value in found.items():
        if name not in TUNABLE or not TUNABLE[name](value):
            raise ValueError(
                f"{NAME} has {name}={value!r}, which this version does not take. Run `kokoro-lab tune` again"
            )


def _in_words(chosen: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in chosen.items())


def _rewrite(
    home: Path | None, change: Callable[[list[TunedConfiguration]], list[TunedConfiguration]]
) -> Path:
    path = tuned_path(home)
    with told_apart(path.parent, []):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            try:
                kept = read_tuned(home)
            except SettingsError:
                kept = []
            write_json(path, TunedFile(configurations=change(kept)).model_dump())
    return path
