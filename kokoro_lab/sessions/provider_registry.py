"""Execution providers: which ones there are, why each is available here or not, and which one is chosen.

A provider is built into ONNX Runtime (CPU; Core ML on a Mac; CUDA in a build of its own) or is a plug-in: a
package with a library that is registered with ONNX Runtime when it is first asked for, once per process.
Asked for a provider that it lacks, ONNX Runtime only warns, and runs on the CPU. So it is never asked for
such a provider.

| asked for | taken | if it is not available, or cannot run the graph |
|---|---|---|
| `coreml` | Core ML | an error |
| `auto:coreml` | Core ML | the CPU, and the report says why |
| `auto` | the CPU | |

`auto` never guesses. Core ML has been seen to make this model slower (a graph of changing lengths falls into
a hundred partitions), to give wrong samples in 16 bits, and to need seconds at the first start, depending on
machine and version. So `auto` is the CPU, which is known to work everywhere, on a Mac as well. A user who has
measured another provider to be better on this machine asks for it with `auto:`.
"""

from __future__ import annotations

import platform
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import onnxruntime as ort

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ProviderError
from kokoro_lab.text.tables import entries, rows

AUTO = "auto"
PROVIDER_STAGE = "provider"
"""The `stage` of a `Fallback` from one provider to another."""
_USUAL = {"Darwin": "macOS", "aarch64": "arm64", "AMD64": "x86_64", "ARM64": "arm64"}
"""Names of Python's `platform` → the usual names of the same systems and processors."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One way to run a graph.

    Parameters
    ----------
    name, full_name : str
        The provider's name as a user types it, and as ONNX Runtime says it.
    computes_on : str
        The hardware that computes.
    install : str
        The command that installs it; empty if there is no package for this machine.
    machines : tuple of str
        Systems and processors for which there is a package; empty for any machine.
    module : str
        The module of a plug-in; empty for a provider that is built into ONNX Runtime.
    """

    name: str
    full_name: str
    computes_on: str
    install: str = ""
    machines: tuple[str, ...] = ()
    module: str = ""


_ROWS: Iterator[dict[str, Any]] = rows(__package__, "providers.tsv")
KNOWN_PROVIDERS = tuple(Provider(**row | {"machines": tuple(entries(row["machines"]))}) for row in _ROWS)
CPU = KNOWN_PROVIDERS[0]


@dataclass(frozen=True, slots=True)
class ProviderListing:
    """A provider on this machine: whether it is available, why, and what to do if it is not."""

    provider: Provider
    available: bool
    why: str
    mend: str = ""


def registry() -> tuple[ProviderListing, ...]:
    """Every known provider, and why it is available here or not. Installed plug-ins are loaded."""
    return tuple(listed(provider) for provider in KNOWN_PROVIDERS)


def usable_providers() -> tuple[str, ...]:
    """The providers that are available here, by the names that a user types; the CPU first."""
    return tuple(line.provider.name for line in registry() if line.available)


def listed(provider: Provider) -> ProviderListing:
    """One line of the registry: whether a provider is available here, and why."""
    if not provider.module and provider.full_name in ort.get_available_providers():
        return ProviderListing(provider, True, f"in ONNX Runtime {ort.__version__}")
    if provider.module and find_spec(provider.module) is not None:
        why = _cannot_be_loaded(provider)
        if why:
            mend = f"`{provider.install} --upgrade`; versions must fit ONNX Runtime {ort.__version__}."
            return ProviderListing(provider, False, why, mend)
        if not devices(provider):
            return ProviderListing(provider, False, "its plug-in finds no device on this machine")
        return ProviderListing(provider, True, f"plug-in {provider.module}")
    if provider.machines and this_machine() not in provider.machines:
        wanted = ", ".join(provider.machines)
        return ProviderListing(provider, False, f"it is for {wanted}, and this is {this_machine()}")
    if provider.module:
        return ProviderListing(
            provider, False, f"{provider.module} is not installed", f"`{provider.install}`"
        )
    lacks = f"this build of ONNX Runtime {ort.__version__} lacks it"
    return ProviderListing(provider, False, lacks, f"`{provider.install}`" if provider.install else "")


