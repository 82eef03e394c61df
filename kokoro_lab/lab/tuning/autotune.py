"""The tuner, from its options to a decision: search, choose, compare, adopt.

The defaults stay loaded in a process of their own, and every candidate is measured beside them (`search`). A
search picks what measured best, which is partly luck: so what it chose is compared with the defaults once
more, on other texts and in fresh processes, and adopted only if it holds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from kokoro_lab.config import set_by_user
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.texts import PRESETS
from kokoro_lab.lab.compare.comparison import (
    Comparison,
    Start,
    compare,
    in_processes,
    pooled,
    ratio,
    texts_by_length,
)
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.engine_process import EngineFailed, MakeEngine, real_engine
from kokoro_lab.lab.results import Check, NegativeControl, Run, results_folder
from kokoro_lab.lab.tuning import search
from kokoro_lab.lab.tuning.search import CANDIDATE, COSTS, DEFAULTS, MARGINS, OBJECTIVES
from kokoro_lab.metrics.intervals import FEWEST_UNITS, Estimate
from kokoro_lab.provenance import git_state, versions
from kokoro_lab.sessions.provider_registry import AUTO, usable_providers
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.sessions.tuned import TUNABLE, TunedConfiguration, TuningConditions, adopt, with_tuned

MOST_TEXTS = 28
"""Of the fixtures' sentences so many texts can be made, each with a beginning of its own."""
CONFIDENCE = 1 - 0.05 / len(OBJECTIVES)
"""Of each interval, so that all three are right 95 times of 100 (Bonferroni)."""
RULE = (
    "Adopted if every cost, as a ratio to the defaults', has its whole interval below its margin "
    f"({search.MARGINS_SAID}), one of them below 1, and every text sounds as theirs: "
    f"{search.SNR_LOW_DB:g} dB SNR or more, or PESQ {search.PESQ_LOW:g} or more."
)


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
            "texts": (1, MOST_TEXTS - FEWEST_UNITS),
            "compared": (FEWEST_UNITS, MOST_TEXTS - self.texts),
            "rounds": (FEWEST_UNITS if self.rounds else 0, 100),
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
class DefaultsComparison:
    """Candidate and defaults on the same texts.

    Parameters
    ----------
    ratios : mapping of str to Estimate
        Objective → candidate ÷ defaults.
    excess_db : float
        How far beyond the limit the audio is; at or below 0 it is within.
    """

    ratios: Mapping[str, Estimate]
    excess_db: float

    @property
    def worst(self) -> float:
        """The upper end of an interval over its margin, of the cost where that is most; below 1, no cost is
        worse."""
        return max(cost.high / MARGINS[name] for name, cost in self.ratios.items())

    @property
    def adopted(self) -> bool:
        """Whether `RULE` holds."""
        better = any(cost.high < 1 for cost in self.ratios.values())
        return self.worst < 1 and better and self.excess_db <= 0

    @property
    def gains(self) -> dict[str, float]:
        """By how much each cost is lower, in per cent, and by how much at least, for results."""
        found = {}
        for name, cost in self.ratios.items():
            found[f"{name}_gain_percent"] = 100 * (1 - cost.value)
            found[f"{name}_gain_least_percent"] = 100 * (1 - cost.high)
        return found


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
    space : search.Space
    table : pandas.DataFrame
        As `search.table_of`.
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
    default: search.Settings
    space: search.Space
    table: pd.DataFrame
    chosen: dict[str, search.Choice] | None
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
        settings: dict[str, search.Choice] = dict(self.chosen or {})
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
        ratios = ", ".join(f"{name} × {cost}" for name, cost in self.comparison.ratios.items())
        verdict = f"Compared, × the defaults: {ratios}."
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
    space = search.Space.here(usable_providers()).narrowed(plan.tried)
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
        with tqdm(total=min(plan.trials, space.size), desc="trials", disable=not progress) as bar:

            def done(number: int, row: Mapping[str, Any]) -> None:
                bar.set_postfix_str(_short(row), refresh=False)
                bar.update(number - bar.n)

            def measure(settings: search.Settings) -> search.CandidateFigures:
                return search.measured(beside, lambda: start(configured(CANDIDATE, base, settings)), searched)

            table = search.run_trials(study, measure, plan.trials, done=done)
        facts = beside.facts
    chosen = search.choose(table, default)
    comparison = None
    if chosen is not None and plan.rounds:
        say(f"Comparing with the defaults, {plan.rounds} times on {plan.compared} other texts.")
        both = [configured(name, base, said) for name, said in ((DEFAULTS, default), (CANDIDATE, chosen))]
        comparison = compared_with_defaults(both, compared, plan.rounds, start, progress=progress)
    return Tuning(made_for, base, default, space, table, chosen, comparison, study.store, facts)


