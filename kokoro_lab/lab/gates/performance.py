"""Has anything become slower or larger? Ratios to a reference inference are compared with golden bands.

`golden/bands.json` holds every figure, divided by that of the reference inference, as it was last approved. A
ratio holds for one kind of machine, since the gain of integers over floats depends on the processor's vector
instructions. So there is a row for each recorded kind of machine, and other kinds are not judged.

A time also depends on what else the machine does. The ratio to a reference inference that is timed right
beside it does not: it stays the same if the machine is busy, and on other machines of this kind.
`bench.reference` says why the reference is the published graph.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kokoro_lab.containers.plain_json import FileModel, write_json
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.fresh_process import FIRST_TEXT, TEXT, What, started
from kokoro_lab.lab.bench.reference import Reference, timed_beside
from kokoro_lab.lab.bench.timing import InProcess
from kokoro_lab.lab.bench.trial import Listener
from kokoro_lab.lab.gates.forced import DecoderAround
from kokoro_lab.lab.results import Check, NegativeControl, failed
from kokoro_lab.metrics.intervals import Estimate, median_of
from kokoro_lab.model.decoder import DecodedSegment, SegmentRequest
from kokoro_lab.native.toolchain import STOCK, build_of
from kokoro_lab.provenance import git_state, repository_root, versions
from kokoro_lab.speech.engine import Engine
from kokoro_lab.typed import require_range

FIGURES = ("ttfa_short", "ttfa_medium", "rtf_medium", "start_up", "memory")
FEWEST_TRIALS = 10
"""The fewest trials from which a band is recorded. With fewer, the band would be mostly noise."""
FEWEST_STARTS = 6
"""The fewest starts of a process from which a band is recorded. With fewer, their median has no 95 %
interval."""
OVER_BAND = 1.10
"""A figure may be at most this many times its band: becoming slower or larger by more than a tenth is a
failure."""
SURE = 0.85
"""The low end of an interval must be at least this share of its median, since nearly any change would pass
with a wider interval. On a quiet machine the share is 0.91 to 0.99 with 20 trials. For the start of a new
process it was 0.73 to 0.96 with 7 or 12 starts."""
MOST = "over_band_most_ratio"
UNITS = {"ttfa_short": "s", "ttfa_medium": "s", "rtf_medium": "ratio", "start_up": "s", "memory": "mb"}
TEXTS = {"short": FIRST_TEXT, "medium": TEXT}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of machine: all on which a ratio depends, except the code.

    Versions of packages are no part of a kind, because the gate must notice an upgrade of ONNX Runtime that
    is slower.
    """

    variant: str
    provider: str
    processor: str
    threads: int
    operators: str


@dataclass(frozen=True, slots=True)
class Band:
    """The ratios of one kind of machine, and how they were recorded."""

    kind: Kind
    ratios: Mapping[str, float]
    recorded: Mapping[str, Any] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------ measure


class BandFile(FileModel):
    """What `golden/bands.json` holds."""

    bands: list[Band]


def measure(engine: Engine, reference: Reference, voice: str, trials: int, starts: int) -> pd.DataFrame:
    """Run `measure_speech`, then `measure_starts`."""
    speech = measure_speech(engine, reference, voice, trials)
    return pd.concat([speech, measure_starts(engine.config.variant, starts)])


def measure_speech(
    engine: Engine, reference: Reference, voice: str, trials: int, *, warm: bool = True
) -> pd.DataFrame:
    """Time to first audio of two texts, and the real-time factor of one, each beside a reference inference.

    No cache is used. Our engine and the reference take turns, and the one that begins changes from trial to
    trial. With `warm`, each runs once before and is not timed.

    Returns
    -------
    pandas.DataFrame
        A row for each figure and trial: figure, trial, ours, reference (s, or real-time factors), ratio.

    Raises
    ------
    ParameterError
        `trials` is below 1.
    """
    speaker = InProcess(engine, voice, cached=False)
    if warm:
        reference.infer()
        for text in TEXTS.values():
            speaker.speak(text, Listener())
    timed = timed_beside(speaker, reference, TEXTS, trials)
    read = timed[timed.text == "medium"]
    ttfa = timed.assign(figure="ttfa_" + timed.text, ours=timed.ttfa_s, reference=timed.reference_s)
    rtf = read.assign(figure="rtf_medium", ours=read.rtf, reference=read.reference_rtf)
    return _with_ratios(pd.concat([ttfa, rtf], ignore_index=True)[["figure", "trial", "ours", "reference"]])


def measure_starts(variant: str, starts: int) -> pd.DataFrame:
    """Start new processes, of our engine and of the reference in turn. Measure the seconds from the start of
    each to its first sound, and its memory.

    Returns
    -------
    pandas.DataFrame
        A table like that of `measure_speech`, with the figures start_up (s) and memory (MB).
    """
    require_range("starts", starts, 1, message="Nothing would be measured.")
    rows = []
    for trial in tqdm(range(starts), desc="starts"):
        order: tuple[What, What] = ("engine", "reference") if trial % 2 == 0 else ("reference", "engine")
        found = {what: started(what, variant) for what in order}
        ours, plain = found["engine"], found["reference"]
        rows.append(("start_up", trial, ours.start_s, plain.start_s))
        rows.append(("memory", trial, ours.rss_mb, plain.rss_mb))
    return _with_ratios(pd.DataFrame(rows, columns=["figure", "trial", "ours", "reference"]))


