"""Models that compute less, beside the model that ships: how they sound, and what they save.

All models speak the same durations, pitch and energy, those of the float model, in windows with predicted
statistics, as a stream does. So PESQ compares sound and not timing.

PESQ and STOI compare a clip with a reference (4.64 and 1 for equal clips); DNSMOS rates a clip by itself,
from 1 to 5.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.making import make_stages
from kokoro_lab.graphs.rewriting import Model
from kokoro_lab.lab.bars import quiet, tqdm
from kokoro_lab.lab.gates import intelligibility
from kokoro_lab.lab.research.residual_steps import Cuts, narrowed_recipes
from kokoro_lab.lab.research.turns import ratios, take_turns
from kokoro_lab.lab.tuning.comparison import Spoken, distances, heard_part, mean_interval, segments_of
from kokoro_lab.metrics.intelligibility import Transcriber
from kokoro_lab.metrics.mos import dnsmos
from kokoro_lab.metrics.perceptual import PESQ_CEILING
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.native.operators import native_operators

UNCUT = "uncut"
WORTH = 0.85
"""A candidate is worth having if it takes at most this share of the uncut model's computing time."""
LOSS = 0.03
"""Limit of quality: PESQ at most 3 % below the highest, DNSMOS at most 3 % below the reference's."""
RISE_POINTS = 3.0
"""Limit of quality: the speech recogniser mishears at most this many more words in a hundred."""


def made(cuts: Cuts, config: EngineConfig, stages: Mapping[str, Model]) -> StagedDecoder:
    """A decoder of `config`'s variant, with its residual steps cut as `cuts` says; `stages` are those of
    `making.published_stages`.

    Without cuts it is the decoder that ships.
    """
    if not cuts:
        return StagedDecoder(config)
    native = native_operators(config).library is not None
    with tempfile.TemporaryDirectory(prefix="kokoro-lab-") as name:
        folder = Path(name) / "stages"
        make_stages(folder, config, narrowed_recipes(config.variant, cuts, native=native), stages)
        return StagedDecoder(config, folder=folder)


def heard(
    reference: StagedDecoder,
    candidates: Mapping[str, StagedDecoder],
    lines: Sequence[str],
    voices: Sequence[str],
    recogniser: Transcriber,
) -> pd.DataFrame:
    """Have all candidates speak every line, each line by the next of `voices` in turn.

    Returns
    -------
    pandas.DataFrame
        A row for each candidate and line: text, voice, candidate; pesq, stoi, lsd_db against `reference`;
        dnsmos_candidate, dnsmos_reference; and the columns of `intelligibility.understood`.
    """
    front_end, rows = FrontEnd(), []
    known = intelligibility.Remembering(recogniser)
    for number, line in enumerate(tqdm(lines, desc="heard", disable=None)):
        voice = voices[number % len(voices)]
        spoken = list(segments_of(front_end, line, voice))
        clips = clips_of(reference, candidates, spoken)
        for name, samples in clips.items():
            if name == "":
                continue
            pair = {"candidate": samples, "reference": clips[""]}
            opinions = {f"dnsmos_{side}": dnsmos(clip, SAMPLE_RATE_HZ) for side, clip in pair.items()}
            about = {"text": number, "voice": voice, "candidate": name}
            understood = intelligibility.understood(pair, line, known)
            rows.append(about | distances(clips[""], samples) | opinions | understood)
    return pd.DataFrame(rows)


def clips_of(
    reference: StagedDecoder, candidates: Mapping[str, StagedDecoder], spoken: Sequence[Spoken]
) -> dict[str, Samples]:
    """The samples of the reference (named "") and of every candidate, without the silence at the ends of the
    reference's segments."""
    parts: dict[str, list[Samples]] = {name: [] for name in ("", *candidates)}
    for token_ids, style in spoken:
        contours = reference.prosody.contours(token_ids, style, 1.0)
        own = np.concatenate(list(reference.windows(contours, style)))
        part = heard_part(own)
        parts[""].append(own[part])
        for name, decoder in candidates.items():
            parts[name].append(np.concatenate(list(decoder.windows(contours, style)))[part])
    return {name: np.concatenate(several) for name, several in parts.items()}


def timed(
    candidates: Mapping[str, StagedDecoder], lines: Sequence[str], voices: Sequence[str], rounds: int
) -> pd.DataFrame:
    """Time every candidate while it computes the contours and all windows of every line; candidates are
    interleaved, and `UNCUT` must be one of them. The rows are those of `turns.take_turns`."""
    front_end, trials = FrontEnd(), []
    with quiet():
        for number, line in enumerate(lines):
            spoken = list(segments_of(front_end, line, voices[number % len(voices)]))
            ways: dict[str, Callable[[], object]] = {
                name: partial(_spoken, decoder, spoken) for name, decoder in candidates.items()
            }
            for way in ways.values():
                way()
            trials += take_turns(ways, number, rounds)
    return pd.DataFrame(trials)


