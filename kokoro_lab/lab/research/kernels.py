"""Each operator of ours beside ONNX Runtime's own, and beside the limit of this processor.

For each kind of operator, the node with the most work is taken out of its stage's graph. Its counterpart is
the part of the graph without our operators that computes the same outputs from the same inputs. Both run on
one thread, on tensors of a real text. The limit is the roofline (Williams, Waterman, Patterson, CACM 52(4),
2009): the time for the operator's products at the highest rate measured on a core, or the time for moving all
of its tensors once, whichever is longer. A kernel that needs fewer products than the definition may be faster
than this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.compare.comparison import ratio
from kokoro_lab.lab.research.operator_cases import Case, session_of
from kokoro_lab.lab.research.roofline import BYTE_OPERATORS, LEAST_S, Limits
from kokoro_lab.lab.research.turns import take_turns
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.perceptual import signal_to_difference_db

ORT = "ONNX Runtime"
LEAST_SNR_DB = 40.0
"""Least SNR of our outputs against ONNX Runtime's. Where our operators compute with integers, they round at
other places, which nobody hears at this SNR."""
SLOWED = 1.5
DEVICES = Path(__file__).with_name("devices.tsv")
"""Highest rates of the smallest chip of each generation, from data sheets and clock frequencies. The rate of
the CPU is that of NEON on all performance cores."""
LAUNCH_US, COMMAND_US = 5.0, 150.0
"""Assumed: microseconds for starting a kernel, and for submitting a command buffer and waiting for it."""
BYTES_OVER_FLOATS = 4.0
"""Assumed: how many products of bytes an Apple core computes in the time of one product of floats, by its
dot-product instructions."""
ATTAINED = 0.5
"""Assumed: the share of its peak that a good convolution reaches on a GPU."""


def outputs_snr_db(case: Case, config: EngineConfig, library: Path) -> float:
    """SNR of our outputs against those of ONNX Runtime's operators, for the output where it is least."""
    ours = session_of(case.ours, config, library).run(None, case.feed)
    theirs = session_of(case.theirs, config, None).run(None, case.their_feed)
    found = []
    for own, their in zip(ours, theirs, strict=True):
        # Of what is not voiced nobody hears the phases, and ours are 0
        kept = own != 0 if case.kind == "Phases" else np.ones(own.shape, bool)
        found.append(signal_to_difference_db(their[kept], own[kept]))
    return float(min(found))


def race(
    found: Sequence[Case], config: EngineConfig, libraries: Mapping[str, Path], rounds: int
) -> pd.DataFrame:
    """Time every case with ONNX Runtime's operators and with ours of each instruction set, interleaved.

    Returns
    -------
    pandas.DataFrame
        The rows of `turns.take_turns`, with times for one call, and kind and stage of the case. `slowed` is a
        control: our operator of the best set, called 1.5 times as often in the same turn. `same` is that
        operator, timed once more.
    """
    rows = []
    for number, case in enumerate(tqdm(found, desc="operators", disable=None)):
        calls: dict[str, Callable[[], object]] = {
            ORT: partial(session_of(case.theirs, config, None).run, None, case.their_feed)
        }
        for name, library in libraries.items():
            calls[name] = partial(session_of(case.ours, config, library).run, None, case.feed)
        began = time.perf_counter()
        for call in calls.values():
            call()
        once = (time.perf_counter() - began) / len(calls)
        repeats = 1 + int(LEAST_S / max(once, 1e-6))
        best = calls[list(libraries)[-1]]
        ways = {name: partial(_again, call, repeats) for name, call in calls.items()}
        ways["slowed"] = partial(_again, best, round(SLOWED * repeats + 0.5))
        ways["same"] = ways[list(libraries)[-1]]
        for row in take_turns(ways, number, rounds):
            of_one = {figure: row[figure] / repeats for figure in ("wall_s", "compute_s")}
            rows.append({**row, **of_one, "kind": case.kind, "stage": case.stage})
    return pd.DataFrame(rows)


def _again(call: Callable[[], object], repeats: int) -> None:
    for _ in range(repeats):
        call()


def table_of(found: Sequence[Case], trials: pd.DataFrame, limited: Mapping[str, Limits]) -> pd.DataFrame:
    """A row for each case and instruction set.

    Returns
    -------
    pandas.DataFrame
        stage, kind, set; ours_us, ort_us: medians of one call; ratio, low, high: our time divided by ONNX
        Runtime's, with its interval; mega_operations, traffic_kb, limit_us; limit_share: limit_us divided by
        ours_us.
    """
    rows = []
    for number, case in enumerate(found):
        own = trials[trials.text_number == number].assign(text_number=lambda each: each["round"])
        medians = 1e6 * own.groupby("system").wall_s.median()
        for name, limit in limited.items():
            over = ratio(own, name, "wall_s", ORT)
            limit_us = 1e6 * limit.seconds(case)
            rows.append(
                {"stage": case.stage, "kind": case.kind, "set": name}
                | {"ours_us": medians[name], "ort_us": medians[ORT]}
                | {"ratio": over.value, "low": over.low, "high": over.high}
                | {"mega_operations": case.operations / 1e6, "traffic_kb": case.traffic_bytes / 1e3}
                | {"limit_us": limit_us, "limit_share": limit_us / medians[name]}
            )
    return pd.DataFrame(rows)


