"""Compares configurations: all speak the same texts, interleaved, each engine in a process of its own.

Other work on the machine affects all engines alike, so the ratios hold even if it changes the times. Cold
starts are timed apart from warm speech. In `repeat`, every configuration speaks each text at least twice,
because some providers fail, or compute something else, the second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pandas as pd

from kokoro_lab.datatypes import Samples
from kokoro_lab.errors import ParameterError
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.texts import fixture_sentences, texts_of
from kokoro_lab.lab.compare.configurations import Configuration
from kokoro_lab.lab.compare.difference import difference_of
from kokoro_lab.lab.compare.engine_process import EngineFailed, EngineProcess, MakeEngine, real_engine
from kokoro_lab.metrics.intervals import Estimate, mean_of, paired_ratio
from kokoro_lab.typed import require_range

LEAST_PREDICTIONS = 2
TEXT = ("repetition", "text_number")
"""The columns that name a text, since each repetition has texts of its own. The interval of a ratio is
computed by drawing whole texts."""
COLD_TEXT = "Good morning. This is the first thing that anybody hears."

Start = Callable[[Configuration], EngineProcess]


def in_processes(voice: str, make_engine: MakeEngine = real_engine) -> Start:
    """The function that starts a configuration in a process of its own, which speaks with `voice`."""
    return lambda asked: EngineProcess(asked.name, asked.config, voice, make_engine)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The measurements of one comparison.

    Parameters
    ----------
    configurations : tuple of Configuration
        The configurations that spoke everything; the others are compared with the first one.
    starts : pandas.DataFrame
        A row for each cold start, of every configuration that could be started: configuration; process_s,
        from the start of the process to an engine that can speak; load_s, the part of it that `load_engine`
        took; first_ttfa_s, from the first request to its first sample of speech, lazy loading included;
        loaded_mb, resident memory before it spoke.
    trials : pandas.DataFrame
        The table that `take_turns` returns.
    unavailable : mapping of str to str
        Name of each configuration that was not measured → the reason.
    facts : mapping of str to dict
        Name of each configuration → the facts of its engine.
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
        """The trials of one configuration, indexed by repetition, text and round."""
        return trials_of(self.trials, name)

    def only(self, trials: pd.Series) -> Comparison:
        """A comparison with only the trials that are True in `trials`."""
        return replace(self, trials=self.trials[trials])


def texts_by_length(lengths: Sequence[int], count: int, seed: int = 0) -> list[str]:
    """`count` distinct texts of about each length in characters, made of the fixtures' sentences."""
    sentences = fixture_sentences()
    found = [
        text
        for number, characters in enumerate(lengths)
        for text in texts_of(sentences, characters, count, seed + number)
    ]
    return list(dict.fromkeys(found))


def repeat(
    configurations: Sequence[Configuration],
    texts: Sequence[Sequence[str]],
    start: Start,
    *,
    rounds: int = LEAST_PREDICTIONS,
) -> list[Comparison]:
    """Repeat `compare`, each time with new processes.

    Parameters
    ----------
    texts : sequence of sequence of str
        The texts of each repetition.
    rounds : int
        How often each configuration speaks each text, 2 or more.

    Raises
    ------
    ParameterError
        There is nothing to compare, or there are fewer than two rounds. Further errors are those of
        `compare`.
    """
    if len(configurations) < 2 or not (texts and all(texts)):
        raise ParameterError("A comparison takes two configurations and a text.", field="configurations")
    message = "Something may go wrong in the second prediction that went right in the first."
    require_range("rounds", rounds, LEAST_PREDICTIONS, message=message)
    return [
        compare(configurations, spoken, start, rounds=rounds, repetition=number)
        for number, spoken in enumerate(texts)
    ]


