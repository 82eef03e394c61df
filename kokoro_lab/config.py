"""Settings: the only module that reads the environment.

`Settings` holds what an operator sets once (`KOKORO_` variables). What one engine is made with is
`engine_config.EngineConfig`; what a single request may choose is in `datatypes.Utterance`.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from platformdirs import user_cache_path
from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from kokoro_lab.errors import SettingsError

SPEED_MIN, SPEED_MAX = 0.25, 4.0
MODEL_SPEED_MIN, MODEL_SPEED_MAX = 0.7, 1.5
"""The range of speeds at which the model itself speaks; a time stretch does the rest. At higher speeds its
shortest sounds reach one duration frame (25 ms) and cannot be shorter: at 3 it speaks only twice as fast. At
lower speeds it fills the silence around words with sounds."""
RATE_MIN, RATE_MAX = 0.5, 2.0
"""The range of the rate of single words, as a factor of the text's speed."""
PITCH_MIN, PITCH_MAX = 0.5, 1.5
"""The range of the pitch of single words, as a factor of the voice's own."""
PUBLISHED = ("fp32", "fp16-upstream", "int8-upstream")
"""Precisions of the weights as others published them."""
STAGED = ("fp32", "fp16", "int8", "int8fp16mix")
"""Variants that run in stages, all made from the published fp32 weights."""
VARIANTS = (*STAGED, "fp16-upstream", "int8-upstream")
INPUT_FORMATS = ("text", "ssml", "markdown", "marked")
CODE_MODES = ("skip", "name", "read")
EMOJI_MODES = ("name", "skip")
DETECTION_MODES = ("auto", "scripts", "off")
DEFAULT_VARIANT = "int8"
"""It takes less than half of fp32's computing; docs/variants.md has what it costs in sound quality."""
PREFIX = "KOKORO_"
WINDOW_FRAMES = 120
"""Later windows: the larger, the less context is decoded twice; the smaller, the sooner a stop acts."""
LONGEST_WINDOW_FRAMES = 2400
"""30 s: no segment is longer, so that more would change nothing."""
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
"""Setting → what ONNX Runtime calls it; see `sessions.coreml_options`."""
OF_OTHERS = ("URL", "SPEED")
"""Variables with our prefix that are no settings: the Raycast commands of `scripts/raycast` read them."""

FINDING = ("PATH", "XDG_CONFIG_HOME")
"""Variables without our prefix, by which a compiler, npm and the user's lexicon are found."""


def _whole_path(path: Path) -> Path:
    """Refuse a relative path: it may be a misspelt name, and its meaning depends on the working folder."""
    if not path.expanduser().is_absolute():
        raise ValueError("or the path of a folder, from its root on")
    return path


NAMED_SOURCES = ("auto", "hub", "registry")
Source = Literal["auto", "hub", "registry"] | Annotated[Path, AfterValidator(_whole_path)]
Optimisation = Literal["all", "extended", "basic", "none"]
NativeChoice = Literal["auto", "prebuilt", "build", "off"]
Pauses = Literal["lengthened", "ruled", "model"]
InstructionSet = Literal["auto", "avx2", "avx2-vnni", "avx512", "avx512-vnni", "neon", "dotprod", "i8mm"]


def weights_of(variant: str) -> str:
    """The published weights that a variant is made from."""
    return "fp32" if variant in STAGED else variant


def _cache_folder() -> Path:
    """The user's cache folder, where the environment names none.

    Raises
    ------
    SettingsError
        There is no such user, as in a container that was given a number.
    """
    try:
        return user_cache_path("kokoro-lab", appauthor=False).expanduser()
    except RuntimeError as error:
        raise SettingsError(
            "This user has no home folder, in which weights would be kept.",
            field=f"{PREFIX}HOME",
            mend=f"Set {PREFIX}HOME to a folder that you may write to.",
        ) from error


