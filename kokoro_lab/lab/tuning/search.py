"""The tuner's search: Optuna proposes candidates, each is measured once and kept on disk, and one is chosen.

Sources: Bergstra, Bardenet, Bengio, Kégl, "Algorithms for hyper-parameter optimization", NIPS 2011 (the
tree-structured Parzen estimator); for several objectives Ozaki, Tanigaki, Watanabe, Onishi, GECCO 2020. The
constraint is that the sound does not differ from the defaults' (`candidate`).
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from filelock import FileLock, Timeout

from kokoro_lab.errors import TuningError
from kokoro_lab.extras import imported
from kokoro_lab.lab.tuning import candidate
from kokoro_lab.lab.tuning.candidate import MARGINS, OBJECTIVES, CandidateFailed, CandidateFigures
from kokoro_lab.lab.tuning.search_space import Choice, Settings, Space

if TYPE_CHECKING:
    import optuna

FEASIBLE, TOO_FAR, FAILED = "feasible", "sounds otherwise", "failed"
STARTUP_TRIALS = 10
"""How many configurations are drawn at random before the estimator suggests any."""
FAILED_EXCESS_DB, FAILED_RATIO = 1000.0, 10.0
"""The figures that the sampler gets for a configuration that did not speak. They are worse than any real
ones."""
RATIOS = {"ttfa_ratio": 2, "rtf_ratio": 1, "memory_ratio": 1}
"""The objectives as columns of a table of trials, with their weights in the choice. Time to first audio
weighs most, since a listener waits for it."""
RULE = (
    "Of the Pareto front, those that are below every margin, as ratios to the defaults "
    f"({candidate.MARGINS_SAID}); of these the least product of TTFA² × RTF × memory."
)

Measure = Callable[[Settings], CandidateFigures]


@dataclass(frozen=True, slots=True)
class Search:
    """One study: the folder that keeps it, the values that may be chosen, and the configuration with which it
    starts.

    Parameters
    ----------
    folder : Path
        Folder of the files in which Optuna keeps studies. Studies of different machines and spaces lie side
        by side.
    identity : mapping
        Everything on which the figures depend: model, machine, texts. With another identity, the search
        begins a new study.
    space : Space
    default : mapping
        The default of each setting. The defaults are measured first and compared with themselves: that
        difference is the noise of measuring.
    seed : int
        Seed of the sampler.
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
        Returns the figures of a configuration. If it raises `CandidateFailed`, the failure is a row of the
        table. Any other error ends the search, and all earlier measurements are kept.
    done : callable
        Called with the number of configurations, and the row of the last one.

    Returns
    -------
    pandas.DataFrame
        The table of `table_of`.

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
            # A setting has few values, which are not evenly spaced, so each value is a category
            chosen: dict[str, Any] = {
                name: trial.suggest_categorical(name, values)
                for name, values in search.space.choices().items()
            }
            if again := known.get(_key(chosen)):  # the sampler repeats itself
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
        By number: the settings; state, which is `feasible`, `sounds otherwise` or `failed`; message; the
        fields of `CandidateFigures`; front, whether no other feasible configuration is at least as good in
        every objective and better in one.
    """
    table = pd.DataFrame(list(rows))
    table.index.name = "number"
    return table if table.empty else table.assign(front=on_the_front(table))


def on_the_front(table: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """The feasible rows that no other feasible row dominates."""
    able = (table.state == FEASIBLE).to_numpy()
    costs = table[list(RATIOS)].to_numpy()
    one, other = costs[:, np.newaxis], costs[np.newaxis]
    dominates = (one <= other).all(axis=2) & (one < other).any(axis=2)
    return np.asarray(able & ~dominates[able].any(axis=0))


def choose(table: pd.DataFrame, default: Settings) -> dict[str, Choice] | None:
    """The configuration to compare with the defaults, by `RULE`. None if it is the defaults themselves, or if
    no configuration is below every margin."""
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
    """A context that opens the study and locks it against other processes."""
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
        study = optuna.create_study(
            study_name=search.name,
            storage=storage,
            directions=["minimize"] * len(OBJECTIVES),
            load_if_exists=True,
        )
        # The seed depends on the number of trials, so a continued study does not draw the same ones again
        seed = search.seed + len(study.trials)
        study.sampler = optuna.samplers.TPESampler(
            multivariate=True, n_startup_trials=STARTUP_TRIALS, seed=seed
        )
        yield study
    finally:
        storage.remove_session()
        storage.engine.dispose()
        lock.release()


def _take_up_again(study: optuna.Study) -> None:
    """Enqueue again a trial that was under way when its process ended."""
    states = imported("optuna.trial", extra="tune").TrialState
    for cut in study.get_trials(states=(states.RUNNING,)):
        study.tell(cut.number, state=states.FAIL)
        if cut.params:
            study.enqueue_trial(cut.params)


def _new_one(search: Search, known: Collection[tuple[Choice, ...]], number: int) -> dict[str, Choice]:
    """A configuration, drawn at random, that has not been measured."""
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
    # Optuna keeps JSON, which cannot say "not a number"
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
    """A value of a table as a plain Python value, for JSON and configurations."""
    found: Choice = value.item() if hasattr(value, "item") else value
    return found