def compare(
    configurations: Sequence[Configuration],
    texts: Sequence[str],
    start: Start,
    *,
    rounds: int = 1,
    repetition: int = 0,
) -> Comparison:
    """Start each configuration cold, then have all of them speak every text in each round, interleaved.

    Parameters
    ----------
    configurations : sequence of Configuration
        From `configurations.parse`: two or more, of which the first must be available here.
    texts : sequence of str
        Distinct.
    start : callable
        The function that `in_processes` returns, or one like it.
    rounds : int
        How often each configuration speaks each text.
    repetition : int
        Number that is written into the trials, to tell them from those of other calls.

    Raises
    ------
    EngineFailed
        The first configuration cannot be measured, so that there is nothing to compare with.
    """
    unavailable: dict[str, str] = {}
    starts: list[dict[str, Any]] = []
    facts: dict[str, dict[str, Any]] = {}
    total = len(configurations) * (1 + rounds * len(texts))
    with ExitStack() as processes, tqdm(total=total, desc="predictions") as bar:
        speakers: dict[str, EngineProcess] = {}
        for configuration in configurations:
            name, speaker = configuration.name, start(configuration)
            try:
                processes.enter_context(speaker)
                cold = speaker.speak(0, COLD_TEXT).trial
                speaker.warm(max(texts, key=len))
            except EngineFailed as error:
                speaker.close()  # a process that hangs would take computing time from the others
                unavailable[name] = str(error)
                if configuration is configurations[0]:
                    raise
                bar.update(1 + rounds * len(texts))
                continue
            facts[name] = speaker.facts
            starts.append({"configuration": name, **speaker.loaded, "first_ttfa_s": cold.ttfa_s})
            speakers[name] = speaker
            bar.update()
        trials, failed = take_turns(speakers, texts, rounds=rounds, repetition=repetition, done=bar.update)
        unavailable |= failed
    return Comparison(
        tuple(c for c in configurations if c.name not in unavailable),
        pd.DataFrame(starts),
        trials,
        unavailable,
        facts,
    )


