"""What may be tuned, and the search: each candidate beside the defaults, by Optuna, in a store that lasts.

Times describe a machine and what else it was doing; a ratio of two trials of one text, one after the other,
describes the two configurations. So every figure here is a ratio to the defaults, spoken in the same minute.

Sources: Bergstra, Bardenet, Bengio, Kégl, "Algorithms for hyper-parameter optimization", NIPS 2011 (the
tree-structured Parzen estimator); for several objectives Ozaki, Tanigaki, Watanabe, Onishi, GECCO 2020. The
constraint is on the sound.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from filelock import FileLock, Timeout

from kokoro_lab.engine_config import EngineConfig, usable_cores
from kokoro_lab.errors import ParameterError, TuningError
from kokoro_lab.extras import imported
from kokoro_lab.lab.compare.comparison import ratio, take_turns, trials_of
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess
from kokoro_lab.sessions import provider_registry
from kokoro_lab.sessions.tuned import TUNABLE

if TYPE_CHECKING:
    import optuna

MARGINS = {"ttfa": 1.02, "rtf": 1.02, "memory": 1.05}
"""Time to first audio, real-time factor and peak resident memory, each as a ratio to the defaults: below its
margin a cost is not worse. Two processes that do the same differ by some per cent in memory."""
OBJECTIVES = tuple(MARGINS)
COSTS = {"ttfa": "ttfa_s", "rtf": "rtf", "memory": "rss_peak_mb"}
"""The objectives by their names in a `Trial`."""
MARGINS_SAID = ", ".join(f"{name} {margin:g}" for name, margin in MARGINS.items())
SNR_LOW_DB = 40.0
PESQ_LOW = 4.5
"""Audio within either of these of the defaults' is the same to a listener: PESQ's ceiling is 4.64."""
SNR_MOST_DB = 200.0
"""Given to samples that are the same."""
ANOTHER_LENGTH_DB = -100.0
"""Given to audio of another length, which has no SNR."""
DEFAULTS, CANDIDATE = "defaults", "candidate"
"""What the two are called in trials."""

FEASIBLE, TOO_FAR, FAILED = "feasible", "sounds otherwise", "failed"
STARTUP_TRIALS = 10
"""So many are drawn at random before the estimator has a say."""
FAILED_EXCESS_DB, FAILED_RATIO = 1000.0, 10.0
"""What the sampler is told of a configuration that did not speak: worse than any that did."""
RATIOS = {"ttfa_ratio": 2, "rtf_ratio": 1, "memory_ratio": 1}
"""The objectives as columns of a table of trials, and what each weighs in the choice: a listener waits for
the first sound; the rest is only paid for."""
RULE = (
    "Of the Pareto front, those that are below every margin, as ratios to the defaults "
    f"({MARGINS_SAID}); of these the least product of TTFA² × RTF × memory."
)

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
        spelt: dict[str, Choice] = {
            "threads": config.thread_count,
            "provider": provider_registry.choose(config).provider.name,
        }
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
            candidate.warm()
            trials, failed = take_turns({DEFAULTS: default, CANDIDATE: candidate}, texts)
    except EngineFailed as error:
        if default.alive:
            raise CandidateFailed(str(error)) from error
        raise
    if failed:
        raise CandidateFailed(failed[CANDIDATE])
    return figures_of(trials)


def figures_of(trials: pd.DataFrame) -> CandidateFigures:
    """What the turns of candidate and defaults came to; `trials` are those of `take_turns`."""
    own, default = trials_of(trials, CANDIDATE), trials_of(trials, DEFAULTS)
    ttfa, rtf = (ratio(trials, CANDIDATE, COSTS[name], DEFAULTS).value for name in ("ttfa", "rtf"))
    snr_db = float(own.snr_db.fillna(ANOTHER_LENGTH_DB).clip(upper=SNR_MOST_DB).min())
    return CandidateFigures(
        ttfa_ratio=ttfa,
        rtf_ratio=rtf,
        memory_ratio=float(own.rss_peak_mb.max() / default.rss_peak_mb.max()),
        ttfa_ms=1000 * float(own.ttfa_s.median()),
        rtf=float(own.rtf.median()),
        memory_mb=float(own.rss_peak_mb.max()),
        snr_db=snr_db,
        pesq=float(own.pesq.min()) if ANOTHER_LENGTH_DB < snr_db < SNR_LOW_DB else math.nan,
    )


Measure = Callable[[Settings], CandidateFigures]


@dataclass(frozen=True, slots=True)
class Search:
    """One study: where it is kept, what may be chosen, and from which configuration it starts.

    Parameters
    ----------
    folder : Path
        For stores; studies of other machines and spaces stand beside each other.
    identity : mapping
        All that the figures depend on: model, machine, texts. Another one is another study.
    space : Space
    default : mapping
        Setting → value of the defaults; measured first, so that what noise does is in the table.
    seed : int
        Of the sampler.
    """

    folder: Path
    identity: Mapping[str, Any]
    space: Space
    default: Settings
    seed: int = 0

    @property
    def name(self) -> str:
        said = json.dumps([dict(self.identity), self.space.choices(), dict(self.default)], sort_keys=True)
        return f"{self.identity.get('variant', 'study')}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"

    @property
    def store(self) -> Path:
        return self.folder / f"{self.name}.sqlite3"


def run_trials(
    search: Search,
    measure: Measure,
    trials: int,
    *,
    done: Callable[[int, Mapping[str, Any]], None] = lambda number, row: None,
) -> pd.DataFrame:
    """Measure until the study has `trials` configurations, those of earlier runs included.

    Parameters
    ----------
    measure : callable
        Figures of a configuration. `CandidateFailed` is a row like another; any other error ends the search,
        and what was measured until then is kept.
    done : callable
        Told how many there are, and the row of the last one.

    Returns
    -------
    pandas.DataFrame
        As `table_of`.

    Raises
    ------
    TuningError
        Optuna is not installed, or another process works on this study.
    """
    with _opened(search) as study:
        _take_up_again(study)
        if not study.trials:
            study.enqueue_trial(dict(search.default))
        known = {_key(row): row for row in _rows(study)}
        wanted = min(trials, search.space.size)
        done(len(known), {})
        while len(known) < wanted:
            trial = study.ask()
            # Few values each, not evenly spaced, so that each is a choice of its own
            chosen: dict[str, Any] = {
                name: trial.suggest_categorical(name, values)
                for name, values in search.space.choices().items()
            }
            if again := known.get(_key(chosen)):  # it repeats itself: told so, and sent somewhere else
                _tell(study, trial, again)
                study.enqueue_trial(_new_one(search, known, trial.number))
                continue
            row = known[_key(chosen)] = _measured(measure, chosen)
            _tell(study, trial, row)
            done(len(known), row)
        return table_of(known.values())


def table_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Each configuration that was measured, once.

    Returns
    -------
    pandas.DataFrame
        By number: the settings; state, `feasible`, `sounds otherwise` or `failed`; message; the fields of
        `CandidateFigures`; front, whether no feasible one is as good in every objective and better in one.
    """
    table = pd.DataFrame(list(rows))
    table.index.name = "number"
    return table if table.empty else table.assign(front=on_the_front(table))


