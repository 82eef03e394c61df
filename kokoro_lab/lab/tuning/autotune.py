"""The tuner, from its options to a decision: search, choose, compare, adopt.

The defaults stay loaded in a process of their own, and every candidate is measured beside them; see
`candidates` for what is measured, `study` for the search and `adoption` for what decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from kokoro_lab.config import set_by_user
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.engine_process import EngineProcess, MakeEngine, real_engine
from kokoro_lab.lab.bench.texts import PRESETS, sentences_of, texts_of
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.lab.results import results_folder
from kokoro_lab.lab.tuning import adoption, study
from kokoro_lab.lab.tuning.adoption import DefaultsComparison
from kokoro_lab.lab.tuning.candidates import (
    OBJECTIVES,
    CandidateFigures,
    Choice,
    Settings,
    Space,
    configured,
    in_turns,
    measured,
)
from kokoro_lab.lab.tuning.study import Search
from kokoro_lab.model.by_cost import usable_providers
from kokoro_lab.provenance import git_state, versions
from kokoro_lab.sessions.provider_choice import AUTO
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.sessions.tuned import TUNABLE, TunedConfiguration, TuningConditions, adopt

MOST_TEXTS = 28
"""Of the fixtures' sentences so many texts can be made, each with a beginning of its own."""
FEWEST = 3


@dataclass(frozen=True, slots=True)
class TunePlan:
    """What to try, and on how much.

    Parameters
    ----------
    trials : int
        Configurations to measure, the defaults among them; those of earlier runs count.
    texts : int
        Texts that each speaks in the search.
    compared : int
        Other texts, on which the one that was chosen is compared with the defaults.
    rounds : int
        How often, each time in fresh processes; 0 leaves it at the search, and nothing is adopted.
    preset : str
        Length of the texts, one of `PRESETS`.
    voice : str
    variant : str, optional
        None takes what the environment says.
    tried : str
        Values of some settings instead of those that are tried by default, such as `threads=1,2`; the
        defaults' own are tried beside them.
    seed : int
        Of the texts and of the sampler.

    Raises
    ------
    ParameterError
        Too few to compare, or more than there are texts.
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
        limits = {
            "trials": (1, 10_000),
            "texts": (1, MOST_TEXTS - FEWEST),
            "compared": (FEWEST, MOST_TEXTS - self.texts),
            "rounds": (FEWEST if self.rounds else 0, 100),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise ParameterError(
                    f"{name} cannot be {getattr(self, name)}.",
                    field=name,
                    value=getattr(self, name),
                    allowed=f"{low} to {high}" + (", or 0" if name == "rounds" else ""),
                )
        if self.preset not in PRESETS:
            raise ParameterError(
                f"There is no preset {self.preset!r}.",
                field="preset",
                value=self.preset,
                allowed=", ".join(PRESETS),
            )


@dataclass(frozen=True, slots=True)
class Tuning:
    """What a run of the tuner came to.

    Parameters
    ----------
    made_for : TuningConditions
    base : EngineConfig
        The defaults.
    default : mapping
        Their settings.
    space : Space
    table : pandas.DataFrame
        As `study.table_of`.
    chosen : dict or None
        What was compared; None if the defaults measured best.
    comparison : DefaultsComparison or None
        None if nothing was chosen, or it was not asked for.
    store : Path
        Where the study is kept.
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
        """As the engine reads it. A provider that `auto` would take anyway is left to `auto`; another one is
        preferred, not asked for: nobody has named it, so an engine that cannot have it speaks without it."""
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
        """In a sentence or two, for people."""
        counts = self.table.state.value_counts()
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        said = f"{len(self.table)} configurations ({states}). "
        if self.chosen is None:
            return said + "The defaults stay: nothing measured better by the rule."
        chosen = ", ".join(f"{k}={v}" for k, v in self.chosen.items() if v != self.default[k])
        if self.comparison is None:
            return said + f"Chosen, and not compared: {chosen}."
        verdict = f"Compared, × the defaults: {str(self.comparison).partition(': ')[2]}."
        return f"{said}Chosen: {chosen}. {verdict} {'It holds.' if self.adopted else 'The defaults stay.'}"


