"""Configurations against each other: the same texts, turn by turn, each engine in a process of its own.

What the machine does meanwhile meets all of them alike, so their ratios hold where the times do not. A cold
start is timed apart from what is spoken warm; every text is spoken at least twice by each, because there are
providers that fail, or compute something else, the second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd
from tqdm import tqdm

from kokoro_lab.datatypes import SAMPLE_RATE_HZ, Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bench.configurations import Configuration
from kokoro_lab.lab.bench.engine_process import EngineFailed, EngineProcess, MakeEngine, real_engine
from kokoro_lab.lab.bench.texts import sentences_of, texts_of
from kokoro_lab.lab.fixtures import load_texts
from kokoro_lab.metrics.paired_ratio import PairedRatio, mean_of, paired_ratio
from kokoro_lab.metrics.perceptual import SHORTEST_S, pesq_wb, signal_to_difference_db

LEAST_PREDICTIONS = 2
ROUNDING_DB = 60.0
"""From here on two recordings differ by rounding; PESQ would only say 4.64."""
PESQ_S = 12.0
"""As much of a text as PESQ reads; the rest is of the same making."""


COLD_TEXT = "Good morning. This is the first thing that anybody hears."


@dataclass(frozen=True, slots=True)
class Start:
    """A cold start.

    Parameters
    ----------
    configuration : str
    process_s : float
        From the start of the process to an engine that could speak, imports and all.
    load_s : float
        Of that, `load_engine`.
    first_ttfa_s : float
        From the first request to its first sample of speech: G2P and whatever is lazy are loaded in it.
    loaded_mb : float
        Resident memory before it speaks.
    """

    configuration: str
    process_s: float
    load_s: float
    first_ttfa_s: float
    loaded_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class AbComparison:
    """What was measured.

    Parameters
    ----------
    configurations : tuple of Configuration
        Those that spoke everything; the first is the one that the others are compared with.
    starts : pandas.DataFrame
        A row a cold start, of all that could be started: the fields of `Start`.
    trials : pandas.DataFrame
        A row a prediction: the fields of `trial.Trial` with `system` the configuration's name, and
        `repetition`, `round`; `snr_db` and `pesq` against the first configuration's first prediction of the
        text (NaN where lengths differ, or PESQ has nothing to say); `longer_s` than that; and `same_again`,
        whether the samples are those of its own first prediction.
    unavailable : mapping of str to str
        Why the others were not measured, by name.
    facts : mapping of str to dict
        What each configuration ran with, by name.
    """

    configurations: tuple[Configuration, ...]
    starts: pd.DataFrame
    trials: pd.DataFrame
    unavailable: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def default(self) -> str:
        """Name of the configuration that the others are compared with."""
        return self.configurations[0].name

    def of(self, name: str) -> pd.DataFrame:
        """The trials of one configuration, each in the row of its text, round and repetition."""
        own = self.trials[self.trials.system == name]
        return own.set_index(["repetition", "text_number", "round"]).sort_index()

    def only(self, trials: pd.Series) -> AbComparison:
        """The same with the trials that are marked alone."""
        return AbComparison(
            self.configurations, self.starts, self.trials[trials], self.unavailable, self.facts
        )


def texts_by_length(lengths: Sequence[int], count: int, seed: int = 0) -> list[str]:
    """`count` distinct texts of about each length in characters, made of the fixtures' sentences."""
    sentences = sentences_of([t.text for t in load_texts() if t.kind in ("prose", "short", "long")])
    found = [
        text
        for number, characters in enumerate(lengths)
        for text in texts_of(sentences, characters, count, seed + number)
    ]
    return list(dict.fromkeys(found))


