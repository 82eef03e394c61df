"""Does a listener notice a fault? Each scenario is tried over its transports, and no word may get lost.

A text is streamed undisturbed first. Then each scenario's faults are injected, and a listener who resumes
broken streams hears the same text again. The same request has the same samples, so the listener must get
those of the undisturbed stream. Where a fault makes the next level of G2P read a sentence, the spoken words
must be those of the text, each once and in order, and all of the speech must have arrived. From the arrivals
of the chunks, a simulated player computes what the listener would have heard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from kokoro_lab.errors import ParameterError
from kokoro_lab.lab import plots
from kokoro_lab.lab.bars import tqdm
from kokoro_lab.lab.bench.faulty import DisturbedStream, FaultySpeaker, disturbed
from kokoro_lab.lab.bench.received import differences
from kokoro_lab.lab.bench.trial import play
from kokoro_lab.lab.faults.scenario import TRANSPORTS, AnyFault, Scenario, Transport, load_scenario
from kokoro_lab.lab.fixtures import require_known
from kokoro_lab.lab.results import Check, NegativeControl, failed

PARAGRAPH = (
    "The kettle is on, and the window is open to the garden behind the house. Nobody is in. "
    "Rain fell on the quiet town until the morning."
)
SILENCE_S = 1.0
"""The longest silence that a listener may hear after any fault."""
STALLED_TTFA_S = 0.7
"""Limit of TTFA with a G2P that does not answer."""
KEEPS_UP = 0.5
"""The real-time factor of an undisturbed stream up to which the speech in hand covers the time of a recovery.
On a slower or busy machine, times say nothing about faults, so no time is judged, only whether every fault
struck and no word was lost; times are reported."""
STALLED, PROVIDER_LOST = "g2p_stalled_ttfa_most_s", "provider_lost_silence_most_s"
SAMPLES, WORDS, ERROR, LOST = "every sample", "every word", "a clear error", "LOST"
"""How a stream can end: with every sample right, with every word spoken, with a clear error, or with
something lost."""
COLOURS = {SAMPLES: plots.GREEN, WORDS: plots.BLUE, ERROR: plots.YELLOW, LOST: plots.ORANGE}
LATE_S = 1.2
"""In a control, all chunks but the first come late, by the time of the whole stream and this many seconds."""
CHUNK_BYTES = 2_400


class FaultMeasurements(NamedTuple):
    """What `measure` found.

    `table` has a row for each stream: see `outcome_of`. `whole` is the undisturbed stream of each transport.
    `rtf` is the highest real-time factor of the undisturbed streams, which are spoken at the beginning and
    again at the end.
    """

    table: pd.DataFrame
    whole: dict[Transport, DisturbedStream]
    rtf: float


def described(scenarios: Sequence[Scenario]) -> pd.DataFrame:
    """A row for each scenario: its title, seams, faults with their figures, transports and seed."""
    rows = [
        {
            "scenario": scenario.name,
            "what happens": scenario.title,
            "seams": ", ".join(dict.fromkeys(fault.seam for fault in scenario.faults)),
            "faults": "; ".join(_in_words(fault) for fault in scenario.faults),
            "transports": ", ".join(scenario.transports),
            "seed": scenario.seed,
        }
        for scenario in scenarios
    ]
    return pd.DataFrame(rows).set_index("scenario")


def transports_of(names: str) -> list[Transport]:
    """The transports that `names` lists, separated by commas.

    Raises
    ------
    ParameterError
        No transport has one of these names.
    """
    chosen = [part.strip() for part in names.split(",")]
    for name in chosen:
        require_known("transport", name, TRANSPORTS, "transports")
    return [transport for name in chosen for transport in TRANSPORTS if transport == name]


def asked(scenarios: Sequence[Scenario], transports: Sequence[Transport]) -> int:
    """The number of streams with faults that must be spoken: one for each scenario and each of `transports`
    that it has."""
    return sum(transport in scenario.transports for scenario in scenarios for transport in transports)


def measure(
    subjects: Mapping[Transport, FaultySpeaker], text: str, scenarios: Sequence[Scenario]
) -> FaultMeasurements:
    """Speak `text` once for each scenario and transport. Before and after all of these, speak it undisturbed
    over each transport.

    Raises
    ------
    ParameterError
        No scenario can be met by any of the transports.
    """
    jobs = [(s, t) for s in scenarios for t in s.transports if t in subjects]
    if not jobs:
        raise ParameterError("None of the scenarios can be met by these transports.", field="transports")
    rows = []
    with tqdm(total=2 * len(subjects) + len(jobs), desc="streams") as bar:

        def undisturbed(subject: FaultySpeaker) -> DisturbedStream:
            found = disturbed(subject, None)
            bar.update()
            return found

        whole = {transport: undisturbed(subject) for transport, subject in subjects.items()}
        for scenario, transport in jobs:
            found = disturbed(subjects[transport], scenario, whole[transport].heard)
            rows.append(outcome_of(found, whole[transport], text, scenario, transport))
            bar.update()
        again = [undisturbed(subject) for subject in subjects.values()]
    return FaultMeasurements(
        pd.DataFrame(rows),
        whole,
        max(one.heard.rtf for one in (*whole.values(), *again)),
    )


def outcome_of(
    found: DisturbedStream, whole: DisturbedStream, text: str, scenario: Scenario, transport: Transport
) -> dict[str, Any]:
    """The figures of a stream, compared with the undisturbed one.

    Returns
    -------
    dict
        scenario, transport, ended, passed (whether a stream of this scenario may end so), struck (how often
        the fault was injected), breaks (how often the listener had to ask again), ttfa_s, recover_most_s
        (after a break, until the next new chunk; not a number without breaks), underruns and
        longest_silence_s (with a pre-buffer of 100 ms), differing_samples and missing_samples (against the
        undisturbed stream), audio_s.
    """
    heard = found.heard
    played = play(heard.arrivals_s, heard.lengths_s)
    ended = ended_as(found, whole, text, otherwise=bool(scenario.of_seam("g2p")))
    passed = ended in (SAMPLES, WORDS) or (ended == ERROR and transport in scenario.may_end_in_error)
    differing, missing = differences(heard.pcm, whole.heard.pcm)
    return {
        "scenario": scenario.name,
        "transport": transport,
        "ended": ended,
        "passed": passed,
        "struck": found.struck,
        "breaks": len(heard.breaks),
        "ttfa_s": heard.ttfa_s,
        "recover_most_s": max(heard.recovered_s, default=float("nan")),
        "underruns": played.underruns,
        "longest_silence_s": played.longest_silence_s,
        "differing_samples": differing,
        "missing_samples": missing,
        "audio_s": heard.audio_s,
    }


def ended_as(found: DisturbedStream, whole: DisturbedStream, text: str, *, otherwise: bool) -> str:
    """How a stream ended: `SAMPLES`, `WORDS`, `ERROR` or `LOST`.

    An error is clear if it was reported and all earlier samples are right. `otherwise` says whether the words
    may sound different because the next level of G2P read them.
    """
    heard, undisturbed = found.heard, whole.heard
    if heard.complete and differences(heard.pcm, undisturbed.pcm) == (0, 0):
        return SAMPLES
    if otherwise and heard.complete and not heard.breaks and len(found.spoken) == 1:
        (spoken,) = found.spoken
        said, should = letters(text, spoken.words), letters(text, whole.spoken[-1].words)
        if said == should and heard.samples == spoken.samples:
            return WORDS
    if not heard.complete and heard.breaks and undisturbed.pcm.startswith(heard.pcm):
        return ERROR
    return LOST


def letters(text: str, words: Iterable[tuple[int, int]]) -> str:
    """The spoken parts of `text` in order, without marks, which only some levels of G2P count as part of the
    words."""
    return "".join(c for start, end in words for c in text[start:end] if c.isalnum())


def judge(table: pd.DataFrame, asked: int, rtf: float) -> list[Check]:
    """The checks: every fault struck, and no stream lost a word. If `rtf` of the undisturbed streams shows
    that the machine keeps up, also: no silence over a second, none after a lost provider, and an early start
    beside a stalled G2P."""
    checks = [
        Check("streams_count", len(table), low=asked, high=asked),
        Check("streams_without_their_fault_count", int((table.struck == 0).sum()), high=0),
        Check("streams_not_whole_count", int((~table.passed).sum()), high=0),
    ]
    if rtf > KEEPS_UP:
        return checks
    limits = {"longest_silence_s": SILENCE_S, STALLED: STALLED_TTFA_S, PROVIDER_LOST: 0.0}
    found = timed(table)
    return [*checks, *(Check(name, found[name], high=limits[name]) for name in found)]


def remarks(rtf: float) -> list[str]:
    """Remarks on what the verdict does not cover."""
    slow = f"no time decides: the RTF of undisturbed streams is {rtf:.2f}, and at most {KEEPS_UP:g} is needed"
    return [slow] if rtf > KEEPS_UP else []


def timed(table: pd.DataFrame) -> dict[str, float]:
    """The times that have limits, by the names of their checks, as far as their scenarios were run."""
    found = {"longest_silence_s": float(table[table.ended != ERROR].longest_silence_s.max())}
    stalled, lost = table[table.scenario == "g2p_stalled"], table[table.scenario == "provider_lost"]
    if len(stalled):
        found[STALLED] = float(stalled.ttfa_s.max())
    if len(lost):
        found[PROVIDER_LOST] = float(lost.longest_silence_s.max())
    return found


def figures(table: pd.DataFrame, rtf: float) -> dict[str, float]:
    """Figures without a limit. If the machine does not keep up, the times of `timed` are among them, since
    they are not judged then."""
    found = {
        "rtf_undisturbed_max_ratio": rtf,
        **(timed(table) if rtf > KEEPS_UP else {}),
        "streams_by_samples_count": float((table.ended == SAMPLES).sum()),
        "streams_by_words_count": float((table.ended == WORDS).sum()),
        "streams_with_a_clear_error_count": float((table.ended == ERROR).sum()),
        "breaks_count": float(table.breaks.sum()),
        "recover_most_s": float(table.recover_most_s.max()),
        "ttfa_most_s": float(table.ttfa_s.max()),
        "underruns_count": float(table.underruns.sum()),
    }
    for name, rows in table.groupby("scenario", sort=False):
        if name != "provider_lost":  # that has a limit
            found[f"{name}_silence_most_s"] = float(rows.longest_silence_s.max())
    return found


def worst(table: pd.DataFrame, count: int = 6) -> pd.DataFrame:
    """The streams with the longest silences; equal ones are ordered by their time to recover."""
    columns = ["scenario", "transport", "ended", "longest_silence_s", "recover_most_s", "breaks", "ttfa_s"]
    order = table.sort_values(["longest_silence_s", "recover_most_s"], ascending=False, na_position="last")
    return order[columns].head(count).round(3)


def _in_words(fault: AnyFault) -> str:
    given = fault.model_dump(exclude={"kind", "seam"})
    said = {name: f"{value:g}" if isinstance(value, float) else value for name, value in given.items()}
    return " ".join([fault.kind, *(f"{name}={value}" for name, value in said.items())])


def controls(
    subjects: Mapping[Transport, FaultySpeaker], whole: Mapping[Transport, DisturbedStream], text: str
) -> list[NegativeControl]:
    """Controls that must not pass: careless listeners, and incomplete streams.

    A missing chunk can only be noticed where chunks have ids, which raw audio lacks.

    Parameters
    ----------
    subjects, whole : mapping
        Transport → its speaker, and transport → its undisturbed stream.
    """
    tagged: Transport | None = next((transport for transport in subjects if transport != "http"), None)
    line: Transport | None = next((transport for transport in subjects if transport != "library"), None)
    cut = (line, "connection_cut") if line else (tagged, "chunks_lost_in_queue")
    careless = [
        ("a listener who does not go on", *cut, "goes_on"),
        ("a lost chunk that nobody asks for again", tagged, "chunks_lost_on_line", "asks_again"),
        (
            "chunks that are played as they come, out of their order",
            tagged,
            "chunks_reordered_on_line",
            "reorders",
        ),
    ]
    found = []
    for name, transport, scenario_name, care in careless:
        if transport is not None:
            scenario, undisturbed = load_scenario(scenario_name), whole[transport]
            stream = disturbed(subjects[transport], scenario, undisturbed.heard, **{care: False})
            passed = outcome_of(stream, undisturbed, text, scenario, transport)["passed"]
            found.append(NegativeControl(name, bool(stream.struck) and not passed))
    first, scenario = next(iter(whole.values())), load_scenario("connection_cut")
    made = _changed(first, text, scenario) + _unread(first, text) + _unnoticed(first, text, scenario)
    return found + made


def _changed(whole: DisturbedStream, text: str, scenario: Scenario) -> list[NegativeControl]:
    """Controls: the samples that were heard differ from those that were spoken."""
    pcm = bytes(whole.heard.pcm)
    middle = len(pcm) // 4 * 2
    before, after, chunk = pcm[:middle], pcm[middle:], pcm[middle - CHUNK_BYTES : middle]
    changed = {
        "50 ms heard twice": before + chunk + after,
        "50 ms never heard": before[:-CHUNK_BYTES] + after,
        "a sample off by one bit": before + bytes([after[0] ^ 1]) + after[1:],
    }
    return [
        NegativeControl(name, not outcome_of(_heard(whole, pcm), whole, text, scenario, "sse")["passed"])
        for name, pcm in changed.items()
    ]


def _unread(whole: DisturbedStream, text: str) -> list[NegativeControl]:
    """Controls: the spoken words differ from the text. If the G2P stalls, its next level reads the sentence,
    so other samples are no fault as long as the words are right."""
    stalled, (*_, spoken) = load_scenario("g2p_stalled"), whole.spoken
    other = _heard(whole, (~np.frombuffer(bytes(whole.heard.pcm), "<i2")).tobytes())
    if not outcome_of(other, whole, text, stalled, "sse")["passed"]:
        return [NegativeControl("the same words in another voice pass", caught=False)]
    words = spoken.words
    changed = {
        "a word that was not spoken": words[:1] + words[2:],
        "a word that was spoken twice": words[:2] + words[1:],
        "two words that changed places": (words[1], words[0], *words[2:]),
    }
    streams = {name: replace(other, spoken=(replace(spoken, words=said),)) for name, said in changed.items()}
    return [
        NegativeControl(name, not outcome_of(stream, whole, text, stalled, "sse")["passed"])
        for name, stream in streams.items()
    ]


def _unnoticed(whole: DisturbedStream, text: str, scenario: Scenario) -> list[NegativeControl]:
    """Controls: a complete stream that came too late, and one in which no fault was injected."""
    arrivals_s = whole.heard.arrivals_s
    late = [at + (i > 0) * (arrivals_s[-1] + LATE_S) for i, at in enumerate(arrivals_s)]
    too_late = replace(whole, struck=1, heard=replace(whole.heard, arrivals_s=late))
    streams = {
        "a silence of over a second": (too_late, "longest_silence_s"),
        "a fault that never struck": (replace(whole, struck=0), "streams_without_their_fault_count"),
    }
    found = []
    for name, (stream, check) in streams.items():
        table = pd.DataFrame([outcome_of(stream, whole, text, scenario, "sse")])
        found.append(NegativeControl(name, failed(judge(table, 1, 0.0)) == [check]))
    return found


def _heard(whole: DisturbedStream, pcm: bytes) -> DisturbedStream:
    return replace(whole, heard=replace(whole.heard, pcm=bytearray(pcm)), struck=1)
