"""What each entry of the exclusion list buys and costs: integers there, against the float that ships."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from kokoro_lab.engine_config import EngineConfig
from kokoro_lab.graphs.artefacts import exclusions, published_stages
from kokoro_lab.graphs.quantise import Calibration
from kokoro_lab.lab.tuning.precision import candidate_of, compare, summary
from kokoro_lab.model.decoder import StagedDecoder

GAINS = {
    "pesq_gain": "pesq_mean",
    "stoi_gain": "stoi_mean",
    "streamed_pesq_gain": "streamed_pesq_mean",
    "streamed_stoi_gain": "streamed_stoi_mean",
    "changed_durations_ratio_gain": "changed_durations_ratio",
    "time_ratio_cost": "time_ratio",
}
"""Figure of the list → the figure of `precision.summary` whose difference it is: float less integers."""


def layers_in_float(patterns: Sequence[str]) -> list[str]:
    """The names of all layers that could run on integers and match one of `patterns`."""
    return [name for name in Calibration.load() if any(fnmatchcase(name, p) for p in patterns)]


def costs(
    variant: str, lines: Sequence[str], voices: Sequence[str], *, progress: bool = True
) -> pd.DataFrame:
    """Build the variant once for each pattern of its list with integers there, and compare it with fp32.

    Returns
    -------
    pandas.DataFrame
        One row a pattern: layers (the pattern), layers_count, and the columns of `GAINS`: what the variant
        gains on fp32's sound by keeping them in float, and how much longer it takes, as a share of fp32's
        time. A changed share of durations that is below 0 is a gain.
    """
    config = replace(EngineConfig.from_settings(), variant=variant)
    reference, stages = StagedDecoder(replace(config, variant="fp32")), published_stages(config)
    patterns = list(exclusions()[variant])

    def figures(keep: Sequence[str]) -> dict[str, float]:
        with tempfile.TemporaryDirectory(prefix="kokoro-lab-") as folder:
            candidate = candidate_of(config, Path(folder), stages, keep)
            return summary(compare(reference, candidate, lines, voices, progress=False))

    def rows() -> Iterator[dict[str, object]]:
        shipped = figures(patterns)
        for pattern in tqdm(patterns, desc=f"{variant}: exclusions", disable=not progress):
            found = figures([p for p in patterns if p != pattern])
            yield {"layers": pattern, "layers_count": len(layers_in_float([pattern]))} | {
                gain: round(shipped[name] - found[name], 5) for gain, name in GAINS.items()
            }

    return pd.DataFrame(rows())
