"""How the int8 variant sounds with tuned integers, what it saves, and whether that is worth it.

Tuned integers could be worth it in two ways. In the place of those that ship, they could sound better. Or
layers that ship in float, because they sound worse on integers, could run on integers, too, which saves
computing. All models speak the durations, the pitch and the energy of the float model, in windows with
predicted statistics, as a stream does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.recipes import exclusions
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.research import candidates
from kokoro_lab.lab.research.fine_tune import Tuned, integers_of
from kokoro_lab.lab.research.turns import ratios
from kokoro_lab.lab.tuning.block import BEST
from kokoro_lab.lab.tuning.comparison import distances, segments_of
from kokoro_lab.lab.tuning.precision import PESQ_MEAN_LOW, VariantMaker, layers_in_float
from kokoro_lab.metrics.intervals import FEWEST_UNITS, Estimate, rate_of
from kokoro_lab.model.decoder import StagedDecoder

SHIPS, SAME = "as it ships", "tuned, same layers in float"
ALONE, TOGETHER = "all on integers, by themselves", "all on integers, tuned"
GAIN_PESQ = 0.02
"""The least PESQ that tuned integers must gain in the place of those that ship: a fifth of what `int8` lacks,
for half a megabyte and more. What must reach it is the lower end of the gain's interval."""
SAVED = 0.03
"""The least share of the computing time that integers in all layers of the blocks must save. What must reach
it is the lower end of the interval."""
LOSS_PESQ = 0.01
"""The most PESQ that they may lose against what ships. What must stay within it is the lower end of the
difference's interval."""
NO_INTERVAL = "since so few texts show no interval"


def decoders(found: Sequence[Tuned], config: EngineConfig) -> dict[str, StagedDecoder]:
    """The float model (named ""), `int8` as it ships, and `int8` with other integers in the tuned blocks."""
    config = replace(config, variant="int8")
    maker = VariantMaker(config)
    made = partial(maker.made, only=["vocoder"])
    tuned_layers = {name for each in found for name in each.group.layers}
    shipped = layers_in_float(exclusions()["int8"])
    kept = [name for name in shipped if name not in tuned_layers]
    alone = {name: layer for each in found for name, layer in each.rounded[BEST].items()}
    return {
        "": maker.reference,
        SHIPS: StagedDecoder(config),
        SAME: made(keep=shipped, adjusted=integers_of([each.as_shipped for each in found])),
        ALONE: made(keep=kept, adjusted=alone),
        TOGETHER: made(keep=kept, adjusted=integers_of([each.everywhere for each in found])),
    }


def heard(models: Mapping[str, StagedDecoder], lines: Sequence[str], voices: Sequence[str]) -> pd.DataFrame:
    """Have all models speak every line in every voice.

    Returns
    -------
    pandas.DataFrame
        A row for each line, voice and model but the float one: text, voice, candidate; pesq, stoi, lsd_db
        against the float model.
    """
    front_end, rows = FrontEnd(), []
    others = {name: model for name, model in models.items() if name}
    jobs = [(number, voice) for number in range(len(lines)) for voice in voices]
    for number, voice in tqdm(jobs, desc="heard", disable=None):
        spoken = list(segments_of(front_end, lines[number], voice))
        clips = candidates.clips_of(models[""], others, spoken)
        for name in others:
            about = {"text": number, "voice": voice, "candidate": name}
            rows.append(about | distances(clips[""], clips[name]))
    return pd.DataFrame(rows)


def timed(
    models: Mapping[str, StagedDecoder], lines: Sequence[str], voices: Sequence[str], rounds: int
) -> pd.DataFrame:
    """The computing time of what ships and of the tuned model with all of the blocks on integers,
    interleaved. The rows are those of `turns.take_turns`."""
    return candidates.timed({name: models[name] for name in (SHIPS, TOGETHER)}, lines, voices, rounds)


def gain(table: pd.DataFrame, name: str, against: str = SHIPS) -> Estimate:
    """By how much PESQ is higher with the model `name`, paired by text and voice, with its 95 % interval over
    texts. With fewer than three texts, its ends are infinite: so few show nothing."""
    wide = table.pivot(index=["text", "voice"], columns="candidate", values="pesq")
    change = wide[name] - wide[against]
    found = rate_of(change, [1.0] * len(change), list(wide.index.get_level_values("text")))
    return found if found.units >= FEWEST_UNITS else replace(found, low=-math.inf, high=math.inf)


