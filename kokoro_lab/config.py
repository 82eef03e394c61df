"""Settings: the only module that reads the environment.

`Settings` holds what an operator sets once (`KOKORO_` variables); `EngineConfig` is what one engine
was made with. What a single request may choose is in `datatypes.Utterance`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from kokoro_lab.errors import SettingsError

SPEED_MIN, SPEED_MAX = 0.25, 4.0
RATE_MIN, RATE_MAX = 0.5, 2.0
"""Of some words in a text, times the speed of all."""
PITCH_MIN, PITCH_MAX = 0.5, 1.5
"""Of some words in a text, times the voice's own."""
PUBLISHED = ("fp32", "fp16-upstream", "int8-upstream")
"""Precisions of the weights as others published them."""
STAGED = ("fp32", "fp16", "int8", "int8fp16mix")
"""Variants that run in stages, all made from the published fp32 weights."""
VARIANTS = (*STAGED, "fp16-upstream", "int8-upstream")
DEFAULT_VARIANT = "int8"
"""Less than half of fp32's computing; what it costs in sound is in the README, under Variants."""
PREFIX = "KOKORO_"

Source = Literal["auto", "hub", "registry"]
Optimisation = Literal["all", "extended", "basic", "none"]


def weights_of(variant: str) -> str:
    """The published weights that a variant is made from."""
    return "fp32" if variant in STAGED else variant


class Settings(BaseSettings):
    """What the environment says. Field names are the variables' names, lower-cased, less the prefix."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    home: Path = Field(
        default_factory=lambda: user_cache_path("kokoro-lab", appauthor=False),
        description="Folder for weights, voices and what is made from them",
    )
    source: Source = Field(
        "auto", description="Where weights come from: `hub`, `registry`, or `auto` for one after the other"
    )
    variant: str = Field(DEFAULT_VARIANT, description=f"Precision: {', '.join(f'`{v}`' for v in VARIANTS)}")
    provider: str = Field("auto", description="Execution provider: `auto` or `cpu`")
    threads: int = Field(0, ge=0, le=256, description="Threads inside one inference; 0 takes every core")
    optimisation: Optimisation = Field(
        "all", description="ONNX Runtime's graph optimisation: `all`, `extended`, `basic` or `none`"
    )
    memory_pattern: bool = Field(False, description="Let ONNX Runtime plan memory by the shapes it has seen")
    spinning: bool = Field(
        False, description="Let idle threads of an inference spin, on a machine of its own"
    )
    memory_arena_size_mb: int = Field(
        0, ge=0, le=65536, description="Upper bound of ONNX Runtime's CPU arena; 0 leaves it unbounded"
    )
    voice: str = Field("af_heart", description="Voice of requests that name none")
    host: str = Field("127.0.0.1", description="Address the server listens on")
    port: int = Field(8880, ge=0, le=65535, description="Port the server listens on")
    player_port: int = Field(
        8081, ge=0, le=65535, description="Port of the loopback on which `kokoro-lab player` listens"
    )
    api_key: str = Field(
        "", description="If set, requests for speech must carry it as a Bearer token", repr=False
    )
    allowed_hosts: str = Field(
        "127.0.0.1,localhost,[::1]", description="Host headers that are answered, with commas"
    )
    allowed_origins: str = Field(
        "", description="Web origins that may call the server, with commas; none unless listed"
    )
    max_input_chars: int = Field(50_000, ge=1, description="Longest text of one HTTP request, in characters")
    concurrency: int = Field(2, ge=1, le=64, description="Syntheses at a time; a further one waits its turn")
    queue: int = Field(
        4, ge=0, le=256, description="Requests that may wait for their turn; a further one is answered 429"
    )
    first_audio_deadline_s: float = Field(
        30.0,
        gt=0,
        description="Seconds from a request, its waiting included, to its first audio; then it is given up",
    )
    deadline_s: float = Field(
        14_400.0, gt=0, description="Seconds from a request to the end of its answer; then it is cut off"
    )
    ephemeral: bool = Field(
        False,
        description="Keep nothing of any request: no first audio, nothing to resume from, no hash in the log",
    )
    native: Literal["auto", "off"] = Field(
        "auto", description="Our own operators in C++: `auto` where a compiler is found, or `off`"
    )
    stages: Path | None = Field(
        None, description="Folder of graphs that `kokoro-lab export` wrote, to run instead of our cache's"
    )
    first_audio_ttl_s: float = Field(
        300.0,
        ge=0,
        description="Seconds that the first audio of an utterance is kept, to repeat it; 0 is off",
    )
    resume_ttl_s: float = Field(
        3600.0, ge=0, description="Seconds after its begin in which a stream that broke may be gone on with"
    )
    project_lexicon: Path | None = Field(
        None,
        description="Pronunciations of the project; unset: `lexicon.tsv`, `.csv` or `.json` where it is run",
    )
    user_lexicon: Path | None = Field(
        None, description="Pronunciations of the user; unset: such a file in the user's configuration folder"
    )
    buffer_profile: Literal["stable", "benchmark", "safe"] = Field(
        "stable", description="Length of the chunks of a stream: `stable` 50, `benchmark` 40, `safe` 100 ms"
    )
    slo_ttfa_s: float = Field(
        0.5, gt=0, description="Time to first audio whose 95th percentile, if longer, is warned of"
    )
    slo_rtf: float = Field(
        0.6, gt=0, description="Real-time factor whose 95th percentile, if higher, is warned of"
    )
    degrade: Literal["auto", "off", "avoid-underrun", "reduce-ttfa", "stability-first"] = Field(
        "auto",
        description="Degrade mode: `auto` by the figures, `off`, or always the one that is named: "
        "`avoid-underrun`, `reduce-ttfa`, `stability-first`",
    )
    aggressive_warming: bool = Field(
        False, description="Load the G2P of every language after the start, not only that of the voice"
    )
    defer_background_init: bool = Field(
        True, description="What is loaded after the start waits until no request is live"
    )
    skip_benchmarking: bool = Field(False, description="Refuse to start benchmarks over HTTP")
    development_mode: bool = Field(False, description="Offer `/debug/stacks` and `/debug/memory`")
    log_format: Literal["json", "text"] = Field(
        "json", description="The server's log: a JSON object a line, or `text` for people"
    )
    verbose_logs: bool = Field(False, description="Log at debug level. Texts are never logged, only lengths")


@cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises
    ------
    SettingsError
        A variable's value is not what its field allows; names every bad variable.
    """
    try:
        return Settings()
    except ValidationError as error:
        bad = error.errors()[0]
        name = PREFIX + str(bad["loc"][0]).upper()
        raise SettingsError(
            f"{name}={bad['input']!r} is not valid: {bad['msg']}.",
            field=name,
            value=bad["input"],
            mend=f"Mend or unset {name}; the README's table lists what each variable takes.",
        ) from error