def configured(name: str, config: EngineConfig, chosen: search.Settings) -> Configuration:
    """`config` with the chosen settings, and no first audio remembered."""
    changes: dict[str, Any] = dict(chosen)
    return Configuration(name, replace(config, **changes, first_audio_ttl_s=0.0))


def compared_with_defaults(
    both: Sequence[Configuration], texts: Sequence[str], rounds: int, start: Start, *, progress: bool = True
) -> DefaultsComparison:
    """Defaults and candidate in fresh processes each round, the texts interleaved.

    Parameters
    ----------
    both : sequence of Configuration
        `DEFAULTS` and `CANDIDATE`.
    texts : sequence of str
        Three or more, on which nothing was chosen.
    rounds : int
        Three or more: a process has one peak of memory, so rounds are what its interval stands on.

    Raises
    ------
    EngineFailed
        One of them did not speak.
    ParameterError
        Too few texts or rounds.
    """
    found: list[Comparison] = []
    for number in range(rounds):
        found.append(compare(both, texts, start, repetition=number, progress=progress))
        if failed := found[-1].unavailable:
            raise EngineFailed(failed[CANDIDATE])
    trials = pooled(found).trials
    return DefaultsComparison(ratios_of(trials), search.figures_of(trials).excess_db)


def ratios_of(trials: pd.DataFrame) -> dict[str, Estimate]:
    """Ratios of a comparison: times drawn by text, memory, of which a process has one peak, by round.

    Raises
    ------
    ParameterError
        Fewer than three texts or rounds.
    """
    for name, column in (("texts", "text_number"), ("rounds", "repetition")):
        if trials[column].nunique() < FEWEST_UNITS:
            raise ParameterError(
                "So few say nothing about another one.",
                field=name,
                value=trials[column].nunique(),
                allowed=f"{FEWEST_UNITS} or more",
            )
    peaks = trials.groupby(["system", "repetition"]).rss_peak_mb.transform("max")
    trials = trials.assign(rss_peak_mb=peaks)
    units = {"ttfa": ["text_number"], "rtf": ["text_number"], "memory": ["repetition"]}
    return {
        name: ratio(trials, CANDIDATE, cost, DEFAULTS, confidence=CONFIDENCE, units=units[name])
        for name, cost in COSTS.items()
    }


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


def _short(row: Mapping[str, Any]) -> str:
    if not row:
        return ""
    ratios = ", ".join(f"{name} ×{row[f'{name}_ratio']:.2f}" for name in OBJECTIVES)
    return ratios if row["state"] == search.FEASIBLE else str(row["state"])


def checks(tuning: Tuning, plan: TunePlan) -> list[Check]:
    """What must hold on any machine, whatever it prefers."""
    first = tuning.table.iloc[0]
    adopted = tuning.comparison if tuning.adopted else None
    return [
        Check("configurations_count", len(tuning.table), low=min(plan.trials, tuning.space.size)),
        Check("defaults_to_themselves_snr_db", first.snr_db, low=search.SNR_LOW_DB),
        # The defaults cost what the defaults cost
        Check(
            "worst_cost_to_margin_ratio", adopted.worst if adopted else 1 / min(MARGINS.values()), high=1.0
        ),
        Check("sound_excess_db", adopted.excess_db if adopted else 0.0, high=0.0),
        Check("settings_read_otherwise_count", _read_otherwise(tuning), high=0),
    ]


def figures(tuning: Tuning) -> dict[str, float]:
    """Of the search and the comparison, without limits. What noise does is in those of the first row."""
    first = tuning.table.iloc[0]
    found = {f"defaults_to_themselves_{name}_ratio": first[f"{name}_ratio"] for name in OBJECTIVES}
    found |= {"adopted_count": float(tuning.adopted)}
    for state, count in tuning.table.state.value_counts().items():
        found[f"{str(state).replace(' ', '_')}_count"] = float(count)
    return found | ({} if tuning.comparison is None else tuning.comparison.gains)