def compare(
    configurations: Sequence[Configuration],
    texts: Sequence[str],
    *,
    voice: str = "af_heart",
    rounds: int = LEAST_PREDICTIONS,
    repetition: int = 0,
    load: MakeEngine = real_engine,
    progress: bool = True,
) -> AbComparison:
    """Start each configuration cold, then have all of them speak every text in each round, in turn.

    Parameters
    ----------
    configurations : sequence of Configuration
        From `configurations.parse`: two or more, of which the first must be to be had here.
    texts : sequence of str
        Distinct.
    voice : str
        Who speaks.
    rounds : int
        How often each text is spoken by each, 2 or more.
    repetition : int
        Goes into the trials, to tell them from those of other calls.
    load : callable
        Makes an engine in each process.
    progress : bool
        Whether to show a bar.

    Raises
    ------
    ParameterError
        There is nothing to compare, or fewer than two rounds.
    EngineFailed
        The first configuration cannot be measured, so that there is nothing to compare with.
    """
    if len(configurations) < 2 or not texts:
        raise ParameterError("A comparison takes two configurations and a text.", field="configurations")
    if rounds < LEAST_PREDICTIONS:
        raise ParameterError(
            "Something may go wrong in the second prediction that went right in the first.",
            field="rounds",
            value=rounds,
            allowed=f"{LEAST_PREDICTIONS} or more",
        )
    unavailable: dict[str, str] = {}
    starts: list[Start] = []
    facts: dict[str, dict[str, Any]] = {}
    rows: list[dict[str, Any]] = []
    total = len(configurations) * (1 + rounds * len(texts))
    with ExitStack() as processes, tqdm(total=total, desc="predictions", disable=not progress) as bar:
        speakers: dict[str, EngineProcess] = {}
        for configuration in configurations:
            name, config = configuration.name, configuration.config
            speaker = EngineProcess(name, config, voice, load, warm=False)
            try:
                start = _started(processes.enter_context(speaker))
                speaker.warm(max(texts, key=len))
            except EngineFailed as error:
                speaker.close()  # one that hangs would take time from the others
                unavailable[name] = str(error)
                if configuration is configurations[0]:
                    raise
                bar.update(1 + rounds * len(texts))
                continue
            starts.append(start)
            facts[name] = speaker.loaded.facts
            speakers[name] = speaker
            bar.update()
        heard = _FirstPredictions(configurations[0].name)
        for turn in range(rounds * len(texts)):
            spoken_in, number = divmod(turn, len(texts))
            trials = {}
            for name in _rotated(list(speakers), turn):
                try:
                    trials[name] = speakers[name].speak(number, texts[number])
                except EngineFailed as error:
                    if name == configurations[0].name:
                        raise
                    unavailable[name] = f"text {number}, prediction {spoken_in + 1}: {error}"
                    speakers.pop(name).close()
                bar.update()
            # Between the trials, so that nobody is disturbed by it
            differences = heard.compare(number, {name: samples for name, (_, samples) in trials.items()})
            for name, (trial, _) in trials.items():
                place = {"system": name, "round": spoken_in, "repetition": repetition}
                rows.append(asdict(trial) | place | differences[name])
    table = pd.DataFrame(rows)
    return AbComparison(
        tuple(c for c in configurations if c.name not in unavailable),
        pd.DataFrame([asdict(start) for start in starts]),
        table[~table.system.isin(list(unavailable))].reset_index(drop=True),
        unavailable,
        facts,
    )


def _started(process: EngineProcess) -> Start:
    loaded, cold = process.loaded, process.speak(0, COLD_TEXT)
    return Start(process.name, loaded.process_s, loaded.load_s, cold.trial.ttfa_s, loaded.rss_mb)


def repeat(
    configurations: Sequence[Configuration],
    repetitions: int,
    spoken: Mapping[str, Any],
    *,
    load: MakeEngine = real_engine,
    progress: bool = True,
    **options: Any,
) -> list[AbComparison]:
    """`compare` again and again, each time with new processes and other texts.

    Parameters
    ----------
    repetitions : int
        How often, 1 or more.
    spoken : mapping
        `lengths` and `count` of `texts_by_length`.
    **options
        Of `compare`: voice, rounds.

    Raises
    ------
    ParameterError
        No repetition; and as `compare`.
    """
    if repetitions < 1:
        raise ParameterError(
            "Nothing is compared.", field="repetitions", value=repetitions, allowed="1 or more"
        )
    return [
        compare(
            configurations,
            texts_by_length(**spoken, seed=1000 * number),
            repetition=number,
            load=load,
            progress=progress,
            **options,
        )
        for number in range(repetitions)
    ]


def pooled(comparisons: Sequence[AbComparison]) -> AbComparison:
    """Several comparisons of the same configurations as one; who failed in one of them is left out."""
    first = comparisons[0]
    unavailable = {name: why for each in comparisons for name, why in each.unavailable.items()}
    trials = pd.concat([each.trials for each in comparisons], ignore_index=True)
    return AbComparison(
        tuple(c for c in first.configurations if c.name not in unavailable),
        pd.concat([each.starts for each in comparisons], ignore_index=True),
        trials[~trials.system.isin(list(unavailable))].reset_index(drop=True),
        unavailable,
        first.facts,
    )


def starts_table(comparison: AbComparison) -> pd.DataFrame:
    """Medians of the cold starts, and why there is none; a row each configuration."""
    medians = comparison.starts.groupby("configuration", sort=False).median(numeric_only=True)
    reasons = pd.DataFrame({"why not": pd.Series(dict(comparison.unavailable), dtype=object)})
    return medians.join(reasons, how="outer", sort=False).reindex(
        [*medians.index, *(name for name in reasons.index if name not in medians.index)]
    )