def on_the_front(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Which feasible rows no other feasible row dominates."""
    able = (table.state == FEASIBLE).to_numpy()
    costs = table[list(RATIOS)].to_numpy()
    one, other = costs[:, np.newaxis], costs[np.newaxis]
    dominates = (one <= other).all(axis=2) & (one < other).any(axis=2)
    return np.asarray(able & ~dominates[able].any(axis=0))


def choose(table: pd.DataFrame, default: Settings) -> dict[str, Choice] | None:
    """The configuration to compare with the defaults, by `RULE`; None if that is the defaults themselves."""
    if table.empty:
        return None
    able = table[table.front & (table[list(RATIOS)] < list(MARGINS.values())).all(axis=1)]
    if able.empty:
        return None
    scores = np.prod([able[ratio] ** weight for ratio, weight in RATIOS.items()], axis=0)
    best = able.iloc[int(np.argmin(scores))]
    chosen = {name: _plain(best[name]) for name in default}
    return None if chosen == dict(default) else chosen


@contextmanager
def _opened(search: Search) -> Iterator[optuna.Study]:
    """The study, for us alone."""
    optuna = imported("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search.folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(search.store.with_suffix(".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise TuningError(
            f"Another process is at work on the study {search.name}.", mend="Wait for its end, or end it."
        ) from error
    storage = optuna.storages.RDBStorage(f"sqlite:///{search.store}")
    try:
        yield optuna.create_study(
            study_name=search.name,
            storage=storage,
            directions=["minimize"] * len(OBJECTIVES),
            # As many seeds as there were trials: one that goes on does not draw the same ones again
            sampler=optuna.samplers.TPESampler(
                multivariate=True, n_startup_trials=STARTUP_TRIALS, seed=search.seed + _count(storage, search)
            ),
            load_if_exists=True,
        )
    finally:
        storage.remove_session()
        storage.engine.dispose()
        lock.release()


def _count(storage: Any, search: Search) -> int:
    with suppress(KeyError):
        return len(storage.get_all_trials(storage.get_study_id_from_name(search.name)))
    return 0


def _take_up_again(study: optuna.Study) -> None:
    """A trial that was under way when its process ended is asked for anew."""
    states = imported("optuna.trial", extra="tune").TrialState
    for cut in study.get_trials(states=(states.RUNNING,)):
        study.tell(cut.number, state=states.FAIL)
        if cut.params:
            study.enqueue_trial(cut.params)


def _new_one(search: Search, known: Collection[tuple[Choice, ...]], number: int) -> dict[str, Choice]:
    """Some configuration that has not been measured."""
    draw = random.Random(f"{search.seed} {number}")
    while True:
        chosen = {name: draw.choice(values) for name, values in search.space.choices().items()}
        if _key(chosen) not in known:
            return chosen


def _measured(measure: Measure, chosen: Settings) -> dict[str, Any]:
    try:
        figures = measure(chosen)
    except CandidateFailed as error:
        return {**chosen, "state": FAILED, "message": str(error)} | dict.fromkeys(
            CandidateFigures.__dataclass_fields__, math.nan
        )
    near = figures.excess_db <= 0
    message = "" if near else f"SNR {figures.snr_db:.1f} dB, PESQ {figures.pesq:.2f}"
    return {**chosen, "state": FEASIBLE if near else TOO_FAR, "message": message, **asdict(figures)}


def _tell(study: optuna.Study, trial: optuna.Trial, row: Mapping[str, Any]) -> None:
    # Not a number is no JSON, and Optuna keeps JSON
    kept = {
        name: None if value != value else value for name, value in row.items() if name not in trial.params
    }
    trial.set_user_attr("row", kept)
    if row["state"] == FAILED:  # from a trial that Optuna calls failed, it would learn nothing
        trial.set_constraint("sound", FAILED_EXCESS_DB)
        study.tell(trial, [FAILED_RATIO] * len(OBJECTIVES))
        return
    figures = CandidateFigures(**{name: row[name] for name in CandidateFigures.__dataclass_fields__})
    trial.set_constraint("sound", figures.excess_db)
    study.tell(trial, figures.ratios)


def _rows(study: optuna.Study) -> Iterator[dict[str, Any]]:
    for trial in study.trials:
        if kept := trial.user_attrs.get("row"):
            yield {**trial.params, **{k: math.nan if v is None else v for k, v in kept.items()}}


def _key(row: Mapping[str, Any]) -> tuple[Choice, ...]:
    return tuple(_plain(row[name]) for name in Space.__dataclass_fields__)


def _plain(value: Any) -> Choice:
    """A value of a table as Python's own, as JSON and a configuration have it."""
    found: Choice = value.item() if hasattr(value, "item") else value
    return found