def _with_ratios(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(ratio=table.ours / table.reference)


def medians(table: pd.DataFrame) -> dict[str, Estimate]:
    """The median of each figure's ratios, with its 95 % interval."""
    return {str(name): median_of(rows.ratio) for name, rows in table.groupby("figure", sort=False)}


def against(found: Mapping[str, Estimate], band: Band) -> pd.DataFrame:
    """Index: figure. Columns: golden, ratio, low and high (95 % interval), trials, over, and over_at_least.

    `over` is the ratio divided by golden. `over_at_least` is the low end divided by golden: the part of an
    increase that noise cannot explain.
    """
    table = pd.DataFrame({name: asdict(of) for name, of in found.items()}).T
    table = table.astype({"units": int}).rename(columns={"value": "ratio", "units": "trials"})
    golden = [band.ratios[name] for name in found]
    table.insert(0, "golden", golden)
    table = table.rename_axis("figure")
    return table.assign(over=table.ratio / golden, over_at_least=table.low / golden)


def judge(found: Mapping[str, Estimate], band: Band | None, *, decides: bool = True) -> list[Check]:
    """The checks: no figure is over its band by more than a tenth with its whole interval, and every interval
    is narrow enough to show that. If an interval is too wide, repeat the measurement on a quiet machine or
    with more trials. If times do not decide, or there is no band, the checks are that every figure was
    measured and that the bands can be read."""
    if not decides or band is None:
        measured = [name for name in FIGURES if name in found and found[name].value > 0]
        return [
            Check("figures_count", len(measured), low=len(FIGURES)),
            Check("bands_count", len(read_bands()), low=1),
        ]
    checks = [Check("figures_count", len(set(FIGURES) & set(found)), low=len(FIGURES))]
    for name, row in against(found, band).iterrows():
        checks.append(Check(f"{name}_over_band_at_least_ratio", row.over_at_least, high=OVER_BAND))
        checks.append(Check(f"{name}_low_end_to_median_ratio", row.low / row.ratio, low=SURE))
    return checks


def figures(table: pd.DataFrame, band: Band | None) -> dict[str, float]:
    """The ratios, our own medians, and, if there is a band, `over_band_most_ratio`."""
    found = medians(table)
    over = {} if band is None else {MOST: float(against(found, band).over_at_least.max())}
    ours = table.groupby("figure", sort=False).ours.median()
    return {
        **over,
        **{f"{name}_to_reference_ratio": of.value for name, of in found.items()},
        **{f"{name}_median_{UNITS[str(name)]}": float(value) for name, value in ours.items()},
    }


def changes(found: Mapping[str, Estimate], before: Band | None) -> pd.DataFrame:
    """Index: figure. Columns: the band as it was, as it would become, and the change in percent."""
    old = dict.fromkeys(FIGURES, float("nan")) if before is None else before.ratios
    rows = {name: {"before": old[name], "after": of.value} for name, of in found.items()}
    table = pd.DataFrame(rows).T.rename_axis("figure")
    return table.assign(change_percent=100 * (table.after / table.before - 1))


# ------------------------------------------------------------------------------------------- bands


def kind_of(engine: Engine) -> Kind:
    """The `Kind` of this machine, with the settings of `engine` on which ratios depend."""
    build = build_of(engine.config, engine.decoder.details)
    return Kind(
        variant=engine.config.variant,
        provider=engine.active_provider,
        processor=build.processor,
        threads=engine.config.thread_count,
        operators=STOCK if build.operators == STOCK else "ours",
    )


def bands_path() -> Path:
    """The path of the bands in the repository."""
    return repository_root() / "golden" / "bands.json"


def read_bands(path: Path | None = None) -> list[Band]:
    """Every band that is recorded; an empty list if there is no file yet.

    Raises
    ------
    ParameterError
        The file cannot be read, or a row lacks a figure or holds one that is no ratio.
    """
    path = path or bands_path()
    if not path.exists():
        return []
    found = BandFile.read(path, mend="Take it back: git checkout golden/bands.json").bands
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


def band_for(kind: Kind) -> Band | None:
    """The band of this kind of machine; None where nobody has recorded one."""
    return next((band for band in read_bands() if band.kind == kind), None)


def write_band(kind: Kind, ratios: Mapping[str, float], trials: int, starts: int) -> Band:
    """Write the band of `kind` into the file, in place of an earlier band of this kind.

    Raises
    ------
    ParameterError
        There are fewer trials than `FEWEST_TRIALS` or fewer starts than `FEWEST_STARTS`, or a figure is
        missing.
    """
    require_trials(trials, starts)
    if wrong := [name for name in FIGURES if not _is_ratio(ratios.get(name))]:
        raise ParameterError("A band needs every figure.", field="ratios", value=", ".join(wrong))
    recorded = {"trials": trials, "starts": starts, "commit": git_state()["commit"], "versions": versions()}
    band = Band(kind, {name: round(ratios[name], 4) for name in FIGURES}, recorded)
    others = [one for one in read_bands() if one.kind != kind]
    write_json(bands_path(), {"bands": [asdict(one) for one in [*others, band]]})
    return band


def require_trials(trials: int, starts: int) -> None:
    """Refuse to write a band from fewer trials than `FEWEST_TRIALS`, or from fewer starts than
    `FEWEST_STARTS`, which give start-up time and memory."""
    for name, value, fewest in (("trials", trials, FEWEST_TRIALS), ("starts", starts, FEWEST_STARTS)):
        require_range(name, value, fewest, message=f"A band of so few {name} would be one of noise.")


def _is_ratio(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0


def band_before(kind: Kind, *, decides: bool, write: bool, trials: int, starts: int) -> Band | None:
    """The band with which times will be compared, looked up before anything is timed; None if there is none
    and times do not decide. If a band is to be written (`write`), the earlier band of this kind, or None if
    there is none.

    Raises
    ------
    ParameterError
        Times decide and there is no band; or a band is to be written from too few trials or starts.
    """
    if write:
        require_trials(trials, starts)
    band = band_for(kind) if decides or write else None
    if band is None and decides and not write:
        raise ParameterError(
            "There is no band for this kind of machine.",
            field="bands",
            value=", ".join(str(value) for value in asdict(kind).values()),
            allowed="; ".join(str(band.kind) for band in read_bands()) or "none is recorded",
            mend="Leave the machine alone, and record one: kokoro-lab run 60_performance_gate -p write=true",
        )
    return band


# ---------------------------------------------------------------------------------------- controls


TRIALS, NOISE, BUSY_NOISE = 20, 0.03, 0.5
SLEEP = 2
"""How long the slowed engine sleeps, as a multiple of the reference inference's time."""
ANY = Kind("any", "any", "any", 1, "any")


def slowed(engine: Engine, sleep_s: float) -> Engine:
    """An engine with the parts of `engine`, which sleeps for `sleep_s` before it decodes a segment."""

    def decode(asked: SegmentRequest) -> DecodedSegment:
        time.sleep(sleep_s)
        return engine.decoder.decode(asked)

    return Engine(replace(engine.parts, decoder=DecoderAround(engine.decoder, decode)))


def controls(
    engine: Engine, reference: Reference, voice: str, found: Mapping[str, Estimate]
) -> list[NegativeControl]:
    """`made_up_controls`, and a real engine that sleeps for twice the time of a reference inference, compared
    with a band made of its own earlier figures.

    This sleep at least doubles the figures, so it is caught on a busy machine, too.
    """
    sleep_s = SLEEP * reference.infer().seconds
    table = measure_speech(slowed(engine, sleep_s), reference, voice, 1, warm=False)
    band = Band(ANY, {name: of.value for name, of in found.items()})
    over = [
        check for check in judge(medians(table), band) if check.name.endswith("_over_band_at_least_ratio")
    ]
    name = "an engine that sleeps before every segment, in every figure of speech"
    return [*made_up_controls(), NegativeControl(name, caught=len(failed(over)) == len(over))]


def made_up_controls(seed: int = 0) -> list[NegativeControl]:
    """Made-up ratios with a little noise: with one fault each, which must fail, or with harmless changes,
    which must pass."""
    golden = Band(ANY, dict.fromkeys(FIGURES, 0.4))

    def passes(change: Mapping[str, float], noise: float = NOISE, without: str = "") -> bool:
        draw = np.random.default_rng(seed)
        found = {
            figure: median_of(0.4 * change.get(figure, 1.0) * draw.lognormal(0, noise, TRIALS))
            for figure in FIGURES
        }
        return not failed(judge({k: v for k, v in found.items() if k != without}, golden))

    busy = passes(dict.fromkeys(FIGURES, 1.15), BUSY_NOISE)
    return [
        *(NegativeControl(f"passes: {name}", passes(change)) for name, change in HARMLESS.items()),
        *(NegativeControl(name, not passes(change)) for name, change in FAULTS.items()),
        NegativeControl("a machine so busy that 15 % cannot be told from noise", not busy),
        NegativeControl("a figure that was not measured", not passes({}, without="memory")),
    ]


HARMLESS: dict[str, dict[str, float]] = {
    "what is as it was": {},
    "everything 5 % slower": dict.fromkeys(FIGURES, 1.05),
    "everything twice as fast": dict.fromkeys(FIGURES, 0.5),
}
"""Name of a change that must still pass → figure → the factor by which the change multiplies it."""
FAULTS: dict[str, dict[str, float]] = {f"{figure} 15 % over its band": {figure: 1.15} for figure in FIGURES}
