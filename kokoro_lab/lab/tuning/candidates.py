"""What may be tuned, and one candidate measured against the defaults, text by text, in turn.

Times describe a machine and what else it was doing; a ratio of two trials of one text, one after the other,
describes the two configurations. So every figure here is a ratio to the defaults, spoken in the same minute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig, usable_cores
from kokoro_lab.errors import ParameterError, TuningError
from kokoro_lab.lab.bench.engine_process import EngineFailed, EngineProcess, EngineTrial
from kokoro_lab.lab.bench.trial import Trial
from kokoro_lab.metrics.perceptual import pesq_wb, signal_to_difference_db
from kokoro_lab.sessions.providers import PROVIDERS, resolve_provider
from kokoro_lab.sessions.tuned import TUNABLE

MARGINS = {"ttfa": 1.02, "rtf": 1.02, "memory": 1.05}
"""Time to first audio, real-time factor and peak resident memory, each as a ratio to the defaults: below its
margin a cost is not worse. Two processes that do the same differ by some per cent in memory."""
OBJECTIVES = tuple(MARGINS)
MARGINS_SAID = ", ".join(f"{name} {margin:g}" for name, margin in MARGINS.items())
SNR_LOW_DB = 40.0
PESQ_LOW = 4.5
"""Audio within either of these of the defaults' is the same to a listener: PESQ's ceiling is 4.64."""
SNR_MOST_DB = 200.0
"""Given to samples that are the same."""
ANOTHER_LENGTH_DB = -100.0
"""Given to audio of another length, which has no SNR."""

Choice = int | bool | str
Settings = Mapping[str, Choice]


@dataclass(frozen=True, slots=True)
class Space:
    """Values that the tuner may choose from, for each setting.

    Parameters
    ----------
    chunk_ms, provider, threads, spinning, memory_pattern, window_frames : tuple
        Fields of `EngineConfig`, and what each may be.

    Raises
    ------
    ParameterError
        A setting without a value, or a value that the engine would refuse.
    """

    chunk_ms: tuple[int, ...] = (30, 40, 50, 80, 120)
    provider: tuple[str, ...] = ("cpu",)
    threads: tuple[int, ...] = (1,)
    spinning: tuple[bool, ...] = (False, True)
    memory_pattern: tuple[bool, ...] = (False, True)
    window_frames: tuple[int, ...] = (60, 90, 120, 180, 240)

    def __post_init__(self) -> None:
        for name, values in self.choices().items():
            wrong = [value for value in values if not TUNABLE[name](value)]
            if wrong or not values:
                raise ParameterError(
                    f"{name} cannot be {wrong[0]!r}." if wrong else f"{name} has no value to try.",
                    field=name,
                    value=list(values),
                )

    @classmethod
    def here(cls, providers: Sequence[str]) -> Space:
        """For this machine: half its cores, one less than all, all."""
        cores = usable_cores()
        threads = {max(1, count) for count in (1, cores // 2, cores - 1, cores)}
        return cls(provider=tuple(providers), threads=tuple(sorted(threads)))

    def narrowed(self, tried: str) -> Space:
        """With other values of some settings: `tried` is such as `threads=1,2 spinning=false`.

        Raises
        ------
        ParameterError
            A setting that there is not, or a value that it cannot have.
        """
        given: dict[str, Any] = {}
        for each in tried.split():
            name, _, values = each.partition("=")
            if name not in self.choices():
                raise ParameterError(
                    f"{name!r} cannot be tuned.", field="tried", value=each, allowed=", ".join(self.choices())
                )
            given[name] = tuple(_value(name, value) for value in values.split(",") if value)
        return replace(self, **given)

    def including(self, settings: Settings) -> Space:
        """With the values of `settings` among those of each: the defaults are one configuration."""
        choices = self.choices()
        more: dict[str, Any] = {
            name: (*choices[name], value) for name, value in settings.items() if value not in choices[name]
        }
        return replace(self, **more)

    @property
    def size(self) -> int:
        """How many configurations there are."""
        return math.prod(len(values) for values in self.choices().values())

    def choices(self) -> dict[str, tuple[Choice, ...]]:
        """Setting → its values, in the order of the fields."""
        return {name: tuple(values) for name, values in asdict(self).items()}

    def default(self, config: EngineConfig) -> dict[str, Choice]:
        """What `config` has of these settings, spelt as the values here are."""
        spelt: dict[str, Choice] = {"threads": config.thread_count, "provider": _short(config.provider)}
        return {name: getattr(config, name) for name in self.choices()} | spelt


def _value(name: str, written: str) -> Choice:
    if name == "provider":
        return written
    if written.lower() in ("true", "false"):
        return written.lower() == "true"
    try:
        return int(written)
    except ValueError:
        return written  # which the space refuses, by its name


def _short(provider: str) -> str:
    full = resolve_provider(provider)
    return next(name for name, each in PROVIDERS.items() if each == full)


def configured(config: EngineConfig, chosen: Settings) -> EngineConfig:
    """`config` with the chosen settings, and no first audio remembered."""
    changes: dict[str, Any] = dict(chosen)
    return replace(config, **changes, first_audio_ttl_s=0.0)


@dataclass(frozen=True, slots=True)
class CandidateFigures:
    """A candidate beside the defaults.

    Parameters
    ----------
    ttfa_ratio, rtf_ratio, memory_ratio : float
        Candidate ÷ defaults; under 1 is better. Times: geometric mean over texts; memory: of the peaks.
    ttfa_ms, rtf, memory_mb : float
        The candidate's own: median, median, peak.
    snr_db, pesq : float
        Of the text where the candidate's audio is furthest from the defaults'. PESQ is not a number
        where every text has the SNR.
    """

    ttfa_ratio: float
    rtf_ratio: float
    memory_ratio: float
    ttfa_ms: float
    rtf: float
    memory_mb: float
    snr_db: float
    pesq: float

    @property
    def ratios(self) -> tuple[float, float, float]:
        """In the order of `OBJECTIVES`."""
        return self.ttfa_ratio, self.rtf_ratio, self.memory_ratio

    @property
    def excess_db(self) -> float:
        """How far beyond the limit the audio is; at or below 0, the candidate may be chosen."""
        return 0.0 if self.pesq >= PESQ_LOW else SNR_LOW_DB - self.snr_db


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePair:
    """One text, spoken by both."""

    default: EngineTrial
    candidate: EngineTrial


def in_turns(
    default: EngineProcess, candidate: EngineProcess, texts: Sequence[str]
) -> Iterator[CandidatePair]:
    """Both speak every text; who begins changes from text to text."""
    for number, text in enumerate(texts):
        first, second = (default, candidate) if number % 2 else (candidate, default)
        spoken = {each: each.speak(number, text) for each in (first, second)}
        yield CandidatePair(spoken[default], spoken[candidate])


class CandidateFailed(TuningError):
    """A candidate did not speak; the defaults still do."""

    code = "candidate_failed"


def measured(
    default: EngineProcess, start: Callable[[], EngineProcess], texts: Sequence[str]
) -> CandidateFigures:
    """A candidate in a process of its own, beside the defaults.

    Raises
    ------
    CandidateFailed
        It did not load, speak or live.
    EngineFailed
        The defaults did not.
    """
    try:
        with start() as candidate:
            return figures_of(list(in_turns(default, candidate, texts)))
    except EngineFailed as error:
        if default.alive:
            raise CandidateFailed(str(error)) from error
        raise


def figures_of(pairs: Sequence[CandidatePair]) -> CandidateFigures:
    """What the turns came to."""
    default, candidate = [p.default.trial for p in pairs], [p.candidate.trial for p in pairs]
    snr_db = min(snr_of(p.default.samples, p.candidate.samples) for p in pairs)
    pesq = math.nan
    if ANOTHER_LENGTH_DB < snr_db < SNR_LOW_DB:  # it takes a third of a second a text
        pesq = min(pesq_wb(p.default.samples, p.candidate.samples, SAMPLE_RATE_HZ) for p in pairs)
    return CandidateFigures(
        ttfa_ratio=_mean_ratio([t.ttfa_s for t in default], [t.ttfa_s for t in candidate]),
        rtf_ratio=_mean_ratio([t.rtf for t in default], [t.rtf for t in candidate]),
        memory_ratio=peak_mb(candidate) / peak_mb(default),
        ttfa_ms=1000 * float(np.median([t.ttfa_s for t in candidate])),
        rtf=float(np.median([t.rtf for t in candidate])),
        memory_mb=peak_mb(candidate),
        snr_db=snr_db,
        pesq=pesq,
    )


def peak_mb(trials: Sequence[Trial]) -> float:
    """The most that a process had in memory while it spoke these."""
    return max(trial.rss_peak_mb for trial in trials)


def snr_of(reference: Samples, candidate: Samples) -> float:
    """Speech over difference in dB, sample by sample; −100 of another length, 200 where there is none."""
    if len(reference) != len(candidate):
        return ANOTHER_LENGTH_DB
    return min(SNR_MOST_DB, signal_to_difference_db(reference, candidate))


def _mean_ratio(default: Sequence[float], candidate: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(np.asarray(candidate) / np.asarray(default)))))
