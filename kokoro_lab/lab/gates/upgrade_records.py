"""What an upgrade is compared with: the record of the version before, what made it, and how figures moved."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kokoro_lab.containers.plain_json import read_object
from kokoro_lab.errors import ParameterError, ResultError

log = logging.getLogger(__name__)

NOTEBOOK = "91_upgrade_playbook"
WORSE_PERCENT = 10.0
"""A figure that is certainly worse by more than this is a reason to go back."""
LAST, NONE = "last", "none"
"""What to compare with, besides a file: the last run that was made otherwise, or nothing."""
DRAWS, SEED = 2000, 0
"""Of the bootstrap."""
FEWEST = 5
"""Texts. Even if all of fewer are slower, that may be chance: 1 in 16 of four."""
_MADE_BY = ("versions", "toolchain", "conversion", "variant", "session", "model_sha256", "git")
"""What tells one installation from another."""
_COMPARED = {"ratios", "verdict", "machine", "asked"}
"""Without these there is nothing to compare."""


def made_by(record: Mapping[str, Any]) -> dict[str, str]:
    """What made a result, flat: `versions.onnxruntime`, `toolchain.compiler`, `git.commit` and so on."""
    return dict(_flat({name: record.get(name) for name in _MADE_BY}))


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> pd.DataFrame:
    """What the upgrade changed: a row a thing, before and now."""
    old, new = made_by(before), made_by(now)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return pd.DataFrame(
        [{"what": name, "before": old.get(name, ""), "now": new.get(name, "")} for name in names],
        columns=["what", "before", "now"],
    ).set_index("what")


def record_before(which: str, folder: Path, now: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record to compare with; None if there is none, or none is wanted.

    Parameters
    ----------
    which : str
        `last`: the newest run of this notebook in `folder` that passed on this machine and was made
        otherwise; `none`; or the path of a `result.json`.
    folder : Path
        `results/`.
    now : mapping
        What this run records of itself: see `made_by`; and `machine`.

    Raises
    ------
    ParameterError
        There is no such file, or it is no record of this notebook, or of another machine.
    """
    if which == NONE:
        return None
    if which != LAST:
        found = _read(Path(which))
        if found is None:
            raise ParameterError(
                "This is no result of an upgrade playbook.",
                field="before",
                value=which,
                allowed=f"{LAST}, {NONE}, or a result.json of {NOTEBOOK}",
            )
        if not _comparable(found, now):
            raise ParameterError(
                "This result is of another machine or other texts: its ratios say nothing here.",
                field="before",
                value=which,
                mend="Run the notebook with the version before on this machine.",
            )
        return found
    for path in sorted((folder / NOTEBOOK).glob("*/result.json"), reverse=True):
        found = _read(path)
        passed = found is not None and found["verdict"] == "passed"
        if found is not None and passed and _comparable(found, now) and made_by(found) != made_by(now):
            return found
    return None


def compare(before: Mapping[str, Sequence[float]], now: Mapping[str, Sequence[float]]) -> pd.DataFrame:
    """How much worse each figure became, and how much at least.

    Of fewer than `FEWEST` texts nothing is certain, and no figure is worse; memory, a single value, may be. A
    figure that is not measured any more is worse, since nothing shows that it is not; of a new one nothing is
    known.

    Parameters
    ----------
    before, now : mapping of str to sequence of float
        Ratios of each text, the same texts in the same order, by figure; lower is better. A figure with a
        single value (memory) is compared as it is.

    Returns
    -------
    pandas.DataFrame
        By figure: before, now (medians), change_percent, least_percent (one-sided 95 % bound, by a bootstrap
        over the texts of the median of their changes), and worse: certainly, and by over `WORSE_PERCENT`.
    """
    rows = []
    for name in {**before, **now}:
        old, new = (np.asarray(values.get(name, [np.nan]), np.float64) for values in (before, now))
        change = 100 * (new / old - 1)
        drawn = np.random.default_rng(SEED).integers(0, len(change), (DRAWS, len(change)))
        least = float(np.percentile(np.median(change[drawn], axis=1), 5))
        if 1 < len(change) < FEWEST or name not in before:
            least = -100.0
        rows.append(
            {
                "figure": name,
                "before": float(np.median(old)),
                "now": float(np.median(new)),
                "change_percent": float(np.median(change)),
                "least_percent": least,
                "worse": not least <= WORSE_PERCENT,
            }
        )
    columns = ["figure", "before", "now", "change_percent", "least_percent", "worse"]
    return pd.DataFrame(rows, columns=columns).set_index("figure")


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    else:
        yield name, json.dumps(value)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = read_object(path)
    except ResultError as error:
        log.warning("A result is skipped: %s", error)
        return None
    whole = found.get("notebook") == NOTEBOOK and not _COMPARED - found.keys()
    return found if whole and isinstance(found["machine"], dict) else None


def _comparable(record: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    return bool(record["machine"].get("cpu") == now["machine"]["cpu"] and record["asked"] == now["asked"])