def best_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the best instruction set."""
    return table[table.set == table.set.iloc[-1]]


def against_ort(table: pd.DataFrame) -> pd.DataFrame:
    """Our times divided by ONNX Runtime's, with the best instruction set: the rows that
    `plots.against_default` draws."""
    rows = best_rows(table)
    return rows.set_index(rows.stage + ", " + rows.kind)[["ratio", "low", "high"]]


def on_paper(operations: float, traffic_bytes: float, launches: int, table: pd.DataFrame) -> pd.DataFrame:
    """The times that a kernel for Apple's GPU would have to beat for one window: all computed, none measured.

    Parameters
    ----------
    operations, traffic_bytes : float
        Operations and bytes of the window.
    launches : int
        The number of kernels to start, if each of our operators were one kernel.
    table : pandas.DataFrame
        From `table_of`. On Apple's CPUs, each of our operators is assumed to reach that share of its limit
        which the vocoder's largest operator reaches on this machine.

    Returns
    -------
    pandas.DataFrame
        The columns of DEVICES; cpu_ms, the time of our operators on all performance cores, which has to be
        beaten; gpu_limit_ms, the limit of the GPU by computing or memory, whichever is longer; launches_ms,
        for starting the kernels; gpu_ms, the time at the share `ATTAINED` of the limit, with the launches.
    """
    own = best_rows(table)
    heaviest = own.loc[own[own.stage == "vocoder"].mega_operations.idxmax()]
    faster = heaviest.limit_share * (BYTES_OVER_FLOATS if heaviest.kind in BYTE_OPERATORS else 1.0)
    found = pd.read_csv(DEVICES, sep="\t")
    found["cpu_ms"] = operations / (faster * found.cpu_gflops * 1e9) * 1e3
    computing = operations / (found.gpu_tflops * 1e12) * 1e3
    found["gpu_limit_ms"] = np.maximum(computing, traffic_bytes / (found.memory_gb_per_s * 1e9) * 1e3)
    found["launches_ms"] = (COMMAND_US + launches * LAUNCH_US) / 1e3
    found["gpu_ms"] = found.gpu_limit_ms / ATTAINED + found.launches_ms
    return found


def checks_of(trials: pd.DataFrame, table: pd.DataFrame, snr_db: Sequence[float]) -> list[Check]:
    """The checks: our operators compute what ONNX Runtime's compute; with the best instruction set, they take
    no longer than ONNX Runtime's on average; and a kernel that is timed twice is as fast both times."""
    best = best_rows(table)
    same = ratio(trials, "same", "wall_s", best.set.iloc[0])
    return [
        Check("least_snr_db", float(min(snr_db)), low=LEAST_SNR_DB),
        Check("mean_ratio", float(np.exp(np.log(best.ratio).mean())), high=1.0),
        Check("beside_itself_ratio", same.value, low=0.85, high=1.18),
    ]


def controls(trials: pd.DataFrame, name: str) -> list[NegativeControl]:
    """The control: for a kernel with half as much work again, the whole interval of the ratio must show that
    it is slower. By CPU time, since the elapsed time of so short a run is also that of other processes."""
    slowed = ratio(trials, "slowed", "compute_s", name)
    return [NegativeControl("a kernel that takes half again as long", caught=bool(slowed.low > 1.1))]


def verdict(table: pd.DataFrame) -> str:
    """The answer of the notebook, in one sentence."""
    best = best_rows(table)
    mean = float(np.exp(np.log(best.ratio).mean()))
    slower = best[best.low > 1]
    left = best.loc[(best.ours_us - best.limit_us).idxmax()]
    return (
        f"{len(best)} operators take {mean:.2f} times what ONNX Runtime takes ({len(slower)} are slower: "
        f"{', '.join(slower.stage + ' ' + slower.kind) or 'none'}); most time above the limit is left in "
        f"{left.stage} {left.kind}, at {left.limit_share:.2f} of it"
    )


def figures_of(table: pd.DataFrame, paper: pd.DataFrame) -> dict[str, float]:
    """The figures that a result keeps."""
    best = best_rows(table)
    found: dict[str, float] = {}
    for row in best.itertuples():
        stem = f"{row.stage}_{row.kind.lower()}"
        found |= {f"{stem}_ratio": row.ratio, f"{stem}_limit_share": row.limit_share}
    return found | {f"{row.device.lower()}_gpu_on_paper_ms": row.gpu_ms for row in paper.itertuples()}
