"""The tuner, from its options to a decision: search, choose, compare, adopt.

The defaults stay loaded in a process of their own, and every candidate is measured beside them (`candidate`).
The best configuration of a search is partly lucky, so it is compared with the defaults again, on other texts
and in fresh processes, and adopted only if it is still better (`adoption`). The whole run is judged in
`autotune_verdict`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from kokoro_lab.config import set_by_user
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.texts import PRESETS
from kokoro_lab.lab.compare.comparison import in_processes, texts_by_length
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.engine_process import MakeEngine, real_engine
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.results import results_folder
from kokoro_lab.lab.tuning import search
from kokoro_lab.lab.tuning.adoption import DefaultsComparison, compared_with_defaults
from kokoro_lab.lab.tuning.candidate import CANDIDATE, DEFAULTS, OBJECTIVES, CandidateFigures, measured
from kokoro_lab.lab.tuning.search_space import Choice, Settings, Space
from kokoro_lab.metrics.intervals import FEWEST_UNITS
from kokoro_lab.provenance import git_state, versions
from kokoro_lab.sessions.provider_registry import AUTO, usable_providers
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.sessions.tuned import TUNABLE, TunedConfiguration, TuningConditions, adopt
from kokoro_lab.typed import require_range

MOST_TEXTS = 28
"""The most texts with different beginnings that can be made of the fixtures' sentences."""


@dataclass(frozen=True, slots=True)
class TunePlan:
    """The options of a run of the tuner.

    Parameters
    ----------
    trials : int
        Configurations to measure, the defaults among them; those of earlier runs count.
    texts : int
        Number of texts that each configuration speaks in the search.
    compared : int
        Number of other texts, on which the chosen configuration is compared with the defaults.
    rounds : int
        Rounds of that comparison, each in fresh processes; 0 only searches, and adopts nothing.
    preset : str
        Length of the texts, one of `PRESETS`.
    voice : str
    variant : str, optional
        None takes the variant that the environment sets.
    tried : str
        Values of some settings instead of those that are tried by default, such as `threads=1,2`; the values
        of the defaults are tried as well.
    seed : int
        Seed of the choice of texts and of the sampler.

    Raises
    ------
    ParameterError
        Too few texts or rounds to compare, or more texts than can be made.
    """

    trials: int = 40
    texts: int = 6
    compared: int = 12
    rounds: int = 6
    preset: str = "medium"
    voice: str = "af_heart"
    variant: str | None = None
    tried: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        require_range("trials", self.trials, 1, 10_000)
        require_range("texts", self.texts, 1, MOST_TEXTS - FEWEST_UNITS)
        require_range("compared", self.compared, FEWEST_UNITS, MOST_TEXTS - self.texts)
        if self.rounds:
            message = f"rounds cannot be {self.rounds}; with 0, nothing is compared."
            require_range("rounds", self.rounds, FEWEST_UNITS, 100, message)
        require_known("preset", self.preset, PRESETS, "preset")