def warm_table(comparison: AbComparison) -> pd.DataFrame:
    """Warm predictions, a row each configuration: medians of TTFA and RTF, the peak of memory, gaps."""
    rows = {}
    for configuration in comparison.configurations:
        own = comparison.of(configuration.name)
        rows[configuration.name] = {
            "predictions": len(own),
            "ttfa_p50_ms": 1000 * own.ttfa_s.median(),
            "rtf_p50": own.rtf.median(),
            "rss_peak_mb": own.rss_peak_mb.max(),
            "underruns": int(own.underruns.sum()),
        }
    return pd.DataFrame(rows).T


def sound_table(comparison: AbComparison) -> pd.DataFrame:
    """How each configuration's samples differ from the first one's: at worst, and on average; a row each.

    `snr_*_db` and `pesq_*` are over texts of the same length: the least, the mean, and the ends of the mean's
    95 % interval. `other_lengths` counts texts of another length, `unlike_again` the predictions whose
    samples are not those of the first prediction of the text.
    """
    rows = {}
    for configuration in comparison.configurations:
        own = comparison.of(configuration.name)
        rows[configuration.name] = {
            **_spread("snr", "_db", own.snr_db),
            **_spread("pesq", "", own.pesq),
            "other_lengths": int((own.longer_s != 0).sum()),
            "unlike_again": int((~own.same_again.astype(bool)).sum()),
        }
    return pd.DataFrame(rows).T


def _spread(name: str, unit: str, figures: pd.Series) -> dict[str, float]:
    mean = mean_of(figures.to_numpy(float), _texts_of(figures))
    ends = {"min": figures.min(), "mean": mean.mean, "low": mean.low, "high": mean.high}
    return {f"{name}_{end}{unit}": value for end, value in ends.items()}


def _texts_of(trials: pd.DataFrame | pd.Series) -> list[tuple[int, int]]:
    return [(repetition, number) for repetition, number, _ in trials.index]


def ratio(
    comparison: AbComparison, candidate: str, figure: str, against: str, confidence: float = 0.95
) -> PairedRatio:
    """A figure of one configuration over another's, in pairs of the same text, round and repetition."""
    pairs = pd.concat([comparison.of(name)[figure] for name in (against, candidate)], axis=1, join="inner")
    before, after = list(pairs.iloc[:, 0]), list(pairs.iloc[:, 1])
    return paired_ratio(before, after, _texts_of(pairs), confidence=confidence)


def ratio_table(comparison: AbComparison, figure: str) -> pd.DataFrame:
    """`ratio` of every configuration to the first one: ratio, low, high; below 1 it takes less."""
    found = {
        c.name: ratio(comparison, c.name, figure, comparison.default) for c in comparison.configurations[1:]
    }
    rows = {name: {"ratio": r.ratio, "low": r.low, "high": r.high} for name, r in found.items()}
    return pd.DataFrame(rows).T if rows else pd.DataFrame(columns=["ratio", "low", "high"])


def _rotated(names: list[str], turn: int) -> list[str]:
    """Another one begins each turn: who speaks first finds other caches."""
    start = turn % len(names)
    return names[start:] + names[:start]


class _FirstPredictions:
    """The first configuration's first prediction of each text, and a digest of everybody's."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._samples: dict[int, Samples] = {}
        self._digests: dict[tuple[str, int], str] = {}

    def compare(self, number: int, heard: Mapping[str, Samples]) -> dict[str, dict[str, Any]]:
        reference = self._samples.setdefault(number, heard[self._reference])
        found = {}
        for name, samples in heard.items():
            digest = hashlib.sha256(samples.tobytes()).hexdigest()
            first = (name, number) not in self._digests
            same = self._digests.setdefault((name, number), digest) == digest
            found[name] = {"same_again": same, **_difference(reference, samples, measured=first)}
        return found


def _difference(reference: Samples, candidate: Samples, *, measured: bool) -> dict[str, float]:
    longer_s = (len(candidate) - len(reference)) / SAMPLE_RATE_HZ
    snr_db = pesq = float("nan")
    if not longer_s:
        snr_db = signal_to_difference_db(reference, candidate)
        if measured and snr_db < ROUNDING_DB and len(reference) >= SHORTEST_S * SAMPLE_RATE_HZ:
            end = round(PESQ_S * SAMPLE_RATE_HZ)
            pesq = pesq_wb(reference[:end], candidate[:end], SAMPLE_RATE_HZ)
    return {"snr_db": snr_db, "pesq": pesq, "longer_s": longer_s}
