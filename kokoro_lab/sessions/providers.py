"""Makes ONNX Runtime sessions: for a stage of an engine on its provider, and for any other graph.

`provider_registry` lists the providers and chooses one; `guarded_session` handles one that fails.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import onnxruntime as ort

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError, SettingsError
from kokoro_lab.sessions.arenas import ShrinkingSession, bound_arena, out_of_memory
from kokoro_lab.sessions.coreml_options import coreml_options
from kokoro_lab.sessions.guarded_session import GuardedSession
from kokoro_lab.sessions.provider_registry import (
    CPU,
    PROVIDER_STAGE,
    Provider,
    choose,
    devices,
    first_line,
)

log = logging.getLogger(__name__)

_LEVELS = {
    "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


BRIEFLY_SPINNING = ("prosody", "vocoder")
"""Stages whose idle threads spin for `SPIN_US` between two operators, because waking a sleeping thread takes
long and they have some hundred operators in a row. After a run the threads do not spin, since they would slow
the next session. With spinning, prosody takes 0.78 of the time without it (24 texts in turn, two cores), and
a window of the vocoder 0.86 (int8) or 0.97 (fp32). The trunk's time does not change, so it is not among these
stages."""
SPIN_US = 50
FLUSH_DENORMALS = "session.set_denormal_as_zero"
"""ONNX Runtime's option for denormal numbers. Denormal numbers are kept, as in our operators, so that samples
do not depend on an earlier state of the processor's flag."""
_profile_numbers = count()


