"""Where inference runs: which execution providers there are, and sessions made on them."""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnxruntime as ort

from kokoro_lab.config import EngineConfig
from kokoro_lab.errors import ProviderError, SettingsError

log = logging.getLogger(__name__)

PROVIDERS = {"cpu": "CPUExecutionProvider"}
"""Providers that the engine knows how to use, by the name a user types."""

_LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


def resolve_provider(requested: str) -> str:
    """ONNX Runtime's name of the provider to use; `auto` takes the best that is known to work.

    Raises
    ------
    ProviderError
        A provider was asked for by name and is not to be had.
    """
    name = requested.lower().removesuffix("executionprovider")
    if name == "auto":
        return PROVIDERS["cpu"]
    if name not in PROVIDERS:
        raise ProviderError(
            f"There is no provider {requested!r} here.",
            field="provider",
            value=requested,
            allowed=", ".join(["auto", *PROVIDERS]),
        )
    return PROVIDERS[name]


def available_providers() -> tuple[str, ...]:
    """Execution providers that this build of ONNX Runtime carries, by its own names."""
    return tuple(ort.get_available_providers())


def session_options(config: EngineConfig) -> ort.SessionOptions:
    """Options of every session that an engine with this configuration makes."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = config.thread_count
    options.inter_op_num_threads = 1
    options.graph_optimization_level = _LEVELS[config.optimisation]
    options.enable_mem_pattern = config.memory_pattern
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if config.spinning else "0")
    if config.memory_arena_size_mb:
        _bound_arena(config.memory_arena_size_mb)
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


def _bound_arena(size_mb: int) -> None:
    """Register the process's one bounded CPU arena; ONNX Runtime takes one and keeps it."""
    global _arena_mb
    if _arena_mb is None:
        ort.create_and_register_allocator(
            ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT),
            ort.OrtArenaCfg({"max_mem": size_mb * 2**20}),
        )
        _arena_mb = size_mb
    elif _arena_mb != size_mb:
        raise SettingsError(
            f"The memory arena of this process is already {_arena_mb} MiB.",
            field="KOKORO_MEMORY_ARENA_SIZE_MB",
            value=size_mb,
            mend="Start a new process to change it.",
        )


_arena_mb: int | None = None


def make_session(
    model: bytes | str, config: EngineConfig, *, library: Path | None = None, save: Path | None = None
) -> ort.InferenceSession:
    """A session for a model (path or serialised) on the provider that `config` asks for.

    Parameters
    ----------
    library : Path, optional
        Shared library with the operators of ours that the model uses.
    save : Path, optional
        Where to keep the optimised model in ONNX Runtime's own format, from which it loads as it is.

    Raises
    ------
    ProviderError
        The provider refuses the model.
    """
    provider = resolve_provider(config.provider)
    options = session_options(config)
    if save is not None:
        options.optimized_model_filepath = str(save)
        options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        if library is not None:
            options.register_custom_ops_library(str(library))
        return ort.InferenceSession(model, options, providers=[provider])
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this
        raise ProviderError(
            f"{provider} cannot run this model: {str(error).splitlines()[0]}",
            field="provider",
            value=config.provider,
            mend="Try provider='cpu'; `kokoro-lab doctor` checks the weights.",
        ) from error


def recorded_options(config: EngineConfig) -> dict[str, Any]:
    """What of the configuration changes speed, memory or samples, for reports and results."""
    kept = asdict(config)
    for private in ("home", "source", "stages"):
        kept.pop(private)
    kept["threads"] = config.thread_count
    return kept