def _spoken(decoder: StagedDecoder, spoken: Sequence[Spoken]) -> None:
    for token_ids, style in spoken:
        contours = decoder.prosody.contours(token_ids, style, 1.0)
        for _ in decoder.windows(contours, style):
            pass


def curve(rows: pd.DataFrame, trials: pd.DataFrame) -> pd.DataFrame:
    """What each candidate saves and how it sounds; a row for each, `UNCUT` first.

    Returns
    -------
    pandas.DataFrame
        compute_ratio with compute_low and compute_high, CPU time divided by that of `UNCUT`; pesq_mean with
        its interval, stoi_mean; dnsmos_change_ratio; word_rise_points; within, whether it is within the
        limits of quality.
    """
    cost = ratios(trials, UNCUT)
    found = []
    for name, own in rows.groupby("candidate", sort=False):
        low, high = mean_interval(own, "pesq")
        ratio = dict(cost.loc[name]) if name in cost.index else dict.fromkeys(("ratio", "low", "high"), 1.0)
        row = {"candidate": name, "compute_ratio": ratio["ratio"]}
        row |= {"compute_low": ratio["low"], "compute_high": ratio["high"]}
        row |= {"pesq_mean": own.pesq.mean(), "pesq_mean_low": low, "pesq_mean_high": high}
        row |= {"stoi_mean": own.stoi.mean()}
        row["dnsmos_change_ratio"] = own.dnsmos_candidate.mean() / own.dnsmos_reference.mean() - 1
        errors = own.word_errors_candidate.sum() - own.word_errors_reference.sum()
        row["word_rise_points"] = 100 * errors / own.words.sum()
        found.append(row)
    table = pd.DataFrame(found).set_index("candidate")
    table["within"] = (
        (table.pesq_mean >= (1 - LOSS) * PESQ_CEILING)
        & (table.dnsmos_change_ratio >= -LOSS)
        & (table.word_rise_points <= RISE_POINTS)
    )
    return table


def verdict(table: pd.DataFrame, what: str) -> str:
    """The answer of the notebook, in one sentence: whether a candidate is worth it, and if none is, by how
    much the goal is missed."""
    asked = 100 * (1 - WORTH)
    within = table[table.within & (table.index != UNCUT)]
    worth, said = False, "no candidate is within the limits of quality"
    if not within.empty:
        best = within.loc[within.compute_ratio.idxmin()]
        worth = bool(best.compute_high <= WORTH)
        ratios = (best.compute_ratio, best.compute_high, best.compute_low)
        saved, least, most = (100 * (1 - float(ratio)) for ratio in ratios)
        said = (
            f"within the limits of quality, {what} ({best.name}) saves {saved:.1f} % of the computing time "
            f"(95 % interval: {least:.1f} to {most:.1f} %), where at least {asked:.0f} % was asked for"
        )
    if worth:
        return f"worth it: {said}"
    if not within.empty and best.compute_ratio <= WORTH:
        return f"not worth it: {said}, by the lower end of the interval"
    at = pesq_at(table, WORTH)
    limit = f"PESQ is {at:.2f} where {asked:.0f} % is saved ({(1 - LOSS) * PESQ_CEILING:.2f} is the limit)"
    missed = limit if np.isfinite(at) else f"no candidate saves {asked:.0f} %"
    return f"not worth it: {said}; {missed}"


def pesq_at(table: pd.DataFrame, ratio: float) -> float:
    """PESQ at `ratio`, a share of the uncut model's computing time: interpolated between the candidates just
    above and below it; NaN if no candidate computes so little."""
    ordered = table.sort_values("compute_ratio", ascending=False)[["compute_ratio", "pesq_mean"]]
    for (above, pesq), (below, less) in pairwise(ordered.itertuples(index=False)):
        if below <= ratio <= above:
            return float(np.interp(ratio, [below, above], [less, pesq]))
    return float("nan")


def figures_of(table: pd.DataFrame) -> dict[str, float]:
    """The figures that a result keeps."""
    columns = ["compute_ratio", "pesq_mean", "dnsmos_change_ratio", "word_rise_points"]
    found = {
        f"{str(name).replace(' ', '_')}_{column}": float(row[column])
        for name, row in table.iterrows()
        for column in columns
    }
    return found | {"at_worth_pesq_mean": pesq_at(table, WORTH)}
