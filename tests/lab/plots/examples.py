"""Every plot with data such as a notebook gives it, and with none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import Clip, WordTiming
from kokoro_lab.lab import plots
from kokoro_lab.lab.gates import checklist, faults
from kokoro_lab.lab.plots import Plot
from kokoro_lab.metrics.intervals import Estimate

RATE_HZ = 24_000
RANDOM = np.random.default_rng(7)


def sound(seconds: float) -> Any:
    """A gliding tone, louder and softer as syllables are."""
    at_s = np.arange(int(seconds * RATE_HZ)) / RATE_HZ
    tone = np.sin(2 * np.pi * (200 * at_s + 150 * at_s**2 / max(1.0, seconds)))
    return (0.4 * tone * np.abs(np.sin(7 * at_s)) + 0.01 * RANDOM.standard_normal(len(at_s))).astype(
        np.float32
    )


def clip(seconds: float) -> Clip:
    words = [
        WordTiming("word", 5 * i, 5 * i + 4, 0.1 + 0.5 * i, 0.5 + 0.5 * i, "wˈɜɹd", 0)
        for i in range(int(2 * seconds) - 1)
    ]
    return Clip(sound(seconds), RATE_HZ, report=cast(Any, None), timings=tuple(words))


def by_voice(count: int) -> pd.DataFrame:
    voices = ["af_heart", "am_michael", "bf_emma"]
    rows = [
        (voice, way, f"prose-{i:02d}", -16 + 0.3 * RANDOM.standard_normal() - 2 * (i == 3))
        for voice in voices
        for way in ("file", "stream")
        for i in range(count)
    ]
    return pd.DataFrame(rows, columns=["voice", "way", "text", "integrated_lufs"])


def ratios(names: list[str]) -> pd.DataFrame:
    middle = np.linspace(0.8, 1.2, len(names))
    return pd.DataFrame({"ratio": middle, "low": middle - 0.08, "high": middle + 0.08}, index=names)


def pairs(count: int) -> pd.DataFrame:
    names = [f"af_heart-prose-{i:02d}" for i in range(count)]
    return pd.DataFrame({"dither": 0.3, "candidate": np.linspace(0.6, 3, count), "noise": 5.0}, index=names)


LEARNT = pd.DataFrame({"compute_s": [0.0, 10, 20, 40], "error_db": [-9.0, -10, -11, -12]})
CONTINUED = pd.DataFrame(
    [
        {"name": name, "compute_s": seconds, "error_db": middle, "low_db": middle - 1, "high_db": middle + 1}
        for name, middle in (("noise_res.1", -12.0), ("resblocks.5", -13.0))
        for seconds in (10.0, 1e4)
    ]
)


def groups(count: int) -> pd.DataFrame:
    names = [f"resblocks.{i}" for i in range(count)]
    spread = RANDOM.random((2, count))
    return pd.DataFrame(
        {"group": names, "time_ratio": 0.6 + 0.4 * spread[0], "pesq_mean": 4.2 + 0.4 * spread[1]}
    )


def layers(count: int) -> pd.DataFrame:
    rows = [
        (f"convs1.{i}", step, 20 + i + 4 * j)
        for i in range(count)
        for j, step in enumerate(("nearest", "float"))
    ]
    return pd.DataFrame(rows, columns=["layer", "method", "held_out_db"])


def errors(names: list[str]) -> pd.DataFrame:
    table = pd.DataFrame({"language": "en", "candidate_percent": 3.0, "reference_percent": 2.5}, index=names)
    for side in ("candidate", "reference"):
        table[f"{side}_low"], table[f"{side}_high"] = (
            table[f"{side}_percent"] - 1,
            table[f"{side}_percent"] + 2,
        )
    return table


def measures(names: list[str]) -> pd.DataFrame:
    lower = np.linspace(-0.5, -4, len(names))
    return pd.DataFrame(
        {
            "mean_percent": lower + 0.4,
            "lower_percent": lower,
            "margin_percent": -3.0,
            "how": "forced",
            "holm_p": 0.02,
        },
        index=names,
    )


def ended(scenarios: list[str]) -> pd.DataFrame:
    how = list(faults.COLOURS)
    rows = [
        (scenario, transport, how[(i + j) % 4], np.nan if j else 0.3, 0.1 * i)
        for i, scenario in enumerate(scenarios)
        for j, transport in enumerate(("library", "http", "sse"))
    ]
    return pd.DataFrame(
        rows, columns=["scenario", "transport", "ended", "recover_most_s", "longest_silence_s"]
    )


def taken(graphs: list[str]) -> pd.DataFrame:
    index = pd.MultiIndex.from_product([graphs, ["Core ML"]], names=["graph", "provider"])
    share = np.linspace(0, 100, len(index))
    return pd.DataFrame({"operations taken, %": share, "partitions": np.arange(len(index))}, index=index)


def tuned(count: int) -> pd.DataFrame:
    table = pd.DataFrame(
        RANDOM.uniform(0.8, 1.2, (count, 3)), columns=["ttfa_ratio", "rtf_ratio", "memory_ratio"]
    )
    table["state"] = ["sounds otherwise" if i == 3 else "feasible" for i in range(count)]
    return table.assign(front=[i == 1 for i in range(count)], threads=range(count))


def starts(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"process_s": 1.9, "load_s": 0.9, "first_ttfa_s": 0.4}, index=names)


def predictions(lengths: list[int]) -> pd.DataFrame:
    rows = [(f"threads={n}", length, length * n / 900, 0.1 * n) for n in range(1, 9) for length in lengths]
    return pd.DataFrame(rows, columns=["system", "characters", "wall_s", "ttfa_s"])


def streams(count: int) -> dict[str, Any]:
    one = (list(np.linspace(0.07, 0.5, 80)), [0.05] * 80)
    return {f"{size} ms": [one] * count for size in (30, 120)}


MINUTES = list(np.linspace(0.2, 20, 40))
CREEPING = {
    "TTFA": (MINUTES, list(1 + 0.05 * np.sin(MINUTES))),
    "RTF": (MINUTES, list(1 + 0.002 * np.array(MINUTES))),
}
WINDOWS = {name: (minutes[::8], values[::8]) for name, (minutes, values) in CREEPING.items()}
NO_POINTS: dict[str, Any] = {"TTFA": ([], [])}

CROWDS = pd.DataFrame(
    {
        "listeners": [1.0, 6.0, 12.0, 5.0],
        "ttfa_p50_s": [0.04, 0.06, 0.3, 0.07],
        "ttfa_p95_s": [0.05, 0.14, 1.2, 0.2],
        "underruns_in_10_minutes_count": [0.0, 0.0, 9.0, 0.5],
    },
    ["1 listener", "6 listeners", "12 listeners", "60% by chance"],
)
WRITTEN = (([0.0, 1.0, 4.0], [4, 60, 120]), ([1.4, 2.4, 6.0], [4, 60, 120]), [(2.4, 4.0)])
HEATED = {
    "underruns": pd.DataFrame([[3, 1], [2, 0]], [30, 120], [1, 2]),
    "heard after, ms": pd.DataFrame([[90, 120]]),
}

Drawn = Callable[[], Plot]
EXAMPLES: dict[str, tuple[Drawn, Drawn]] = {
    "speech": (lambda: plots.speech(clip(11)), lambda: plots.speech(clip(0))),
    "spectrograms_compared": (
        lambda: plots.spectrograms_compared(sound(2), sound(2.1), RATE_HZ),
        lambda: plots.spectrograms_compared(sound(2), sound(0), RATE_HZ),
    ),
    "within_band": (
        lambda: plots.within_band(
            [f"clip-{i:02d}" for i in range(40)],
            [*np.linspace(-9, 0, 39), np.nan],
            low=None,
            high=-1,
            label="true peak, dBTP",
        ),
        lambda: plots.within_band(["a"], [np.nan], low=None, high=-1, label="true peak, dBTP"),
    ),
    "levels_by_voice": (
        lambda: plots.levels_by_voice(by_voice(5), low=-17, high=-15),
        lambda: plots.levels_by_voice(by_voice(0), low=-17, high=-15),
    ),
    "loudness_over_time": (
        lambda: plots.loudness_over_time(list(-16 + 4 * np.sin(np.arange(60))), 0.1, -16),
        lambda: plots.loudness_over_time([], 0.1, -16),
    ),
    "levels": (
        lambda: plots.levels({"af_heart": -24.0, "bf_emma": -22.5}, {"af_heart": -24.1, "bf_emma": -22.4}),
        lambda: plots.levels({}, {}),
    ),
    "against_default": (
        lambda: plots.against_default(
            {"RTF": ratios(["a", "b", "c"]), "TTFA": ratios(["a", "b", "c"])}, 0.05
        ),
        lambda: plots.against_default({"RTF": ratios([])}, 0.05),
    ),
    "cost_ratios": (
        lambda: plots.cost_ratios({"TTFA": Estimate(0.9, 0.85, 0.96, 12)}, {"TTFA": 1.02}),
        lambda: plots.cost_ratios({}, {}),
    ),
    "against_bands": (
        lambda: plots.against_bands(
            ratios(["rtf", "ttfa"]).assign(golden=0.9, over_at_least=[0.95, 1.2]), 1.1
        ),
        lambda: plots.against_bands(pd.DataFrame(), 1.1),
    ),
    "ratios_in_turn": (
        lambda: plots.ratios_in_turn(
            pd.DataFrame(
                [(name, i, 1 + 0.02 * i) for name in ("rtf", "ttfa") for i in range(5)],
                columns=["figure", "trial", "ratio"],
            )
        ),
        lambda: plots.ratios_in_turn(pd.DataFrame(columns=["figure", "trial", "ratio"])),
    ),
    "tuned_front": (
        lambda: plots.tuned_front(tuned(8), {"threads": 1}),
        lambda: plots.tuned_front(tuned(0)),
    ),
    "cold_starts": (
        lambda: plots.cold_starts(starts(["default", "threads=1"])),
        lambda: plots.cold_starts(starts([])),
    ),
    "growth": (
        lambda: plots.growth({"noise_res.1": LEARNT, "resblocks.5": LEARNT}, CONTINUED),
        lambda: plots.growth({}, pd.DataFrame()),
    ),
    "by_length": (
        lambda: plots.by_length(
            predictions([100, 300, 900]), {"wall_s": "computing, s", "ttfa_s": "TTFA, s"}, [200]
        ),
        lambda: plots.by_length(predictions([30]), {"wall_s": "computing, s"}, [200]),
    ),
    "stages": (
        lambda: plots.stages({"text": 0.001, "model": 0.2, "sound": 0.01}, 2.0),
        lambda: plots.stages({}, 0.0),
    ),
    "way_to_first_audio": (
        lambda: plots.way_to_first_audio(
            {"text": 0.001, "prosody": 0.02, "vocoder": 0.05}, {"Conv": 0.8, "Add": 0.2}
        ),
        lambda: plots.way_to_first_audio({}, {}),
    ),
    "loading": (lambda: plots.loading({"graphs": 300, "voice": 4}), lambda: plots.loading({})),
    "heat_maps": (
        lambda: plots.heat_maps(HEATED, xlabel="pre-buffer, chunks", ylabel="chunk, ms"),
        lambda: plots.heat_maps(
            {"underruns": pd.DataFrame()}, xlabel="pre-buffer, chunks", ylabel="chunk, ms"
        ),
    ),
    "ahead_of_the_player": (
        lambda: plots.ahead_of_the_player(streams(2), [1, 2, 3]),
        lambda: plots.ahead_of_the_player({"30 ms": []}, [1, 2, 3]),
    ),
    "written_and_heard": (
        lambda: plots.written_and_heard({"5 tokens a second": WRITTEN, "30 tokens a second": WRITTEN}),
        lambda: plots.written_and_heard({}),
    ),
    "capacity": (
        lambda: plots.capacity(CROWDS, 8, 6),
        lambda: plots.capacity(CROWDS[:0], 0, 0),
    ),
    "over_a_soak": (
        lambda: plots.over_a_soak(CREEPING, WINDOWS, 5),
        lambda: plots.over_a_soak(NO_POINTS, NO_POINTS, 5),
    ),
    "held_over_time": (
        lambda: plots.held_over_time([0, 1, 2], {"memory_mb": [600, 640, 640], "threads": [20, 22, 22]}, 0.5),
        lambda: plots.held_over_time([], {"memory_mb": []}, 0.5),
    ),
    "between_anchors": (
        lambda: plots.between_anchors(
            pairs(8), column="candidate", anchors=("dither", "noise"), label="distance, dB"
        ),
        lambda: plots.between_anchors(
            pairs(0), column="candidate", anchors=("dither", "noise"), label="distance, dB"
        ),
    ),
    "pareto": (
        lambda: plots.pareto(groups(7), cost="time_ratio", quality="pesq_mean", label="group", ceiling=4.64),
        lambda: plots.pareto(groups(0), cost="time_ratio", quality="pesq_mean", label="group", ceiling=4.64),
    ),
    "ladder": (
        lambda: plots.ladder(
            layers(4), rows="layer", steps="method", value="held_out_db", label="signal over error, dB"
        ),
        lambda: plots.ladder(
            layers(0), rows="layer", steps="method", value="held_out_db", label="signal over error, dB"
        ),
    ),
    "error_rates": (
        lambda: plots.error_rates(errors(["af_heart", "bm_george"])),
        lambda: plots.error_rates(errors([])),
    ),
    "against_margins": (
        lambda: plots.against_margins(measures(["PESQ", "STOI"])),
        lambda: plots.against_margins(measures([])),
    ),
    "verdicts": (
        lambda: plots.verdicts(
            pd.DataFrame([[3, 1, 2, 1], [0, 2, 9, 4]], ["audio", "text"], list(checklist.COLOURS)),
            checklist.COLOURS,
        ),
        lambda: plots.verdicts(pd.DataFrame(), checklist.COLOURS),
    ),
    "outcomes": (
        lambda: plots.outcomes(ended(["g2p_stalled", "connection_cut", "disk_full"]), faults.COLOURS),
        lambda: plots.outcomes(ended([]), faults.COLOURS),
    ),
    "taken_by": (
        lambda: plots.taken_by(taken(["whole", "trunk", "vocoder"]), {"Core ML": "as it is"}),
        lambda: plots.taken_by(taken([]), {"Core ML": "as it is"}),
    ),
}
"""By the plot's name: with data, and with none."""
