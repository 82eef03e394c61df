"""After an upgrade, of this package, its runtime or the weights: keep it, or roll it back?

    smoke         does it speak at all, evenly, the same twice, and as the golden clips say it did?
    re-benchmark  time to first audio and real-time factor, beside a reference that is not ours (see below)
    compare       these figures with those that the version before had on this machine
    decide        keep, or roll back, with the commands for either

Times of two days cannot be compared, because the machine's other work differs. Ratios to a reference can be
compared: the reference is the published fp32 graph, run by ONNX Runtime without our operators, and timed
right before or after each text. So if an upgrade of ONNX Runtime makes both faster or slower by the same
factor, the ratio does not show it.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

from kokoro_lab.containers.plain_json import read_object
from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.errors import ParameterError, ResultError
from kokoro_lab.lab.bench.memory import resident_mb
from kokoro_lab.lab.bench.reference import Reference, timed_beside
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates import golden, golden_speaking
from kokoro_lab.lab.gates.golden_files import GoldenFolder
from kokoro_lab.lab.gates.loudness import TOLERANCE_LU
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.lab.results.compared import leaves
from kokoro_lab.metrics.intervals import median_of
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.provenance import SAMPLE_CHANGERS
from kokoro_lab.speech.engine import Engine

log = logging.getLogger(__name__)

NOTEBOOK = "91_upgrade_playbook"
WORSE_PERCENT = 10.0
"""A figure that is worse by more than this, with 95 % confidence, is a reason to roll back."""
LAST, NONE = "last", "none"
"""What to compare with, if not with a file: the last run of another installation, or nothing."""
FEWEST = 5
"""The fewest texts for a verdict. With fewer, all may be slower by chance: with four, the probability is 1 in
16."""
_MADE_BY = ("versions", "toolchain", "conversion", "variant", "session", "model_sha256", "git")
"""What tells one installation from another."""
_COMPARED = {"ratios", "verdict", "machine", "asked"}
"""Entries that a record must have to be compared."""
SEED = 0
MEASURED = ("ttfa", "rtf")
_SENTENCE = "The kettle is on, and the window is open to the garden behind the house."


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to keep the upgrade, the reasons, and the commands to type."""

    keep: bool
    reasons: tuple[str, ...]
    commands: tuple[str, ...]

    def __str__(self) -> str:
        said = ["keep" if self.keep else "roll back", *(f"  {reason}" for reason in self.reasons), "then:"]
        return "\n".join([*said, *(f"  {command}" for command in self.commands)])


# ------------------------------------------------------------------------------------------ smoke


def smoke(engine: Engine, findings: Sequence[tuple[str, bool, str]], voice: str) -> pd.DataFrame:
    """Test whether the installation works and the engine speaks.

    Parameters
    ----------
    engine : Engine
    findings : sequence of (name, ok, detail)
        The findings of `kokoro-lab doctor`.
    voice : str

    Returns
    -------
    pandas.DataFrame
        A row for each test: name, ok, detail.
    """
    clip = engine.synthesize(_SENTENCE, voice=voice, seed=SEED)
    again = engine.synthesize(_SENTENCE, voice=voice, seed=SEED)
    level_lufs = integrated_lufs(clip.samples, SAMPLE_RATE_HZ)
    words = [timing.text for timing in clip.timings]
    starts_s = [timing.start_s for timing in clip.timings]
    streamed = [chunk.samples for chunk in engine.stream(_SENTENCE, voice=voice, cached=False)]
    rows = [
        *((f"doctor: {name}", ok, detail) for name, ok, detail in findings),
        ("samples are finite", bool(np.isfinite(clip.samples).all()), f"{clip.duration_s:.2f} s"),
        ("level", abs(level_lufs - TARGET_LUFS) <= TOLERANCE_LU, f"{level_lufs:.2f} LUFS"),
        ("the same twice", bool(np.array_equal(clip.samples, again.samples)), f"{len(clip.samples)} samples"),
        ("every word has its time", starts_s == sorted(starts_s) and bool(words), f"{len(words)} words"),
        (
            "a stream is as long as its file",
            math.isclose(sum(map(len, streamed)), len(clip.samples), rel_tol=0.02),
            f"{len(streamed)} chunks",
        ),
    ]
    return pd.DataFrame(rows, columns=["name", "ok", "detail"]).set_index("name")