def tune(
    plan: TunePlan,
    *,
    make_engine: MakeEngine = real_engine,
    folder: Path | None = None,
    progress: bool = True,
    say: Callable[[str], None] = lambda line: None,
) -> Tuning:
    """Search, choose and compare; nothing is adopted yet.

    Parameters
    ----------
    plan : TunePlan
    make_engine : callable
        From a configuration, in another process.
    folder : Path, optional
        For the stores of studies; `results/tune/studies` unless given.
    progress : bool
        Whether to show bars.
    say : callable
        Told in a line each what begins.

    Raises
    ------
    TuningError
        Optuna is missing, or another process works on the study.
    EngineFailed
        The defaults cannot speak.
    ParameterError
        A setting or value in `tried` that there is not.
    """
    space = Space.here(usable_providers()).narrowed(plan.tried)
    base = defaults(plan.variant)
    default = space.default(base)
    space = space.including(default)
    texts = _texts(plan)
    searched, compared = texts[: plan.texts], texts[plan.texts :]
    if held := sorted(set_by_user() & TUNABLE.keys()):
        say(f"Set by the environment, and so not used where it is: {', '.join(held)}.")

    def start(name: str, settings: Settings) -> EngineProcess:
        return EngineProcess(name, configured(base, settings), plan.voice, make_engine)

    say("Loading the defaults.")
    with start("defaults", default) as beside:
        made_for = TuningConditions.of(base, beside.loaded.facts["model_sha256"])
        search = Search(
            folder or results_folder() / "tune" / "studies",
            identity(made_for, base, plan.voice, searched),
            space,
            default,
            plan.seed,
        )
        say(f"Study {search.name}: {plan.trials} of {space.size} configurations, {plan.texts} texts each.")
        with tqdm(total=min(plan.trials, space.size), desc="trials", disable=not progress) as bar:

            def done(number: int, row: Mapping[str, Any]) -> None:
                bar.set_postfix_str(_short(row), refresh=False)
                bar.update(number - bar.n)

            def measure(settings: Settings) -> CandidateFigures:
                return measured(beside, partial(start, "candidate", settings), searched)

            table = study.run_trials(search, measure, plan.trials, done=done)
        facts = beside.loaded.facts
    chosen = study.choose(table, default)
    comparison = None
    if chosen is not None and plan.rounds:
        say(f"Comparing with the defaults, {plan.rounds} times on {plan.compared} other texts.")
        with tqdm(total=plan.rounds * plan.compared, desc="texts", disable=not progress) as bar:
            comparison = adoption.compare(
                partial(start, "defaults", default),
                partial(start, "candidate", chosen),
                compared,
                plan.rounds,
                in_turns,
                done=lambda: bar.update() and None,
            )
    return Tuning(made_for, base, default, space, table, chosen, comparison, search.store, facts)


def identity(
    made_for: TuningConditions, base: EngineConfig, voice: str, texts: Sequence[str]
) -> dict[str, Any]:
    """All that figures of a search depend on: those of other settings, or another commit, would pass for
    these."""
    said = {"engine": recorded_options(base), "voice": voice, "texts": list(texts)}
    return asdict(made_for) | versions() | said | {"commit": git_state()["commit"]}


def defaults(variant: str | None = None) -> EngineConfig:
    """What the environment says, with the package's own values of what is tuned."""
    said = EngineConfig.from_settings()
    own: dict[str, Any] = {name: getattr(EngineConfig(), name) for name in TUNABLE}
    return replace(said, **own, variant=variant or said.variant)


def keep(tuning: Tuning, home: Path | None = None) -> Path | None:
    """Write the configuration where the engine reads it, if it was adopted."""
    return adopt(tuning.tuned, home) if tuning.adopted else None


def _texts(plan: TunePlan) -> list[str]:
    kinds = ("prose", "short", "long")
    sentences = sentences_of([text.text for text in load_texts() if text.kind in kinds])
    return list(texts_of(sentences, PRESETS[plan.preset], plan.texts + plan.compared, plan.seed))


def _short(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    ratios = ", ".join(f"{name} ×{row[f'{name}_ratio']:.2f}" for name in OBJECTIVES)
    return ratios if row["state"] == study.FEASIBLE else str(row["state"])
