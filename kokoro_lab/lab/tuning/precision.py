"""Compares a precision with the float model: its loss of sound quality, and the time that it saves.

*Prosody* is the durations, the pitch and the energy of a segment, which the first stage of the model
predicts. PESQ and STOI compare a clip with a reference (4.64 and 1 for equal clips); DNSMOS rates a clip by
itself, from 1 to 5.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.g2p.frontend import FrontEnd
from kokoro_lab.graphs.artefacts import stages_folder
from kokoro_lab.graphs.making import make_stages, published_stages
from kokoro_lab.graphs.quantise import Calibration, QuantisedLayer, Range
from kokoro_lab.graphs.recipes import exclusions, recipes
from kokoro_lab.graphs.signatures import frames_of, graph_path
from kokoro_lab.lab.bars import quiet, tqdm
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.tuning.comparison import distances, heard_part, mean_interval, segments_of
from kokoro_lab.metrics.prosody import prosody_drift
from kokoro_lab.model.decoder import StagedDecoder
from kokoro_lab.model.prosody import Contours
from kokoro_lab.native.operators import native_operators

PESQ_MEAN_LOW = {"int8": 4.55, "int8fp16mix": 4.60}
PESQ_P5_LOW, STOI_MEAN_LOW = 4.40, 0.998
"""Least PESQ (5th percentile) and STOI (mean) of a variant with integers that speaks fp32's prosody. The
highest PESQ is 4.64."""
WRONG_GROUP = "resblocks.4"
WRONG_RANGES = {"ranges of a block ten times too wide": 10.0, "ranges of a block a third as wide": 0.3}

GAINS = {
    "pesq_gain": "pesq_mean",
    "stoi_gain": "stoi_mean",
    "streamed_pesq_gain": "streamed_pesq_mean",
    "streamed_stoi_gain": "streamed_stoi_mean",
    "changed_durations_ratio_gain": "changed_durations_ratio",
    "time_ratio_cost": "time_ratio",
}
"""Column of `costs` → the figure of `summary` from which it is computed: the value with some layers in float
minus the value with these layers on integers."""


def compare(
    reference: StagedDecoder, candidate: StagedDecoder, lines: Sequence[str], voices: Sequence[str]
) -> pd.DataFrame:
    """Decode the reference's durations, F0 and energy with both decoders and compare the sounds; also measure
    how far the candidate's own prosody differs.

    Returns
    -------
    pandas.DataFrame
        One row for each segment: text (its number), voice, audio_s; pesq, stoi, lsd_db with the reference's
        prosody forced on both; streamed_pesq and so on for the candidate decoded in windows with predicted
        statistics, like a stream; reference_s and candidate_s, the times of decoding; and the fields of
        `metrics.prosody.ReadingDifference` for the candidate's own prosody.
    """
    front_end = FrontEnd()
    rows = []
    jobs = [(number, voice) for number in range(len(lines)) for voice in voices]
    for number, name in tqdm(jobs, desc="compared"):
        for token_ids, style in segments_of(front_end, lines[number], name):
            contours = reference.prosody.contours(token_ids, style, 1.0)
            whole, reference_s = _decoded(reference, contours, style)
            forced, candidate_s = _decoded(candidate, contours, style)
            streamed = np.concatenate(list(candidate.windows(contours, style)))
            part = heard_part(whole)
            rows.append(
                {"text": number, "voice": name, "audio_s": len(whole) / SAMPLE_RATE_HZ}
                | distances(whole[part], forced[part])
                | {f"streamed_{k}": v for k, v in distances(whole[part], streamed[part]).items()}
                | {"reference_s": reference_s, "candidate_s": candidate_s}
                | drift(contours, candidate.prosody.contours(token_ids, style, 1.0))
            )
    return pd.DataFrame(rows)


class VariantMaker:
    """Makes an integer variant with options that differ from the shipped ones, and compares it with fp32.

    Parameters
    ----------
    config : EngineConfig
        Configuration whose variant is made.

    Attributes
    ----------
    reference : StagedDecoder
        The float model.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._native = native_operators(config)
        self.reference = StagedDecoder(replace(config, variant="fp32"))
        self._stages = published_stages(config)

    def compare(
        self,
        lines: Sequence[str],
        voices: Sequence[str],
        *,
        keep: Sequence[str] | None = None,
        ranges: Calibration | None = None,
        adjusted: Mapping[str, QuantisedLayer] | None = None,
    ) -> pd.DataFrame:
        """Make the variant (see `made`) and `compare` it with fp32."""
        candidate = self.made(keep=keep, ranges=ranges, adjusted=adjusted)
        return compare(self.reference, candidate, lines, voices)

    def made(
        self,
        *,
        keep: Sequence[str] | None = None,
        ranges: Calibration | None = None,
        adjusted: Mapping[str, QuantisedLayer] | None = None,
        only: Collection[str] = (),
    ) -> StagedDecoder:
        """A decoder of the variant. The first three arguments are those of `recipes.recipes`: the layers that
        are kept in float, the ranges, and the layers that are adjusted. Only the graphs `only` are made, and
        the others are those that ship; if it is empty, all graphs are made."""
        made_by = recipes(self._config.variant, self._native.library is not None, keep, ranges, adjusted)
        with tempfile.TemporaryDirectory(prefix="kokoro-lab-") as name:
            folder = Path(name) / "stages"
            if not only:
                make_stages(folder, self._config, made_by, self._stages)
                return StagedDecoder(self._config, folder=folder)
            shipped = stages_folder(self._config, self._native)
            make_stages(folder, self._config, {graph: made_by[graph] for graph in only}, self._stages)
            for graph in made_by.keys() - set(only):
                path = graph_path(shipped, graph)
                (folder / path.name).symlink_to(path)
            return StagedDecoder(self._config, folder=folder)