def golden_checks(
    engine: Engine, clips: GoldenFolder, cases: int
) -> tuple[list[Check], list[NegativeControl]]:
    """The checks of this variant's golden clips, spoken again by the variant as it ships; and a control: a
    clip of another text must be noticed.

    Raises
    ------
    ParameterError
        The variant has no golden clips.
    """
    names = golden_speaking.chosen(clips, cases, engine.config.variant)
    takes, _ = golden_speaking.speak_again(clips, names)
    checks = [Check("golden_clips_count", len(takes), low=1)]
    if not takes:
        return checks, []
    text = takes[0].reference.recording.asked["text"]
    other = next(name for name in clips.there if clips.recordings[name].asked["text"] != text)
    swapped = golden.measure([golden.Take(takes[0].reference, clips.spoken(other))])
    control = NegativeControl(
        "a golden clip of another text",
        caught=bool(failed(golden.judge_takes(swapped, clips))),
    )
    return checks + golden.judge_takes(golden.measure(takes), clips), [control]


# --------------------------------------------------------------------------------------- benchmark


def benchmark(
    engine: Engine, reference: Reference, texts: Sequence[FixtureText], voice: str, rounds: int = 3
) -> pd.DataFrame:
    """Stream each text with a warm engine and no cache, interleaved with the reference; the least time of all
    rounds counts.

    Disturbances only make times longer, so the least one describes the program best.

    Returns
    -------
    pandas.DataFrame
        A row for each text: ttfa_s, rtf, reference_s, and ttfa_ratio and rtf_ratio, both divided by the
        reference's.

    Raises
    ------
    ParameterError
        There is no text, or no round.
    """
    speaker = InProcess(engine, voice, cached=False)
    speaker.warm()
    said = {text.id: text.text for text in texts}
    timed = timed_beside(speaker, reference, said, rounds)
    table = timed.groupby("text", sort=False)[["ttfa_s", "rtf", "reference_s"]].min()
    return table.assign(ttfa_ratio=table.ttfa_s / table.reference_s, rtf_ratio=table.rtf / table.reference_s)


def ratios_of(table: pd.DataFrame, memory_mb: float) -> dict[str, list[float]]:
    """The ratios with which a later version is compared: those of `benchmark` by figure and text, and the
    memory."""
    return {
        **{f"{name}_ratio": [float(value) for value in table[f"{name}_ratio"]] for name in MEASURED},
        "memory_mb": [memory_mb],
    }


def spoken_memory_mb(engine: Engine, before_mb: float, voice: str) -> float:
    """MB of resident memory that the process took since it had `before_mb`, measured after the engine has
    spoken a long sentence."""
    engine.warm(voice)
    return resident_mb(psutil.Process()) - before_mb


# ----------------------------------------------------------------------------------------- records


def made_by(record: Mapping[str, Any]) -> dict[str, str]:
    """What made a result, under names such as `versions.onnxruntime`, `toolchain.compiler` and
    `git.commit`."""
    made = {name: record.get(name) for name in _MADE_BY}
    return {name: json.dumps(value) for name, value in leaves(made, joint=".")}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> pd.DataFrame:
    """What the upgrade changed: a row for each version, setting or digest that differs, with its value before
    and now."""
    old, new = made_by(before), made_by(now)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return pd.DataFrame(
        [{"what": name, "before": old.get(name, ""), "now": new.get(name, "")} for name in names],
        columns=["what", "before", "now"],
    ).set_index("what")


