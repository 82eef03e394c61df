"""The parts of an engine, which all of its streams share.

`Parts` is frozen. `replace(engine.parts, decoder=...)` makes the parts of an engine with another decoder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kokoro_lab.datatypes import Fallback, ProviderChoice
from kokoro_lab.engine_config import EngineConfig, usable_cores
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.model.decoder import Decoder
from kokoro_lab.native.toolchain import math_mode
from kokoro_lab.scheduling.deadlines import Brake, Cores
from kokoro_lab.scheduling.priority import user_interactive
from kokoro_lab.sessions.guarded_session import Placement
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.speech.first_audio import FirstAudioCache
from kokoro_lab.weights.voices import VoiceCache


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The parts of one engine. Thread-safe, as each of them is.

    Parameters
    ----------
    decoder : Decoder
        The acoustic model.
    config : EngineConfig
    voices : VoiceCache
        Finds the voice of a name or a blend.
    model_sha256 : str
        SHA-256 of the weights.
    placement : callable
        Returns where each stage runs at that moment: a provider may be lost.
    front_end : FrontEnd
        Reads texts.
    provider_reason : str
        Why the provider was chosen, if measured costs decided it.
    fallbacks : tuple of Fallback
        Substitutions that were made when the engine was loaded; part of every report.
    brakes : callable, optional
        Makes a brake, which holds a unit of computing while another stream needs the cores sooner.

    Attributes
    ----------
    first_audio : FirstAudioCache
        Made anew for each `Parts`, so that an engine never answers with speech that another decoder made.
    cores : Cores
        Decides which of the engine's streams computes next.
    """

    decoder: Decoder
    config: EngineConfig
    voices: VoiceCache
    model_sha256: str
    placement: Callable[[], Placement]
    front_end: FrontEnd = field(default_factory=FrontEnd)
    provider_reason: str = ""
    fallbacks: tuple[Fallback, ...] = ()
    brakes: Callable[[], Brake] | None = None
    first_audio: FirstAudioCache = field(init=False)
    cores: Cores = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "first_audio", FirstAudioCache(self.config.first_audio_ttl_s))
        at_a_time = usable_cores() // self.config.thread_count
        object.__setattr__(self, "cores", Cores(at_a_time, brakes=self.brakes))

    @property
    def active_provider(self) -> str:
        """ONNX Runtime's name of the provider that makes the samples at this moment."""
        return self.placement().active_provider

    @property
    def given_provider(self) -> ProviderChoice:
        """The provider of a segment for which the decoder does not choose, and the reason."""
        placement = self.placement()
        because = self.provider_reason or placement.because or "it was given"
        return ProviderChoice(placement.active_provider, because)

    @property
    def session_record(self) -> dict[str, Any]:
        """What changes speed, memory or samples: options of the configuration, our own operators, and the
        mode of floating-point arithmetic."""
        details = {
            "native_operators": "none: a published graph",
            "native_build": "none",
            **self.decoder.details,
        }
        return {**recorded_options(self.config), "math_mode": math_mode(details), **details}

    def enter_thread(self) -> None:
        """Give the calling thread the priority and cores that the configuration asks for, before it
        computes."""
        if self.config.qos == "interactive":
            user_interactive()