def compare_variant(variant: str, lines: Sequence[str], voices: Sequence[str]) -> pd.DataFrame:
    """Compare a variant, as it ships, with fp32 (see `compare`)."""
    config = EngineConfig.from_settings()
    reference, candidate = (StagedDecoder(replace(config, variant=name)) for name in ("fp32", variant))
    return compare(reference, candidate, lines, voices)


def _decoded(decoder: StagedDecoder, contours: Contours, style: Any) -> tuple[Samples, float]:
    started = time.perf_counter()
    samples = decoder.vocoder.whole(decoder.prosody.behind(contours, style))
    return samples, time.perf_counter() - started


def drift(reference: Contours, candidate: Contours) -> dict[str, float]:
    """How far the candidate's own durations and F0 are from the reference's, by `prosody_drift`."""
    return asdict(
        prosody_drift(
            *(frames_of(reference.durations), reference.f0_hz),
            *(frames_of(candidate.durations), candidate.f0_hz),
        )
    )


def sensitivity(
    lines: Sequence[str],
    voices: Sequence[str],
    *,
    config: EngineConfig | None = None,
    groups: Sequence[str] = (),
) -> pd.DataFrame:
    """Quantise each group of layers by itself. Then add one group after the other, the least harmful one
    first.

    Parameters
    ----------
    groups : sequence of str
        Groups to quantise, by the names that `group_of` returns; empty takes all.

    Returns
    -------
    pandas.DataFrame
        Two rows for each group, one `alone` and one `cumulated` with all groups before it (column how), with
        the figures of `summary`.
    """
    maker = VariantMaker(replace(config or EngineConfig(), variant="int8"))
    members: dict[str, list[str]] = {}
    for layer in Calibration.load():
        members.setdefault(group_of(layer), []).append(layer)
    chosen = list(groups or members)
    bar = tqdm(total=2 * len(chosen) - 1, desc="groups")

    @quiet()
    def measured(quantised: Iterable[str]) -> dict[str, float]:
        keep = [layer for part, layers in members.items() if part not in set(quantised) for layer in layers]
        table = maker.compare(lines, voices, keep=keep)
        bar.update()
        return summary(table)

    alone = pd.DataFrame([{"group": group, "how": "alone"} | measured([group]) for group in chosen])
    order = alone.sort_values(["pesq_mean", "changed_durations_ratio"], ascending=[False, True]).group
    steps = [list(order[: k + 1]) for k in range(len(order))]
    first = alone[alone.group == order.iloc[0]].assign(how="cumulated")  # the first group has none before it
    cumulated = [{"group": step[-1], "how": "cumulated"} | measured(step) for step in steps[1:]]
    return pd.concat([alone, first, pd.DataFrame(cumulated)], ignore_index=True)


