"""`golden/bands.json`: what every figure was, ÷ the reference inference, when somebody last approved it.

A ratio holds for a kind of machine: what integers gain over floats depends on the processor's vectors. So
there is a row for each kind that somebody has recorded, and a machine of another kind is not judged by it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.results import write_json
from kokoro_lab.native.toolchain import STOCK, build_of
from kokoro_lab.provenance import git_state, repository_root, versions
from kokoro_lab.speech.engine import Engine

FIGURES = ("ttfa_short", "ttfa_medium", "rtf_medium", "start_up", "memory")
FEWEST_TRIALS = 10
"""A band of fewer would be one of noise."""
FEWEST_STARTS = 6
"""Of fewer, no interval of a median is one of 95 %."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a ratio depends on, besides the code: the same kind, the same band.

    Versions are not in it. That an upgrade of ONNX Runtime is slower is what the gate is there for.
    """

    variant: str
    provider: str
    processor: str
    threads: int
    operators: str


@dataclass(frozen=True, slots=True)
class Band:
    """The ratios of one kind of machine, and where they are from."""

    kind: Kind
    ratios: Mapping[str, float]
    recorded: Mapping[str, Any] = field(default_factory=dict)


def kind_of(engine: Engine) -> Kind:
    """Of this machine, with this engine."""
    build = build_of(engine.config, engine.decoder.details)
    return Kind(
        variant=engine.config.variant,
        provider=engine.active_provider,
        processor=build.processor,
        threads=engine.config.thread_count,
        operators=STOCK if build.operators == STOCK else "ours",
    )


def bands_path() -> Path:
    """In the repository."""
    return repository_root() / "golden" / "bands.json"


def read_bands(path: Path | None = None) -> list[Band]:
    """Every band that is recorded; none where there is no file yet.

    Raises
    ------
    ParameterError
        The file cannot be read, or a row lacks a figure or holds one that is no ratio.
    """
    path = path or bands_path()
    if not path.exists():
        return []
    try:
        rows = json.loads(path.read_text("utf-8"))["bands"]
        found = [Band(Kind(**row["kind"]), dict(row["ratios"]), row["recorded"]) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ParameterError(
            f"{path.name} cannot be read: {type(error).__name__}: {error}.",
            field="bands",
            value=path.name,
            mend="Take it back: git checkout golden/bands.json",
        ) from error
    for band in found:
        wrong = [name for name in FIGURES if not _is_ratio(band.ratios.get(name))]
        if wrong or set(band.ratios) - set(FIGURES):
            raise ParameterError(
                f"A band in {path.name} is not whole.",
                field="ratios",
                value=", ".join(wrong) or ", ".join(sorted(set(band.ratios) - set(FIGURES))),
                allowed=f"a number over 0 for each of {', '.join(FIGURES)}",
            )
    return found


def band_for(kind: Kind, bands: list[Band]) -> Band | None:
    """The band of this kind of machine; None where nobody has recorded one."""
    return next((band for band in bands if band.kind == kind), None)


def required(kind: Kind, bands: list[Band]) -> Band:
    """The same, or an error that says how to record one.

    Raises
    ------
    ParameterError
        There is none.
    """
    band = band_for(kind, bands)
    if band is None:
        raise ParameterError(
            "There is no band for this kind of machine.",
            field="bands",
            value=", ".join(str(value) for value in asdict(kind).values()),
            allowed="; ".join(str(band.kind) for band in bands) or "none is recorded",
            mend="Leave the machine alone, and record one: kokoro-lab run 60_performance_gate -p write=true",
        )
    return band


def write_band(
    kind: Kind, ratios: Mapping[str, float], trials: int, starts: int, path: Path | None = None
) -> Band:
    """Put a band in the place of the one of this kind, or beside the others.

    Raises
    ------
    ParameterError
        It stands on fewer than `FEWEST_TRIALS` or `FEWEST_STARTS`, or a figure is missing.
    """
    path = path or bands_path()
    require_trials(trials, starts)
    if wrong := [name for name in FIGURES if not _is_ratio(ratios.get(name))]:
        raise ParameterError("A band needs every figure.", field="ratios", value=", ".join(wrong))
    recorded = {"trials": trials, "starts": starts, "commit": git_state()["commit"], "versions": versions()}
    band = Band(kind, {name: round(ratios[name], 4) for name in FIGURES}, recorded)
    others = [one for one in read_bands(path) if one.kind != kind]
    write_json(path, {"bands": [asdict(one) for one in [*others, band]]})
    return band


def require_trials(trials: int, starts: int) -> None:
    """Refuse to write a band of fewer than `FEWEST_TRIALS`, or than `FEWEST_STARTS`: on these stand start-up
    and memory."""
    for name, value, fewest in (("trials", trials, FEWEST_TRIALS), ("starts", starts, FEWEST_STARTS)):
        if value < fewest:
            raise ParameterError(
                f"A band of so few {name} would be one of noise.",
                field=name,
                value=value,
                allowed=f"{fewest} or more",
            )


def _is_ratio(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