class Settings(BaseSettings):
    """The values of all `KOKORO_` variables. A field's name is its variable's in lower case, without the
    prefix. The text under a field is its row in docs/configuration.md.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    home: Path = Field(default_factory=_cache_folder)
    """Folder for weights, voices and what is made from them"""
    source: Source = "auto"
    """Where weights come from: `hub`, `registry`, `auto` for one after the other, or a folder that
    `kokoro-lab fetch --to` has filled, by its whole path"""
    variant: str = DEFAULT_VARIANT
    """Precision: `fp32`, `fp16`, `int8`, `int8fp16mix`, `fp16-upstream`, `int8-upstream`"""
    provider: str = "auto"
    """Execution provider: `auto`, `cpu`, `coreml`, `cuda`, `mlx`, `openvino` or `webgpu`, or preferred, as
    `auto:coreml`; `kokoro-lab doctor` says which are here"""
    placement: str = "vocoder"
    """Stages that run on that provider, with commas, or `all`: `prosody`, `trunk`, `excitation`, `vocoder`,
    `vocoder_exact`; the others stay on the CPU"""
    fixed_windows: Literal["auto", "on", "off"] = "auto"
    """Windows of a stream of 12, 40 and 120 frames whatever else is set, in single precision: `auto` where
    Core ML runs the vocoder, which takes hardly any other"""
    coreml_compute_units: Literal["ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"] = "ALL"
    """Core ML: where it computes: `ALL`, `CPUOnly`, `CPUAndGPU` or `CPUAndNeuralEngine`"""
    coreml_model_format: Literal["MLProgram", "NeuralNetwork"] = "MLProgram"
    """Core ML: `MLProgram`, or the older `NeuralNetwork`"""
    coreml_specialization: Literal["Default", "FastPrediction"] = "Default"
    """Core ML: `FastPrediction` loads slower and may predict faster than `Default`"""
    coreml_static_shapes: bool = False
    """Core ML: take only nodes whose shapes are fixed"""
    coreml_subgraphs: bool = False
    """Core ML: look into the bodies of If and Loop as well"""
    coreml_profile: bool = False
    """Core ML: log which unit takes which operation; ML Programs only"""
    coreml_low_precision: bool = False
    """Core ML: the GPU may add up in 16 bits: faster, less exact"""
    coreml_cache: Path | None = None
    """Core ML: folder that keeps compiled models; unset compiles at every start"""
    threads: int = Field(0, ge=0, le=256)
    """Threads inside one inference; 0 takes every core"""
    optimisation: Optimisation = "all"
    """ONNX Runtime's graph optimisation: `all`, `extended`, `basic` or `none`"""
    memory_pattern: bool = False
    """Let ONNX Runtime plan memory by the shapes it has seen"""
    spinning: bool = False
    """Let idle threads of an inference spin, on a machine that does nothing else"""
    memory_arena_size_mb: int = Field(0, ge=0, le=65536)
    """Upper bound of ONNX Runtime's CPU arena; 0 leaves it unbounded. One request at a time takes up to
    384 in `int8`, 640 in `fp32`"""
    window_frames: int = Field(WINDOW_FRAMES, ge=1, le=LONGEST_WINDOW_FRAMES)
    """Longest window of a stream, in frames of 12.5 ms: a smaller one costs more computing"""
    pauses: Pauses = "lengthened"
    """Pauses at marks: `lengthened` where too short, `ruled` where too long as well, or the `model`'s own"""
    next_threads: int = Field(0, ge=0, le=256)
    """Threads of a second prosody model, for segments that nobody waits for; 0 shares the one"""
    by_length: str = ""
    """Two configurations and the length of a text in characters that divides them, as `10_provider_ab`
    recommends: `coreml.MLComputeUnits=CPUAndGPU < 200; default`"""
    provider_choice: Literal["off", "measured"] = "off"
    """`measured`: each segment is spoken by the provider that costs least for its length"""
    cost_ttl_s: float = Field(604_800.0, ge=0)
    """Seconds that measured costs of providers are believed; 0 measures at each start"""
    qos: Literal["off", "interactive"] = "off"
    """`interactive`: threads that speak and play ask macOS for its user-interactive class"""
    cores: str = ""
    """Cores to stay on, with commas, where the system lets one choose"""
    voice: str = "af_heart"
    """Voice of requests that name none"""
    host: str = "127.0.0.1"
    """Address the server listens on"""
    port: int = Field(8880, ge=0, le=65535)
    """Port the server listens on"""
    player_port: int = Field(8081, ge=0, le=65535)
    """Port of the loopback on which `kokoro-lab player` listens"""
    wyoming_port: int = Field(10_200, ge=0, le=65535)
    """Port on which `kokoro-lab wyoming` listens"""
    root_path: str = Field("", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """Path at which a proxy offers the server, such as `/tts`; which the proxy may remove or not"""
    api_key: str = Field("", repr=False)
    """If set, requests for speech must carry it as a Bearer token"""
    allowed_hosts: str = "127.0.0.1,localhost,[::1]"
    """Host headers that are answered, with commas"""
    allowed_origins: str = ""
    """Web origins that may call the server, with commas; none unless listed"""
    max_input_chars: int = Field(50_000, ge=1)
    """Longest text of one HTTP request, in characters"""
    max_file_s: float = Field(3600.0, gt=0)
    """Longest audio of an answer that is not streamed, in seconds, each 0.2 MB of memory"""
    concurrency: int = Field(16, ge=1, le=64)
    """Most syntheses at a time, each with a thread; measured costs may admit fewer"""
    capacity: float = Field(0.9, gt=0)
    """Share of the computing that listeners may need together, as measured; a further one waits. The rest is
    for peaks and files"""
    connections: int = Field(4096, ge=16, le=65_536)
    """Connections that may be open; for a further one, the longest silent one is closed"""
    queue: int = Field(4, ge=0, le=256)
    """Requests that may wait for their turn; a further one is answered 429"""
    first_audio_deadline_s: float = Field(30.0, gt=0)
    """Seconds from a request, its waiting included, to its first audio; then it is given up"""
    deadline_s: float = Field(14_400.0, gt=0)
    """Seconds from a request to the end of its answer; then it is cut off"""
    shutdown_s: int = Field(30, ge=1, le=3600)
    """Seconds that streams may continue after SIGTERM; those that then still speak are ended with
    `server_stopping`"""
    memory_limit_mb: int = Field(0, ge=0)
    """Most resident memory of the server, in MiB; 0 is three quarters of the machine's memory"""
    disable_memory_mgmt: bool = False
    """Let memory grow: no limit, no clean-up"""
    ephemeral: bool = False
    """Keep nothing of any request: no first audio, nothing to resume from, no hash in the log"""
    nice: int = Field(10, ge=0, le=19)
    """How far `run` and `bench` lower their own priority, so that listeners are served first; 0 leaves it.
    Every result records it"""
    native: NativeChoice = "auto"
    """Our own operators in C++: the wheel's `prebuilt`, `build` by a compiler, `auto` for either, or `off`"""
    instruction_set: InstructionSet = "auto"
    """Of prebuilt ones: `auto`, `avx2`, `avx2-vnni`, `avx512`, `avx512-vnni`, `neon`, `dotprod`, `i8mm`"""
    tuned: Literal["auto", "off"] = "auto"
    """Use what `kokoro-lab tune` found for this machine: `auto`, or `off`"""
    stages: Path | None = None
    """Folder of graphs that `kokoro-lab export` wrote, to run instead of our cache's"""
    first_audio_ttl_s: float = Field(300.0, ge=0)
    """Seconds that the first audio of an utterance is kept, to repeat it; 0 is off"""
    resume_ttl_s: float = Field(3600.0, ge=0)
    """How long a stream that broke can be resumed, in seconds from its start"""
    project_lexicon: Path | None = None
    """Pronunciations of the project; unset: `lexicon.tsv`, `.csv` or `.json` where it is run"""
    user_lexicon: Path | None = None
    """Pronunciations of the user; unset: such a file in the user's configuration folder"""
    buffer_profile: Literal["stable", "benchmark", "safe"] = "stable"
    """Length of the chunks of a stream: `stable` 50, `benchmark` 40, `safe` 100 ms"""
    slo_ttfa_s: float = Field(0.5, gt=0)
    """Time to first audio whose 95th percentile, if longer, is warned of"""
    slo_rtf: float = Field(0.6, gt=0)
    """Real-time factor whose 95th percentile, if higher, is warned of"""
    degrade: Literal["auto", "off", "avoid-underrun", "reduce-ttfa", "stability-first"] = "auto"
    """Degrade mode: `auto` by the figures, `off`, or always the one that is named: `avoid-underrun`,
    `reduce-ttfa`, `stability-first`"""
    aggressive_warming: bool = False
    """Load the G2P of every language after the start, not only that of the voice"""
    defer_background_init: bool = True
    """What is loaded after the start waits until no request is live"""
    benchmark_interval_s: float = Field(0.0, ge=0)
    """Seconds between benchmarks that the server begins when nobody is being served; 0 is off"""
    skip_benchmarking: bool = False
    """Refuse to start benchmarks over HTTP, and begin none at intervals"""
    development_mode: bool = False
    """Offer `/debug/stacks` and `/debug/memory`"""
    faults: str = ""
    """For tests: a scenario of `fixtures/faults`, or a file, whose faults are put into the speech; `ready` to
    have one put in by `POST /debug/faults`"""
    log_format: Literal["json", "text"] = "json"
    """The server's log: a JSON object a line, or `text` for people"""
    verbose_logs: bool = False
    """Log at debug level. Texts are never logged, only lengths"""


@cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises
    ------
    SettingsError
        A variable's value is not what its field allows; the error names every bad variable. Or Core ML has no
        such option: a misspelt one would be measured as if it were set.
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
            mend=f"Mend or unset {name}; docs/configuration.md lists what each variable takes.",
        ) from error