def session_options(config: EngineConfig, stage: str = "") -> ort.SessionOptions:
    """Options of a session for an engine with this configuration. `stage` is the stage that the session runs,
    if any."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = config.thread_count
    options.inter_op_num_threads = 1
    options.graph_optimization_level = _LEVELS[config.optimisation]
    options.enable_mem_pattern = config.memory_pattern
    options.add_session_config_entry(FLUSH_DENORMALS, "0")
    # We raise an error where an arena has no room; ONNX Runtime would print another one
    options.log_severity_level = 4 if config.memory_arena_size_mb else 3
    briefly = stage in BRIEFLY_SPINNING and not config.spinning
    options.add_session_config_entry(
        "session.intra_op.allow_spinning", "1" if config.spinning or briefly else "0"
    )
    if briefly:
        options.add_session_config_entry("session.intra_op.spin_duration_us", str(SPIN_US))
        options.add_session_config_entry("session.force_spinning_stop", "1")
    if config.profiles is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(config.profiles / f"{stage or 'session'}-{next(_profile_numbers)}")
    if config.memory_arena_size_mb:
        bound_arena(config.memory_arena_size_mb)
        options.add_session_config_entry("session.use_env_allocators", "1")
    return options


def make_session(
    model: bytes | str, config: EngineConfig, *, library: Path | None = None, save: Path | None = None
) -> ort.InferenceSession:
    """A session for a model (path or serialised) on the provider that `config` asks for by name.

    With `auto`, the CPU is taken, since nothing could replace a provider that fails here (see
    `guarded_session`).

    Parameters
    ----------
    library : Path, optional
        Shared library with the operators of ours that the model uses.
    save : Path, optional
        Where to keep the optimised model in ONNX Runtime's own format, which loads without optimising again;
        for the CPU only.

    Raises
    ------
    ProviderError
        The provider is not available, or refuses the model.
    """
    choice = choose(config)
    if choice.explicit and choice.provider is not CPU and save is None:
        return provider_session(choice.provider, model, config, library=library)
    return cpu_session(model, config, library=library, save=save)


def cpu_session(
    model: bytes | str,
    config: EngineConfig,
    *,
    library: Path | None = None,
    save: Path | None = None,
    stage: str = "",
) -> ort.InferenceSession:
    """Like `make_session`, but on the CPU whatever `config` asks for. `stage` is the stage that the session
    runs, if any."""
    options = session_options(config, stage)
    if save is not None:
        options.optimized_model_filepath = str(save)
        options.add_session_config_entry("session.save_model_format", "ORT")
    try:
        if library is not None:
            options.register_custom_ops_library(str(library))
        return ShrinkingSession(
            model, options, variant=config.variant, providers=[CPU.full_name], enable_fallback=0
        )
    except Exception as error:  # ONNX Runtime's exceptions have no common base but this
        if short := out_of_memory(error, "load the model", config.variant):
            raise short from error
        raise ProviderError(
            f"{CPU.full_name} cannot run this model: {first_line(error)}",
            field="model",
            value=model if isinstance(model, str) else f"{len(model)} bytes",
            mend="`kokoro-lab doctor` checks the weights.",
        ) from error


def stage_session(
    stage: str, model: str | bytes, config: EngineConfig, *, library: Path | None = None
) -> GuardedSession:
    """The session of one stage of an engine, on the provider that the configuration names for this stage.

    Parameters
    ----------
    stage : str
        One of `STAGE_NAMES`, or `WHOLE_MODEL`.
    model : str or bytes
        The CPU's graph.
    library : Path, optional
        Shared library with the operators of ours that the model uses.

    Raises
    ------
    ProviderError
        A provider was asked for by name and is not available, or cannot run the graph. If it was only
        preferred (`auto:`), the CPU takes its place, and the session's `fallbacks` say so.
    SettingsError
        An option of Core ML is wrong.
    """
    coreml_options(config.coreml)  # a wrong option is refused even where it would not be used
    choice = choose(config)
    on_cpu = partial(cpu_session, model, config, library=library, stage=stage)
    because, fallbacks = choice.because, choice.fallbacks
    if choice.provider is not CPU and not config.accelerates(stage):
        because = f"KOKORO_PLACEMENT is {config.placement}"
    elif choice.provider is not CPU:
        provider = choice.provider
        try:
            session = provider_session(provider, model, config, library=library)
        except ProviderError as error:
            if choice.explicit:
                raise
            because = f"{provider.full_name} cannot be loaded"
            fallback = Fallback(
                PROVIDER_STAGE, f"{stage}: {CPU.full_name} instead of {provider.full_name}: {error.message}"
            )
            fallbacks = (*fallbacks, fallback)
        else:
            return GuardedSession(
                stage,
                session,
                provider.full_name,
                spare=on_cpu,
                nodes=nodes_taken(session, provider),
                because=because,
                fallbacks=fallbacks,
            )
    return GuardedSession(stage, on_cpu(), because=because, fallbacks=fallbacks)


def provider_session(
    provider: Provider, model: bytes | str, config: EngineConfig, *, library: Path | None = None
) -> ort.InferenceSession:
    """A session on an available provider other than the CPU; the CPU runs the nodes that it does not take.

    Raises
    ------
    ProviderError
        The provider raises, ONNX Runtime ignores it, or it takes no node, so that the CPU would do all of the
        work.
    """
    options = session_options(config)
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    try:
        if library is not None:
            options.register_custom_ops_library(str(library))
        if provider.module:
            # WebGPU's plug-in takes one device, and one is all that a stage needs
            options.add_provider_for_devices(devices(provider)[:1], {})
            named_providers = None
        else:
            named_providers = [(provider.full_name, provider_options(provider, config)), CPU.full_name]
        # With its fallback, ONNX Runtime would print a line and use the CPU, and the program could not know
        session = ort.InferenceSession(model, options, providers=named_providers, enable_fallback=0)
        registered = provider.full_name in session.get_providers()
        taken, nodes = nodes_taken(session, provider)
    except SettingsError:
        raise
    except Exception as error:  # see `cpu_session`; a plug-in may raise anything
        if short := out_of_memory(error, "load the model", config.variant):
            raise short from error
        raise _refused(provider, first_line(error)) from error
    if not registered:
        raise _refused(provider, "ONNX Runtime has passed over it")
    if not taken:
        raise _refused(provider, f"it takes none of the {nodes} nodes of the graph")
    log.info("%s takes %d of %d nodes.", provider.full_name, taken, nodes)
    return session


def provider_options(provider: Provider, config: EngineConfig) -> dict[str, str]:
    """The options for a provider that is built into ONNX Runtime."""
    if provider.name != "coreml":
        return {}
    options = coreml_options(config.coreml)
    if folder := options.get("ModelCacheDirectory"):
        # The folder is named by version: a cached model of one version must not be given to another
        kept = Path(folder) / f"onnxruntime-{ort.__version__}"
        kept.mkdir(parents=True, exist_ok=True)
        options["ModelCacheDirectory"] = str(kept)
    return options


def nodes_taken(session: ort.InferenceSession, provider: Provider) -> tuple[int, int]:
    """How many nodes of its graph a provider runs, and how many there are.

    The session's options must have `session.record_ep_graph_assignment_info`.
    """
    parts = [(part.ep_name, len(part.get_nodes())) for part in session.get_provider_graph_assignment_info()]
    return sum(n for name, n in parts if name == provider.full_name), sum(n for _, n in parts)


def _refused(provider: Provider, why: str) -> ProviderError:
    return ProviderError(
        f"{provider.full_name} cannot run this model: {why}.",
        field="provider",
        value=provider.name,
        mend="Try provider='cpu'; `kokoro-lab doctor` lists the providers that are here.",
    )


def recorded_options(config: EngineConfig) -> dict[str, Any]:
    """The options of the configuration that change speed, memory or samples, for reports and results."""
    kept = asdict(config)
    for private in ("home", "source", "stages", "profiles"):
        kept.pop(private)
    kept["threads"] = config.thread_count
    plain = replace(config, memory_arena_size_mb=0, profiles=None)
    flushed = session_options(plain).get_session_config_entry(FLUSH_DENORMALS)
    kept["denormals"] = "flushed to zero" if flushed == "1" else "kept"
    return kept
