"""Which provider an engine takes: the one that is asked for, one that is preferred, or the CPU.

| asked for | taken | if it cannot be had, or cannot run the graph |
|---|---|---|
| `coreml` | Core ML | an error |
| `auto:coreml` | Core ML | the CPU, and the report says why |
| `auto` | the CPU | |

`auto` never guesses. Core ML has been seen to make this model slower (a graph of changing lengths falls into
a hundred pieces), to give wrong samples in 16 bits, and to need seconds at the first start, depending on
machine and version. So `auto` is the CPU, which is known to work everywhere, on a Mac as well. Whoever has
measured another one to be better on this machine asks for it by `auto:`.
"""

from __future__ import annotations

from dataclasses import dataclass

from kokoro_lab.datatypes import Fallback
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.sessions.provider_registry import CPU, Provider, listed, named, require

AUTO = "auto"
PROVIDER_STAGE = "provider"
"""The stage of every fallback from one provider to another."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The provider that was chosen, and why.

    Parameters
    ----------
    provider : Provider
    because : str
    explicit : bool
        Whether it was asked for by name: then nothing may stand in for it where it cannot be loaded.
    fallbacks : tuple of Fallback
        What would have been chosen, and why it was not.
    """

    provider: Provider
    because: str
    explicit: bool = False
    fallbacks: tuple[Fallback, ...] = ()


def choose(config: EngineConfig) -> Choice:
    """The provider for a configuration.

    Raises
    ------
    ProviderError
        There is none of that name; or it was asked for without `auto:` and is not to be had here.
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
