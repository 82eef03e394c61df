"""The search space of the tuner: the values of each setting that the search may choose from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kokoro_lab.engine_config import EngineConfig, usable_cores
from kokoro_lab.errors import ParameterError
from kokoro_lab.sessions import provider_registry
from kokoro_lab.sessions.tuned import TUNABLE
from kokoro_lab.typed import require_choice

Choice = int | bool | str
Settings = Mapping[str, Choice]


@dataclass(frozen=True, slots=True)
class Space:
    """Values that the tuner may choose from, for each setting.

    Parameters
    ----------
    chunk_ms, provider, threads, spinning, memory_pattern, window_frames : tuple
        Fields of `EngineConfig`, and what each may be.

    Raises
    ------
    ParameterError
        A setting without a value, or a value that the engine would refuse.
    """

    chunk_ms: tuple[int, ...] = (30, 40, 50, 80, 120)
    provider: tuple[str, ...] = ("cpu",)
    threads: tuple[int, ...] = (1,)
    spinning: tuple[bool, ...] = (False, True)
    memory_pattern: tuple[bool, ...] = (False, True)
    window_frames: tuple[int, ...] = (60, 90, 120, 180, 240)

    def __post_init__(self) -> None:
        for name, values in self.choices().items():
            wrong = [value for value in values if not TUNABLE[name](value)]
            if wrong or not values:
                raise ParameterError(
                    f"{name} cannot be {wrong[0]!r}." if wrong else f"{name} has no value to try.",
                    field=name,
                    value=list(values),
                )

    @classmethod
    def here(cls, providers: Sequence[str]) -> Space:
        """The space for this machine. The number of threads may be 1, half of the cores, one less than all,
        or all."""
        cores = usable_cores()
        threads = {max(1, count) for count in (1, cores // 2, cores - 1, cores)}
        return cls(provider=tuple(providers), threads=tuple(sorted(threads)))

    def narrowed(self, tried: str) -> Space:
        """The space with other values of some settings; `tried` is a text such as `threads=1,2
        spinning=false`.

        Raises
        ------
        ParameterError
            `tried` names an unknown setting, or a value that the setting cannot have.
        """
        given: dict[str, Any] = {}
        for each in tried.split():
            name, _, values = each.partition("=")
            require_choice("tried", name, self.choices(), f"{name!r} cannot be tuned.")
            given[name] = tuple(_value(name, value) for value in values.split(",") if value)
        return replace(self, **given)

    def including(self, settings: Settings) -> Space:
        """The space with the values of `settings` added, so that the defaults are one of its
        configurations."""
        choices = self.choices()
        more: dict[str, Any] = {
            name: (*choices[name], value) for name, value in settings.items() if value not in choices[name]
        }
        return replace(self, **more)

    @property
    def size(self) -> int:
        """How many configurations the space has."""
        return math.prod(len(values) for values in self.choices().values())

    def choices(self) -> dict[str, tuple[Choice, ...]]:
        """Setting → its values, in the order of the fields."""
        return {name: tuple(values) for name, values in asdict(self).items()}

    def default(self, config: EngineConfig) -> dict[str, Choice]:
        """The values of these settings in `config`. Threads and provider are those that the engine takes on
        this machine, not `auto`."""
        spelt: dict[str, Choice] = {
            "threads": config.thread_count,
            "provider": provider_registry.choose(config).provider.name,
        }
        return {name: getattr(config, name) for name in self.choices()} | spelt


def _value(name: str, written: str) -> Choice:
    if name == "provider":
        return written
    if written.lower() in ("true", "false"):
        return written.lower() == "true"
    try:
        return int(written)
    except ValueError:
        return written  # `Space` refuses it, and names the setting
