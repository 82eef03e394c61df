"""Does a listener notice a fault? Every scenario by every transport, and what became of each word.

A text is streamed undisturbed first. Then each scenario's faults are put in, and a listener who goes on where
it breaks takes the same text again. The same request has the same samples, so what they have must be what the
undisturbed stream has; where a fault lets another G2P read, the words that were spoken must be those of the
text, in order, each once, and all that was spoken must have come. What they would have heard is a player's
clock over the arrivals of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
from tqdm import tqdm

from kokoro_lab.bench.faulty import Disturbed, Subject, disturbed
from kokoro_lab.bench.playout import PRE_BUFFER_S
from kokoro_lab.bench.resuming import differences
from kokoro_lab.faults.scenario import Scenario, Transport, load_scenario
from kokoro_lab.results import Check, Control

SILENCE_S = 1.0
"""S11: a listener waits no longer, whatever breaks."""
STALLED_TTFA_S = 0.7
"""With a G2P that does not answer."""
LATE_S = 1.2
"""How long the control's listener waits."""
CHUNK_BYTES = 2_400
SAMPLES, WORDS, ERROR, LOST = "every sample", "every word", "a clear error", "LOST"
"""How a stream ended."""
COLUMNS = (
    *("scenario", "transport", "ended", "passed", "struck", "breaks", "ttfa_s", "recover_most_s"),
    *("underruns", "longest_silence_s", "differing_samples", "missing_samples", "audio_s"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one stream: a row of the table.

    Parameters
    ----------
    scenario, transport, ended : str
    passed : bool
        Whether that is how it may end.
    struck : int
        How often the fault was put in.
    breaks : int
        How often the listener had to ask again.
    ttfa_s, recover_most_s : float
        Until the first chunk; and, after a break, until the next new one, NaN without breaks.
    underruns : int
    longest_silence_s : float
        With a pre-buffer of 100 ms.
    differing_samples, missing_samples : int
        Against the undisturbed stream.
    audio_s : float
    """

    scenario: str
    transport: str
    ended: str
    passed: bool
    struck: int
    breaks: int
    ttfa_s: float
    recover_most_s: float
    underruns: int
    longest_silence_s: float
    differing_samples: int
    missing_samples: int
    audio_s: float


def measure(
    subjects: Mapping[Transport, Subject],
    text: str,
    scenarios: Sequence[Scenario],
    *,
    progress: bool = True,
) -> tuple[pd.DataFrame, dict[Transport, Disturbed]]:
    """Speak `text` once for each scenario and transport.

    Returns
    -------
    pandas.DataFrame
        A row a stream, with the fields of `Outcome`.
    dict
        The undisturbed streams by transport.
    """
    jobs = [(s, t) for s in scenarios for t in s.transports if t in subjects]
    rows = []
    with tqdm(total=len(subjects) + len(jobs), desc="streams", disable=not progress) as bar:
        whole = {}
        for transport, subject in subjects.items():
            whole[transport] = disturbed(subject, None)
            bar.update()
        for scenario, transport in jobs:
            found = disturbed(subjects[transport], scenario, whole[transport].heard)
            rows.append(outcome_of(found, whole[transport], text, scenario, transport))
            bar.update()
    return pd.DataFrame([asdict(row) for row in rows], columns=list(COLUMNS)), whole


def outcome_of(
    found: Disturbed, whole: Disturbed, text: str, scenario: Scenario, transport: Transport
) -> Outcome:
    """What became of a stream, by what the undisturbed one was."""
    heard = found.heard
    differing, missing = differences(heard.pcm, whole.heard.pcm)
    played = heard.played(PRE_BUFFER_S)
    ended = ended_as(found, whole, text, otherwise=bool(scenario.of_seam("g2p")))
    passed = ended in (SAMPLES, WORDS) or (ended == ERROR and transport in scenario.may_end_in_error)
    return Outcome(
        scenario=scenario.name,
        transport=transport,
        ended=ended,
        passed=passed,
        struck=found.struck,
        breaks=len(heard.breaks),
        ttfa_s=heard.ttfa_s,
        recover_most_s=max(heard.recovered_s, default=float("nan")),
        underruns=played.underruns,
        longest_silence_s=played.longest_silence_s,
        differing_samples=differing,
        missing_samples=missing,
        audio_s=sum(heard.lengths_s),
    )


def ended_as(found: Disturbed, whole: Disturbed, text: str, *, otherwise: bool) -> str:
    """How a stream ended: `SAMPLES`, `WORDS`, `ERROR` or `LOST`.

    An error is clear if it was told, and all that had come until then is right. `otherwise` is whether the
    words may sound otherwise, because another G2P read them.
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
    """What of `text` was spoken, in the order in which it was, without the marks: one G2P takes them to the
    words, another one does not."""
    return "".join(c for start, end in words for c in text[start:end] if c.isalnum())


def judge(table: pd.DataFrame, asked: int) -> list[Check]:
    """Every fault struck, no stream lost a word, no silence over a second; and what two faults may cost."""
    checks = [
        Check("streams_count", len(table), low=asked, high=asked),
        Check("streams_without_their_fault_count", int((table.struck == 0).sum()), high=0),
        Check("streams_not_whole_count", int((~table.passed.astype(bool)).sum()), high=0),
        Check("longest_silence_s", _most(table[table.ended != ERROR].longest_silence_s), high=SILENCE_S),
    ]
    stalled = table[table.scenario == "g2p_stalled"]
    if len(stalled):
        checks.append(Check("g2p_stalled_ttfa_most_s", _most(stalled.ttfa_s), high=STALLED_TTFA_S))
    lost = table[table.scenario == "provider_lost"]
    if len(lost):
        checks.append(Check("provider_lost_silence_most_s", _most(lost.longest_silence_s), high=0))
    return checks


def figures(table: pd.DataFrame) -> dict[str, float]:
    """By scenario, the worst of what has no limit."""
    found = {
        "streams_by_samples_count": float((table.ended == SAMPLES).sum()),
        "streams_by_words_count": float((table.ended == WORDS).sum()),
        "streams_with_a_clear_error_count": float((table.ended == ERROR).sum()),
        "breaks_count": float(table.breaks.sum()),
        "recover_most_s": _most(table.recover_most_s),
        "ttfa_most_s": _most(table.ttfa_s),
        "underruns_count": float(table.underruns.sum()),
    }
    for name, rows in table.groupby("scenario", sort=False):
        found[f"{name}_silence_most_s"] = _most(rows.longest_silence_s)
    return found


def controls(subject: Subject, whole: Disturbed, text: str) -> list[Control]:
    """Listeners who do not do their part, and streams that are not whole: the gate must say so of each."""
    cut = load_scenario("connection_cut")
    lost = load_scenario("chunks_lost_on_line")
    careless = {
        "a listener who does not go on": disturbed(subject, cut, whole.heard, goes_on=False),
        "a lost chunk that nobody asks for again": disturbed(subject, lost, whole.heard, asks_again=False),
    }
    found = [
        Control(name, not outcome_of(one, whole, text, cut, "sse").passed) for name, one in careless.items()
    ]
    return [*found, *_changed(whole, text, cut), *_unread(whole, text), *_unnoticed(whole, text, cut)]


def _changed(whole: Disturbed, text: str, scenario: Scenario) -> list[Control]:
    """What was heard is not what was spoken."""
    pcm = whole.heard.pcm
    middle = len(pcm) // 4 * 2
    before, after, chunk = pcm[:middle], pcm[middle:], pcm[middle - CHUNK_BYTES : middle]
    changed = {
        "50 ms heard twice": before + chunk + after,
        "50 ms never heard": before[:-CHUNK_BYTES] + after,
        "a sample off by one bit": before + bytes([after[0] ^ 1]) + after[1:],
    }
    return [
        Control(name, not outcome_of(_heard(whole, pcm), whole, text, scenario, "sse").passed)
        for name, pcm in changed.items()
    ]


def _unread(whole: Disturbed, text: str) -> list[Control]:
    """What was spoken are not the words of the text. Other samples alone are no fault of a stalled G2P."""
    stalled, (*_, spoken) = load_scenario("g2p_stalled"), whole.spoken
    other = _heard(whole, bytes((~np.frombuffer(whole.heard.pcm, "<i2")).tobytes()))
    if not outcome_of(other, whole, text, stalled, "sse").passed:
        return [Control("the same words in another voice pass", caught=False)]
    words = spoken.words
    changed = {
        "a word that was not spoken": words[:1] + words[2:],
        "a word that was spoken twice": words[:2] + words[1:],
        "two words that changed places": (words[1], words[0], *words[2:]),
    }
    return [
        Control(
            name,
            not outcome_of(
                replace(other, spoken=(replace(spoken, words=said),)), whole, text, stalled, "sse"
            ).passed,
        )
        for name, said in changed.items()
    ]


def _unnoticed(whole: Disturbed, text: str, scenario: Scenario) -> list[Control]:
    """A whole stream that is no pass: it came too late, or nothing was put in."""
    arrivals_s = whole.heard.arrivals_s
    late = tuple(at + (i > 0) * (arrivals_s[-1] + LATE_S) for i, at in enumerate(arrivals_s))
    streams = {
        "a silence of over a second": (
            replace(whole, struck=1, heard=replace(whole.heard, arrivals_s=late)),
            "longest_silence_s",
        ),
        "a fault that never struck": (replace(whole, struck=0), "streams_without_their_fault_count"),
    }
    found = []
    for name, (stream, check) in streams.items():
        table = pd.DataFrame([asdict(outcome_of(stream, whole, text, scenario, "sse"))])
        found.append(Control(name, [c.name for c in judge(table, 1) if not c.passed] == [check]))
    return found


def _heard(whole: Disturbed, pcm: bytes) -> Disturbed:
    return replace(whole, heard=replace(whole.heard, pcm=pcm), struck=1)


def _most(values: pd.Series[Any]) -> float:
    known = values.dropna()
    return float(known.max()) if len(known) else float("nan")
