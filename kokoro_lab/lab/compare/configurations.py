"""Parses configurations to be compared, each written as the fields that differ from the environment's.

    default; threads=1; variant=fp32 threads=2; window_frames=240

Configurations are divided by semicolons, their fields by spaces; `coreml.ModelFormat=MLProgram` sets one
entry of a field that is a mapping.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from kokoro_lab.config import COREML_NAMES, PREFIX, Settings
from kokoro_lab.engine_config import DEFAULT, EngineConfig, usable_cores
from kokoro_lab.errors import ParameterError

ARENAS_MB = (2048, 3072, 4096)
WINDOWS = (60, 240)
ELSEWHERE = ("coreml", "mlx")
"""Providers that only some machines have. On other machines, their rows in a comparison say why they are not
available."""
COMPUTE_UNITS = ("CPUAndGPU", "CPUAndNeuralEngine")
"""Core ML's compute units to try, besides its default of all."""
NEXT = ("next_threads={half}", "threads={half} next_threads={half}")
"""Configurations that compute the next segment's prosody in sessions of its own: with extra threads, or with
half of the threads for each.

Neither is on by default. Prosody is a tenth of the work, and is computed ahead either way. A second model
takes memory once more, and its threads are idle for the other nine tenths. On two shared cores, over texts of
240 characters, the first took 0.99 of the default's computing time (0.90 to 1.04) and 130 MB more, the second
1.15 (1.03 to 1.22). `10_provider_ab` measures both on a machine.
"""


@dataclass(frozen=True, slots=True)
class Configuration:
    """An engine to be measured.

    Parameters
    ----------
    name : str
        The fields in which the configuration differs from the default, as they were written; `default` if
        there are none.
    config : EngineConfig
        The configuration that the engine is made with.
    """

    name: str
    config: EngineConfig

    def environment(self, base: EngineConfig) -> dict[str, str]:
        """The environment variables that turn `base` into this configuration; fields without a variable are
        left out."""
        there, mine = (
            asdict(config) | {setting: config.coreml.get(name) for setting, name in COREML_NAMES.items()}
            for config in (base, self.config)
        )
        return {
            PREFIX + name.upper(): str(value)
            for name, value in mine.items()
            if value != there[name] and name in Settings.model_fields
        }


def parse(written: str, base: EngineConfig | None = None) -> list[Configuration]:
    """Read configurations as a user writes them; the default is put in front if it is missing.

    Raises
    ------
    ParameterError
        An engine has no such field, the field cannot have this value, or one configuration is written twice.
    """
    base = base or EngineConfig.from_settings()
    names = [" ".join(part.split()) for part in written.split(";") if part.strip()]
    if DEFAULT not in names:
        names = [DEFAULT, *names]
    names.sort(key=lambda name: name != DEFAULT)  # the sort is stable: the others keep their order
    if len(set(names)) < len(names):
        raise ParameterError(
            "The same configuration stands there twice.", field="configurations", value=written
        )
    return [Configuration(name, base.changed(name)) for name in names]


def every_kind(config: EngineConfig | None = None) -> str:
    """Configurations worth trying on this machine, as `parse` reads them."""
    threads = (config or EngineConfig.from_settings()).thread_count
    half = max(1, usable_cores() // 2)
    fewer = sorted({1, half} - {threads})
    return "; ".join(
        (
            DEFAULT,
            *(f"threads={n}" for n in fewer),
            *(f"memory_arena_size_mb={mb}" for mb in ARENAS_MB),
            *(f"window_frames={frames}" for frames in WINDOWS),
            *(one.format(half=half) for one in NEXT),
            "spinning=true",
            "native=off",
            "variant=fp32",
            *(f"provider={name}" for name in ELSEWHERE),
            *(f"provider=coreml coreml.MLComputeUnits={units}" for units in COMPUTE_UNITS),
        )
    )
