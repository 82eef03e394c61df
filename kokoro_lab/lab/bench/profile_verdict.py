"""Tables of a profile, checks on them, and made-up profiles that must fail these checks."""

from __future__ import annotations

import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.bench.profile import (
    COLD,
    END,
    FIRST_AUDIO,
    STAGES,
    VOCODER_STAGES,
    WARM,
    profile_loading,
    profile_operators,
    profile_stages,
)
from kokoro_lab.lab.results import Check, NegativeControl, failed

TOTAL_TOLERANCE = 0.20
OPERATOR_COVER_LOW = 0.80
SHOWN_SHARE = 0.02


def stage_table(stages: pd.DataFrame) -> pd.DataFrame:
    """Median milliseconds by stage, cold and warm, to the first audio and to the end; the last row is elapsed
    time."""
    columns = {}
    for (until, state), rows in stages.groupby(["until", "state"]):
        milliseconds = rows.groupby("stage").stage_s.median().reindex(STAGES) * 1000
        milliseconds["wall clock"] = rows.groupby("trial").wall_s.first().median() * 1000
        columns[f"{state}, {until}, ms"] = milliseconds
    order = [f"{state}, {until}, ms" for state in (COLD, WARM) for until in (FIRST_AUDIO, END)]
    return pd.DataFrame(columns)[[name for name in order if name in columns]]


def operator_table(operators: pd.DataFrame) -> pd.DataFrame:
    """Calls, milliseconds and percent of the graph's time, for each operator of a graph that takes 2 % or
    more."""
    shown = operators[operators.share >= SHOWN_SHARE].set_index(["graph", "operator"])
    return pd.DataFrame(
        {"calls": shown.calls, "ms": 1000 * shown.operator_s, "percent of graph": 100 * shown.share}
    )


def medians_s(stages: pd.DataFrame, *, until: str = FIRST_AUDIO) -> dict[str, float]:
    """Median warm seconds of each stage that took any time, in the order of the pipeline."""
    rows = stages[(stages.until == until) & (stages.state == WARM)]
    medians = rows.groupby("stage").stage_s.median().reindex(STAGES)
    return {str(stage): float(seconds) for stage, seconds in medians.items() if seconds > 0}


def vocoder_shares(operators: pd.DataFrame) -> dict[str, float]:
    """Share of the vocoder's time by operator type, the largest first."""
    rows = _vocoder_rows(operators).sort_values("share", ascending=False)
    return dict(zip(rows.operator, rows.share, strict=True))


def _vocoder_rows(operators: pd.DataFrame) -> pd.DataFrame:
    return operators[operators.graph.str.startswith("vocoder")]


def judge(stages: pd.DataFrame, operators: pd.DataFrame) -> list[Check]:
    """The checks that hold on any machine: the stages' times add up to the elapsed time, the vocoder takes
    longest, and its operators account for its time."""
    sums = stages.groupby(["trial", "until"]).agg(stage_s=("stage_s", "sum"), wall_s=("wall_s", "first"))
    ratio = sums.stage_s / sums.wall_s
    whole_s = medians_s(stages, until=END)
    vocoder_s = sum(whole_s.get(stage, 0.0) for stage in VOCODER_STAGES)
    others_s = [seconds for stage, seconds in whole_s.items() if stage not in VOCODER_STAGES]
    return [
        Check("stages_to_wall_clock_least_ratio", ratio.min(), low=1 - TOTAL_TOLERANCE),
        Check("stages_to_wall_clock_most_ratio", ratio.max(), high=1 + TOTAL_TOLERANCE),
        Check("vocoder_to_next_largest_stage_ratio", vocoder_s / max(others_s), low=1.0),
        Check(
            "operators_share_of_vocoder_ratio", _vocoder_rows(operators).share.sum(), low=OPERATOR_COVER_LOW
        ),
    ]


def controls(stages: pd.DataFrame, operators: pd.DataFrame) -> list[NegativeControl]:
    """Profiles with a fault in them; each must fail `judge`."""
    windows = stages.stage.isin(VOCODER_STAGES)
    slowest = operators.operator == _vocoder_rows(operators).operator.iloc[0]
    faulty = {
        "a stage that nobody timed": (stages[~windows], operators),
        "a stage timed twice": (pd.concat([stages, stages[windows]]), operators),
        "an operator that is lost": (stages, operators[~slowest]),
    }
    return [NegativeControl(name, caught=bool(failed(judge(*tables)))) for name, tables in faulty.items()]


def profile_report(
    engine_config: EngineConfig, text: str, voice: str, *, trials: int = 10, loads: int = 3
) -> str:
    """Loading, stages and operators as text, for a terminal. Parameters and errors as `profile_stages`."""
    loading = profile_loading(engine_config, voice, loads=loads)
    stages = profile_stages(engine_config, text, voice, trials=trials, loads=loads)
    operators = profile_operators(engine_config, text, voice)
    threads = engine_config.thread_count
    return "\n".join(
        [
            f"{len(text)} characters, {voice}, {threads} thread{'s' if threads > 1 else ''}; medians",
            "",
            "Loading, ms",
            pd.Series(loading_ms(loading)).round(1).to_string(),
            "",
            "Stages",
            stage_table(stages).round(1).to_string(),
            "",
            f"Operators, warm, those over {SHOWN_SHARE:.0%} of their graph",
            operator_table(operators).round(1).to_string(),
        ]
    )


def loading_ms(loading: pd.DataFrame) -> dict[str, float]:
    """Median milliseconds by part, in the order of loading."""
    return {str(part): 1000 * rows.median() for part, rows in loading.groupby("part", sort=False).load_s}