def misspelt() -> list[str]:
    """A warning for each variable of the environment that has our prefix and that no setting reads."""
    known = [name.upper() for name in Settings.model_fields]
    found = []
    for variable in sorted(os.environ):
        name = variable.upper().removeprefix(PREFIX)
        if variable.upper().startswith(PREFIX) and name not in {*known, *OF_OTHERS}:
            near = get_close_matches(name, known, n=1)
            meant = f"Is {PREFIX}{near[0]} meant?" if near else "docs/configuration.md lists what there is."
            found.append(f"{variable} sets nothing: there is no such setting. {meant}")
    return found


def handed_on() -> dict[str, str]:
    """The variables that a supervisor must give to the server that it starts in another folder, without this
    environment: all that set something, with absolute paths, and those by which other programs and files are
    found."""
    said = settings()
    here = {variable.upper(): value for variable, value in os.environ.items()}
    values = {name: here[name] for name in FINDING if name in here}
    for field in sorted(said.model_fields_set):
        value, variable = getattr(said, field), PREFIX + field.upper()
        values[variable] = str(value.expanduser().absolute()) if isinstance(value, Path) else here[variable]
    return values


def set_by_user() -> frozenset[str]:
    """Fields of `EngineConfig` that the environment sets; the tuner leaves these as they are."""
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