def settings_table() -> str:
    """The README's environment table, in Markdown, made from `Settings`."""
    rows = ["| variable | default | what it sets |", "|---|---|---|"]
    for name, info in Settings.model_fields.items():
        default = "the user's cache folder" if name == "home" else f"`{info.default}`"
        if info.default in ("", None) and name != "home":
            default = "unset"
        rows.append(f"| `{PREFIX}{name.upper()}` | {default} | {info.description} |")
    return "\n".join(rows)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What one engine is made with; recorded in every report and result.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    provider : str
        `auto`, or an execution provider by name.
    threads : int
        Threads inside one inference; 0 takes every core.
    memory_arena_size_mb : int
        Upper bound of the CPU arena in MiB; 0 leaves it unbounded.
    optimisation : {"all", "extended", "basic", "none"}
        ONNX Runtime's graph optimisation level. Samples differ between levels (up to 0.06 in a few
        samples), so it is part of what makes a result reproducible.
    memory_pattern : bool
        Off by default: with lengths that always change, planned memory grows without end.
    spinning : bool
        Whether idle threads spin. The stages of one engine are several sessions, and spinning pools
        slow each other: on two cores the way to first audio then takes 1.4 times as long. (ONNX Runtime's
        global pool is no faster than pools that do not spin, and lets no other session into the process.)
    native : {"auto", "off"}
        Whether our own operators are used where they can be built. They are faster; samples differ by
        rounding (over 100 dB).
    stages : Path, optional
        Folder that `kokoro-lab export` wrote, of the same variant; its graphs are run as they are.
    first_audio_ttl_s : float
        How long the first half second of an utterance is kept for when it is asked for again; 0 keeps
        nothing.
    source : {"auto", "hub", "registry"}
        Where missing weights are fetched from.
    home : Path, optional
        Cache folder; None takes `Settings.home`.
    """

    variant: str = DEFAULT_VARIANT
    provider: str = "auto"
    threads: int = 0
    memory_arena_size_mb: int = 0
    optimisation: Optimisation = "all"
    memory_pattern: bool = False
    spinning: bool = False
    native: Literal["auto", "off"] = "auto"
    stages: Path | None = None
    first_audio_ttl_s: float = 300.0
    source: Source = "auto"
    home: Path | None = None

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise SettingsError(
                f"There is no variant {self.variant!r}.",
                field="variant",
                value=self.variant,
                allowed=", ".join(VARIANTS),
            )

    @classmethod
    def from_settings(cls) -> EngineConfig:
        """The configuration that the environment asks for."""
        s = settings()
        return cls(
            variant=s.variant,
            provider=s.provider,
            threads=s.threads,
            optimisation=s.optimisation,
            memory_pattern=s.memory_pattern,
            spinning=s.spinning,
            memory_arena_size_mb=s.memory_arena_size_mb,
            stages=s.stages,
            native=s.native,
            first_audio_ttl_s=s.first_audio_ttl_s,
            source=s.source,
            home=s.home,
        )

    @property
    def thread_count(self) -> int:
        """Threads really used: the cores this process may run on when `threads` is 0."""
        return self.threads or usable_cores()


def usable_cores() -> int:
    """Cores that this process may run on: its affinity mask where the system has one."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)