def controls(lines: Sequence[str], voice: str) -> list[NegativeControl]:
    """Calibrations that are wrong on purpose; variants made with them must not pass."""
    maker = VariantMaker(replace(EngineConfig(), variant="int8"))
    found = []
    for name, factor in WRONG_RANGES.items():
        wrong = Calibration(
            {
                layer: Range(r.low * factor, r.high * factor) if group_of(layer) == WRONG_GROUP else r
                for layer, r in Calibration.load().items()
            }
        )
        table = maker.compare(lines, [voice], ranges=wrong)
        found.append(NegativeControl(name, caught=bool(failed(checks_of(table)))))
    return found


def group_of(layer: str) -> str:
    """The part of the model that a layer belongs to, by its name in the graph."""
    inside = re.sub(r"^/(encoder|decoder/decoder/generator|decoder/decoder)/", "", layer)
    part = inside.split("/")[0]
    return re.sub(r"^(F0|N|cnn)\.\d+$", r"\1", part)


def checks_of(table: pd.DataFrame, variant: str = "int8") -> list[Check]:
    """The checks on a candidate's sound while it speaks the reference's prosody."""
    return [
        Check(f"{variant}_pesq_mean", table.pesq.mean(), low=PESQ_MEAN_LOW[variant]),
        Check(f"{variant}_pesq_p5", table.pesq.quantile(0.05), low=PESQ_P5_LOW),
        Check(f"{variant}_stoi_mean", table.stoi.mean(), low=STOI_MEAN_LOW),
    ]


def summary(table: pd.DataFrame) -> dict[str, float]:
    """The figures of a comparison, as one row."""
    low, high = mean_interval(table, "pesq")
    return {
        "segments_count": float(len(table)),
        "pesq_mean": table.pesq.mean(),
        "pesq_mean_low": low,
        "pesq_mean_high": high,
        "pesq_p5": table.pesq.quantile(0.05),
        "pesq_min": table.pesq.min(),
        "stoi_mean": table.stoi.mean(),
        "streamed_pesq_mean": table.streamed_pesq.mean(),
        "streamed_pesq_p5": table.streamed_pesq.quantile(0.05),
        "streamed_stoi_mean": table.streamed_stoi.mean(),
        "time_ratio": (table.candidate_s / table.reference_s).median(),
        "changed_durations_ratio": table.changed_durations_count.sum() / table.durations_count.sum(),
        "duration_change_s": table.duration_change_s.sum(),
        "f0_change_cents": table.f0_change_cents.median(),
    }


def layers_in_float(patterns: Sequence[str]) -> list[str]:
    """The names of all layers that could run on integers and match one of `patterns`."""
    return [name for name in Calibration.load() if any(fnmatchcase(name, p) for p in patterns)]


def costs(variant: str, lines: Sequence[str], voices: Sequence[str]) -> pd.DataFrame:
    """For each pattern of layers that the variant keeps in float, make the variant with these layers on
    integers, and compare it with fp32.

    Returns
    -------
    pandas.DataFrame
        One row for each pattern: layers (the pattern), layers_count, and the columns of `GAINS`: how much
        nearer the variant comes to fp32's sound by keeping these layers in float, and how much longer it
        takes, as a share of fp32's time. For the share of changed durations, a value below 0 is a gain.
    """
    maker = VariantMaker(replace(EngineConfig.from_settings(), variant=variant))
    patterns = list(exclusions()[variant])
    shipped = summary(maker.compare(lines, voices, keep=patterns))
    rows = []
    for pattern in tqdm(patterns, desc=f"{variant}: exclusions"):
        with quiet():
            found = summary(maker.compare(lines, voices, keep=[p for p in patterns if p != pattern]))
        gains = {gain: round(shipped[name] - found[name], 5) for gain, name in GAINS.items()}
        rows.append({"layers": pattern, "layers_count": len(layers_in_float([pattern]))} | gains)
    return pd.DataFrame(rows)
