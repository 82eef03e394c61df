"""The checks on a run of the tuner, and the faults that it must notice."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.results import Check, Finished, NegativeControl, Run
from kokoro_lab.lab.tuning import adoption, search
from kokoro_lab.lab.tuning.autotune import TunePlan, Tuning
from kokoro_lab.lab.tuning.candidate import MARGINS, OBJECTIVES, SNR_LOW_DB
from kokoro_lab.lab.tuning.search_space import Choice
from kokoro_lab.metrics.intervals import Estimate
from kokoro_lab.sessions.providers import recorded_options
from kokoro_lab.sessions.tuned import TunedConfiguration, adopt, with_tuned


def checks(tuning: Tuning, plan: TunePlan) -> list[Check]:
    """The checks for any machine, whatever settings it prefers."""
    first = tuning.table.iloc[0]
    adopted = tuning.comparison if tuning.adopted else None
    return [
        Check("configurations_count", len(tuning.table), low=min(plan.trials, tuning.space.size)),
        Check("defaults_to_themselves_snr_db", first.snr_db, low=SNR_LOW_DB),
        # The defaults compared with themselves have the ratio 1
        Check(
            "worst_cost_to_margin_ratio", adopted.worst if adopted else 1 / min(MARGINS.values()), high=1.0
        ),
        Check("sound_excess_db", adopted.excess_db if adopted else 0.0, high=0.0),
        Check("settings_read_otherwise_count", _read_otherwise(tuning), high=0),
    ]


def figures(tuning: Tuning) -> dict[str, float]:
    """Figures of search and comparison without limits. The first row compares the defaults with themselves,
    and so shows the noise."""
    first = tuning.table.iloc[0]
    found = {f"defaults_to_themselves_{name}_ratio": first[f"{name}_ratio"] for name in OBJECTIVES}
    found |= {"adopted_count": float(tuning.adopted)}
    for state, count in tuning.table.state.value_counts().items():
        found[f"{str(state).replace(' ', '_')}_count"] = float(count)
    return found | ({} if tuning.comparison is None else tuning.comparison.gains)


def conclude(run: Run, tuning: Tuning, plan: TunePlan) -> Finished:
    """Write `result.json`, then raise if a check failed or a fault was missed.

    Raises
    ------
    GateFailed
        A check failed or a fault was missed, so nothing may be adopted.
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
        remarks=[] if tuning.comparison else ["nothing was compared with the defaults"],
    )


def details(tuning: Tuning) -> dict[str, Any]:
    """Tables and sentences for the result."""
    compared = tuning.comparison
    return {
        "decision": tuning.decision,
        "chosen": tuning.chosen,
        "defaults": dict(tuning.default),
        "rules": {"chosen": search.RULE, "adopted": adoption.RULE},
        "ratios": {} if compared is None else {name: _recorded(r) for name, r in compared.ratios.items()},
        "space": tuning.space.choices(),
        "study": tuning.store.name,
        "trials": tuning.table.to_dict("records"),
    }


def _recorded(cost: Estimate) -> dict[str, float]:
    return {"ratio": cost.value, "low": cost.low, "high": cost.high, "units": cost.units}


def controls(tuning: Tuning) -> list[NegativeControl]:
    """Faults that must not change the settings: candidates that are worse, and files of other machines."""
    return [*adoption.made_up_controls(), *_files_refused(tuning)]


def _read_otherwise(tuning: Tuning) -> int:
    """The number of settings that an engine would load with another value than the one that was written."""
    wanted = tuning.tuned.settings
    read = _loaded(tuning, tuning.tuned)
    return sum(getattr(read, name) != value for name, value in wanted.items())


def _files_refused(tuning: Tuning) -> list[NegativeControl]:
    other: dict[str, Choice] = {"threads": 1 if tuning.default["threads"] != 1 else 2}
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
    """The configuration that an engine would load if `tuned` had been adopted."""
    with tempfile.TemporaryDirectory(prefix="kokoro-lab-") as folder:
        adopt(tuned, Path(folder))
        return with_tuned(replace(tuning.base, home=Path(folder)), tuning.made_for.model_sha256)