def named(requested: str) -> Provider:
    """The provider that a user means: `coreml`, `CoreML`, `CoreMLExecutionProvider`.

    Raises
    ------
    ProviderError
        No provider has that name.
    """
    name = requested.strip().lower().removesuffix("executionprovider")
    for provider in KNOWN_PROVIDERS:
        if provider.name == name:
            return provider
    raise ProviderError(
        f"There is no provider {requested!r}.",
        field="provider",
        value=requested,
        allowed=", ".join(["auto", *(provider.name for provider in KNOWN_PROVIDERS)]),
    )


def require(requested: str) -> Provider:
    """The provider that a user asks for by name.

    Raises
    ------
    ProviderError
        No provider has that name, or it is not available here; the error says why, and how to mend it.
    """
    found = listed(named(requested))
    if not found.available:
        there = ", ".join(line.provider.name for line in registry() if line.available)
        raise ProviderError(
            f"The provider {found.provider.name!r} is not available: {found.why}.",
            field="provider",
            value=requested,
            allowed=f"auto, {there}",
            mend=f"To have it: {found.mend}" if found.mend else "Take `auto`.",
        )
    return found.provider


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider that was chosen, and why.

    Parameters
    ----------
    provider : Provider
    because : str
    explicit : bool
        Whether the user asked for it by name. Then no other provider may take its place if it cannot be
        loaded.
    fallbacks : tuple of Fallback
        Providers that were preferred, and why they were not chosen.
    """

    provider: Provider
    because: str
    explicit: bool = False
    fallbacks: tuple[Fallback, ...] = ()


def choose(config: EngineConfig) -> Choice:
    """The provider that is chosen for a configuration.

    Raises
    ------
    ProviderError
        No provider has that name; or it was asked for without `auto:` and is not available here.
    """
    auto, _, preferred = config.provider.strip().partition(":")
    if auto.lower() != AUTO:
        return Choice(require(config.provider), "it was asked for", explicit=True)
    if not preferred:
        return Choice(CPU, "no other provider is known to be better on this machine")
    found = listed(named(preferred))
    if found.available:
        return Choice(found.provider, "it is preferred")
    why = f"{found.provider.full_name} is not available: {found.why}"
    return Choice(CPU, why, fallbacks=(Fallback(PROVIDER_STAGE, f"{CPU.full_name}: {why}"),))


def this_machine() -> str:
    """System and processor of this machine."""
    return " ".join(_USUAL.get(said, said) for said in (platform.system(), platform.machine()))


def devices(provider: Provider) -> list[Any]:
    """The devices on which a plug-in can compute, GPUs first and CPUs last. The plug-in must have been
    loaded."""
    found = [device for device in ort.get_ep_devices() if device.ep_name == provider.full_name]
    return sorted(found, key=lambda device: ("GPU", "NPU", "CPU").index(device.device.type.name))


_loaded: set[str] = set()
_loading = threading.Lock()


def _cannot_be_loaded(provider: Provider) -> str:
    """Register a plug-in's library with ONNX Runtime, once; returns an empty text, or the reason why this
    failed."""
    with _loading:
        if provider.name in _loaded:
            return ""
        try:
            plug_in = import_module(provider.module)
            if hasattr(plug_in, "register_execution_provider_library"):
                plug_in.register_execution_provider_library()
            else:
                ort.register_execution_provider_library(provider.name, str(plug_in.get_library_path()))
        except Exception as error:  # a plug-in is somebody else's library, and may raise anything
            return f"its plug-in cannot be loaded: {first_line(error)}"
        _loaded.add(provider.name)
        return ""


def first_line(error: BaseException) -> str:
    """An error's message in one line."""
    words = str(error).strip().splitlines()
    return f"{type(error).__name__}: {words[0][:200]}" if words else type(error).__name__
