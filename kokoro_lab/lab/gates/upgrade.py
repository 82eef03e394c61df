"""After an upgrade, of this package, its runtime or the weights: keep it, or roll it back?

    smoke         does it speak at all, evenly, the same twice, and as the golden clips say it did?
    re-benchmark  time to first audio and real-time factor, beside an inference that no upgrade of ours moves
    compare       with what the version before recorded, on this machine (`upgrade_records`)
    decide        keep, or roll back, with the commands for either

Times of two sessions cannot be compared: the machine was busy otherwise. Their ratios to a reference can: the
published fp32 graph, as it is, by ONNX Runtime alone, timed beside each of them. So what an upgrade of ONNX
Runtime gains or loses for both alike is not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import psutil
from tqdm import tqdm

from kokoro_lab.datatypes import SAMPLE_RATE_HZ
from kokoro_lab.dsp.loudness import TARGET_LUFS
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.memory import resident_mb
from kokoro_lab.lab.bench.reference import Reference
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.lab.fixtures import FixtureText
from kokoro_lab.lab.gates import golden
from kokoro_lab.lab.gates.golden_files import GoldenFolder
from kokoro_lab.lab.gates.loudness import TOLERANCE_LU
from kokoro_lab.lab.gates.upgrade_records import FEWEST, WORSE_PERCENT, compare
from kokoro_lab.lab.results import Check, NegativeControl
from kokoro_lab.metrics.loudness import integrated_lufs
from kokoro_lab.provenance import SAMPLE_CHANGERS
from kokoro_lab.speech.engine import Engine

SEED = 0
MEASURED = ("ttfa", "rtf")
_SENTENCE = "The kettle is on, and the window is open to the garden behind the house."


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, why, and what to type."""

    keep: bool
    reasons: tuple[str, ...]
    commands: tuple[str, ...]

    def __str__(self) -> str:
        said = ["keep" if self.keep else "roll back", *(f"  {reason}" for reason in self.reasons), "then:"]
        return "\n".join([*said, *(f"  {command}" for command in self.commands)])


# ------------------------------------------------------------------------------------------ smoke


def smoke(engine: Engine, findings: Sequence[tuple[str, bool, str]], voice: str) -> pd.DataFrame:
    """Does the installation work, and the engine speak?

    Parameters
    ----------
    engine : Engine
    findings : sequence of (name, ok, detail)
        Of `kokoro-lab doctor`.
    voice : str

    Returns
    -------
    pandas.DataFrame
        A row a look: name, ok, detail.
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
    """Golden clips of this variant, spoken again as it ships; and whether a clip of another text is noticed.

    Raises
    ------
    ParameterError
        The variant has no golden clips.
    """
    names = golden.chosen(clips, cases, engine.config.variant)
    takes, _ = golden.speak_again(clips, names, progress=False)
    checks = [Check("golden_clips_count", len(takes), low=1)]
    if not takes:
        return checks, []
    text = takes[0].reference.recording.asked["text"]
    other = next(name for name in clips.there if clips.recordings[name].asked["text"] != text)
    swapped = golden.measure([golden.Take(takes[0].reference, clips.spoken(other))])
    control = NegativeControl(
        "a golden clip of another text",
        caught=any(not check.passed for check in golden.judge_takes(swapped, clips)),
    )
    return checks + golden.judge_takes(golden.measure(takes), clips), [control]


# --------------------------------------------------------------------------------------- benchmark


def benchmark(
    engine: Engine,
    reference: Reference,
    texts: Sequence[FixtureText],
    voice: str,
    rounds: int = 3,
    *,
    progress: bool = True,
) -> pd.DataFrame:
    """Each text streamed warm and uncached, by turns with the reference; the least of all rounds counts.

    Whatever disturbs a time makes it longer, so the least is the one that says most of the program.

    Returns
    -------
    pandas.DataFrame
        A row a text: ttfa_s, rtf, reference_s, and ttfa_ratio and rtf_ratio, both by the reference.

    Raises
    ------
    ParameterError
        There is no text, or no round.
    """
    if not texts or rounds < 1:
        raise ParameterError("Nothing would be timed.", field="texts", value=0, allowed="1 or more")
    speaker = InProcess(engine, voice, cached=False)
    speaker.warm()
    rows = []
    for number, text in enumerate(tqdm(texts, desc="texts", disable=not progress)):
        found = pd.DataFrame([_timed(speaker, reference, number, text.text) for _ in range(rounds)]).min()
        rows.append({"text": text.id, **found})
    table = pd.DataFrame(rows).set_index("text")
    for name, column in (("ttfa_ratio", "ttfa_s"), ("rtf_ratio", "rtf")):
        table[name] = table[column] / table.reference_s
    return table


def _timed(speaker: InProcess, reference: Reference, number: int, text: str) -> dict[str, float]:
    listener = Listener()
    listener.asks()
    speaker.speak(text, listener)
    trial = listener.trial(speaker.name, number, len(text), streamed=True)
    return {"ttfa_s": trial.ttfa_s, "rtf": trial.rtf, "reference_s": reference.infer().seconds}


def ratios_of(table: pd.DataFrame, memory_mb: float) -> dict[str, list[float]]:
    """What a later version is compared with: of `benchmark`, by figure and text, and the memory it took."""
    return {
        **{f"{name}_ratio": [float(value) for value in table[f"{name}_ratio"]] for name in MEASURED},
        "memory_mb": [memory_mb],
    }


def spoken_memory_mb(engine: Engine, before_mb: float, voice: str) -> float:
    """Resident memory that the engine took since it was `before_mb`, once it has spoken a long sentence."""
    engine.warm(voice)
    return resident_mb(psutil.Process()) - before_mb


# ------------------------------------------------------------------------------------------ decide


def checks_of(smoked: pd.DataFrame, compared: pd.DataFrame | None) -> list[Check]:
    """What must hold for an upgrade to be kept, beside the golden clips."""
    checks = [Check("smoke_failed_count", int((~smoked.ok).sum()), high=0)]
    if compared is not None:
        checks += [
            Check(f"{name}_worse_at_least_percent", row.least_percent, high=WORSE_PERCENT)
            for name, row in compared.iterrows()
        ]
    return checks


def controls(ratios: Mapping[str, Sequence[float]], smoked: pd.DataFrame) -> list[NegativeControl]:
    """Upgrades that are none, and some that must not be kept: would it be noticed?"""
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
    """Keep, if every check passed; else go back to what the record before was made by."""
    failed = tuple(str(check) for check in checks if not check.passed)
    if not failed:
        compared = "nothing is worse than before" if before else "there is no record of the version before"
        return Decision(True, (compared,), ("kokoro-lab run gates", "kokoro-lab run checklist"))
    return Decision(False, failed, tuple(_way_back(before, now)))


def asked_of(texts: Sequence[FixtureText], voice: str) -> dict[str, Any]:
    """What was spoken: only the same is compared."""
    return {"voice": voice, "texts": [text.id for text in texts]}


def record_of(
    ratios: Mapping[str, Sequence[float]], asked: Mapping[str, Any], decision: Decision
) -> dict[str, Any]:
    """What stands in the result beside the checks: the decision, and what a later version compares with."""
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
        if old.get(name) != new.get(name):
            yield f"pip install {name}=={old.get(name)}"