@dataclass(frozen=True, slots=True)
class Tuning:
    """The outcome of a run of the tuner.

    Parameters
    ----------
    made_for : TuningConditions
    base : EngineConfig
        The configuration with the defaults.
    default : mapping
        The value that each tuned setting has by default.
    space : Space
    table : pandas.DataFrame
        The table of `search.table_of`.
    chosen : dict or None
        The settings that the search chose; None if none were better than the defaults by its rule.
    comparison : DefaultsComparison or None
        None if no settings were chosen, or no comparison was asked for.
    store : Path
        The file in which Optuna keeps every configuration that was measured (the study).
    facts : dict
        Model and provider of the defaults.
    """

    made_for: TuningConditions
    base: EngineConfig
    default: Settings
    space: Space
    table: pd.DataFrame
    chosen: dict[str, Choice] | None
    comparison: DefaultsComparison | None
    store: Path
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def adopted(self) -> bool:
        return self.comparison is not None and self.comparison.adopted

    @property
    def tuned(self) -> TunedConfiguration:
        """The configuration as the engine reads it. A provider that `auto` would take anyway stays `auto`;
        another one is written as preferred (`auto:`), so that an engine without it still speaks."""
        settings: dict[str, Choice] = dict(self.chosen or {})
        provider = settings.pop("provider", None)
        if provider is not None and provider != self.default["provider"]:
            settings["provider"] = f"{AUTO}:{provider}"
        gains = {} if self.comparison is None else self.comparison.gains
        return TunedConfiguration(
            self.made_for,
            settings,
            {name: round(value, 2) for name, value in gains.items()},
            datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @property
    def decision(self) -> str:
        """The decision in a sentence or two."""
        counts = self.table.state.value_counts()
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        said = f"{len(self.table)} configurations ({states}). "
        if self.chosen is None:
            return said + "The defaults stay: nothing measured better by the rule."
        chosen = ", ".join(f"{k}={v}" for k, v in self.chosen.items() if v != self.default[k])
        if self.comparison is None:
            return said + f"Chosen, and not compared: {chosen}."
        ratios = ", ".join(f"{name} × {cost}" for name, cost in self.comparison.ratios.items())
        verdict = f"Compared, × the defaults: {ratios}."
        return f"{said}Chosen: {chosen}. {verdict} {'It holds.' if self.adopted else 'The defaults stay.'}"


def tune(
    plan: TunePlan,
    *,
    make_engine: MakeEngine = real_engine,
    folder: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Tuning:
    """Search, choose and compare; nothing is adopted yet.

    Parameters
    ----------
    plan : TunePlan
    make_engine : callable
        Makes an engine from a configuration, in another process.
    folder : Path, optional
        Folder of the stores of studies; `results/tune/studies` unless given.
    say : callable
        Called with a line about each step.

    Raises
    ------
    TuningError
        Optuna is missing, or another process works on the study.
    EngineFailed
        The defaults cannot speak.
    ParameterError
        `tried` names an unknown setting, or a value that it cannot have.
    """
    space = Space.here(usable_providers()).narrowed(plan.tried)
    base = defaults(plan.variant)
    default = space.default(base)
    space = space.including(default)
    texts = texts_by_length([PRESETS[plan.preset]], plan.texts + plan.compared, plan.seed)
    searched, compared = texts[: plan.texts], texts[plan.texts :]
    if held := sorted(set_by_user() & TUNABLE.keys()):
        say(f"Set by the environment, and so not used where it is: {', '.join(held)}.")

    start = in_processes(plan.voice, make_engine)

    say("Loading the defaults.")
    with start(configured(DEFAULTS, base, default)) as beside:
        beside.warm()
        made_for = TuningConditions.of(base, beside.facts["model_sha256"])
        study = search.Search(
            folder or results_folder() / "tune" / "studies",
            identity(made_for, base, plan.voice, searched),
            space,
            default,
            plan.seed,
        )
        say(f"Study {study.name}: {plan.trials} of {space.size} configurations, {plan.texts} texts each.")
        with tqdm(total=min(plan.trials, space.size), desc="trials") as bar:

            def done(number: int, row: Mapping[str, Any]) -> None:
                bar.set_postfix_str(_short(row), refresh=False)
                bar.update(number - bar.n)

            def measure(settings: Settings) -> CandidateFigures:
                return measured(beside, lambda: start(configured(CANDIDATE, base, settings)), searched)

            table = search.run_trials(study, measure, plan.trials, done=done)
        facts = beside.facts
    chosen = search.choose(table, default)
    comparison = None
    if chosen is not None and plan.rounds:
        say(f"Comparing with the defaults, {plan.rounds} times on {plan.compared} other texts.")
        both = [configured(name, base, said) for name, said in ((DEFAULTS, default), (CANDIDATE, chosen))]
        comparison = compared_with_defaults(both, compared, plan.rounds, start)
    return Tuning(made_for, base, default, space, table, chosen, comparison, study.store, facts)


def configured(name: str, config: EngineConfig, chosen: Settings) -> Configuration:
    """`config` with the chosen settings, and without a cache of first audio."""
    changes: dict[str, Any] = dict(chosen)
    return Configuration(name, replace(config, **changes, first_audio_ttl_s=0.0))


def identity(
    made_for: TuningConditions, base: EngineConfig, voice: str, texts: Sequence[str]
) -> dict[str, Any]:
    """Everything on which the figures of a search depend, so that figures of other settings or another commit
    are not mixed in."""
    said = {"engine": recorded_options(base), "voice": voice, "texts": list(texts)}
    return asdict(made_for) | versions() | said | {"commit": git_state()["commit"]}


def defaults(variant: str | None = None) -> EngineConfig:
    """The environment's configuration, with the package's default for every setting that is tuned."""
    said = EngineConfig.from_settings()
    own: dict[str, Any] = {name: getattr(EngineConfig(), name) for name in TUNABLE}
    return replace(said, **own, variant=variant or said.variant)


def keep(tuning: Tuning, home: Path | None = None) -> Path | None:
    """Write the configuration where the engine reads it, if it was adopted."""
    return adopt(tuning.tuned, home) if tuning.adopted else None


def _short(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    ratios = ", ".join(f"{name} ×{row[f'{name}_ratio']:.2f}" for name in OBJECTIVES)
    return ratios if row["state"] == search.FEASIBLE else str(row["state"])