def conclude(run: Run, tuning: Tuning, plan: TunePlan) -> dict[str, Any]:
    """Write `result.json`, then raise if a check failed or a fault was missed.

    Raises
    ------
    GateFailed
        Nothing of this may be adopted.
    """
    ran = {
        "variant": tuning.base.variant,
        "model_sha256": tuning.made_for.model_sha256,
        "requested_provider": tuning.base.provider,
        "active_provider": tuning.facts["active_provider"],
        "session": recorded_options(tuning.base),
    }
    return run.finish(
        ran,
        checks=checks(tuning, plan),
        controls=controls(tuning),
        figures=figures(tuning),
        details=details(tuning),
    )


def details(tuning: Tuning) -> dict[str, Any]:
    """Tables and words that stand beside the figures."""
    compared = tuning.comparison
    return {
        "decision": tuning.decision,
        "chosen": tuning.chosen,
        "defaults": dict(tuning.default),
        "rules": {"chosen": search.RULE, "adopted": RULE},
        "ratios": {} if compared is None else {name: _recorded(r) for name, r in compared.ratios.items()},
        "space": tuning.space.choices(),
        "study": tuning.store.name,
        "trials": tuning.table.to_dict("records"),
    }


def _recorded(cost: Estimate) -> dict[str, float]:
    return {"ratio": cost.value, "low": cost.low, "high": cost.high, "units": cost.units}


def controls(tuning: Tuning) -> list[NegativeControl]:
    """Faults that must change nothing: candidates that are worse, and files that are not for here."""
    return [*made_up_controls(), *_files_refused(tuning)]


def made_up_controls(
    texts: int = 12, rounds: int = 6, spread: float = 0.02, seed: int = 0
) -> list[NegativeControl]:
    """Candidates that are worse on purpose, on figures that scatter by `spread`; none may be adopted."""
    places = [(name, r, t) for name in (DEFAULTS, CANDIDATE) for r in range(rounds) for t in range(texts)]
    ones = pd.DataFrame(places, columns=["system", "repetition", "text_number"]).assign(round=0)
    scatter = np.random.default_rng(seed).standard_normal((len(ones), len(COSTS)))
    ones[list(COSTS.values())] = 1 + spread * scatter

    def judged(factors: Mapping[str, float], excess_db: float = 0.0) -> bool:
        changed = ones.copy()
        for cost, factor in factors.items():
            changed.loc[changed.system == CANDIDATE, cost] *= factor
        return DefaultsComparison(ratios_of(changed), excess_db).adopted

    better = dict.fromkeys(COSTS.values(), 0.9)
    faults = {
        "the defaults against themselves": judged({}),
        "a tenth sooner, with a tenth more memory": judged(better | {"rss_peak_mb": 1.1}),
        "a tenth less computing, heard a tenth later": judged(better | {"ttfa_s": 1.1}),
        "a tenth better in everything, and it sounds otherwise": judged(better, excess_db=6.0),
    }
    # A rule that adopts nothing would catch them all
    blind = NegativeControl("a tenth better in everything is adopted", caught=judged(better))
    return [
        *(NegativeControl(f"not adopted: {name}", caught=not adopted) for name, adopted in faults.items()),
        blind,
    ]


def _read_otherwise(tuning: Tuning) -> int:
    """Settings that an engine would load with another value than was written."""
    wanted = tuning.tuned.settings
    read = _loaded(tuning, tuning.tuned)
    return sum(getattr(read, name) != value for name, value in wanted.items())


def _files_refused(tuning: Tuning) -> list[NegativeControl]:
    other: dict[str, search.Choice] = {"threads": 1 if tuning.default["threads"] != 1 else 2}
    here = replace(tuning.tuned, settings=other)
    files = {
        "found on another processor": replace(here, made_for=replace(here.made_for, cpu="another")),
        "found with another ONNX Runtime": replace(here, made_for=replace(here.made_for, onnxruntime="0")),
        "with a value that cannot be": replace(here, settings=other | {"chunk_ms": 5}),
    }
    found = [
        NegativeControl(
            f"not used: {name}", caught=replace(read, tuned="no") == tuning.base and read.tuned != "no"
        )
        for name, each in files.items()
        for read in [replace(_loaded(tuning, each), home=tuning.base.home)]
    ]
    read = _loaded(tuning, here)
    return [*found, NegativeControl("used: one that is for here", caught=read.threads == other["threads"])]


def _loaded(tuning: Tuning, tuned: TunedConfiguration) -> EngineConfig:
    """The configuration that an engine would have if that had been adopted."""
    with tempfile.TemporaryDirectory(prefix="kokoro-lab-") as folder:
        adopt(tuned, Path(folder))
        return with_tuned(replace(tuning.base, home=Path(folder)), tuning.made_for.model_sha256)