def record_before(which: str, folder: Path, now: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of an earlier run, with which this run is compared. None if no record is wanted, or `folder`
    has no such record.

    Parameters
    ----------
    which : str
        `last`: the newest run of this notebook in `folder` that passed on this machine with another
        installation; `none`; or the path of a `result.json`.
    folder : Path
        `results/`.
    now : mapping
        The facts of this run: see `made_by`; and `machine`.

    Raises
    ------
    ParameterError
        There is no file at the path `which`, or its record is not of this notebook, of this machine and of
        the same texts.
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
    """How much worse each figure became: an estimate, and a lower bound with 95 % confidence.

    With fewer than `FEWEST` texts no figure counts as worse, except memory, which is a single value. A figure
    that is no longer measured counts as worse, since nothing shows that it is not. A new figure is not
    judged.

    Parameters
    ----------
    before, now : mapping of str to sequence of float
        Figure → its ratio for each text; lower is better. Both have the same texts in the same order. A
        figure with a single value (memory) is compared as it is.

    Returns
    -------
    pandas.DataFrame
        By figure: before, now (medians), change_percent, least_percent (one-sided 95 % bound of the median of
        the texts' changes), and worse: whether least_percent is over `WORSE_PERCENT`, or unknown.

    Notes
    -----
    The bound is computed from the ranks of the changes, like the bounds of golden bands. It holds for any
    number of texts and any distribution of the noise. A bootstrap of the median of a few texts would have
    only a handful of different values.
    """
    rows = []
    for name in {**before, **now}:
        old, new = (np.asarray(values.get(name, [np.nan]), np.float64) for values in (before, now))
        change = 100 * (new / old - 1)
        least = median_of(change, confidence=0.9).low if np.isfinite(change).all() else float("nan")
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


# ------------------------------------------------------------------------------------------ decide


def checks_of(smoked: pd.DataFrame, compared: pd.DataFrame | None) -> list[Check]:
    """The checks that an upgrade must pass to be kept, besides those of the golden clips."""
    checks = [Check("smoke_failed_count", int((~smoked.ok).sum()), high=0)]
    if compared is not None:
        checks += [
            Check(f"{name}_worse_at_least_percent", row.least_percent, high=WORSE_PERCENT)
            for name, row in compared.iterrows()
        ]
    return checks


def controls(ratios: Mapping[str, Sequence[float]], smoked: pd.DataFrame) -> list[NegativeControl]:
    """Made-up upgrades: one changes nothing and must be kept, the others are worse and must not be kept."""
    found = [
        NegativeControl("an upgrade that changes nothing is kept", not compare(ratios, ratios).worse.any())
    ]
    enough = {name: [*values] * FEWEST if len(values) > 1 else values for name, values in ratios.items()}
    for name in ratios:
        worse = {**enough, name: [1.25 * value for value in enough[name]]}
        noticed = compare(enough, worse).worse
        found.append(NegativeControl(f"{name} a quarter up", bool(noticed[name]) and int(noticed.sum()) == 1))
    silent = smoked.assign(ok=[False, *smoked.ok[1:]])
    found.append(NegativeControl("one look that fails", not checks_of(silent, None)[0].passed))
    return found


def decide(checks: Sequence[Check], before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Decision:
    """Keep if every check passed; else roll back to the versions of the earlier record."""
    reasons = tuple(str(check) for check in checks if not check.passed)
    if not reasons:
        compared = "nothing is worse than before" if before else "there is no record of the version before"
        return Decision(True, (compared,), ("kokoro-lab run gates", "kokoro-lab run checklist"))
    return Decision(False, reasons, tuple(_way_back(before, now)))


def asked_of(texts: Sequence[FixtureText], voice: str) -> dict[str, Any]:
    """The voice and texts that were spoken. Records are compared only if these are equal."""
    return {"voice": voice, "texts": [text.id for text in texts]}


def record_of(
    ratios: Mapping[str, Sequence[float]], asked: Mapping[str, Any], decision: Decision
) -> dict[str, Any]:
    """Further entries of the result: the decision, and the figures with which a later version is compared."""
    return {"decision": asdict(decision), "ratios": dict(ratios), "asked": dict(asked)}


def _way_back(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> Iterator[str]:
    if before is None:
        yield "KOKORO_VARIANT=fp32 kokoro-lab serve    # the reference precision, from the published weights"
        yield "pip install kokoro-lab==<version before>    # or: git checkout <tag before> && make env"
        return
    if before["variant"] != now["variant"]:
        yield f"KOKORO_VARIANT={before['variant']} kokoro-lab serve"
    old, new = before["versions"], now["versions"]
    commits = [(record.get("git") or {}).get("commit") for record in (before, now)]
    if old["kokoro-lab"] != new["kokoro-lab"]:
        yield f"pip install kokoro-lab=={old['kokoro-lab']}"
    if commits[0] and commits[0] != commits[1]:
        yield f"git checkout {commits[0]} && make env"
    for name in SAMPLE_CHANGERS:
        if old.get(name) not in (None, "not installed", new.get(name)):
            yield f"pip install {name}=={old.get(name)}"