def take_turns(
    speakers: Mapping[str, EngineProcess],
    texts: Sequence[str],
    *,
    rounds: int = 1,
    repetition: int = 0,
    done: Callable[[], object] = lambda: None,
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Have all speakers speak every text in each round, interleaved; the order is rotated with each text.

    Parameters
    ----------
    speakers : mapping of str to EngineProcess
        Warm engines by name; the first one is the reference.
    done : callable
        Called after each trial, that is, after a speaker has spoken a text once.

    Returns
    -------
    trials : pandas.DataFrame
        A row for each trial of each speaker that spoke everything. Columns: the fields of `trial.Trial`,
        where `system` is the speaker's name; `round` and `repetition`; `snr_db` and `pesq` against the
        reference's first trial of the text (see `difference_of`; `pesq` is the least of any part of the text;
        it is also NaN for a speaker's later trials of the text); `longer_s`, how many
        seconds longer the speech is than that of the reference's first trial; `same_again`, whether the
        samples equal those of the speaker's own first trial of the text.
    failed : dict
        Name of each speaker that failed → the reason.

    Raises
    ------
    EngineFailed
        The reference failed.
    """
    there, reference = dict(speakers), next(iter(speakers))
    failed: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    heard = _FirstPredictions(reference)
    for turn in range(rounds * len(texts)):
        spoken_in, number = divmod(turn, len(texts))
        spoken = {}
        for name in _rotated(list(there), turn):
            try:
                spoken[name] = there[name].speak(number, texts[number])
            except EngineFailed as error:
                if name == reference:
                    raise
                failed[name] = f"text {number}, prediction {spoken_in + 1}: {error}"
                there.pop(name).close()
            done()
        # Compared between the trials, so that no trial is disturbed
        differences = heard.compare(number, {name: samples for name, (_, samples) in spoken.items()})
        for name, (trial, _) in spoken.items():
            place = {"system": name, "round": spoken_in, "repetition": repetition}
            rows.append(asdict(trial) | place | differences[name])
    trials = pd.DataFrame(rows)
    return trials[~trials.system.isin(list(failed))].reset_index(drop=True), failed


def pooled(comparisons: Sequence[Comparison]) -> Comparison:
    """Several comparisons of the same configurations as one. A configuration that failed in any of the
    comparisons is left out."""
    first = comparisons[0]
    unavailable = {name: why for each in comparisons for name, why in each.unavailable.items()}
    trials = pd.concat([each.trials for each in comparisons], ignore_index=True)
    return Comparison(
        tuple(c for c in first.configurations if c.name not in unavailable),
        pd.concat([each.starts for each in comparisons], ignore_index=True),
        trials[~trials.system.isin(list(unavailable))].reset_index(drop=True),
        unavailable,
        first.facts,
    )


def starts_table(comparison: Comparison) -> pd.DataFrame:
    """A row for each configuration: medians of its cold starts, or the reason why it was not measured."""
    medians = comparison.starts.groupby("configuration", sort=False).median(numeric_only=True)
    reasons = pd.DataFrame({"why not": pd.Series(dict(comparison.unavailable), dtype=object)})
    return medians.join(reasons, how="outer", sort=False).reindex(
        [*medians.index, *(name for name in reasons.index if name not in medians.index)]
    )


def warm_table(comparison: Comparison) -> pd.DataFrame:
    """The trials of warm engines, a row for each configuration: their number (`predictions`), the medians of
    TTFA and RTF, the peak of memory, and the number of underruns."""
    by_name = comparison.trials.groupby("system")
    found = {
        "predictions": by_name.size(),
        "ttfa_p50_ms": 1000 * by_name.ttfa_s.median(),
        "rtf_p50": by_name.rtf.median(),
        "rss_peak_mb": by_name.rss_peak_mb.max(),
        "underruns": by_name.underruns.sum(),
    }
    return pd.DataFrame(found).loc[[c.name for c in comparison.configurations]]


def sound_table(comparison: Comparison) -> pd.DataFrame:
    """A row for each configuration: how its samples differ from the first one's, at worst and on average.

    `snr_*_db` and `pesq_*` are over trials whose speech is as long as the first configuration's: the least,
    the mean, and the ends of the mean's 95 % interval. `other_lengths` counts the trials whose speech has
    another length, `unlike_again` the trials whose samples are not those of the configuration's first trial
    of the text.
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
    mean = mean_of(figures.to_numpy(float), texts_in(figures))
    ends = {"min": figures.min(), "mean": mean.value, "low": mean.low, "high": mean.high}
    return {f"{name}_{end}{unit}": value for end, value in ends.items()}


def trials_of(trials: pd.DataFrame, name: str) -> pd.DataFrame:
    """The trials of one system, indexed by repetition, text and round."""
    return trials[trials.system == name].set_index([*TEXT, "round"]).sort_index()


def texts_in(trials: pd.DataFrame | pd.Series, units: Sequence[str] = TEXT) -> list[tuple[int, ...]]:
    """The unit to which each row of `trials_of` belongs, such as its text. For an interval, only units count
    as independent of each other, and not the rows of one unit."""
    return list(zip(*(trials.index.get_level_values(name) for name in units), strict=True))


def ratio(
    trials: pd.DataFrame,
    candidate: str,
    figure: str,
    against: str,
    *,
    confidence: float = 0.95,
    units: Sequence[str] = TEXT,
) -> Estimate:
    """A figure of `candidate` divided by that of `against`, in pairs of the same text, round and
    repetition."""
    pairs = pd.concat(
        [trials_of(trials, name)[figure] for name in (against, candidate)], axis=1, join="inner"
    )
    return paired_ratio(pairs.iloc[:, 0], pairs.iloc[:, 1], texts_in(pairs, units), confidence=confidence)


def ratio_table(comparison: Comparison, figure: str) -> pd.DataFrame:
    """`ratio` of every configuration to the first one: ratio, low, high. Below 1, the configuration takes
    less than the first one."""
    rows = {}
    for other in comparison.configurations[1:]:
        found = ratio(comparison.trials, other.name, figure, comparison.default)
        rows[other.name] = {"ratio": found.value, "low": found.low, "high": found.high}
    return pd.DataFrame(rows).T if rows else pd.DataFrame(columns=["ratio", "low", "high"])


def _rotated(names: list[str], turn: int) -> list[str]:
    """The names, rotated so that another speaker begins each turn. The speaker that begins finds the
    processor's caches in another state than the others."""
    start = turn % len(names)
    return names[start:] + names[:start]


class _FirstPredictions:
    """For each text: the samples of the first configuration's first trial, and a digest of the samples of
    every configuration's first trial."""

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
            found[name] = {"same_again": same, **difference_of(reference, samples, with_pesq=first)}
        return found