def saving(trials: pd.DataFrame) -> Estimate:
    """The share of the computing time of what ships that integers in all layers of the blocks save."""
    cost = ratios(trials, SHIPS).loc[TOGETHER]
    units = trials.text_number.nunique()
    value, low, high = (1 - float(cost[end]) for end in ("ratio", "high", "low"))
    return Estimate(value, low, high, units)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """How each model sounds: a row for each, with PESQ, STOI, and the gain in PESQ on what ships."""
    rows = []
    for name, own in table.groupby("candidate", sort=False):
        gained = gain(table, str(name))
        rows.append(
            {
                "candidate": name,
                "pesq_mean": own.pesq.mean(),
                "pesq_p5": own.pesq.quantile(0.05),
                "stoi_mean": own.stoi.mean(),
                "pesq_gain": gained.value,
                "pesq_gain_low": gained.low,
                "pesq_gain_high": gained.high,
            }
        )
    return pd.DataFrame(rows).set_index("candidate")


def verdict(table: pd.DataFrame, saved: Estimate, shipped_bytes: int) -> str:
    """The answer of the notebook, in one sentence for each way to be worth it: whether it is, or by how much
    it misses what is asked for."""
    better, equal = gain(table, SAME), gain(table, TOGETHER)
    mean = float(table.pesq[table.candidate == TOGETHER].mean())
    least = PESQ_MEAN_LOW["int8"]
    sounds = better.low >= GAIN_PESQ
    saves = saved.low >= SAVED and equal.low >= -LOSS_PESQ and mean >= least
    percent = Estimate(100 * saved.value, 100 * saved.low, 100 * saved.high, saved.units)
    share, saving = f"{percent} %", f"the saving by {100 * (SAVED - saved.low):.1f} points"
    if not math.isfinite(saved.low):
        share, saving = f"{percent.value:.1f} %", f"the saving, {NO_INTERVAL}"
    lacking, loss = f"by {GAIN_PESQ - better.low:.3f}", f"the loss by {-LOSS_PESQ - equal.low:.3f}"
    if not math.isfinite(better.low):  # both are of the same texts
        lacking, loss = NO_INTERVAL, f"the loss, {NO_INTERVAL}"
    missed = [
        text
        for beyond, text in (
            (saved.low < SAVED, saving),
            (equal.low < -LOSS_PESQ, loss),
            (mean < least, f"the least mean PESQ by {least - mean:.3f}"),
        )
        if beyond
    ]
    heard_as = (
        f"in the place of the integers that ship, tuned ones gain {_shown(better)} PESQ, where the lower end "
        f"must reach {GAIN_PESQ:g}" + ("" if sounds else f": missed {lacking}")
    )
    computed = (
        f"with all of the blocks on integers, {share} of the computing time is saved ({100 * SAVED:g} % "
        f"asked for) and PESQ changes by {_shown(equal)} (a loss of {LOSS_PESQ:g} allowed) to {mean:.3f} "
        f"({least:g} at least)" + (f": missed, {', '.join(missed)}" if missed else "")
    )
    worth = "worth it" if sounds or saves else "not worth it"
    return f"{worth}: {heard_as}; {computed}; {shipped_bytes / 1e6:.1f} MB would be shipped"


def _shown(found: Estimate) -> str:
    return str(found) if math.isfinite(found.low) else f"{found.value:.3f}"


def figures_of(table: pd.DataFrame, saved: Estimate, shipped_bytes: int) -> dict[str, float]:
    """The figures that a result keeps."""
    found = {
        f"{str(name).replace(',', '').replace(' ', '_')}_{column}": float(row[column])
        for name, row in summary(table).iterrows()
        for column in ("pesq_mean", "pesq_gain", "pesq_gain_low", "pesq_gain_high")
    }
    ends = {"saved_share": saved.value, "saved_share_low": saved.low, "saved_share_high": saved.high}
    return found | ends | {"shipped_mb": shipped_bytes / 1e6}
